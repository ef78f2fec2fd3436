"""The loops of `search`, compiled: bounds are propagated through sums, and variables are split.

A case is two arrays, the lowest and the highest n of each variable. Lists of lists are rows here, one after
the other: row i is `items[starts[i] : starts[i + 1]]`.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import NamedTuple

import numpy as np

from qgpu.backends.compiling import compiled

FEASIBLE, REFUTED, GIVEN_UP = 0, 1, 2
"""What comes of a search: a case may be, none can be, or neither was found in the cases that were given."""


class Rows(NamedTuple):
    """Lists of integers, one after the other."""

    starts: np.ndarray
    items: np.ndarray


class Problem(NamedTuple):
    """Sums that must lie in ranges, and what is known of pairs and triples of variables.

    Attributes:
        parts: int64 [sums + 1]; sum s has the parts parts[s] to parts[s + 1] - 1.
        low, high: int64 by sum, the range.
        variables, weights: by part, its linear form; the weights lie as the variables' items do.
        tables: by part, the values of its function.
        first: int64 by part, the form's value at the table's first.
        using: by variable, the sums that read it.
        excludes, implies, implied: by variable, others.
        nogoods: by variable, pairs of others, one after the other.
    """

    parts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    variables: Rows
    weights: np.ndarray
    tables: Rows
    first: np.ndarray
    using: Rows
    excludes: Rows
    implies: Rows
    implied: Rows
    nogoods: Rows


class Agenda(NamedTuple):
    """Numbers that wait their turn, each at most once.

    Attributes:
        ring: int64, one longer than the largest number.
        ends: int64 [2], where the first is and where the next one goes.
        waiting: bool, whether a number is in the ring.
    """

    ring: np.ndarray
    ends: np.ndarray
    waiting: np.ndarray


def starts(lists: Sequence[Sized]) -> np.ndarray:
    """Where each list starts if they lie one after the other, and where the last one ends."""
    return np.cumsum([0, *(len(one) for one in lists)], dtype=np.int64)


def rows(lists: Sequence[Sequence[int]]) -> Rows:
    """Lists as rows."""
    return Rows(starts(lists), np.fromiter((item for one in lists for item in one), np.int64))


@compiled
def form_ends(problem, part, lows, highs):
    """The lowest and the highest value of a part's linear form."""
    low = high = 0
    starts, items = problem.variables
    for at in range(starts[part], starts[part + 1]):
        i, weight = items[at], problem.weights[at]
        if weight > 0:
            low += weight * lows[i]
            high += weight * highs[i]
        else:
            low += weight * highs[i]
            high += weight * lows[i]
    return low, high


@compiled
def part_ends(problem, part, low, high):
    """The least and the most of a part whose form is between two numbers."""
    start = problem.tables.starts[part] - problem.first[part]
    values = problem.tables.items
    least = most = values[start + low]
    for at in range(start + low + 1, start + high + 1):
        least, most = min(least, values[at]), max(most, values[at])
    return least, most


@compiled
def agenda(size):
    """An empty agenda of the numbers below a size."""
    return Agenda(np.empty(size + 1, np.int64), np.zeros(2, np.int64), np.zeros(size, np.bool_))


@compiled
def put(queue, number):
    """Put a number at the end, if it is not waiting already."""
    if queue.waiting[number]:
        return
    queue.waiting[number] = True
    queue.ring[queue.ends[1]] = number
    queue.ends[1] = (queue.ends[1] + 1) % len(queue.ring)


@compiled
def take(queue):
    """Take the first number out; -1 where there is none."""
    if queue.ends[0] == queue.ends[1]:
        return -1
    number = queue.ring[queue.ends[0]]
    queue.ends[0] = (queue.ends[0] + 1) % len(queue.ring)
    queue.waiting[number] = False
    return number


