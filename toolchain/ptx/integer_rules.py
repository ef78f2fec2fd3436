"""Integer arithmetic (PTX ISA 9.0, section 9.7.1)."""

from collections.abc import Callable

from qgpu.ir import I32, Constant, IntType, PtrType, Value, integer
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import Rule

_INT = r"(?P<type>[su](?:16|32|64))"
_NARROW = r"(?P<type>[su](?:16|32))"
_SIGNED = r"(?P<type>s(?:16|32|64))"
_WORD = r"(?P<type>[su]32)"
_SATURATED = r"(?P<saturate>sat)\.(?P<type>s32)"


def _binary(signed: str, unsigned: str) -> Callable[[Emitter], None]:
    """Lower `d = a op b` to the opcode for the type's signedness."""

    def lower(x: Emitter) -> None:
        opcode = signed if x.signed() else unsigned
        x.define(x.builder.emit(opcode, x.integer("a", x.type()), x.integer("b", x.type())))

    return lower


def _saturated(x: Emitter, result: Value, overflow: Value) -> Value:
    """The result, or where the sign of `overflow` is set the limit that it has passed, of the other sign."""
    sign = x.operation("ashr", result, Constant(I32, 31))
    limit = x.operation("xor", sign, Constant(I32, 1 << 31))
    return x.builder.select(x.compare("slt", overflow, Constant(I32, 0)), limit, result)


def _saturated_sum(x: Emitter, a: Value, b: Value) -> Value:
    """A sum overflows where both operands have the sign that it has not."""
    result = x.operation("add", a, b)
    overflow = x.operation("and", x.operation("xor", a, result), x.operation("xor", b, result))
    return _saturated(x, result, overflow)


def _add_saturated(x: Emitter) -> None:
    x.define(_saturated_sum(x, x.integer("a", I32), x.integer("b", I32)))


def _subtract_saturated(x: Emitter) -> None:
    """A difference overflows where the operands differ in sign, and the result from the first."""
    a, b = x.integer("a", I32), x.integer("b", I32)
    result = x.operation("sub", a, b)
    overflow = x.operation("and", x.operation("xor", a, b), x.operation("xor", a, result))
    x.define(_saturated(x, result, overflow))


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


def _product24(x: Emitter) -> Value:
    """The low or high 32 of the 48 bits of the product of two numbers of 24 bits."""
    a, b = (_low24(x, role) for role in "ab")
    low = x.operation("mul", a, b)
    if x.form["part"] == "lo":
        return low
    high = x.operation("mulhi_s" if x.signed() else "mulhi_u", a, b)
    half = Constant(I32, 16)
    return x.operation("or", x.operation("shl", high, half), x.operation("lshr", low, half))


def _low24(x: Emitter, role: str) -> Value:
    value = x.integer(role, I32)
    if not x.signed():
        return x.operation("and", value, Constant(I32, 0xFFFFFF))
    unused = Constant(I32, 8)
    return x.operation("ashr", x.operation("shl", value, unused), unused)


def _multiply(product: Callable[[Emitter], Value]) -> Callable[[Emitter], None]:
    return lambda x: x.define(product(x))


def _multiply_add(product: Callable[[Emitter], Value]) -> Callable[[Emitter], None]:
    """mad: a part of the product, added to c, which may be a pointer."""

    def lower(x: Emitter) -> None:
        part = product(x)
        assert isinstance(part.type, IntType)
        if x.form.get("saturate"):
            x.define(_saturated_sum(x, part, x.integer("c", I32)))
        else:
            c = x.value("c", part.type)
            x.define(x.moved(c, part, "c") if isinstance(c.type, PtrType) else x.operation("add", part, c))

    return lower


def _negated(x: Emitter) -> tuple[Value, Value]:
    """a and -a."""
    a = x.integer("a", x.type())
    return a, x.builder.emit("sub", Constant(x.type(), 0), a)


def _negate(x: Emitter) -> None:
    x.define(_negated(x)[1])


def _absolute(x: Emitter) -> None:
    x.define(x.builder.emit("smax", *_negated(x)))


def _absolute_difference(x: Emitter) -> None:
    """sad: c + |a - b|."""
    type_, sign = x.type(), "s" if x.signed() else "u"
    a, b, c = (x.integer(role, type_) for role in "abc")
    larger, smaller = x.builder.emit(f"{sign}max", a, b), x.builder.emit(f"{sign}min", a, b)
    x.define(x.builder.emit("add", x.builder.emit("sub", larger, smaller), c))


def _rectified(opcode: str) -> Callable[[Emitter], None]:
    """min.relu, max.relu: negative results become 0."""

    def lower(x: Emitter) -> None:
        result = x.operation(opcode, x.integer("a", I32), x.integer("b", I32))
        x.define(x.operation("smax", result, Constant(I32, 0)))

    return lower


RULES = [
    Rule("add", _INT, "d a b", _binary("add", "add"), "ab"),
    Rule("add", _SATURATED, "d a b", _add_saturated),
    Rule("sub", _INT, "d a b", _binary("sub", "sub"), "a"),
    Rule("sub", _SATURATED, "d a b", _subtract_saturated),
    Rule("mul", rf"(?P<part>lo|hi)\.{_INT}", "d a b", _multiply(_product)),
    Rule("mul", rf"(?P<part>wide)\.{_NARROW}", "d a b", _multiply(_product)),
    Rule("mad", rf"(?P<part>lo|hi)\.{_INT}", "d a b c", _multiply_add(_product), "c"),
    Rule("mad", rf"(?P<part>wide)\.{_NARROW}", "d a b c", _multiply_add(_product), "c"),
    Rule("mad", rf"(?P<part>hi)\.{_SATURATED}", "d a b c", _multiply_add(_product)),
    Rule("mul24", rf"(?P<part>lo|hi)\.{_WORD}", "d a b", _multiply(_product24)),
    Rule("mad24", rf"(?P<part>lo|hi)\.{_WORD}", "d a b c", _multiply_add(_product24)),
    Rule("mad24", rf"(?P<part>hi)\.{_SATURATED}", "d a b c", _multiply_add(_product24)),
    Rule("sad", _INT, "d a b c", _absolute_difference),
    Rule("div", _INT, "d a b", _binary("sdiv", "udiv")),
    Rule("rem", _INT, "d a b", _binary("srem", "urem")),
    Rule("abs", _SIGNED, "d a", _absolute),
    Rule("neg", _SIGNED, "d a", _negate),
    Rule("min", _INT, "d a b", _binary("smin", "umin")),
    Rule("max", _INT, "d a b", _binary("smax", "umax")),
    Rule("min", r"relu\.s32", "d a b", _rectified("smin")),
    Rule("max", r"relu\.s32", "d a b", _rectified("smax")),
]
