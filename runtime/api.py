"""Kernels from Python: `add = compile("add.cu"); add[grid, block](a, b, c, n)` on numpy arrays, in place."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qgpu.backends.machine.description import MachineDescription, load_description
from qgpu.backends.machine.follow import Fault
from qgpu.backends.machine.host import Dim3, Launch, build_launch
from qgpu.backends.machine.program import Kernel, Parameter, Program
from qgpu.backends.machine.verify import SCALAR_BITS
from qgpu.runtime.arguments import (
    DTYPES,
    Argument,
    ArgumentError,
    Buffer,
    Scalar,
    check_arguments,
    check_range,
    launch_argument,
)
from qgpu.runtime.engine import Engine
from qgpu.runtime.engines import make_engine
from qgpu.runtime.launch import MAX_TOKENS, Outcome, run
from qgpu.runtime.programs import SUFFIX, choose_kernel, open_program
from qgpu.runtime.vector import run_vector
from qgpu.toolchain.compile import LANGUAGES, CompileOptions, compile_source

if TYPE_CHECKING:
    from qgpu.runtime.verify import Verifier

Size = int | Sequence[int]


class FaultError(RuntimeError):
    """A launch that stopped with a fault."""

    def __init__(self, fault: Fault) -> None:
        place = f"{fault.line.file}:{fault.line.line}: " if fault.line.line else ""
        what = f" ({fault.message})" if fault.message else ""
        super().__init__(
            f"{place}{fault.kind}{what} in thread {fault.thread} of block {fault.block or 'unknown'}"
        )
        self.fault = fault


def compile(
    source: str | os.PathLike[str],
    kernel: str | None = None,
    machine: str | MachineDescription = "default",
    backend: str = "engine",
    language: str = "cu",
    **engine_options: Any,
) -> CompiledKernel:
    """Compile a kernel, or take it from a `.qbin`.

    Args:
        source: a path (with one of the toolchain's suffixes or `.qbin`), or the text of a source.
        kernel: its plain or full name; None if there is one alone.
        machine: what to compile for: a built-in name, a description's file, or a description.
        backend: `engine`, `weights`, `reference`, `verify` (the model checks the reference's tokens in
            chunks), or `vector`, which runs all lanes at once, without tokens.
        language: of a text: `cu`, `ptx` or `ir`.
        engine_options: `model`, `dtype`, `device`, as in `make_engine`; `chunk` for `verify`.

    Raises:
        DiagnosticError: the source is at fault.
        DescriptionError: there is no such machine.
    """
    described = machine if isinstance(machine, MachineDescription) else load_description(machine)
    if _is_path(source):
        program = open_program(source, described, kernel)
    else:
        options = CompileOptions(kernels=None if kernel is None else (kernel,))
        program = compile_source(str(source), f"<{language}>", language, described, options)
    return CompiledKernel(program, choose_kernel(program, kernel), backend, engine_options)


def _is_path(source: str | os.PathLike[str]) -> bool:
    if not isinstance(source, str):
        return True
    suffixes = (SUFFIX, *(f".{language}" for language in LANGUAGES))
    return "\n" not in source and Path(source).suffix in suffixes


class CompiledKernel:
    """A kernel that numpy arrays can be given to.

    Attributes:
        program, kernel: its machine code.
    """

    def __init__(self, program: Program, kernel: Kernel, backend: str, options: dict[str, Any]) -> None:
        self.program = program
        self.kernel = kernel
        self._backend = backend
        self._options = options
        self._engine: Engine | None = None
        self._verifier: Verifier | None = None

    def __getitem__(self, sizes: tuple[Size, Size] | tuple[Size, Size, int]) -> ConfiguredKernel:
        """`kernel[grid, block]` or `kernel[grid, block, shared_bytes]`; sizes are numbers or (x, y, z)."""
        grid, block, *shared = sizes
        return ConfiguredKernel(self, _dim3(grid), _dim3(block), shared[0] if shared else 0)

    def run(self, launch: Launch, check: bool, limit: int) -> Outcome:
        """Run a launch on the back end."""
        if self._backend == "vector":
            if check:
                raise ArgumentError("backend 'vector' has no tokens to check")
            return run_vector(launch, limit)
        if self._backend == "verify":
            return self._verify(launch, limit)
        return run(launch, self.engine(), check, limit)

    def _verify(self, launch: Launch, limit: int) -> Outcome:
        from qgpu.runtime.verify import open_verifier, verify

        if self._verifier is None:
            self._verifier = open_verifier(self.program.machine, **self._options)
        return verify(launch, self._verifier, limit).outcome

    def engine(self) -> Engine:
        """The engine that runs it, made at the first launch."""
        if self._engine is None:
            self._engine = make_engine(self._backend, self.program.machine, **self._options)
        return self._engine


def _dim3(size: Size) -> Dim3:
    numbers = [size] if isinstance(size, int) else [operator.index(number) for number in size]
    if not 1 <= len(numbers) <= 3:
        raise ArgumentError(f"{size} is not x, (x, y) or (x, y, z)")
    x, y, z = [*numbers, 1, 1][:3]
    return x, y, z


class ConfiguredKernel:
    """A kernel with its grid, block and shared memory."""

    def __init__(self, compiled: CompiledKernel, grid: Dim3, block: Dim3, shared_bytes: int) -> None:
        self._compiled = compiled
        self._grid = grid
        self._block = block
        self._shared_bytes = shared_bytes

    def __call__(self, *arguments: Any, check: bool = False, limit: int = MAX_TOKENS) -> Outcome:
        """Launch on numpy arrays of integers, which are written in place, and on numbers.

        What device code prints goes to stdout when the launch has ended.

        Raises:
            ArgumentError: an argument does not fit its parameter.
            LaunchError: the launch does not fit the kernel or the machine.
            FaultError: the launch stopped with a fault; arrays are as they were.
            DifferenceError: with `check`, a token or a buffer is not the reference's.
            EngineError, CheckpointError: see `make_engine`.
        """
        kernel, machine = self._compiled.kernel, self._compiled.program.machine
        given = [_argument(kernel, number, value) for number, value in enumerate(arguments)]
        check_arguments(kernel, given)
        contents = [launch_argument(argument) for argument in given]
        launch = build_launch(machine, kernel, self._grid, self._block, contents, self._shared_bytes)
        outcome = self._compiled.run(launch, check, limit)
        print(outcome.output, end="")
        if outcome.fault is not None:
            raise FaultError(outcome.fault)
        for array, before, after in zip(arguments, contents, outcome.buffers, strict=True):
            if after is not None and after != before:
                array[...] = np.frombuffer(after, array.dtype.newbyteorder("<")).reshape(array.shape)
        return outcome


def _argument(kernel: Kernel, number: int, value: Any) -> Argument:
    if isinstance(value, np.ndarray):
        kind = f"{value.dtype.kind}{8 * value.dtype.itemsize}"
        if kind not in DTYPES:
            raise ArgumentError(f"argument {number + 1} is an array of {value.dtype}, not of integers")
        return Buffer(kind, np.ascontiguousarray(value, DTYPES[kind]).reshape(-1))
    try:
        scalar = operator.index(value)
    except TypeError:
        raise ArgumentError(f"argument {number + 1} is neither a numpy array nor a whole number") from None
    parameters = kernel.parameters
    return _scalar(scalar, parameters[number]) if number < len(parameters) else Scalar("i64", 0)


def _scalar(value: int, parameter: Parameter) -> Scalar:
    """A number at its parameter's width: signed if it is negative, else unsigned, whatever the type says."""
    if parameter.pointer:
        return Scalar("i32", 0)
    kind = f"{'i' if value < 0 else 'u'}{SCALAR_BITS[parameter.type]}"
    check_range(value, kind)
    return Scalar(kind, value)
