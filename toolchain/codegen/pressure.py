"""Register pressure: which registers to keep elsewhere where the machine has too few of a kind.

Where more are live than there is room for, the one goes that is used least for how long it is live (after
Chaitin 1982, spill cost by length of the live range).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from qgpu.toolchain.codegen.liveness import Live, written
from qgpu.toolchain.codegen.registers import Kind, Register
from qgpu.toolchain.codegen.splicing import weights
from qgpu.toolchain.codegen.tiles import Tile


class Pressure:
    """What is live where, of one kind of registers; merged ones are one."""

    def __init__(
        self,
        kind: Kind,
        tiles: Sequence[Tile],
        after: dict[Tile, Live],
        representative: Callable[[Register], Register],
    ) -> None:
        self._kind: Kind = kind
        self._representative = representative
        self._live = [self._members((*after[tile], *written(tile))) for tile in tiles]
        self._uses = self._count_uses(tiles)
        self._length = Counter[Register]()
        for live in self._live:
            self._length.update(live)

    @property
    def most(self) -> int:
        """The largest number of registers that are live at once, without those live everywhere."""
        return max(map(len, self._live), default=0)

    def victims(self, room: int, candidates: set[Register]) -> list[Register]:
        """Candidates without which no more than `room` registers are live anywhere, if there are such."""
        chosen: dict[Register, None] = {}
        for live in self._live:
            left = {register for register in live if register not in chosen}
            excess = len(left) - room
            if excess > 0:
                possible = sorted(left & candidates, key=self._cost)
                chosen |= dict.fromkeys(possible[:excess])
        return list(chosen)

    def _cost(self, register: Register) -> tuple[float, str]:
        return self._uses[register] / self._length[register], register.name

    def _count_uses(self, tiles: Sequence[Tile]) -> Counter[Register]:
        uses = Counter[Register]()
        for tile, weight in weights(tiles).items():
            for register in self._members(_mentioned(tile)):
                uses[register] += weight
        return uses

    def _members(self, registers: Sequence[Register]) -> set[Register]:
        own = (register for register in registers if register.kind == self._kind and not register.pinned)
        return {self._representative(register) for register in own}


def _mentioned(tile: Tile) -> tuple[Register, ...]:
    return (*written(tile), *tile.routing.registers, *_guarding(tile))


def _guarding(tile: Tile) -> Iterator[Register]:
    return (literal.register for literal in tile.guard)
