"""The datapath of all active lanes of a block at once, on numpy arrays of 32-bit unsigned words.

What a lane computes is said by `datapath`; here each block becomes a function of arrays once. A value that
all lanes share (of a uniform register, or the immediate) is an array of one element.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qgpu.backends.machine.block import INDEX_BITS, Block
from qgpu.backends.machine.description import BUFFER_ALIGN_WORDS, DESCRIPTOR_BASE_BITS
from qgpu.backends.reference.datapath import MISALIGNED, OUT_OF_BOUNDS
from qgpu.ir.core import reciprocals

Words: TypeAlias = NDArray[Any]
"""32-bit unsigned words; numpy's stubs lose that dtype in most operations with a plain number."""
NO_FAULT = -1
_INDEX_BIAS = 1 << INDEX_BITS - 1
_BASE_MASK = (1 << DESCRIPTOR_BASE_BITS) - 1
_BASE_UNIT = 4 * BUFFER_ALIGN_WORDS


@dataclass(frozen=True)
class LanePorts:
    """What lanes read before they compute: ports, and lane numbers."""

    a: Words
    b: Words
    c: Words
    e: Words
    accumulator: Words
    lane: Words


@dataclass(frozen=True)
class Access:
    """What lanes access: byte addresses of both accesses, and the fault of each lane or NO_FAULT."""

    address: Words
    second: Words
    faults: NDArray[np.int64]


@dataclass(frozen=True)
class MemoryWords:
    """The memory words that lanes read, None where the block does not use them."""

    first: Words | None
    second: Words | None


@dataclass(frozen=True)
class LaneDatapath:
    """A block as functions of arrays.

    Attributes:
        reads_memory, reads_second: whether R depends on the first and the second memory word.
        access: byte addresses and faults.
        result: R, from ports, memory words and byte addresses of the first access.
    """

    reads_memory: bool
    reads_second: bool
    access: Callable[[LanePorts], Access]
    result: Callable[[LanePorts, MemoryWords, Words], Words]


def word(value: int) -> Words:
    """A word that all lanes share."""
    return np.array([value], np.uint32)


@functools.lru_cache(maxsize=1 << 13)
def lane_datapath(block: Block) -> LaneDatapath:
    """The datapath of a block."""
    reads_memory = bool(block.m_to_x or block.m_to_y or block.m_sub_to_x)
    return LaneDatapath(reads_memory, bool(block.m2_to_z), _access(block), _result(block))


_ZERO = word(0)


def _access(block: Block) -> Callable[[LanePorts], Access]:
    immediate = word(block.imm)

    def access(ports: LanePorts) -> Access:
        descriptor = ports.a if block.a_to_d else ports.c if block.c_to_d else _ZERO
        index = _index(block, ports)
        offset = index + _displacement(block, ports, immediate)
        k = _second_index(block, ports, index, immediate)
        other = ports.e if block.e_to_d2 else _ZERO
        faults = np.full(len(ports.lane), NO_FAULT, np.int64)
        if block.check:
            faults[:] = _faults(block, ports, offset, descriptor >> DESCRIPTOR_BASE_BITS)
        if block.check2:
            second = _second_faults(block, ports, k, other >> DESCRIPTOR_BASE_BITS)
            faults = np.where(faults == NO_FAULT, second, faults)
        if block.trap:
            faults[:] = block.imm
        return Access(_place(descriptor, offset, ports), _place(other, k, ports), faults)

    return access


def _place(descriptor: Words, offset: Words, ports: LanePorts) -> Words:
    place = (descriptor & _BASE_MASK) * np.uint32(_BASE_UNIT) + offset
    return np.broadcast_to(place, ports.lane.shape)


def _index(block: Block, ports: LanePorts) -> Words:
    if block.a_to_i:
        return ports.a
    if block.a_to_i4:
        return ports.a << 2
    return ports.lane << 2 if block.lane_to_i4 else _ZERO


def _displacement(block: Block, ports: LanePorts, immediate: Words) -> Words:
    if block.e_to_j:
        return ports.e
    if block.e_to_j4:
        return ports.e << 2
    return immediate if block.imm_to_j else _ZERO


def _second_index(block: Block, ports: LanePorts, index: Words, immediate: Words) -> Words:
    if block.i_to_k:
        return index
    return immediate if block.imm_to_k else _ZERO


def _faults(block: Block, ports: LanePorts, offset: Words, size: Words) -> NDArray[np.int64]:
    last = 0 if block.width8 else 1 if block.width16 else 3
    outside = ((offset | last) >= size) | _index_strays(block, ports)
    if block.e_to_j or block.e_to_j4:
        outside = outside | _strays(ports.e)
    misaligned = np.where(offset & last != 0, MISALIGNED, NO_FAULT)
    return np.where(outside, OUT_OF_BOUNDS, misaligned)


