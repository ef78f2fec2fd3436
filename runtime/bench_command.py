"""`qgpu bench`: measurements."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from qgpu.runtime.engines import FAST_ENGINE
from qgpu.toolchain.diagnostics import failure, reporting

if TYPE_CHECKING:
    from qgpu.runtime.bench.report import Section

KERNELS = ("vecadd", "dot", "matmul", "histogram", "collatz", "gcd")
MEASURED = ("reference", "vector", FAST_ENGINE, "weights", "verify")


@dataclasses.dataclass(frozen=True)
class _Wanted:
    """What a command line asks for."""

    machine: str
    kernels: Sequence[str]
    backends: Sequence[str]
    decoded: int
    threads: int
    quick: bool


@click.command("bench")
@click.option("--kernels", "table", is_flag=True, help="Kernels x back ends (the default).")
@click.option("--memory", is_flag=True, help="Growth with the words of memory, 1,024 to 65,536.")
@click.option("--problem", is_flag=True, help="Growth with the size of the problem.")
@click.option("--agreement", is_flag=True, help="The stock model against the engine, token for token.")
@click.option("--interpreters", is_flag=True, help="The IR interpreter beside numba's CUDA simulator.")
@click.option("--quick", is_flag=True, help="Small launches, few tokens: less than a minute.")
@click.option("--machine", default="default", show_default=True, metavar="NAME|FILE")
@click.option(
    "--kernel",
    "kernels",
    type=click.Choice(KERNELS),
    multiple=True,
    help="Only this kernel; may be repeated.",
)
@click.option(
    "--backend",
    "backends",
    type=click.Choice(MEASURED),
    multiple=True,
    help="Only this back end; may be repeated.",
)
@click.option(
    "--decode",
    "decoded",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="TOKENS",
    help="Where decoding by the stock model is cut off.",
)
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="Threads of torch.")
@click.option(
    "--json",
    "json_file",
    metavar="[FILE]",
    is_flag=False,
    flag_value="-",
    help="Write the figures as one JSON object, to stdout if no file is named.",
)
@click.option("--write", "document", metavar="FILE", help="Put the tables into a Markdown document.")
@click.option(
    "--plot", metavar="FILE", help="Draw tokens a second of each back end as SVG; wants the table of kernels."
)
def bench_command(
    table: bool,
    memory: bool,
    problem: bool,
    agreement: bool,
    interpreters: bool,
    quick: bool,
    machine: str,
    kernels: tuple[str, ...],
    backends: tuple[str, ...],
    decoded: int,
    threads: int,
    json_file: str | None,
    document: str | None,
    plot: str | None,
) -> None:
    """Measure how fast things are here, side by side with something known.

    Every figure is of a launch whose result is right: the command fails where one is not.
    """
    chosen = {
        "kernels": table or not (memory or problem or agreement or interpreters),
        "memory": memory,
        "problem": problem,
        "agreement": agreement,
        "interpreters": interpreters,
    }
    if plot and not chosen["kernels"]:
        raise click.UsageError("--plot draws the table of kernels: add --kernels.")
    wanted = _Wanted(machine, kernels, backends, 10 if quick else decoded, threads, quick)
    with reporting("qgpu"), _refusing():
        sections = list(_measured(chosen, wanted))
        _report(sections, json_file, document, plot)


@contextmanager
def _refusing() -> Iterator[None]:
    from qgpu.backends.machine.description import DescriptionError
    from qgpu.runtime.checkpoints import CheckpointError
    from qgpu.runtime.engine import EngineError
    from qgpu.runtime.launch import DifferenceError

    try:
        yield
    except (DescriptionError, CheckpointError, EngineError, DifferenceError) as error:
        raise failure(str(error)) from error


def _measured(chosen: dict[str, bool], wanted: _Wanted) -> Iterator[Section]:
    with _telling() as told:
        for key, is_wanted in chosen.items():
            if is_wanted:
                yield _MEASUREMENTS[key](wanted, told)


@contextmanager
def _telling() -> Iterator[Callable[[str], object]]:
    """Show on a terminal's stderr what is measured at the moment."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update


