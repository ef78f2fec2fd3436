"""Pure operations on arrays of integers, one row an opcode, exact at all widths.

A row makes, for an instruction's widths and attributes, the function from operand arrays to the result. What
the operations mean is said by `OPCODES[op].evaluate`, for one thread; i1 operands other than the common ones
go through it. numpy shifts by the width or more give 0 (or the sign), as the IR's do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qgpu.ir.core.opcodes import OPCODES, Shape
from qgpu.ir.core.reciprocals import reciprocal
from qgpu.ir.interpreter.values import SIGNED, UNSIGNED, Numbers, choose

Operation = Callable[..., Numbers]
Maker = Callable[[Shape], Operation]


def operation(op: str, shape: Shape) -> Operation:
    """The function from operand arrays to the result array of a pure opcode."""
    if shape.operand == 1 and op not in _ON_BOOLS:
        return _by_table(op, shape)
    return OPERATIONS[op](shape)


def _by_table(op: str, shape: Shape) -> Operation:
    """One thread after another, by the opcode's own definition: for widths that numpy has no type of."""
    evaluate, mask = OPCODES[op].evaluate, (1 << shape.result) - 1
    assert evaluate is not None, op

    def run(*operands: Numbers) -> Numbers:
        rows = zip(*(operand.tolist() for operand in operands), strict=True)
        results = [evaluate(shape, [int(value) for value in row]) & mask for row in rows]
        return np.array(results, UNSIGNED[shape.result])

    return run


def _plain(function: Operation) -> Maker:
    """The same function at every width."""
    return lambda shape: function


def _signed(function: Operation) -> Maker:
    """A function of signed numbers with a signed result."""

    def make(shape: Shape) -> Operation:
        signed, unsigned = SIGNED[shape.operand], UNSIGNED[shape.operand]
        return lambda a, b: function(a.view(signed), b.view(signed)).view(unsigned)

    return make


def _high_product(shape: Shape) -> Operation:
    if shape.operand == 64:
        return _high_product_64
    wide, narrow = UNSIGNED[2 * shape.operand], UNSIGNED[shape.operand]
    return lambda a, b: (a.astype(wide) * b.astype(wide) >> wide.type(shape.operand)).astype(narrow)


