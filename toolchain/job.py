"""One compilation as the command line of `qgpuc` asks for it, and what can be made of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from qgpu.toolchain.compile import (
    CompileOptions,
    build_ir,
    build_ptx,
    compile_source,
    kernel_names,
    passes_for,
    run_passes,
)
from qgpu.toolchain.cuda.command_line import dry_run, kernel_list
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source, failure
from qgpu.toolchain.optimise import SPLIT_MARK, split_source

if TYPE_CHECKING:
    from qgpu.backends.machine.description import MachineDescription
    from qgpu.backends.machine.program import Program
    from qgpu.ir import Module
    from qgpu.ir.passes import Pass


@dataclass(frozen=True)
class Job:
    """One compilation as the command line asks for it; `steps` are the passes where some were chosen."""

    source: Source
    language: str
    machine: str
    options: CompileOptions
    output: str | None
    verbose: bool
    steps: "list[Pass] | None" = None


def _emit_ptx(job: Job) -> bytes:
    if job.language not in ("cu", "ptx"):
        raise click.UsageError("PTX is made from CUDA alone.")
    return (job.source.text if job.language == "ptx" else build_ptx(job.source, job.options)).encode()


def _emit_ir(job: Job) -> bytes:
    return str(_module(job, job.steps or [])).encode()


def _emit_cfg(job: Job) -> bytes:
    """The graph before divergent branches become guards, where no passes were chosen."""
    from qgpu.toolchain.cfg_graph import graph_text

    default = passes_for(machine_named(job.machine))
    names = [step.name for step in default]
    steps = default[: names.index("linearize")] if job.steps is None else job.steps
    return graph_text(_module(job, steps)).encode()


def _module(job: Job, steps: "list[Pass]") -> "Module":
    module = build_ir(job.source, job.language, job.options)
    if steps and job.language != "ir":
        from qgpu.toolchain.warps import bound_to_a_warp

        bound_to_a_warp(module, machine_named(job.machine))
    if steps or job.options.observers:
        run_passes(module, job.options, steps)
    return module


def _emit_machine(job: Job) -> bytes:
    from qgpu.backends.machine.assembly import program_text

    return program_text(compile_job(job)).encode()


def _emit_qbin(job: Job) -> bytes:
    from qgpu.backends.machine.qbin import program_bytes

    return program_bytes(compile_job(job))


def _emit_kernels(job: Job) -> bytes:
    names = kernel_names(job.source, job.language, job.options)
    return kernel_list(job.source if job.language == "cu" else None, job.options.cuda, names).encode()


def _emit_commands(job: Job) -> bytes:
    """The commands go to stderr, as nvcc's do."""
    if job.language == "cu":
        asked = replace(job.options.cuda, kernels=job.options.kernels)
        click.echo(dry_run(job.source, asked, job.options.cuda_compiler), err=True)
    return b""


QUESTIONS: dict[str, Callable[[Job], bytes]] = {"kernels": _emit_kernels, "commands": _emit_commands}
"""What can be asked about a source, by name: the text of the answer."""
EMITTERS: dict[str, Callable[[Job], bytes]] = {
    "ptx": _emit_ptx,
    "ir": _emit_ir,
    "cfg": _emit_cfg,
    "machine": _emit_machine,
    "qbin": _emit_qbin,
}
"""What can be made, by the names that --emit takes."""


def compile_job(job: Job) -> "Program":
    """The machine code of a job; what it takes goes to stderr where the job is verbose."""
    machine = machine_named(job.machine)
    program = compile_source(job.source.text, job.source.name, job.language, machine, job.options)
    if job.options.keep is not None:
        from qgpu.backends.machine.assembly import program_text

        job.options.keep("qasm", program_text(program))
    if job.verbose:
        from qgpu.toolchain.report import report

        click.echo(report(program), err=True)
    return program


def machine_named(name: str) -> "MachineDescription":
    """A built-in machine, or that of a file; raises DiagnosticError where there is none."""
    from qgpu.backends.machine.description import DescriptionError, load_description

    try:
        return load_description(name)
    except DescriptionError as error:
        raise failure(str(error)) from None


def emit_parts(job: Job, emit: str) -> bytes:
    """The results of an input's parts, with the mark between them; errors are reported for all parts."""
    results: list[bytes] = []
    found: list[Diagnostic] = []
    for part in split_source(job.source):
        try:
            results.append(EMITTERS[emit](replace(job, source=part)))
        except DiagnosticError as error:
            found += error.diagnostics
    if found:
        raise DiagnosticError(*found)
    return f"{SPLIT_MARK}\n".encode().join(results)
