"""Whether a case can be, the definitions of its variables taken into account.

`Cone` knows of two variables at most whether they exclude or imply each other. Where that is not enough, the
terms that make up a variable join the case, and of their variables in turn, some half layers deep. A case is
refuted by propagating bounds through these sums and splitting variables: a constraint solver for finite
domains, with a limit after which nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np

from qgpu.backends.prover.facts import Facts, Term, bit_set, members
from qgpu.backends.prover.solver import (
    FEASIBLE,
    REFUTED,
    Problem,
    close,
    search,
    set_bounds,
)

CASES = 400
"""Cases after which nothing is refuted."""

DEPTHS = (0, 1, 2)
"""How deep definitions are looked at, one after the other."""

FAR = 2.0**60
"""Beyond all that a sum can be."""

Domain = tuple[np.ndarray, np.ndarray]
"""The lowest and the highest n of each variable of a search, int64."""


class Search:
    """A case: sums that must lie in a range, and the definitions of the variables that they read.

    Args:
        facts: what is known.
        sums: terms, and the range of their sum.
        depth: how deep definitions are looked at.
        roots: more variables whose definitions are looked at.
    """

    def __init__(
        self,
        facts: Facts,
        sums: Sequence[tuple[Sequence[Term], float, float]] = (),
        depth: int = 1,
        roots: Iterable[int] = (),
    ) -> None:
        self.facts = facts
        scope = dict.fromkeys(v for terms, _, _ in sums for t in terms for v in t.variables)
        scope |= dict.fromkeys(roots)
        defined: list[int] = []
        layer = list(scope)
        for _ in range(depth):
            new: dict[int, None] = {}
            for variable in layer:
                terms = facts.definition[variable]
                if terms is None:
                    continue
                defined.append(variable)
                new |= dict.fromkeys(v for t in terms for v in t.variables if v not in scope)
            scope |= new
            layer = list(new)
        self.variables = sorted(scope)
        self.index = {variable: i for i, variable in enumerate(self.variables)}
        parts = [list(terms) for terms, _, _ in sums] + [self._definition(variable) for variable in defined]
        ranges = [(low, high) for _, low, high in sums] + [(0, 0)] * len(defined)
        self.problem = self._problem(parts, ranges).packed()

    def _definition(self, variable: int) -> list[Term]:
        """Terms of which the sum is 0: the definition's, and last the variable itself."""
        own = -np.arange(self.facts.count[variable] + 1)
        return [*(self.facts.definition[variable] or ()), Term((variable,), (1,), 0, own)]

    def _problem(self, sums: Sequence[Sequence[Term]], ranges: Sequence[tuple[float, float]]) -> Problem:
        terms = [term for one in sums for term in one]
        local = [[self.index[v] for v in term.variables] for term in terms]
        parts = [0, *accumulate(len(one) for one in sums)]
        using: list[list[int]] = [[] for _ in self.variables]
        for number in range(len(sums)):
            for i in {i for places in local[parts[number] : parts[number + 1]] for i in places}:
                using[i].append(number)
        return Problem(
            parts=parts,
            least=[int(max(low, -FAR)) for low, _ in ranges],
            most=[int(min(high, FAR)) for _, high in ranges],
            variables=local,
            weights=[term.weights for term in terms],
            tables=[term.table for term in terms],
            first=[term.first for term in terms],
            using=using,
            count=[self.facts.count[v] for v in self.variables],
            **self._relations(),
        )

    def _relations(self) -> dict[str, list[list[int]]]:
        facts, index = self.facts, self.index
        within = bit_set(self.variables)
        excludes: list[dict[int, None]] = [{} for _ in self.variables]
        implies: list[list[int]] = []
        implied: list[list[int]] = [[] for _ in self.variables]
        for i, variable in enumerate(self.variables):
            for other in members(facts.excludes[variable] & within):
                excludes[i][index[other]] = excludes[index[other]][i] = None
            implies.append([index[v] for v in members(facts.implies[variable] & within)])
            for other in implies[i]:
                implied[other].append(i)
        pairs = [
            [i for a, b in facts.pairs(variable, within) for i in (index[a], index[b])]
            for variable in self.variables
        ]
        apart = [list(others) for others in excludes]
        return {"excludes": apart, "implies": implies, "implied": implied, "nogoods": pairs}

    def start(self, low: dict[int, int] | None = None, high: dict[int, int] | None = None) -> Domain | None:
        """The case in which some variables are bounded, all consequences drawn; None where it cannot be."""
        lows = np.zeros(len(self.variables), np.int64)
        highs = np.array([self.facts.count[v] for v in self.variables], dtype=np.int64)
        for bounds, given in ((lows, low or {}), (highs, high or {})):
            for variable, bound in given.items():
                if variable in self.index:
                    bounds[self.index[variable]] = bound
        return (lows, highs) if close(self.problem, lows, highs) else None

    def refuted(self, domain: Domain | None, cases: int = CASES) -> bool:
        """Whether no case of a domain can be; False also where that is not known."""
        return self.outcome(domain, cases) == REFUTED

    def outcome(self, domain: Domain | None, cases: int = CASES) -> int:
        """What comes of a search in a domain: REFUTED, FEASIBLE or GIVEN_UP."""
        return REFUTED if domain is None else int(search(self.problem, *domain, cases))

    def fixed(self, domain: Domain, variables: Iterable[int]) -> Domain:
        """A domain in which bits are set of which the other value cannot be."""
        lows, highs = domain[0].copy(), domain[1].copy()
        for variable in variables:
            i = self.index.get(variable)
            if i is None or lows[i] == highs[i] or highs[i] != 1:
                continue
            for value in (0, 1):
                if not set_bounds(self.problem, i, value, value, lows.copy(), highs.copy()):
                    set_bounds(self.problem, i, 1 - value, 1 - value, lows, highs)
                    break
        return lows, highs

    def bounds(self, term: Term, domain: Domain) -> tuple[int, int]:
        """What a term, whose variables are all among the search's, can be in a case."""
        low = high = -term.first
        for v, w in zip(term.variables, term.weights, strict=True):
            ends = w * int(domain[0][self.index[v]]), w * int(domain[1][self.index[v]])
            low, high = low + min(ends), high + max(ends)
        values = term.table[low : high + 1]
        return int(values.min()), int(values.max())


def at_most(facts: Facts, terms: Sequence[Term], limit: int, cases: int = CASES) -> bool:
    """Whether a sum of integer terms is shown to be at most `limit`."""
    for depth in DEPTHS:
        search = Search(facts, [(terms, limit + 1, float("inf"))], depth)
        found = search.outcome(search.start(), cases)
        if found != FEASIBLE:
            return found == REFUTED
    return False
