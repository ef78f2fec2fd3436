"""Verification: the reference proposes the tokens of a launch, the stock model checks them all in prefill.

Greedy decoding is checked without decoding: a continuation is the model's if, the whole of it given at once,
each token is the argmax of the logits after the tokens before it. What a forward pass costs is then shared by
all tokens of a chunk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.follow import Follower
from qgpu.backends.machine.host import Launch
from qgpu.backends.machine.tokens import vocabulary
from qgpu.runtime.checkpoints import built_checkpoint
from qgpu.runtime.engine import PREFILL_CHUNK, Progress, ReferenceEngine
from qgpu.runtime.engines import FAST_ENGINE, make_engine
from qgpu.runtime.launch import MAX_TOKENS, DifferenceError, Outcome, Watch, run
from qgpu.runtime.states import StateDifference, StatefulEngine, compare_states
from qgpu.runtime.stock import StockEngine


@dataclass(frozen=True)
class Verifier:
    """What checks launches of a machine.

    Attributes:
        model: the stock model.
        chunk: tokens of a forward pass.
        directory: the checkpoint.
        engine: whose final state the model's is compared with; None where it computes in another dtype.
    """

    model: StockEngine
    chunk: int = PREFILL_CHUNK
    directory: str | os.PathLike[str] = ""
    engine: StatefulEngine | None = None


def open_verifier(
    machine: MachineDescription,
    model: str | os.PathLike[str] | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    chunk: int = PREFILL_CHUNK,
    in_weights: bool = False,
) -> Verifier:
    """Load what checks launches of a machine; arguments and exceptions are those of `make_engine`."""
    directory = built_checkpoint(machine, dtype) if model is None else model
    engine = None
    if dtype == "float32":
        engine = make_engine(FAST_ENGINE, machine, directory, in_weights=in_weights)
    stock = make_engine("weights", machine, directory, dtype, device, in_weights)
    assert isinstance(stock, StockEngine)
    return Verifier(stock, chunk, directory, cast("StatefulEngine | None", engine))


@dataclass(frozen=True)
class Verification:
    """A launch whose tokens the stock model has confirmed.

    Attributes:
        outcome: its result; `seconds` is the model's time for the generated tokens.
        answers: how many tokens the model confirmed: those generated, and the answers to READ.
        reference_seconds, model_seconds: time for the proposal, and for all of the model's forward passes.
        state: how the model's final state and the engine's differ, None where they were not compared.
    """

    outcome: Outcome
    answers: int
    reference_seconds: float
    model_seconds: float
    state: StateDifference | None


def verify(
    launch: Launch, verifier: Verifier, limit: int = MAX_TOKENS, watch: Watch | None = None
) -> Verification:
    """Check a launch's tokens, generated and answered, against the argmax of the stock model.

    Args:
        limit: generated tokens after which the launch is given up.
        watch: told of the steps as they are proposed, and of tokens as they are checked.

    Raises:
        DifferenceError: a token is not the model's, or the states differ by more than a counter may.
        EngineError: the launch does not come to an end.
    """
    watch = watch or Watch()
    start = time.perf_counter()
    proposal = _Proposal(launch.machine)
    outcome = run(launch, proposal, limit=limit, watch=Watch(step=watch.step))
    proposed = time.perf_counter()
    checker = _Checker(launch, outcome.generated, proposal, verifier)
    prompt, end = len(launch.prompt), len(launch.prompt) + len(outcome.generated) - 1
    verifier.model.begin()
    checker.check(0, prompt, watch.prompt)
    between = time.perf_counter()
    checker.check(prompt, end, watch.generated)
    generated = time.perf_counter()
    checker.check(end, len(proposal.tokens), None)
    model_seconds = time.perf_counter() - proposed
    confirmed = replace(
        outcome,
        layers=verifier.model.layers,
        prompt_seconds=between - proposed,
        seconds=generated - between,
        checked=True,
    )
    state = _compare(verifier, proposal.tokens)
    return Verification(confirmed, len(proposal.answers), proposed - start, model_seconds, state)


def _compare(verifier: Verifier, tokens: Sequence[int]) -> StateDifference | None:
    engine = verifier.engine
    if engine is None:
        return None
    engine.begin()
    engine.feed(tokens)
    state = compare_states(verifier.directory, verifier.model.recurrent_states(), engine.recurrent_states())
    state.refuse_beyond_counters()
    return state


class _Proposal(ReferenceEngine):
    """The reference interpreter, which keeps a record.

    Attributes:
        tokens: all that it was fed.
        answers: what it said, by the number of the token after which it was asked.
    """

    def __init__(self, description: MachineDescription) -> None:
        super().__init__(description)
        self.tokens: list[int] = []
        self.answers: dict[int, int] = {}

    def begin(self) -> None:
        super().begin()
        self.tokens, self.answers = [], {}

    def feed(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        following = super().feed(tokens, progress)
        self.tokens += tokens
        self.answers[len(self.tokens) - 1] = following
        return following


class _Checker:
    """Holds the stock model's argmax against what was proposed."""

    def __init__(
        self,
        launch: Launch,
        generated: tuple[int, ...],
        proposal: _Proposal,
        verifier: Verifier,
    ) -> None:
        self._launch = launch
        self._generated = generated
        self._proposal = proposal
        self._model = verifier.model
        self._chunk = verifier.chunk

    def check(self, first: int, end: int, progress: Callable[[int], None] | None) -> None:
        """Give the model the tokens from `first` to `end` - 1, and compare what it says after each."""
        tokens, answers = self._proposal.tokens, self._proposal.answers
        for start in range(first, end, self._chunk):
            chunk = tokens[start : min(end, start + self._chunk)]
            for position, found in enumerate(self._model.prefill_argmax(chunk, self._chunk), start):
                if found != answers.get(position, found):
                    raise DifferenceError(self._difference(position, found))
            if progress is not None:
                progress(len(chunk))

    def _difference(self, position: int, found: int) -> str:
        names = vocabulary(self._launch.machine)
        proposed = names.name(self._proposal.answers[position])
        said = f"the model's argmax is {names.name(found)}, the reference's token is {proposed}"
        count = position - len(self._launch.prompt) + 1
        if count >= len(self._generated):
            return f"answer to READ, token {position + 1} of the sequence: {said}"
        follower = Follower(self._launch)
        for token in self._generated[:count]:
            follower.take(token)
        return f"generated token {count}: {said}: {follower.place}"
