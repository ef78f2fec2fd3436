"""The block: one expression tree with one result, the unit of program memory.

A pass of the machine evaluates the current block for one lane:

    offset = (I << 0 or 2) + J                     bytes, 32-bit, relative to the buffer that D describes
    M      = memory word at base(D) * 16 + offset
    M2     = memory word at base(D2) * 16 + K
    R      = op(X, Y, Z)
    where I, J, K, D, D2, X, Y, Z are routed from two register ports A and B (thread or uniform registers),
    two uniform ports C and E, the accumulator port (Z only), the immediate, constants, the memory word M (X
    and Y only) and the memory word M2 (Z only)

The result R leaves as tokens and is committed to the block's destinations when its last token comes back in.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

from qgpu.backends.machine.description import MachineDescription

OPS: dict[str, str] = {
    "mad": "X * Y + Z, low 32 bits",
    "mulhi": "the high 32 bits of X * Y (both signed where `signed`), plus Z",
    "lop3": "bitwise function of X, Y, Z by the truth table `lut` (index 4 X + 2 Y + Z, as PTX lop3.immLut)",
    "shl": "X << Y; 0 where Y, unsigned, is 32 or more",
    "shr": "X >> Y, filled with 0, or with bit 31 of X where `signed`; Y of 32 and more shifts all bits out",
    "shf": "the low word of Z:X >> Y, Z being the high word; Z where Y is 32 or more (PTX shf.r.clamp)",
    "cmp": "1 where the relation of X and Y (signed where `signed`) is one of cond_lt, _eq, _gt, else 0",
    "inc": "Z + 1 where that relation holds, else Z",
    "dec": "Z - 1 where that relation holds, else Z",
    "lex": "bit 0 of Z where X = Y, else as cmp (the higher words of a longer comparison)",
    "pick": "X where that relation holds, else Y (minimum and maximum)",
    "select": "X where bit 0 of Z is 1, else Y",
    "merge": "X with the addressed byte (width8) or half word (width16) replaced by low bits of Y",
    "prmt": "for each digit of 4 bits of Z's low half a byte of Y:X, or its sign where bit 3 is set, as PTX",
    "popc": "number of one bits of X",
    "clz": "number of zero bits of X above its highest one bit",
    "brev": "the bits of X in reverse order",
    "rcp": "2^32 / X, or less by up to 1/128 of it and 1 (by X's 9 highest bits); all ones for 0",
}
"""The operations of the arithmetic unit; `op` of a block is one of these names."""

FAULTS = ("out-of-bounds", "misaligned", "barrier", "trap", "assert")
"""Fault kinds in the order of their tokens: first the address unit's two; a trap block names its own."""


INDEX_BITS = 20
"""A register that gives I or J of a checked access is a signed number of so many bits, else out of bounds."""

DISPLACEMENT_BITS = 22
"""An immediate that gives J is a signed number of so many bits."""


@dataclass(frozen=True)
class Field:
    """One field of a block's row in program memory: `width` bits, least significant first.

    `choices` holds the names of a one-hot field; the dataclass attribute is then a string.
    """

    name: str
    width: int
    meaning: str
    choices: tuple[str, ...] = ()


