"""Run a launch on an engine: prompt, generated tokens, and the buffers, read back from the engine itself."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from qgpu.backends.machine.follow import UNINITIALISED, Fault, Follower, Step, end_tokens, launch_fault
from qgpu.backends.machine.host import Launch, Region, read_requests, region_bytes
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.reference.run import RunawayError, Trace, run_launch, uninitialised_fault
from qgpu.runtime.engine import Engine, EngineError, GeneratingEngine, Progress, ReferenceEngine
from qgpu.runtime.printf import printed

MAX_TOKENS = 1 << 20
"""Tokens after which a launch that has not ended is given up, unless the caller says otherwise."""


STRETCH = 4096
"""Tokens that an engine generates at once, where it can, between two looks at them."""


class DifferenceError(RuntimeError):
    """A token or a buffer that is not the reference's."""


@dataclass(frozen=True)
class Outcome:
    """What came of a launch.

    Attributes:
        launch: what ran.
        generated: token ids up to and including EXIT or the fault; none where the launch ran without tokens.
        tokens: how many tokens it generated, or would have.
        buffers: the content of each buffer after the launch, as read by READ; None for a scalar, and after a
            fault for each.
        output: what device code printed, up to a fault as well.
        fault: why it stopped, or None.
        layers: layers of the engine, None for the reference.
        prompt_seconds, seconds: time for the prompt, and for the generated tokens.
        checked: whether every token and buffer was compared with the reference's.
    """

    launch: Launch = field(repr=False)
    generated: tuple[int, ...] = field(repr=False)
    tokens: int
    buffers: tuple[bytes | None, ...] = field(repr=False)
    output: str
    fault: Fault | None
    layers: int | None
    prompt_seconds: float
    seconds: float
    checked: bool

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens a second."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def layer_passes(self) -> int | None:
        """Generated tokens times layers: what the launch costs."""
        return None if self.layers is None else self.tokens * self.layers


@dataclass(frozen=True)
class Watch:
    """Who looks on: `prompt` and `generated` get the number of tokens taken, `step` each generated one."""

    prompt: Progress | None = None
    generated: Progress | None = None
    step: Callable[[Step], None] | None = None


def run(
    launch: Launch, engine: Engine, check: bool = False, limit: int = MAX_TOKENS, watch: Watch | None = None
) -> Outcome:
    """Run a launch on an engine.

    Args:
        check: compare every token with the reference interpreter's as it comes, and every buffer at the end.
        limit: generated tokens after which it is given up.
        watch: who is told of progress.

    Raises:
        DifferenceError: with `check`, something is not as in the reference.
        EngineError: the engine fails, gives a token that is no answer, or does not come to an end.
    """
    watch = watch or Watch()
    trace = _reference(launch, limit) if check else None
    engine.begin()
    if isinstance(engine, ReferenceEngine):
        engine.expect(launch)
    start = time.perf_counter()
    first = engine.feed(launch.prompt, watch.prompt)
    between = time.perf_counter()
    generated = tuple(_generate(launch, engine, first, trace, limit, watch))
    end = time.perf_counter()
    fault = _uninitialised(launch, engine, trace, generated) or launch_fault(launch, generated)
    buffers = (None,) * len(launch.buffers) if fault else _read_buffers(launch, engine, trace)
    return Outcome(
        launch=launch,
        generated=generated,
        tokens=len(generated),
        buffers=buffers,
        output=_output(launch, engine, trace),
        fault=fault,
        layers=engine.layers,
        prompt_seconds=between - start,
        seconds=end - between,
        checked=check,
    )


def _uninitialised(
    launch: Launch, engine: Engine, trace: Trace | None, generated: Sequence[int]
) -> Fault | None:
    """The fault that no token reports, which the reference alone knows of, if it shows after some tokens."""
    if isinstance(engine, ReferenceEngine) and engine.machine.uninitialised is not None:
        return uninitialised_fault(launch, generated, engine.machine.uninitialised)
    if trace is None or trace.fault is None or trace.fault.kind != UNINITIALISED:
        return None
    return trace.fault if len(generated) == len(trace.generated) else None


def _reference(launch: Launch, limit: int) -> Trace:
    try:
        return run_launch(launch, limit)
    except RunawayError as error:
        raise EngineError(f"on the reference interpreter, {error}") from error


def _generate(
    launch: Launch, engine: Engine, token: int, trace: Trace | None, limit: int, watch: Watch
) -> list[int]:
    """Feed the engine its own tokens; return them, up to and including EXIT or a fault.

    They end sooner where the reference knows of a fault that no token reports.
    """
    ends = end_tokens(launch.machine)
    observer = _Observer(launch, trace, watch)
    generated: list[int] = []
    new = [token]
    stop = limit if trace is None else min(limit, len(trace.generated))
    while _uninitialised(launch, engine, trace, generated) is None:
        observer.see(new)
        generated += new
        if new[-1] in ends:
            return generated
        if len(generated) >= limit:
            raise EngineError(f"the launch has not ended after {limit} tokens")
        new = _continued(engine, new[-1], max(1, stop - len(generated)), ends)
        if watch.generated is not None:
            watch.generated(len(new))
    return generated


