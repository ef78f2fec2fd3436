"""The error of a sum of numbers next to 1 and -1, in any order of summation.

What a head reads may be off in the last place. Partial sums are next to integers, which are numbers of
float32: where the error of a sum before it is rounded is below half the spacing there, rounding takes it
away, and elsewhere it becomes a multiple of the spacing (ties to even, integers being even multiples).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

DIGITS = {"float32": 23, "bfloat16": 7}
"""Digits after the first of a number's significand."""


@dataclass(frozen=True)
class Error:
    """By how much a sum may be below and above what is meant; neither is negative."""

    below: float
    above: float


def sum_errors(single: Error, plus: int, minus: int, several: int) -> dict[tuple[int, int], Error]:
    """For each number of terms next to 1 and of terms next to -1: the error of their sum in float32.

    Args:
        plus, minus, several: the most of either kind, and of both together.
    """
    found = {}
    if plus:
        found[1, 0] = single
    if minus:
        found[0, 1] = Error(single.above, single.below)
    for number in range(2, several + 1):
        for ups in range(max(0, number - minus), min(plus, number) + 1):
            found[ups, number - ups] = _joined(found, ups, number - ups)
    return found


def _joined(found: dict[tuple[int, int], Error], ups: int, downs: int) -> Error:
    below = above = 0.0
    for a in range(ups + 1):
        for b in range(downs + 1):
            left, right = found.get((a, b)), found.get((ups - a, downs - b))
            if left and right:
                below = max(below, left.below + right.below)
                above = max(above, left.above + right.above)
    return rounded_error(Error(below, above), ups - downs, "float32")


def rounded_error(error: Error, integer: int, dtype: str) -> Error:
    """The error after a number next to an integer is rounded to a dtype."""
    if not integer:
        return error
    toward, away = _spacings(abs(integer), dtype)
    below, above = (toward, away) if integer > 0 else (away, toward)
    return Error(below * round(error.below / below), above * round(error.above / above))


def vanishes(error: Error, number: float, dtype: str) -> bool:
    """Whether rounding takes an error away beside a positive number, an even multiple of the spacing."""
    below, above = _spacings(number, dtype)
    return error.below <= below / 2 and error.above <= above / 2


def _spacings(number: float, dtype: str) -> tuple[float, float]:
    """The distances of a positive number to its neighbours below and above."""
    mantissa, exponent = math.frexp(number)
    above = 2.0 ** (exponent - 1 - DIGITS[dtype])
    return (above / 2 if mantissa == 0.5 else above), above
