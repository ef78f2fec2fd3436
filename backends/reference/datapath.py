"""The datapath of one lane: operands in, one 32-bit result, one byte address and perhaps a fault out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from qgpu.backends.machine.block import FAULTS, INDEX_BITS, Block
from qgpu.backends.machine.description import BUFFER_ALIGN_WORDS, DESCRIPTOR_BASE_BITS
from qgpu.ir.core.reciprocals import reciprocal

WORD = 0xFFFFFFFF
_BASE_MASK = (1 << DESCRIPTOR_BASE_BITS) - 1
_BASE_UNIT = 4 * BUFFER_ALIGN_WORDS
OUT_OF_BOUNDS = FAULTS.index("out-of-bounds")
MISALIGNED = FAULTS.index("misaligned")


class Ports(NamedTuple):
    """What a block reads before it computes: 32-bit unsigned values of its ports, and the lane.

    `accumulator` is the thread register `dest`, 0 where the block does not read it.
    """

    a: int
    b: int
    c: int
    e: int
    accumulator: int
    lane: int


class Result(NamedTuple):
    """What a block computes for one lane: R, a fault's index in FAULTS or None, and the byte addresses."""

    value: int
    address: int
    second: int
    fault: int | None


def evaluate(block: Block, ports: Ports, memory: Sequence[int]) -> Result:
    """Compute one lane of a block; `memory` holds the 32-bit unsigned words of data memory."""
    descriptor = ports.a if block.a_to_d else ports.c if block.c_to_d else 0
    i = _index(block, ports)
    j = _displacement(block, ports)
    offset = i + j & WORD
    address = (descriptor & _BASE_MASK) * _BASE_UNIT + offset & WORD
    fault = _fault(block, ports, offset, descriptor >> DESCRIPTOR_BASE_BITS) if block.check else None
    k = _second_index(block, ports, i)
    other = ports.e if block.e_to_d2 else 0
    second = (other & _BASE_MASK) * _BASE_UNIT + k & WORD
    if block.check2 and fault is None:
        fault = _second_fault(block, ports, k, other >> DESCRIPTOR_BASE_BITS)
    if block.trap:
        fault = block.imm
    x, y, z = operands(block, ports, memory, address, second)
    return Result(OPERATIONS[block.op](block, x, y, z, address), address, second, fault)


def operands(
    block: Block, ports: Ports, memory: Sequence[int], address: int, second: int
) -> tuple[int, int, int]:
    """X, Y and Z of one lane, whose accesses have these byte addresses."""
    word, other_word = memory[(address >> 2) % len(memory)], memory[(second >> 2) % len(memory)]
    return _x(block, ports, word, address), _y(block, ports, word), _z(block, ports, other_word)


def signed(value: int) -> int:
    """The signed value of 32 bits."""
    return value - (1 << 32) if value >> 31 else value


def _index(block: Block, ports: Ports) -> int:
    if block.a_to_i:
        return ports.a
    if block.a_to_i4:
        return ports.a << 2 & WORD
    return ports.lane << 2 if block.lane_to_i4 else 0


def _displacement(block: Block, ports: Ports) -> int:
    if block.e_to_j:
        return ports.e
    if block.e_to_j4:
        return ports.e << 2 & WORD
    return block.imm if block.imm_to_j else 0


def _second_index(block: Block, ports: Ports, i: int) -> int:
    if block.i_to_k:
        return i
    return block.imm if block.imm_to_k else 0


def _fault(block: Block, ports: Ports, offset: int, size: int) -> int | None:
    """The fault of a checked access at `offset` bytes in a buffer of `size` bytes, or None."""
    last = 0 if block.width8 else 1 if block.width16 else 3
    if _index_strays(block, ports) or _displacement_strays(block, ports) or offset | last >= size:
        return OUT_OF_BOUNDS
    return MISALIGNED if offset & last else None


def _second_fault(block: Block, ports: Ports, k: int, size: int) -> int | None:
    """The fault of the checked second access, of a word `k` bytes in a buffer of `size` bytes, or None."""
    if (block.i_to_k and _index_strays(block, ports)) or k | 3 >= size:
        return OUT_OF_BOUNDS
    return MISALIGNED if k & 3 else None


def _index_strays(block: Block, ports: Ports) -> bool:
    if not block.a_to_i and not block.a_to_i4:
        return False
    return _strays(ports.a) or bool(block.i_unsigned and ports.a >> 31)


def _displacement_strays(block: Block, ports: Ports) -> bool:
    return bool(block.e_to_j or block.e_to_j4) and _strays(ports.e)


