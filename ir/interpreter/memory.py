"""Memory of a launch: all buffers in one array of bytes, so that one access may go to many of them.

A buffer starts at a multiple of 16 in that array. Shared arrays have one place, which each thread block finds
undefined; a local array has a place for each thread, `stride` bytes apart, and every thread sees its own. Of
each byte it is known whether it was written, and of each aligned double word whether it holds a pointer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.interpreter.faults import Fault
from qgpu.ir.interpreter.values import Numbers, Pointers

ALIGN = 16
PRIVATE = ("shared", "local")
"""The spaces whose arrays start undefined."""


@dataclass(frozen=True)
class Buffer:
    """A piece of memory that pointers point into; `source` holds its bytes before and after the launch."""

    name: str
    space: str
    size: int
    stride: int = 0
    source: NDArray[np.uint8] | None = None
    data: bytes = b""


NULL = Buffer("null", "generic", 0)
"""What the null pointer points into."""


class Memory:
    """The memory of a launch with some buffers, which pointers name by their number, and threads a block.

    Raises:
        ValueError: two sources overlap and are not the same.
    """

    def __init__(self, buffers: Sequence[Buffer], threads: int, pointers: bool) -> None:
        self.buffers = [NULL, *buffers]
        self.size = np.array([buffer.size for buffer in self.buffers], np.int64)
        self.stride = np.array([buffer.stride for buffer in self.buffers], np.int64)
        self.base, total = _layout(self.buffers, threads)
        self._sizes, self._strides, self._bases = (
            array.tolist() for array in (self.size, self.stride, self.base)
        )
        self._strided = any(self._strides)
        self.views = _views(np.zeros(total, np.uint8))
        self._private = [buffer.space in PRIVATE for buffer in self.buffers]
        self._valid = _views(np.ones(total, np.uint8)) if any(self._private) else None
        self._first_private = min(
            (int(self.base[n]) for n, private in enumerate(self._private) if private), default=total
        )
        self._pointers = np.zeros(total // 8, np.int64) if pointers else None
        for number, buffer in enumerate(self.buffers):
            self._bytes(number)[: len(buffer.data)] = np.frombuffer(buffer.data, np.uint8)
            if buffer.source is not None:
                self._bytes(number)[:] = buffer.source

    def _bytes(self, number: int) -> NDArray[np.uint8]:
        base = int(self.base[number])
        return self.views[1][base : base + self.buffers[number].size]

    def write_back(self) -> None:
        """Gives every source the bytes that its buffer holds now; TypeError where one is read-only."""
        for number, buffer in enumerate(self.buffers):
            if buffer.source is None or np.array_equal(buffer.source, self._bytes(number)):
                continue
            if not buffer.source.flags.writeable:
                raise TypeError(f"the kernel writes to '{buffer.name}', which is read-only")
            buffer.source[:] = self._bytes(number)

    def forget_private(self) -> None:
        """A thread block begins: shared and local memory are undefined."""
        if self._valid is not None:
            self._valid[1][self._first_private :] = 0
        if self._pointers is not None:
            self._pointers[self._first_private // 8 :] = 0

    def places(self, pointers: Pointers, size: int, threads: Numbers, instruction: Instruction) -> Numbers:
        """Indices into `views[size]` of an access of `size` bytes by some threads, each by its pointer.

        Raises:
            Fault: the first thread whose access is outside its buffer or not aligned.
        """
        buffers, offsets = pointers.buffers, pointers.offsets
        one = isinstance(buffers, int)
        limit = (self._sizes[buffers] if one else self.size[buffers]) - size
        outside = (offsets < 0) | (offsets > limit)
        if size > 1:
            outside |= (offsets & (size - 1)) != 0
        if outside.any():
            raise self._access_fault(pointers, size, threads, instruction, int(outside.argmax()))
        places = offsets + (self._bases[buffers] if one else self.base[buffers])
        stride = self._strides[buffers] if one else self._strided and self.stride[buffers]
        if (one and not stride) or stride is False:
            return places >> size.bit_length() - 1
        return places + stride * threads >> size.bit_length() - 1

    def _access_fault(
        self, pointers: Pointers, size: int, threads: Numbers, instruction: Instruction, lane: int
    ) -> Fault:
        number = pointers.buffers if isinstance(pointers.buffers, int) else int(pointers.buffers[lane])
        buffer, offset = self.buffers[number], int(pointers.offsets[lane])
        if 0 <= offset <= buffer.size - size:
            message = f"offset {offset} of an access of {size} bytes"
            return Fault("alignment", message, instruction, int(threads[lane]))
        message = f"offset {offset} of '{buffer.name}', which has {buffer.size} bytes"
        return Fault("address", message, instruction, int(threads[lane]))

    def unwritten(self, pointers: Pointers, places: Numbers, size: int) -> Numbers | None:
        """Which places of an access have bytes that were never written; None where none has."""
        if self._valid is None:
            return None
        if isinstance(pointers.buffers, int) and not self._private[pointers.buffers]:
            return None
        unwritten = self._valid[size][places] != _ALL_WRITTEN[size]
        return unwritten if unwritten.any() else None

    def unwritten_text(self, pointers: Pointers, size: int, lane: int) -> str:
        """What is wrong with a read of bytes that were never written."""
        number = pointers.buffers if isinstance(pointers.buffers, int) else int(pointers.buffers[lane])
        place = f"offset {int(pointers.offsets[lane])} of '{self.buffers[number].name}'"
        return f"{size} bytes at {place}, not all written"

    def check_written(
        self, pointers: Pointers, places: Numbers, size: int, threads: Numbers, instruction: Instruction
    ) -> None:
        """Raises Fault where an access has bytes that were never written."""
        unwritten = self.unwritten(pointers, places, size)
        if unwritten is not None:
            lane = int(unwritten.argmax())
            message = self.unwritten_text(pointers, size, lane)
            raise Fault("uninitialised", message, instruction, int(threads[lane]))

    def is_private(self, buffers: int | Numbers) -> Numbers:
        """Whether buffers lie in shared or local memory, which starts undefined."""
        return np.array(self._private)[buffers]

    def note_written(
        self,
        places: Numbers,
        size: int,
        buffers: int | Numbers | None = None,
        unknown: Numbers | None = None,
    ) -> None:
        """Notes that the places of an access were written, with pointers into buffers or with numbers.

        Where what was written is `unknown`, the place is as if nothing had been written.
        """
        if self._valid is not None:
            self._valid[size][places] = (
                _ALL_WRITTEN[size] if unknown is None else np.where(unknown, 0, _ALL_WRITTEN[size])
            )
        if self._pointers is not None:
            self._pointers[places * size // 8] = 0 if buffers is None else buffers + 1

    def check_numbers(self, places: Numbers, size: int, threads: Numbers, instruction: Instruction) -> None:
        """Fault where memory that is read as a number holds a pointer."""
        if self._pointers is None:
            return
        wrong = self._pointers[places * size // 8] > 0
        if wrong.any():
            message = "what is read as a number is a pointer"
            raise Fault("pointer", message, instruction, int(threads[wrong.argmax()]))

    def pointers_at(
        self, places: Numbers, space: str, threads: Numbers, instruction: Instruction
    ) -> Pointers:
        """The pointers that memory holds at places of 8 bytes."""
        assert self._pointers is not None
        buffers = self._pointers[places] - 1
        wrong = buffers < 0
        if space != "generic":
            wrong |= ~self.in_space(np.maximum(buffers, 0), space)
        if wrong.any():
            message = f"memory holds no pointer into {space} memory"
            raise Fault("pointer", message, instruction, int(threads[wrong.argmax()]))
        return Pointers(buffers, self.views[8][places].view(np.int64))

    def in_space(self, buffers: int | Numbers, space: str) -> Numbers:
        """Whether buffers are of a space; the null pointer's is of each."""
        return np.array([buffer.space in (space, "generic") for buffer in self.buffers])[buffers]


