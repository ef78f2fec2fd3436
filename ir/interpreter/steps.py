"""Steps of the instructions that wait for nobody and go nowhere, one row an opcode."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qgpu.ir.core.folding import width_of
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import Shape, to_signed
from qgpu.ir.core.types import I1, IntType, PtrType, Type
from qgpu.ir.interpreter.arithmetic import OPERATIONS, comparison, operation
from qgpu.ir.interpreter.atomics import UPDATES, apply_atomics, apply_unread, compare_and_swap
from qgpu.ir.interpreter.decode import Decoder, Frame, Step
from qgpu.ir.interpreter.faults import Fault
from qgpu.ir.interpreter.printing import format_text
from qgpu.ir.interpreter.values import SIGNED, UNSIGNED, Lanes, Numbers, Pointers, Values, choose, zeros

Maker = Callable[[Decoder, Instruction], Step]


def _pure(decoder: Decoder, instruction: Instruction) -> Step:
    operands = instruction.operands
    shape = Shape(width_of(operands[0].type), width_of(instruction.type), instruction.attrs)
    run = operation(instruction.op, shape)
    return decoder.computing(instruction, lambda frame, lanes, *values: run(*values), operands)


def _select(decoder: Decoder, instruction: Instruction) -> Step:
    write, number = decoder.write(instruction), decoder.number(instruction)
    reads = [decoder.read_any(operand, instruction) for operand in instruction.operands]
    sources = [decoder.number(operand) for operand in instruction.operands]

    def select(frame: Frame, lanes: Lanes) -> None:
        condition, yes, no = (read(frame, lanes) for read in reads)
        assert not isinstance(condition, Pointers)
        write(frame, lanes, choose(condition, yes, no))
        if frame.shadow.marks:
            frame.shadow.set(number, lanes, frame.shadow.chosen(sources, condition, yes, no, lanes))

    return select


def _icmp(decoder: Decoder, instruction: Instruction) -> Step:
    if not isinstance(instruction.operands[0].type, PtrType):
        return _pure(decoder, instruction)
    predicate = instruction.attrs["pred"]

    def compare(frame: Frame, lanes: Lanes, a: Pointers, b: Pointers) -> Numbers:
        result = comparison(predicate)(a.offsets, b.offsets)
        apart = _apart(frame, a, b)
        if not apart.any():
            return result
        if predicate not in ("eq", "ne"):
            message = "pointers into different buffers have no order"
            raise Fault("address", message, instruction, int(frame.running(lanes)[apart.argmax()]))
        return np.where(apart, predicate == "ne", result)

    return decoder.computing(instruction, compare, instruction.operands)


def _apart(frame: Frame, a: Pointers, b: Pointers) -> Numbers:
    """Where two pointers lie in different buffers."""
    return np.broadcast_to(np.asarray(a.buffers) != np.asarray(b.buffers), a.offsets.shape)


def _undef(decoder: Decoder, instruction: Instruction) -> Step:
    def undefined(frame: Frame, lanes: Lanes) -> Values:
        return zeros(instruction.type, len(frame.running(lanes)))

    return decoder.computing(instruction, undefined, ())


def _same(frame: Frame, lanes: Lanes, value: Values) -> Values:
    return value


def _param(decoder: Decoder, instruction: Instruction) -> Step:
    argument = decoder.function.args[instruction.attrs["index"]]
    return decoder.computing(instruction, _same, (argument,))


def _sreg(decoder: Decoder, instruction: Instruction) -> Step:
    name = instruction.attrs["name"]

    def register(frame: Frame, lanes: Lanes) -> Numbers:
        return frame.specials[name] if lanes is None else frame.specials[name][lanes]

    return decoder.computing(instruction, register, ())


def _addrof(decoder: Decoder, instruction: Instruction) -> Step:
    name = instruction.attrs["name"]

    def address(frame: Frame, lanes: Lanes) -> Pointers:
        return Pointers(frame.arrays[name], frame.origin[: len(frame.running(lanes))])

    return decoder.computing(instruction, address, ())


def _ptradd(decoder: Decoder, instruction: Instruction) -> Step:
    type_, attrs = instruction.operands[1].type, instruction.attrs
    scale, moved = np.int64(to_signed(attrs["scale"], 64)), np.int64(to_signed(attrs["disp"], 64))
    extend = _extension(type_, attrs["signed"])

    def add(frame: Frame, lanes: Lanes, base: Pointers, index: Numbers) -> Pointers:
        offsets = extend(index) * scale
        offsets += base.offsets
        if moved:
            offsets += moved
        return Pointers(base.buffers, offsets)

    return decoder.computing(instruction, add, instruction.operands)


def _extension(type_: Type, signed: bool) -> Callable[[Numbers], Numbers]:
    """An index as int64, with its sign or zeros."""
    assert isinstance(type_, IntType)
    if type_ is I1:
        return lambda index: -index.astype(np.int64) if signed else index.astype(np.int64)
    narrow = SIGNED[type_.width] if signed else UNSIGNED[type_.width]
    return lambda index: index.view(narrow).astype(np.int64)


def _ptrcast(decoder: Decoder, instruction: Instruction) -> Step:
    assert isinstance(instruction.type, PtrType)
    space = instruction.type.space

    def cast(frame: Frame, lanes: Lanes, pointers: Pointers) -> Pointers:
        if space != "generic":
            inside = np.atleast_1d(frame.memory.in_space(pointers.buffers, space))
            if not inside.all():
                message = f"the pointer does not point into {space} memory"
                raise Fault("address", message, instruction, int(frame.running(lanes)[inside.argmin()]))
        return pointers

    return decoder.computing(instruction, cast, instruction.operands)


def _ptrdiff(decoder: Decoder, instruction: Instruction) -> Step:
    def difference(frame: Frame, lanes: Lanes, a: Pointers, b: Pointers) -> Numbers:
        apart = _apart(frame, a, b)
        if apart.any():
            message = "pointers into different buffers have no difference"
            raise Fault("address", message, instruction, int(frame.running(lanes)[apart.argmax()]))
        return (a.offsets - b.offsets).view(np.uint64)

    return decoder.computing(instruction, difference, instruction.operands)


def _ptrtoint(decoder: Decoder, instruction: Instruction) -> Step:
    def offset(frame: Frame, lanes: Lanes, pointers: Pointers) -> Numbers:
        return pointers.offsets.view(np.uint64)

    return decoder.computing(instruction, offset, instruction.operands)


def _load(decoder: Decoder, instruction: Instruction) -> Step:
    memory_type = instruction.attrs["type"]
    if isinstance(memory_type, PtrType):
        return _load_pointer(decoder, instruction, memory_type.space)
    size = memory_type.bytes
    extend = _loaded(memory_type, instruction.type, instruction.attrs.get("ext") == "sign")

    write, number = decoder.write(instruction), decoder.number(instruction)
    pointer = decoder.read(instruction.operands[0], instruction)

    def load(frame: Frame, lanes: Lanes) -> None:
        memory, threads, pointers = frame.memory, frame.running(lanes), pointer(frame, lanes)
        assert isinstance(pointers, Pointers)
        places = memory.places(pointers, size, threads, instruction)
        memory.check_numbers(places, size, threads, instruction)
        write(frame, lanes, extend(memory.views[size][places]))
        unwritten = memory.unwritten(pointers, places, size)
        if unwritten is not None:
            text = memory.unwritten_text(pointers, size, int(unwritten.argmax()))
            frame.shadow.set(number, lanes, unwritten * np.int32(frame.shadow.cause(text, instruction)))
        elif frame.shadow.marks:
            frame.shadow.set(number, lanes, None)

    return load


def _loaded(memory: IntType, result: Type, signed: bool) -> Callable[[Numbers], Numbers]:
    """What makes the result of a load from what memory holds."""
    assert isinstance(result, IntType)
    if memory is I1:
        to_bool = operation("trunc", Shape(8, 1))
        if result is I1:
            return to_bool
        wider = operation("sext" if signed else "zext", Shape(1, result.width))
        return lambda data: wider(to_bool(data))
    if memory is result:
        return lambda data: data
    return operation("sext" if signed else "zext", Shape(memory.width, result.width))


def _load_pointer(decoder: Decoder, instruction: Instruction, space: str) -> Step:
    def load(frame: Frame, lanes: Lanes, pointers: Pointers) -> Pointers:
        memory, threads = frame.memory, frame.running(lanes)
        places = memory.places(pointers, 8, threads, instruction)
        memory.check_written(pointers, places, 8, threads, instruction)
        return memory.pointers_at(places, space, threads, instruction)

    return decoder.deciding(instruction, load, instruction.operands)


def _store(decoder: Decoder, instruction: Instruction) -> Step:
    memory_type = instruction.attrs["type"]
    to, source = instruction.operands
    pointer, value = decoder.read(to, instruction), decoder.read_any(source, instruction)
    number = decoder.number(source)
    size = 8 if isinstance(memory_type, PtrType) else memory_type.bytes
    dtype = UNSIGNED[8 * size]

    def store(frame: Frame, lanes: Lanes) -> None:
        memory, new = frame.memory, value(frame, lanes)
        address = pointer(frame, lanes)
        assert isinstance(address, Pointers)
        places = memory.places(address, size, frame.running(lanes), instruction)
        unknown = _unknown(frame, number, address, lanes) if frame.shadow.marks else None
        if isinstance(new, Pointers):
            memory.views[8][places] = new.offsets.view(np.uint64)
            memory.note_written(places, 8, new.buffers, unknown=unknown)
            return
        # Of equal places the last counts, which is that of the highest thread.
        memory.views[size][places] = (new & 1 if memory_type is I1 else new).astype(dtype)
        memory.note_written(places, size, unknown=unknown)

    return store


def _unknown(frame: Frame, number: int, address: Pointers, lanes: Lanes) -> Numbers | None:
    """Where a store leaves memory as if never written; Fault where the value leaves the thread block."""
    marks = frame.shadow.of(number, lanes)
    if marks is None:
        return None
    outside = np.broadcast_to(~frame.memory.is_private(address.buffers), marks.shape)
    frame.shadow.check(number, frame.running(lanes)[outside])
    return marks > 0


def _atomic_places(instruction: Instruction) -> tuple[int, Callable[[Frame, Lanes, Pointers], Numbers]]:
    """The size of an atomic operation, and what finds its places in memory."""
    assert isinstance(instruction.type, IntType) and instruction.type is not I1
    size = instruction.type.bytes

    def places_of(frame: Frame, lanes: Lanes, pointers: Pointers) -> Numbers:
        threads = frame.running(lanes)
        places = frame.memory.places(pointers, size, threads, instruction)
        frame.memory.check_written(pointers, places, size, threads, instruction)
        frame.memory.check_numbers(places, size, threads, instruction)
        return places

    return size, places_of


def _atomicrmw(decoder: Decoder, instruction: Instruction) -> Step:
    size, places_of = _atomic_places(instruction)
    update = UPDATES[instruction.attrs["kind"]]

    def combine(frame: Frame, lanes: Lanes, pointers: Pointers, operand: Numbers) -> Numbers:
        places = places_of(frame, lanes, pointers)
        return apply_atomics(frame.memory.views[size], places, update, operand)

    if instruction.uses:
        return decoder.deciding(instruction, combine, instruction.operands)
    pointer, value = (decoder.read(operand, instruction) for operand in instruction.operands)

    def combine_unread(frame: Frame, lanes: Lanes) -> None:
        address, operand = pointer(frame, lanes), value(frame, lanes)
        assert isinstance(address, Pointers) and not isinstance(operand, Pointers)
        apply_unread(frame.memory.views[size], places_of(frame, lanes, address), update, operand)

    return combine_unread


def _cmpxchg(decoder: Decoder, instruction: Instruction) -> Step:
    size, places_of = _atomic_places(instruction)

    def swap(frame: Frame, lanes: Lanes, pointers: Pointers, expected: Numbers, new: Numbers) -> Numbers:
        places = places_of(frame, lanes, pointers)
        return apply_atomics(frame.memory.views[size], places, compare_and_swap, expected, new)

    return decoder.deciding(instruction, swap, instruction.operands)


def _printf(decoder: Decoder, instruction: Instruction) -> Step:
    text = instruction.attrs["format"]
    reads = [decoder.read(operand, instruction) for operand in instruction.operands]

    def print_all(frame: Frame, lanes: Lanes) -> None:
        columns = [read(frame, lanes) for read in reads]
        for row, thread in enumerate(frame.running(lanes)):
            try:
                line = format_text(text, [int(column[row]) for column in columns])  # pyright: ignore[reportArgumentType]
            except ValueError as error:
                raise Fault("format", str(error), instruction, int(thread)) from None
            frame.output(line)

    return print_all


def _slot(decoder: Decoder, instruction: Instruction) -> Step:
    decoder.number(instruction)
    return lambda frame, lanes: None


def _set(decoder: Decoder, instruction: Instruction) -> Step:
    variable, value = instruction.operands
    write, read = decoder.write(variable), decoder.read_any(value, instruction)
    number, source = decoder.number(variable), decoder.number(value)

    def assign(frame: Frame, lanes: Lanes) -> None:
        write(frame, lanes, read(frame, lanes))
        if frame.shadow.marks:
            frame.shadow.set(number, lanes, frame.shadow.of(source, lanes))

    return assign


def _get(decoder: Decoder, instruction: Instruction) -> Step:
    return decoder.computing(instruction, _same, instruction.operands)


STEPS: dict[str, Maker] = {
    **dict.fromkeys(OPERATIONS, _pure),
    "select": _select,
    "icmp": _icmp,
    "undef": _undef,
    "param": _param,
    "sreg": _sreg,
    "addrof": _addrof,
    "ptradd": _ptradd,
    "ptrcast": _ptrcast,
    "ptrdiff": _ptrdiff,
    "ptrtoint": _ptrtoint,
    "load": _load,
    "store": _store,
    "atomicrmw": _atomicrmw,
    "cmpxchg": _cmpxchg,
    "printf": _printf,
    "slot": _slot,
    "set": _set,
    "get": _get,
}
"""One row for each opcode that neither waits nor branches."""
