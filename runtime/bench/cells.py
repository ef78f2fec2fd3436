"""How fast a back end runs launches; each back end is measured in a process of its own."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.host import Launch, LaunchError
from qgpu.backends.machine.verify import ProgramError
from qgpu.backends.reference.run import run_launch
from qgpu.runtime.bench.host import peak_bytes
from qgpu.runtime.bench.workloads import Workload, workload
from qgpu.runtime.checkpoints import CheckpointError
from qgpu.runtime.engines import FAST_ENGINE, make_engine
from qgpu.runtime.launch import DifferenceError, Outcome, run
from qgpu.toolchain.diagnostics import DiagnosticError

if TYPE_CHECKING:
    from qgpu.runtime.stock import StockEngine

REPEATS = 3
"""Launches that a median is taken of, at least."""


@dataclass(frozen=True)
class Plan:
    """What to measure of one back end.

    Attributes:
        backend: one of BACKENDS.
        sizes: the launches, by kernel.
        seconds: repeat a launch for as long, at least REPEATS times.
        decoded: tokens after which decoding by the stock model is cut off.
        threads: of torch.
    """

    backend: str
    machine: MachineDescription
    sizes: tuple[tuple[str, int], ...]
    seconds: float = 1.0
    decoded: int = 100
    threads: int = 1


@dataclass(frozen=True)
class Speed:
    """What was measured.

    Attributes:
        prompt_tokens, tokens: of the launch.
        measured: how many of the generated tokens the time is of.
        seconds: for these, the median of the launches.
        layers: of the engine, None where it has none.
        start: seconds to make the engine.
        peak: bytes of memory that the process has held at most, so far.
    """

    prompt_tokens: int
    tokens: int
    measured: int
    seconds: float
    layers: int | None
    start: float = 0.0
    peak: int | None = None

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens a second."""
        return self.measured / self.seconds

    @property
    def launches_per_second(self) -> float:
        """How often the generated part of the launch could run in a second."""
        return self.tokens_per_second / self.tokens


Measure = Callable[[Workload, Launch], Speed]


def measure(plan: Plan) -> dict[str, Speed | str]:
    """Measure the launches of a plan; a text where one does not fit the machine, or the machine its model.

    Raises:
        DifferenceError: a launch leaves something else in memory than numpy says, or a token is wrong.
    """
    works = [workload(*pair) for pair in plan.sizes]
    try:
        begin = time.perf_counter()
        run_one = BACKENDS[plan.backend](plan)
        start = time.perf_counter() - begin
    except CheckpointError as error:
        return {work.name: str(error) for work in works}
    return {work.name: _measured(work, plan.machine, run_one, start) for work in works}


def _measured(work: Workload, machine: MachineDescription, run_one: Measure, start: float) -> Speed | str:
    try:
        return replace(run_one(work, work.launch(machine)), start=start, peak=peak_bytes())
    except (LaunchError, ProgramError) as error:
        return str(error)
    except DiagnosticError as error:
        return error.diagnostics[0].message


def _vector(plan: Plan) -> Measure:
    from qgpu.runtime.vector import run_vector

    return lambda work, launch: _repeated(plan, work, lambda: run_vector(launch))


def _engine(plan: Plan) -> Measure:
    engine = make_engine(plan.backend, plan.machine)
    return lambda work, launch: _repeated(plan, work, lambda: run(launch, engine))


def _repeated(plan: Plan, work: Workload, once: Callable[[], Outcome]) -> Speed:
    """Launch once to warm up, then again and again; every launch must leave what it should."""
    first = _checked(work, once())
    times: list[float] = []
    while len(times) < REPEATS or sum(times) < plan.seconds:
        times.append(_checked(work, once()).seconds)
    prompt = len(first.launch.prompt)
    return Speed(prompt, first.tokens, first.tokens, statistics.median(times), first.layers)


def _checked(work: Workload, outcome: Outcome) -> Outcome:
    if outcome.fault is not None or not work.is_right(outcome.buffers):
        raise DifferenceError(f"{work.name} leaves something else in memory than numpy says")
    return outcome


def _stock(plan: Plan) -> StockEngine:
    import torch

    from qgpu.runtime.stock import StockEngine

    torch.set_num_threads(plan.threads)
    model = make_engine("weights", plan.machine)
    assert isinstance(model, StockEngine)
    return model


def _weights(plan: Plan) -> Measure:
    """Decode the first tokens of the launch, each compared with the reference's."""
    model = _stock(plan)

    def decode(work: Workload, launch: Launch) -> Speed:
        expected = run_launch(launch).generated
        wanted = expected[: plan.decoded]
        model.begin()
        token = model.feed(launch.prompt)
        begin = time.perf_counter()
        for number, proper in enumerate(wanted):
            if token != proper:
                raise DifferenceError(f"{work.name}: generated token {number} of the stock model is wrong")
            token = model.feed((token,))
        seconds = time.perf_counter() - begin
        return Speed(len(launch.prompt), len(expected), len(wanted), seconds, model.layers)

    return decode


def _verify(plan: Plan) -> Measure:
    """Check the launch once; the time is that of the proposal and of the generated tokens' forward passes."""
    from qgpu.runtime.verify import Verifier, verify

    verifier = Verifier(_stock(plan))

    def check(work: Workload, launch: Launch) -> Speed:
        found = verify(launch, verifier)
        outcome = _checked(work, found.outcome)
        seconds = found.reference_seconds + outcome.seconds
        return Speed(len(launch.prompt), outcome.tokens, outcome.tokens, seconds, outcome.layers)

    return check


BACKENDS: dict[str, Callable[[Plan], Measure]] = {
    "reference": _engine,
    "vector": _vector,
    FAST_ENGINE: _engine,
    "weights": _weights,
    "verify": _verify,
}
"""What makes a back end and measures launches on it."""


def build(machine: MachineDescription) -> str | None:
    """Build a machine's checkpoint and what the engine keeps of it where the cache has none; say why not.

    So that what starts afterwards starts from the cache, and its memory is not that of building.
    """
    try:
        make_engine(FAST_ENGINE, machine)
    except CheckpointError as error:
        return str(error)
    return None