@functools.cache
def block_fields(machine: MachineDescription) -> tuple[Field, ...]:
    """Return the fields of a block in row order for a machine; their widths follow from its sizes."""
    register = max(_bits(machine.register_rows), _bits(machine.uniform_registers))
    uniform = _bits(machine.uniform_registers)
    target = block_id_bits(machine)
    flag = 1
    return (
        Field("a", register, "port A: register row of warp 0, or uniform register"),
        Field("a_thread", flag, "port A reads a thread register"),
        Field("a_uniform", flag, "port A reads a uniform register"),
        Field("a_to_i", flag, "port A gives I, in bytes"),
        Field("a_to_i4", flag, "port A gives I, in words"),
        Field("a_to_x", flag, "port A gives X"),
        Field("a_to_d", flag, "port A gives D"),
        Field("b", register, "port B: register row of warp 0, or uniform register"),
        Field("b_thread", flag, "port B reads a thread register"),
        Field("b_uniform", flag, "port B reads a uniform register"),
        Field("b_to_y", flag, "port B gives Y"),
        Field("b_to_z", flag, "port B gives Z"),
        Field("c", uniform, "port C: uniform register"),
        Field("c_to_d", flag, "port C gives D"),
        Field("c_to_y", flag, "port C gives Y"),
        Field("c_to_z", flag, "port C gives Z"),
        Field("e", uniform, "port E: uniform register"),
        Field("e_to_j", flag, "port E gives J, in bytes"),
        Field("e_to_j4", flag, "port E gives J, in words"),
        Field("e_to_d2", flag, "port E gives D2"),
        Field("dest_to_z", flag, "the accumulator port gives Z: the thread register `dest`"),
        Field("imm", 32, "immediate; the fault kind of a trap block"),
        Field("imm_to_j", flag, "the immediate, of DISPLACEMENT_BITS, gives J, in bytes"),
        Field("imm_to_k", flag, "the immediate, of DISPLACEMENT_BITS, gives K, in bytes"),
        Field("imm_to_x", flag, "the immediate gives X"),
        Field("imm_to_y", flag, "the immediate gives Y"),
        Field("imm_to_z", flag, "the immediate gives Z"),
        Field("one_to_y", flag, "Y is 1"),
        Field("ones_to_y", flag, "Y is -1"),
        Field("lane_to_i4", flag, "the lane gives I, in words (firmware)"),
        Field("i_to_k", flag, "K is I"),
        Field("m_to_x", flag, "the memory word gives X"),
        Field("m_to_y", flag, "the memory word gives Y"),
        Field("m_sub_to_x", flag, "the byte or half word that the address selects gives X"),
        Field("m_signed", flag, "m_sub_to_x extends the sign"),
        Field("width8", flag, "the access is one byte"),
        Field("width16", flag, "the access is two bytes, aligned to two"),
        Field("check", flag, "the access is checked: bounds of D, and alignment (to 4 without a width flag)"),
        Field("i_unsigned", flag, "I is unsigned: a negative one is out of bounds"),
        Field("m2_to_z", flag, "the second memory word gives Z"),
        Field("check2", flag, "the second access is checked: bounds of D2, and alignment to 4"),
        Field("op", len(OPS), "operation", tuple(OPS)),
        Field("lut", 8, "truth table of lop3"),
        Field("cond_lt", flag, "the relation holds where X < Y"),
        Field("cond_eq", flag, "the relation holds where X = Y"),
        Field("cond_gt", flag, "the relation holds where X > Y"),
        Field("signed", flag, "comparison or right shift is signed"),
        Field("dest", register, "destination: register row of warp 0, or uniform register"),
        Field("wr_reg", flag, "R goes to the thread register `dest`"),
        Field("wr_uni", flag, "R goes to the uniform register `dest`"),
        Field("dest_lane", flag, "the uniform destination is `dest` + lane (firmware; `dest` % lanes = 0)"),
        Field("wr_mem", flag, "R goes to the addressed memory word"),
        Field("wr_mem2", flag, "R goes to the second addressed memory word"),
        Field("wr_pred", flag, "R != 0 goes to predicate `dest_pred` of the lane"),
        Field("wr_bound", flag, "R goes to the bound of predicate `dest_pred`"),
        Field("dest_pred", _bits(machine.predicates), "destination predicate"),
        Field("guard_true", machine.predicates, "predicates that must be 1 in an active lane"),
        Field("guard_false", machine.predicates, "predicates that must be 0 in an active lane"),
        Field("visit", flag, "the block has lanes to visit (without it, it only passes control on)"),
        Field("scalar", flag, "only lane 0 of warp 0 is visited, whatever the predicates"),
        Field("all_warps", flag, "every warp of the thread block is visited, else warp 0 alone"),
        Field("trap", flag, "an active lane faults with kind `imm`"),
        Field("next", target, "block that follows"),
        Field("next_exit", flag, "the launch ends instead of going to `next`"),
        Field("fall", flag, "`next` is the block after this one, entered without a token"),
        Field("taken", target, "block that follows where `branch_any` or `skip_idle` says so"),
        Field("branch_any", flag, "go to `taken` if any lane's result since the block began was not 0"),
        Field("skip_idle", flag, "go to `taken` if no lane was visited since the block began"),
    )


