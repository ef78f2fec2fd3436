"""printf: text of integers, by a format of C.

The operands are integers; a conversion for floating point takes the bit pattern of a double.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence

from qgpu.ir.core.opcodes import to_signed

_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d*)(?:\.(\*|-?\d*))?(hh|h|ll|l|j|z|t|L|q)?([diouxXcpeEfFgG%])")
Body = Callable[[int, str, str | None, int], tuple[str, str]]
_BITS = {"hh": 8, "h": 16, "": 32}


def format_text(text: str, values: Sequence[int]) -> str:
    """The text that C's printf makes of a format and unsigned numbers.

    Raises:
        ValueError: a conversion that is none of integers or doubles, or not as many values as conversions.
    """
    numbers = iter(values)
    pieces: list[str] = []
    end = 0
    for match in _CONVERSION.finditer(text):
        pieces += [_plain(text[end : match.start()]), _converted(match, numbers)]
        end = match.end()
    pieces.append(_plain(text[end:]))
    if next(numbers, None) is not None:
        raise ValueError(f"more values than conversions in {text!r}")
    return "".join(pieces)


def _plain(text: str) -> str:
    if "%" in text:
        raise ValueError(f"no conversion: {text!r}")
    return text


def _converted(match: re.Match[str], numbers: Iterator[int]) -> str:
    flags, width, precision, length, conversion = match.groups()
    if conversion == "%":
        return "%"
    width = str(to_signed(_next(numbers), 32)) if width == "*" else width
    precision = str(to_signed(_next(numbers), 32)) if precision == "*" else precision
    if width.startswith("-"):
        flags, width = flags + "-", width[1:]
    if precision is not None and precision.startswith("-"):
        precision = None
    body = _BODIES[conversion](_next(numbers), flags, precision, _BITS.get(length or "", 64))
    return _padded(body, flags, int(width or 0), precision is not None and conversion in "diouxX")


def _next(numbers: Iterator[int]) -> int:
    number = next(numbers, None)
    if number is None:
        raise ValueError("fewer values than conversions")
    return number


def _padded(body: tuple[str, str], flags: str, width: int, exact_digits: bool) -> str:
    """Sign or prefix, and digits, at a width: zeros stand between the two (C17, 7.21.6.1)."""
    prefix, digits = body
    room = width - len(prefix) - len(digits)
    if room <= 0:
        return prefix + digits
    if "-" in flags:
        return prefix + digits + " " * room
    if "0" in flags and not exact_digits and digits.lower() not in ("", "inf", "nan"):
        return prefix + "0" * room + digits
    return " " * room + prefix + digits


def _sign(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _digits(text: str, precision: str | None) -> str:
    """Digits at a precision: as many at least; none for 0 at precision 0."""
    if precision is None:
        return text
    return "" if text == "0" and not int(precision or 0) else text.rjust(int(precision or 0), "0")


def _signed(number: int, flags: str, precision: str | None, bits: int) -> tuple[str, str]:
    value = to_signed(number, bits)
    return _sign(value < 0, flags), _digits(str(abs(value)), precision)


def _unsigned(number: int, flags: str, precision: str | None, bits: int) -> tuple[str, str]:
    return "", _digits(str(number & (1 << bits) - 1), precision)


def _octal(number: int, flags: str, precision: str | None, bits: int) -> tuple[str, str]:
    digits = _digits(f"{number & (1 << bits) - 1:o}", precision)
    return "", f"0{digits}" if "#" in flags and not digits.startswith("0") else digits


def _hexadecimal(number: int, flags: str, precision: str | None, bits: int) -> tuple[str, str]:
    value = number & (1 << bits) - 1
    return "0x" if "#" in flags and value else "", _digits(f"{value:x}", precision)


def _upper(number: int, flags: str, precision: str | None, bits: int) -> tuple[str, str]:
    prefix, digits = _hexadecimal(number, flags, precision, bits)
    return prefix.upper(), digits.upper()


def _character(number: int, flags: str, precision: str | None, bits: int) -> tuple[str, str]:
    return chr(number & 255), ""


def _pointer(number: int, flags: str, precision: str | None, bits: int) -> tuple[str, str]:
    return "0x", f"{number:x}"


def _double(conversion: str) -> Body:
    def body(number: int, flags: str, precision: str | None, bits: int) -> tuple[str, str]:
        (value,) = struct.unpack("<d", (number & (1 << 64) - 1).to_bytes(8, "little"))
        negative = bool(number >> 63)
        alternative = "#" if "#" in flags else ""
        digits = "" if precision is None else f".{precision or 0}"
        return _sign(negative, flags), f"%{alternative}{digits}{conversion}" % abs(value)

    return body


_BODIES: dict[str, Body] = {
    "d": _signed,
    "i": _signed,
    "o": _octal,
    "u": _unsigned,
    "x": _hexadecimal,
    "X": _upper,
    "c": _character,
    "p": _pointer,
    **{conversion: _double(conversion) for conversion in "eEfFgG"},
}
"""Sign or prefix, and the rest, of a number by its conversion."""
