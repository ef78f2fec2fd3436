"""Pointers as pairs: which buffer a pointer is in where that is known, and the unit its offset is counted in.

A pointer that goes through slots or selects needs its offset in a register. Where every way to it moves by
whole words the offset is counted in words, so that an index is an offset and the machine's range check covers
it.
"""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.ir import Argument, Array, Constant, Function, Instruction, PtrType, SlotType, Value
from qgpu.toolchain.codegen.memory_layout import array_offsets


@dataclass(frozen=True)
class Buffer:
    """A buffer known at compile time: a parameter's, shared or local memory, or a global or const array."""

    space: str
    parameter: int = -1
    array: str = ""


@dataclass(frozen=True)
class Shape:
    """What is known of a pointer.

    Attributes:
        buffers: where it may point.
        unit: 4 or 1, the bytes that its offset is counted in.
        offset: the offset in bytes, or None where it is not always the same. In local memory it counts from
            the beginning of the thread's frame.
    """

    buffers: frozenset[Buffer]
    unit: int
    offset: int | None = None

    @property
    def buffer(self) -> Buffer | None:
        """The buffer, or None where it is one of several."""
        return next(iter(self.buffers)) if len(self.buffers) == 1 else None


class PointerShapes:
    """The shapes of a function's pointers, and of its slots of pointers.

    A fixpoint from the best shape downward: slots that nothing was written to yet do not constrain. A pointer
    that memory holds is one of those that were stored, whose shape is `stored`.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._slots: dict[Value, Shape | None] = {}
        self.stored: Shape | None = None
        self._offsets = {space: array_offsets(function, space) for space in ("shared", "local")}
        writes = [
            instruction
            for instruction in function.instructions
            if instruction.op in ("set", "store") and isinstance(instruction.operands[1].type, PtrType)
        ]
        changed = True
        while changed:
            changes = [self._changed_by(instruction) for instruction in writes]
            changed = any(changes)

    def _changed_by(self, write: Instruction) -> bool:
        """Join a pointer that is set or stored to what was known of that slot, or of memory."""
        place, value = write.operands
        if write.op == "store":
            before, self.stored = self.stored, _join(self.stored, _in_memory(self._shape(value)))
            return before != self.stored
        before = self._slots.get(place)
        self._slots[place] = _join(before, self._shape(value))
        return before != self._slots[place]

    def of(self, pointer: Value) -> Shape:
        """The shape of a pointer, or of a slot of pointers. One that no buffer reaches has none."""
        return self._shape(pointer) or Shape(frozenset(), 1)

    def _shape(self, pointer: Value) -> Shape | None:
        if isinstance(pointer.type, SlotType):
            return self._slots.get(pointer)
        if isinstance(pointer, Argument):
            return _parameter(pointer.index)
        if not isinstance(pointer, Instruction):
            return None
        return self._instruction_shape(pointer)

    def _array(self, array: Array) -> Shape:
        offset = self._offsets[array.space][array.name] if array.space in self._offsets else 0
        return Shape(frozenset([array_buffer(array)]), 4 if array.align % 4 == 0 else 1, offset)

    def _instruction_shape(self, pointer: Instruction) -> Shape | None:
        match pointer.op:
            case "param":
                return _parameter(pointer.attrs["index"])
            case "addrof":
                return self._array(self._function.array(pointer.attrs["name"]))
            case "ptrcast":
                return self._shape(pointer.operands[0])
            case "load":
                return self.stored
            case "ptradd":
                base = self._shape(pointer.operands[0])
                return base and _moved(base, pointer)
            case "select":
                return _join(*map(self._shape, pointer.operands[1:]))
            case "get":
                return self._slots.get(pointer.operands[0])
        return None


def array_buffer(array: Array) -> Buffer:
    """The buffer that an array lies in."""
    return Buffer(array.space, array="" if array.space in ("shared", "local") else array.name)


def _in_memory(shape: Shape | None) -> Shape | None:
    """The shape of a stored pointer when it is loaded: its offset is counted in bytes."""
    return shape and Shape(shape.buffers, 1)


def _parameter(index: int) -> Shape:
    return Shape(frozenset([Buffer("global", index)]), 4, 0)


def _moved(base: Shape, addition: Instruction) -> Shape:
    index, attrs = addition.operands[1], addition.attrs
    offset = None
    if base.offset is not None and isinstance(index, Constant):
        number = index.signed if attrs["signed"] else index.value
        offset = base.offset + number * attrs["scale"] + attrs["disp"]
    return Shape(base.buffers, base.unit if moves_by_words(addition) else 1, offset)


def moves_by_words(addition: Instruction) -> bool:
    """Whether a ptradd moves by a whole number of words, whatever its index."""
    index, scale, displacement = addition.operands[1], addition.attrs["scale"], addition.attrs["disp"]
    if isinstance(index, Constant):
        return (index.value * scale + displacement) % 4 == 0
    return scale % 4 == 0 and displacement % 4 == 0


def _join(a: Shape | None, b: Shape | None) -> Shape | None:
    if a is None or b is None:
        return a or b
    buffers = a.buffers | b.buffers
    alike = a.offset == b.offset and (len(buffers) == 1 or Buffer("local") not in buffers)
    return Shape(buffers, min(a.unit, b.unit), a.offset if alike else None)
