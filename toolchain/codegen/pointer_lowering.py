"""Lowering of pointers: no pointer is a value of the machine, only its descriptor and its offset are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from qgpu.ir import I32, Argument, Constant, Instruction, PtrType, SlotType, Value
from qgpu.toolchain.codegen.addresses import Pointer, moved, offset_in
from qgpu.toolchain.codegen.arithmetic import RELATIONS, difference, logic, product
from qgpu.toolchain.codegen.environment import Environment
from qgpu.toolchain.codegen.inductions import Induction, find_inductions
from qgpu.toolchain.codegen.memory_layout import array_offsets
from qgpu.toolchain.codegen.nodes import ANY_SPACE, EQUAL, Arg, Expression, Slot, Term
from qgpu.toolchain.codegen.pointers import Buffer, PointerShapes, Shape, array_buffer
from qgpu.toolchain.codegen.refuse import refuse_instruction
from qgpu.toolchain.codegen.registers import Register


@dataclass(frozen=True)
class _PointerSlot:
    """A slot of pointers: slots for the descriptor and the offset, where these are not always the same."""

    shape: Shape
    offset: Slot | None
    descriptor: Slot | None


class PointerLowering:
    """Lowers the instructions that make, keep or compare pointers.

    Attributes:
        slots: the slots of words by their IR slots, which induction pointers may share.
    """

    def __init__(self, environment: Environment, slots: dict[Value, Slot]) -> None:
        self._env = environment
        function = environment.function
        self._offsets = {space: array_offsets(function, space) for space in ("shared", "local")}
        self._shapes = PointerShapes(function)
        self._pointers: dict[Value, Pointer] = {}
        self._slots: dict[Value, _PointerSlot] = {}
        self._inductions = find_inductions(function, self._shapes, environment.uniformity)
        self._starts: dict[Value, Pointer] = {}
        self._moved: dict[tuple, Slot] = {}
        self._word_slots = slots
        self._made: dict[str, Callable[[Instruction], Pointer]] = {
            "param": self._parameter,
            "addrof": self._array,
            "ptradd": self._sum,
            "ptrcast": self._cast,
            "undef": self._undefined,
            "select": self._selection,
            "get": self._get,
        }
        self._values: dict[str, Callable[[Instruction], Arg]] = {
            "icmp": self._comparison,
            "ptrdiff": self._difference,
            "ptrtoint": self._number,
        }

    def pointer(self, value: Value) -> Pointer:
        """The pointer that a value is."""
        if isinstance(value, Argument):
            return Pointer(self._env.result.parameter(value.index), "global")
        return self._pointers[value]

    def define(self, value: Value, descriptor: Arg | None, offset: Arg) -> None:
        """Let a value be the pointer with that offset in bytes, without a descriptor in its only buffer."""
        buffer = self._shapes.of(value).buffer
        if descriptor is None:
            assert buffer
            descriptor = self._descriptor(buffer)
        space = buffer.space if buffer else ANY_SPACE
        self._pointers[value] = moved(Pointer(descriptor, space), offset, 1, 0, unsigned=False)

    def in_one_buffer(self, value: Value) -> bool:
        """Whether a pointer is known to point into one buffer."""
        return self._shapes.of(value).buffer is not None

    def stored_in_one_buffer(self) -> bool:
        """Whether the pointers that are stored in memory all point into one buffer."""
        return self._shapes.stored is None or self._shapes.stored.buffer is not None

    def offset_in_bytes(self, value: Value) -> Arg:
        """A pointer's offset in its buffer."""
        return offset_in(self.pointer(value), 1, self._env.emitter.value)

    def choices(self, value: Value) -> list[Register]:
        """The descriptors of the buffers that a pointer may point into."""
        buffers = sorted(self._shapes.of(value).buffers, key=lambda b: (b.space, b.parameter, b.array))
        return [self._descriptor(buffer) for buffer in buffers]

    def takes(self, instruction: Instruction) -> bool:
        """Whether an instruction is about pointers, and no access to memory."""
        if instruction.op in ("load", "store", "atomicrmw"):
            return False
        types = (instruction.type, *(operand.type for operand in instruction.operands))
        return any(_of_pointers(type_) for type_ in types)

    def lower(self, instruction: Instruction) -> None:
        """Lower an instruction that `takes` gives true for."""
        if instruction.op in self._values:
            self._env.values[instruction] = self._values[instruction.op](instruction)
        elif instruction.op in self._made:
            self._pointers[instruction] = self._made[instruction.op](instruction)
        elif instruction.op == "slot":
            self._declare(instruction)
        elif instruction.op == "set":
            self._set(instruction)
        else:
            raise refuse_instruction(instruction, "the machine has no operation for it on pointers")

    def _parameter(self, instruction: Instruction) -> Pointer:
        return Pointer(self._env.result.parameter(instruction.attrs["index"]), "global")

    def _cast(self, instruction: Instruction) -> Pointer:
        return self.pointer(instruction.operands[0])

    def _undefined(self, instruction: Instruction) -> Pointer:
        """A pointer into a buffer without bytes."""
        return Pointer(self._env.result.special("zero"), ANY_SPACE)

    def _difference(self, instruction: Instruction) -> Arg:
        a, b = map(self.offset_in_bytes, instruction.operands)
        return self._env.emitter.value(difference(a, b))

    def _number(self, instruction: Instruction) -> Arg:
        return self.offset_in_bytes(instruction.operands[0])

    def _array(self, instruction: Instruction) -> Pointer:
        array = self._env.function.array(instruction.attrs["name"])
        offset = self._offsets[array.space][array.name] if array.space in self._offsets else 0
        return replace(self._base(array_buffer(array)), displacement=offset)

    def _base(self, buffer: Buffer) -> Pointer:
        """The beginning of a buffer; of local memory, that of the thread's frame."""
        frame = (Term(self._env.result.special("frame"), 4),) if buffer.space == "local" else ()
        return Pointer(self._descriptor(buffer), buffer.space, frame)

    def _offset(self, pointer: Pointer, shape: Shape) -> Arg:
        """A pointer's offset from the base of its shape's buffer, in the shape's units."""
        emitter, frame = self._env.emitter, self._env.result.specials.get("frame")
        if shape.buffer is None or shape.buffer.space != "local" or frame is None:
            return offset_in(pointer, shape.unit, emitter.value)
        inside = tuple(term for term in pointer.terms if term.value is not frame)
        if len(inside) < len(pointer.terms):
            return offset_in(replace(pointer, terms=inside), shape.unit, emitter.value)
        before = emitter.value(product(frame, 4 // shape.unit))
        return emitter.value(difference(offset_in(pointer, shape.unit, emitter.value), before))

    def _sum(self, instruction: Instruction) -> Pointer:
        base, index = instruction.operands
        attrs = instruction.attrs
        if isinstance(index, Constant):
            number: Arg = index.signed & 0xFFFFFFFF
        elif index.type is I32:
            number = self._env.arg(index)
        else:
            raise refuse_instruction(instruction, f"an index of type {index.type} needs 64-bit arithmetic")
        return moved(self.pointer(base), number, attrs["scale"], attrs["disp"], not attrs["signed"])

    def _selection(self, instruction: Instruction) -> Pointer:
        shape, emitter = self._shapes.of(instruction), self._env.emitter
        condition = self._env.arg(instruction.operands[0])
        pair = [self.pointer(operand) for operand in instruction.operands[1:]]
        offset = descriptor = None
        if shape.offset is None:
            a, b = (self._offset(pointer, shape) for pointer in pair)
            offset = emitter.value(Expression("select", a, b, condition))
        if shape.buffer is None:
            a, b = (pointer.descriptor for pointer in pair)
            descriptor = emitter.value(Expression("select", a, b, condition))
        return self._shaped(shape, descriptor, offset)

    def _comparison(self, instruction: Instruction) -> Arg:
        """Compares offsets: they are signed, whatever the predicate says of addresses.

        Pointers into different buffers are unequal; what order says of them is not defined.
        """
        shapes = [self._shapes.of(operand) for operand in instruction.operands]
        predicate, emitter = instruction.attrs["pred"], self._env.emitter
        if predicate in ("eq", "ne") and not shapes[0].buffers & shapes[1].buffers:
            return int(predicate == "ne")
        one = shapes[0].buffer is not None and shapes[0].buffer == shapes[1].buffer
        unit = min(shape.unit for shape in shapes)
        pair = [self.pointer(operand) for operand in instruction.operands]
        a, b = (offset_in(pointer, unit, emitter.value) for pointer in pair)
        relation, _ = RELATIONS[predicate]
        if one or predicate not in ("eq", "ne"):
            return emitter.value(Expression("cmp", a, b, relation=relation, signed=True))
        alike = [
            emitter.value(Expression("cmp", x, y, relation=relation))
            for x, y in ((pair[0].descriptor, pair[1].descriptor), (a, b))
        ]
        return emitter.value(logic("and" if relation == EQUAL else "or", *alike))

    def _shaped(self, shape: Shape, descriptor: Arg | None, offset: Arg | None) -> Pointer:
        """The pointer of a shape, with what the shape leaves open."""
        base = self._base(shape.buffer) if shape.buffer else Pointer(descriptor or 0, ANY_SPACE)
        if offset is None:
            return replace(base, displacement=shape.offset or 0)
        return moved(base, offset, shape.unit, 0, unsigned=False)

    def _descriptor(self, buffer: Buffer) -> Register:
        if buffer.space in ("shared", "local"):
            return self._env.result.special(buffer.space)
        if buffer.array:
            return self._env.result.array(buffer.array)
        return self._env.result.parameter(buffer.parameter)

    # Slots

    def _declare(self, slot: Instruction) -> None:
        if slot in self._inductions:
            return
        shape, uniform = self._shapes.of(slot), self._env.uniformity.uniform(slot)
        descriptor = None if shape.buffer else self._env.new_slot(f"{slot.name}.buffer", uniform)
        offset = self._env.new_slot(f"{slot.name}.offset", uniform) if shape.offset is None else None
        self._slots[slot] = _PointerSlot(shape, offset, descriptor)

    def _set(self, instruction: Instruction) -> None:
        slot, value = instruction.operands
        pointer = self.pointer(value)
        if slot in self._inductions:
            self._set_induction(slot, self._inductions[slot], instruction, pointer)
            return
        pair = self._slots[slot]
        if pair.offset:
            self._env.set_word(pair.offset, self._offset(pointer, pair.shape))
        if pair.descriptor:
            self._env.set_word(pair.descriptor, pointer.descriptor)

    def _get(self, instruction: Instruction) -> Pointer:
        slot, uniform = instruction.operands[0], self._env.uniformity.uniform(instruction)
        if slot in self._inductions:
            return self._get_induction(slot, self._inductions[slot])
        pair = self._slots[slot]
        descriptor = self._env.get_slot(pair.descriptor, uniform) if pair.descriptor else None
        offset = self._env.get_slot(pair.offset, uniform) if pair.offset else None
        return self._shaped(pair.shape, descriptor, offset)

    # Induction pointers

    def _set_induction(
        self, slot: Value, induction: Induction, instruction: Instruction, pointer: Pointer
    ) -> None:
        known, unit = induction.key in self._moved, self._shapes.of(slot).unit
        distance = self._distance(induction)
        if instruction is induction.start:
            self._starts[slot] = self._start(pointer, unit)
            if not known and induction.counter is None:
                self._env.set_word(distance, 0)
        elif induction.counter is None and self._is_first(slot, induction):
            rest = replace(pointer, terms=pointer.terms[len(self._starts[slot].terms) :])
            self._env.set_word(distance, offset_in(rest, unit, self._env.emitter.value))

    def _get_induction(self, slot: Value, induction: Induction) -> Pointer:
        start, unit = self._starts[slot], self._shapes.of(slot).unit
        distance = self._env.get_slot(self._distance(induction), uniform=True)
        return replace(start, terms=(*start.terms, Term(distance, unit)))

    def _distance(self, induction: Induction) -> Slot:
        """The slot that counts how far the thread block has moved."""
        if induction.counter is not None:
            return self._word_slots[induction.counter]
        if induction.key not in self._moved:
            self._moved[induction.key] = self._env.new_slot("distance", uniform=True)
        return self._moved[induction.key]

    def _is_first(self, slot: Value, induction: Induction) -> bool:
        """Whether of the pointers that move alike this is the one that counts for all."""
        return next(s for s, found in self._inductions.items() if found.key == induction.key) is slot

    def _start(self, pointer: Pointer, unit: int) -> Pointer:
        """Where a thread's pointer starts, as a pointer with at most one term, to which a block can add."""
        plain = all(term.scale in (1, 4) and not term.unsigned for term in pointer.terms)
        if pointer.displacement == 0 and len(pointer.terms) < 2 and plain:
            return pointer
        offset = offset_in(pointer, unit, self._env.emitter.value)
        return moved(Pointer(pointer.descriptor, pointer.space), offset, unit, 0, unsigned=False)


def _of_pointers(type_: object) -> bool:
    return isinstance(type_.element if isinstance(type_, SlotType) else type_, PtrType)
