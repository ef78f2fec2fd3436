"""What is known of all channels in a pass: ranges, definitions, and which exclude or imply which.

A variable is what a place of the residual stream, or a bit that a head reads, holds from one half layer on
until something is added to it. Sets of variables are integers used as bit sets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, reduce
from itertools import permutations
from typing import Any

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

    @cached_property
    def positive_from(self) -> int:
        """From which v on it is above 0."""
        stops = np.flatnonzero(self.table <= 0)
        return self.first + (int(stops[-1]) + 1 if len(stops) else 0)

    @cached_property
    def lowers(self) -> bool:
        """Whether it is ever below 0."""
        return bool((self.table < 0).any())


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

    def with_more(self, other: Literals) -> Literals:
        """Both."""
        return Literals(self.needs | other.needs, self.lacks | other.lacks, self.clauses + other.clauses)

    def apart(self, other: Literals) -> bool:
        """Whether both cannot be."""
        if self.needs & other.lacks or other.needs & self.lacks:
            return True
        return any(not c & ~other.lacks for c in self.clauses) or any(
            not c & ~self.lacks for c in other.clauses
        )


def common(literals: Sequence[Literals]) -> Literals:
    """What has to be in each of several cases; nothing where there are none."""
    if not literals:
        return Literals()
    clauses = [c for c in literals[0].clauses if all(c in other.clauses for other in literals)]
    return Literals(
        reduce(int.__and__, (one.needs for one in literals)),
        reduce(int.__and__, (one.lacks for one in literals)),
        tuple(clauses),
    )


def either(literals: Sequence[Literals]) -> Literals:
    """What is known where one of several cases is: what they have in common, and one thing of each.

    Of each case that is the variable it needs which the fewest others need.
    """
    shared, uses = common(literals), Counter(v for one in literals for v in members(one.needs))
    alone = [members(one.needs & ~shared.needs) for one in literals]
    if not literals or not all(alone):
        return shared
    clause = bit_set(min(needed, key=lambda v: uses[v]) for needed in alone)
    return shared.with_more(Literals(clauses=(clause,)))


@dataclass(frozen=True, eq=False)
class Cause:
    """A term that is added to a variable.

    Attributes:
        term: what it is.
        literals: what has to be where it is not 0.
        cases: one of these holds where it is not 0; empty where that is not known.
        source: which neurons or column of a head it is of; (-1, channel) is what a channel held.
    """

    term: Term
    literals: Literals
    source: tuple[int, ...] = ()
    cases: tuple[Literals, ...] = ()

    def apart(self, other: Cause) -> bool:
        """Whether not both terms are other than 0."""
        if self.literals.apart(other.literals):
            return True
        return _all_apart(self.cases, other.literals) or _all_apart(other.cases, self.literals)

    def split(self) -> list[Literals]:
        """What holds where it is not 0, case by case."""
        return [case.with_more(self.literals) for case in self.cases] or [self.literals]


def _all_apart(cases: Sequence[Literals], literals: Literals) -> bool:
    return bool(cases) and all(case.apart(literals) for case in cases)


@dataclass
class Facts:
    """All variables, by number. Variable i is an integer n in 0..count[i].

    Attributes:
        count: the largest n.
        excludes: bit sets: never is n > 0 in both. Variables that are not live list older ones alone.
        implies, implied: bit sets: where n > 0 in the first, so it is in the second.
        clauses: of some variables, sets of which one is above 0 where the variable is.
        definition: n is the sum of these terms; None where a token or a memory's content gives it.
        raising: where n > 0, one of these holds; empty where that is not known.
        needing: bit sets: the variables of which a cause, in `raising`, needs this one.
        nogoods: by two variables, the bit set of those such that not all three are above 0.
        partners: by variable, the bit set of those with which it has such a set.
        delayed: variables that are 1 exactly where a linear form of the pass before was at least a number.
        tokens: of each variable of the embedding, the ids of the tokens for which it is above 0.
        read: bits by channel and layer that read them into it.
        counts: what channels hold into which a counter is read.
        found: what was worked out of these facts, by its name; a copy begins with nothing.
        live: the variables that the residual stream, or a half layer that is looked at, holds.
    """

    count: list[int] = field(default_factory=list)
    excludes: list[int] = field(default_factory=list)
    implies: list[int] = field(default_factory=list)
    implied: list[int] = field(default_factory=list)
    clauses: dict[int, tuple[int, ...]] = field(default_factory=dict)
    definition: list[tuple[Term, ...] | None] = field(default_factory=list)
    raising: list[tuple[Literals, ...]] = field(default_factory=list)
    needing: list[int] = field(default_factory=list)
    nogoods: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    partners: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    delayed: dict[int, Term] = field(default_factory=dict)
    tokens: dict[int, np.ndarray] = field(default_factory=dict)
    read: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    counts: tuple[int, ...] = ()
    found: dict[str, Any] = field(default_factory=dict)
    live: int = 0

    def copy(self) -> Facts:
        """The same facts, to which others are added than to these."""
        made = Facts(**{f.name: getattr(self, f.name) for f in fields(self)})
        for name in ("count", "excludes", "implies", "implied", "definition", "raising", "needing"):
            setattr(made, name, list(getattr(self, name)))
        for name in ("clauses", "delayed", "tokens", "read"):
            setattr(made, name, dict(getattr(self, name)))
        made.nogoods = defaultdict(dict, {v: dict(sets) for v, sets in self.nogoods.items()})
        made.partners = defaultdict(int, self.partners)
        made.found = {}
        return made

    def same(self, other: Facts) -> bool:
        """Whether nothing else is known than of another's variables of the same numbers."""
        names = ("count", "excludes", "implies", "clauses", "nogoods", "raising")
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
        if literals.clauses:
            self.clauses[index] = literals.clauses
        self.needing.append(0)
        for other in members(reduce(int.__or__, (cause.needs for cause in raising), 0)):
            self.needing[other] |= 1 << index
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
            if self.nogoods[triple[0]].get(triple[1], 0) >> triple[2] & 1:
                continue
            for one, other, third in permutations(triple):
                self.nogoods[one][other] = self.nogoods[one].get(other, 0) | 1 << third
                self.partners[one] |= 1 << other
            for one, other, third in permutations(triple):
                if other < third:
                    pending += [(above, other, third) for above in self._raised(one, (other, third))]

    def apart_with(self, variable: int, needs: int) -> int:
        """The variables that are 0 where one and all of a set are above 0, because of triples."""
        found = 0
        for other in members(self.partners.get(variable, 0) & needs):
            found |= self.nogoods[variable][other]
        return found

    def pairs(self, variable: int, within: int) -> Iterator[tuple[int, int]]:
        """Pairs of a set of variables that are never above 0 both, where one is."""
        for other in members(self.partners.get(variable, 0) & within):
            yield from (
                (other, third) for third in members(self.nogoods[variable][other] & within) if other < third
            )

    def _forbid_pair(self, one: int, other: int) -> None:
        for a, b in ((one, other), (other, one)):
            together, reached = 1 << a, self.needing[a]
            while reached:
                index = (reached & -reached).bit_length() - 1
                reached ^= 1 << index
                if self._raised_apart(index, together, b):
                    together |= 1 << index
                    reached |= self.needing[index]
            self.exclude(b, together & ~(1 << b))

    def _raised_apart(self, index: int, together: int, other: int) -> bool:
        """Whether each cause of a variable needs one of a set or cannot be with another variable."""
        excluded, implied = together | self.excludes[other], self.implies[other]
        return all(c.needs & excluded or c.lacks & implied for c in self.raising[index])

    def _raised(self, variable: int, others: tuple[int, int]) -> list[int]:
        """Variables that one raises and that are never above 0 with both others."""
        return [
            index
            for index in members(self.needing[variable])
            if index not in others and self.contradict(self.raising[index], others)
        ]

    def contradict(self, causes: Sequence[Literals], others: tuple[int, int]) -> bool:
        """Whether each of some causes cannot be where two variables are above 0."""
        either, apart = 1 << others[0] | 1 << others[1], self.nogoods[others[0]].get(others[1], 0)
        return all(c.lacks & either or c.needs & apart for c in causes)

    def never_with(self, causes: Sequence[Literals], part: int, other: int) -> int:
        """The variables that are 0 where another is above 0 and one of some causes holds."""
        found = self.nogoods[part][other]
        for cause in causes:
            if not cause.lacks >> other & 1:
                found &= cause.lacks | self.apart_with(other, cause.needs)
        return found

    def closed(self, up: int, down: int, clauses: tuple[int, ...] = ()) -> Literals:
        """Literals with all that they imply."""
        needs, lacks = up, down
        for one in members(up):
            needs |= self.implies[one]
        for one in members(needs):
            lacks |= self.excludes[one] | self.apart_with(one, needs)
            clauses += self.clauses.get(one, ())
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