@dataclass(frozen=True)
class Block:
    """The field values of one block; see `block_fields` for their meaning. A plain `Block()` does nothing."""

    a: int = 0
    a_thread: int = 0
    a_uniform: int = 0
    a_to_i: int = 0
    a_to_i4: int = 0
    a_to_x: int = 0
    a_to_d: int = 0
    b: int = 0
    b_thread: int = 0
    b_uniform: int = 0
    b_to_y: int = 0
    b_to_z: int = 0
    c: int = 0
    c_to_d: int = 0
    c_to_y: int = 0
    c_to_z: int = 0
    e: int = 0
    e_to_j: int = 0
    e_to_j4: int = 0
    e_to_d2: int = 0
    dest_to_z: int = 0
    imm: int = 0
    imm_to_j: int = 0
    imm_to_k: int = 0
    imm_to_x: int = 0
    imm_to_y: int = 0
    imm_to_z: int = 0
    one_to_y: int = 0
    ones_to_y: int = 0
    lane_to_i4: int = 0
    i_to_k: int = 0
    m_to_x: int = 0
    m_to_y: int = 0
    m_sub_to_x: int = 0
    m_signed: int = 0
    width8: int = 0
    width16: int = 0
    check: int = 0
    i_unsigned: int = 0
    m2_to_z: int = 0
    check2: int = 0
    op: str = "mad"
    lut: int = 0
    cond_lt: int = 0
    cond_eq: int = 0
    cond_gt: int = 0
    signed: int = 0
    dest: int = 0
    wr_reg: int = 0
    wr_uni: int = 0
    dest_lane: int = 0
    wr_mem: int = 0
    wr_mem2: int = 0
    wr_pred: int = 0
    wr_bound: int = 0
    dest_pred: int = 0
    guard_true: int = 0
    guard_false: int = 0
    visit: int = 0
    scalar: int = 0
    all_warps: int = 0
    trap: int = 0
    next: int = 0
    next_exit: int = 0
    fall: int = 0
    taken: int = 0
    branch_any: int = 0
    skip_idle: int = 0

    @functools.cached_property
    def guards(self) -> tuple[tuple[int, bool], ...]:
        """The guard's predicates, each with whether it must hold in the threads that the block visits."""
        masks = ((True, self.guard_true), (False, self.guard_false))
        return tuple((n, holds) for holds, mask in masks for n in range(mask.bit_length()) if mask >> n & 1)


EXCLUSIVE_ROUTES: dict[str, tuple[str, ...]] = {
    "A": ("a_thread", "a_uniform"),
    "B": ("b_thread", "b_uniform"),
    "I": ("a_to_i", "a_to_i4", "lane_to_i4"),
    "J": ("e_to_j", "e_to_j4", "imm_to_j"),
    "K": ("i_to_k", "imm_to_k"),
    "D": ("a_to_d", "c_to_d"),
    "X": ("a_to_x", "imm_to_x", "m_to_x", "m_sub_to_x"),
    "Y": ("b_to_y", "c_to_y", "imm_to_y", "one_to_y", "ones_to_y", "m_to_y"),
    "Z": ("b_to_z", "c_to_z", "imm_to_z", "m2_to_z", "dest_to_z"),
    "width": ("width8", "width16"),
    "destination": ("wr_reg", "wr_uni", "wr_pred", "wr_bound"),
    "predicate or memory destination": ("wr_pred", "wr_bound", "wr_mem"),
    "memory destination": ("wr_pred", "wr_bound", "wr_mem2"),
    "dest": ("dest_to_z", "wr_uni"),
    "store": ("wr_mem", "wr_mem2"),
    "successor": ("branch_any", "skip_idle"),
    "end": ("next_exit", "fall"),
}
"""At most one of each group may be set: the routes add, and a sum of two operands is no operand."""

