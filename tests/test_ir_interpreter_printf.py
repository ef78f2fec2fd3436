"""printf's text against that of the C library."""

import ctypes
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgpu.ir import parse_function, verify
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.interpreter.printing import format_text

BITS = {"hh": 8, "h": 16, "": 32, "l": 64, "ll": 64, "z": 64}


def c_text(text: str, *values: object) -> str:
    """What snprintf of the process's own C library makes of it."""
    buffer = ctypes.create_string_buffer(1000)
    ctypes.CDLL(None).snprintf(buffer, 1000, text.encode(), *values)
    return buffer.value.decode("latin1")


@st.composite
def conversions(draw: st.DrawFn) -> tuple[str, list[int]]:
    """A conversion of an integer, and the numbers that it takes."""
    kind = draw(st.sampled_from("diouxX"))
    flags = "".join(
        draw(st.sets(st.sampled_from("-0+ " if kind in "di" else "-0#" if kind in "oxX" else "-0")))
    )
    length = draw(st.sampled_from(sorted(BITS)))
    width = draw(st.sampled_from(["", "1", "7", "25", "*"]))
    precision = draw(st.sampled_from(["", ".", ".0", ".3", ".*"]))
    stars = [draw(st.integers(-9, 9)) % 2**32 for _ in range(f"{width}{precision}".count("*"))]
    number = draw(st.sampled_from([0, 1, 9]) | st.integers(0, 2 ** BITS[length] - 1))
    return f"<%{flags}{width}{precision}{length}{kind}>", [*stars, number]


@pytest.mark.skipif(sys.platform == "win32", reason="the process has no C library by that name")
@given(conversions())
def test_integers_as_c_prints_them(case: tuple[str, list[int]]) -> None:
    text, numbers = case
    *stars, number = numbers
    arguments = [*map(ctypes.c_int, stars), ctypes.c_uint64(number)]
    assert format_text(text, numbers) == c_text(text, *arguments)


@pytest.mark.skipif(sys.platform == "win32", reason="the process has no C library by that name")
@given(
    st.floats(allow_nan=False), st.sampled_from("eEfgG"), st.sampled_from(["", "+", "-", "0", " "]),
    st.sampled_from(["", "12"]), st.sampled_from(["", ".0", ".3"]),
)  # fmt: skip
def test_doubles_as_c_prints_them(value: float, kind: str, flags: str, width: str, precision: str) -> None:
    text = f"<%{flags}{width}{precision}{kind}>"
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    assert format_text(text, [bits]) == c_text(text, ctypes.c_double(value))


def test_characters_and_percent() -> None:
    assert format_text("%c%%%3c|%-3c|", [65, 66, 67]) == "A%  B|C  |"


@pytest.mark.parametrize(
    ("text", "values"), [("%d", []), ("%d", [1, 2]), ("%y", [1]), ("%", []), ("%s", [1])]
)
def test_formats_that_do_not_fit(text: str, values: list[int]) -> None:
    with pytest.raises(ValueError, match=r"conversion"):
        format_text(text, values)


PRINT = """
kernel @k() {
entry:
  %t = sreg tid.x : i32
  %odd = trunc %t : i1
  condbr %odd, out, say
say:
  %w = sext %t : i64
  printf %t, %w {format: "FORMAT\\n"}
  br out
out:
  ret
}
"""


def test_each_thread_prints_in_order() -> None:
    function = parse_function(PRINT.replace("FORMAT", "t=%d %5lld"))
    verify(function)
    lines: list[str] = []
    interpret(function, [], block=(5, 1, 1), output=lines.append)
    assert lines == ["t=0     0\n", "t=2     2\n", "t=4     4\n"]


def test_a_format_that_does_not_fit_is_a_fault() -> None:
    with pytest.raises(Fault) as caught:
        interpret(parse_function(PRINT.replace("FORMAT", "%d")), [])
    assert caught.value.kind == "format"
