"""The loops of `search`, compiled: bounds are propagated through sums, and variables are split.

A case is two arrays, the lowest and the highest n of each variable. A problem is one array of int64, since
each array that a compiled function is given makes it slower to compile: at the index of a field below stands
where its content begins. A field of lists holds, for each, where the list begins, and then where the last one
ends; so list i of a field F is data[data[data[F] + i] : data[data[F] + i + 1]].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.backends.compiling import compiled

FEASIBLE, REFUTED, GIVEN_UP = 0, 1, 2
"""What comes of a search: a case may be, none can be, or neither was found in the cases that were given."""

PARTS, LEAST, MOST, VARIABLES, WEIGHTS, TABLES, FIRST = range(7)
USING, EXCLUDES, IMPLIES, IMPLIED, NOGOODS, COUNT, FIELDS = range(7, 14)
_SUMS, _SIZE = FIELDS, FIELDS + 1


@dataclass(frozen=True)
class Problem:
    """Sums that must lie in ranges, and what is known of pairs and triples of variables.

    Attributes:
        parts: [sums + 1]; sum s has the parts parts[s] to parts[s + 1] - 1.
        least, most: by sum, the range.
        variables, weights: by part, its linear form.
        tables: by part, the values of its function, integers.
        first: by part, the form's value at the table's first.
        using: by variable, the sums that read it.
        excludes, implies, implied: by variable, others.
        nogoods: by variable, pairs of others, one after the other.
        count: by variable, its largest n.
    """

    parts: Sequence[int]
    least: Sequence[int]
    most: Sequence[int]
    variables: Sequence[Sequence[int]]
    weights: Sequence[Sequence[int]]
    tables: Sequence[np.ndarray]
    first: Sequence[int]
    using: Sequence[Sequence[int]]
    excludes: Sequence[Sequence[int]]
    implies: Sequence[Sequence[int]]
    implied: Sequence[Sequence[int]]
    nogoods: Sequence[Sequence[int]]
    count: Sequence[int]

    def packed(self) -> np.ndarray:
        """All of it as one array, see the head of this file."""
        pieces = [np.array([0] * FIELDS + [len(self.least), len(self.count)], dtype=np.int64)]
        length = len(pieces[0])

        def put(field: int, content: np.ndarray) -> None:
            nonlocal length
            pieces[0][field] = length
            pieces.append(content)
            length += len(content)

        for field in (PARTS, LEAST, MOST, FIRST, COUNT):
            put(field, np.array(getattr(self, _NAMES[field]), dtype=np.int64))
        for field in (VARIABLES, WEIGHTS, TABLES, USING, EXCLUDES, IMPLIES, IMPLIED, NOGOODS):
            lists = getattr(self, _NAMES[field])
            starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
            items = np.concatenate(
                [np.zeros(0, np.int64), *(np.asarray(one, dtype=np.int64) for one in lists)]
            )
            put(field, starts + (length + len(starts)))
            pieces.append(items)
            length += len(items)
        return np.concatenate(pieces)


_NAMES = tuple(Problem.__dataclass_fields__)


@compiled
def first_of(data, field, i):
    """Where a list of a field begins."""
    return data[data[field] + i]


@compiled
def end_of(data, field, i):
    """Where a list of a field ends."""
    return data[data[field] + i + 1]


@compiled
def form_ends(data, part, lows, highs):
    """The lowest and the highest value of a part's linear form."""
    low = high = 0
    begin, weights = first_of(data, VARIABLES, part), first_of(data, WEIGHTS, part)
    for at in range(begin, end_of(data, VARIABLES, part)):
        i, weight = data[at], data[weights + at - begin]
        if weight > 0:
            low += weight * lows[i]
            high += weight * highs[i]
        else:
            low += weight * highs[i]
            high += weight * lows[i]
    return low, high


@compiled
def part_ends(data, part, low, high):
    """The least and the most of a part whose form is between two numbers."""
    start = first_of(data, TABLES, part) - data[data[FIRST] + part]
    least = most = data[start + low]
    for at in range(start + low + 1, start + high + 1):
        least, most = min(least, data[at]), max(most, data[at])
    return least, most


@compiled
def agenda(size):
    """Numbers below a size that wait their turn, each at most once: where the first is and where the next one
    goes, a ring of one more than there are numbers, and whether each of them is in it."""
    return np.zeros(2 * size + 3, np.int64)


