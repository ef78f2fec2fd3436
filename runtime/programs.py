"""Open what a launch is asked for: a compiled program, or a source that is compiled first."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

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


def open_program(
    path: str | os.PathLike[str],
    machine: MachineDescription | None = None,
    kernel: str | None = None,
    options: CompileOptions | None = None,
) -> Program:
    """Return the program in a file: a `.qbin`, or a source in one of the toolchain's languages.

    Args:
        machine: what a source is compiled for (the default machine if None).
        kernel: the only kernel of a source that is needed, by its plain or full name.
        options: how a source is compiled.

    Raises:
        DiagnosticError: the file cannot be read, is damaged, or does not compile.
    """
    name, data = os.fspath(path), read_file(path)
    language = Path(path).suffix.removeprefix(".")
    if data.startswith(MAGIC) or language not in LANGUAGES:
        return _decoded(name, data)
    source = decoded(name, data, language)
    options = dataclasses.replace(options or CompileOptions(), kernels=None if kernel is None else (kernel,))
    return compile_source(source.text, source.name, language, machine or DEFAULT, options)


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
    name, data = os.fspath(path), read_file(path)
    language = Path(path).suffix.removeprefix(".")
    if data.startswith(MAGIC) or language not in LANGUAGES:
        raise failure("machine code, of which there is no IR", "give the source instead", file=name)
    options = dataclasses.replace(options or CompileOptions(), kernels=None if kernel is None else (kernel,))
    source = decoded(name, data, language)
    module = compile_to_ir(source.text, source.name, language, options)
    return _choose(module.functions, kernel)


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
