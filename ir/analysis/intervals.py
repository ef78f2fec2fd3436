"""Intervals: between which two signed numbers an i32 lies, as far as a short look at its definition tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import SWAPPED_PREDICATE
from qgpu.ir.core.types import I1, I32, IntType
from qgpu.ir.core.values import Constant, Value

DEPTH = 6
LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True)
class Interval:
    """The numbers from `low` to `high`, both included."""

    low: int
    high: int

    def within(self, low: int, high: int) -> bool:
        return low <= self.low and self.high <= high

    def joined(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def met(self, low: int, high: int) -> Interval:
        """The part between two bounds; the interval itself where none of it is."""
        narrowed = Interval(max(self.low, low), min(self.high, high))
        return narrowed if narrowed.low <= narrowed.high else self


EVERYTHING = Interval(LOWEST, HIGHEST)


def _exact(low: int, high: int) -> Interval:
    """An interval of results, or everything where one of them would wrap."""
    return Interval(low, high) if low >= LOWEST and high <= HIGHEST else EVERYTHING


def _add(a: Interval, b: Interval) -> Interval:
    return _exact(a.low + b.low, a.high + b.high)


def _sub(a: Interval, b: Interval) -> Interval:
    return _exact(a.low - b.high, a.high - b.low)


def _and(a: Interval, b: Interval) -> Interval:
    bounds = [side.high for side in (a, b) if side.low >= 0]
    return Interval(0, min(bounds)) if bounds else EVERYTHING


def _or(a: Interval, b: Interval) -> Interval:
    if a.low < 0 or b.low < 0:
        return EVERYTHING
    return Interval(0, (1 << max(a.high, b.high).bit_length()) - 1)


def _lshr(a: Interval, b: Interval) -> Interval:
    if b.low != b.high or not 0 <= b.low < 32:
        return EVERYTHING
    if a.low < 0:
        return Interval(0, 0xFFFFFFFF >> b.low) if b.low else EVERYTHING
    return Interval(a.low >> b.low, a.high >> b.low)


def _urem(a: Interval, b: Interval) -> Interval:
    return Interval(0, b.high - 1) if b.low > 0 else EVERYTHING


def _umin(a: Interval, b: Interval) -> Interval:
    return _and(a, b)


_RULES: dict[str, Callable[[Interval, Interval], Interval]] = {
    "add": _add,
    "sub": _sub,
    "and": _and,
    "or": _or,
    "xor": _or,
    "lshr": _lshr,
    "urem": _urem,
    "umin": _umin,
    "smin": lambda a, b: Interval(min(a.low, b.low), min(a.high, b.high)),
    "smax": lambda a, b: Interval(max(a.low, b.low), max(a.high, b.high)),
}


@dataclass(frozen=True)
class Intervals:
    """Intervals of values in a thread block.

    Attributes:
        lanes: lanes of a warp.
        threads: the most threads of the thread block; CUDA's bound where the kernel states none.
    """

    lanes: int = 32
    threads: int = 1024

    def of(self, value: Value, depth: int = DEPTH) -> Interval:
        """The interval of an i32; everything where nothing is known."""
        if isinstance(value, Constant):
            return Interval(value.signed, value.signed)
        if not isinstance(value, Instruction) or depth == 0:
            return EVERYTHING
        if value.op == "sreg":
            return self._register(value.attrs["name"])
        if value.op == "select":
            condition, a, b = value.operands
            return self._where(a, condition, True, depth - 1).joined(
                self._where(b, condition, False, depth - 1)
            )
        if value.op == "zext":
            type_ = value.operands[0].type
            assert isinstance(type_, IntType)
            return Interval(0, type_.mask) if type_.width < 32 else EVERYTHING
        if value.op == "sext" and value.operands[0].type is I1:
            return Interval(-1, 0)
        if value.op not in _RULES:
            return EVERYTHING
        a, b = (self.of(operand, depth - 1) for operand in value.operands)
        return _RULES[value.op](a, b)

    def _register(self, name: str) -> Interval:
        if name == "laneid":
            return Interval(0, self.lanes - 1)
        if name.startswith(("tid.", "warpid")):
            return Interval(0, self.threads - 1)
        return Interval(1, self.threads) if name.startswith("ntid.") else EVERYTHING

    def decides(self, comparison: Instruction) -> bool:
        """Whether an icmp has one result in all threads: by intervals, or of an index with its bound."""
        a, b = comparison.operands
        if a.type is not I32:
            return False
        if _is_index_and_bound(a, b) or _is_index_and_bound(b, a):
            return True
        left, right = self.of(a), self.of(b)
        apart = left.high < right.low or right.high < left.low
        unsigned = comparison.attrs["pred"][0] == "u"
        return apart and not (unsigned and min(left.low, right.low) < 0)

    def _where(self, value: Value, condition: Value, holds: bool, depth: int) -> Interval:
        """The interval of a value where a condition holds, or where it does not."""
        interval = self.of(value, depth)
        if not isinstance(condition, Instruction) or condition.op != "icmp":
            return interval
        predicate, (a, b) = condition.attrs["pred"], condition.operands
        if b is value:
            predicate, a, b = SWAPPED_PREDICATE[predicate], b, a
        if a is not value or not isinstance(b, Constant) or a.type is I1:
            return interval
        return _narrowed(interval, predicate, b, holds)


def _is_index_and_bound(index: Value, bound: Value) -> bool:
    """Whether one value is a thread's or thread block's index, and the other their number on that axis."""
    names = [v.attrs["name"] if isinstance(v, Instruction) and v.op == "sreg" else "" for v in (index, bound)]
    return names[0].startswith(("tid.", "ctaid.")) and names[1] == f"n{names[0]}"


def _narrowed(interval: Interval, predicate: str, bound: Constant, holds: bool) -> Interval:
    """The part of an interval in which a comparison with a constant holds, or does not."""
    number = bound.signed
    if predicate[0] == "u" and (number < 0 or holds != predicate.startswith("ul")):
        return interval  # such numbers may be negative
    bounds = {
        ("lt", True): (LOWEST, number - 1),
        ("le", True): (LOWEST, number),
        ("gt", True): (number + 1, HIGHEST),
        ("ge", True): (number, HIGHEST),
        ("lt", False): (number, HIGHEST),
        ("le", False): (number + 1, HIGHEST),
        ("gt", False): (LOWEST, number),
        ("ge", False): (LOWEST, number - 1),
        ("eq", True): (number, number),
    }
    low, high = bounds.get((predicate[-2:], holds), (LOWEST, HIGHEST))
    if predicate[0] == "u":
        low = 0
    return interval.met(low, high)
