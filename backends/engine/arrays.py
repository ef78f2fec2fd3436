"""Arrays by address: the loop's functions take two records of addresses instead of a hundred arrays.

numba passes an array as seven words, and counts references to it. A record is passed as one pointer, and what
is made from an address is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from qgpu.backends.engine.compiling import compiled

_LENGTH = 1 << 40
"""Of an array of unknown length: nothing checks it."""


def record(values: Mapping[str, Any]) -> Any:
    """A record with the address of each array and the value of each number; it does not keep the arrays."""
    kinds = [
        (name, np.float32 if isinstance(value, (float, np.float32)) else np.int64)
        for name, value in values.items()
    ]
    entries = tuple(
        value.ctypes.data if isinstance(value, np.ndarray) else value for value in values.values()
    )
    return np.array([entries], np.dtype(kinds))[0]


@intrinsic
def _pointer(typing_context, address):
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


@compiled
def float32s(address, offset):
    """The float32 numbers from an offset (in numbers) to an address on."""
    return carray(_pointer(address + 4 * offset), (_LENGTH,), np.float32)


@compiled
def float64s(address, offset):
    """The float64 numbers from an offset to an address on."""
    return carray(_pointer(address + 8 * offset), (_LENGTH,), np.float64)


@compiled
def int32s(address, offset):
    """The int32 numbers from an offset to an address on."""
    return carray(_pointer(address + 4 * offset), (_LENGTH,), np.int32)


@compiled
def int64s(address, offset):
    """The int64 numbers from an offset to an address on."""
    return carray(_pointer(address + 8 * offset), (_LENGTH,), np.int64)


@compiled
def bools(address, offset):
    """The truth values from an offset to an address on, as int8."""
    return carray(_pointer(address + offset), (_LENGTH,), np.int8)