def _strays(index: int) -> bool:
    """Whether a register is too far from 0 to serve as an index, so that no sum of two can wrap."""
    return not -1 << INDEX_BITS - 1 <= signed(index) < 1 << INDEX_BITS - 1


def _x(block: Block, ports: Ports, word: int, address: int) -> int:
    if block.a_to_x:
        return ports.a
    if block.imm_to_x:
        return block.imm
    if block.m_to_x:
        return word
    return _sub_word(block, word, address) if block.m_sub_to_x else 0


def _sub_word(block: Block, word: int, address: int) -> int:
    shift, mask = _lane_of_word(block, address)
    value = word >> shift & mask
    top = mask + 1 >> 1
    return value - (value & top) * 2 & WORD if block.m_signed else value


def _lane_of_word(block: Block, address: int) -> tuple[int, int]:
    """Shift and mask of the byte or half word that an address selects in its word."""
    if block.width8:
        return 8 * (address & 3), 0xFF
    return 16 * (address >> 1 & 1), 0xFFFF


def _y(block: Block, ports: Ports, word: int) -> int:
    if block.b_to_y:
        return ports.b
    if block.c_to_y:
        return ports.c
    if block.imm_to_y:
        return block.imm
    if block.m_to_y:
        return word
    return 1 if block.one_to_y else WORD if block.ones_to_y else 0


def _z(block: Block, ports: Ports, word: int) -> int:
    if block.b_to_z:
        return ports.b
    if block.c_to_z:
        return ports.c
    if block.m2_to_z:
        return word
    if block.dest_to_z:
        return ports.accumulator
    return block.imm if block.imm_to_z else 0


def _mad(block: Block, x: int, y: int, z: int, address: int) -> int:
    return x * y + z & WORD


def _lop3(block: Block, x: int, y: int, z: int, address: int) -> int:
    result = 0
    for index in range(8):
        if block.lut >> index & 1:
            result |= (x if index & 4 else ~x) & (y if index & 2 else ~y) & (z if index & 1 else ~z)
    return result & WORD


def _shl(block: Block, x: int, y: int, z: int, address: int) -> int:
    return x << y & WORD if y < 32 else 0


def _shr(block: Block, x: int, y: int, z: int, address: int) -> int:
    return (signed(x) if block.signed else x) >> min(y, 32) & WORD


def _holds(block: Block, x: int, y: int) -> bool:
    if block.signed:
        x, y = signed(x), signed(y)
    return bool(block.cond_lt if x < y else block.cond_eq if x == y else block.cond_gt)


def _mulhi(block: Block, x: int, y: int, z: int, address: int) -> int:
    if block.signed:
        x, y = signed(x), signed(y)
    return (x * y >> 32) + z & WORD


def _shf(block: Block, x: int, y: int, z: int, address: int) -> int:
    return (z << 32 | x) >> min(y, 32) & WORD


def _cmp(block: Block, x: int, y: int, z: int, address: int) -> int:
    return int(_holds(block, x, y))


def _inc(block: Block, x: int, y: int, z: int, address: int) -> int:
    return z + _holds(block, x, y) & WORD


def _dec(block: Block, x: int, y: int, z: int, address: int) -> int:
    return z - _holds(block, x, y) & WORD


def _lex(block: Block, x: int, y: int, z: int, address: int) -> int:
    return z & 1 if x == y else int(_holds(block, x, y))


def _pick(block: Block, x: int, y: int, z: int, address: int) -> int:
    return x if _holds(block, x, y) else y


def _select(block: Block, x: int, y: int, z: int, address: int) -> int:
    return x if z & 1 else y


def _merge(block: Block, x: int, y: int, z: int, address: int) -> int:
    shift, mask = _lane_of_word(block, address)
    return x & ~(mask << shift) | (y & mask) << shift


def _popc(block: Block, x: int, y: int, z: int, address: int) -> int:
    return x.bit_count()


def _prmt(block: Block, x: int, y: int, z: int, address: int) -> int:
    pair, result = y << 32 | x, 0
    for place in range(4):
        digit = z >> 4 * place
        byte = pair >> 8 * (digit & 7) & 0xFF
        result |= ((0xFF if byte >> 7 else 0) if digit & 8 else byte) << 8 * place
    return result


def _clz(block: Block, x: int, y: int, z: int, address: int) -> int:
    return 32 - x.bit_length()


def _brev(block: Block, x: int, y: int, z: int, address: int) -> int:
    return int(f"{x:032b}"[::-1], 2)


def _rcp(block: Block, x: int, y: int, z: int, address: int) -> int:
    return reciprocal(x)


OPERATIONS: dict[str, Callable[[Block, int, int, int, int], int]] = {
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
"""R of every operation, from the block, X, Y, Z and the byte address."""
