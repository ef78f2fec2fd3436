"""The stock model against the engine: the same argmax after every token, and the same final state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import cast

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.reference.machine import Machine
from qgpu.backends.reference.run import generate
from qgpu.runtime.bench.isolate import isolated
from qgpu.runtime.bench.report import Section, Table, count, rate
from qgpu.runtime.bench.workloads import workload
from qgpu.runtime.checkpoints import built_checkpoint
from qgpu.runtime.engine import Engine
from qgpu.runtime.engines import FAST_ENGINE, make_engine
from qgpu.runtime.launch import DifferenceError
from qgpu.runtime.states import COUNTER_TOLERANCE, StateDifference, StatefulEngine, compare_states

TEXT = """\
Tokens of launches ({names}; prompts, and what is generated), one sequence a launch, given to the stock
model and to the engine, on machine `{machine}`. After each token the argmax of both is compared, and at
the end of each sequence, in float32, the recurrent state: equal to the bit, but that chunked prefill adds
the steps of a counter in another order. An entry of a counter's row may then be off by {bound:.1e} of
itself; a step is at least 1/{lanes} of it, and half a step would be too much. A bfloat16 checkpoint is
held against the float32 checkpoint's engine, at the tokens after which the machine says something: where
it leaves open what follows, logits may tie in different ways."""


@dataclass(frozen=True)
class Case:
    """One way to run the stock model.

    Attributes:
        tokens: how many to compare.
        chunk: tokens of a forward pass; 1 is decoding.
        threads: of torch.
    """

    dtype: str
    tokens: int
    chunk: int
    threads: int

    @property
    def name(self) -> str:
        how = "decode" if self.chunk == 1 else f"prefill, chunks of {self.chunk}"
        return f"{self.dtype}, {how}, {self.threads} thread{'s' * (self.threads > 1)}"


@dataclass(frozen=True)
class Agreement:
    """What came of a case.

    Attributes:
        case: what ran.
        compared: tokens after which the argmax was compared.
        differences: after how many it differed.
        first: the first difference in words, empty where there is none.
        states: heads whose final states were compared, of all sequences.
        counters: the heads that differ, all of them counters, with the largest relative difference.
        wrong: what differs that may not, in words.
        tokens_per_second: of the stock model.
    """

    case: Case
    compared: int
    differences: int
    first: str
    states: int
    counters: dict[str, float]
    wrong: str
    tokens_per_second: float


def default_cases(decoded: int = 2_000, prefilled: int = 20_000, others: int = 1_000) -> list[Case]:
    """Long runs by decode and by prefill, and short ones of every other kind."""
    chunks = (63, 64, 65, 128)
    return [
        Case("float32", decoded, 1, 1),
        Case("float32", prefilled, 512, 1),
        *(Case("float32", others, chunk, 1) for chunk in chunks),
        Case("float32", others, 1, 2),
        Case("float32", others, 64, 2),
        Case("bfloat16", others, 1, 1),
        *(Case("bfloat16", others, chunk, 1) for chunk in chunks),
        Case("bfloat16", others, 64, 2),
    ]


def agreement(
    machine: MachineDescription,
    cases: Sequence[Case],
    sizes: dict[str, int],
    told: Callable[[str], object] = lambda text: None,
) -> Section:
    """Compare the stock model with the engine.

    Args:
        sizes: the launches whose tokens are used, by kernel; again and again in order until there are enough.

    Raises:
        DifferenceError: they do not agree.
    """
    found: list[Agreement] = []
    for case in cases:
        told(case.name)
        found.append(isolated(compare, machine, case, sizes))
    wrong = [f"{f.case.name}: {f.first or f.wrong}" for f in found if f.differences or f.wrong]
    if wrong:
        raise DifferenceError(f"the stock model and the engine do not agree: {wrong[0]}")
    names = ", ".join(workload(*pair).name for pair in sizes.items())
    text = TEXT.format(names=names, machine=machine.name, bound=COUNTER_TOLERANCE, lanes=machine.lanes)
    return Section(
        key="agreement",
        heading="The stock model and the engine",
        text=text,
        tables=[_table(found)],
        data=[asdict(one) for one in found],
        findings=_findings(found),
    )


def sequences(machine: MachineDescription, sizes: dict[str, int]) -> Iterator[list[int]]:
    """The tokens of launches, prompt and generated, each a sequence; again and again."""
    while True:
        for kernel, size in sizes.items():
            launch = workload(kernel, size).launch(machine)
            reference = Machine(machine)
            token: int | None = None
            for incoming in launch.prompt:
                token = reference.step(incoming)
            yield [*launch.prompt, *generate(reference, token)]


def compare(machine: MachineDescription, case: Case, sizes: dict[str, int]) -> Agreement:
    """Run one case."""
    import torch

    from qgpu.runtime.stock import StockEngine

    torch.set_num_threads(case.threads)
    directory = built_checkpoint(machine)
    stock = StockEngine(built_checkpoint(machine, case.dtype), case.dtype)
    engine = cast("StatefulEngine", make_engine(FAST_ENGINE, machine, directory))
    names = vocabulary(machine)
    compared = states = differences = 0
    first = wrong = ""
    counters: dict[str, float] = {}
    seconds = 0.0
    given = sequences(machine, sizes)
    while compared < case.tokens:
        tokens = next(given)[: case.tokens - compared]
        begin = time.perf_counter()
        stock.begin()
        said = stock.prefill_argmax(tokens, case.chunk)
        seconds += time.perf_counter() - begin
        wanted = _one_by_one(engine, tokens)
        for place, (found, proper) in enumerate(zip(said, wanted, strict=True)):
            if found != proper:
                differences += 1
                pair = f"{names.name(found)}, the engine's is {names.name(proper)}"
                first = first or f"after token {place} of a sequence the stock model's argmax is {pair}"
        compared += len(tokens)
        if case.dtype == "float32":
            state = compare_states(directory, stock.recurrent_states(), engine.recurrent_states())
            states += state.heads
            wrong = wrong or _wrong(state, case)
            for head, off in state.differing.items():
                counters[str(head)] = max(off, counters.get(str(head), 0.0))
    return Agreement(case, compared, differences, first, states, counters, wrong, compared / seconds)


def _one_by_one(engine: Engine, tokens: Sequence[int]) -> list[int]:
    engine.begin()
    return [engine.feed((token,)) for token in tokens]


def _wrong(state: StateDifference, case: Case) -> str:
    """What differs that may not; decoding may differ nowhere."""
    if case.chunk == 1 and state.differing:
        return f"the states differ: {state}"
    try:
        state.refuse_beyond_counters()
    except DifferenceError as error:
        return str(error)
    return ""


def _table(found: Sequence[Agreement]) -> Table:
    rows = [
        (
            one.case.name,
            count(one.compared),
            count(one.differences),
            count(one.states) if one.states else "-",
            "; ".join(f"{head}: {off:.1e}" for head, off in one.counters.items()) or "none",
            rate(one.tokens_per_second),
        )
        for one in found
    ]
    columns = ("tokens", "argmax differs", "states of heads compared", "states that differ", "tokens/s")
    return Table("Stock model against engine", ("how the stock model runs", *columns), rows)


def _findings(found: Sequence[Agreement]) -> list[str]:
    off = max((max(one.counters.values(), default=0.0) for one in found), default=0.0)
    heads = sorted({head for one in found for head in one.counters})
    which = ", ".join(heads) or "no head"
    return [
        f"{sum(one.compared for one in found):,} tokens, the same argmax everywhere.",
        f"States that differ after chunked prefill: {which}, by at most {off:.1e} of an entry.",
    ]