@compiled
def bound_form(problem, part, first, last, lows, highs, moved):
    """Bound the variables of a form that is between two numbers; False where it cannot be."""
    starts, items = problem.variables
    while True:
        low, high = form_ends(problem, part, lows, highs)
        if low > last or high < first:
            return False
        changed = False
        for at in range(starts[part], starts[part + 1]):
            i, weight = items[at], problem.weights[at]
            free, size = highs[i] - lows[i], abs(weight)
            raised = max(0, free - (high - first) // size)
            lowered = max(0, free - (last - low) // size)
            if weight < 0:
                raised, lowered = lowered, raised
            if raised == 0 and lowered == 0:
                continue
            lows[i] += raised
            highs[i] -= lowered
            put(moved, i)
            if lows[i] > highs[i]:
                return False
            changed = True
            break
        if not changed:
            return True


@compiled
def allowed(problem, part, low, high, floor, ceiling):
    """The first and the last value of a form between two numbers at which its part is between two others."""
    start = problem.tables.starts[part] - problem.first[part]
    values = problem.tables.items
    first, last = low, high
    while first <= last and not floor <= values[start + first] <= ceiling:
        first += 1
    while last > first and not floor <= values[start + last] <= ceiling:
        last -= 1
    return first, last


@compiled
def tighten(problem, number, lows, highs, moved):
    """Bound the variables of a sum that must lie in its range; False where it cannot."""
    begin, end = problem.parts[number], problem.parts[number + 1]
    spans = np.empty((end - begin, 4), np.int64)
    least = most = 0
    for k in range(end - begin):
        low, high = form_ends(problem, begin + k, lows, highs)
        small, large = part_ends(problem, begin + k, low, high)
        spans[k, 0], spans[k, 1], spans[k, 2], spans[k, 3] = low, high, small, large
        least += small
        most += large
    floor, ceiling = problem.low[number], problem.high[number]
    if least > ceiling or most < floor:
        return False
    if least >= floor and most <= ceiling:
        return True
    for k in range(end - begin):
        low, high, small, large = spans[k]
        under, over = floor - (most - large), ceiling - (least - small)
        if small == large or (under <= small and over >= large):
            continue
        first, last = allowed(problem, begin + k, low, high, under, over)
        if first > last or not bound_form(problem, begin + k, first, last, lows, highs, moved):
            return False
    return True


@compiled
def exclude(problem, i, lows, highs, moved, sums):
    """Draw what exclusions and implications say of a variable that has moved."""
    if highs[i] == 0:
        starts, items = problem.implied
        for at in range(starts[i], starts[i + 1]):
            empty(problem, items[at], highs, moved, sums)
        return
    if lows[i] == 0:
        return
    starts, items = problem.excludes
    for at in range(starts[i], starts[i + 1]):
        empty(problem, items[at], highs, moved, sums)
    starts, items = problem.nogoods
    for at in range(starts[i], starts[i + 1], 2):
        one, other = items[at], items[at + 1]
        if lows[one] > 0:
            empty(problem, other, highs, moved, sums)
        if lows[other] > 0:
            empty(problem, one, highs, moved, sums)
    starts, items = problem.implies
    for at in range(starts[i], starts[i + 1]):
        if lows[items[at]] == 0:
            lows[items[at]] = 1
            note(problem, items[at], moved, sums)


@compiled
def empty(problem, i, highs, moved, sums):
    """A variable is 0."""
    if highs[i] != 0:
        highs[i] = 0
        note(problem, i, moved, sums)


@compiled
def note(problem, i, moved, sums):
    """A variable has moved: look at what it excludes and implies, and at the sums that read it."""
    put(moved, i)
    starts, items = problem.using
    for at in range(starts[i], starts[i + 1]):
        put(sums, items[at])


@compiled
def propagate(problem, lows, highs, moved, sums):
    """Draw all consequences of variables that have moved and of sums; False where the case cannot be."""
    while True:
        i = take(moved)
        while i >= 0:
            if lows[i] > highs[i]:
                return False
            exclude(problem, i, lows, highs, moved, sums)
            i = take(moved)
        number = take(sums)
        if number < 0:
            return True
        before = moved.ends[1]
        if not tighten(problem, number, lows, highs, moved):
            return False
        at = before
        while at != moved.ends[1]:
            note(problem, moved.ring[at], moved, sums)
            at = (at + 1) % len(moved.ring)


@compiled
def close(problem, lows, highs):
    """Draw all consequences of a case; False where it cannot be."""
    moved, sums = agenda(len(lows)), agenda(len(problem.low))
    for i in range(len(lows)):
        put(moved, i)
    for number in range(len(problem.low)):
        put(sums, number)
    return propagate(problem, lows, highs, moved, sums)


@compiled
def set_bounds(problem, i, low, high, lows, highs):
    """Bound a variable of a closed case and draw the consequences; False where it cannot be."""
    moved, sums = agenda(len(lows)), agenda(len(problem.low))
    lows[i], highs[i] = low, high
    note(problem, i, moved, sums)
    return propagate(problem, lows, highs, moved, sums)


@compiled
def choose(problem, lows, highs):
    """A variable of the first sum that is not certain to be in its range; -1 where all are."""
    uses = np.zeros(len(lows), np.int64)
    for number in range(len(problem.low)):
        if is_certain(problem, number, lows, highs):
            continue
        best = most_used(problem, number, lows, highs, uses)
        if best >= 0:
            return best
    return -1


@compiled
def is_certain(problem, number, lows, highs):
    """Whether a sum is in its range whatever its variables are.

    So is a definition whose own variable is open: that variable can be what the others say.
    """
    begin, end = problem.parts[number], problem.parts[number + 1]
    least = most = small = large = 0
    for part in range(begin, end):
        low, high = form_ends(problem, part, lows, highs)
        small, large = part_ends(problem, part, low, high)
        least += small
        most += large
    if least >= problem.low[number] and most <= problem.high[number]:
        return True
    alone = end > begin and problem.variables.starts[end] - problem.variables.starts[end - 1] == 1
    return problem.low[number] == problem.high[number] and alone and small != large


@compiled
def most_used(problem, number, lows, highs, uses):
    """The open variable of most of a sum's open parts, or -1; `uses` is 0 before and after."""
    begin, end = problem.parts[number], problem.parts[number + 1]
    starts, items = problem.variables
    for part in range(begin, end):
        low, high = form_ends(problem, part, lows, highs)
        small, large = part_ends(problem, part, low, high)
        if small == large:
            continue
        for at in range(starts[part], starts[part + 1]):
            uses[items[at]] += lows[items[at]] != highs[items[at]]
    best = -1
    for at in range(starts[begin], starts[end]):
        i = items[at]
        if uses[i] > 0 and (best < 0 or uses[i] > uses[best]):
            best = i
    for at in range(starts[begin], starts[end]):
        uses[items[at]] = 0
    return best


@compiled
def search(problem, lows, highs, limit):
    """Whether a closed case can be, split until every sum is certain: FEASIBLE, REFUTED or GIVEN_UP."""
    size, depth = len(lows), 1
    stack = np.empty((16, 2, size), np.int64)
    stack[0, 0], stack[0, 1] = lows, highs
    cases = 0
    while depth > 0:
        cases += 1
        if cases > limit:
            return GIVEN_UP
        depth -= 1
        low, high = stack[depth, 0].copy(), stack[depth, 1].copy()
        chosen = choose(problem, low, high)
        if chosen < 0:
            return FEASIBLE
        if depth + 2 > len(stack):
            larger = np.empty((2 * len(stack), 2, size), np.int64)
            larger[:depth] = stack[:depth]
            stack = larger
        middle = (low[chosen] + high[chosen]) // 2
        spans = ((low[chosen], middle), (middle + 1, high[chosen]))
        for first, last in spans:
            stack[depth, 0], stack[depth, 1] = low, high
            depth += set_bounds(problem, chosen, first, last, stack[depth, 0], stack[depth, 1])
    return REFUTED
