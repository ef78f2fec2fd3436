"""Identities of bitwise operations and of select."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import INVERSE_PREDICATE
from qgpu.ir.core.types import I1, I32, I64, IntType
from qgpu.ir.core.values import FALSE, TRUE, Constant, Value
from qgpu.ir.passes.simplify.arithmetic import reassociate
from qgpu.ir.passes.simplify.fields import join_shifts
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import Rule, before, is_all_ones, is_op, is_zero, like, number


def simplify_and(and_: Instruction) -> Value | None:
    a, b = and_.operands
    if a is b or is_all_ones(b):
        return a
    if is_zero(b):
        return b
    if isinstance(b, Constant) and possible_ones(a) & ~b.value == 0:
        return a
    return reassociate(and_)


def simplify_or(or_: Instruction) -> Value | None:
    a, b = or_.operands
    if a is b or is_zero(b):
        return a
    return b if is_all_ones(b) else reassociate(or_) or join_words(or_) or join_shifts(or_)


def join_words(or_: Instruction) -> Value | None:
    """A word and another moved up by 32 bits are a pair."""
    for low, high in (or_.operands, or_.operands[::-1]) if or_.type is I64 else ():
        moved = is_op(high, "mul")
        if not moved or number(moved.operands[1]) != 1 << 32 or possible_ones(low) >> 32:
            continue
        builder = before(or_)
        words = [builder.emit("trunc", value, type=I32) for value in (low, moved.operands[0])]
        return builder.emit("pack", *words)
    return None


def simplify_xor(xor: Instruction) -> Value | None:
    a, b = xor.operands
    if a is b:
        return like(a, 0)
    if is_zero(b):
        return a
    return before(xor).emit("not", a) if is_all_ones(b) else reassociate(xor) or join_shifts(xor)


def simplify_not(not_: Instruction) -> Value | None:
    value = not_.operands[0]
    inner = is_op(value, "not")
    if inner:
        return inner.operands[0]
    icmp = is_op(value, "icmp")
    if icmp and len(icmp.uses) == 1:
        left, right = icmp.operands
        return before(not_).icmp(INVERSE_PREDICATE[icmp.attrs["pred"]], left, right)
    return None


def simplify_popc(popc: Instruction) -> Value | None:
    """A number whose only possible one is bit 0 is its own population count."""
    value = popc.operands[0]
    return value if possible_ones(value) <= 1 else None


def simplify_select(select: Instruction) -> Value | None:
    condition, a, b = select.operands
    if a is b or (isinstance(a, Constant) and a == b):
        return a
    if isinstance(condition, Constant):
        return a if condition.value else b
    inverted = is_op(condition, "not")
    if inverted:
        return before(select).select(inverted.operands[0], b, a)
    if select.type is I1:
        return select_of_truths(select)
    return select_of_numbers(select) or select_of_compared(select)


def select_of_truths(select: Instruction) -> Value | None:
    """A select of i1 with a constant is the condition, or an `and` or `or` with it."""
    condition, a, b = select.operands
    builder = before(select)
    if a == TRUE:
        return condition if b == FALSE else builder.emit("or", condition, b)
    if b == FALSE:
        return builder.emit("and", condition, a)
    if a == FALSE:
        return builder.emit("and", builder.emit("not", condition), b)
    return builder.emit("or", builder.emit("not", condition), a) if b == TRUE else None


def select_of_numbers(select: Instruction) -> Value | None:
    """1 or 0 by a condition is its extension."""
    condition, a, b = select.operands
    if not isinstance(select.type, IntType):
        return None
    if number(a) == 1 and is_zero(b):
        return before(select).emit("zext", condition, type=select.type)
    if is_zero(a) and number(b) == 1:
        builder = before(select)
        return builder.emit("zext", builder.emit("not", condition), type=select.type)
    return None


EXTREMA = {
    "slt": "smin",
    "sle": "smin",
    "sgt": "smax",
    "sge": "smax",
    "ult": "umin",
    "ule": "umin",
    "ugt": "umax",
    "uge": "umax",
}
OPPOSITE = {"smin": "smax", "smax": "smin", "umin": "umax", "umax": "umin"}


def same(a: Value, b: Value) -> bool:
    return a is b or (isinstance(a, Constant) and a == b)


def select_of_compared(select: Instruction) -> Value | None:
    """A select between the two values compared is a minimum or maximum, or one of them."""
    icmp, a, b = is_op(select.operands[0], "icmp"), *select.operands[1:]
    if icmp is None:
        return None
    straight = same(icmp.operands[0], a) and same(icmp.operands[1], b)
    crossed = same(icmp.operands[0], b) and same(icmp.operands[1], a)
    predicate = icmp.attrs["pred"]
    if not straight and not crossed:
        return None
    if predicate in ("eq", "ne"):
        return b if predicate == "eq" else a
    if not isinstance(select.type, IntType):
        return None
    op = EXTREMA[predicate] if straight else OPPOSITE[EXTREMA[predicate]]
    return before(select).emit(op, a, b)


def simplify_lop3(lop3: Instruction) -> Value | None:
    """A bitwise function that does not depend on all three operands, or has a constant one of equal bits."""
    lut = lop3.attrs["lut"] & 0xFF
    for position, operand in enumerate(lop3.operands):
        ones = 1 if is_all_ones(operand) else 0 if is_zero(operand) else None
        halves = [_fix(lut, position, bit) for bit in (0, 1)]
        if ones is not None or halves[0] == halves[1]:
            rest = [other for index, other in enumerate(lop3.operands) if index != position]
            return two_input(lop3, halves[ones or 0], rest[0], rest[1])
    return None


def _fix(lut: int, position: int, bit: int) -> int:
    """The table of the two other operands (bit 2p + q) where the one at `position` is fixed."""
    table = 0
    for p in (0, 1):
        for q in (0, 1):
            bits = [p, q]
            bits.insert(position, bit)
            table |= ((lut >> (4 * bits[0] + 2 * bits[1] + bits[2])) & 1) << (2 * p + q)
    return table


TWO_INPUT = {0b1000: "and", 0b1110: "or", 0b0110: "xor"}


def two_input(lop3: Instruction, table: int, p: Value, q: Value) -> Value | None:
    """The operation of a table of two operands; None where it is not a single one."""
    builder = before(lop3)
    trivial: dict[int, Value] = {0b0000: Constant(I32, 0), 0b1111: Constant(I32, -1), 0b1100: p, 0b1010: q}
    if table in trivial:
        return trivial[table]
    if table in TWO_INPUT:
        return builder.emit(TWO_INPUT[table], p, q)
    if table in (0b0011, 0b0101):
        return builder.emit("not", p if table == 0b0011 else q)
    return None


LOGIC: dict[str, Rule] = {
    "and": simplify_and,
    "or": simplify_or,
    "xor": simplify_xor,
    "not": simplify_not,
    "popc": simplify_popc,
    "select": simplify_select,
    "lop3": simplify_lop3,
}