@compiled
def put(queue, number):
    """Put a number at the end, if it is not waiting already."""
    length = len(queue) // 2
    if queue[2 + length + number]:
        return
    queue[2 + length + number] = 1
    queue[2 + queue[1]] = number
    queue[1] = (queue[1] + 1) % length


@compiled
def take(queue):
    """Take the first number out; -1 where there is none."""
    if queue[0] == queue[1]:
        return -1
    length = len(queue) // 2
    number = queue[2 + queue[0]]
    queue[0] = (queue[0] + 1) % length
    queue[2 + length + number] = 0
    return number


@compiled
def bound_form(data, part, first, last, lows, highs, moved):
    """Bound the variables of a form that is between two numbers; False where it cannot be."""
    begin, weights = first_of(data, VARIABLES, part), first_of(data, WEIGHTS, part)
    while True:
        low, high = form_ends(data, part, lows, highs)
        if low > last or high < first:
            return False
        changed = False
        for at in range(begin, end_of(data, VARIABLES, part)):
            i, weight = data[at], data[weights + at - begin]
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
def allowed(data, part, low, high, floor, ceiling):
    """The first and the last value of a form between two numbers at which its part is between two others."""
    start = first_of(data, TABLES, part) - data[data[FIRST] + part]
    first, last = low, high
    while first <= last and not floor <= data[start + first] <= ceiling:
        first += 1
    while last > first and not floor <= data[start + last] <= ceiling:
        last -= 1
    return first, last


@compiled
def sum_ends(data, number, lows, highs, spans):
    """The least and the most of a sum; fills, by part, its form's ends and its own."""
    least = most = 0
    begin = data[data[PARTS] + number]
    for part in range(begin, data[data[PARTS] + number + 1]):
        low, high = form_ends(data, part, lows, highs)
        small, large = part_ends(data, part, low, high)
        at = 4 * (part - begin)
        spans[at], spans[at + 1], spans[at + 2], spans[at + 3] = low, high, small, large
        least += small
        most += large
    return least, most


@compiled
def spans_of(data, number):
    """Room for what `sum_ends` fills."""
    return np.empty(4 * (data[data[PARTS] + number + 1] - data[data[PARTS] + number]), np.int64)


@compiled
def tighten(data, number, lows, highs, moved):
    """Bound the variables of a sum that must lie in its range; False where it cannot."""
    spans = spans_of(data, number)
    least, most = sum_ends(data, number, lows, highs, spans)
    floor, ceiling = data[data[LEAST] + number], data[data[MOST] + number]
    if least > ceiling or most < floor:
        return False
    if least >= floor and most <= ceiling:
        return True
    begin = data[data[PARTS] + number]
    for at in range(0, len(spans), 4):
        low, high, small, large = spans[at], spans[at + 1], spans[at + 2], spans[at + 3]
        under, over = floor - (most - large), ceiling - (least - small)
        if small == large or (under <= small and over >= large):
            continue
        part = begin + at // 4
        first, last = allowed(data, part, low, high, under, over)
        if first > last or not bound_form(data, part, first, last, lows, highs, moved):
            return False
    return True


@compiled
def note(data, i, moved, sums):
    """A variable has moved: look at what it excludes and implies, and at the sums that read it."""
    put(moved, i)
    for at in range(first_of(data, USING, i), end_of(data, USING, i)):
        put(sums, data[at])


@compiled
def empty(data, i, highs, moved, sums):
    """A variable is 0."""
    if highs[i] != 0:
        highs[i] = 0
        note(data, i, moved, sums)


@compiled
def relate(data, i, lows, highs, moved, sums):
    """Draw what exclusions and implications say of a variable that has moved."""
    if highs[i] == 0:
        for at in range(first_of(data, IMPLIED, i), end_of(data, IMPLIED, i)):
            empty(data, data[at], highs, moved, sums)
        return
    if lows[i] == 0:
        return
    for at in range(first_of(data, EXCLUDES, i), end_of(data, EXCLUDES, i)):
        empty(data, data[at], highs, moved, sums)
    for at in range(first_of(data, NOGOODS, i), end_of(data, NOGOODS, i), 2):
        if lows[data[at]] > 0:
            empty(data, data[at + 1], highs, moved, sums)
        if lows[data[at + 1]] > 0:
            empty(data, data[at], highs, moved, sums)
    for at in range(first_of(data, IMPLIES, i), end_of(data, IMPLIES, i)):
        if lows[data[at]] == 0:
            lows[data[at]] = 1
            note(data, data[at], moved, sums)


