"""Integer arithmetic, logic, shifts and comparisons (PTX ISA 9.0, sections 9.7.1, 9.7.2, 9.7.6 and 9.7.8)."""

from collections.abc import Callable

from qgpu.ir import I32, Constant, IntType, PtrType, Value, integer
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import Rule

_INT = r"(?P<type>[su](?:16|32|64))"
_NARROW = r"(?P<type>[su](?:16|32))"
_SIGNED = r"(?P<type>s(?:16|32|64))"
_BITS = r"(?P<type>b(?:16|32|64)|pred)"
_COMPARE = r"(?P<compare>eq|ne|lt|le|gt|ge|lo|ls|hi|hs)"
_COMPARED = r"(?P<type>[bsu](?:16|32|64))"

_RELATIONS = {
    "b": {"eq": "eq", "ne": "ne"},
    "s": {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"},
    "u": {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}
    | {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"},
}


def _binary(signed: str, unsigned: str | None = None) -> Callable[[Emitter], None]:
    """Lower `d = a op b` to the opcode for the type's signedness."""

    def lower(x: Emitter) -> None:
        type_ = x.type()
        opcode = signed if x.signed() else unsigned or signed
        x.define(x.builder.emit(opcode, x.integer("a", type_), x.integer("b", type_)))

    return lower


def _sum(x: Emitter, a: Value, b: Value, role: str) -> Value:
    """a + b, where one of the two may be a pointer; `role` is the operand to blame."""
    if isinstance(a.type, PtrType):
        return x.moved(a, b, role)
    if isinstance(b.type, PtrType):
        return x.moved(b, a, role)
    return x.builder.emit("add", a, b)


def _add(x: Emitter) -> None:
    x.define(_sum(x, x.value("a", x.type()), x.value("b", x.type()), "b"))


def _subtract(x: Emitter) -> None:
    a, b = x.value("a", x.type()), x.integer("b", x.type())
    if not isinstance(a.type, PtrType):
        x.define(x.builder.emit("sub", a, b))
    elif isinstance(b, Constant):
        x.define(x.displaced(a, -b.signed))
    else:
        x.define(x.moved(a, x.builder.emit("sub", Constant(x.type(), 0), b), "b"))


def _product(x: Emitter) -> Value:
    """The part of a * b that the form asks for."""
    type_, signed = x.type(), x.signed()
    a, b = x.integer("a", type_), x.integer("b", type_)
    if x.form["part"] == "lo":
        return x.builder.emit("mul", a, b)
    if x.form["part"] == "hi":
        return x.builder.emit("mulhi_s" if signed else "mulhi_u", a, b)
    wide = integer(2 * type_.width)
    return x.builder.emit("mul", x.resized(a, wide, signed), x.resized(b, wide, signed))


def _multiply(x: Emitter) -> None:
    x.define(_product(x))


def _multiply_add(x: Emitter) -> None:
    product = _product(x)
    assert isinstance(product.type, IntType)
    x.define(_sum(x, product, x.value("c", product.type), "c"))


def _negated(x: Emitter) -> tuple[Value, Value]:
    """a and -a."""
    a = x.integer("a", x.type())
    return a, x.builder.emit("sub", Constant(x.type(), 0), a)


def _negate(x: Emitter) -> None:
    x.define(_negated(x)[1])


def _absolute(x: Emitter) -> None:
    x.define(x.builder.emit("smax", *_negated(x)))


def _not(x: Emitter) -> None:
    x.define(x.builder.emit("not", x.integer("a", x.type())))


def _population_count(x: Emitter) -> None:
    x.define(x.resized(x.builder.emit("popc", x.integer("a", x.type())), I32, False))


def _lop3(x: Emitter) -> None:
    sources = [x.integer(role, I32) for role in "abc"]
    table = x.immediate("lut")
    if not 0 <= table <= 255:
        raise x.refusal("the table of a lop3 has 8 bits", "lut")
    x.define(x.builder.emit("lop3", *sources, attrs={"lut": table}))


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
    """shf: one word of the 64 bits b:a, shifted; an amount of 0 shifts the other word out as a whole."""
    low, high, amount = (x.integer(role, I32) for role in "abc")
    if x.form["mode"] == "wrap":
        amount = x.operation("and", amount, Constant(I32, 31))
    else:
        amount = x.operation("umin", amount, Constant(I32, 32))
    rest = x.operation("sub", Constant(I32, 32), amount)
    left, right = (amount, rest) if x.form["direction"] == "l" else (rest, amount)
    x.define(x.builder.emit("or", x.builder.emit("shl", high, left), x.builder.emit("lshr", low, right)))


def _leading_zeros(x: Emitter) -> None:
    """clz: every bit below the highest one set is set as well, and what is still clear is counted."""
    type_, value = x.type(), x.integer("a", x.type())
    distance = 1
    while distance < type_.width:
        value = x.builder.emit("or", value, x.builder.emit("lshr", value, Constant(type_, distance)))
        distance *= 2
    x.define(x.resized(x.builder.emit("popc", x.builder.emit("not", value)), I32, False))


def _absolute_difference(x: Emitter) -> None:
    """sad: c + |a - b|."""
    type_, sign = x.type(), "s" if x.signed() else "u"
    a, b, c = (x.integer(role, type_) for role in "abc")
    larger, smaller = x.builder.emit(f"{sign}max", a, b), x.builder.emit(f"{sign}min", a, b)
    x.define(x.builder.emit("add", x.builder.emit("sub", larger, smaller), c))


def _compare(x: Emitter) -> None:
    """setp: the comparison in the first result, its complement in the second, each combined with c."""
    compared = _comparison(x)
    if len(list(x.results())) == 1:
        x.define(_combined(x, compared))
    else:
        x.define(_combined(x, compared), _combined(x, x.builder.emit("not", compared)))


def _comparison(x: Emitter) -> Value:
    relation, type_name = x.form["compare"] or "", x.form["type"] or ""
    predicate = _RELATIONS[type_name[0]].get(relation)
    if predicate is None:
        raise x.refusal(f"'{relation}' does not compare operands of type {type_name}")
    a, b = x.value("a", x.type()), x.value("b", x.type())
    if a.type is not b.type:
        raise x.refusal("a pointer is compared with an integer or with a pointer to other memory", "b")
    return x.builder.icmp(predicate, a, b)


def _combined(x: Emitter, value: Value) -> Value:
    return x.builder.emit(x.form["combine"] or "", value, x.predicate("c")) if x.has("c") else value


RULES = [
    Rule("add", _INT, "d a b", _add, "ab"),
    Rule("sub", _INT, "d a b", _subtract, "a"),
    Rule("mul", rf"(?P<part>lo|hi)\.{_INT}", "d a b", _multiply),
    Rule("mul", rf"(?P<part>wide)\.{_NARROW}", "d a b", _multiply),
    Rule("mad", rf"(?P<part>lo|hi)\.{_INT}", "d a b c", _multiply_add, "c"),
    Rule("mad", rf"(?P<part>wide)\.{_NARROW}", "d a b c", _multiply_add, "c"),
    Rule("div", _INT, "d a b", _binary("sdiv", "udiv")),
    Rule("rem", _INT, "d a b", _binary("srem", "urem")),
    Rule("min", _INT, "d a b", _binary("smin", "umin")),
    Rule("max", _INT, "d a b", _binary("smax", "umax")),
    Rule("abs", _SIGNED, "d a", _absolute),
    Rule("neg", _SIGNED, "d a", _negate),
    Rule("and", _BITS, "d a b", _binary("and")),
    Rule("or", _BITS, "d a b", _binary("or")),
    Rule("xor", _BITS, "d a b", _binary("xor")),
    Rule("not", _BITS, "d a", _not),
    Rule("lop3", "b32", "d a b c lut", _lop3),
    Rule("popc", r"(?P<type>b(?:32|64))", "d a", _population_count),
    Rule("shl", r"(?P<type>b(?:16|32|64))", "d a b", _shift_left),
    Rule("shr", r"(?P<type>[bsu](?:16|32|64))", "d a b", _shift_right),
    Rule("shf", r"(?P<direction>[lr])\.(?P<mode>wrap|clamp)\.b32", "d a b c", _funnel_shift),
    Rule("clz", r"(?P<type>b(?:32|64))", "d a", _leading_zeros),
    Rule("sad", _INT, "d a b c", _absolute_difference),
    Rule("setp", rf"{_COMPARE}\.{_COMPARED}", "d a b", _compare, "ab"),
    Rule("setp", rf"{_COMPARE}\.(?P<combine>and|or|xor)\.{_COMPARED}", "d a b c", _compare, "ab"),
]
