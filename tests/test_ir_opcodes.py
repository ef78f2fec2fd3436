"""The opcode table against definitions of its own, and against the documentation."""

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgpu.ir import I1, I8, I16, I32, I64, OPCODES, Constant, Instruction, IntType
from qgpu.ir.core.folding import fold
from qgpu.ir.core.opcodes import INVERSE_PREDICATE, SWAPPED_PREDICATE, Effect

DOCS = Path(__file__).parent.parent / "docs" / "ir.md"
OPCODE_ROWS = DOCS.read_text().partition("## Opcodes")[2].partition("\n## ")[0]
TYPES = (I8, I16, I32, I64)


def bits_of(value: int, width: int) -> list[int]:
    return [(value >> position) & 1 for position in range(width)]


def from_bits(bits: list[int]) -> int:
    return sum(bit << position for position, bit in enumerate(bits))


def signed(value: int, width: int) -> int:
    bits = bits_of(value, width)
    return from_bits(bits[:-1]) - (bits[-1] << (width - 1))


def shifted_left(a: int, n: int, width: int) -> int:
    return from_bits(([0] * min(n, width) + bits_of(a, width))[:width])


def shifted_right(a: int, n: int, width: int, fill: int) -> int:
    return from_bits((bits_of(a, width) + [fill] * min(n, width))[-width:])


def divided(a: int, b: int) -> tuple[int, int]:
    """Quotient rounded to zero and remainder, by counting magnitudes."""
    quotient, remainder = divmod(abs(a), abs(b))
    return (quotient if (a < 0) == (b < 0) else -quotient), (remainder if a >= 0 else -remainder)


DEFINITIONS: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, w: (a + b) % 2**w,
    "sub": lambda a, b, w: (a + 2**w - b) % 2**w,
    "mul": lambda a, b, w: sum(a << i for i, bit in enumerate(bits_of(b, w)) if bit) % 2**w,
    "and": lambda a, b, w: from_bits([x * y for x, y in zip(bits_of(a, w), bits_of(b, w), strict=True)]),
    "or": lambda a, b, w: from_bits([max(x, y) for x, y in zip(bits_of(a, w), bits_of(b, w), strict=True)]),
    "xor": lambda a, b, w: from_bits(
        [(x + y) % 2 for x, y in zip(bits_of(a, w), bits_of(b, w), strict=True)]
    ),
    "shl": shifted_left,
    "lshr": lambda a, b, w: shifted_right(a, b, w, 0),
    "ashr": lambda a, b, w: shifted_right(a, b, w, bits_of(a, w)[-1]),
    "smin": lambda a, b, w: a if signed(a, w) < signed(b, w) else b,
    "smax": lambda a, b, w: a if signed(a, w) > signed(b, w) else b,
    "umin": lambda a, b, w: a if a < b else b,
    "umax": lambda a, b, w: a if a > b else b,
    "mulhi_s": lambda a, b, w: (signed(a, w) * signed(b, w)) // 2**w % 2**w,
    "mulhi_u": lambda a, b, w: a * b // 2**w,
}


