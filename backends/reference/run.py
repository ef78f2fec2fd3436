"""Run a launch on the reference interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.backends.machine.follow import Fault, Follower, Step, end_tokens, follow, launch_fault
from qgpu.backends.machine.host import Launch, Region, region_bytes
from qgpu.backends.reference.machine import Machine
from qgpu.backends.reference.shadow import Shadow, UninitialisedError


class RunawayError(RuntimeError):
    """A launch that has not ended after the tokens that it was given."""


@dataclass(frozen=True)
class Trace:
    """What the reference makes of a launch.

    Attributes:
        launch: what ran.
        generated: token ids up to and including EXIT or the fault; up to where it shows that a value comes
            from memory which was never written, which no token says.
        memory: words of data memory after it, 32-bit unsigned.
        fault: why it stopped, or None.
    """

    launch: Launch
    generated: tuple[int, ...]
    memory: tuple[int, ...]
    fault: Fault | None

    def steps(self) -> list[Step]:
        """What each generated token says, and where."""
        return list(follow(self.launch, self.generated))

    def buffer(self, region: Region) -> bytes:
        """The bytes of a region after the launch."""
        first = region.address // 4
        return region_bytes(region, self.memory[first : first + -(-region.size // 4)])


def run_launch(launch: Launch, limit: int | None = None) -> Trace:
    """Feed a launch's prompt to a new machine, then its own tokens, until it exits or faults.

    Raises:
        RunawayError: it has not ended after `limit` generated tokens.
    """
    machine = Machine(launch.machine, launch.resident)
    machine.watch = Shadow(launch, machine) if launch.shared.size else None
    token: int | None = None
    for incoming in launch.prompt:
        token = machine.step(incoming)
    generated = generate(machine, token, limit)
    if machine.uninitialised is None:
        fault = launch_fault(launch, generated)
    else:
        fault = uninitialised_fault(launch, generated, machine.uninitialised)
    return Trace(launch, tuple(generated), tuple(machine.memory), fault)


def uninitialised_fault(launch: Launch, generated: Sequence[int], error: UninitialisedError) -> Fault:
    """The fault of a launch in which memory that was never written decided something after some tokens."""
    follower = Follower(launch)
    for token in generated:
        follower.take(token)
    return error.fault(launch, follower)


def generate(machine: Machine, token: int | None, limit: int | None = None) -> list[int]:
    """Feed a machine its own tokens, from `token` on, up to and including EXIT or a fault; return them.

    They end sooner where a value from memory that was never written decides something.

    Raises:
        RunawayError: it has not ended after `limit` tokens.
        ValueError: the machine leaves open which token follows.
    """
    ends = end_tokens(machine.description)
    generated: list[int] = []
    while machine.uninitialised is None:
        if token is None:
            raise ValueError("the machine leaves open which token follows")
        generated.append(token)
        if token in ends:
            return generated
        if limit is not None and len(generated) >= limit:
            raise RunawayError(f"the launch has not ended after {limit} tokens")
        token = machine.step(token)
    return generated