RUN_BLOCKS = 32
"""Blocks that may follow each other without a token: `fall` counts within a run of so many, aligned to it."""

BOUNDS = 2
"""Predicates 0 to BOUNDS - 1 hold in every thread whose number is below the predicate's bound.

Predicate 0 is nothing but its bound; the others are stored as well, and hold where either says so.
"""


class BlockError(ValueError):
    """A block that the machine cannot encode: a field out of range, or two sources for one operand."""


def check_block(block: Block, machine: MachineDescription) -> None:
    """Check that each field fits its width and that no operand has two sources.

    Raises:
        BlockError: names the field or the operand.
    """
    for field in block_fields(machine):
        value = getattr(block, field.name)
        if field.choices and value not in field.choices:
            raise BlockError(f"{field.name} = {value!r} is not one of {', '.join(field.choices)}")
        if not field.choices and not 0 <= value < 1 << field.width:
            raise BlockError(f"{field.name} = {value} does not fit {field.width} bits")
    for operand, routes in EXCLUSIVE_ROUTES.items():
        given = [route for route in routes if getattr(block, route)]
        if len(given) > 1:
            raise BlockError(f"{operand} has {len(given)} sources: {', '.join(given)}")
    displaced = block.imm_to_j or block.imm_to_k
    if displaced and not -1 << DISPLACEMENT_BITS - 1 <= _signed(block.imm) < 1 << DISPLACEMENT_BITS - 1:
        raise BlockError(
            f"the displacement {_signed(block.imm)} is not one of {DISPLACEMENT_BITS} bits, signed"
        )
    if block.wr_bound and block.dest_pred >= BOUNDS:
        raise BlockError(f"predicate {block.dest_pred} has no bound")


def encode_block(block: Block, machine: MachineDescription) -> tuple[int, ...]:
    """Return the row of a block: its bits in field order, each 0 or 1.

    Raises:
        BlockError: see `check_block`.
    """
    check_block(block, machine)
    bits: list[int] = []
    for field in block_fields(machine):
        value = getattr(block, field.name)
        number = 1 << field.choices.index(value) if field.choices else value
        bits.extend(number >> i & 1 for i in range(field.width))
    return tuple(bits)


def decode_block(bits: tuple[int, ...], machine: MachineDescription) -> Block:
    """Return the block of a row of `row_bits(machine)` bits.

    Raises:
        BlockError: wrong length, or a one-hot field with no or several bits set.
    """
    if len(bits) != row_bits(machine):
        raise BlockError(f"a row of {len(bits)} bits; this machine's have {row_bits(machine)}")
    values: dict[str, int | str] = {}
    position = 0
    for field in block_fields(machine):
        number = sum(bit << i for i, bit in enumerate(bits[position : position + field.width]))
        position += field.width
        values[field.name] = _choice(field, number) if field.choices else number
    block = Block(**values)  # pyright: ignore[reportArgumentType]
    check_block(block, machine)
    return block


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def _choice(field: Field, number: int) -> str:
    if number.bit_count() != 1:
        raise BlockError(f"{field.name} has {number.bit_count()} of its {field.width} one-hot bits set")
    return field.choices[number.bit_length() - 1]


def row_bits(machine: MachineDescription) -> int:
    """Bits of a block's row in program memory."""
    return sum(field.width for field in block_fields(machine))


def block_id_bits(machine: MachineDescription) -> int:
    """Bits of a block id: program blocks first, then the firmware's."""
    from qgpu.backends.machine.firmware import firmware_count

    return _bits(machine.rom_blocks + firmware_count(machine))


def _bits(count: int) -> int:
    return max(1, (count - 1).bit_length())


FIELD_NAMES = tuple(field.name for field in dataclasses.fields(Block))
