"""Arithmetic on halves and bytes of words: types s16x2 and u16x2, dp2a, dp4a (PTX ISA 9.0, section 9.7.1)."""

from collections.abc import Callable

from qgpu.ir import I32, Constant, Value
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import Rule

_PACKED = r"(?P<type>[su]16x2)"
_MIXED = r"(?P<left>[su]32)\.(?P<right>[su]32)"
_SIGNS = 0x80008000


def fields(x: Emitter, value: Value, count: int, signed: bool) -> list[Value]:
    """The `count` equal fields of a word, lowest first, extended to words."""
    width = 32 // count
    opcode, unused = "ashr" if signed else "lshr", Constant(I32, 32 - width)
    tops = (x.operation("shl", value, Constant(I32, unused.value - index * width)) for index in range(count))
    return [x.operation(opcode, top, unused) for top in tops]


def _packed(x: Emitter, low: Value, high: Value) -> Value:
    """Two halves, of which only the low 16 bits count."""
    kept = x.operation("and", low, Constant(I32, 0xFFFF))
    return x.operation("or", kept, x.operation("shl", high, Constant(I32, 16)))


def _add(x: Emitter) -> None:
    """Add without the halves' top bits, so that none carries into its neighbour, and then these bits."""
    a, b = x.integer("a", I32), x.integer("b", I32)
    rest = Constant(I32, ~_SIGNS)
    low = x.operation("add", x.operation("and", a, rest), x.operation("and", b, rest))
    tops = x.operation("and", x.operation("xor", a, b), Constant(I32, _SIGNS))
    x.define(x.operation("xor", low, tops))


def _extreme(which: str) -> Callable[[Emitter], None]:
    """min and max of halves; `.relu` makes negative results 0."""

    def lower(x: Emitter) -> None:
        opcode = f"{'s' if x.signed() else 'u'}{which}"
        pairs = zip(*(fields(x, x.integer(role, I32), 2, x.signed()) for role in "ab"), strict=True)
        results = [x.operation(opcode, a, b) for a, b in pairs]
        if x.form["relu"]:
            results = [x.operation("smax", result, Constant(I32, 0)) for result in results]
        x.define(_packed(x, *results))

    return lower


def _dot(count: int) -> Callable[[Emitter], None]:
    """dp4a, dp2a: c + the products of `count` fields of a with bytes of b, or of its low or high half."""

    def lower(x: Emitter) -> None:
        left = fields(x, x.integer("a", I32), count, x.signed("left"))
        right = fields(x, x.integer("b", I32), 4, x.signed("right"))
        chosen = right[2:] if x.form.get("half") == "hi" else right[:count]
        total = x.integer("c", I32)
        for a, b in zip(left, chosen, strict=True):
            total = x.operation("add", total, x.operation("mul", a, b))
        x.define(total)

    return lower


RULES = [
    Rule("add", _PACKED, "d a b", _add),
    Rule("min", rf"(?:(?P<relu>relu)\.(?=s))?{_PACKED}", "d a b", _extreme("min")),
    Rule("max", rf"(?:(?P<relu>relu)\.(?=s))?{_PACKED}", "d a b", _extreme("max")),
    Rule("dp4a", _MIXED, "d a b c", _dot(4)),
    Rule("dp2a", rf"(?P<half>lo|hi)\.{_MIXED}", "d a b c", _dot(2)),
]