def _kernels(wanted: _Wanted, told: Callable[[str], object]) -> Section:
    from qgpu.backends.machine.description import load_description
    from qgpu.runtime.bench.kernel_table import measure_kernels
    from qgpu.runtime.bench.workloads import QUICK_SIZES, sizes_for

    machine = load_description(wanted.machine)
    sizes = QUICK_SIZES if wanted.quick and not wanted.kernels else sizes_for(machine)
    return measure_kernels(
        machine,
        _chosen(sizes, wanted.kernels),
        wanted.backends or MEASURED,
        seconds=0.2 if wanted.quick else 1.0,
        decoded=wanted.decoded,
        threads=wanted.threads,
        told=told,
    )


def _chosen(sizes: dict[str, Any], kernels: Sequence[str]) -> dict[str, Any]:
    return {kernel: size for kernel, size in sizes.items() if not kernels or kernel in kernels}


def _memory(wanted: _Wanted, told: Callable[[str], object]) -> Section:
    from qgpu.backends.machine.description import load_description
    from qgpu.runtime.bench.growth import MEMORY_WORDS, MEMORY_WORKLOADS, memory_growth

    words = MEMORY_WORDS[:2] if wanted.quick else MEMORY_WORDS
    machine = load_description(wanted.machine)
    return memory_growth(machine, words, _chosen(MEMORY_WORKLOADS, wanted.kernels), told=told)


def _problem(wanted: _Wanted, told: Callable[[str], object]) -> Section:
    from qgpu.backends.machine.description import load_description
    from qgpu.runtime.bench.growth import problem_growth
    from qgpu.runtime.bench.workloads import GROWING_SIZES

    sizes = _chosen(GROWING_SIZES, wanted.kernels)
    if wanted.quick:
        sizes = {kernel: numbers[:2] for kernel, numbers in sizes.items()}
    backends = wanted.backends or ("reference", "vector", FAST_ENGINE)
    return problem_growth(load_description(wanted.machine), sizes, backends, told=told)


def _agreement(wanted: _Wanted, told: Callable[[str], object]) -> Section:
    from qgpu.backends.machine.description import load_description
    from qgpu.runtime.bench.agreement import agreement, default_cases
    from qgpu.runtime.bench.workloads import QUICK_SIZES, sizes_for

    machine = load_description(wanted.machine)
    cases = default_cases(20, 400, 20) if wanted.quick else default_cases()
    sizes = _chosen(QUICK_SIZES if wanted.quick else sizes_for(machine), wanted.kernels)
    return agreement(machine, cases, sizes, told)


def _interpreters(wanted: _Wanted, told: Callable[[str], object]) -> Section:
    from qgpu.runtime.bench.interpreters import compare_interpreters, interpreters_section

    return interpreters_section(compare_interpreters())


_MEASUREMENTS: dict[str, Callable[[_Wanted, Callable[[str], object]], Section]] = {
    "kernels": _kernels,
    "memory": _memory,
    "problem": _problem,
    "agreement": _agreement,
    "interpreters": _interpreters,
}
"""What measures each section, by its key."""


def _report(sections: list[Section], json_file: str | None, document: str | None, plot: str | None) -> None:
    from rich.console import Console

    from qgpu.runtime.bench.document import provenance, write_sections
    from qgpu.toolchain.outputs import write_output

    origin = provenance(shlex.join(["qgpu", *sys.argv[1:]]))
    if json_file is None:
        for section in sections:
            section.print(Console())
    else:
        found = {section.key: section.data for section in sections}
        data = json.dumps({**dataclasses.asdict(origin), **found}, indent=1)
        write_output(json_file, data.encode() + b"\n")
    if document is not None:
        write_sections(document, sections, origin)
    if plot is not None:
        _draw(next(section for section in sections if section.key == "kernels"), plot)


def _draw(section: Section, file: str) -> None:
    from qgpu.runtime.bench.plot import bar_chart
    from qgpu.toolchain.outputs import write_output

    means = {name: mean for name, mean in section.data["tokens_per_second"].items() if mean}
    ordered = dict(sorted(means.items(), key=lambda pair: pair[1]))
    if not ordered:
        raise failure("no back end ran every launch: there is nothing to draw")
    chart = bar_chart("Generated tokens a second, geometric mean of the kernels", ordered, "tokens/s")
    write_output(file, chart.encode())