def _second_faults(block: Block, ports: LanePorts, k: Words, size: Words) -> NDArray[np.int64]:
    outside = (k | 3) >= size
    if block.i_to_k:
        outside = outside | _index_strays(block, ports)
    misaligned = np.where(k & 3 != 0, MISALIGNED, NO_FAULT)
    return np.where(outside, OUT_OF_BOUNDS, misaligned)


def _index_strays(block: Block, ports: LanePorts) -> NDArray[np.bool_]:
    if not (block.a_to_i or block.a_to_i4):
        return np.array([False])
    strays = _strays(ports.a)
    return strays | (ports.a >> 31 != 0) if block.i_unsigned else strays


def _strays(index: Words) -> NDArray[np.bool_]:
    """Which registers are too far from 0 to serve as an index."""
    return index + np.uint32(_INDEX_BIAS) >= 1 << INDEX_BITS


def _result(block: Block) -> Callable[[LanePorts, MemoryWords, Words], Words]:
    x, y, z, operation = _x(block), _y(block), _z(block), OPERATIONS[block.op](block)

    def result(ports: LanePorts, memory: MemoryWords, address: Words) -> Words:
        value = operation(
            x(ports, memory, address), y(ports, memory, address), z(ports, memory, address), address
        )
        return np.broadcast_to(value, address.shape)

    return result


Operand = Callable[[LanePorts, Any, Words], Words]


def _shared(value: int) -> Operand:
    constant = word(value)
    return lambda ports, memory, address: constant


def _chosen(routes: tuple[tuple[int, Operand], ...]) -> Operand:
    """The source of the route that a block has, or 0."""
    return next((source for route, source in routes if route), _shared(0))


def _x(block: Block) -> Operand:
    return _chosen(
        (
            (block.a_to_x, lambda ports, memory, address: ports.a),
            (block.imm_to_x, _shared(block.imm)),
            (block.m_to_x, lambda ports, memory, address: memory.first),
            (block.m_sub_to_x, lambda ports, memory, address: _sub_word(block, memory.first, address)),
        )
    )


def _y(block: Block) -> Operand:
    return _chosen(
        (
            (block.b_to_y, lambda ports, memory, address: ports.b),
            (block.c_to_y, lambda ports, memory, address: ports.c),
            (block.imm_to_y, _shared(block.imm)),
            (block.m_to_y, lambda ports, memory, address: memory.first),
            (block.one_to_y, _shared(1)),
            (block.ones_to_y, _shared(0xFFFFFFFF)),
        )
    )


def _z(block: Block) -> Operand:
    return _chosen(
        (
            (block.b_to_z, lambda ports, memory, address: ports.b),
            (block.c_to_z, lambda ports, memory, address: ports.c),
            (block.m2_to_z, lambda ports, memory, address: memory.second),
            (block.dest_to_z, lambda ports, memory, address: ports.accumulator),
            (block.imm_to_z, _shared(block.imm)),
        )
    )


def _part(block: Block, address: Words) -> tuple[Words, np.uint32]:
    """Shift and mask of the byte or half word that an address selects in its word."""
    if block.width8:
        return (address & 3) << 3, np.uint32(0xFF)
    return (address >> 1 & 1) << 4, np.uint32(0xFFFF)


def _sub_word(block: Block, memory: Words, address: Words) -> Words:
    shift, mask = _part(block, address)
    value = memory >> shift & mask
    return value - (value & (mask + np.uint32(1) >> np.uint32(1))) * np.uint32(2) if block.m_signed else value


Operation = Callable[[Words, Words, Words, Words], Words]


def _mad(block: Block) -> Operation:
    return lambda x, y, z, address: x * y + z


def _lop3(block: Block) -> Operation:
    def run(x: Words, y: Words, z: Words, address: Words) -> Words:
        result = _ZERO
        for index in range(8):
            if block.lut >> index & 1:
                both = (x if index & 4 else ~x) & (y if index & 2 else ~y)
                result = result | both & (z if index & 1 else ~z)
        return result

    return run


def _shl(block: Block) -> Operation:
    return lambda x, y, z, address: np.where(y < 32, x << (y & 31), 0).astype(np.uint32)


def _shr(block: Block) -> Operation:
    if block.signed:
        return lambda x, y, z, address: (x.view(np.int32) >> np.minimum(y, 31).view(np.int32)).view(np.uint32)
    return lambda x, y, z, address: np.where(y < 32, x >> (y & 31), 0).astype(np.uint32)


_RELATIONS: dict[tuple[int, int, int], np.ufunc | None] = {
    (1, 0, 0): np.less,
    (0, 1, 0): np.equal,
    (0, 0, 1): np.greater,
    (1, 1, 0): np.less_equal,
    (1, 0, 1): np.not_equal,
    (0, 1, 1): np.greater_equal,
}
"""By cond_lt, cond_eq, cond_gt; with none the relation never holds, with all always."""


def _holds(block: Block) -> Callable[[Words, Words], NDArray[np.bool_]]:
    conditions = (block.cond_lt, block.cond_eq, block.cond_gt)
    relation = _RELATIONS.get(conditions)
    if relation is None:
        return lambda x, y: np.array([all(conditions)])
    if block.signed:
        return lambda x, y: relation(x.view(np.int32), y.view(np.int32))
    return relation


