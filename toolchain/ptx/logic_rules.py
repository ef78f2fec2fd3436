"""Bitwise logic and shifts (PTX ISA 9.0, section 9.7.8)."""

from collections.abc import Callable

from qgpu.ir import I32, Constant, Value
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import Rule

_BITS = r"(?P<type>b(?:16|32|64))"


def _bitwise(opcode: str) -> Callable[[Emitter], None]:
    return lambda x: x.define(x.builder.emit(opcode, *(x.integer(role, x.type()) for role in "ab")))


def _of_predicates(opcode: str) -> Callable[[Emitter], None]:
    return lambda x: x.define(x.builder.emit(opcode, x.predicate("a"), x.predicate("b")))


def _not(x: Emitter) -> None:
    x.define(x.builder.emit("not", x.integer("a", x.type())))


def _not_predicate(x: Emitter) -> None:
    x.define(x.builder.emit("not", x.predicate("a")))


def _is_zero(x: Emitter) -> None:
    """cnot: 1 where a is 0, else 0."""
    zero = x.compare("eq", x.integer("a", x.type()), Constant(x.type(), 0))
    x.define(x.resized(zero, x.type(), False))


def _by_table(x: Emitter) -> Value:
    sources = [x.integer(role, I32) for role in "abc"]
    table = x.immediate("lut")
    if not 0 <= table <= 255:
        raise x.refusal("the table of a lop3 has 8 bits", "lut")
    return x.builder.emit("lop3", *sources, attrs={"lut": table})


def _lop3(x: Emitter) -> None:
    x.define(_by_table(x))


def _lop3_predicate(x: Emitter) -> None:
    """lop3 with a second result: whether the first is not zero, combined with a predicate."""
    value = _by_table(x)
    not_zero = x.builder.icmp("ne", value, Constant(I32, 0))
    x.define(value, x.builder.emit(x.form["combine"] or "", not_zero, x.predicate("q")))


def _amount(x: Emitter) -> Value:
    """A shift's amount, an unsigned 32-bit operand, in the type that is shifted.

    Amounts from the width on all shift everything out, so a 16-bit shift may clamp before it truncates.
    """
    type_, amount = x.type(), x.integer("b", I32)
    if isinstance(amount, Constant):
        return Constant(type_, min(amount.value, type_.width))
    if type_.width < I32.width:
        amount = x.builder.emit("umin", amount, Constant(I32, type_.width))
    return x.resized(amount, type_, False)


def _shift(x: Emitter, opcode: str) -> None:
    x.define(x.builder.emit(opcode, x.integer("a", x.type()), _amount(x)))


def _shift_left(x: Emitter) -> None:
    _shift(x, "shl")


def _shift_right(x: Emitter) -> None:
    _shift(x, "ashr" if x.signed() else "lshr")


def _funnel_shift(x: Emitter) -> None:
    """shf: one word of the 64 bits b:a, shifted; left by n is right by 32 - n."""
    low, high, amount = (x.integer(role, I32) for role in "abc")
    if x.form["mode"] == "wrap":
        amount = x.operation("and", amount, Constant(I32, 31))
    else:
        amount = x.operation("umin", amount, Constant(I32, 32))
    if x.form["direction"] == "l":
        amount = x.operation("sub", Constant(I32, 32), amount)
    x.define(x.builder.emit("shf", low, high, amount))


RULES = [
    Rule("and", _BITS, "d a b", _bitwise("and")),
    Rule("or", _BITS, "d a b", _bitwise("or")),
    Rule("xor", _BITS, "d a b", _bitwise("xor")),
    Rule("not", _BITS, "d a", _not),
    Rule("and", "pred", "d a b", _of_predicates("and")),
    Rule("or", "pred", "d a b", _of_predicates("or")),
    Rule("xor", "pred", "d a b", _of_predicates("xor")),
    Rule("not", "pred", "d a", _not_predicate),
    Rule("cnot", _BITS, "d a", _is_zero),
    Rule("lop3", "b32", "d a b c lut", _lop3),
    Rule("lop3", r"(?P<combine>or|and)\.b32", "d a b c lut q", _lop3_predicate),
    Rule("shl", _BITS, "d a b", _shift_left),
    Rule("shr", r"(?P<type>[bsu](?:16|32|64))", "d a b", _shift_right),
    Rule("shf", r"(?P<direction>[lr])\.(?P<mode>wrap|clamp)\.b32", "d a b c", _funnel_shift),
]
