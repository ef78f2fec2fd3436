"""LLVM's own intrinsics on numbers, and hints (LangRef: intrinsic functions)."""

from collections.abc import Callable

from qgpu.ir import I1, I32, I64, Constant, IntType, Value
from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.emitter import Emitter, Item, mapped
from qgpu.toolchain.llvm.integer_rules import binary, element_type

Rule = Callable[[Emitter, ast.Instruction], Item]


def _numbers(function: Callable[..., Value], count: int) -> Rule:
    """A rule for a function of `count` numbers of one width, or of vectors of them."""

    def lower(x: Emitter, i: ast.Instruction) -> Item:
        width = x.width(element_type(x, i.operands[0].type))
        return mapped(lambda *values: function(x, width, *values), *(x.operand(n) for n in range(count)))

    return lower


def constant_of(value: Value, number: int) -> Constant:
    """A number of the same type as a value."""
    assert isinstance(value.type, IntType)
    return Constant(value.type, number)


# ------------------------------------------------------------------------ bits


def _count_ones(x: Emitter, width: int, a: Value) -> Value:
    return x.operation("popc", a)


def _count_leading(x: Emitter, width: int, a: Value) -> Value:
    zeros = x.operation("clz", a)
    assert isinstance(a.type, IntType)
    above = a.type.width - width
    return x.operation("sub", zeros, constant_of(a, above)) if above else zeros


def _count_trailing(x: Emitter, width: int, a: Value) -> Value:
    """cttz: the ones below the lowest one; the width for 0."""
    below = x.operation("and", x.operation("not", a), x.operation("sub", a, constant_of(a, 1)))
    return x.operation("popc", x.wrapped(below, width))


def _reversed_bits(x: Emitter, width: int, a: Value) -> Value:
    assert isinstance(a.type, IntType)
    reversed_ = x.operation("brev", a)
    above = a.type.width - width
    return x.operation("lshr", reversed_, constant_of(a, above)) if above else reversed_


def _swapped_bytes(x: Emitter, width: int, a: Value) -> Value:
    """bswap: of 16 bits two shifts, of words the selectors 3, 2, 1, 0."""
    if width == 16:
        eight = constant_of(a, 8)
        return x.operation("or", x.operation("shl", a, eight), x.operation("lshr", a, eight))
    if width == 32:
        return _swapped_word(x, a)
    if width != 64:
        raise x.refusal(
            f"unsupported intrinsic 'llvm.bswap.i{width}'", "bytes of 16, 32 or 64 bits can be swapped"
        )
    low, high = (_swapped_word(x, part) for part in halves(x, a))
    return x.operation("pack", high, low)


def halves(x: Emitter, a: Value) -> tuple[Value, Value]:
    """The low and the high word of 64 bits."""
    return x.resized(a, I32), x.operation("high", a)


def _swapped_word(x: Emitter, a: Value) -> Value:
    return x.operation("prmt", a, Constant(I32, 0), Constant(I32, 0x0123), attrs={"mode": "bytes"})


def _funnel(left: bool) -> Callable[..., Value]:
    """fshl and fshr: the high or low half of a pair that is shifted by an amount modulo the width."""

    def shift(x: Emitter, width: int, a: Value, b: Value, amount: Value) -> Value:
        if width & (width - 1):
            amount = x.operation("urem", amount, constant_of(amount, width))
        else:
            amount = x.operation("and", amount, constant_of(amount, width - 1))
        rest = x.operation("sub", constant_of(amount, width), amount)
        if width == I32.width:
            return x.operation("shf", b, a, rest if left else amount)
        up, down = (amount, rest) if left else (rest, amount)
        both = x.operation("or", x.operation("shl", a, up), x.operation("lshr", b, down))
        return x.wrapped(both, width)

    return shift


# ------------------------------------------------------------------ arithmetic


def _extreme(opcode: str) -> Callable[..., Value]:
    def lower(x: Emitter, width: int, a: Value, b: Value) -> Value:
        if not opcode.startswith("s"):
            return x.operation(opcode, a, b)
        return x.wrapped(x.operation(opcode, x.signed(a, width), x.signed(b, width)), width)

    return lower


