"""Engines: whatever takes the tokens of a sequence and says which comes next."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, runtime_checkable

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.host import Launch

Progress = Callable[[int], None]
"""Called with the number of tokens taken since the last call."""


PREFILL_CHUNK = 512
"""Tokens of one forward pass over many; the delta rule itself works in chunks of 64."""


class Engine(Protocol):
    """A model, or the machine itself, as a launch sees it."""

    @property
    def layers(self) -> int | None:
        """Layers that a token passes through; None where there are none."""
        ...

    def begin(self) -> None:
        """Start a new sequence."""
        ...

    def feed(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        """Append tokens to the sequence; return the most likely token after the last of them.

        Raises:
            EngineError: the engine cannot say.
        """
        ...


@runtime_checkable
class GeneratingEngine(Protocol):
    """An engine that goes on by itself."""

    def generate(self, token: int, limit: int, stops: Collection[int]) -> list[int]:
        """Append a token to the sequence, then each most likely one, and return these.

        Ends after `limit` of them, or with one of `stops`; the last one is returned but not appended.
        """
        ...


class EngineError(RuntimeError):
    """An engine that cannot go on with a sequence."""


class ReferenceEngine:
    """The reference interpreter as an engine."""

    layers = None

    def __init__(self, description: MachineDescription) -> None:
        self._description = description
        self.begin()

    def begin(self) -> None:
        from qgpu.backends.reference.machine import Machine

        self.machine = Machine(self._description)

    def expect(self, launch: Launch) -> None:
        """Prepare a new sequence for a launch: hold the blocks that its prompt leaves out, and look out for
        shared memory that it reads and has not written.
        """
        from qgpu.backends.reference.machine import Machine
        from qgpu.backends.reference.shadow import Shadow

        self.machine = Machine(self._description, launch.resident)
        self.machine.watch = Shadow(launch, self.machine) if launch.shared.size else None

    def feed(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        following: int | None = None
        for token in tokens:
            following = self.machine.step(token)
        if progress is not None:
            progress(len(tokens))
        if following is None:
            raise EngineError("the machine leaves open which token follows")
        return following
