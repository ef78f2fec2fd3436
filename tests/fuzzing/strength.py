"""How many planted miscompilations random kernels find, and after how many kernels."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fuzzing.cases import SHAPES
from fuzzing.executors import Case, Outcome, interpreted, meaning
from fuzzing.kernels import random_kernel
from fuzzing.plants import BEFORE_LINEARISATION, Plant
from qgpu.ir import Function, Module, print_function
from qgpu.ir.parser import parse_function
from qgpu.toolchain.compile import CompileOptions, passes_for, run_passes


@dataclass(frozen=True)
class Finding:
    """A plant, and the number of the first kernel that shows it (from 1), or None where none does."""

    plant: Plant
    kernels: int | None


def seeded_cases(first: int) -> Iterator[Case]:
    """An endless row of cases, the same for the same number."""
    for seed in range(first, first + 10**9):
        source = random.Random(seed)
        machine, grid, threads = SHAPES[seed % len(SHAPES)]
        function = random_kernel(source, threads, source.randint(3, 7))
        yield Case(print_function(function), machine, grid, threads, seed)


class Pipeline:
    """The passes over one kernel, from any of them on; what came before is kept."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.steps = passes_for(case.description)
        self.before = {"start": (0, case.text)}

    def from_stage(self, stage: str) -> tuple[int, Function]:
        """The number of the pass that a stage names, and the kernel before it."""
        if stage not in self.before:
            function = parse_function(self.case.text)
            for number, step in enumerate(self.steps):
                self.before.setdefault(step.name, (number, print_function(function)))
                step.run(function)
        number, text = self.before[stage]
        return number, parse_function(text)

    def with_plant(self, plant: Plant) -> Function | None:
        """The kernel after all passes, with a mistake among them; None where it has nothing to change."""
        number, function = self.from_stage(plant.stage)
        if not plant.run(function):
            return None
        last = [step.name for step in self.steps].index(BEFORE_LINEARISATION) if plant.apart else None
        run_passes(Module([function]), CompileOptions(), self.steps[number:last])
        return function


def strength(
    plants: Sequence[Plant], kernels: int, first: int = 0, found: Callable[[Finding], None] = lambda f: None
) -> list[Finding]:
    """Runs each of up to `kernels` kernels with every plant that has not been found yet."""
    waiting, findings = list(plants), {}
    for number, case in enumerate(seeded_cases(first), 1):
        if not waiting or number > kernels:
            break
        pipeline, expected = Pipeline(case), meaning(case)
        for plant in [plant for plant in waiting if _shows(plant, pipeline, expected)]:
            waiting.remove(plant)
            findings[plant] = Finding(plant, number)
            found(findings[plant])
    return [findings.get(plant, Finding(plant, None)) for plant in plants]


def _shows(plant: Plant, pipeline: Pipeline, expected: Outcome) -> bool:
    """Whether a kernel means something else with the mistake in it."""
    function = pipeline.with_plant(plant)
    return function is not None and interpreted(function, pipeline.case, plant.apart) != expected
