"""Relations of what a half layer writes: variables that are never above 0 together, or imply each other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import reduce

import numpy as np

from qgpu.backends.prover.facts import Cause, Facts, Literals, Term, members
from qgpu.backends.prover.search import Search

CASES_OF_PAIRS = 2000
"""Cases after which two variables are taken to be above 0 together."""


@dataclass(frozen=True, eq=False)
class Made:
    """A new variable, the causes one of which is not 0 where it is above 0, and if no term is below 0."""

    variable: int
    causes: list[Cause]
    only_raised: bool


def relate(facts: Facts, new: Made, made: list[Made]) -> None:
    """Compare a variable with those that the same half layer makes."""
    apart = 0
    for other in made:
        if all(exclusive(a, b) for a in new.causes for b in other.causes) or _never_both(
            facts, new.variable, other.variable
        ):
            apart |= 1 << other.variable
        if _implies(new, other):
            _imply(facts, new.variable, other.variable)
        if _implies(other, new):
            _imply(facts, other.variable, new.variable)
    if apart:
        facts.exclude(new.variable, apart)


def _never_both(facts: Facts, one: int, other: int) -> bool:
    """Whether functions of the same integers, of which parts are subtracted, are never both above 0."""
    mine, theirs = facts.definition[one] or (), facts.definition[other] or ()
    if not any(t.lowers for t in (*mine, *theirs)):
        return False
    read = {t.variables for t in mine if len(t.variables) > 1}
    if read.isdisjoint(t.variables for t in theirs):
        return False
    search = Search(facts, [(mine, 1, np.inf), (theirs, 1, np.inf)], 0)
    return search.refuted(search.start(), CASES_OF_PAIRS)


def _opposite(a: Term, b: Term) -> bool:
    """Whether two terms are functions of v and of -v, never both above 0."""
    if a.variables != b.variables or a.weights != tuple(-w for w in b.weights):
        return False
    mine = {a.first + i for i in np.flatnonzero(a.table > 0).tolist()}
    return mine.isdisjoint(-(b.first + i) for i in np.flatnonzero(b.table > 0).tolist())


def exclusive(a: Cause, b: Cause) -> bool:
    if one_integer(a.term, b.term):
        return not ((a.term.table > 0) & (b.term.table > 0)).any()
    return a.apart(b) or _opposite(a.term, b.term)


def _implies(one: Made, other: Made) -> bool:
    """Whether wherever the first is above 0, so is the second."""
    if not other.only_raised or len(one.causes) * len(other.causes) > 64:
        return False
    return all(any(_suffices(a, b) for b in other.causes) for a in one.causes)


def _suffices(a: Cause, b: Cause) -> bool:
    if one_integer(a.term, b.term):
        return not ((a.term.table > 0) & ~(b.term.table > 0)).any()
    term, have = b.term, a.literals
    if term.lowers:
        return False
    least = 0
    for v, w in zip(term.variables, term.weights, strict=True):
        if w > 0:
            least += w * (have.needs >> v & 1)
        elif not have.lacks >> v & 1:
            return False
    return least >= term.positive_from


def _imply(facts: Facts, one: int, other: int) -> None:
    facts.implies[one] |= 1 << other | facts.implies[other]
    for implied in members(facts.implies[one]):
        facts.implied[implied] |= 1 << one
    facts.exclude(one, facts.excludes[other])


def lift(facts: Facts, variable: int, raising: list[Literals]) -> None:
    """Carry over what is known of triples."""
    needed = reduce(int.__or__, (x.needs for x in raising))
    found: dict[int, int] = defaultdict(int)
    for part in members(needed):
        for other in members(facts.partners.get(part, 0)):
            found[other] |= facts.never_with(raising, part, other)
    for other, thirds in found.items():
        for third in members(thirds):
            if variable not in (other, third) and other < third:
                facts.forbid((variable, other, third))


def one_integer(a: Term, b: Term) -> bool:
    """Whether two terms are functions of the same integer, given over the same range."""
    same = a.variables == b.variables and a.weights == b.weights
    return same and a.first == b.first and len(a.table) == len(b.table)