@st.composite
def operands(draw: st.DrawFn, count: int = 2) -> tuple[IntType, list[int]]:
    """A type and numbers of it, often near its corners."""
    type_ = draw(st.sampled_from(TYPES))
    corners = [0, 1, 7, type_.width - 1, type_.width, type_.mask // 2, type_.mask // 2 + 1, type_.mask]
    number = st.sampled_from(corners) | st.integers(0, type_.mask)
    return type_, [draw(number) for _ in range(count)]


def folded(op: str, type_: IntType, result: IntType, values: list[int], **attrs: object) -> int | None:
    constant = fold(Instruction(op, result, [Constant(type_, value) for value in values], attrs))
    return None if constant is None else constant.value


@pytest.mark.parametrize("op", DEFINITIONS)
@given(case=operands())
def test_binary_operations(op: str, case: tuple[IntType, list[int]]) -> None:
    type_, (a, b) = case
    assert folded(op, type_, type_, [a, b]) == DEFINITIONS[op](a, b, type_.width)
    if OPCODES[op].commutative:
        assert folded(op, type_, type_, [a, b]) == folded(op, type_, type_, [b, a])


@given(case=operands())
def test_division(case: tuple[IntType, list[int]]) -> None:
    type_, (a, b) = case
    names = ("sdiv", "srem", "udiv", "urem")
    results = [folded(op, type_, type_, [a, b]) for op in names]
    if b == 0:
        assert results == [type_.mask] * 4
        return
    quotient, remainder = divided(signed(a, type_.width), signed(b, type_.width))
    assert results == [quotient & type_.mask, remainder & type_.mask, a // b, a % b]


@given(case=operands())
def test_comparisons(case: tuple[IntType, list[int]]) -> None:
    type_, (a, b) = case
    x, y = signed(a, type_.width), signed(b, type_.width)
    expected = {
        "eq": a == b,
        "ne": a != b,
        "slt": x < y,
        "sle": x <= y,
        "sgt": x > y,
        "sge": x >= y,
        "ult": a < b,
        "ule": a <= b,
        "ugt": a > b,
        "uge": a >= b,
    }
    for predicate, outcome in expected.items():
        assert folded("icmp", type_, I1, [a, b], pred=predicate) == int(outcome)
        assert folded("icmp", type_, I1, [a, b], pred=INVERSE_PREDICATE[predicate]) == int(not outcome)
        assert folded("icmp", type_, I1, [b, a], pred=SWAPPED_PREDICATE[predicate]) == int(outcome)


@given(case=operands(1), to=st.sampled_from(TYPES))
def test_casts_not_and_popc(case: tuple[IntType, list[int]], to: IntType) -> None:
    type_, [a] = case
    assert folded("not", type_, type_, [a]) == type_.mask - a
    assert folded("popc", type_, type_, [a]) == sum(bits_of(a, type_.width))
    assert folded("zext", type_, to, [a]) == a & to.mask if type_.width < to.width else True
    assert (
        folded("sext", type_, to, [a]) == signed(a, type_.width) & to.mask if type_.width < to.width else True
    )
    assert folded("trunc", type_, to, [a]) == a & to.mask if type_.width > to.width else True


@given(st.integers(0, I32.mask), st.integers(0, I32.mask))
def test_a_pair_of_words_is_a_number_of_64_bits(low: int, high: int) -> None:
    packed = folded("pack", I32, I64, [low, high])
    assert packed == high * 2**32 + low
    assert folded("high", I64, I32, [packed or 0]) == high


@given(st.integers(0, 255), st.lists(st.integers(0, I32.mask), min_size=3, max_size=3))
def test_lop3_is_the_table_bit_by_bit(lut: int, values: list[int]) -> None:
    columns = zip(*(bits_of(value, 32) for value in values), strict=True)
    expected = from_bits([(lut >> int(f"{a}{b}{c}", 2)) & 1 for a, b, c in columns])
    assert folded("lop3", I32, I32, values, lut=lut) == expected


def test_lop3_tables_of_the_operands_as_ptx_gives_them() -> None:
    a, b, c = 0xF0F0_1234, 0x0FF0_5678, 0x1111_9ABC
    assert folded("lop3", I32, I32, [a, b, c], lut=0xF0) == a
    assert folded("lop3", I32, I32, [a, b, c], lut=0xCC) == b
    assert folded("lop3", I32, I32, [a, b, c], lut=0xAA) == c
    assert folded("lop3", I32, I32, [a, b, c], lut=0xF0 & 0xCC ^ 0xAA) == (a & b) ^ c


def test_a_select_folds_by_its_condition() -> None:
    values = [Constant(I1, 1), Constant(I32, 3), Constant(I32, 4)]
    assert fold(Instruction("select", I32, values)) == Constant(I32, 3)
    assert fold(Instruction("select", I32, [Constant(I1, 0), *values[1:]])) == Constant(I32, 4)


@pytest.mark.parametrize("op", ["load", "sreg", "ptradd", "phi", "undef", "atomicrmw"])
def test_what_depends_on_more_than_numbers_does_not_fold(op: str) -> None:
    assert OPCODES[op].evaluate is None


def test_effects_and_terminators_are_not_pure() -> None:
    for info in OPCODES.values():
        if info.terminator or info.effect is not Effect.NONE:
            assert not info.pure
    assert {name for name, info in OPCODES.items() if info.terminator} == {
        "br",
        "condbr",
        "brany",
        "ret",
        "trap",
    }


def test_the_documentation_has_a_row_for_every_opcode_and_none_else() -> None:
    rows = re.findall(r"^\| `(\w+)[^`]*` \|", OPCODE_ROWS, re.MULTILINE)
    assert sorted(rows) == sorted(OPCODES)


def test_the_documentation_names_every_attribute_of_an_opcode_in_its_row() -> None:
    for name, info in OPCODES.items():
        row = re.search(rf"^\| `{name}\b.*$", OPCODE_ROWS, re.MULTILINE)
        assert row, name
        for attribute, attr in info.attrs.items():
            assert f"`{attribute}`" in row.group() or f"{attribute.upper()}" in row.group(), (name, attribute)
            assert attr.kind in ("block", "blocks") or all(c in OPCODE_ROWS for c in attr.choices), (
                name,
                attribute,
            )


@given(case=operands(1))
def test_bits_counted_and_reversed(case: tuple[IntType, list[int]]) -> None:
    type_, (a,) = case
    bits = bits_of(a, type_.width)
    assert folded("clz", type_, type_, [a]) == [*bits[::-1], 1].index(1)
    assert folded("brev", type_, type_, [a]) == from_bits(bits[::-1])


@given(st.integers(0, I32.mask), st.integers(0, I32.mask), st.integers(0, 70) | st.integers(0, I32.mask))
def test_the_shift_of_a_pair(low: int, high: int, amount: int) -> None:
    moved = [*bits_of(low, 32), *bits_of(high, 32)][min(amount, 32) :][:32]
    assert folded("shf", I32, I32, [low, high, amount]) == from_bits(moved)


@given(st.integers(1, I32.mask) | st.integers(0, 31).map(lambda k: 1 << k))
def test_reciprocals(word: int) -> None:
    near, exact = folded("rcp", I32, I32, [word]), Fraction(2**32, word)
    assert near is not None and exact * (1 - Fraction(1, 128)) - 1 < near <= exact


def test_the_reciprocal_of_zero() -> None:
    assert folded("rcp", I32, I32, [0]) == I32.mask


def extracted(bits: list[int], position: int, length: int, signed_: bool) -> list[int]:
    """The pseudo-code of PTX bfe, bit by bit."""
    top = len(bits) - 1
    fill = bits[min(position + length - 1, top)] if signed_ and length else 0
    return [
        bits[position + index] if index < length and position + index <= top else fill
        for index in range(top + 1)
    ]


@given(case=operands(2), position=st.integers(0, 600), length=st.integers(0, 600))
def test_bit_fields(case: tuple[IntType, list[int]], position: int, length: int) -> None:
    """Against PTX's pseudo-code; position and length count modulo 256."""
    type_, (a, b) = case
    bits, start, count = bits_of(a, type_.width), position % 256, length % 256
    where = [Constant(I32, position), Constant(I32, length)]
    for op, signed_ in (("bfe_u", False), ("bfe_s", True)):
        found = fold(Instruction(op, type_, [Constant(type_, a), *where]))
        assert found is not None and found.value == from_bits(extracted(bits, start, count, signed_))
    inserted = bits_of(b, type_.width)
    for index in range(min(count, max(0, type_.width - start))):
        inserted[start + index] = bits[index] if index < type_.width else 0
    found = fold(Instruction("bfi", type_, [Constant(type_, a), Constant(type_, b), *where]))
    assert found is not None and found.value == from_bits(inserted)


PERMUTED = {
    ("bytes", 0x3210): "04030201",
    ("bytes", 0x7654): "88070605",
    ("bytes", 0xF4C1): "ff050002",
    ("f4e", 1): "05040302",
    ("f4e", 3): "07060504",
    ("b4e", 0): "06078801",
    ("b4e", 2): "88010203",
    ("rc8", 3): "04040404",
    ("ecl", 2): "04030303",
    ("ecr", 1): "02020201",
    ("rc16", 1): "04030403",
}
"""Results for the bytes 1 to 7 and 88 (in hexadecimal), read off the tables of PTX prmt."""


@pytest.mark.parametrize(("mode", "selector"), PERMUTED)
def test_permutation(mode: str, selector: int) -> None:
    result = folded("prmt", I32, I32, [0x04030201, 0x88070605, selector], mode=mode)
    assert result == int(PERMUTED[mode, selector], 16)
