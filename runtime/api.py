"""Kernels from Python: `add = compile("add.cu"); add[grid, block](a, b, c, n)` on numpy arrays, in place."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from qgpu.backends.machine.description import MachineDescription, load_description
from qgpu.backends.machine.follow import Fault
from qgpu.backends.machine.host import Dim3, Launch, LaunchError, build_launch
from qgpu.backends.machine.program import Kernel, Parameter, Program
from qgpu.backends.machine.verify import SCALAR_BITS
from qgpu.ir import Function
from qgpu.runtime.arguments import (
    DTYPES,
    Argument,
    ArgumentError,
    Buffer,
    Scalar,
    check_arguments,
    check_range,
    launch_argument,
    parameter_text,
)
from qgpu.runtime.checkpoints import machine_difference
from qgpu.runtime.engine import Engine, EngineError
from qgpu.runtime.engines import BACKENDS, make_engine
from qgpu.runtime.launch import MAX_TOKENS, Outcome, run
from qgpu.runtime.programs import (
    SUFFIX,
    SourceText,
    compile_kernel,
    compile_kernel_to_ir,
    compiled_for,
    open_ir,
    open_kernel,
)
from qgpu.runtime.report import Report, report_of
from qgpu.runtime.results import fault_diagnostic
from qgpu.runtime.vector import run_vector
from qgpu.toolchain.compile import LANGUAGES
from qgpu.toolchain.cuda.names import readable
from qgpu.toolchain.diagnostics import Diagnostic, Source, failure

if TYPE_CHECKING:
    from qgpu.runtime.verify import Verifier

Size = int | Sequence[int]


class FaultError(RuntimeError):
    """A launch that stopped with a fault.

    Attributes:
        fault: what stopped it, and where.
        diagnostic: the same with the source line, as `qgpu run` prints it.
    """

    def __init__(self, fault: Fault, diagnostic: Diagnostic | None = None) -> None:
        place = f"{fault.line.file}:{fault.line.line}: " if fault.line.line else ""
        what = f" ({fault.message})" if fault.message else ""
        super().__init__(
            f"{place}{fault.kind}{what} in thread {fault.thread} of block {fault.block or 'unknown'}"
        )
        self.fault = fault
        self.diagnostic = diagnostic or fault_diagnostic(fault).diagnostics[0]


def compile(
    source: str | os.PathLike[str],
    kernel: str | None = None,
    machine: str | MachineDescription | None = None,
    backend: str = "engine",
    language: str = "cu",
    **engine_options: Any,
) -> CompiledKernel:
    """Compile a kernel, or take it from a `.qbin`.

    Args:
        source: a path (with one of the toolchain's suffixes or `.qbin`), or the text of a source.
        kernel: its plain or full name; None if there is one alone.
        machine: what to compile for: a built-in name, a description's file, or a description; `default` if
            None. A `.qbin` is compiled already: another machine than its own is an error.
        backend: `engine`, `weights`, `reference`, `verify` (the model checks the reference's tokens in
            chunks), or `vector`, which runs all lanes at once, without tokens.
        language: of a text: `cu`, `ptx`, `ll` or `ir`.
        engine_options: `model`, `dtype`, `device`, as in `make_engine`; `chunk` for `verify`.

    Raises:
        DiagnosticError: the source is at fault, `diagnostics` says where; or a `.qbin` is not for `machine`.
        DescriptionError: there is no such machine.
        EngineError: there is no such back end.
    """
    _check_backend(backend)
    described = machine if isinstance(machine, MachineDescription) else load_description(machine or "default")
    if _is_one_line(source) and os.path.isdir(source):
        raise failure("a folder: qgpu run takes a baked checkpoint", file=os.fspath(source))
    if _is_path(source):
        program, chosen = open_kernel(source, described, kernel)
        difference = None if machine is None else machine_difference(program.machine, described)
        if difference is not None:
            raise failure(compiled_for(program, described, difference), file=os.fspath(source))
        return CompiledKernel(program, chosen, backend, engine_options, partial(open_ir, source, kernel))
    text = SourceText(str(source), f"<{language}>", language)
    program, chosen = compile_kernel(text, described, kernel)
    make_ir = partial(compile_kernel_to_ir, text, kernel)
    return CompiledKernel(program, chosen, backend, engine_options, make_ir, Source(text.name, text.text))


def _check_backend(backend: str) -> None:
    known = [name for name in BACKENDS if name != "ir"]
    if backend not in known:
        raise EngineError(f"no back end '{backend}': write {', '.join(known[:-1])} or {known[-1]}")


def _is_path(source: str | os.PathLike[str]) -> bool:
    if not isinstance(source, str):
        return True
    suffixes = (SUFFIX, *(f".{language}" for language in LANGUAGES))
    return _is_one_line(source) and Path(source).suffix in suffixes


def _is_one_line(source: str | os.PathLike[str]) -> bool:
    return "\n" not in os.fspath(source)


class CompiledKernel:
    """A kernel that numpy arrays can be given to.

    Attributes:
        program, kernel: its machine code.
    """

    def __init__(
        self,
        program: Program,
        kernel: Kernel,
        backend: str,
        options: dict[str, Any],
        make_ir: Callable[[], Function] | None = None,
        source: Source | None = None,
    ) -> None:
        """`make_ir` gives its IR, and `source` is its text where it is of no file."""
        self.program = program
        self.kernel = kernel
        self._make_ir = make_ir
        self._source = source
        self._backend = backend
        self._options = options
        self._engine: Engine | None = None
        self._verifier: Verifier | None = None

    def __repr__(self) -> str:
        machine = self.program.machine.name
        return f"<kernel '{readable(self.kernel.name)}' on machine '{machine}' by {self._backend}>"

    @functools.cached_property
    def ir(self) -> Function:
        """Its SIMT IR, as the front end gives it, before any pass; `print` shows it.

        Raises:
            DiagnosticError: it was opened from machine code, of which there is no IR.
        """
        if self._make_ir is None:
            raise failure("machine code, of which there is no IR", "give the source instead")
        return self._make_ir()

    @property
    def report(self) -> Report:
        """What it takes of its machine; `print` shows it."""
        return report_of(self.program, self.kernel)

    def __call__(self, *arguments: object) -> NoReturn:
        """Refuse a launch without sizes.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError("a launch needs its sizes: write kernel[grid, block](...)")

    def __getitem__(self, sizes: tuple[Size, Size] | tuple[Size, Size, int]) -> ConfiguredKernel:
        """`kernel[grid, block]` or `kernel[grid, block, shared_bytes]`; sizes are numbers or (x, y, z).

        Raises:
            ArgumentError: sizes that are none.
        """
        if not isinstance(sizes, tuple) or len(sizes) not in (2, 3):
            raise ArgumentError(f"[{sizes}] are no sizes: write kernel[grid, block] or [grid, block, shared]")
        grid, block, *shared = sizes
        return ConfiguredKernel(self, _dim3(grid), _dim3(block), _whole(shared[0]) if shared else 0)

    def fault_error(self, fault: Fault) -> FaultError:
        """The exception of a launch that stopped, with its source line."""
        error, place = FaultError(fault), fault.line
        if self._source is None or place.file != self._source.name or not place.line:
            return error
        found = error.diagnostic
        shown = self._source.diagnostic(found.message, place.line, place.column, notes=found.notes)
        return FaultError(fault, shown)

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
    numbers = list(size) if isinstance(size, list | tuple) else [size]
    if not 1 <= len(numbers) <= 3:
        raise ArgumentError(f"{size} is not x, (x, y) or (x, y, z)")
    x, y, z = [*map(_whole, numbers), 1, 1][:3]
    return x, y, z


def _whole(number: Any) -> int:
    try:
        return operator.index(number)
    except TypeError:
        advice = "; divide with // rather than /" if isinstance(number, float) else ""
        raise ArgumentError(f"{number!r} is no size: give a whole number{advice}") from None


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
        try:
            launch = build_launch(machine, kernel, self._grid, self._block, contents, self._shared_bytes)
        except LaunchError as error:
            raise LaunchError(readable(str(error))) from None
        outcome = self._compiled.run(launch, check, limit)
        print(outcome.output, end="")
        if outcome.fault is not None:
            raise self._compiled.fault_error(outcome.fault)
        changed = [
            (array, after)
            for array, before, after in zip(arguments, contents, outcome.buffers, strict=True)
            if after is not None and after != before
        ]
        _check_writable(arguments, [array for array, _ in changed])
        for array, after in changed:
            array[...] = np.frombuffer(after, array.dtype.newbyteorder("<")).reshape(array.shape)
        return outcome


def _check_writable(arguments: Sequence[Any], changed: Sequence[np.ndarray]) -> None:
    """Check that no array that the kernel wrote to is read-only, before any is written."""
    for number, array in enumerate(arguments, 1):
        if any(array is one for one in changed) and not array.flags.writeable:
            raise ArgumentError(f"argument {number} is read-only, and the kernel wrote to it: give .copy()")


def _argument(kernel: Kernel, number: int, value: Any) -> Argument:
    parameter = kernel.parameters[number] if number < len(kernel.parameters) else None
    if isinstance(value, np.ndarray):
        return _buffer(parameter, number, value)
    try:
        scalar = operator.index(value)
    except TypeError:
        raise ArgumentError(
            f"argument {number + 1} is neither a numpy array nor a whole number but a "
            f"{type(value).__name__}: {_advice(parameter, value)}"
        ) from None
    return _scalar(scalar, parameter) if parameter is not None else Scalar("i64", 0)


def _advice(parameter: Parameter | None, value: Any) -> str:
    """What to give in the place of something that is no argument."""
    if parameter is not None and parameter.pointer:
        return f"give np.array(..., np.{_dtype_name(parameter)}), which the launch writes to"
    return "give int(...)" if isinstance(value, float | np.floating) else "give a whole number"


def _dtype_name(parameter: Parameter) -> str:
    return str(DTYPES[parameter.type]) if parameter.type in DTYPES else "int32"


def _buffer(parameter: Parameter | None, number: int, value: np.ndarray) -> Buffer:
    kind = f"{value.dtype.kind}{8 * value.dtype.itemsize}"
    wanted = _dtype_name(parameter) if parameter is not None else "int32"
    if kind not in DTYPES:
        raise ArgumentError(
            f"argument {number + 1} is an array of {value.dtype}, not of integers: "
            f"give .astype(np.{wanted}), and keep that array for the results"
        )
    if parameter is not None and parameter.pointer and not _same_width(parameter, kind):
        raise ArgumentError(
            f"argument {number + 1} of the kernel is {kind}[{value.size}]; parameter "
            f"{parameter_text(parameter)} is wanted: give .astype(np.{wanted}), and keep that array for the "
            "results"
        )
    return Buffer(kind, np.ascontiguousarray(value, DTYPES[kind]).reshape(-1))


def _same_width(parameter: Parameter, kind: str) -> bool:
    return parameter.type == "void" or SCALAR_BITS[parameter.type] == SCALAR_BITS[kind]


def _scalar(value: int, parameter: Parameter) -> Scalar:
    """A number at its parameter's width: signed if it is negative, else unsigned, whatever the type says."""
    if parameter.pointer:
        return Scalar("i32", 0)
    kind = f"{'i' if value < 0 else 'u'}{SCALAR_BITS[parameter.type]}"
    check_range(value, kind)
    return Scalar(kind, value)
