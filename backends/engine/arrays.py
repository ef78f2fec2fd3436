"""Arrays by address: the loop's functions take two records of addresses (records.py), not a hundred arrays.

numba passes an array as seven words, and counts references to it. A record is passed as one pointer, and what
is made from an address is not counted.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from qgpu.backends.compiling import compiled

_numba: Any = importlib.import_module("numba")
_extending: Any = importlib.import_module("numba.extending")
carray, types = _numba.carray, _numba.types

_LENGTH = 1 << 40
"""Of an array of unknown length: nothing checks it."""


@_extending.intrinsic
def _pointer(typing_context, address):
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

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
def uint32s(address, offset):
    """int32 numbers that are not negative: as indices they need no look at their sign."""
    return carray(_pointer(address + 4 * offset), (_LENGTH,), np.uint32)


@compiled
def uint64s(address, offset):
    """int64 numbers that are not negative: as indices they need no look at their sign."""
    return carray(_pointer(address + 8 * offset), (_LENGTH,), np.uint64)


@compiled
def bools(address, offset):
    """The truth values from an offset to an address on, as int8."""
    return carray(_pointer(address + offset), (_LENGTH,), np.int8)


def records(dtype):
    """A compiled function: the record of a type at an address."""

    @compiled
    def at(address):
        return carray(_pointer(address), (1,), dtype)[0]

    return at
