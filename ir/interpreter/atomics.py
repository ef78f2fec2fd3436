"""Atomic operations by many threads at once, as if one thread after another did them, in ascending order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from qgpu.ir.interpreter.values import SIGNED, Numbers

Update = Callable[..., Numbers]


def _inc(old: Numbers, limit: Numbers) -> Numbers:
    """PTX ISA, atom: (old >= limit) ? 0 : old + 1."""
    return np.where(old >= limit, 0, old + 1).astype(old.dtype)


def _dec(old: Numbers, limit: Numbers) -> Numbers:
    """PTX ISA, atom: (old == 0 or old > limit) ? limit : old - 1."""
    return np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype)


def _exchange(old: Numbers, new: Numbers) -> Numbers:
    return new


def _signed(function: np.ufunc) -> Update:
    def run(old: Numbers, new: Numbers) -> Numbers:
        signed = SIGNED[8 * old.dtype.itemsize]
        return function(old.view(signed), new.view(signed)).view(old.dtype)

    return run


def compare_and_swap(old: Numbers, expected: Numbers, new: Numbers) -> Numbers:
    """What memory holds after a cmpxchg."""
    return np.where(old == expected, new, old)


UPDATES: dict[str, Update] = {
    "add": np.add,
    "min_s": _signed(np.minimum),
    "max_s": _signed(np.maximum),
    "min_u": np.minimum,
    "max_u": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": _exchange,
    "inc": _inc,
    "dec": _dec,
}
"""What memory holds after an atomicrmw, by its kind, from what it held and the operand."""


def apply_atomics(memory: Numbers, places: Numbers, update: Update, *operands: Numbers) -> Numbers:
    """Applies an update to elements of memory, the threads' places and operands in order; the old values.

    Threads with the same place take turns: in each round are those for which as many came before.
    """
    old = np.empty(len(places), memory.dtype)
    for turn in turns(places):
        old[turn] = memory[places[turn]]
        memory[places[turn]] = update(old[turn], *(operand[turn] for operand in operands))
    return old


def apply_unread(memory: Numbers, places: Numbers, update: Update, operand: Numbers) -> None:
    """The same where nobody wants the old values; at once where the order does not show."""
    if isinstance(update, np.ufunc):
        update.at(memory, places, operand)
        return
    apply_atomics(memory, places, update, operand)


def turns(places: Numbers) -> Iterator[Numbers | slice]:
    """The threads in rounds: each round's places are different, and equal places keep their order."""
    order = np.argsort(places, kind="stable")
    first = np.ones(len(places), np.bool_)
    first[1:] = places[order[1:]] != places[order[:-1]]
    if first.all():
        yield slice(None)
        return
    starts = np.flatnonzero(first)
    rank = np.arange(len(places)) - starts[np.cumsum(first) - 1]
    by_rank = order[np.argsort(rank, kind="stable")]
    yield from np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])
