"""Reciprocals of words to a few bits, from which division starts."""

from __future__ import annotations

INDEX_BITS = 8
"""Bits below the highest one bit of a word that its reciprocal depends on."""

ENTRY_BITS = 10
"""Bits of a reciprocal before it is moved to its place."""

RECIPROCALS = tuple(
    (1 << ENTRY_BITS + INDEX_BITS) // (top + 1) for top in range(1 << INDEX_BITS, 2 << INDEX_BITS)
)
"""By those bits: the reciprocal of the next number of INDEX_BITS + 1 bits, so that none is too large."""


def reciprocal(word: int) -> int:
    """2^32 / word or less, by less than 1/128 of it and 1; all ones for 0."""
    if word == 0:
        return 0xFFFFFFFF
    zeros = 32 - word.bit_length()
    index = (word << zeros + 1 & 0xFFFFFFFF) >> 32 - INDEX_BITS
    return RECIPROCALS[index] << zeros + 1 >> ENTRY_BITS
