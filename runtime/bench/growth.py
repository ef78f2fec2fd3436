"""How speed and size grow with the words of memory, and with the size of the problem."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qgpu.backends.machine.description import MachineDescription
from qgpu.runtime.bench.cells import Plan, Speed, build, measure
from qgpu.runtime.bench.checkpoint_sizes import CheckpointSizes, checkpoint_sizes
from qgpu.runtime.bench.instructions import executed_instructions
from qgpu.runtime.bench.isolate import isolated
from qgpu.runtime.bench.kernel_table import checkpoint_table
from qgpu.runtime.bench.report import Section, Table, count, megabytes, rate
from qgpu.runtime.bench.workloads import workload
from qgpu.runtime.checkpoints import built_checkpoint
from qgpu.runtime.engines import FAST_ENGINE

MEMORY_WORDS = (1024, 4096, 16384, 65536)
BASE_WORDS = 4096
"""The memory that larger ones are compared with."""

MEMORY_WORKLOADS = {"vecadd": 256, "matmul": 8, "collatz": 32}

MEMORY_TEXT = """\
The same launches ({names}) on `{backend}`, on machines that differ from `{machine}` in the words of
memory alone: what an engine pays for rows that a launch does not touch."""

PROBLEM_TEXT = """\
Launches of growing size on machine `{machine}`, as in the table of kernels."""

Told = Callable[[str], object]


def memory_growth(
    machine: MachineDescription,
    words: Sequence[int] = MEMORY_WORDS,
    workloads: Mapping[str, int] = MEMORY_WORKLOADS,
    seconds: float = 1.0,
    told: Told = lambda text: None,
) -> Section:
    """Measure the engine on machines that differ in the words of memory."""
    names = [workload(*pair).name for pair in workloads.items()]
    sizes: dict[str, CheckpointSizes] = {}
    speeds: dict[int, dict[str, Speed]] = {}
    problems: dict[int, str] = {}
    for number in words:
        grown = _with_memory(machine, number)
        told(f"checkpoint of {number} words of memory")
        problem = isolated(build, grown)
        if problem is not None:
            problems[number] = problem
            continue
        sizes[f"{number:,} words"] = checkpoint_sizes(built_checkpoint(grown))
        told(f"launches with {number} words of memory")
        found = isolated(measure, Plan(FAST_ENGINE, grown, tuple(workloads.items()), seconds))
        speeds[number] = {name: speed for name, speed in found.items() if isinstance(speed, Speed)}
    tables = [_memory_table(names, speeds, problems), checkpoint_table(sizes)]
    means = {number: mean for number, found in speeds.items() if (mean := _mean(found, names))}
    return Section(
        key="memory",
        heading="Growth with the words of memory",
        text=MEMORY_TEXT.format(names=", ".join(names), backend=FAST_ENGINE, machine=machine.name),
        tables=tables,
        data=_memory_data(speeds, problems, sizes),
        findings=_memory_findings(means),
    )


def _mean(found: Mapping[str, Speed], names: Sequence[str]) -> float | None:
    """The geometric mean of tokens a second, where every launch ran."""
    if set(found) != set(names):
        return None
    return statistics.geometric_mean(speed.tokens_per_second for speed in found.values())


def _memory_table(
    names: Sequence[str], speeds: Mapping[int, Mapping[str, Speed]], problems: Mapping[int, str]
) -> Table:
    base = _mean(speeds.get(BASE_WORDS, {}), names)
    rows: list[tuple[str, ...]] = []
    for number, found in speeds.items():
        mean = _mean(found, names)
        ratio = f"{mean / base:.3f}" if mean and base else "-"
        rates = (rate(found[name].tokens_per_second) if name in found else "-" for name in names)
        some = list(found.values())
        start = f"{statistics.median(s.start for s in some):.2f} s" if some else "-"
        peak = max((s.peak for s in some if s.peak is not None), default=None)
        rows.append((count(number), *rates, rate(mean), ratio, start, megabytes(peak)))
    width = len(names) + 4
    rows += [(count(number), problem, *["-"] * (width - 1)) for number, problem in problems.items()]
    ends = ("geometric mean", f"of {BASE_WORDS:,} words", "start", "peak memory")
    return Table("Generated tokens a second", ("words of memory", *names, *ends), rows)


def _memory_findings(means: Mapping[int, float]) -> list[str]:
    base, largest = means.get(BASE_WORDS), max(means, default=BASE_WORDS)
    if not base or largest == BASE_WORDS:
        return []
    change = 100 * (means[largest] / base - 1)
    return [f"{largest:,} words of memory change the speed of {BASE_WORDS:,} by {change:+.1f}%."]


def _memory_data(
    speeds: Mapping[int, Mapping[str, Speed]],
    problems: Mapping[int, str],
    sizes: Mapping[str, CheckpointSizes],
) -> dict[str, Any]:
    cells = [
        {"memory_words": number, "launch": name, **dataclasses.asdict(speed)}
        | {"tokens_per_second": speed.tokens_per_second}
        for number, found in speeds.items()
        for name, speed in found.items()
    ]
    checkpoints = {name: dataclasses.asdict(size) for name, size in sizes.items()}
    return {"cells": cells, "problems": dict(problems), "checkpoints": checkpoints}


def _with_memory(machine: MachineDescription, words: int) -> MachineDescription:
    """The machine with another memory; a larger one lies in heads of more rows, and in as many."""
    rows = machine.model.key_dim * max(1, words // machine.memory_words)
    shape = dataclasses.replace(machine.model, key_dim=rows)
    return dataclasses.replace(machine, name=f"{machine.name}-{words}", memory_words=words, model=shape)


def problem_growth(
    machine: MachineDescription,
    sizes: Mapping[str, Sequence[int]],
    backends: Sequence[str],
    seconds: float = 1.0,
    told: Told = lambda text: None,
) -> Section:
    """Measure launches of growing size."""
    layers = None if isolated(build, machine) else checkpoint_sizes(built_checkpoint(machine)).layers
    pairs = tuple((kernel, number) for kernel, numbers in sizes.items() for number in numbers)
    speeds: dict[str, dict[str, Speed | str]] = {}
    for backend in backends:
        told(backend)
        speeds[backend] = isolated(measure, Plan(backend, machine, pairs, seconds))
    rows: list[tuple[str, ...]] = []
    cells: list[dict[str, Any]] = []
    for pair in pairs:
        name, executed = workload(*pair).name, executed_instructions(workload(*pair))
        rows.append(_problem_row(name, executed, layers, [found[name] for found in speeds.values()]))
        cells += [_problem_cell(name, executed, backend, speeds[backend][name]) for backend in backends]
    columns = ("launch", "prompt tokens", "generated tokens", "layer passes", "PTX instructions")
    title = "Cost, and generated tokens a second of each back end"
    return Section(
        key="problem",
        heading="Growth with the size of the problem",
        text=PROBLEM_TEXT.format(machine=machine.name),
        tables=[Table(title, (*columns, *backends), rows)],
        data={"cells": cells},
    )


def _problem_row(
    name: str, executed: int, layers: int | None, speeds: Sequence[Speed | str]
) -> tuple[str, ...]:
    ran = [speed for speed in speeds if isinstance(speed, Speed)]
    if not ran:
        return (name, "does not fit", "-", "-", count(executed), *("-" for _ in speeds))
    tokens = ran[0].tokens
    prompt = max(speed.prompt_tokens for speed in ran)
    costs = (count(prompt), count(tokens), count(layers and tokens * layers), count(executed))
    return (name, *costs, *(rate(s.tokens_per_second) if isinstance(s, Speed) else "-" for s in speeds))


def _problem_cell(name: str, executed: int, backend: str, speed: Speed | str) -> dict[str, Any]:
    found = {"problem": speed} if isinstance(speed, str) else dataclasses.asdict(speed)
    rates = {} if isinstance(speed, str) else {"tokens_per_second": speed.tokens_per_second}
    return {"launch": name, "backend": backend, "ptx_instructions": executed, **found, **rates}
