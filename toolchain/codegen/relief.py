"""Relief: what is done where the registers of a kind are too few."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.toolchain.codegen.demote import Demoter
from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.interference import Interference
from qgpu.toolchain.codegen.liveness import Live
from qgpu.toolchain.codegen.pressure import Pressure
from qgpu.toolchain.codegen.registers import Kind, Register
from qgpu.toolchain.codegen.spill import Spiller, homes
from qgpu.toolchain.codegen.tiles import Tile


class Relief:
    """Sends registers of one kind elsewhere: conditions to words, words to memory, constants to immediates.

    Attributes:
        temporaries: registers that the program now has for a block or two, and that cannot go anywhere.
    """

    def __init__(
        self,
        kind: Kind,
        tiles: Sequence[Tile],
        after: dict[Tile, Live],
        graph: Interference,
        temporaries: set[Register],
    ) -> None:
        self._kind: Kind = kind
        self._graph = graph
        self._pressure = Pressure(kind, tiles, after, graph.representative)
        self._fixed = temporaries
        self.temporaries: set[Register] = set()

    def run(self, tiles: list[Tile], room: int, lowered: Lowered) -> bool:
        """Rewrite a program so that about `room` registers besides pinned ones do; False if none can go."""
        members = self._members(room)
        if not members:
            return False
        if self._kind == "predicate":
            demoter = Demoter(tiles, members)
            demoter.run(tiles)
            self.temporaries = demoter.temporaries
            return True
        victims = list(dict.fromkeys(map(self._graph.representative, members)))
        places = homes(victims, self._graph.neighbours, lowered)
        spiller = Spiller({register: places[self._graph.representative(register)] for register in members})
        spiller.run(tiles)
        self.temporaries = spiller.temporaries
        return True

    def _members(self, room: int) -> list[Register]:
        """The registers that go, with all that they are merged with."""
        own = [register for register in self._graph.registers() if register.kind == self._kind]
        excess = self._pressure.most - room
        constants = [r for r in own if self._kind == "uniform" and r.preload.startswith("const:")]
        gone = constants[: max(0, excess)]
        movable = {self._graph.representative(r) for r in own if not r.pinned and r not in self._fixed}
        victims = set(self._pressure.victims(room + len(gone), movable))
        return [*gone, *(r for r in own if not r.pinned and self._graph.representative(r) in victims)]
