"""Open what a launch is asked for: a compiled program, or a source that is compiled first."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from qgpu.backends.machine.description import DEFAULT, MachineDescription
from qgpu.backends.machine.program import Kernel, Program
from qgpu.backends.machine.qbin import MAGIC, QbinError, program_from_bytes
from qgpu.ir import Function
from qgpu.toolchain.compile import LANGUAGES, CompileOptions, compile_source, compile_to_ir
from qgpu.toolchain.cuda.names import described, matching
from qgpu.toolchain.diagnostics import failure
from qgpu.toolchain.sources import decoded

SUFFIX = ".qbin"
Named = TypeVar("Named", Kernel, Function)


class SourceText(NamedTuple):
    """A source: its text, the name that diagnostics show, and its language."""

    text: str
    name: str
    language: str


def open_program(path: str | os.PathLike[str]) -> Program:
    """Return the program in a file: a `.qbin`, or a source in one of the toolchain's languages, which is
    compiled for the default machine.

    Raises:
        DiagnosticError: the file cannot be read, is damaged, or does not compile.
    """
    found = _source(path)
    return compile_source(*found, DEFAULT) if isinstance(found, SourceText) else found


def open_kernel(
    path: str | os.PathLike[str],
    machine: MachineDescription | None = None,
    kernel: str | None = None,
    options: CompileOptions | None = None,
) -> tuple[Program, Kernel]:
    """Return the program in a file, and its kernel of a name, or its only one; see `open_program`.

    Args:
        machine: what a source is compiled for (the default machine if None).
        kernel: its plain or full name, or an instance with types that the source defines (`scan<word>`).
        options: how a source is compiled: that kernel alone.

    Raises:
        DiagnosticError: as there, or there is no such kernel, or several.
    """
    found = _source(path)
    if isinstance(found, Program):
        return found, choose_kernel(found, kernel)
    return compile_kernel(found, machine or DEFAULT, kernel, options)


def compiled_for(program: Program, machine: MachineDescription, difference: str) -> str:
    """That a program is compiled for another machine than one, from which its own differs as said."""
    return f"compiled for machine '{program.machine.name}', not for '{machine.name}': {difference}"


def compile_kernel(
    source: SourceText, machine: MachineDescription, kernel: str | None, options: CompileOptions | None = None
) -> tuple[Program, Kernel]:
    """Compile a kernel of a source; as `open_kernel`."""
    program = compile_source(*source, machine, _of_kernel(options, kernel))
    # The compiler knows which one a name means, by types that the kernel's full name does not show.
    return program, choose_kernel(program, None)


def _of_kernel(options: CompileOptions | None, kernel: str | None) -> CompileOptions:
    return dataclasses.replace(options or CompileOptions(), kernels=None if kernel is None else (kernel,))


def _source(path: str | os.PathLike[str]) -> SourceText | Program:
    """What a file holds."""
    name, data = os.fspath(path), read_file(path)
    language = Path(path).suffix.removeprefix(".")
    if data.startswith(MAGIC) or language not in LANGUAGES:
        return _decoded(name, data)
    return SourceText(decoded(name, data, language).text, name, language)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file.

    Raises:
        DiagnosticError: it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise failure(f"cannot read '{os.fspath(path)}': {error.strerror or error}") from None


def _decoded(name: str, data: bytes) -> Program:
    try:
        return program_from_bytes(data)
    except QbinError as error:
        raise failure(str(error), file=name) from None


def open_ir(
    path: str | os.PathLike[str], kernel: str | None = None, options: CompileOptions | None = None
) -> Function:
    """Return a kernel of a source as IR, before any pass; its only one where no name is given.

    Raises:
        DiagnosticError: the file cannot be read, has no IR, or is at fault, or there is no such kernel.
    """
    hint = "give the source instead"
    if Path(path).is_dir():
        raise failure("a folder: a checkpoint has no IR", hint, file=os.fspath(path))
    found = _source(path)
    if isinstance(found, Program):
        raise failure("machine code, of which there is no IR", hint, file=os.fspath(path))
    return compile_kernel_to_ir(found, kernel, options)


def compile_kernel_to_ir(
    source: SourceText, kernel: str | None, options: CompileOptions | None = None
) -> Function:
    """The IR of a kernel of a source; as `open_ir`."""
    return _choose(compile_to_ir(*source, _of_kernel(options, kernel)).functions, None)


def choose_kernel(program: Program, name: str | None) -> Kernel:
    """Return a program's kernel of that name, plain or mangled; its only one where no name is given.

    Raises:
        DiagnosticError: there is none of that name, or several.
    """
    return _choose(program.kernels, name)


def _choose(candidates: Sequence[Named], name: str | None) -> Named:
    kernels = {kernel.name: kernel for kernel in candidates}
    found = list(kernels) if name is None else matching(name, kernels)
    if len(found) == 1:
        return kernels[found[0]]
    known = described(list(kernels)) or "none"
    if name is not None and not found:
        raise failure(f"no kernel '{name}'", f"there are: {known}")
    what = "several kernels" if name is None else f"several kernels are called '{name}'"
    raise failure(f"{what}: choose one by its full name with --kernel", f"there are: {known}")