@compiled
def propagate(data, lows, highs, moved, sums):
    """Draw all consequences of variables that have moved and of sums; False where the case cannot be."""
    while True:
        i = take(moved)
        while i >= 0:
            if lows[i] > highs[i]:
                return False
            relate(data, i, lows, highs, moved, sums)
            i = take(moved)
        number = take(sums)
        if number < 0:
            return True
        at = moved[1]
        if not tighten(data, number, lows, highs, moved):
            return False
        while at != moved[1]:
            note(data, moved[2 + at], moved, sums)
            at = (at + 1) % (len(moved) // 2)


@compiled
def close(data, lows, highs):
    """Draw all consequences of a case; False where it cannot be."""
    moved, sums = agenda(data[_SIZE]), agenda(data[_SUMS])
    for i in range(data[_SIZE]):
        put(moved, i)
    for number in range(data[_SUMS]):
        put(sums, number)
    return propagate(data, lows, highs, moved, sums)


@compiled
def set_bounds(data, i, low, high, lows, highs):
    """Bound a variable of a closed case and draw the consequences; False where it cannot be."""
    moved, sums = agenda(data[_SIZE]), agenda(data[_SUMS])
    lows[i], highs[i] = low, high
    note(data, i, moved, sums)
    return propagate(data, lows, highs, moved, sums)


@compiled
def choose(data, lows, highs):
    """A variable of the first sum that is not certain to be in its range; -1 where all are."""
    for number in range(data[_SUMS]):
        spans = spans_of(data, number)
        if is_certain(data, number, lows, highs, spans):
            continue
        best = most_used(data, number, lows, highs, spans)
        if best >= 0:
            return best
    return -1


@compiled
def is_certain(data, number, lows, highs, spans):
    """Whether a sum is in its range whatever its variables are; fills what its parts can be.

    So is a definition whose own variable can be all that the others add up to: it is then what they say.
    """
    least, most = sum_ends(data, number, lows, highs, spans)
    floor, ceiling = data[data[LEAST] + number], data[data[MOST] + number]
    if least >= floor and most <= ceiling:
        return True
    own = data[data[PARTS] + number + 1] - 1
    alone = end_of(data, VARIABLES, own) - first_of(data, VARIABLES, own) == 1
    if floor != ceiling or not alone:
        return False
    least, most = least - spans[-2], most - spans[-1]
    return floor - spans[-1] <= least and most <= ceiling - spans[-2]


@compiled
def most_used(data, number, lows, highs, spans):
    """The open variable of most of a sum's open parts, or -1."""
    uses = np.zeros(data[_SIZE], np.int64)
    begin, end = data[data[PARTS] + number], data[data[PARTS] + number + 1]
    for part in range(begin, end):
        if spans[4 * (part - begin) + 2] == spans[4 * (part - begin) + 3]:
            continue
        for at in range(first_of(data, VARIABLES, part), end_of(data, VARIABLES, part)):
            uses[data[at]] += lows[data[at]] != highs[data[at]]
    best = -1
    for at in range(first_of(data, VARIABLES, begin), end_of(data, VARIABLES, end - 1)):
        i = data[at]
        if uses[i] > 0 and (best < 0 or uses[i] > uses[best]):
            best = i
    return best


@compiled
def search(data, lows, highs, limit):
    """Whether a closed case can be, split until every sum is certain: FEASIBLE, REFUTED or GIVEN_UP."""
    depth, cases = 1, 0
    low_stack, high_stack = room(16, lows), room(16, highs)
    low_stack[0], high_stack[0] = lows, highs
    while depth > 0:
        cases += 1
        if cases > limit:
            return GIVEN_UP
        depth -= 1
        low, high = low_stack[depth].copy(), high_stack[depth].copy()
        chosen = choose(data, low, high)
        if chosen < 0:
            return FEASIBLE
        if depth + 2 > len(low_stack):
            low_stack, high_stack = twice(low_stack), twice(high_stack)
        middle = (low[chosen] + high[chosen]) // 2
        for half in range(2):
            low_stack[depth], high_stack[depth] = low, high
            first = middle + 1 if half else low[chosen]
            last = high[chosen] if half else middle
            if set_bounds(data, chosen, first, last, low_stack[depth], high_stack[depth]):
                depth += 1
    return REFUTED


@compiled
def room(rows, like):
    """Room for so many arrays of one length."""
    return np.zeros((rows, len(like)), np.int64)


@compiled
def twice(stack):
    """A stack's content, with room for as much again."""
    larger = np.zeros((2 * len(stack), stack.shape[1]), np.int64)
    larger[: len(stack)] = stack
    return larger