_ALL_WRITTEN = {1: 0x01, 2: 0x0101, 4: 0x01010101, 8: 0x0101010101010101}


def _views(data: NDArray[np.uint8]) -> dict[int, Numbers]:
    """Bytes as unsigned numbers of 1, 2, 4 and 8 bytes, the lowest byte first."""
    return {size: data.view(f"<u{size}") for size in (1, 2, 4, 8)}


def _layout(buffers: Iterable[Buffer], threads: int) -> tuple[NDArray[np.int64], int]:
    """The base of each buffer, and the bytes of all. Sources that are the same memory share a place."""
    bases: list[int] = []
    shared: dict[tuple[int, int], int] = {}
    end = 0
    for buffer in buffers:
        key = _address_range(buffer.source)
        if key in shared:
            bases.append(shared[key])
            continue
        if key is not None:
            if any(key[0] < other[1] and other[0] < key[1] for other in shared):
                raise ValueError(f"buffer '{buffer.name}' overlaps another one")
            shared[key] = end
        bases.append(end)
        room = buffer.stride * threads if buffer.stride else buffer.size
        end += -(-room // ALIGN) * ALIGN
    return np.array(bases, np.int64), end


def _address_range(source: NDArray[np.uint8] | None) -> tuple[int, int] | None:
    """First and last + 1 address of a source; None where it has no bytes."""
    if source is None or not source.size:
        return None
    first = source.__array_interface__["data"][0]
    return first, first + source.size
