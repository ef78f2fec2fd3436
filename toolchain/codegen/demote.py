"""Demotion: conditions kept as words of thread registers where predicates are too few.

A guard over such conditions becomes one predicate, computed in a block a condition: the first under the rest
of the guard, each further one in the lanes that are left. It serves until a condition changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qgpu.toolchain.codegen.nodes import EQUAL, Expression, move
from qgpu.toolchain.codegen.registers import Guard, GuardLiteral, Register
from qgpu.toolchain.codegen.splicing import leaders, splice, then
from qgpu.toolchain.codegen.tiles import Tile, routed

_KEPT = 2
"""Predicates that stand for guards and are kept for later ones."""


@dataclass(frozen=True)
class _Known:
    """A predicate that is true where all of `literals` hold, in the lanes of `others`."""

    predicate: Register
    literals: frozenset[GuardLiteral]
    others: frozenset[GuardLiteral]


class Demoter:
    """Rewrites a program so that some predicates are words.

    Attributes:
        temporaries: the predicates that stand for guards.
    """

    def __init__(self, tiles: Sequence[Tile], predicates: Iterable[Register]) -> None:
        self._words = _words(tiles, set(predicates))
        self._leaders = leaders(tiles)
        self._known: list[_Known] = []
        self.temporaries: set[Register] = set()

    def run(self, tiles: list[Tile]) -> None:
        """Rewrite all tiles, in place."""
        splice(tiles, self._expanded)

    def _expanded(self, tile: Tile) -> list[Tile]:
        if tile in self._leaders:
            self._known = []
        before = self._guarded(tile)
        changed = {tile.predicate, tile.data}
        sequence = self._written(tile)
        self._forget({*changed, tile.data})
        return [*before, *sequence]

    def _forget(self, changed: set[Register | None]) -> None:
        """Drop what follows from conditions that have changed."""
        self._known = [known for known in self._known if not self._reads(known) & changed]

    def _reads(self, known: _Known) -> set[Register | None]:
        words = (self._words[literal.register] for literal in known.literals)
        return {*words, *(literal.register for literal in known.others)}

    def _written(self, tile: Tile) -> list[Tile]:
        """The tile with a word for a demoted predicate, and a copy where it has another result already."""
        word = self._words.get(tile.predicate) if tile.predicate else None
        if word is None:
            return [tile]
        tile.predicate = None
        if tile.data is None or tile.data is word:
            tile.data = word
            return [tile]
        copy = Tile(routed(move(tile.data)), guard=tile.guard, data=word, loc=tile.loc)
        self._forget({word})
        return then(tile, tile.data, copy)

    def _guarded(self, tile: Tile) -> list[Tile]:
        """Give a tile a guard without demoted predicates; returns the tiles that compute it.

        The predicate that stands for them has the place of the last: what follows it in the guard may have
        been computed in its lanes alone.
        """
        places = [i for i, literal in enumerate(tile.guard) if literal.register in self._words]
        if not places:
            return []
        outer = tuple(g for g in tile.guard[: places[-1]] if g.register not in self._words)
        inner = tile.guard[places[-1] + 1 :]
        demoted = dict.fromkeys(tile.guard[place] for place in places)
        known = self._best(frozenset(demoted), frozenset(outer))
        if known:
            outer = (*outer, GuardLiteral(known.predicate, True))
            demoted = {literal: None for literal in demoted if literal not in known.literals}
        if not demoted:
            tile.guard = (*outer, *inner)
            return []
        predicate = Register("predicate", "guard")
        self.temporaries.add(predicate)
        steps = list(self._conjunction(demoted, outer, predicate, tile))
        known = _Known(predicate, frozenset(demoted), frozenset(outer))
        self._known = [*self._known[1 - _KEPT :], known]
        tile.guard = (*outer, GuardLiteral(predicate, True), *inner)
        return steps

    def _best(self, wanted: frozenset[GuardLiteral], others: frozenset[GuardLiteral]) -> _Known | None:
        """The predicate that says most of a guard."""
        fitting = [k for k in self._known if k.literals <= wanted and k.others <= others]
        return max(fitting, key=lambda known: len(known.literals), default=None)

    def _conjunction(
        self, literals: Iterable[GuardLiteral], others: Guard, predicate: Register, tile: Tile
    ) -> Iterable[Tile]:
        guard = others
        for literal in literals:
            word = self._words[literal.register]
            test = move(word) if literal.polarity else Expression("cmp", word, 0, relation=EQUAL)
            yield Tile(routed(test), guard=guard, predicate=predicate, loc=tile.loc)
            guard = (*others, GuardLiteral(predicate, True))


def _words(tiles: Sequence[Tile], predicates: set[Register]) -> Mapping[Register, Register]:
    """A word for each predicate: the register that every block writes along with it, or a new one."""
    data: dict[Register, set[Register | None]] = {predicate: set() for predicate in predicates}
    partner: dict[Register, set[Register | None]] = {}
    for tile in tiles:
        if tile.predicate in data:
            data[tile.predicate].add(tile.data)
        if tile.data is not None:
            partner.setdefault(tile.data, set()).add(tile.predicate)
    words: dict[Register, Register] = {}
    for predicate, registers in data.items():
        only = next(iter(registers)) if len(registers) == 1 else None
        together = only is not None and only.kind == "thread" and partner[only] == {predicate}
        words[predicate] = only if together and only else Register("thread", predicate.name)
    return words
