"""`qgpu conformance`: every kernel and instruction on every executor."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from qgpu.toolchain.diagnostics import failure, reporting

if TYPE_CHECKING:
    from qgpu.runtime.bench.report import Section
    from qgpu.runtime.conformance.case import Case

GROUPS = ("examples", "kernels", "instructions")
EXECUTORS = ("ir", "vector", "reference", "engine", "engine-seed", "verify", "weights")


class _Names(click.ParamType):
    """Names with commas between them."""

    name = "NAME[,NAME]..."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        return tuple(name.strip() for name in str(value).split(",") if name.strip())


@click.command("conformance")
@click.option(
    "--group", "groups", type=click.Choice(GROUPS), multiple=True, help="Only this group; may be repeated."
)
@click.option(
    "--kernels", type=_Names(), multiple=True, help="Only kernels or opcodes of these names; may be repeated."
)
@click.option(
    "--executors",
    type=_Names(),
    multiple=True,
    help=f"Only these, of {', '.join(EXECUTORS)}; may be repeated.",
)
@click.option("--jobs", "-j", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option(
    "--json", "json_file", metavar="FILE", help="Write every cell as one JSON object; - for stdout."
)
@click.option("--write", "document", metavar="FILE", help="Replace the groups' sections of a document.")
def conformance_command(
    groups: tuple[str, ...],
    kernels: tuple[tuple[str, ...], ...],
    executors: tuple[tuple[str, ...], ...],
    jobs: int,
    json_file: str | None,
    document: str | None,
) -> None:
    """Run the project's kernels and instruction tests on every executor, against their oracles.

    The column `hardware` has what examples/run_on_gpu.py has found. The exit status is 1 if anything fails.
    """
    names = [name for given in kernels for name in given]
    columns = [name for given in executors for name in given] or list(EXECUTORS)
    unknown = [name for name in columns if name not in EXECUTORS]
    if unknown:
        raise click.UsageError(f"no executor '{unknown[0]}'; there are {', '.join(EXECUTORS)}.")
    if document is not None and names:
        raise click.UsageError("--write is of whole sections: leave out --kernels.")
    with reporting("qgpu"):
        failed = _run(groups or GROUPS, names, columns, jobs, json_file, document)
        if failed:
            raise failure(f"{failed} of the cells fail")


def _run(
    groups: Sequence[str],
    names: Sequence[str],
    columns: Sequence[str],
    jobs: int,
    json_file: str | None,
    document: str | None,
) -> int:
    """Run, print and write; the number of cells that fail."""
    from qgpu.runtime.conformance.executors import EXECUTORS as KNOWN
    from qgpu.runtime.conformance.hardware import read_runs
    from qgpu.runtime.conformance.suite import load_cases
    from qgpu.runtime.conformance.table import chosen_cases, conform, plain_data, section

    runs = read_runs()
    cases = chosen_cases(load_cases(groups), names)
    with _telling(len(cases)) as told:
        cells = conform(cases, [KNOWN[name] for name in columns], runs, jobs, told)
    present = dict.fromkeys(case.group for case in cases)
    sections = [section(group, cases, cells, runs) for group in present]
    _print(sections, json_file, short=not names)
    if json_file is not None:
        from qgpu.toolchain.outputs import write_output

        write_output(json_file, json.dumps(plain_data(sections, runs), indent=1).encode() + b"\n")
    if document is not None:
        _write(sections, document)
    return sum(len(one.findings) for one in sections)


def _print(sections: Sequence[Section], json_file: str | None, short: bool) -> None:
    """Print the sums, and the rows as well where kernels were chosen; not beside JSON on stdout."""
    from dataclasses import replace

    from rich.console import Console

    if json_file == "-":
        return
    console = Console(width=None if sys.stdout.isatty() else 160)
    for one in sections:
        replace(one, tables=one.tables[:1] if short else one.tables[1:]).print(console)


def _write(sections: Sequence[Section], document: str) -> None:
    from qgpu.runtime.bench.document import provenance, write_sections
    from qgpu.runtime.conformance.table import HEAD

    origin = provenance(shlex.join(["qgpu", *sys.argv[1:]]))
    write_sections(document, list(sections), origin, HEAD, GROUPS)


@contextmanager
def _telling(total: int) -> Iterator[Callable[[Case], object]]:
    """Show on a terminal's stderr how far it is."""
    if not sys.stderr.isatty():
        yield lambda case: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("running", total=total)
        yield lambda case: bars.advance(task)
