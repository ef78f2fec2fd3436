"""Identities of addition, subtraction, multiplication and shifts. Constants stand on the right already."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.simplify.fields import join_shifts
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import Rule, before, is_all_ones, is_op, is_zero, like, number, width


def simplify_add(add: Instruction) -> Value | None:
    a, b = add.operands
    if is_zero(b):
        return a
    for x, y in ((a, b), (b, a)):
        negated = is_op(y, "sub")
        if negated and is_zero(negated.operands[0]):
            return before(add).emit("sub", x, negated.operands[1])
    return reassociate(add) or join_shifts(add)


def reassociate(outer: Instruction) -> Value | None:
    """(x op c1) op c2 = x op (c1 op c2) for associative operations."""
    inner, constant = is_op(outer.operands[0], outer.op), outer.operands[1]
    if inner is None or not isinstance(constant, Constant) or not isinstance(inner.operands[1], Constant):
        return None
    c1, c2 = inner.operands[1].value, constant.value
    combined = {"add": c1 + c2, "mul": c1 * c2, "and": c1 & c2, "or": c1 | c2, "xor": c1 ^ c2}[outer.op]
    return before(outer).emit(outer.op, inner.operands[0], like(constant, combined))


def simplify_sub(sub: Instruction) -> Value | None:
    a, b = sub.operands
    if a is b:
        return like(a, 0)
    if isinstance(b, Constant):
        return before(sub).emit("add", a, like(b, -b.value))
    inner = is_op(b, "sub")
    if is_zero(a) and inner:
        return before(sub).emit("sub", inner.operands[1], inner.operands[0])
    total = is_op(a, "add")
    if total and b in total.operands and not isinstance(b, Constant):
        return total.operands[1] if total.operands[0] is b else total.operands[0]
    return None


def simplify_mul(mul: Instruction) -> Value | None:
    a, b = mul.operands
    if is_zero(b):
        return b
    if number(b) == 1:
        return a
    if is_all_ones(b):
        return before(mul).emit("sub", like(a, 0), a)
    return reassociate(mul)


def simplify_shl(shl: Instruction) -> Value | None:
    """A shift by a constant is a multiplication: the machine's form, which joins other multiplications."""
    value, amount = shl.operands[0], number(shl.operands[1])
    if amount is None:
        return None
    if amount >= width(shl):
        return like(value, 0)
    return before(shl).emit("mul", value, like(value, 1 << amount)) if amount else value


def simplify_right_shift(shift: Instruction) -> Value | None:
    value, amount = shift.operands[0], number(shift.operands[1])
    if amount is None:
        return None
    if amount == 0:
        return value
    if amount >= width(shift) and shift.op == "lshr":
        return like(value, 0)
    if amount >= width(shift):
        return before(shift).emit("ashr", value, like(value, width(shift) - 1))
    inner = is_op(value, shift.op)
    inner_amount = number(inner.operands[1]) if inner else None
    if inner is None or inner_amount is None:
        return None
    return before(shift).emit(
        shift.op, inner.operands[0], like(value, min(inner_amount + amount, width(shift)))
    )


def simplify_division(division: Instruction) -> Value | None:
    """x / 1, and unsigned divisions by powers of two; numbers without a sign divide as unsigned."""
    a, divisor = division.operands[0], number(division.operands[1])
    if divisor == 1:
        return like(a, 0) if division.op.endswith("rem") else a
    sign = 1 << width(division) - 1
    if division.op.startswith("s") and not (possible_ones(a) | possible_ones(division.operands[1])) & sign:
        return before(division).emit("u" + division.op[1:], *division.operands)
    if divisor is None or divisor == 0 or divisor & (divisor - 1) or division.op not in ("udiv", "urem"):
        return None
    if division.op == "urem":
        return before(division).emit("and", a, like(a, divisor - 1))
    return before(division).emit("lshr", a, like(a, divisor.bit_length() - 1))


def simplify_extremum(extremum: Instruction) -> Value | None:
    """Minimum and maximum of equal values, and with the smallest or greatest number there is."""
    a, b = extremum.operands
    if a is b:
        return a
    if not isinstance(b, Constant):
        return None
    mask = b.type.mask
    least, greatest = (mask // 2 + 1, mask // 2) if extremum.op.startswith("s") else (0, mask)
    absorbing, neutral = (least, greatest) if extremum.op.endswith("min") else (greatest, least)
    if b.value == absorbing:
        return b
    return a if b.value == neutral else None


ARITHMETIC: dict[str, Rule] = {
    "add": simplify_add,
    "sub": simplify_sub,
    "mul": simplify_mul,
    "shl": simplify_shl,
    "lshr": simplify_right_shift,
    "ashr": simplify_right_shift,
    "sdiv": simplify_division,
    "udiv": simplify_division,
    "srem": simplify_division,
    "urem": simplify_division,
    "smin": simplify_extremum,
    "smax": simplify_extremum,
    "umin": simplify_extremum,
    "umax": simplify_extremum,
}
