"""The conversions of a printf format, by how many words their values take."""

from __future__ import annotations

import re

_CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.-?\d*)?(?P<length>hh|h|ll|l|j|z|t)?(?P<kind>[a-zA-Z%])")
_WIDE_LENGTHS = ("ll", "l", "j", "z", "t")
_WIDE_KINDS = tuple("aAeEfFgGp")


def conversion_words(text: str) -> tuple[int, ...]:
    """How many words each conversion of a format takes: two where it is of 64 bits (CUDA's long has 64)."""
    found = (match for match in _CONVERSION.finditer(text) if match["kind"] != "%")
    return tuple(2 if m["length"] in _WIDE_LENGTHS or m["kind"] in _WIDE_KINDS else 1 for m in found)
