"""What is necessary for a linear form to reach a number: variables above 0, at 0, or one of a set above 0."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from qgpu.backends.prover.facts import Facts, Literals, bit_set


def necessary(
    facts: Facts, variables: Sequence[int], weights: Sequence[int], first: float, last: float
) -> Literals:
    """What holds wherever first <= sum of weights * n <= last."""
    found = Literals()
    low = sum(w * facts.count[v] for v, w in zip(variables, weights, strict=True) if w < 0)
    high = sum(w * facts.count[v] for v, w in zip(variables, weights, strict=True) if w > 0)
    if first > low:
        found = _reaching(facts, variables, weights, first)
    if last < high:
        other = _reaching(facts, variables, [-w for w in weights], -last)
        found = found.with_more(other)
    return found


def _reaching(facts: Facts, variables: Sequence[int], weights: Sequence[int], first: float) -> Literals:
    """What holds wherever the form is at least `first`."""
    form = list(zip(variables, weights, strict=True))
    up, down, clauses = 0, 0, ()
    while True:
        literals = facts.closed(up, down, clauses)
        cliques = _cliques(facts, form, literals)
        high = _highest(form, cliques, literals)
        needed = [found for most, found in cliques if high - most < first]
        more = up | reduce(int.__or__, (found for found in needed if not found & (found - 1)), 0)
        less = down | bit_set(
            v for v, w in form if w < 0 and high + w < first and not literals.needs >> v & 1
        )
        clauses = tuple(found for found in needed if found & (found - 1))
        if (more, less) == (up, down):
            return facts.closed(up, down, clauses)
        up, down = more, less


def highest(facts: Facts, variables: Sequence[int], weights: Sequence[int], literals: Literals) -> int:
    """The most that a form can be where literals hold."""
    form = list(zip(variables, weights, strict=True))
    return _highest(form, _cliques(facts, form, literals), literals)


def _highest(form: list[tuple[int, int]], cliques: list[tuple[int, int]], literals: Literals) -> int:
    return sum(most for most, _ in cliques) + sum(w for v, w in form if w < 0 and literals.needs >> v & 1)


def _cliques(facts: Facts, form: list[tuple[int, int]], literals: Literals) -> list[tuple[int, int]]:
    """Bit sets of which one variable at most is above 0, each with the most that it adds to the form."""
    cliques: list[tuple[int, int]] = []
    for v, w in form:
        if w > 0 and not literals.lacks >> v & 1:
            _join(facts, literals.needs, cliques, v, w * facts.count[v])
    return cliques


def _join(facts: Facts, needs: int, cliques: list[tuple[int, int]], variable: int, most: int) -> None:
    """Put a variable into the first set of which it excludes every member."""
    excluded = facts.excludes[variable] | facts.apart_with(variable, needs)
    if excluded:
        for index, (largest, found) in enumerate(cliques):
            if found & excluded == found:
                cliques[index] = max(largest, most), found | 1 << variable
                return
    cliques.append((most, 1 << variable))