def _absolute(x: Emitter, width: int, a: Value) -> Value:
    a = x.signed(a, width)
    return x.wrapped(x.operation("smax", a, x.operation("sub", constant_of(a, 0), a)), width)


def _order(signed: bool) -> Rule:
    """scmp and ucmp: -1, 0 or 1, of the type that the call has."""

    def lower(x: Emitter, i: ast.Instruction) -> Item:
        assert i.type is not None
        width, type_ = x.width(i.operands[0].type), x.held(i.type)
        a, b = x.number(0), x.number(1)
        if signed:
            a, b = x.signed(a, width), x.signed(b, width)
        less, more = ("slt", "sgt") if signed else ("ult", "ugt")
        below = x.choose(x.compare(less, a, b), Constant(type_, -1), Constant(type_, 0))
        result = x.choose(x.compare(more, a, b), Constant(type_, 1), below)
        return x.wrapped(result, x.width(i.type))

    return lower


def _overflows(x: Emitter, kind: str, width: int, a: Value, b: Value, result: Value) -> Value:
    """Whether an operation's exact result differs from `result`, which is what its bits hold.

    Of sums and differences by the rules of H. S. Warren, Hacker's Delight (2nd edition), section 2-13.
    """
    if kind == "uadd":
        return x.compare("ult", result, a)
    if kind == "usub":
        return x.compare("ult", a, b)
    if kind == "umul":
        return _product_exceeds(x, width, a, b)
    if kind == "smul":
        return _signed_product_exceeds(x, width, a, b, result)
    first = x.operation("xor", a, result)
    second = x.operation("xor", b, result) if kind == "sadd" else x.operation("xor", a, b)
    sign = x.signed(x.operation("and", first, second), width)
    return x.compare("slt", sign, constant_of(sign, 0))


def _product_exceeds(x: Emitter, width: int, a: Value, b: Value) -> Value:
    """Whether an unsigned product has more than `width` bits."""
    a, b = (_widened(x, value, width, signed=False) for value in (a, b))
    above = x.compare("ne", x.operation("mulhi_u", a, b), constant_of(a, 0))
    assert isinstance(a.type, IntType)
    if width == a.type.width:
        return above
    rest = x.operation("lshr", x.operation("mul", a, b), constant_of(a, width))
    return x.operation("or", above, x.compare("ne", rest, constant_of(a, 0)))


def _signed_product_exceeds(x: Emitter, width: int, a: Value, b: Value, result: Value) -> Value:
    """Whether a signed product differs from its low `width` bits: in the word above them, or in those."""
    a, b, result = (_widened(x, value, width, signed=True) for value in (a, b, result))
    assert isinstance(a.type, IntType)
    low = x.operation("mul", a, b)
    sign = x.operation("ashr", low, constant_of(low, a.type.width - 1))
    above = x.compare("ne", x.operation("mulhi_s", a, b), sign)
    return above if width == a.type.width else x.operation("or", above, x.compare("ne", low, result))


def _widened(x: Emitter, value: Value, width: int, signed: bool) -> Value:
    """A number in a type that has high products: of 32 or 64 bits."""
    number = x.signed(value, width) if signed else value
    return x.resized(number, I32 if width <= I32.width else I64, signed)


def _with_overflow(kind: str) -> Rule:
    """The result, and whether it is not the exact one."""

    def lower(x: Emitter, i: ast.Instruction) -> Item:
        a, b, width = x.number(0), x.number(1), x.width(i.operands[0].type)
        result = binary(x, kind[1:], a, b, width)
        return result, _overflows(x, kind, width, a, b, result)

    return lower


