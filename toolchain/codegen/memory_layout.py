"""Where the arrays of a kernel lie: those of shared memory, and those of a thread's frame in local memory."""

from __future__ import annotations

from qgpu.ir import Function

_WORD = 4


def array_offsets(function: Function, space: str) -> dict[str, int]:
    """The offset of every array of a space in bytes, and under the empty name the size of all.

    Arrays lie in order, each aligned; one without a size, which stands for what the launch adds, comes last.
    """
    offsets: dict[str, int] = {}
    end = 0
    arrays = [array for array in function.shared if array.space == space]
    for array in sorted(arrays, key=lambda array: array.size == 0):
        start = -(-end // array.align) * array.align
        offsets[array.name] = start
        end = start + array.size
    return {**offsets, "": end}


def whole_frame(function: Function, size: int) -> int:
    """Bytes of a thread's frame that holds so many: whole words, and every thread's arrays aligned."""
    unit = max([_WORD, *(array.align for array in function.shared if array.space == "local")])
    return -(-size // unit) * unit