def _high_product_64(a: Numbers, b: Numbers) -> Numbers:
    """By halves; no sum of two products and a carry exceeds 64 bits (Knuth, TAOCP 2, 4.3.1, algorithm M)."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    first = a1 * b0 + (a0 * b0 >> half)
    second = a0 * b1 + (first & low)
    return a1 * b1 + (first >> half) + (second >> half)


def _high_signed_product(shape: Shape) -> Operation:
    """From the unsigned one: a negative factor counts 2^width less (Warren, Hacker's Delight, 8-3)."""
    high, sign = _high_product(shape), UNSIGNED[shape.operand].type(shape.operand - 1)
    return lambda a, b: high(a, b) - b * (a >> sign) - a * (b >> sign)


def _unsigned_division(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Quotient, remainder, and where the divisor is 0, for which the other two hold anything."""
    zero = b == 0
    divisor = b + zero.astype(b.dtype)
    return a // divisor, a % divisor, zero


def _magnitude(value: Numbers, negative: Numbers) -> Numbers:
    return np.where(negative, np.zeros_like(value) - value, value)


def _division(signed: bool, remainder: bool) -> Maker:
    def make(shape: Shape) -> Operation:
        unsigned = UNSIGNED[shape.operand]
        sign, ones = unsigned.type(shape.operand - 1), np.iinfo(unsigned).max

        def run(a: Numbers, b: Numbers) -> Numbers:
            minus_a, minus_b = (a >> sign) != 0, (b >> sign) != 0
            if signed:
                quotient, rest, zero = _unsigned_division(_magnitude(a, minus_a), _magnitude(b, minus_b))
                quotient, rest = _magnitude(quotient, minus_a != minus_b), _magnitude(rest, minus_a)
            else:
                quotient, rest, zero = _unsigned_division(a, b)
            return np.where(zero, ones, rest if remainder else quotient)

        return run

    return make


def _popc(shape: Shape) -> Operation:
    return lambda a: np.bitwise_count(a).astype(UNSIGNED[shape.operand])


def _clz(shape: Shape) -> Operation:
    """The bits below and at the highest one are set by doubling, and then counted."""
    dtype = UNSIGNED[shape.operand]

    def run(a: Numbers) -> Numbers:
        distance = 1
        while distance < shape.operand:
            a = a | a >> dtype.type(distance)
            distance *= 2
        return dtype.type(shape.operand) - np.bitwise_count(a)

    return run


_REVERSED_BYTES = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], np.uint8)


def _brev(shape: Shape) -> Operation:
    dtype = UNSIGNED[shape.operand]

    def run(a: Numbers) -> Numbers:
        rows = _REVERSED_BYTES[np.ascontiguousarray(a).view(np.uint8)].reshape(len(a), dtype.itemsize)
        return np.ascontiguousarray(rows[:, ::-1]).view(dtype).reshape(len(a))

    return run


def _field(value: Numbers, shape: Shape) -> tuple[Numbers, Numbers]:
    """A position or a length: the low 8 bits, as the operand's type and as int64."""
    low = value & 255
    return low.astype(UNSIGNED[shape.operand]), low.astype(np.int64)


def _ones(length: Numbers) -> Numbers:
    """As many low ones as `length` says, or as there is room for."""
    one = np.ones_like(length)
    return (one << length) - one


def _bfe_u(shape: Shape) -> Operation:
    return lambda a, position, length: a >> _field(position, shape)[0] & _ones(_field(length, shape)[0])


def _bfe_s(shape: Shape) -> Operation:
    width, dtype, extract = shape.operand, UNSIGNED[shape.operand], _bfe_u(shape)

    def run(a: Numbers, position: Numbers, length: Numbers) -> Numbers:
        start, count = _field(position, shape)[1], _field(length, shape)[1]
        top = np.clip(start + count - 1, 0, width - 1).astype(dtype)
        sign = (a >> top & 1) * (count > 0)
        above = np.clip(width - start, 0, count).astype(dtype)
        ones = np.zeros_like(sign) - sign
        return extract(a, position, length) | ones << above

    return run


def _bfi(shape: Shape) -> Operation:
    def run(a: Numbers, b: Numbers, position: Numbers, length: Numbers) -> Numbers:
        start = _field(position, shape)[0]
        mask = _ones(_field(length, shape)[0]) << start
        return b & ~mask | a << start & mask

    return run


_SELECTORS: dict[str, Callable[[Numbers], list[Numbers]]] = {
    "bytes": lambda c: [c >> 4 * i & 15 for i in range(4)],
    "f4e": lambda c: [(c & 3) + i for i in range(4)],
    "b4e": lambda c: [(c & 3) - i & 7 for i in range(4)],
    "rc8": lambda c: [c & 3] * 4,
    "ecl": lambda c: [np.maximum(c & 3, i) for i in range(4)],
    "ecr": lambda c: [np.minimum(c & 3, i) for i in range(4)],
    "rc16": lambda c: [2 * (c & 1), 2 * (c & 1) + 1] * 2,
}
"""The selectors of the four bytes by the third operand, lowest first (PTX ISA, prmt)."""


def _prmt(shape: Shape) -> Operation:
    selectors = _SELECTORS[shape.attrs["mode"]]

    def run(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
        pair = b.astype(np.uint64) << np.uint64(32) | a
        result = np.zeros(len(a), np.uint64)
        for index, selector in enumerate(selectors(c.astype(np.uint64))):
            byte = pair >> 8 * (selector & 7) & 255
            result |= np.where(selector & 8, 255 * (byte >> 7), byte) << 8 * index
        return result.astype(np.uint32)

    return run


_COMPARISONS: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def comparison(predicate: str) -> np.ufunc:
    """The relation of an icmp predicate, whatever its signedness."""
    return _COMPARISONS[predicate[-2:]]


def _icmp(shape: Shape) -> Operation:
    compare = comparison(shape.attrs["pred"])
    if not shape.attrs["pred"].startswith("s"):
        return compare
    if shape.operand == 1:
        return lambda a, b: compare(b, a)
    signed = SIGNED[shape.operand]
    return lambda a, b: compare(a.view(signed), b.view(signed))


def _sext(shape: Shape) -> Operation:
    if shape.operand == 1:
        return lambda a: np.zeros(len(a), UNSIGNED[shape.result]) - a
    before, after, unsigned = SIGNED[shape.operand], SIGNED[shape.result], UNSIGNED[shape.result]
    return lambda a: a.view(before).astype(after).view(unsigned)


def _trunc(shape: Shape) -> Operation:
    if shape.result == 1:
        return lambda a: (a & 1).astype(np.bool_)
    return lambda a: a.astype(UNSIGNED[shape.result])


def _pack(low: Numbers, high: Numbers) -> Numbers:
    return high.astype(np.uint64) << np.uint64(32) | low


def _high(a: Numbers) -> Numbers:
    return (a >> np.uint64(32)).astype(np.uint32)


def _shf(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
    pair = b.astype(np.uint64) << np.uint64(32) | a
    return (pair >> np.minimum(c, 32).astype(np.uint64)).astype(np.uint32)


def _rcp(a: Numbers) -> Numbers:
    return np.fromiter(map(reciprocal, a.tolist()), np.uint32, len(a))


def _lop3(shape: Shape) -> Operation:
    """The union of the table's minterms."""
    lut = shape.attrs["lut"]

    def run(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
        sides = [((~x, x)) for x in (a, b, c)]
        result = np.zeros_like(a)
        for index in range(8):
            if lut >> index & 1:
                result |= sides[0][index >> 2] & sides[1][index >> 1 & 1] & sides[2][index & 1]
        return result

    return run


OPERATIONS: dict[str, Maker] = {
    "add": _plain(np.add),
    "sub": _plain(np.subtract),
    "mul": _plain(np.multiply),
    "and": _plain(np.bitwise_and),
    "or": _plain(np.bitwise_or),
    "xor": _plain(np.bitwise_xor),
    "shl": _plain(np.left_shift),
    "lshr": _plain(np.right_shift),
    "ashr": _signed(np.right_shift),
    "smin": _signed(np.minimum),
    "smax": _signed(np.maximum),
    "umin": _plain(np.minimum),
    "umax": _plain(np.maximum),
    "mulhi_s": _high_signed_product,
    "mulhi_u": _high_product,
    "sdiv": _division(signed=True, remainder=False),
    "udiv": _division(signed=False, remainder=False),
    "srem": _division(signed=True, remainder=True),
    "urem": _division(signed=False, remainder=True),
    "not": _plain(np.invert),
    "popc": _popc,
    "clz": _clz,
    "brev": _brev,
    "shf": _plain(_shf),
    "rcp": _plain(_rcp),
    "bfe_u": _bfe_u,
    "bfe_s": _bfe_s,
    "bfi": _bfi,
    "prmt": _prmt,
    "icmp": _icmp,
    "select": _plain(choose),  # pyright: ignore[reportArgumentType]
    "sext": _sext,
    "zext": lambda shape: lambda a: a.astype(UNSIGNED[shape.result]),
    "trunc": _trunc,
    "lop3": _lop3,
    "pack": _plain(_pack),
    "high": _plain(_high),
}
"""One row for each opcode that has a definition on numbers; pointers pass through `select` too."""

_ON_BOOLS = frozenset(("and", "or", "xor", "not", "icmp", "select", "sext", "zext"))
"""The opcodes whose rows take bools."""
