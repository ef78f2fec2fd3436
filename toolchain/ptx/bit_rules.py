"""Counting, finding, extracting and permuting bits (PTX ISA 9.0, section 9.7.1 from popc on, and prmt)."""

from collections.abc import Callable

from qgpu.ir import I32, Constant, Value
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import Rule

_BITS = r"(?P<type>b(?:32|64))"
_INT = r"(?P<type>[su](?:32|64))"
_MODE = r"(?P<mode>clamp|wrap)"
_NONE = Constant(I32, -1)


def _count(opcode: str) -> Callable[[Emitter], None]:
    """popc, clz: a number of bits, as a word."""
    return lambda x: x.define(x.resized(x.builder.emit(opcode, x.integer("a", x.type())), I32, False))


def _reverse(x: Emitter) -> None:
    x.define(x.builder.emit("brev", x.integer("a", x.type())))


def _find(x: Emitter) -> None:
    """bfind: the highest bit set, in a negative number the highest one clear; all ones where there is none.

    `.shiftamt` gives the distance from the top instead.
    """
    type_, value = x.type(), x.integer("a", x.type())
    if x.signed():
        sign = x.operation("ashr", value, Constant(type_, type_.width - 1))
        value = x.operation("xor", value, sign)
    zeros = x.resized(x.operation("clz", value), I32, False)
    if x.form["distance"]:
        found = x.compare("ne", value, Constant(type_, 0))
        x.define(x.operation("select", found, zeros, _NONE))
    else:
        x.define(x.operation("sub", Constant(I32, type_.width - 1), zeros))


def _find_nth(x: Emitter) -> None:
    """fns: the bit set that stands `offset` places among those from `base` on, upwards or downwards.

    Among the bits that count (those at, from or up to base), the one searched for is the n-th from below:
    downwards, the n-th from above becomes that.
    """
    mask, base, offset = (x.integer(role, I32) for role in "abc")
    zero, one = Constant(I32, 0), Constant(I32, 1)
    from_base = x.operation("and", mask, x.operation("shl", _NONE, base))
    to_base = x.operation(
        "and", mask, x.operation("lshr", _NONE, x.operation("sub", Constant(I32, 31), base))
    )
    at_base = x.operation("and", from_base, to_base)
    downwards = x.compare("slt", offset, zero)
    upwards = x.compare("sgt", offset, zero)
    from_above = x.operation("add", x.operation("add", x.operation("popc", to_base), offset), one)
    bits = x.operation("select", downwards, to_base, x.operation("select", upwards, from_base, at_base))
    number = x.operation("select", downwards, from_above, x.operation("smax", offset, one))
    found = x.operation(
        "and",
        x.compare("sge", number, one),
        x.compare("sle", number, x.operation("popc", bits)),
    )
    x.define(x.operation("select", found, _nth_bit(x, bits, number), _NONE))


def _nth_bit(x: Emitter, bits: Value, number: Value) -> Value:
    """The position of the bit set that is number `number` from below, counted from 1; there is one."""
    position: Value = Constant(I32, 0)
    for width in (16, 8, 4, 2, 1):
        part = x.operation("and", x.operation("lshr", bits, position), Constant(I32, (1 << width) - 1))
        count = x.operation("popc", part)
        above = x.compare("sgt", number, count)
        skipped = x.operation("select", above, count, Constant(I32, 0))
        number = x.operation("sub", number, skipped)
        step = x.operation("select", above, Constant(I32, width), Constant(I32, 0))
        position = x.operation("add", position, step)
    return position


def _extract(x: Emitter) -> None:
    opcode = "bfe_s" if x.signed() else "bfe_u"
    x.define(x.operation(opcode, x.integer("a", x.type()), x.integer("b", I32), x.integer("c", I32)))


def _insert(x: Emitter) -> None:
    fields = [x.integer("a", x.type()), x.integer("b", x.type())]
    x.define(x.operation("bfi", *fields, x.integer("c", I32), x.integer("e", I32)))


def _limited(x: Emitter, role: str) -> Value:
    """A position or width of 0 to 31; where it clamps, 32 stands for all that are larger."""
    wraps = x.form["mode"] == "wrap"
    opcode, limit = ("and", 31) if wraps else ("umin", 32)
    return x.operation(opcode, x.integer(role, I32), Constant(I32, limit))


def _mask(x: Emitter) -> None:
    """bmsk: the ones from the position a on without those from a + b on."""
    position, width = _limited(x, "a"), _limited(x, "b")
    end = x.operation("add", position, width)
    beyond = x.operation("not", x.operation("shl", _NONE, end))
    x.define(x.operation("and", x.operation("shl", _NONE, position), beyond))


def _extend(x: Emitter) -> None:
    """szext: the low b bits of a, extended."""
    unused = x.operation("sub", Constant(I32, 32), _limited(x, "b"))
    top = x.operation("shl", x.integer("a", I32), unused)
    x.define(x.operation("ashr" if x.signed() else "lshr", top, unused))


def _permute(x: Emitter) -> None:
    sources = [x.integer(role, I32) for role in "abc"]
    x.define(x.operation("prmt", *sources, attrs={"mode": x.form["mode"] or "bytes"}))


RULES = [
    Rule("popc", _BITS, "d a", _count("popc")),
    Rule("clz", _BITS, "d a", _count("clz")),
    Rule("brev", _BITS, "d a", _reverse),
    Rule("bfind", rf"(?:(?P<distance>shiftamt)\.)?{_INT}", "d a", _find),
    Rule("fns", "b32", "d a b c", _find_nth),
    Rule("bfe", _INT, "d a b c", _extract),
    Rule("bfi", _BITS, "d a b c e", _insert),
    Rule("bmsk", rf"{_MODE}\.b32", "d a b", _mask),
    Rule("szext", rf"{_MODE}\.(?P<type>[su]32)", "d a b", _extend),
    Rule("prmt", r"(?:(?P<mode>f4e|b4e|rc8|ecl|ecr|rc16)\.)?b32", "d a b c", _permute),
]
