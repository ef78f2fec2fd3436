"""The pipeline: CUDA to PTX, PTX or LLVM IR to SIMT IR, passes, machine code."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qgpu.toolchain.cuda import COMPILERS, CudaOptions, Ptx
from qgpu.toolchain.cuda.at_source import at_the_source
from qgpu.toolchain.cuda.names import described, matching, parse_name
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source, emit, failure

if TYPE_CHECKING:
    from qgpu.backends.machine.description import MachineDescription
    from qgpu.backends.machine.program import Program
    from qgpu.ir import Module
    from qgpu.ir.passes import Observer, Pass

LANGUAGES = ("cu", "ptx", "ll", "bc", "ir")
_NAME = re.compile(r"[A-Za-z_]", re.ASCII)
_NUMBERED = re.compile(r"param_\d+(\.\d+)?$")


@dataclass(frozen=True)
class CompileOptions:
    """What steers a compilation besides the machine.

    `kernels` names the kernels to compile, each in full or as C++ has it: `add`, `ns::add`, `scan<int, 16>`;
    None means all.
    `observers` are told of every pass that has run; `verify_each` checks the IR after each, not only at the
    end. `keep` is given each intermediate form: the suffix of a file for it (`ptx`, `ir`, `opt.ir`), and its
    text. `max_registers` bounds the registers of a thread.
    """

    cuda: CudaOptions = field(default_factory=CudaOptions)
    cuda_compiler: str = "auto"
    kernels: tuple[str, ...] | None = None
    observers: "Sequence[Observer]" = ()
    verify_each: bool = False
    keep: Callable[[str, str], None] | None = None
    max_registers: int | None = None

    def kept(self, suffix: str, text: object) -> None:
        """Pass on an intermediate form, where someone wants it."""
        if self.keep is not None:
            self.keep(suffix, str(text))


def compile_source(
    text: str,
    filename: str,
    language: str,
    machine: "MachineDescription",
    options: CompileOptions | None = None,
) -> "Program":
    """Compile a text in one of LANGUAGES to a program for a machine.

    `filename` is the name diagnostics and source lines show. Warnings go to stderr. Raises DiagnosticError
    where the input is at fault or the machine cannot run it.
    """
    options = options or CompileOptions()
    source = Source(filename, text)
    with _source_lines(source):
        module = build_ir(source, language, options)
        options.kept("ir", module)
        optimise(module, language, machine, options)
        options.kept("opt.ir", module)
        return generate_program(module, machine, source, options.max_registers)


def compile_to_ir(text: str, filename: str, language: str, options: CompileOptions | None = None) -> "Module":
    """The IR of a text in one of LANGUAGES before any pass; the rest is as for compile_source."""
    source = Source(filename, text)
    with _source_lines(source):
        return build_ir(source, language, options or CompileOptions())


def build_ptx(source: Source, options: CompileOptions) -> str:
    """The PTX of a CUDA source; the compiler's warnings go to stderr."""
    return compile_cuda(source, options).text


def compile_cuda(source: Source, options: CompileOptions) -> Ptx:
    """What a CUDA compiler makes of a source; its warnings go to stderr."""
    asked = dataclasses.replace(options.cuda, kernels=options.kernels)
    compiled = COMPILERS[options.cuda_compiler].compile(source, asked)
    emit(compiled.warnings)
    options.kept("ptx", compiled.text)
    return compiled


def build_ir(source: Source, language: str, options: CompileOptions) -> "Module":
    """The IR of a source before any pass."""
    if language == "ir":
        return _parse_ir(source, options)
    if language == "ptx":
        return _lower(source, None, options)
    if language in ("ll", "bc"):
        return _lower_llvm(source, options)
    compiled = compile_cuda(source, options)
    ptx = Source(f"<PTX of {source.name}>", compiled.text)
    return _lower(ptx, source, options, compiled)


def kernel_names(source: Source, language: str, options: CompileOptions) -> list[str]:
    """The full names of a source's kernels."""
    if language == "cu":
        source, language = Source(source.name, build_ptx(source, options)), "ptx"
    if language == "ptx":
        from qgpu.toolchain.ptx.parser import parse

        return [entry.name for entry in parse(source).entries]
    return [function.name for function in build_ir(source, language, options).functions]


def passes_for(machine: "MachineDescription") -> "list[Pass]":
    """The default pipeline for a machine."""
    from qgpu.ir.passes import Target, default_pipeline

    return default_pipeline(Target(machine.lanes, machine.threads, machine.memory_words))


def optimise(module: "Module", language: str, machine: "MachineDescription", options: CompileOptions) -> None:
    """Run the default pipeline for a machine over a module that was made of a language, in place.

    What is written as IR is for warps of any size; all else is for CUDA's.
    """
    from qgpu.toolchain.warps import bound_to_a_warp

    if language != "ir":
        bound_to_a_warp(module, machine)
    run_passes(module, options, passes_for(machine))


