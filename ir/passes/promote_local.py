"""Promotion of local arrays: what is only accessed at constant offsets becomes values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from qgpu.ir.analysis.cfg import reverse_postorder
from qgpu.ir.analysis.dominators import DominatorTree, dominance_frontiers
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Array, Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64, IntType, PtrType, Type, integer
from qgpu.ir.core.values import Value
from qgpu.ir.passes.dead_code import remove_dead_instructions, remove_unreachable_blocks
from qgpu.ir.passes.manager import Pass
from qgpu.ir.passes.simplify.addresses import constant_step
from qgpu.ir.passes.variables import Variable

POINTER_BYTES = 8


@dataclass(frozen=True)
class PromoteLocal(Pass):
    """Keeps local arrays in values where every access is at a constant offset.

    Contract: every load gives what it gave; bytes that were never written are undefined. Each array is cut
    where accesses begin and end, and each piece becomes a variable in SSA form (scalar replacement of
    aggregates). An array stays in memory as a whole if its address goes anywhere but to loads and stores, if
    an access is volatile, atomic, misaligned or outside of it, or if pointers and integers overlap.
    """

    name: ClassVar[str] = "promote-local"

    def run(self, function: Function) -> bool:
        if function.linearised or not any(array.space == "local" for array in function.shared):
            return False
        changed = remove_unreachable_blocks(function)
        for array in [array for array in function.shared if array.space == "local"]:
            accesses = accesses_of(function, array)
            pieces = None if accesses is None else pieces_of(accesses)
            if accesses is not None and pieces is not None:
                promote(function, accesses, pieces)
                remove_dead_instructions(function)
                function.shared.remove(array)
                changed = True
        return changed


@dataclass(frozen=True)
class Piece:
    """Bytes that become a variable of their own."""

    offset: int
    type: IntType | PtrType


@dataclass(frozen=True)
class Access:
    """A load or store of a part of the array: `offset` and `size` in bytes."""

    instruction: Instruction
    offset: int
    type: IntType | PtrType

    @property
    def size(self) -> int:
        return self.type.bytes if isinstance(self.type, IntType) else POINTER_BYTES

    @property
    def end(self) -> int:
        return self.offset + self.size

    def covers(self, piece: Piece) -> bool:
        return self.offset <= piece.offset < self.end


def accesses_of(function: Function, array: Array) -> list[Access] | None:
    """All accesses to an array; None where one is not at a constant place inside, or there may be others."""
    accesses: list[Access] = []
    work = [(i, 0) for i in function.instructions if i.op == "addrof" and i.attrs["name"] == array.name]
    while work:
        pointer, offset = work.pop()
        for use in pointer.uses:
            user = use.user
            assert isinstance(user, Instruction)
            step = constant_step(user) if user.op == "ptradd" else 0
            if user.op in ("ptradd", "ptrcast") and step is not None:
                work.append((user, offset + step))
                continue
            access = access_of(user, use.index, offset)
            if access is None or not fits(access, array):
                return None
            accesses.append(access)
    return accesses


def access_of(user: Instruction, operand: int, offset: int) -> Access | None:
    if user.op not in ("load", "store") or operand != 0 or user.attrs.get("volatile", False):
        return None
    return Access(user, offset, user.attrs["type"])


def fits(access: Access, array: Array) -> bool:
    """Whether an access is certain not to fault."""
    return access.offset % access.size == 0 and 0 <= access.offset <= array.size - access.size


def pieces_of(accesses: list[Access]) -> list[Piece] | None:
    """The variables for the bytes that are accessed, in order; None where there are none for pointers."""
    kinds = {(access.offset, access.type) for access in accesses}
    bounds = sorted({access.offset for access in accesses} | {access.end for access in accesses})
    pieces: list[Piece] = []
    for start, end in pairwise(bounds):
        within = {kind for kind in kinds if kind[0] <= start < kind[0] + size_of(kind[1])}
        pointers = [kind for kind in within if isinstance(kind[1], PtrType)]
        if pointers and (len(within) > 1 or end - start != POINTER_BYTES):
            return None
        if within:
            pieces += [Piece(*pointers[0])] if pointers else cut(start, end)
    return pieces


def size_of(type_: Type) -> int:
    return type_.bytes if isinstance(type_, IntType) else POINTER_BYTES


def cut(start: int, end: int) -> list[Piece]:
    """Integers that fill a range of bytes: one, or bytes where no integer has its size."""
    size = end - start
    if size in (1, 2, 4, 8):
        return [Piece(start, integer(8 * size))]
    return [Piece(offset, integer(8)) for offset in range(start, end)]


def promote(function: Function, accesses: list[Access], pieces: list[Piece]) -> None:
    """Replaces the loads by the variables' values, and takes the stores out."""
    covered = {
        access.instruction: (
            access,
            [piece for piece in pieces if access.offset <= piece.offset < access.end],
        )
        for access in accesses
    }
    blocks = {
        block: [covered[i] for i in block.instructions if i in covered]
        for block in reverse_postorder(function)
    }
    stored = {access.instruction: stored_parts(access, parts) for access, parts in covered.values()}
    tree, frontiers = DominatorTree(function), dominance_frontiers(function)
    variables: dict[Piece, Variable] = {}
    for piece in pieces:
        ends, reads = ends_and_reads(blocks, stored, piece)
        variables[piece] = Variable(tree, frontiers, piece.type, ends, reads)
    replaced: dict[Value, Value] = {}
    for block, found in blocks.items():
        replace_accesses(block, found, stored, variables, replaced)