def _mulhi(block: Block) -> Operation:
    kind = np.int64 if block.signed else np.uint64

    def wide(value: Words) -> NDArray[Any]:
        return value.view(np.int32).astype(kind) if block.signed else value.astype(kind)

    return lambda x, y, z, address: (wide(x) * wide(y) >> kind(32)).astype(np.uint32) + z


def _shf(block: Block) -> Operation:
    def run(x: Words, y: Words, z: Words, address: Words) -> Words:
        pair = z.astype(np.uint64) << np.uint64(32) | x
        return (pair >> np.minimum(y, 32).astype(np.uint64)).astype(np.uint32)

    return run


def _cmp(block: Block) -> Operation:
    holds = _holds(block)
    return lambda x, y, z, address: holds(x, y).astype(np.uint32)


def _inc(block: Block) -> Operation:
    holds = _holds(block)
    return lambda x, y, z, address: z + holds(x, y).astype(np.uint32)


def _dec(block: Block) -> Operation:
    holds = _holds(block)
    return lambda x, y, z, address: z - holds(x, y).astype(np.uint32)


def _lex(block: Block) -> Operation:
    holds = _holds(block)
    return lambda x, y, z, address: np.where(x == y, z & 1, holds(x, y)).astype(np.uint32)


def _pick(block: Block) -> Operation:
    holds = _holds(block)
    return lambda x, y, z, address: np.where(holds(x, y), x, y)


def _select(block: Block) -> Operation:
    return lambda x, y, z, address: np.where(z & 1, x, y)


def _merge(block: Block) -> Operation:
    def run(x: Words, y: Words, z: Words, address: Words) -> Words:
        shift, mask = _part(block, address)
        return x & ~(mask << shift) | (y & mask) << shift

    return run


def _popc(block: Block) -> Operation:
    return lambda x, y, z, address: np.bitwise_count(x).astype(np.uint32)


def _prmt(block: Block) -> Operation:
    def run(x: Words, y: Words, z: Words, address: Words) -> Words:
        pair = y.astype(np.uint64) << np.uint64(32) | x
        result: Words = _ZERO
        for place in range(4):
            digit = z >> np.uint32(4 * place)
            byte = (pair >> (8 * (digit & 7)).astype(np.uint64)).astype(np.uint32) & 0xFF
            spread = np.where(digit & 8, np.where(byte & 0x80, 0xFF, 0), byte).astype(np.uint32)
            result = result | spread << np.uint32(8 * place)
        return result

    return run


def _zeros_above(x: Words) -> Words:
    """Zero bits above the highest one bit: those of the word with all bits below that one set."""
    for shift in (1, 2, 4, 8, 16):
        x = x | x >> np.uint32(shift)
    return np.bitwise_count(~x).astype(np.uint32)


def _clz(block: Block) -> Operation:
    return lambda x, y, z, address: _zeros_above(x)


def _brev(block: Block) -> Operation:
    def run(x: Words, y: Words, z: Words, address: Words) -> Words:
        for shift, lower in _HALVES:
            x = (x & lower) << shift | x >> shift & lower
        return x

    return run


_HALVES = tuple(
    (np.uint32(shift), np.uint32(lower))
    for shift, lower in (
        (1, 0x55555555),
        (2, 0x33333333),
        (4, 0x0F0F0F0F),
        (8, 0x00FF00FF),
        (16, 0x0000FFFF),
    )
)
"""How far groups of bits move, and the places of the lower groups."""

_RECIPROCALS = np.array(reciprocals.RECIPROCALS, np.uint64)


def _rcp(block: Block) -> Operation:
    def run(x: Words, y: Words, z: Words, address: Words) -> Words:
        zeros = _zeros_above(x).astype(np.uint64)
        index = (x.astype(np.uint64) << zeros >> np.uint64(31 - reciprocals.INDEX_BITS)).astype(np.int64)
        entry = _RECIPROCALS[index & len(_RECIPROCALS) - 1]
        moved = entry << zeros + np.uint64(1) >> np.uint64(reciprocals.ENTRY_BITS)
        return np.where(x == 0, np.uint32(0xFFFFFFFF), moved.astype(np.uint32))

    return run


OPERATIONS: dict[str, Callable[[Block], Operation]] = {
    "mad": _mad,
    "mulhi": _mulhi,
    "lop3": _lop3,
    "shl": _shl,
    "shr": _shr,
    "shf": _shf,
    "cmp": _cmp,
    "inc": _inc,
    "dec": _dec,
    "lex": _lex,
    "pick": _pick,
    "select": _select,
    "merge": _merge,
    "prmt": _prmt,
    "popc": _popc,
    "clz": _clz,
    "brev": _brev,
    "rcp": _rcp,
}
"""R of every operation, from X, Y, Z and the byte addresses."""
