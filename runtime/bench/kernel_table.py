"""Kernels x back ends: what a launch costs, and how fast each back end runs it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from qgpu.backends.machine.description import MachineDescription
from qgpu.runtime.bench.cells import Plan, Speed, build, measure
from qgpu.runtime.bench.checkpoint_sizes import CheckpointSizes, checkpoint_sizes
from qgpu.runtime.bench.instructions import executed_instructions
from qgpu.runtime.bench.isolate import isolated
from qgpu.runtime.bench.report import Section, Table, count, megabytes, rate, transposed
from qgpu.runtime.bench.workloads import workload
from qgpu.runtime.checkpoints import built_checkpoint
from qgpu.runtime.engines import FAST_ENGINE

STOCK = "weights"
"""The back end that the others are compared with: the stock model decodes token by token."""

VERIFY = "verify"

TEXT = """\
Launches of kernels of `examples/`, each back end in a process of its own, one launch after another, torch
on {threads} thread(s). Tokens/s are generated tokens over the time from the end of the prompt to the last
of them, the median of launches after one that warms up; every launch leaves in memory what numpy says.
The stock model (`weights`) decodes at most {decoded} tokens, each compared with the reference's; `verify`
includes the reference's proposal. PTX instructions are those of NVRTC's output, before any pass of this
compiler, each counted once for every thread that executes it (an instruction whose guard is off is not
executed). Memory is the most that the process held, Python and libraries included."""


@dataclass(frozen=True)
class Results:
    """All that was measured; speeds by kernel/size and back end."""

    instructions: dict[str, int]
    speeds: dict[tuple[str, str], Speed | str]
    sizes: CheckpointSizes | None

    @property
    def names(self) -> list[str]:
        """The launches, as kernel/size."""
        return list(self.instructions)

    @property
    def backends(self) -> list[str]:
        return list(dict.fromkeys(backend for _, backend in self.speeds))

    def speed(self, name: str, backend: str) -> Speed | None:
        """What was measured of a cell, None where it could not be."""
        found = self.speeds.get((name, backend))
        return found if isinstance(found, Speed) else None

    def tokens_per_second(self, name: str, backend: str) -> float | None:
        speed = self.speed(name, backend)
        return None if speed is None else speed.tokens_per_second

    def instructions_per_second(self, name: str, backend: str) -> float | None:
        speed = self.speed(name, backend)
        return None if speed is None else speed.launches_per_second * self.instructions[name]

    def mean(self, of: Callable[[str, str], float | None], backend: str) -> float | None:
        """The geometric mean over the launches that each back end ran; None where there are none."""
        common = [name for name in self.names if all(of(name, other) for other in self.backends)]
        return statistics.geometric_mean(of(name, backend) or 1.0 for name in common) if common else None


def measure_kernels(
    machine: MachineDescription,
    sizes: Mapping[str, int],
    backends: Sequence[str],
    *,
    seconds: float = 1.0,
    decoded: int = 100,
    threads: int = 1,
    told: Callable[[str], object] = lambda text: None,
) -> Section:
    """Measure launches of kernels (sizes by name) on back ends; `told` is what is done at the moment.

    Raises:
        DifferenceError: a launch leaves something else than it should.
        DiagnosticError: a kernel does not compile.
    """
    told(f"checkpoint of '{machine.name}'")
    problem = isolated(build, machine)
    results = Results({}, {}, None if problem else checkpoint_sizes(built_checkpoint(machine)))
    for pair in sizes.items():
        results.instructions[workload(*pair).name] = executed_instructions(workload(*pair))
    for backend in backends:
        told(backend)
        plan = Plan(backend, machine, tuple(sizes.items()), seconds, decoded, threads)
        results.speeds.update({(name, backend): found for name, found in isolated(measure, plan).items()})
    return Section(
        key="kernels",
        heading=f"Kernels and back ends, machine `{machine.name}`",
        text=TEXT.format(threads=threads, decoded=decoded),
        tables=list(_tables(results)),
        data=_data(results),
        findings=_findings(results),
    )


def _tables(results: Results):
    yield _costs(results)
    yield _per_backend("Generated tokens a second", results, results.tokens_per_second)
    yield _per_backend("Executed PTX instructions a second", results, results.instructions_per_second)
    if STOCK in results.backends:
        yield _per_backend("Times as fast as the stock model decodes, in this run", results, _ratio(results))
    yield _resources(results)
    if results.sizes is not None:
        yield checkpoint_table({"checkpoint": results.sizes})


def _costs(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    for name in results.names:
        speeds = [speed for backend in results.backends if (speed := results.speed(name, backend))]
        executed = results.instructions[name]
        if not speeds:
            problems = [text for (launch, _), text in results.speeds.items() if launch == name]
            rows.append((name, "-", "-", "-", count(executed), str(problems[0]) if problems else "-"))
            continue
        tokens = speeds[0].tokens
        layers = results.sizes.layers if results.sizes else None
        passes = None if layers is None else tokens * layers
        prompt = max(speed.prompt_tokens for speed in speeds)
        costs = (count(prompt or None), count(tokens), count(passes), count(executed))
        rows.append((name, *costs, f"{executed / tokens:.2f}"))
    columns = ("launch", "prompt tokens", "generated tokens", "layer passes")
    return Table("What a launch costs", (*columns, "PTX instructions", "PTX instructions a token"), rows)


def _per_backend(title: str, results: Results, of: Callable[[str, str], float | None]) -> Table:
    table = transposed(
        title, "launch", results.names, results.backends, lambda name, backend: rate(of(name, backend))
    )
    means = (rate(results.mean(of, backend)) for backend in results.backends)
    table.rows.append(("geometric mean", *means))
    return table


def _ratio(results: Results) -> Callable[[str, str], float | None]:
    def ratio(name: str, backend: str) -> float | None:
        own, stock = (results.tokens_per_second(name, which) for which in (backend, STOCK))
        return own / stock if own and stock else None

    return ratio


def _resources(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    for backend in results.backends:
        speeds = [speed for name in results.names if (speed := results.speed(name, backend))]
        if speeds:
            peaks = [speed.peak for speed in speeds if speed.peak is not None]
            start = f"{statistics.median(speed.start for speed in speeds):.2f} s"
            rows.append((backend, start, megabytes(max(peaks, default=None))))
    return Table("What a back end takes", ("back end", "start", "peak memory"), rows)


def checkpoint_table(sizes: Mapping[str, CheckpointSizes]) -> Table:
    """The sizes of checkpoints, by what each is called."""
    columns = ("layers", "hidden", "vocabulary", "numbers", "non-zeros", "share", "file")
    rows = [
        (
            name,
            *map(count, (s.layers, s.hidden, s.vocabulary, s.numbers, s.nonzeros)),
            f"{100 * s.nonzeros / s.numbers:.2f}%",
            megabytes(s.bytes),
        )
        for name, s in sizes.items()
    ]
    return Table("Size of the checkpoint, float32", ("", *columns), rows)


def _findings(results: Results) -> list[str]:
    """What the model's fast ways come to, beside its decoding."""
    findings: list[str] = []
    for backend in results.backends:
        ratio = results.mean(_ratio(results), backend)
        if ratio is not None and backend in (FAST_ENGINE, VERIFY):
            tokens = rate(results.mean(results.tokens_per_second, backend))
            executed = rate(results.mean(results.instructions_per_second, backend))
            means = f"{tokens} tokens/s and {executed} PTX instructions/s in the geometric mean"
            findings.append(f"`{backend}`: {means}, {rate(ratio)} times the stock model's decoding.")
    return findings


def _data(results: Results) -> dict[str, Any]:
    cells = [
        {
            "launch": name,
            "backend": backend,
            "ptx_instructions": results.instructions[name],
            "ptx_instructions_per_second": results.instructions_per_second(name, backend),
            **({"problem": speed} if isinstance(speed, str) else _speed(speed)),
        }
        for (name, backend), speed in results.speeds.items()
    ]
    means = {backend: results.mean(results.tokens_per_second, backend) for backend in results.backends}
    sizes = None if results.sizes is None else asdict(results.sizes)
    return {"cells": cells, "checkpoint": sizes, "tokens_per_second": means}


def _speed(speed: Speed) -> dict[str, Any]:
    passes = None if speed.layers is None else speed.tokens * speed.layers
    return {**asdict(speed), "layer_passes": passes, "tokens_per_second": speed.tokens_per_second}
