"""What a lane may be like where a condition of its comes from memory that was never written.

Such a condition is 0 or 1. The lane then goes on in two worlds, of which the machine runs one; every other is
kept as the registers and predicates in which it differs. Where worlds come to the same, the condition has
decided nothing: `a || b` is 1 in both worlds of an unwritten a if b holds, by whatever blocks it is computed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MOST_WORLDS = 16
"""Worlds of a lane; of more, what differs between them may be anything."""

Known = tuple[int, int]
"""A value and its mark; see `possible`."""


@dataclass
class World:
    """A world of a lane.

    Attributes:
        cause: the read that it comes from; 0 for the world that the machine runs.
        values: registers, by their cell of the file, and predicates p, by ~p, that are not as in that world;
            of that world itself, those that have a mark.
    """

    cause: int = 0
    values: dict[int, Known] = field(default_factory=dict)


@dataclass
class Outcome:
    """What a block makes of a lane in a world.

    Attributes:
        world: which.
        runs: whether the lane takes part.
        value, mark: R; where the lane takes no part, what the destination holds.
        address, second: of its accesses.
        fault: as in Result.
    """

    world: World
    runs: bool
    value: int = 0
    mark: int = 0
    address: int = 0
    second: int = 0
    fault: int | None = None

    def differs(self, other: Outcome) -> bool:
        """Whether what it leaves in a destination is not the same."""
        return self.mark != other.mark or (not self.mark and self.value != other.value)


class Worlds:
    """The worlds of all lanes of a thread block, by their number.

    Attributes:
        registers: the cells of the register file in which a world differs, or that have a mark.
        predicates: the same, [predicate, thread].
    """

    def __init__(self, cells: int, predicates: int, threads: int) -> None:
        self.registers: NDArray[np.bool_] = np.zeros(cells, np.bool_)
        self.predicates: NDArray[np.bool_] = np.zeros((predicates, threads), np.bool_)
        self.lanes: dict[int, list[World]] = {}

    def forget(self) -> None:
        """All lanes have one world, which the machine runs."""
        self.registers[:] = False
        self.predicates[:] = False
        self.lanes.clear()

    def of(self, thread: int) -> list[World]:
        """The worlds of a lane, first the one that the machine runs."""
        return self.lanes.get(thread) or [World()]

    def known(self, thread: int, world: World, key: int, value: int) -> Known:
        """What a world has where the machine has a value."""
        if key in world.values:
            return world.values[key]
        return self.of(thread)[0].values.get(key, (value, 0))

    def assign(self, thread: int, key: int, outcomes: list[Outcome]) -> None:
        """Outcomes, first that of the machine's world, go to a register or predicate."""
        actual = outcomes[0]
        for outcome in outcomes:
            values = outcome.world.values
            if outcome.mark if outcome is actual else outcome.differs(actual):
                values[key] = outcome.value, outcome.mark
            else:
                values.pop(key, None)
        self._keep(thread, [outcome.world for outcome in outcomes])
        self._note(thread, key)

    def assign_known(self, threads: list[int], keys: list[int]) -> None:
        """A register or predicate of each lane gets the same value in all its worlds."""
        for thread, key in zip(threads, keys, strict=True):
            worlds = self.lanes.get(thread, [])
            for world in worlds:
                world.values.pop(key, None)
            self._keep(thread, worlds)
            self._note(thread, key)

    def _keep(self, thread: int, worlds: list[World]) -> None:
        """Drop worlds that are like others; of too many, mark what differs."""
        if not worlds:
            return
        actual, others = worlds[0], []
        for world in worlds[1:]:
            if world.values and all(world.values != other.values for other in others):
                others.append(world)
        if len(others) >= MOST_WORLDS:
            for world in others:
                for key, (value, _) in world.values.items():
                    actual.values.setdefault(key, (value, world.cause))
            others = []
        if actual.values or others:
            self.lanes[thread] = [actual, *others]
        else:
            self.lanes.pop(thread, None)

    def _note(self, thread: int, key: int) -> None:
        unsure = any(key in world.values for world in self.lanes.get(thread, []))
        if key < 0:
            self.predicates[~key, thread] = unsure
        else:
            self.registers[key] = unsure
