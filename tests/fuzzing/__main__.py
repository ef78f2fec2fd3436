"""`python -m fuzzing`: many random kernels, or how strong they are.

    python -m fuzzing run --kernels 2000     every executor on each of so many kernels
    python -m fuzzing model                  short ones in the weights as well
    python -m fuzzing strength               how many of the planted miscompilations they find
    python -m fuzzing mutate                 mutations of valid inputs, each a result or a diagnostic

Run it in the folder `tests`. A kernel on which executors disagree is shrunk and written to `fuzzing/found`,
whose files the tests run.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click
from hypothesis import HealthCheck, Phase, find, seed, settings
from hypothesis.errors import NoSuchExample
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from fuzzing.cases import FOUND, cases, small_case, write_case
from fuzzing.executors import Case, by_model, disagreement, meaning
from fuzzing.mutations import Verdict, judge, limit_memory
from fuzzing.plants import PLANTS
from fuzzing.strength import Finding, strength

BATCH = 50


@click.group()
def main() -> None:
    """Differential testing of the compiler by random kernels."""


def _search(first: int, kernels: int) -> tuple[Case, str] | None:
    """The smallest kernel found on which executors disagree, and how; None where all agree."""
    options = settings(
        max_examples=kernels,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    try:
        case = seed(first)(find)(cases(), lambda case: _wrong(case) is not None, settings=options)
    except NoSuchExample:
        return None
    return case, str(_wrong(case))


def _wrong(case: Case) -> str | None:
    """What executors disagree on, or what a crash says: a crash is a finding too."""
    try:
        return disagreement(case)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


@main.command()
@click.option("--kernels", default=2000, show_default=True, type=click.IntRange(1))
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Processes.")
@click.option("--seed", "first", default=0, show_default=True, type=click.IntRange(0))
def run(kernels: int, jobs: int, first: int) -> None:
    """Run random kernels on every executor, and shrink those on which they disagree."""
    batches = [min(BATCH, kernels - start) for start in range(0, kernels, BATCH)]
    seeds = range(first, first + len(batches))
    wrong = 0
    with ProcessPoolExecutor(jobs) as pool, Progress(console=Console(stderr=True)) as bars:
        task = bars.add_task("kernels", total=kernels)
        for count, result in zip(batches, pool.map(_search, seeds, batches), strict=True):
            bars.advance(task, count)
            if result is not None:
                wrong += 1
                path = write_case(result[0], FOUND, result[1])
                bars.console.print(f"{path}: {result[1]}")
    click.echo(f"{kernels} kernels, {wrong} batches with a disagreement")
    sys.exit(wrong > 0)


@main.command("model")
@click.option("--kernels", default=20, show_default=True, type=click.IntRange(1))
@click.option("--seed", "first", default=0, show_default=True, type=click.IntRange(0))
def model_command(kernels: int, first: int) -> None:
    """Run short random kernels on the weights too, by the engine, token for token."""
    done = wrong = 0
    number = first
    with Progress(console=Console(stderr=True)) as bars:
        task = bars.add_task("kernels", total=kernels)
        while done < kernels:
            case = small_case(number)
            number += 1
            outcomes = by_model(case)
            if not outcomes:
                continue
            done += 1
            bars.advance(task)
            if outcomes["engine"] != meaning(case):
                wrong += 1
                write_case(case, FOUND, "the model leaves something else")
    click.echo(f"{kernels} kernels in the weights, {wrong} wrong")
    sys.exit(wrong > 0)


@main.command("strength")
@click.option("--kernels", default=200, show_default=True, type=click.IntRange(1), help="At most.")
@click.option("--seed", "first", default=0, show_default=True, type=click.IntRange(0))
def strength_command(kernels: int, first: int) -> None:
    """Plant miscompilations, and count how many the kernels find."""
    with Progress(console=Console(stderr=True)) as bars:
        task = bars.add_task("plants found", total=len(PLANTS))
        findings = strength(PLANTS, kernels, first, lambda finding: bars.advance(task))
    Console(width=100).print(_table(findings))
    click.echo(f"{sum(f.kernels is not None for f in findings)} of {len(findings)} found")


@main.command()
@click.option("--mutations", default=10_000, show_default=True, type=click.IntRange(1))
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Processes.")
@click.option("--seed", "first", default=0, show_default=True, type=click.IntRange(0))
@click.option("--save", metavar="DIR", help="Write inputs that are not dealt with into a folder.")
def mutate(mutations: int, jobs: int, first: int, save: str | None) -> None:
    """Feed mutations of valid files to the commands: each has to give a result or a diagnostic."""
    batches = [min(BATCH, mutations - start) for start in range(0, mutations, BATCH)]
    seeds = range(first, first + len(batches))
    problems: list[Verdict] = []
    with (
        ProcessPoolExecutor(jobs, initializer=limit_memory) as pool,
        Progress(console=Console(stderr=True)) as bars,
    ):
        task = bars.add_task("mutations", total=mutations)
        for count, found in zip(batches, pool.map(judge, seeds, batches), strict=True):
            bars.advance(task, count)
            problems += found
            for verdict in found:
                bars.console.print(f"{verdict.name}: {verdict.problem}", markup=False)
    _save(problems, save)
    click.echo(f"{mutations} mutations, {len(problems)} without a result or a diagnostic")
    sys.exit(bool(problems))


def _save(problems: list[Verdict], folder: str | None) -> None:
    if folder is None:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, verdict in enumerate(problems):
        Path(folder, f"{number:03}-{verdict.name}").write_bytes(verdict.data)


def _table(findings: list[Finding]) -> Table:
    table = Table("planted", "found by kernel number")
    for finding in findings:
        table.add_row(finding.plant.title, str(finding.kernels or "not found"))
    return table


if __name__ == "__main__":
    main()
