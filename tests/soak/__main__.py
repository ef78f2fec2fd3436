"""`python -m soak`: launches of examples and of random kernels on the engine, until N tokens were compared.

    python -m soak --tokens 10000000

Run it in the folder `tests` with `examples` on PYTHONPATH. Every token, and every buffer that is read back,
is compared with the reference interpreter's. It stops at the first mismatch and prints the command that shows
it again; where it was interrupted, it prints the command that goes on.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from qgpu.backends.machine.description import BUILTIN, DescriptionError, load_description
from qgpu.runtime.bench.document import provenance, write_sections
from qgpu.runtime.bench.report import Section, Table, count, rate
from qgpu.runtime.checkpoints import CheckpointError, built_checkpoint
from qgpu.runtime.engines import FAST_ENGINE
from soak.running import Done, run_unit
from soak.units import unit

AHEAD = 3
"""Units that wait for each process, so that none is idle."""

TEXT = """\
Kernels of `examples/`, first as their tables launch them, then with the elements of their arrays in other
orders, and the random kernels of `tests/fuzzing` on random arguments, in turns, on the engine
(`{engine}`), in {jobs} processes. Every generated token is compared with the reference interpreter's, and
every word that READ gives back."""


@dataclass
class Tally:
    """What a soak has come to, by machine.

    Attributes:
        next: the first unit that is not done.
        seconds: how long it took.
    """

    next: int
    seconds: float = 0.0
    tokens: Counter[str] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)
    unfit: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """Tokens compared on all machines."""
        return self.tokens.total()

    def add(self, done: Done) -> None:
        """Count a unit, the units before it having been counted."""
        machine = done.unit.machine
        self.next = done.unit.number + 1
        self.tokens[machine] += done.tokens
        self.launches[machine] += done.launches
        (self.kernels if done.launches else self.unfit)[machine] += 1

    @staticmethod
    def read(file: Path, first: int) -> Tally:
        """What a file keeps; nothing where there is none."""
        if not file.exists():
            return Tally(first)
        kept = json.loads(file.read_text(encoding="utf-8"))
        counted = {name: Counter(kept[name]) for name in ("tokens", "launches", "kernels", "unfit")}
        return Tally(kept["next"], kept["seconds"], **counted)

    def write(self, file: Path) -> None:
        """Keep it in a file; one that is cut off leaves the file as it was."""
        written = file.with_suffix(".writing")
        written.write_text(json.dumps(vars(self)), encoding="utf-8")
        written.replace(file)


@click.command(context_settings={"show_default": True})
@click.option("--tokens", default=10_000_000, type=click.IntRange(1), help="Compare at least as many.")
@click.option("--machine", "machines", multiple=True, metavar="NAME|FILE", help="May be repeated.")
@click.option("--jobs", default=os.cpu_count() or 1, type=click.IntRange(1), help="Processes.")
@click.option("--first", default=0, type=click.IntRange(0), help="Unit to begin with.")
@click.option("--units", type=click.IntRange(1), help="Run as many units at most.")
@click.option("--kept", metavar="FILE", help="Keep in it what is done; one that is there is gone on with.")
@click.option("--write", "document", metavar="FILE", help="Put the figures into this document.")
def main(
    tokens: int,
    machines: tuple[str, ...],
    jobs: int,
    first: int,
    units: int | None,
    kept: str | None,
    document: str | None,
) -> None:
    """Compare the engine with the reference on many launches, and stop at the first mismatch."""
    chosen = machines or tuple(name for name in ("default", "seed") if name in BUILTIN)
    try:
        for name in chosen:
            built_checkpoint(load_description(name))
    except (CheckpointError, DescriptionError) as error:
        raise click.ClickException(str(error)) from error
    file = None if kept is None else Path(kept)
    tally = Tally(first) if file is None else Tally.read(file, first)
    numbers = itertools.count(tally.next) if units is None else range(tally.next, tally.next + units)
    wrong = _soak(iter(numbers), chosen, tokens, jobs, tally, file)
    if wrong is not None:
        click.echo(f"{wrong.unit.what} on machine {wrong.unit.machine}: {wrong.wrong}")
        click.echo(f"again: {_command(chosen, '--first', str(wrong.unit.number), '--units', '1')}")
        sys.exit(1)
    section = _section(tally, jobs)
    section.print(Console())
    if document is not None:
        write_sections(document, [section], provenance(shlex.join(["python", "-m", "soak", *sys.argv[1:]])))


def _command(machines: tuple[str, ...], *more: str) -> str:
    named = (part for name in machines for part in ("--machine", name))
    return shlex.join(["python", "-m", "soak", *named, *more])


def _soak(
    numbers: Iterator[int], machines: tuple[str, ...], tokens: int, jobs: int, tally: Tally, file: Path | None
) -> Done | None:
    """Run units until there are enough tokens; the first that is wrong, or None."""
    start = time.perf_counter() - tally.seconds
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task("tokens", total=tokens)
        try:
            for done in _results(numbers, machines, jobs):
                if done.wrong is not None:
                    return done
                tally.add(done)
                tally.seconds = time.perf_counter() - start
                if file is not None:
                    tally.write(file)
                bars.update(task, completed=tally.total, description=done.unit.what)
                if tally.total >= tokens:
                    return None
        except KeyboardInterrupt:
            rest = str(max(1, tokens - tally.total))
            more = _command(machines, "--tokens", rest, "--first", str(tally.next))
            click.echo(f"{count(tally.total)} tokens without a mismatch; to go on: {more}", err=True)
            sys.exit(130)
    return None


def _results(numbers: Iterator[int], machines: tuple[str, ...], jobs: int) -> Iterator[Done]:
    """What comes of the units, in order; those that wait are dropped when the caller has enough."""
    if jobs == 1:
        yield from (run_unit(unit(number, machines)) for number in numbers)
        return
    pool = ProcessPoolExecutor(jobs)
    waiting: deque[Future[Done]] = deque()
    try:
        for number in itertools.islice(numbers, AHEAD * jobs):
            waiting.append(pool.submit(run_unit, unit(number, machines)))
        while waiting:
            yield waiting.popleft().result()
            for number in itertools.islice(numbers, 1):
                waiting.append(pool.submit(run_unit, unit(number, machines)))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _section(tally: Tally, jobs: int) -> Section:
    rows = [
        (
            machine,
            *map(count, (tally.kernels[machine], tally.unfit[machine], tally.launches[machine])),
            count(tally.tokens[machine]),
        )
        for machine in tally.tokens
    ]
    columns = ("machine", "kernels", "that do not fit", "launches", "tokens")
    speed = f"{rate(tally.total / tally.seconds)} tokens/s with compiling and the reference"
    ran = f"{tally.total:,} tokens of {tally.launches.total():,} launches"
    finding = f"{ran} without a mismatch, {speed}; the next unit is {tally.next}."
    data = {"tokens": tally.total, "seconds": tally.seconds, "next": tally.next}
    text = TEXT.format(engine=FAST_ENGINE, jobs=jobs)
    return Section("soak", "Soak", text, [Table("What ran", columns, rows)], data, [finding])


if __name__ == "__main__":
    main()