def _saturating(kind: str) -> Callable[..., Value]:
    """The exact result, or the nearest number that the bits hold."""

    def lower(x: Emitter, width: int, a: Value, b: Value) -> Value:
        if kind == "usub":
            return x.operation("sub", a, x.operation("umin", a, b))
        result = binary(x, kind[1:], a, b, width)
        beyond = _overflows(x, kind, width, a, b, result)
        if kind == "uadd":
            return x.choose(beyond, constant_of(a, (1 << width) - 1), result)
        negative = x.compare("slt", x.signed(a, width), constant_of(a, 0))
        least, most = constant_of(a, 1 << (width - 1)), constant_of(a, (1 << (width - 1)) - 1)
        return x.choose(beyond, x.choose(negative, least, most), result)

    return lower


def _reduced(opcode: str) -> Rule:
    """llvm.vector.reduce: the elements of a vector combined."""

    def lower(x: Emitter, i: ast.Instruction) -> Item:
        vector, width = x.operand(0), x.width(element_type(x, i.operands[0].type))
        assert isinstance(vector, tuple)
        result, *rest = vector
        for element in rest:
            assert isinstance(result, Value) and isinstance(element, Value)
            if opcode[1:] in ("min", "max"):
                result = _extreme(opcode)(x, width, result, element)
            else:
                result = binary(x, opcode, result, element, width)
        return result

    return lower


# ----------------------------------------------------------------------- hints


def _nothing(x: Emitter, i: ast.Instruction) -> Item:
    return ()


def _first(x: Emitter, i: ast.Instruction) -> Item:
    return x.operand(0)


def _trap(x: Emitter, i: ast.Instruction) -> Item:
    x.builder.trap()
    return ()


def _not_constant(x: Emitter, i: ast.Instruction) -> Item:
    return Constant(I1, 0)


def _unknown_size(x: Emitter, i: ast.Instruction) -> Item:
    """llvm.objectsize: as where nothing is known, which is 0 where the least is asked for."""
    assert i.type is not None
    return Constant(x.held(i.type), 0 if x.literal(1, "the question") else -1)


def _pointer_mask(x: Emitter, i: ast.Instruction) -> Item:
    return binary(x, "and", x.scalar(i.operands[0]), x.number(1), I64.width)


_KINDS = ("uadd", "sadd", "usub", "ssub", "umul", "smul")
_NOTHING = (
    "lifetime.start",
    "lifetime.end",
    "invariant.start",
    "invariant.end",
    "assume",
    "donothing",
    "sideeffect",
    "experimental.noalias.scope.decl",
    "dbg.declare",
    "dbg.value",
    "dbg.assign",
    "dbg.label",
    "prefetch",
)

RULES: dict[str, Rule] = {
    "ctpop": _numbers(_count_ones, 1),
    "ctlz": _numbers(_count_leading, 1),
    "cttz": _numbers(_count_trailing, 1),
    "bitreverse": _numbers(_reversed_bits, 1),
    "bswap": _numbers(_swapped_bytes, 1),
    "fshl": _numbers(_funnel(True), 3),
    "fshr": _numbers(_funnel(False), 3),
    **{name: _numbers(_extreme(name), 2) for name in ("umin", "umax", "smin", "smax")},
    "abs": _numbers(_absolute, 1),
    "scmp": _order(True),
    "ucmp": _order(False),
    **{f"{kind}.with.overflow": _with_overflow(kind) for kind in _KINDS},
    **{f"{kind}.sat": _numbers(_saturating(kind), 2) for kind in ("uadd", "sadd", "usub", "ssub")},
    **{
        f"vector.reduce.{name}": _reduced(name)
        for name in ("add", "mul", "and", "or", "xor", "smin", "smax", "umin", "umax")
    },
    **dict.fromkeys(_NOTHING, _nothing),
    "expect": _first,
    "expect.with.probability": _first,
    "ssa.copy": _first,
    "launder.invariant.group": _first,
    "strip.invariant.group": _first,
    "threadlocal.address": _first,
    "ptrmask": _pointer_mask,
    "is.constant": _not_constant,
    "objectsize": _unknown_size,
    "trap": _trap,
    "debugtrap": _trap,
}
"""By the name between `llvm.` and the types."""
