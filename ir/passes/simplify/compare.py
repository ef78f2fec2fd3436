"""Identities of comparisons. A constant stands on the right already."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import compare
from qgpu.ir.core.types import I1, IntType
from qgpu.ir.core.values import FALSE, TRUE, Constant, Value
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import Rule, before, is_op, is_zero, like, number, width


def truth(value: bool) -> Constant:
    return TRUE if value else FALSE


def simplify_icmp(icmp: Instruction) -> Value | None:
    a, b = icmp.operands
    if a is b:
        return truth(icmp.attrs["pred"] in ("eq", "sle", "sge", "ule", "uge"))
    if not isinstance(a.type, IntType):
        return None
    for rule in (compare_truths, compare_bounds, compare_selected, compare_extension, compare_difference):
        found = rule(icmp)
        if found is not None:
            return found
    return None


def compare_truths(icmp: Instruction) -> Value | None:
    """Equality of an i1 with a constant is it or its complement; of two i1 it is their exclusive or."""
    a, b = icmp.operands
    predicate = icmp.attrs["pred"]
    if a.type is not I1 or predicate not in ("eq", "ne"):
        return None
    builder = before(icmp)
    if isinstance(b, Constant):
        return a if (predicate == "eq") == bool(b.value) else builder.emit("not", a)
    different = builder.emit("xor", a, b)
    return different if predicate == "ne" else builder.emit("not", different)


def compare_bounds(icmp: Instruction) -> Value | None:
    """Comparisons that every number passes or fails, or one number alone."""
    a, b = icmp.operands
    if not isinstance(b, Constant):
        return None
    limit = possible_ones(a)
    outcomes = {compare(icmp.attrs["pred"], value, b.value, width(a)) for value in _extremes(a, b, limit)}
    if len(outcomes) == 1 and icmp.attrs["pred"][0] in "us":
        return truth(outcomes.pop())
    if icmp.attrs["pred"] in ("eq", "ne") and b.value & ~limit:
        return truth(icmp.attrs["pred"] == "ne")
    if icmp.attrs["pred"] in ("ult", "uge") and b.value == 1:
        return before(icmp).icmp("eq" if icmp.attrs["pred"] == "ult" else "ne", a, like(a, 0))
    return None


def _extremes(a: Value, b: Constant, limit: int) -> tuple[int, ...]:
    """The numbers at which a comparison with `b` may turn out differently, given the bits that may be one."""
    half = b.type.mask // 2
    if limit <= half:
        return (0, limit)
    return (0, half, half + 1, b.type.mask)


def compare_selected(icmp: Instruction) -> Value | None:
    """A comparison of a constant with one of two constants depends on which one it is."""
    select, b = is_op(icmp.operands[0], "select"), number(icmp.operands[1])
    if select is None or b is None:
        return None
    chosen = [number(operand) for operand in select.operands[1:]]
    if chosen[0] is None or chosen[1] is None:
        return None
    outcomes = [compare(icmp.attrs["pred"], value or 0, b, width(select)) for value in chosen]
    return _by_condition(icmp, select.operands[0], outcomes[0], outcomes[1])


def _by_condition(icmp: Instruction, condition: Value, if_true: bool, if_false: bool) -> Value:
    if if_true == if_false:
        return truth(if_true)
    return condition if if_true else before(icmp).emit("not", condition)


def compare_extension(icmp: Instruction) -> Value | None:
    """Extended values compare as before their extension, if both sides are extended alike."""
    a, b = icmp.operands
    cast = is_op(a, "zext") or is_op(a, "sext")
    if cast is None:
        return None
    narrow = cast.operands[0]
    if narrow.type is I1 and isinstance(b, Constant):
        one = 1 if cast.op == "zext" else b.type.mask
        outcomes = [compare(icmp.attrs["pred"], value, b.value, width(a)) for value in (one, 0)]
        return _by_condition(icmp, narrow, outcomes[0], outcomes[1])
    other = is_op(b, cast.op)
    if other is None or other.operands[0].type is not narrow.type:
        return None
    predicate = icmp.attrs["pred"]
    if cast.op == "zext" and predicate.startswith("s"):
        predicate = "u" + predicate[1:]
    return before(icmp).icmp(predicate, narrow, other.operands[0])


def compare_difference(icmp: Instruction) -> Value | None:
    """Equality of a sum, difference or exclusive or with a constant is equality of the operands."""
    a, b = icmp.operands
    if icmp.attrs["pred"] not in ("eq", "ne") or not isinstance(a, Instruction):
        return None
    if a.op in ("sub", "xor") and is_zero(b):
        left, right = a.operands
        return before(icmp).icmp(icmp.attrs["pred"], left, right)
    constants = [operand for operand in a.operands if isinstance(operand, Constant)]
    if a.op == "add" and constants and isinstance(b, Constant):
        return before(icmp).icmp(icmp.attrs["pred"], a.operands[0], like(b, b.value - constants[0].value))
    return None


COMPARE: dict[str, Rule] = {"icmp": simplify_icmp}
