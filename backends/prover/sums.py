"""What a channel is after a half layer: the sum of its terms, bounded by cases."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from qgpu.backends.prover.cone import Cone
from qgpu.backends.prover.facts import Cause, Facts, Term
from qgpu.backends.prover.literals import necessary
from qgpu.backends.prover.projection import Fail
from qgpu.backends.prover.relations import exclusive, one_integer
from qgpu.backends.prover.rows import program_rows
from qgpu.backends.prover.search import CASES, at_most
from qgpu.backends.prover.stream import Stream, low_bit
from qgpu.backends.prover.substitution import highest_form

EXACT = {"float32": 2.0**24, "bfloat16": 2.0**8}
"""Integers up to this are exact in a dtype."""

STEPS = 4
"""How often a bound of 1 more is tried."""

CASES_OF_ONE = 4000
"""Cases after which a function of one integer is taken to be more than 1."""


@dataclass
class Sum:
    """A channel after a half layer: low + unit * n, n at most count.

    Attributes:
        terms: all that is added, the channel's old content included; they sum to value - old low.
        raising: causes of which one is not 0 where n > 0; None where there is no such list.
    """

    low: float
    unit: float
    count: int
    terms: list[Term]
    base: float
    raising: list[Cause] | None

    @staticmethod
    def of(stream: Stream, channel: int, causes: list[Cause]) -> Sum:
        facts, variable = stream.facts, int(stream.at[channel])
        constant = sum(float(c.term.table[0]) for c in causes if not c.term.variables)
        moving = _merged([c for c in causes if c.term.variables], facts)
        erasing = [c for c in moving if c.term.variables == (variable,)]
        moving = [c for c in moving if c.term.variables != (variable,)]
        kept, shift = _own(stream, channel, variable, erasing)
        overlap = not erasing and bool(kept) and _overlap(facts, variable, moving)
        made, more = _made_of(stream, channel, variable) if overlap else (kept, 0.0)
        others, moving = moving, _merged(moving + made, facts) if overlap else moving + kept
        terms = [c.term for c in moving]
        steps = [float(low_bit(t.table).min()) for t in terms]
        unit = min((s for s in steps if not np.isinf(s)), default=1.0)
        top, bottom = _bounds(moving, unit, facts)
        if bottom < 0 and kept and not erasing and not overlap:
            bottom = max(bottom, _lowest(stream, channel, variable, others, unit))
        raising = [c for c in moving if (c.term.table > 0).any()] if bottom == 0 else None
        base = stream.low[channel] + constant + shift + more
        return Sum(base + bottom, unit, round((top - bottom) / unit), terms, -bottom, raising)


def _merged(causes: list[Cause], facts: Facts) -> list[Cause]:
    """Functions of one integer as one term each."""
    forms: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Cause]] = defaultdict(list)
    for cause in causes:
        forms[cause.term.variables, cause.term.weights].append(cause)
    merged = []
    for (variables, weights), found in forms.items():
        if len(found) == 1:
            merged += found
            continue
        first = min(c.term.first for c in found)
        last = max(c.term.first + len(c.term.table) for c in found)
        table = np.zeros(last - first)
        for cause in found:
            at = cause.term.first - first
            table[at : at + len(cause.term.table)] += cause.term.table
        if table.any():
            merged.append(_cause(facts, Term(variables, weights, first, table), found[0].source))
    return merged


def _cause(facts: Facts, term: Term, source: tuple[int, ...]) -> Cause:
    """A term that is not always 0, with what has to be where it is not."""
    on = term.first + np.flatnonzero(term.table)
    literals = necessary(facts, term.variables, term.weights, int(on[0]), int(on[-1]))
    return Cause(term, literals, source)


def _own(stream: Stream, channel: int, variable: int, erasing: list[Cause]) -> tuple[list[Cause], float]:
    """The channel's old content above its lowest, with what takes it away, and a constant beside it."""
    size = int(stream.count[channel]) + 1
    table = np.arange(size, dtype=np.float64) * stream.unit[channel]
    for cause in erasing:
        (weight,) = cause.term.weights
        table = table + cause.term.table[weight * np.arange(size) - cause.term.first]
    shift = float(table[0])
    table = table - shift
    if not table.any():
        return [], shift
    literals = stream.facts.closed(1 << variable, 0)
    term, cases = Term((variable,), (1,), 0, table), stream.facts.raising[variable]
    return [Cause(term, literals, (-1, channel), cases)], shift


def _made_of(stream: Stream, channel: int, variable: int) -> tuple[list[Cause], float]:
    """What made a channel's content, as causes and a constant."""
    facts, unit = stream.facts, float(stream.unit[channel])
    terms = facts.definition[variable] or ()
    added = [dataclasses.replace(t, table=unit * t.table) for t in terms if t.variables and t.table.any()]
    causes = [_cause(facts, term, (-1, channel)) for term in added]
    return causes, unit * sum(float(t.table[0]) for t in terms if not t.variables)