Found = tuple[Access, list[Piece]]
"""An access, and the variables that it covers in order."""

Stored = dict[Instruction, dict[Piece, Value]]
"""What each store writes to variables; nothing for loads."""


def stored_parts(access: Access, parts: list[Piece]) -> dict[Piece, Value]:
    """What a store writes to each variable, computed before it."""
    store = access.instruction
    if store.op != "store":
        return {}
    builder = Builder().before(store)
    return {
        part: part_of(builder, store.operands[1], part.offset - access.offset, part.type) for part in parts
    }


def part_of(builder: Builder, value: Value, offset: int, type_: IntType | PtrType) -> Value:
    """The bytes of a value from an offset on."""
    if value.type is type_ or isinstance(type_, PtrType):
        return value
    if value.type is I64 and offset == 4 and type_ is I32:
        return builder.emit("high", value)
    if offset:
        value = builder.emit("lshr", value, constant(value.type, 8 * offset))
    return builder.cast("trunc", value, type_)


def ends_and_reads(
    blocks: dict[BasicBlock, list[Found]], stored: Stored, piece: Piece
) -> tuple[dict[BasicBlock, Value], list[BasicBlock]]:
    """What blocks leave in a variable, and the blocks that read it before they write it."""
    ends: dict[BasicBlock, Value] = {}
    reads: list[BasicBlock] = []
    for block, found in blocks.items():
        touching = [access.instruction for access, parts in found if piece in parts]
        if touching and touching[0].op == "load":
            reads.append(block)
        writes = [stored[i][piece] for i in touching if i.op == "store"]
        if writes:
            ends[block] = writes[-1]
    return ends, reads


def replace_accesses(
    block: BasicBlock,
    found: list[Found],
    stored: Stored,
    variables: dict[Piece, Variable],
    replaced: dict[Value, Value],
) -> None:
    """Goes through a block's accesses; `replaced` gives the values of loads that are gone."""
    current: dict[Piece, Value] = {}
    for access, parts in found:
        instruction = access.instruction
        if instruction.op == "load":
            values = [current.get(part) or variables[part].at_start(block) for part in parts]
            value = joined(instruction, access, parts, [resolved(value, replaced) for value in values])
            replaced[instruction] = value
            instruction.replace_all_uses_with(value)
        current.update(stored[instruction])
        instruction.erase()


def resolved(value: Value, replaced: dict[Value, Value]) -> Value:
    while value in replaced:
        value = replaced[value]
    return value


def joined(load: Instruction, access: Access, parts: list[Piece], values: list[Value]) -> Value:
    """What a load gives, from the variables that it covers."""
    builder = Builder().before(load)
    memory = access.type
    if isinstance(memory, PtrType):
        return values[0]
    if [part.type for part in parts] == [I32, I32]:
        return builder.emit("pack", *values)
    result = builder.cast("zext", values[0], memory)
    for part, value in zip(parts[1:], values[1:], strict=True):
        moved = builder.emit(
            "shl", builder.cast("zext", value, memory), constant(memory, 8 * (part.offset - access.offset))
        )
        result = builder.emit("or", result, moved)
    extension = "sext" if load.attrs.get("ext") == "sign" else "zext"
    assert isinstance(load.type, IntType)
    return builder.cast(extension, result, load.type)
