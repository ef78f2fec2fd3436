"""Literals and constant expressions (PTX ISA 4.5), as operands and as initial values."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgpu.toolchain.diagnostics import DiagnosticError, Source
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.parser import parse

HEAD = ".version 9.0\n.target sm_75\n.address_size 64\n"
MODULUS = 1 << 64


def initial_value(text: str) -> ast.Initializer | None:
    (variable,) = parse(Source("k.ptx", f"{HEAD}.global .s64 v = {text};")).variables
    return variable.initializer


def value(text: str) -> int:
    found = initial_value(text)
    assert isinstance(found, ast.Integer)
    return found.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0), ("017", 15), ("0x1F", 31), ("0XaB", 171), ("0b101", 5), ("0B11", 3), ("7U", 7),
        ("0xFFU", 255),
        ("18446744073709551615", MODULUS - 1), ("-9223372036854775808", -(1 << 63)), ("WARP_SZ", 32),
        ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("1 << 2 + 1", 8), ("7 & 3 == 3", 1), ("1 | 6 ^ 2 & 3", 5),
        ("10 - 4 - 3", 3), ("100 / 5 / 2", 10), ("-7 / 2", -3), ("-7 % 2", -1), ("7 / -2", -3),
        ("-1 >> 1", -1), ("-1U >> 1", (1 << 63) - 1), ("1 << 63", -(1 << 63)), ("1 << 64", 0),
        ("-1 >> 99", -1),
        ("~0", -1), ("~0U", MODULUS - 1), ("!5", 0), ("!!5", 1), ("- - 4", 4), ("+4", 4), ("-(3 + 4)", -7),
        ("-1 < 1", 1), ("-1 < 1U", 0), ("2 >= 2", 1), ("1 != 1", 0), ("3 > 2 && 0", 0), ("0 || 9", 1),
        ("1 ? 2 : 3", 2), ("0 ? 2 : 0 ? 4 : 5", 5), ("1 ? 0 ? 1 : 2 : 3", 2), ("2 > 1 ? 3 + 4 : 5", 7),
        ("(.u64) -1", MODULUS - 1), ("(.s64) 0xFFFFFFFFFFFFFFFF", -1), ("( .s64 ) 3 * 2", 6),
        ("1 || 0 ? 2 : 3", 2), ("0 && 0 || 1", 1), ("1 || 1 && 0", 1), ("0 && 1 | 1", 0), ("1 | 1 ^ 1", 1),
        ("1 ^ 1 & 0", 1), ("2 == 1 < 2", 0), ("1 < 1 << 1", 1), ("!0 + 1", 2), ("0 ? 1 : 2 || 0", 1),
        ("1.5 < 2.0", 1), ("9223372036854775807 + 1", -(1 << 63)),
    ],
)  # fmt: skip
def test_integer_expressions(text: str, expected: int) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5", 1.5), ("1.", 1.0), (".5", 0.5), ("1e3", 1000.0), ("2.5E-1", 0.25), ("-1.5", -1.5),
        ("1.0 / 4.0", 0.25), ("-(1.5 + 2.0) * 2.0", -7.0), ("1 ? 2.5 : 3.5", 2.5), ("1e999", math.inf),
    ],
)  # fmt: skip
def test_decimal_numbers_are_doubles(text: str, expected: float) -> None:
    found = initial_value(text)
    assert isinstance(found, ast.Float)
    assert found.text[:2] == "0d"
    assert struct.unpack(">d", found.bits.to_bytes(8))[0] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("08", "is octal"),
        ("0x10000000000000000", "does not fit in 64 bits"),
        ("9" * 5000, "does not fit in 64 bits"),
        ("1 / 0", "division by zero"),
        ("1 % (2 - 2)", "division by zero"),
        ("1.0 / 0.0", "division by zero"),
        ("1.0 + 2", "an integer and a floating-point number"),
        ("~1.0", "'~' of a floating-point number"),
        ("1.0 << 2.0", "'<<' of floating-point numbers"),
        ("1 ? 2", "'?' without ':'"),
        ("1 : 2", "':' without '?'"),
        ("1.0 ? 2 : 3", "the condition before '?'"),
        ("5u", "in no other suffix"),
    ],
)
def test_what_has_no_value(text: str, message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        initial_value(text)
    (found,) = caught.value.diagnostics
    assert (found.file, found.line) == ("k.ptx", 4)
    assert found.column >= len(".global .s64 v = ") + 1
    assert message in " ".join([found.message, *(attached.message for attached in found.notes)])


# Python's precedences are C's for these operators; its integers have no end, so the last step is modulo 2^64.
_EXPRESSIONS = st.recursive(
    st.integers(0, 2**63 - 1).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*&|^"), inner).map(" ".join),
        st.tuples(st.sampled_from("-~"), inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        inner.map(lambda text: f"({text})"),
    ),
    max_leaves=12,
)


@given(_EXPRESSIONS)
def test_expressions_agree_with_python(text: str) -> None:
    assert value(text) % MODULUS == eval(text) % MODULUS
