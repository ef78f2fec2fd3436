"""What is necessary for a linear form to reach a number: variables above 0, at 0, or one of a set above 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
        needed = [_sufficient(clique, first - high) for clique in cliques if high - clique.most < first]
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


@dataclass
class _Clique:
    """Variables of which one at most is above 0.

    Attributes:
        members: each, and the most that it adds to the form.
        bits: the same as a bit set.
        most: the most that they add.
    """

    members: list[tuple[int, int]]
    bits: int
    most: int


def _sufficient(clique: _Clique, missing: float) -> int:
    """The bit set of those with which the form reaches a number that it misses by so much at most."""
    return bit_set(v for v, most in clique.members if most - clique.most >= missing)


def _highest(form: list[tuple[int, int]], cliques: list[_Clique], literals: Literals) -> int:
    return sum(c.most for c in cliques) + sum(w for v, w in form if w < 0 and literals.needs >> v & 1)


def _cliques(facts: Facts, form: list[tuple[int, int]], literals: Literals) -> list[_Clique]:
    """Sets of which one variable at most is above 0."""
    cliques: list[_Clique] = []
    for v, w in form:
        if w > 0 and not literals.lacks >> v & 1:
            _join(facts, literals.needs, cliques, v, w * facts.count[v])
    return cliques


def _join(facts: Facts, needs: int, cliques: list[_Clique], variable: int, most: int) -> None:
    """Put a variable into the first set of which it excludes every member."""
    excluded = facts.excludes[variable] | facts.apart_with(variable, needs)
    for clique in cliques if excluded else ():
        if clique.bits & excluded == clique.bits:
            clique.members.append((variable, most))
            clique.bits |= 1 << variable
            clique.most = max(clique.most, most)
            return
    cliques.append(_Clique([(variable, most)], 1 << variable, most))
