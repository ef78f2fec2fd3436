"""Launches on an engine: what is compared, what is read back, and how a bad engine is found out."""

import struct
from collections.abc import Callable, Sequence

import pytest

import machine_kernels
from qgpu.backends.machine.block import Block
from qgpu.backends.machine.description import SMALL
from qgpu.backends.machine.follow import Step
from qgpu.backends.machine.host import Launch, build_launch
from qgpu.backends.machine.tokens import vocabulary
from qgpu.runtime.engine import EngineError, Progress, ReferenceEngine
from qgpu.runtime.launch import DifferenceError, Watch, run

IDS = vocabulary(SMALL)


def pack(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def vecadd(n: int = 7, size: int = 7) -> Launch:
    data = pack(*(1000 * i for i in range(size)))
    arguments = [data, data, bytes(4 * size), n]
    return build_launch(SMALL, machine_kernels.vecadd(), (2, 1, 1), (4, 1, 1), arguments)


class LyingEngine(ReferenceEngine):
    """The reference, but for the tokens that `lie` changes; it gets the number of tokens given before."""

    layers = 3

    def __init__(self, lie: Callable[[int, int], int]) -> None:
        super().__init__(SMALL)
        self.lie = lie
        self.given = 0

    def feed(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        token = self.lie(self.given, super().feed(tokens, progress))
        self.given += 1
        return token


def test_buffers_come_back() -> None:
    outcome = run(vecadd(), ReferenceEngine(SMALL))
    assert outcome.buffers[2] == pack(*(2000 * i for i in range(7)))
    assert outcome.buffers[3] is None
    assert (outcome.fault, outcome.layers, outcome.layer_passes) == (None, None, None)
    assert IDS.name(outcome.generated[-1]) == "<exit>"


def test_cost_is_tokens_times_layers() -> None:
    outcome = run(vecadd(), LyingEngine(lambda count, token: token), check=True)
    assert outcome.layer_passes == 3 * len(outcome.generated)
    assert outcome.checked


def test_the_first_wrong_token_is_named() -> None:
    engine = LyingEngine(lambda count, token: IDS.id("last", 9) if count == 10 else token)
    with pytest.raises(DifferenceError) as caught:
        run(vecadd(), engine, check=True)
    assert str(caught.value) == (
        "generated token 10 is <last:9> (result), the reference's is <last:0>: "
        "block 2, warp 0, lane 0, part 0"
    )


def test_a_wrong_answer_to_read_is_found() -> None:
    launch = vecadd()
    count = len(run(launch, ReferenceEngine(SMALL)).generated)
    engine = LyingEngine(lambda given, token: IDS.id("last", 9) if given == count else token)
    with pytest.raises(DifferenceError, match="buffer 'a' differs at byte 0: 9, the reference's is 0"):
        run(launch, engine, check=True)


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        (lambda token: IDS.id("exit"), "READ of 4 words: 0 answers, then <exit>"),
        (lambda token: IDS.id("more", 5) if token != IDS.id("exit") else token, "the machine leaves open"),
        (lambda token: IDS.id("last", 5), "READ of 4 words: 12 answers, then <last:5>"),
    ],
)
def test_answers_that_are_none(lie: Callable[[int], int], message: str) -> None:
    launch = vecadd()
    count = len(run(launch, ReferenceEngine(SMALL)).generated)
    with pytest.raises(EngineError, match=message):
        run(launch, LyingEngine(lambda given, token: lie(token) if given >= count else token))


def test_a_launch_that_does_not_end() -> None:
    kernel = machine_kernels.kernel("k", [Block(next=0)], [], [])
    launch = build_launch(SMALL, kernel, (1, 1, 1), (1, 1, 1), [])
    with pytest.raises(EngineError, match="the launch has not ended after 20 tokens"):
        run(launch, ReferenceEngine(SMALL), limit=20)
    with pytest.raises(EngineError, match="on the reference interpreter, the launch has not ended"):
        run(launch, LyingEngine(lambda count, token: token), check=True, limit=20)


def test_a_fault_has_no_buffers() -> None:
    outcome = run(vecadd(n=9), LyingEngine(lambda count, token: token), check=True)
    assert outcome.fault is not None
    assert (outcome.fault.kind, outcome.fault.thread, outcome.fault.block) == (
        "out-of-bounds",
        (3, 0, 0),
        (1, 0, 0),
    )
    assert outcome.buffers == (None,) * 4


def test_who_watches_is_told() -> None:
    seen: list[Step] = []
    counts = {"prompt": 0, "generated": 0}

    def count(what: str) -> Progress:
        return lambda tokens: counts.update({what: counts[what] + tokens})

    launch = vecadd()
    outcome = run(
        launch, ReferenceEngine(SMALL), watch=Watch(count("prompt"), count("generated"), seen.append)
    )
    assert counts == {"prompt": len(launch.prompt), "generated": len(outcome.generated) - 1}
    assert [step.token for step in seen] == list(outcome.generated)
    results = [step.value for step in seen if step.place.block == 3 and step.value is not None]
    assert results == [2000 * i for i in range(7)]
