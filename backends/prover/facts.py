"""What is known of all channels in a pass: ranges, definitions, and which exclude or imply which.

A variable is what a place of the residual stream, or a bit that a head reads, holds from one half layer on
until something is added to it. Sets of variables are integers used as bit sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

import numpy as np


@dataclass(frozen=True, eq=False)
class Term:
    """A function of v = sum of weights[i] * n[variables[i]].

    Attributes:
        variables: each once.
        weights: none is 0.
        first: the value of v at table[0].
        table: the function's values from `first` on, over all that v can be; float64.
    """

    variables: tuple[int, ...]
    weights: tuple[int, ...]
    first: int
    table: np.ndarray


@dataclass(frozen=True)
class Literals:
    """What has to be where something is not 0.

    Attributes:
        needs: variables that are above 0.
        lacks: variables that are 0.
        clauses: sets of variables, of each of which one is above 0.
    """

    needs: int = 0
    lacks: int = 0
    clauses: tuple[int, ...] = ()

    def apart(self, other: Literals) -> bool:
        """Whether both cannot be."""
        if self.needs & other.lacks or other.needs & self.lacks:
            return True
        return any(not c & ~other.lacks for c in self.clauses) or any(
            not c & ~self.lacks for c in other.clauses
        )


@dataclass(frozen=True, eq=False)
class Cause:
    """A term that is added to a variable.

    Attributes:
        term: what it is.
        literals: what has to be where it is not 0.
        source: which neurons or column of a head it is of; (-1, channel) is what a channel held.
    """

    term: Term
    literals: Literals
    source: tuple[int, ...] = ()


@dataclass
class Facts:
    """All variables, by number. Variable i is an integer n in 0..count[i].

    Attributes:
        count: the largest n.
        excludes: bit sets: never is n > 0 in both. Variables that are not live list older ones alone.
        implies, implied: bit sets: where n > 0 in the first, so it is in the second.
        definition: n is the sum of these terms; None where a token or a memory's content gives it.
        raising: where n > 0, one of these holds; empty where that is not known.
        nogoods: by variable, pairs of others such that not all three are above 0.
        delayed: variables that are 1 exactly where a linear form of the pass before was at least a number.
        tokens: of each variable of the embedding, the ids of the tokens for which it is above 0.
        read: bits by channel and layer that read them into it.
        live: the variables that the residual stream, or a half layer that is looked at, holds.
    """

    count: list[int] = field(default_factory=list)
    excludes: list[int] = field(default_factory=list)
    implies: list[int] = field(default_factory=list)
    implied: list[int] = field(default_factory=list)
    definition: list[tuple[Term, ...] | None] = field(default_factory=list)
    raising: list[tuple[Literals, ...]] = field(default_factory=list)
    nogoods: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    delayed: dict[int, Term] = field(default_factory=dict)
    tokens: dict[int, np.ndarray] = field(default_factory=dict)
    read: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    live: int = 0

    def copy(self) -> Facts:
        """The same facts, to which others are added than to these."""
        made = Facts(**{f.name: getattr(self, f.name) for f in fields(self)})
        for name in ("count", "excludes", "implies", "implied", "definition", "raising"):
            setattr(made, name, list(getattr(self, name)))
        made.delayed, made.tokens, made.read = dict(self.delayed), dict(self.tokens), dict(self.read)
        made.nogoods = defaultdict(list, {v: list(pairs) for v, pairs in self.nogoods.items()})
        return made

    def same(self, other: Facts) -> bool:
        """Whether nothing else is known than of another's variables of the same numbers."""
        names = ("count", "excludes", "implies", "nogoods", "raising")
        if any(getattr(self, name) != getattr(other, name) for name in names):
            return False
        if self.delayed.keys() != other.delayed.keys():
            return False
        mine = [*self.definition, *((t,) for t in self.delayed.values())]
        theirs = [*other.definition, *((other.delayed[v],) for v in self.delayed)]
        return all(a is b or _alike(a, b) for a, b in zip(mine, theirs, strict=True))

    def new(
        self,
        count: int,
        literals: Literals,
        definition: Sequence[Term] | None = None,
        raising: Sequence[Literals] = (),
    ) -> int:
        """Make a variable that is above 0 only where `literals` hold."""
        index = len(self.count)
        self.count.append(count)
        self.definition.append(None if definition is None else tuple(definition))
        self.raising.append(tuple(raising))
        self.excludes.append(0)
        self.implies.append(literals.needs)
        self.implied.append(0)
        for other in members(literals.needs):
            self.implied[other] |= 1 << index
        self.exclude(index, literals.lacks)
        self.live |= 1 << index
        return index

    def exclude(self, index: int, others: int) -> None:
        """Note that a variable is never above 0 with any of a set."""
        self.excludes[index] |= others
        for other in members(others & self.live):
            self.excludes[other] |= 1 << index

    def forbid(self, elements: Sequence[int]) -> None:
        """Note that not all of two or three variables are above 0, nor of those which these alone raise."""
        if len(elements) == 2:
            self._forbid_pair(*elements)
            return
        pending = [tuple(elements)]
        while pending:
            triple = pending.pop()
            if triple[1:] in self.nogoods.get(triple[0], ()):
                continue
            for i, one in enumerate(triple):
                rest = triple[:i] + triple[i + 1 :]
                self.nogoods[one].append((rest[0], rest[1]))
                pending += [(*rest, above) for above in self._raised(one, rest)]

    def _forbid_pair(self, one: int, other: int) -> None:
        for a, b in ((one, other), (other, one)):
            together = 1 << a
            for index in range(a + 1, len(self.raising)):
                causes = self.raising[index]
                if causes and all(
                    c.needs & together or c.needs & self.excludes[b] or c.lacks & self.implies[b]
                    for c in causes
                ):
                    together |= 1 << index
            self.exclude(b, together & ~(1 << b))

    def _raised(self, variable: int, others: tuple[int, ...]) -> list[int]:
        """Variables that are above 0 only where this one is or one of the others is not."""
        return [
            index
            for index in range(variable + 1, len(self.raising))
            if (self.raising[index] and self.lifts(self.raising[index], variable, others))
        ]

    @staticmethod
    def lifts(causes: Sequence[Literals], variable: int, others: tuple[int, ...]) -> bool:
        """Whether one of some causes needs a variable, and each does or lacks one of others."""
        needing = [c.needs >> variable & 1 for c in causes]
        return any(needing) and all(
            n or any(c.lacks >> v & 1 for v in others) for n, c in zip(needing, causes, strict=True)
        )

    def closed(self, up: int, down: int, clauses: tuple[int, ...] = ()) -> Literals:
        """Literals with all that they imply."""
        needs, lacks = up, down
        for one in members(up):
            needs |= self.implies[one]
        for one in members(needs):
            lacks |= self.excludes[one]
            for other, third in self.nogoods.get(one, ()):
                if needs >> other & 1:
                    lacks |= 1 << third
        for one in members(down):
            lacks |= self.implied[one]
        return Literals(needs, lacks, clauses)


def _alike(one: tuple[Term, ...] | None, other: tuple[Term, ...] | None) -> bool:
    if one is None or other is None or len(one) != len(other):
        return False
    return all(
        (a.variables, a.weights, a.first) == (b.variables, b.weights, b.first)
        and np.array_equal(a.table, b.table)
        for a, b in zip(one, other, strict=True)
    )


def members(bits: int) -> list[int]:
    """The elements of a bit set."""
    if not bits:
        return []
    if bits.bit_count() < 8:
        found = []
        while bits:
            low = bits & -bits
            found.append(low.bit_length() - 1)
            bits ^= low
        return found
    data = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little")).tolist()


def bit_set(elements: Iterable[int]) -> int:
    """The bit set of some variables."""
    bits = 0
    for element in elements:
        bits |= 1 << int(element)
    return bits
