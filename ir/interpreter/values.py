"""Values of all threads of a thread block: numpy arrays of one element a thread.

An integer of 8 to 64 bits is an array of the unsigned dtype of its width, an i1 one of bools. Nobody writes
to an array that holds a value: a value that some threads compute anew is a new array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qgpu.ir.core.types import IntType, PtrType, SlotType, Type

Numbers: TypeAlias = NDArray[Any]
Lanes: TypeAlias = NDArray[np.intp] | None
"""The threads that run an instruction, ascending; None means all of the thread block."""

UNSIGNED = {1: np.dtype(np.bool_), **{width: np.dtype(f"u{width // 8}") for width in (8, 16, 32, 64)}}
SIGNED = {width: np.dtype(f"i{width // 8}") for width in (8, 16, 32, 64)}


@dataclass(frozen=True, eq=False)
class Pointers:
    """Pointers: which buffer (a number for all threads, or an array), and int64 byte offsets."""

    buffers: int | Numbers
    offsets: Numbers

    def __getitem__(self, lanes: Any) -> Pointers:
        buffers = self.buffers if isinstance(self.buffers, int) else self.buffers[lanes]
        return Pointers(buffers, self.offsets[lanes])

    def merged(self, lanes: NDArray[np.intp], new: Pointers) -> Pointers:
        """These pointers with `new` ones in some lanes."""
        offsets = merged(self.offsets, lanes, new.offsets)
        if isinstance(self.buffers, int) and self.buffers is new.buffers:
            return Pointers(self.buffers, offsets)
        old = np.broadcast_to(np.asarray(self.buffers), offsets.shape)
        return Pointers(merged(old, lanes, np.asarray(new.buffers)), offsets)


Values: TypeAlias = Numbers | Pointers


def merged(old: Numbers, lanes: NDArray[np.intp], new: Numbers) -> Numbers:
    """An array with new elements in some lanes."""
    result = old.copy()
    result[lanes] = new
    return result


def zeros(type_: Type, count: int) -> Values:
    """The value 0, or the null pointer (offset 0 of buffer 0), in `count` lanes."""
    if isinstance(type_, SlotType):
        return zeros(type_.element, count)
    if isinstance(type_, PtrType):
        return Pointers(0, np.zeros(count, np.int64))
    assert isinstance(type_, IntType), type_
    return np.zeros(count, UNSIGNED[type_.width])


def full(type_: IntType, value: int, count: int) -> Numbers:
    """An integer in `count` lanes."""
    return np.full(count, value, UNSIGNED[type_.width])


def choose(condition: Numbers, yes: Values, no: Values) -> Values:
    """`yes` in the lanes in which the condition holds, `no` in the others."""
    if not isinstance(yes, Pointers) or not isinstance(no, Pointers):
        return np.where(condition, yes, no)  # pyright: ignore[reportCallIssue, reportArgumentType]
    same = isinstance(yes.buffers, int) and yes.buffers is no.buffers
    buffers = yes.buffers if same else np.where(condition, yes.buffers, no.buffers)
    return Pointers(buffers, np.where(condition, yes.offsets, no.offsets))


def equal(a: Values, b: Values) -> Numbers:
    """The lanes in which two values, of one type, are the same."""
    if isinstance(a, Pointers) and isinstance(b, Pointers):
        return (np.asarray(a.buffers) == np.asarray(b.buffers)) & (a.offsets == b.offsets)
    return np.asarray(a == b)
