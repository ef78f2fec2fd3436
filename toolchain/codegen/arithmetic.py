"""Arithmetic: the machine expression of every pure IR opcode that has one.

Constants are words; an i1 is the word 0 or 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from qgpu.ir import I1, Instruction
from qgpu.toolchain.codegen.nodes import (
    EQUAL,
    GREATER,
    LESS,
    LUT_X,
    LUT_Y,
    MEMORY,
    Arg,
    Expression,
    Node,
    Operand,
    move,
    word,
)

Rule = Callable[[Instruction, Sequence[Arg]], Expression | None]
"""Gives the expression of an instruction for its operands, or None where there is none."""

RELATIONS: dict[str, tuple[int, bool]] = {
    "eq": (EQUAL, False),
    "ne": (LESS | GREATER, False),
    **{
        sign + name: (relation, sign == "s")
        for sign in "su"
        for name, relation in (
            ("lt", LESS),
            ("le", LESS | EQUAL),
            ("gt", GREATER),
            ("ge", GREATER | EQUAL),
        )
    },
}
"""Relation and signedness of an icmp predicate."""

_LOGIC = {"and": LUT_X & LUT_Y, "or": LUT_X | LUT_Y, "xor": LUT_X ^ LUT_Y}
_EXTREMES = {"min": LESS, "max": GREATER}
MINUS_ONE = 0xFFFFFFFF


def total(a: Arg, b: Arg) -> Expression:
    """a + b."""
    return Expression("mad", a, 1, b)


def difference(a: Arg, b: Arg) -> Expression:
    """a - b."""
    return total(a, word(-b)) if isinstance(b, int) else Expression("mad", b, MINUS_ONE, a)


def product(a: Arg, b: Arg) -> Expression:
    """a * b."""
    return Expression("mad", a, b, 0)


def logic(name: str, a: Operand, b: Operand) -> Expression:
    """a and, or, xor b, bit by bit."""
    return Expression("lop3", a, b, 0, lut=_LOGIC[name])


def extreme(kind: str, a: Operand, b: Operand, signed: bool) -> Expression:
    """The minimum or maximum of two words; `kind` is min or max."""
    return Expression("pick", a, b, relation=_EXTREMES[kind], signed=signed)


def inverted(condition: Arg) -> Expression:
    """not of an i1."""
    return Expression("cmp", condition, 0, relation=EQUAL)


def _shl(instruction: Instruction, args: Sequence[Arg]) -> Expression:
    value, amount = args
    if isinstance(amount, int):
        return product(value, 1 << amount) if amount < 32 else move(0)
    return Expression("shl", value, amount)


def _shr(signed: bool) -> Rule:
    return lambda instruction, args: Expression("shr", args[0], args[1], signed=signed)


def _not(instruction: Instruction, args: Sequence[Arg]) -> Expression:
    if instruction.type is I1:
        return inverted(args[0])
    return Expression("lop3", args[0], lut=~LUT_X & 0xFF)


def _icmp(instruction: Instruction, args: Sequence[Arg]) -> Expression:
    relation, signed = RELATIONS[instruction.attrs["pred"]]
    a, b = args
    if instruction.operands[0].type is I1 and signed:
        a, b, signed = b, a, False  # true is -1: the order of the numbers 0 and 1 turns round
    return Expression("cmp", a, b, relation=relation, signed=signed)


def _select(instruction: Instruction, args: Sequence[Arg]) -> Expression:
    return _lexicographic(*args) or Expression("select", args[1], args[2], args[0])


def _lexicographic(condition: Arg, lower: Arg, higher: Arg) -> Expression | None:
    """A comparison of longer numbers: that of the lower words where the higher ones are equal."""
    if not isinstance(condition, Node) or not isinstance(higher, Node):
        return None
    equal, strict = condition.expression, higher.expression
    if (equal.op, equal.relation, strict.op) != ("cmp", EQUAL, "cmp") or strict.relation & EQUAL:
        return None
    alike = {equal.x, equal.y} == {strict.x, strict.y}
    return dataclasses.replace(strict, op="lex", z=lower) if alike else None


def _high_product(signed: bool) -> Rule:
    return lambda instruction, args: Expression("mulhi", args[0], args[1], signed=signed)


def _unary(op: str) -> Rule:
    return lambda instruction, args: Expression(op, args[0])


def _lop3(instruction: Instruction, args: Sequence[Arg]) -> Expression:
    return Expression("lop3", *args, lut=instruction.attrs["lut"])


def _truncate(instruction: Instruction, args: Sequence[Arg]) -> Expression | None:
    return logic("and", args[0], 1) if instruction.type is I1 else None


def _sign_extend(instruction: Instruction, args: Sequence[Arg]) -> Expression | None:
    return product(args[0], MINUS_ONE) if instruction.operands[0].type is I1 else None


def _zero_extend(instruction: Instruction, args: Sequence[Arg]) -> Expression | None:
    return move(args[0]) if instruction.operands[0].type is I1 else None


RULES: dict[str, Rule] = {
    "add": lambda instruction, args: total(*args),
    "sub": lambda instruction, args: difference(*args),
    "mul": lambda instruction, args: product(*args),
    **{name: lambda instruction, args: logic(instruction.op, *args) for name in _LOGIC},
    "shl": _shl,
    "lshr": _shr(signed=False),
    "ashr": _shr(signed=True),
    **{
        sign + kind: lambda instruction, args: extreme(
            instruction.op[1:], args[0], args[1], instruction.op[0] == "s"
        )
        for sign in "su"
        for kind in _EXTREMES
    },
    "not": _not,
    "mulhi_u": _high_product(signed=False),
    "mulhi_s": _high_product(signed=True),
    **{name: _unary(name) for name in ("popc", "clz", "brev", "rcp")},
    "prmt": lambda instruction, args: Expression("prmt", args[0], args[1], args[2]),
    "shf": lambda instruction, args: Expression("shf", args[0], args[2], args[1]),
    "icmp": _icmp,
    "select": _select,
    "lop3": _lop3,
    "trunc": _truncate,
    "sext": _sign_extend,
    "zext": _zero_extend,
    "undef": lambda instruction, args: move(0),
}
"""The expression of every pure opcode that the machine has, by opcode."""

ATOMICS: dict[str, Callable[[Arg], Expression]] = {
    "add": lambda value: Expression("mad", MEMORY, 1, value),
    "and": lambda value: logic("and", MEMORY, value),
    "or": lambda value: logic("or", MEMORY, value),
    "xor": lambda value: logic("xor", MEMORY, value),
    "min_s": lambda value: extreme("min", MEMORY, value, True),
    "max_s": lambda value: extreme("max", MEMORY, value, True),
    "min_u": lambda value: extreme("min", MEMORY, value, False),
    "max_u": lambda value: extreme("max", MEMORY, value, False),
    "xchg": move,
}
"""The new memory word of an atomic operation, by its kind."""

OLD_VALUES: dict[str, Callable[[Arg, Arg], Expression]] = {
    "add": difference,
    "xor": lambda new, value: logic("xor", new, value),
}
"""The old word from the new one and the operand, for the kinds in which it follows from them."""
