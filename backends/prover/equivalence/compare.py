"""Two sets of neurons or heads, whose order means nothing: which have no equal, and what is like them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from qgpu.backends.prover.equivalence.form import Linear, Terms

T = TypeVar("T")
K = TypeVar("K")

MOST_COMPARED = 1 << 16
"""Pairs that are looked at for the most similar ones; beyond, what is left is paired in order."""


def matched(
    found: Mapping[int, T],
    meant: Sequence[tuple[str, T]],
    key: Callable[[T], Hashable],
    parts: Callable[[T], set],
) -> Iterator[tuple[int | None, T | None, str, T | None]]:
    """Yield what has no equal: number and form of what was found, unit and form of what was meant.

    Each is paired with the one that has most in common with it; what has nothing in common is alone.

    Args:
        key: equal for equals, whatever the order of what has none.
        parts: what two of them may have in common.
    """
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for number, form in found.items():
        waiting[key(form)].append(number)
    missing = [(unit, form) for unit, form in meant if not _taken(waiting.get(key(form)))]
    left = sorted(number for numbers in waiting.values() for number in numbers)
    pairs = _pairs([parts(found[number]) for number in left], [parts(form) for _, form in missing])
    for place, number in enumerate(left):
        unit, form = missing[pairs[place]] if place in pairs else ("", None)
        yield number, found[number], unit, form
    paired = set(pairs.values())
    for place, (unit, form) in enumerate(missing):
        if place not in paired:
            yield None, None, unit, form


def _taken(waiting: list[int] | None) -> bool:
    if not waiting:
        return False
    waiting.pop(0)
    return True


def _pairs(left: list[set], right: list[set]) -> dict[int, int]:
    """Pair the most similar first."""
    if len(left) * len(right) > MOST_COMPARED:
        return dict(zip(range(len(left)), range(len(right)), strict=False))
    similar = [
        (len(a & b) / len(a | b), i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a & b
    ]
    pairs: dict[int, int] = {}
    used: set[int] = set()
    for _, i, j in sorted(similar, key=lambda entry: (-entry[0], entry[1], entry[2])):
        if i not in pairs and j not in used:
            pairs[i] = j
            used.add(j)
    return pairs


def term_differences(got: Terms, wanted: Terms) -> list[tuple[int, float, float]]:
    """Places whose coefficients differ, with both."""
    first, second = dict(got), dict(wanted)
    places = sorted({place for place, _ in got ^ wanted})
    return [(place, first.get(place, 0.0), second.get(place, 0.0)) for place in places]


def parts_of(forms: Iterable[tuple[str, Linear | Terms | int]]) -> set:
    """What named forms are made of."""
    parts: set = set()
    for name, form in forms:
        if isinstance(form, Linear):
            parts.add((name, form.constant))
            form = form.terms
        parts |= {(name, *term) for term in form} if isinstance(form, frozenset) else {(name, form)}
    return parts
