"""What is necessary for a linear form to reach a number: variables above 0, at 0, or one of a set above 0."""

from __future__ import annotations

from collections.abc import Sequence

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
        found = Literals(found.needs | other.needs, found.lacks | other.lacks, found.clauses + other.clauses)
    return found


def _reaching(facts: Facts, variables: Sequence[int], weights: Sequence[int], first: float) -> Literals:
    """What holds wherever the form is at least `first`."""
    form = list(zip(variables, weights, strict=True))
    up, down, clauses = 0, 0, ()
    while True:
        literals = facts.closed(up, down, clauses)
        cliques = _cliques(facts, form, literals)
        high = sum(most for most, _ in cliques)
        high += sum(w for v, w in form if w < 0 and literals.needs >> v & 1)
        needed = [found for most, found in cliques if high - most < first]
        more = up | bit_set(found[0] for found in needed if len(found) == 1)
        less = down | bit_set(
            v for v, w in form if w < 0 and high + w < first and not literals.needs >> v & 1
        )
        clauses = tuple(bit_set(found) for found in needed if len(found) > 1)
        if (more, less) == (up, down):
            return facts.closed(up, down, clauses)
        up, down = more, less


def _cliques(facts: Facts, form: list[tuple[int, int]], literals: Literals) -> list[tuple[int, list[int]]]:
    """Sets of which one variable at most is above 0, with the most that it adds to the form."""
    cliques: list[tuple[int, list[int]]] = []
    for v, w in form:
        if w > 0 and not literals.lacks >> v & 1:
            _join(facts, literals.needs, cliques, v, w * facts.count[v])
    return cliques


def _join(facts: Facts, needs: int, cliques: list[tuple[int, list[int]]], variable: int, most: int) -> None:
    """Put a variable into the first set of which it excludes every member."""
    excluded = facts.excludes[variable]
    for one, other in facts.nogoods.get(variable, ()):
        if needs >> one & 1:
            excluded |= 1 << other
        if needs >> other & 1:
            excluded |= 1 << one
    if excluded:
        for index, (largest, members) in enumerate(cliques):
            if all(excluded >> m & 1 for m in members):
                cliques[index] = max(largest, most), [*members, variable]
                return
    cliques.append((most, [variable]))
