"""What variables can be in each row of a baked program: intervals, by the values of a count.

In a baked checkpoint every field of a program row is a function of a count and of what it is read with, so a
case is one of their values. From there intervals follow through the definitions: that a row's constant
operand leaves most bits of a result 0 shows in them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from qgpu.backends.prover.counter import cases
from qgpu.backends.prover.facts import Cause, Facts, Term

MOST = 2048
"""The most cases that are told apart."""

PATTERNS = 32
"""The most different ways in which causes are clipped; a program's rows use a unit in few."""

Interval = tuple[np.ndarray, np.ndarray]
"""The lowest and the highest value in each case, int64."""


class Rows:
    """The intervals of variables.

    Attributes:
        roots: variables of which each case is a value.
    """

    def __init__(self, facts: Facts, roots: Sequence[int], values: np.ndarray) -> None:
        """`values` is [case, root]."""
        self.roots = tuple(roots)
        self._facts, self._count = facts, len(values)
        self._known: dict[int, Interval] = {
            root: (values[:, i], values[:, i]) for i, root in enumerate(self.roots)
        }

    def variable(self, variable: int) -> Interval:
        """What a variable can be."""
        pending = [variable]
        while pending:
            last = pending[-1]
            missing = [v for v in self._reads(last) if v not in self._known]
            pending += missing
            if not missing:
                self._known[pending.pop()] = self._made(last)
        return self._known[variable]

    def term(self, term: Term) -> Interval:
        """What a term can be: of its table, what its form reaches."""
        low = high = np.full(self._count, -term.first)
        for clique in self._cliques(term):
            parts = [(weight, *self.variable(variable)) for variable, weight in clique]
            # One of them at most is not 0, and they have one sign.
            farthest = np.max if clique[0][1] > 0 else np.min
            least, most = (farthest([w * ends[i] for w, *ends in parts], axis=0) for i in (0, 1))
            low, high = low + np.minimum(least, most), high + np.maximum(least, most)
        last = len(term.table) - 1
        spans, place = np.unique(
            np.stack([low.clip(0, last), high.clip(0, last)]), axis=1, return_inverse=True
        )
        reached = [term.table[a : b + 1] for a, b in spans.T.tolist()]
        found = np.array([(values.min(), values.max()) for values in reached])[place.ravel()]
        return np.floor(found[:, 0]).astype(np.int64), np.ceil(found[:, 1]).astype(np.int64)

    def clipped(self, causes: Sequence[Cause]) -> list[list[Cause]] | None:
        """Causes of integer terms as they are in some of the cases, without those that add nothing there.

        None where the cases differ too much.
        """
        most = np.stack([self.term(cause.term)[1] for cause in causes])
        patterns = np.unique(most, axis=1)
        if patterns.shape[1] > PATTERNS:
            return None
        return [
            [
                dataclasses.replace(cause, term=_at_most(cause.term, high))
                for cause, high in zip(causes, highest, strict=True)
                if high > 0 or cause.term.lowers
            ]
            for highest in patterns.T.tolist()
        ]

    def _cliques(self, term: Term) -> list[list[tuple[int, int]]]:
        """The variables and weights of a term; of those together with one sign one at most is not 0."""
        cliques: list[list[tuple[int, int]]] = []
        for variable, weight in zip(term.variables, term.weights, strict=True):
            apart = self._facts.excludes[variable]
            fitting = (
                c for c in cliques if (c[0][1] > 0) == (weight > 0) and all(apart >> v & 1 for v, _ in c)
            )
            clique = next(fitting, None)
            if clique is None:
                cliques.append(clique := [])
            clique.append((variable, weight))
        return cliques

    def _reads(self, variable: int) -> Iterator[int]:
        if variable not in self._known:
            yield from (v for term in self._facts.definition[variable] or () for v in term.variables)

    def _made(self, variable: int) -> Interval:
        """What a variable's definition makes of what it reads, which is known."""
        if variable in self._known:
            return self._known[variable]
        count, definition = self._facts.count[variable], self._facts.definition[variable]
        if definition is None:
            return np.zeros(self._count, np.int64), np.full(self._count, count)
        terms = [self.term(term) for term in definition]
        low, high = (sum((t[i] for t in terms), np.zeros(self._count, np.int64)) for i in (0, 1))
        return low.clip(0, count), high.clip(0, count)


def program_rows(facts: Facts) -> list[Rows]:
    """Cases by each count that definitions read, where these are not too many; one is the program's."""
    if "rows" not in facts.found:
        facts.found["rows"] = list(_program_rows(facts))
    return facts.found["rows"]


def _program_rows(facts: Facts) -> Iterator[Rows]:
    beside: dict[int, set[int]] = {count: set() for count in facts.counts}
    terms = (term for definition in facts.definition for term in definition or ())
    for term in terms:
        for count in beside.keys() & set(term.variables):
            beside[count] |= set(term.variables)
    for roots in map(sorted, filter(None, beside.values())):
        values = cases(facts, roots)
        if values is not None and len(values) <= MOST:
            yield Rows(facts, roots, values)


def _at_most(term: Term, limit: int) -> Term:
    return dataclasses.replace(term, table=np.minimum(term.table, limit))
