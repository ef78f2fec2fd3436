"""What changed checkpoints run on: launches of examples, and random blocks that have every opcode."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from example_launches import FIRST, launch_of
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.host import Launch, LaunchError, read_requests
from qgpu.backends.machine.verify import ProgramError
from qgpu.backends.reference.machine import Machine
from qgpu.backends.reference.run import generate, run_launch
from qgpu.toolchain.diagnostics import DiagnosticError
from random_blocks import random_stream

STREAMS, BLOCKS = 6, 40
"""Random streams, and blocks of each."""

MOST_TOKENS = 400
"""Tokens of the longest launch of an example that is run."""


@dataclass(frozen=True)
class Followed:
    """Tokens that are fed one by one, whatever the model says.

    What it says is compared after each. The first token that a model would generate wrongly is the first that
    is wrong here, since up to there it would have generated these.

    Attributes:
        name: the example, or the stream.
        tokens: int64.
        expected: int64, the reference's token after each; -1 where it leaves that open.
    """

    name: str
    tokens: np.ndarray
    expected: np.ndarray

    @property
    def compared(self) -> int:
        """Tokens that are compared."""
        return int((self.expected >= 0).sum())


def sequences(machine: MachineDescription, streams: int = STREAMS) -> list[Followed]:
    """Return the sequences of a machine: streams first, since they have most in fewest tokens."""
    return [*(stream(seed, machine) for seed in range(streams)), *_launches(machine)]


def stream(seed: int, machine: MachineDescription, blocks: int = BLOCKS) -> Followed:
    """Return a stream of random blocks over random state."""
    return _followed(f"stream {seed}", random_stream(random.Random(seed), machine, blocks), machine)


def _launches(machine: MachineDescription) -> Iterator[Followed]:
    """The first launch of each example that fits a machine, with all that READ is asked for."""
    for example in FIRST:
        try:
            launch = launch_of(example, machine)
        except (DiagnosticError, LaunchError, ProgramError):
            continue
        trace = run_launch(launch)
        if len(trace.generated) <= MOST_TOKENS:
            yield _followed(example.kernel, _with_reads(launch, trace.generated), machine)


def _with_reads(launch: Launch, generated: Sequence[int]) -> list[int]:
    """The tokens of a launch, and of the reads of its buffers."""
    machine, tokens = Machine(launch.machine), [*launch.prompt, *generated]
    for token in tokens:
        machine.step(token)
    for region in launch.buffers:
        for request, _ in read_requests(launch.machine, region) if region else ():
            following = [machine.step(token) for token in request][-1]
            answer = generate(machine, following)
            tokens += [*request, *answer]
            machine.step(answer[-1])
    return tokens


def _followed(name: str, tokens: list[int], machine: MachineDescription) -> Followed:
    reference = Machine(machine)
    expected = [reference.step(token) for token in tokens]
    return Followed(name, np.array(tokens), np.array([-1 if t is None else t for t in expected]))
