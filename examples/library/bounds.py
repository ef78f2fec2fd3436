"""When a launch cannot overflow: from the sizes of its operands' elements alone, before it runs.

What holds here lets a routine be compiled without its assertions. Nothing is computed but bounds: where one
is not small enough, the kernel itself looks at each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from qgpu.runtime.library.plans import Array

MOST = 2**31 - 1
"""The largest number; bounds are symmetric, though one more fits below zero."""

Certain: TypeAlias = Callable[[Sequence[Array]], bool]
"""Whether no assertion of a routine can fail for operands."""


def always(operands: Sequence[Array]) -> bool:
    """For a routine without assertions."""
    return True


def sums(operands: Sequence[Array]) -> bool:
    """For the sum, or the difference, of one element of each operand."""
    return sum(map(_magnitude, operands)) <= MOST


def differences(operands: Sequence[Array]) -> bool:
    """For the difference of two elements of the operand."""
    return 2 * _magnitude(operands[0]) <= MOST


def products(operands: Sequence[Array]) -> bool:
    """For the product of one element of each of two operands."""
    a, b = operands
    return _magnitude(a) * _magnitude(b) <= MOST


def magnitudes(operands: Sequence[Array]) -> bool:
    """For elements without their signs, or with the other ones."""
    return all(_magnitude(one) <= MOST for one in operands)


def totals(operands: Sequence[Array]) -> bool:
    """For a sum of no more terms than the operand has elements."""
    (a,) = operands
    return _magnitude(a) * a.size <= MOST


def total_product(operands: Sequence[Array]) -> bool:
    """For a product of no more factors than the operand has elements."""
    (a,) = operands
    bound = _magnitude(a)
    return bound <= 1 or a.size * bound.bit_length() < 32


def inner_products(operands: Sequence[Array]) -> bool:
    """For sums of products, one for each element of the last dimension of the first operand."""
    a, b = operands
    return a.shape[-1] * _magnitude(a) * _magnitude(b) <= MOST


def divisors(operands: Sequence[Array]) -> bool:
    """For a quotient."""
    a, b = operands
    return bool(np.all(b != 0)) and _magnitude(a) <= MOST


def moduli(operands: Sequence[Array]) -> bool:
    """For the rest of a division."""
    return bool(np.all(operands[1] != 0))


def shifts_left(operands: Sequence[Array]) -> bool:
    """For a multiplication by a power of two."""
    a, count = operands
    return _at_least(count, 0) and _magnitude(a).bit_length() + int(count.max()) < 32


def shifts_right(operands: Sequence[Array]) -> bool:
    """For a division by a power of two."""
    return _at_least(operands[1], 0)


def powers(operands: Sequence[Array]) -> bool:
    """For a power."""
    a, exponent = operands
    return _at_least(exponent, 0) and int(exponent.max()) * _magnitude(a).bit_length() < 32


def not_negative(operands: Sequence[Array]) -> bool:
    """For what is computed of numbers from 0 on."""
    return _at_least(operands[0], 0)


def places(operands: Sequence[Array]) -> bool:
    """For indices into the first operand, also from its end."""
    a, index = operands
    return _at_least(index, -len(a)) and int(index.max()) < len(a)


def bins(operands: Sequence[Array]) -> bool:
    """For numbers that are each that of a bin."""
    a, count = operands
    return _at_least(a, 0) and int(a.max()) < int(count)


def _at_least(a: Array, least: int) -> bool:
    return int(a.min()) >= least


def _magnitude(a: Array) -> int:
    """The largest of the elements without their signs."""
    return max(abs(int(a.max())), abs(int(a.min())))
