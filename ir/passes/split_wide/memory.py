"""Memory, pointers and exchanges of 64 bits by words."""

from __future__ import annotations

import math
from collections.abc import Callable

from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64, IntType
from qgpu.ir.core.values import Argument, Constant, Value
from qgpu.ir.passes.emitter import Emitter
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import number
from qgpu.ir.passes.split_wide.arithmetic import is_sign_extended, words

ALIGNED = 1 << 16
"""What stands for the alignment of an offset that is always 0."""

FAR = 1 << 30
"""An index beyond every buffer: the largest power of two that a signed word holds."""


def alignment(pointer: Value, visited: frozenset[Value] = frozenset()) -> int:
    """A power of two that divides a pointer's offset; cycles through phis take back what they add."""
    if isinstance(pointer, Argument) or pointer in visited:
        return ALIGNED
    if not isinstance(pointer, Instruction):
        return 1
    visited = visited | {pointer}
    if pointer.op in ("addrof", "param", "undef"):
        return ALIGNED
    if pointer.op == "ptradd":
        base, index = pointer.operands
        step = possible_ones(index) * pointer.attrs["scale"] | ALIGNED
        return math.gcd(alignment(base, visited), step & -step, pointer.attrs["disp"])
    if pointer.op in ("phi", "select", "ptrcast"):
        sources = pointer.operands[1:] if pointer.op == "select" else pointer.operands
        return min(alignment(source, visited) for source in sources)
    return 1


def aligned_pointer(builder: Builder, pointer: Value) -> Value:
    """A pointer whose words at 0 and 4 are those of an access of 8 bytes at `pointer`.

    Where the offset is no multiple of 8 neither word is aligned: 1 is added to an offset of 4 more than a
    multiple of 8, and of the others none becomes a multiple of 4.
    """
    if alignment(pointer) % 8 == 0:
        return pointer
    offset = builder.emit("trunc", builder.emit("ptrtoint", pointer), type=I32)
    fourth = builder.emit("lshr", offset, constant(I32, 2))
    wrong = builder.emit("lop3", fourth, offset, constant(I32, 1), attrs={"lut": 0xF0 & ~0xCC & 0xAA})
    return builder.ptradd(pointer, wrong, 1)


def split_load(emit: Emitter, load: Instruction) -> Value:
    """Two words, the high one first, which is the one that may lie outside; or a word and its extension."""
    pointer, memory = load.operands[0], load.attrs["type"]
    volatile = load.attrs.get("volatile", False)
    if memory is not I64:
        extension = load.attrs["ext"]
        low = emit.builder.load(pointer, memory, I32, extension, volatile, load.name)
        return emit.pack(low, emit.ashr(low, 31) if extension == "sign" else 0)
    base = aligned_pointer(emit.builder, pointer)
    above = emit.builder.ptradd(base, constant(I32, 0), 1, 4)
    high = emit.builder.load(above, I32, volatile=volatile)
    return emit.pack(emit.builder.load(base, I32, volatile=volatile), high)


def split_store(emit: Emitter, store: Instruction) -> Value | None:
    pointer, value = store.operands
    memory, volatile = store.attrs["type"], store.attrs.get("volatile", False)
    low, high = words(emit, value)
    if memory is not I64:
        store.operands = (pointer, low)
        return None
    base = aligned_pointer(emit.builder, pointer)
    emit.builder.store(emit.builder.ptradd(base, constant(I32, 0), 1, 4), high, I32, volatile)
    emit.builder.store(base, low, I32, volatile)
    store.erase()
    return None


def split_ptradd(emit: Emitter, pointer: Instruction) -> Value:
    """The index as a word: the low one where that, extended, moves as far, else one beyond every buffer.

    The two move alike where (high - sign of low) * scale * 2^32 is 0 modulo 2^64. (An offset so large that
    the product wraps back into the buffer is not told from one that does not.)
    """
    base, index = pointer.operands
    scale, disp = pointer.attrs["scale"], pointer.attrs["disp"]
    low, high = words(emit, index)
    if is_sign_extended((low, high)):
        return emit.builder.ptradd(base, low, scale, disp, True)
    if number(high) == 0:
        return emit.builder.ptradd(base, low, scale, disp, False)
    rest = emit.sub(high, emit.ashr(low, 31))
    near = emit.icmp("eq", emit.mul(rest, scale & 0xFFFFFFFF), 0)
    return emit.builder.ptradd(base, emit.select(near, low, FAR), scale, disp, True)


def split_address(emit: Emitter, instruction: Instruction) -> Value | None:
    """ptrdiff and ptrtoint: the low word of what is computed; offsets have 32 bits."""
    after = Emitter(following(instruction))
    low = after.builder.emit("trunc", instruction, type=I32)
    _replace(instruction, after.pack(low, after.ashr(low, 31)), low)
    return None


def split_atomic(emit: Emitter, atomic: Instruction) -> Value | None:
    """The access stays, between the `pack`s of its operands and the words of its result."""
    pointer, *values = atomic.operands
    atomic.operands = (pointer, *(packed(emit, value) for value in values))
    if atomic.uses:
        after = Emitter(following(atomic))
        low, high = (after.builder.emit(op, atomic, type=I32) for op in ("trunc", "high"))
        _replace(atomic, after.pack(low, high), low, high)
    return None


def packed(emit: Emitter, value: Value) -> Value:
    """A number as a constant, or a `pack` of its own just before the instruction."""
    return value if isinstance(value, Constant) else emit.builder.emit("pack", *words(emit, value))


def following(instruction: Instruction) -> Instruction:
    instructions = instruction.block.instructions
    return instructions[instructions.index(instruction) + 1]


def _replace(instruction: Instruction, value: Value, *kept: Value) -> None:
    """Replaces the uses of a result but for those by its words."""
    for use in instruction.uses:
        if use.user not in kept:
            use.replace(value)


def split_printf(emit: Emitter, printf: Instruction) -> Value | None:
    printf.operands = tuple(packed(emit, x) if x.type is I64 else x for x in printf.operands)
    return None


def split_shuffle(emit: Emitter, shuffle: Instruction) -> Value:
    value, *rest = shuffle.operands
    low, high = (emit.builder.emit("shuffle", word, *rest) for word in words(emit, value))
    return emit.pack(low, high)


def split_match(emit: Emitter, match: Instruction) -> Value:
    """The lanes that agree in both words."""
    value, mask = match.operands
    pair = [emit.builder.emit("match", word, mask) for word in words(emit, value)]
    return emit.op("and", *pair)


def split_param(emit: Emitter, param: Instruction) -> Value:
    function = param.block.parent
    assert function is not None
    argument = function.args[param.attrs["index"]]
    assert isinstance(argument.type, IntType)
    return emit.pack(emit.low(argument), emit.high(argument))


MEMORY: dict[str, Callable[[Emitter, Instruction], Value | None]] = {
    "load": split_load,
    "store": split_store,
    "ptradd": split_ptradd,
    "ptrdiff": split_address,
    "ptrtoint": split_address,
    "atomicrmw": split_atomic,
    "cmpxchg": split_atomic,
    "printf": split_printf,
    "shuffle": split_shuffle,
    "match": split_match,
    "param": split_param,
}
"""The same for what is about memory and lanes; None where the instruction was changed in place."""
