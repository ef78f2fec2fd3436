"""`qgpu coverage`: tables of what compiles."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from qgpu.backends.machine.description import BUILTIN, DescriptionError, load_description
from qgpu.runtime.coverage import Coverage, cover, source_files
from qgpu.toolchain.compile import CompileOptions
from qgpu.toolchain.cuda import CudaOptions
from qgpu.toolchain.diagnostics import failure, reporting


@click.command("coverage")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--machine",
    "machines",
    multiple=True,
    metavar="NAME|FILE",
    help=f"A machine to fit the kernels into (default: {', '.join(BUILTIN)}).",
)
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro.")
@click.option("-I", "include_dirs", multiple=True, metavar="DIR", help="Search a folder for headers.")
@click.option("--jobs", "-j", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def coverage_command(
    paths: tuple[str, ...],
    machines: tuple[str, ...],
    defines: tuple[str, ...],
    include_dirs: tuple[str, ...],
    jobs: int,
    as_json: bool,
) -> None:
    """Say how many kernels of source files parse, compile and fit, and what stops the rest.

    PATH is a .cu, .ptx, .ll, .bc or .ir file, or a folder that is searched for such files.
    """
    with reporting("qgpu"):
        try:
            described = [load_description(name) for name in machines or BUILTIN]
        except DescriptionError as error:
            raise failure(str(error)) from None
        files = source_files(paths)
        options = CompileOptions(cuda=CudaOptions(defines, tuple(map(Path, include_dirs))))
        coverage = _with_progress(files, described, options, jobs)
    click.echo(json.dumps(coverage.to_json()) if as_json else tables(coverage), nl=as_json)


def _with_progress(files, described, options: CompileOptions, jobs: int) -> Coverage:
    jobs = min(jobs, len(files))
    if not sys.stderr.isatty():
        return cover(files, described, options, jobs)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("compiling", total=len(files))
        return cover(files, described, options, jobs, lambda file: bars.advance(task))


def tables(coverage: Coverage) -> str:
    """The counts, what stops the rest, and the kernels that are stopped, as text for people."""
    from rich.console import Console
    from rich.table import Table

    counts = Table("kernels that", "count", "share", title="Coverage")
    total = len(coverage.kernels)
    for what, count in coverage.counts.items():
        counts.add_row(what, str(count), f"{count / total:.1%}")
    reasons = Table("what stops them", "kernels", title="Reasons")
    for reason, count in coverage.reasons:
        reasons.add_row(reason, str(count))
    stopped = Table("kernel", "stage", "first error", title="Stopped")
    for kernel in coverage.kernels:
        if kernel.stop is not None:
            stopped.add_row(kernel.kernel or kernel.file, kernel.stop.stage, kernel.stop.message)
    console = Console(width=110, no_color=True)
    with console.capture() as captured:
        for table in (counts, reasons, stopped):
            if table.row_count:
                console.print(table)
    return captured.get()
