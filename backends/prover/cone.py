"""Bounds of a sum over its cone of bits, by splitting cases.

Intervals are too coarse where terms exclude each other: a sum of conjunctions of which one holds looks as
large as their number. Here a sum of functions of linear forms is bounded by branch and bound: a case is
split where a function changes or at a variable; linear bounds, exclusions and implications are propagated; a
case is left as soon as it cannot exceed what another has reached; terms whose open variables have nothing to
do with each other are bounded by themselves. Out of nodes, the bound so far (still a bound) is returned.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.backends.prover.facts import Facts, Term, bit_set, members

NODES = 2000
"""Cases after which a bound is returned as it is."""

DEPTH = 100
"""Cases within cases after which a bound is returned as it is."""


@dataclass
class _Case:
    """Bounds of each variable's n, and of v of the terms that were split."""

    low: list[int]
    high: list[int]
    spans: dict[int, tuple[int, int]]

    def copy(self) -> _Case:
        return _Case(self.low.copy(), self.high.copy(), self.spans.copy())


@dataclass
class _Open:
    """Terms of a case that are functions of one integer, and what they add up to at most."""

    most: float
    terms: tuple[int, ...]
    free: tuple[tuple[int, int], ...]


class Cone:
    """The variables that some terms read, with what is known about them."""

    def __init__(self, terms: Sequence[Term], facts: Facts) -> None:
        variables = sorted({v for term in terms for v in term.variables})
        index = {variable: i for i, variable in enumerate(variables)}
        self.terms = [([index[v] for v in t.variables], list(t.weights), t) for t in terms]
        self.count = [facts.count[v] for v in variables]
        within = bit_set(variables)
        local = lambda bits: [index[v] for v in members(bits & within)]  # noqa: E731
        self.excludes = [local(facts.excludes[v]) for v in variables]
        for i, others in enumerate(self.excludes):
            for other in others:
                if i not in self.excludes[other]:
                    self.excludes[other].append(i)
        self.implies = [local(facts.implies[v]) for v in variables]
        self.implied: list[list[int]] = [[] for _ in variables]
        for i, others in enumerate(self.implies):
            for other in others:
                self.implied[other].append(i)
        self.near = [[*a, *b, *c] for a, b, c in zip(self.excludes, self.implies, self.implied, strict=True)]
        self.nested: dict[tuple[int, int], tuple[int, list[tuple[int, int]]]] = {}
        self.nodes = self.depth = 0

    def maximum(self, sign: int = 1) -> float:
        """An upper bound of sign * sum of the terms: with sign -1, minus a lower bound."""
        self.nodes = 0
        root = _Case([0] * len(self.count), self.count.copy(), {})
        return self._solve(root, range(len(self.terms)), sign)

    def _solve(self, case: _Case, terms: Sequence[int], sign: int) -> float:
        total, opened = self._bound(case, terms, sign)
        if total == -np.inf or not opened:
            return total
        parts = self._components(opened)
        if len(parts) > 1:
            return total + sum(self._part(case, part, sign) for part in parts)
        return total + self._part(case, opened, sign)

    def _components(self, opened: list[_Open]) -> list[list[_Open]]:
        """Groups of terms whose open variables have nothing to do with each other."""
        owner: dict[int, int] = {}
        parts: dict[int, list[_Open]] = {}
        for number, group in enumerate(opened):
            near = {place for one, _ in group.free for place in (one, *self.near[one])}
            merged = [group]
            for part in {owner[place] for place in near if place in owner}:
                merged += parts.pop(part)
            parts[number] = merged
            for member in merged:
                for place, _ in member.free:
                    owner[place] = number
        return list(parts.values())

    def _part(self, case: _Case, opened: list[_Open], sign: int) -> float:
        """The largest sum of terms that hang together."""
        bound = sum(group.most for group in opened)
        self.nodes += 1
        if self.nodes > NODES or self.depth > DEPTH or (len(opened) == 1 and not self._related(opened[0])):
            return bound
        terms = [term for group in opened for term in group.terms]
        best = -np.inf
        self.depth += 1
        for made in self._split(case, opened, sign):
            total, left = self._bound(made, terms, sign)
            if total + sum(group.most for group in left) > best:
                best = max(best, self._solve(made, terms, sign))
        self.depth -= 1
        return min(best, bound)

    def _related(self, group: _Open) -> bool:
        """Whether some open variables of a function have to do with each other."""
        free = {place for place, _ in group.free}
        return any(not free.isdisjoint(self.near[place]) for place in free)

    def _range(self, case: _Case, term: int) -> tuple[int, int]:
        places, weights, _ = self.terms[term]
        low, high = _ends(case, zip(places, weights, strict=True))
        for other, (first, last) in case.spans.items():
            if other == term:
                low, high = max(low, first), min(high, last)
                continue
            factor, rest = self._within(term, other)
            if factor:
                below, above = _ends(case, rest)
                ends = factor * first, factor * last
                low, high = max(low, min(ends) + below), min(high, max(ends) + above)
            factor, rest = self._within(other, term)
            if factor > 0:
                below, above = _ends(case, rest)
                low, high = max(low, -((above - first) // factor)), min(high, (last - below) // factor)
        return low, high

    def _within(self, term: int, other: int) -> tuple[int, list[tuple[int, int]]]:
        """f and the rest where a term's v is f times another's v plus the rest; (0, []) where it is not."""
        found = self.nested.get((term, other))
        if found is None:
            own = dict(zip(*self.terms[term][:2], strict=True))
            inner = dict(zip(*self.terms[other][:2], strict=True))
            ratios = {own.get(place, 0) / weight for place, weight in inner.items()}
            factor = next(iter(ratios)) if len(ratios) == 1 else 0
            rest = [(p, w) for p, w in own.items() if p not in inner]
            found = (int(factor), rest) if factor == int(factor) else (0, [])
            self.nested[term, other] = found
        return found

    def _bound(self, case: _Case, terms: Sequence[int], sign: int) -> tuple[float, list[_Open]]:
        """What the decided terms of a case add up to, and groups of those that are not decided in it.

        Terms that differ only in what the case has fixed are functions of one integer and bounded together.
        """
        total, groups = 0.0, defaultdict(list)
        low_of, high_of = case.low, case.high
        for term in terms:
            places, weights, data = self.terms[term]
            low, high = self._range(case, term)
            if low > high:
                return -np.inf, []
            part = data.table[low - data.first : high - data.first + 1]
            if low == high or (part[0] == part[-1] and (part == part[0]).all()):
                total += sign * part[0]
                continue
            free, fixed = [], 0
            for p, w in zip(places, weights, strict=True):
                if low_of[p] != high_of[p]:
                    free.append((p, w))
                else:
                    fixed += w * low_of[p]
            groups[tuple(free), len(part), low - fixed].append((term, sign * part))
        opened: list[_Open] = []
        for (free, _, _), found in groups.items():
            joint = found[0][1]
            for _, part in found[1:]:
                joint = joint + part
            most = float(joint.max())
            if joint.min() == most:
                total += most
            else:
                opened.append(_Open(most, tuple(term for term, _ in found), free))
        opened.sort(key=lambda group: -group.most)
        return total, opened

    def _split(self, case: _Case, opened: list[_Open], sign: int) -> list[_Case]:
        """Two cases, the likelier to be large first: at a variable of most terms, or where a term changes."""
        uses = Counter(place for group in opened for place, _ in group.free)
        place, often = uses.most_common(1)[0]
        if often > 1 and (self.count[place] == 1 or 4 * often > len(opened)):
            middle = (case.low[place] + case.high[place]) // 2
            spans = ((middle + 1, case.high[place]), (case.low[place], middle))
            made = [self._with_variable(case, place, *span) for span in spans]
        else:
            term = opened[0].terms[0]
            made = [self._with_term(case, term, *span) for span in self._halves(case, term, sign)]
        return [one for one in made if one is not None]

    def _halves(self, case: _Case, term: int, sign: int) -> list[tuple[int, int]]:
        low, high = self._range(case, term)
        data = self.terms[term][2]
        part = sign * data.table[low - data.first : high - data.first + 1]
        change = low + int(np.argmax(part != part[0]))
        halves = [(low, change - 1), (change, high)]
        return halves[::-1] if part[0] <= part[-1] else halves

    def _with_variable(self, case: _Case, place: int, low: int, high: int) -> _Case | None:
        made = case.copy()
        made.low[place], made.high[place] = low, high
        return made if self._propagate(made, case) else None

    def _with_term(self, case: _Case, term: int, first: int, last: int) -> _Case | None:
        made = case.copy()
        made.spans[term] = first, last
        return made if self._propagate(made, case) else None

    def _propagate(self, case: _Case, before: _Case) -> bool:
        """Tighten a case's bounds, of which those before were tight; False where it cannot be."""
        low, high = before.low, before.high
        while True:
            for term, (first, last) in case.spans.items():
                if not self._tighten(case, term, first, last):
                    return False
            now = zip(case.low, low, case.high, high, strict=True)
            moved = [place for place, (a, b, c, d) in enumerate(now) if a != b or c != d]
            if not moved:
                return True
            low, high = case.low.copy(), case.high.copy()
            for place in moved:
                if low[place] > high[place]:
                    return False
                self._relate(case, place, low[place], high[place])

    def _relate(self, case: _Case, place: int, low: int, high: int) -> None:
        if low > 0:
            for other in self.excludes[place]:
                case.high[other] = 0
            for other in self.implies[place]:
                case.low[other] = max(case.low[other], 1)
        if high == 0:
            for other in self.implied[place]:
                case.high[other] = 0

    def _tighten(self, case: _Case, term: int, first: int, last: int) -> bool:
        """Bound the variables of a term whose v is between two numbers."""
        places, weights, _ = self.terms[term]
        low, high = _ends(case, zip(places, weights, strict=True))
        if low > last or high < first:
            return False
        for place, weight in zip(places, weights, strict=True):
            free, size = case.high[place] - case.low[place], abs(weight)
            raised, lowered = max(0, free - (high - first) // size), max(0, free - (last - low) // size)
            if weight < 0:
                raised, lowered = lowered, raised
            case.low[place] += raised
            case.high[place] -= lowered
            if case.low[place] > case.high[place]:
                return False
            if raised or lowered:
                return self._tighten(case, term, first, last)
        return True


def _ends(case: _Case, terms: Sequence[tuple[int, int]] | zip) -> tuple[int, int]:
    """Bounds of a linear form."""
    low = high = 0
    for place, weight in terms:
        if weight > 0:
            low += weight * case.low[place]
            high += weight * case.high[place]
        else:
            low += weight * case.high[place]
            high += weight * case.low[place]
    return low, high