def _overlap(facts: Facts, variable: int, moving: list[Cause]) -> bool:
    """Whether more functions of an integer are added of which some made a channel's content.

    The neurons of a function may lie in two layers: what stands between is neither here nor there.
    """
    forms = {(c.term.variables, c.term.weights) for c in moving}
    terms = facts.definition[variable] or ()
    return facts.count[variable] != 1 and not forms.isdisjoint((t.variables, t.weights) for t in terms)


def _lowest(stream: Stream, channel: int, variable: int, others: list[Cause], unit: float) -> float:
    """A lower bound of what is added to a channel's content, what made it standing for the content."""
    made, constant = _made_of(stream, channel, variable)
    if not made:
        return -np.inf
    return min(0.0, constant + _bounds(_merged(others + made, stream.facts), unit, stream.facts)[1])


def _bounds(causes: list[Cause], unit: float, facts: Facts) -> tuple[float, float]:
    """The highest and the lowest sum of terms, or 0; whether they are those of one bit is looked at twice."""
    if not causes:
        return 0.0, 0.0
    scaled = [dataclasses.replace(c, term=_scaled(c.term, 1 / unit)) for c in causes]
    groups = _together(scaled)
    top = max(_largest(group, facts) for group in groups)
    bottom = min(-_largest([_negative(c) for c in group], facts, 0) for group in groups)
    bottom = _raised(scaled, min(bottom, 0.0), facts)
    return unit * max(top, 0.0), unit * bottom


def _raised(causes: list[Cause], bottom: float, facts: Facts) -> float:
    """A lower bound of what is added to a channel that held something, from how that came about."""
    if not any(c.source[0] == -1 for c in causes):
        return bottom
    negative = [_negative(c).term for c in causes]
    for _ in range(STEPS):
        if bottom >= 0 or not at_most(facts, negative, round(-bottom) - 1):
            break
        bottom += 1
    return bottom


def _scaled(term: Term, factor: float) -> Term:
    return dataclasses.replace(term, table=np.rint(term.table * factor))


def _negative(cause: Cause) -> Cause:
    return dataclasses.replace(cause, term=_scaled(cause.term, -1))


def largest(causes: list[Cause], facts: Facts) -> float:
    """The largest sum of terms, or 0; where it may be 1, that is looked at twice."""
    return max(0.0, *(_largest(group, facts) for group in _together(causes)))


def _together(causes: list[Cause]) -> list[list[Cause]]:
    """Terms in groups such that those of one group alone are not 0 in a case."""
    groups: list[list[Cause]] = []
    for cause in causes:
        joined = [g for g in groups if any(not _never_together(cause, other) for other in g)]
        groups = [g for g in groups if g not in joined]
        groups.append([cause, *(c for g in joined for c in g)])
    return groups


def _never_together(a: Cause, b: Cause) -> bool:
    if one_integer(a.term, b.term):
        return not ((a.term.table != 0) & (b.term.table != 0)).any()
    return a.apart(b)


def _largest(causes: list[Cause], facts: Facts, guess: int = 1) -> float:
    terms = [c.term for c in causes]
    top = Cone(terms, facts).maximum()
    if top <= guess or (len(terms) == 1 and len(terms[0].variables) == 1):
        return top
    if len(terms) == 1:
        top = min(top, _of_form(terms[0], facts))
        if top <= guess:
            return top
    some = len(causes) == 1 or any(c.source[0] == -1 for c in causes)
    some = some or any(exclusive(a, b) for a, b in combinations(causes, 2))
    cases = CASES_OF_ONE if len(causes) == 1 else CASES
    if some and at_most(facts, terms, guess, cases):
        return float(guess)
    return _largest_in_a_row(causes, facts, top)


def _largest_in_a_row(causes: list[Cause], facts: Facts, top: float) -> float:
    """The largest sum of terms that some row of the program allows, `top` where nothing is known of rows."""
    for rows in program_rows(facts):
        clipped = rows.clipped(causes)
        if clipped is not None:
            top = min(top, max(Cone([c.term for c in some], facts).maximum() for some in clipped))
    return top


def _of_form(term: Term, facts: Facts) -> float:
    """The largest value of a term, by a bound of its form."""
    last = highest_form(facts, term.variables, term.weights) - term.first
    return float(term.table[: max(0, int(last)) + 1].max())


def check_exact(found: Sum, old: Stream, channel: int, dtype: str, name: str, fail: Fail) -> None:
    """The channel's values, and what is added to get there, are numbers of the dtype."""
    high = found.low + found.unit * found.count
    grid = min(found.unit, *(float(low_bit(np.array(x))) for x in (found.low, old.low[channel])))
    if old.count[channel]:
        grid = min(grid, float(old.unit[channel]))
    largest = max(abs(found.low), abs(high))
    added = max(abs(high - old.low[channel]), abs(found.low - old.high[channel]))
    if max(largest, added) > EXACT[dtype] * grid:
        fail(name, channel, f"the channel reaches {largest:g} in steps of {grid:g}: not exact in {dtype}")
