"""Bounds of a sum over its cone of bits, by splitting cases.

Intervals are too coarse where terms exclude each other: a sum of conjunctions of which one holds looks as
large as their number. Here a sum of functions of linear forms is bounded by branch and bound: a case is
split where a function changes or at a channel; linear bounds, exclusions and implications are propagated; a
case is left as soon as it cannot exceed what another has reached. Out of nodes, the bound found so far (still
a bound) is returned.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NODES = 120
"""Cases after which a bound is returned as it is."""


@dataclass(frozen=True)
class Term:
    """A function of v = sum of weights[i] * n[places[i]] over the channels' integers n.

    Attributes:
        places, weights: int64, each place once, no weight 0.
        first: the value of v at table[0].
        table: float64, the function's values from `first` on, over all that v can be.
    """

    places: np.ndarray
    weights: np.ndarray
    first: int
    table: np.ndarray


@dataclass
class _Case:
    """Bounds of each channel's n, and of v of the terms that were split."""

    low: list[int]
    high: list[int]
    spans: dict[int, tuple[int, int]]

    def copy(self) -> _Case:
        return _Case(self.low.copy(), self.high.copy(), self.spans.copy())


class Cone:
    """The channels that some terms read, with what is known about them."""

    def __init__(
        self, terms: Sequence[Term], count: np.ndarray, excludes: np.ndarray, implies: np.ndarray
    ) -> None:
        self.places = np.unique(np.concatenate([np.zeros(0, np.int64), *(t.places for t in terms)]))
        index = {int(place): i for i, place in enumerate(self.places)}
        self.terms = [([index[int(p)] for p in t.places], t.weights.tolist(), t) for t in terms]
        self.count = count[self.places].tolist()
        self.excludes = _lists(excludes[np.ix_(self.places, self.places)])
        self.nested: dict[tuple[int, int], tuple[int, list[tuple[int, int]]]] = {}
        within = implies[np.ix_(self.places, self.places)]
        self.implies, self.implied = _lists(within), _lists(within.T)

    def maximum(self, sign: int = 1) -> float:
        """An upper bound of sign * sum of the terms: with sign -1, minus a lower bound."""
        root = _Case([0] * len(self.count), self.count.copy(), {})
        stack, best, nodes = [root], -np.inf, 0
        while stack:
            case = stack.pop()
            bound, open_terms = self._bound(case, sign)
            if bound <= best:
                continue
            nodes += 1
            if len(open_terms) <= 1:
                best = bound
                continue
            if nodes > NODES:
                rest = (self._bound(c, sign)[0] for c in stack)
                return max(best, bound, *rest)
            stack += self._split(case, open_terms, sign)
        return best

    def _range(self, case: _Case, term: int) -> tuple[int, int]:
        low = high = 0
        places, weights, _ = self.terms[term]
        for place, weight in zip(places, weights, strict=True):
            if weight > 0:
                low += weight * case.low[place]
                high += weight * case.high[place]
            else:
                low += weight * case.high[place]
                high += weight * case.low[place]
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

    def _bound(self, case: _Case, sign: int) -> tuple[float, list[tuple[int, ...]]]:
        """The bound of a case, and the groups of terms that are not decided in it.

        Terms that differ only in what the case has fixed are functions of one integer and bounded together.
        """
        total, groups = 0.0, defaultdict(list)
        for term, (places, weights, data) in enumerate(self.terms):
            low, high = self._range(case, term)
            if low > high:
                return -np.inf, []
            part = data.table[low - data.first : high - data.first + 1]
            if part[0] == part[-1] and (part == part[0]).all():
                total += sign * part[0]
                continue
            free = [(p, w) for p, w in zip(places, weights, strict=True) if case.low[p] != case.high[p]]
            settled = [(p, w) for p, w in zip(places, weights, strict=True) if case.low[p] == case.high[p]]
            fixed = sum(w * case.low[p] for p, w in settled)
            groups[tuple(free), len(part), low - fixed].append((term, sign * part))
        opened: list[tuple[float, tuple[int, ...]]] = []
        for members in groups.values():
            joint = members[0][1]
            for _, part in members[1:]:
                joint = joint + part
            total += joint.max()
            if joint.min() != joint.max():
                opened.append((joint.max(), tuple(term for term, _ in members)))
        opened.sort(key=lambda group: -group[0])
        return total, [terms for _, terms in opened]

    def _split(self, case: _Case, opened: list[tuple[int, ...]], sign: int) -> list[_Case]:
        """Two cases, the likelier to be large last: at a channel of most terms, or where a term changes."""
        uses = Counter(
            place
            for terms in opened
            for term in terms
            for place in self.terms[term][0]
            if case.low[place] != case.high[place]
        )
        place, often = uses.most_common(1)[0]
        if often > 2 and 4 * often > sum(map(len, opened)):
            middle = (case.low[place] + case.high[place]) // 2
            spans = ((case.low[place], middle), (middle + 1, case.high[place]))
            made = [self._with_channel(case, place, *span) for span in spans]
        else:
            term = opened[0][0]
            made = [self._with_term(case, term, *span) for span in self._halves(case, term, sign)]
        return [one for one in made if one is not None]

    def _halves(self, case: _Case, term: int, sign: int) -> list[tuple[int, int]]:
        low, high = self._range(case, term)
        data = self.terms[term][2]
        part = sign * data.table[low - data.first : high - data.first + 1]
        change = low + int(np.argmax(part != part[0]))
        halves = [(low, change - 1), (change, high)]
        return halves if part[0] <= part[-1] else halves[::-1]

    def _with_channel(self, case: _Case, place: int, low: int, high: int) -> _Case | None:
        made = case.copy()
        made.low[place], made.high[place] = low, high
        return made if self._propagate(made) else None

    def _with_term(self, case: _Case, term: int, first: int, last: int) -> _Case | None:
        made = case.copy()
        made.spans[term] = first, last
        return made if self._propagate(made) else None

    def _propagate(self, case: _Case) -> bool:
        """Tighten a case's bounds until nothing changes; False where it cannot be."""
        while True:
            before = case.low.copy(), case.high.copy()
            for term, (first, last) in case.spans.items():
                if not self._tighten(case, term, first, last):
                    return False
            for place, (low, high) in enumerate(zip(case.low, case.high, strict=True)):
                if low > high:
                    return False
                self._relate(case, place, low, high)
            if before == (case.low, case.high):
                return True

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
        """Bound the channels of a term whose v is between two numbers."""
        places, weights, _ = self.terms[term]
        low, high = 0, 0
        for place, weight in zip(places, weights, strict=True):
            ends = weight * case.low[place], weight * case.high[place]
            low, high = low + min(ends), high + max(ends)
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


def _ends(case: _Case, terms: list[tuple[int, int]]) -> tuple[int, int]:
    """Bounds of a linear form."""
    low = sum(w * (case.low[p] if w > 0 else case.high[p]) for p, w in terms)
    high = sum(w * (case.high[p] if w > 0 else case.low[p]) for p, w in terms)
    return low, high


def _lists(matrix: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(row).tolist() for row in matrix]
