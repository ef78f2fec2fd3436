"""Formats of the device's printf (CUDA C++ Programming Guide, formatted output; its conversions are C's).

The arguments lie one after another in memory, each at a multiple of its size.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from qgpu.ir import I32, I64, IntType
from qgpu.toolchain.diagnostics import DiagnosticError

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    r"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>.)",
    re.DOTALL,
)
_INTEGERS = "diouxXc"
_FLOATS = "fFeEgGaA"
_WIDE = ("l", "ll", "j", "z", "t")


@dataclass(frozen=True)
class Conversion:
    """A conversion of a format and where its argument lies among the arguments; None where it has none."""

    text: str
    kind: str
    offset: int | None
    type: IntType | None

    def filled(self, string: str) -> str:
        """The text of a %s with its string, as a part of a format."""
        found = _CONVERSION.fullmatch(self.text)
        assert found is not None
        if found["precision"] is not None:
            string = string[: int(found["precision"] or 0)]
        width = int(found["width"] or 0)
        padded = string.ljust(width) if "-" in found["flags"] else string.rjust(width)
        return padded.replace("%", "%%")


def conversions(text: str, refusal: Callable[[str], DiagnosticError]) -> list[str | Conversion]:
    """A format as plain pieces and conversions, in order; raises what `refusal` makes of a message."""
    parts: list[str | Conversion] = []
    position = offset = 0
    for found in _CONVERSION.finditer(text):
        parts.append(text[position : found.start()])
        position = found.end()
        kind, length = found["kind"], found["length"]
        if kind == "%":
            parts.append("%%")
            continue
        if "*" in (found["width"], found["precision"]):
            raise refusal(f"printf's '{found.group()}' takes its width from an argument: write the number")
        type_ = I64 if kind in _FLOATS + "sp" or length in _WIDE else I32
        if kind not in _INTEGERS + _FLOATS + "s":
            raise refusal(f"printf's '{found.group()}' is not supported: {_why_not(kind)}")
        offset = -(-offset // type_.bytes) * type_.bytes
        parts.append(Conversion(found.group(), kind, offset, type_))
        offset += type_.bytes
    if "%" in text[position:]:
        raise refusal("printf's format ends within a conversion")
    return [*parts, text[position:]]


def _why_not(kind: str) -> str:
    if kind == "p":
        return "a pointer has no number here; print an index instead"
    return "CUDA's printf does not have it"