def run_passes(module: "Module", options: CompileOptions, passes: "Sequence[Pass]") -> None:
    """Run passes over a module, in place."""
    from qgpu.ir.passes import PassError, PassManager

    manager = PassManager(passes, options.verify_each, options.observers)
    try:
        manager.run(module)
    except OSError as error:
        raise failure(f"cannot write '{error.filename}': {error.strerror}") from None
    except PassError as error:
        from qgpu.toolchain.codegen.refuse import refuse

        place = error.instruction.loc if error.instruction else None
        raise refuse(error.message, place, *error.notes) from error


def generate_program(
    module: "Module", machine: "MachineDescription", source: Source, max_registers: int | None = None
) -> "Program":
    """Machine code from IR that has gone through the passes."""
    from qgpu.toolchain.codegen import generate

    return dataclasses.replace(generate(module, machine, max_registers), source=source.name)


def _lower(
    ptx: Source, cuda: Source | None, options: CompileOptions, compiled: Ptx | None = None
) -> "Module":
    """The IR of PTX, which may be `compiled` from a CUDA source."""
    from qgpu.toolchain.ptx.lower import lower_module
    from qgpu.toolchain.ptx.parser import parse

    with _source_lines(ptx):
        tree = parse(ptx)
        names = [entry.name for entry in tree.entries]
        kernels = _chosen(names, options, cuda or ptx, compiled)
        with at_the_source(ptx, cuda):
            module = lower_module(tree, ptx, cuda=cuda, kernels=kernels)
    _name_parameters(module)
    return module


def _lower_llvm(source: Source, options: CompileOptions) -> "Module":
    """The IR of LLVM IR, given as text."""
    from qgpu.toolchain.llvm.lower import lower_module, read

    module = read(source)
    names = [kernel.name for kernel in module.kernels]
    return lower_module(module, source, _chosen(names, options, source))


def _name_parameters(module: "Module") -> None:
    """Call arguments, and the parts of structures (`s.4`), as the source does: PTX has `KERNEL_NAME`."""
    for function in module.functions:
        for argument in function.args:
            name = (argument.name or "").removeprefix(f"{function.name}_")
            if _NAME.match(name) and not _NUMBERED.match(name):
                argument.name = name


def _chosen(
    names: list[str], options: CompileOptions, source: Source, compiled: Ptx | None = None
) -> list[str]:
    """The full names of the kernels that the options ask for."""
    if not names and not (options.kernels and compiled and compiled.templates):
        templates = "" if compiled is None else ", ".join(compiled.templates)
        named = f"--kernel 'NAME<...>' picks an instance of a template: {templates}" if templates else ""
        hint = named or "a kernel is a __global__ function"
        raise failure("no kernel to compile", hint, file=source.name)
    if options.kernels is None:
        return names
    return [_the_one(wanted, names, source, compiled or Ptx("")) for wanted in options.kernels]


def _the_one(wanted: str, names: list[str], source: Source, compiled: Ptx) -> str:
    """The full name of the kernel that a name means."""
    asked = parse_name(wanted)
    found = matching(wanted, names) or [
        full for name, full in compiled.instances.items() if asked.arguments and asked.means(parse_name(name))
    ]
    if not found:
        known = ", ".join(filter(None, (described(names), *compiled.templates)))
        raise failure(f"no kernel '{wanted}'", f"there are: {known}", file=source.name)
    if len(found) > 1:
        candidates = f"candidates are: {described(found)}"
        raise failure(f"several kernels are called '{wanted}'", candidates, file=source.name)
    return found[0]


def _parse_ir(source: Source, options: CompileOptions) -> "Module":
    from qgpu.ir.parser import ParseError, parse_module
    from qgpu.ir.verifier import VerifyError, verify

    try:
        module = parse_module(source.text, source.name)
        verify(module)
    except ParseError as error:
        raise DiagnosticError(source.diagnostic(error.message, error.line, error.column)) from None
    except VerifyError as error:
        raise failure(str(error), file=source.name) from None
    names = [function.name for function in module.functions]
    chosen = _chosen(names, options, source)
    module.functions[:] = [function for function in module.functions if function.name in chosen]
    return module


@contextmanager
def _source_lines(source: Source) -> Iterator[None]:
    """Add the lines of a source to diagnostics that name only a place in it."""
    try:
        yield
    except DiagnosticError as error:
        raise DiagnosticError(*(_with_line(found, source) for found in error.diagnostics)) from error


def _with_line(diagnostic: Diagnostic, source: Source) -> Diagnostic:
    notes = tuple(_with_line(attached, source) for attached in diagnostic.notes)
    line = diagnostic.source_line
    if line is None and diagnostic.file == source.name:
        line = source.line(diagnostic.line)
    return dataclasses.replace(diagnostic, source_line=line, notes=notes)