def _continued(engine: Engine, token: int, room: int, ends: frozenset[int]) -> list[int]:
    """What an engine says after a token: a stretch of tokens if it can, else one."""
    if isinstance(engine, GeneratingEngine):
        return engine.generate(token, min(room, STRETCH), ends)
    return [engine.feed((token,))]


class _Observer:
    """Compares generated tokens with a trace and tells of steps; follows the launch only where it has to."""

    def __init__(self, launch: Launch, trace: Trace | None, watch: Watch) -> None:
        self._launch = launch
        self._expected = None if trace is None else trace.generated
        self._step = watch.step
        self._follower = Follower(launch)
        self._ahead: list[int] = []
        self._count = 0

    def see(self, tokens: list[int]) -> None:
        """Take in the next tokens.

        Raises:
            DifferenceError: one is not the trace's.
        """
        expected = None if self._expected is None else self._expected[self._count : self._count + len(tokens)]
        if self._step is None and (expected is None or tuple(tokens) == tuple(expected)):
            self._ahead += tokens
            self._count += len(tokens)
            return
        for token in self._ahead:
            self._follower.take(token)
        self._ahead.clear()
        for number, token in enumerate(tokens):
            step = self._follower.step(token)
            if expected is not None:
                _check_token(self._launch, step, expected[number], self._count)
            if self._step is not None:
                self._step(step)
            self._follower.take(token)
            self._count += 1


def _check_token(launch: Launch, step: Step, expected: int, count: int) -> None:
    if step.token == expected:
        return
    wanted = vocabulary(launch.machine).name(expected)
    raise DifferenceError(
        f"generated token {count} is {step.name} ({step.field}), the reference's is {wanted}: {step.place}"
    )


def _read_buffers(launch: Launch, engine: Engine, trace: Trace | None) -> tuple[bytes | None, ...]:
    contents: list[bytes | None] = []
    for parameter, region in zip(launch.kernel.parameters, launch.buffers, strict=True):
        content = None if region is None else read_region(launch, engine, region)
        if trace is not None and region is not None and content is not None:
            _check_buffer(parameter.name, content, trace.buffer(region))
        contents.append(content)
    return tuple(contents)


def _output(launch: Launch, engine: Engine, trace: Trace | None) -> str:
    """What the kernel has printed, as the engine tells it."""

    def read(region: Region) -> bytes:
        content = read_region(launch, engine, region)
        if trace is not None:
            _check_buffer("printf", content, trace.buffer(region))
        return content

    return printed_text(launch, read)


def printed_text(launch: Launch, read: Callable[[Region], bytes]) -> str:
    """What the kernel has printed: of its buffer, no more is read than was written."""
    printf = launch.kernel.printf
    if printf is None:
        return ""
    region = launch.hidden[printf.buffer]
    (count,) = _words(read(Region(region.address, 4)))
    content = read(Region(region.address + 4, min(4 * count, region.size // 4 * 4 - 4)))
    return printed(printf, count, _words(content))


def _words(data: bytes) -> list[int]:
    return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]


def _check_buffer(name: str, content: bytes, expected: bytes) -> None:
    for offset, (got, wanted) in enumerate(zip(content, expected, strict=True)):
        if got != wanted:
            raise DifferenceError(
                f"buffer '{name}' differs at byte {offset}: {got}, the reference's is {wanted}"
            )


def read_region(launch: Launch, engine: Engine, region: Region) -> bytes:
    """Ask an engine for the bytes of a region, by READ.

    Raises:
        EngineError: an answer that is none.
    """
    words: list[int] = []
    for request, count in read_requests(launch.machine, region):
        words += _answer(launch, engine, request, count)
    return region_bytes(region, words)


def _answer(launch: Launch, engine: Engine, request: Sequence[int], count: int) -> list[int]:
    """The values that an engine answers a request with: `count` of them, then EXIT."""
    ids = vocabulary(launch.machine)
    most = count * launch.machine.parts
    said = _said(launch, engine, request, most + 1)
    is_part = (ids.token(token).kind in ("more", "last") for token in said[:most])
    end = sum(itertools.takewhile(bool, is_part))
    values: list[int] = []
    parts: list[int] = []
    for token in said[:end]:
        parts.append(token)
        if ids.token(token).kind == "last":
            values.append(_value(launch, parts))
            parts = []
    if len(values) != count or parts or ids.token(said[end]).kind != "exit":
        raise EngineError(f"READ of {count} words: {len(values)} answers, then {ids.name(said[end])}")
    return values


def _said(launch: Launch, engine: Engine, request: Sequence[int], most: int) -> list[int]:
    """What an engine says after a request, up to an end or `most` tokens; at least one token."""
    ends = end_tokens(launch.machine)
    said = [engine.feed(request)]
    while said[-1] not in ends and len(said) < most:
        said += _continued(engine, said[-1], most - len(said), ends)
    return said


def _value(launch: Launch, parts: list[int]) -> int:
    try:
        return vocabulary(launch.machine).parse_value(parts)
    except ValueError as error:
        raise EngineError(f"READ: {error}") from error
