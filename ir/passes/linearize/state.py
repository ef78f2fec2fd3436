"""What the steps of linearisation hand on to each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I1, Type, slot
from qgpu.ir.core.values import Literal, Value
from qgpu.ir.passes.errors import PassError

Edge = tuple[BasicBlock, BasicBlock]
Guard = tuple[Literal, ...]


class LinearizeError(PassError):
    """A function cannot be linearised."""


@dataclass(eq=False)
class LoopRegion:
    """A loop while its shape changes.

    `members` are its blocks, new ones included. A `divergent` loop has a slot `active` that tells which lanes
    are still in it, and one `latch` from which all of them go round again or out together.
    """

    header: BasicBlock
    members: set[BasicBlock]
    divergent: bool
    parent: LoopRegion | None = None
    active: Instruction | None = None
    latch: BasicBlock | None = None

    def add(self, block: BasicBlock) -> None:
        """Makes a block a member of this loop and of all loops around it."""
        self.members.add(block)
        if self.parent is not None:
            self.parent.add(block)


@dataclass(eq=False)
class State:
    """The function in the making.

    Attributes:
        divergent: the blocks whose conditional branch may split the lanes.
        edge_sets: assignments to slots that an edge makes.
        loops: all loops, inner before outer.
        entered_with: for edges into a divergent loop whose `active` slot the branching block has set: the
            literal that tells who takes the edge, in place of the branch's condition.
        stays: the blocks that update an `active` slot by their own condition: the lanes that go on are those
            in which the slot still holds.
        clears: the blocks after which lanes have left a loop that holds them, with that loop.
        all_left: the blocks whose edge to a loop's latch is taken when no lane is left in the loop.
        some_stay: the blocks after which a lane is still in the loop although they clear `active`.
        origins: the blocks of the source that a new block leads to.
        barrier_follows: the blocks of the source from which a barrier may be reached.
    """

    function: Function
    divergent: set[BasicBlock] = field(default_factory=set)
    edge_sets: dict[Edge, list[tuple[Value, Value]]] = field(default_factory=dict)
    loops: list[LoopRegion] = field(default_factory=list)
    entered_with: dict[Edge, Literal] = field(default_factory=dict)
    stays: set[BasicBlock] = field(default_factory=set)
    clears: dict[BasicBlock, LoopRegion] = field(default_factory=dict)
    all_left: set[BasicBlock] = field(default_factory=set)
    some_stay: set[BasicBlock] = field(default_factory=set)
    origins: dict[BasicBlock, list[BasicBlock]] = field(default_factory=dict)
    barrier_follows: set[BasicBlock] = field(default_factory=set)

    def new_slot(self, element: Type, name: str, uniform: bool = False) -> Instruction:
        """Declares a slot at the start of the entry block."""
        entry = self.function.entry
        attrs = {"uniform": True} if uniform else None
        declared = sum(1 for i in entry.instructions if i.op == "slot")
        return entry.insert(declared, Instruction("slot", slot(element), (), attrs, name=name))

    def new_block(self, name: str, loop: LoopRegion | None, target: BasicBlock) -> BasicBlock:
        """A block in `loop` that only goes to `target`, and has its place in the source."""
        block = self.function.add_block(name)
        block.append(Instruction("br", attrs={"target": target}, loc=target.instructions[0].loc))
        self.origins[block] = self.sources_of([target])
        if loop is not None:
            loop.add(block)
        return block

    def sources_of(self, blocks: list[BasicBlock]) -> list[BasicBlock]:
        """The blocks of the source that some blocks are or lead to."""
        return [origin for block in blocks for origin in self.origins.get(block, [block])]

    def innermost(self, block: BasicBlock) -> LoopRegion | None:
        """The innermost loop that holds a block."""
        return next((loop for loop in self.loops if block in loop.members), None)

    def add_edge_set(self, edge: Edge, slot: Value, value: Value) -> None:
        self.edge_sets.setdefault(edge, []).append((slot, value))

    def redirect(self, source: BasicBlock, old: BasicBlock, new: BasicBlock) -> None:
        """Makes the edge from `source` to `old` go to `new`; its assignments go along."""
        source.terminator.replace_successor(old, new)
        moved = self.edge_sets.pop((source, old), [])
        if moved:
            self.edge_sets.setdefault((source, new), []).extend(moved)

    def literal(self, source: BasicBlock, target: BasicBlock) -> Literal | None:
        """The literal that tells which lanes take an edge; None where all lanes of the source do."""
        if (source, target) in self.entered_with:
            return self.entered_with[source, target]
        if source not in self.divergent or source in self.stays:
            return None
        return Literal(source.terminator.operands[0], source.terminator.attrs["then"] is target)


def insert_before_terminator(block: BasicBlock, op: str, *operands: Value) -> Instruction:
    """Adds an instruction of type void at a block's end, before its terminator."""
    loc = block.terminator.loc
    return block.insert(len(block.instructions) - 1, Instruction(op, operands=operands, loc=loc))


def value_with_polarity(block: BasicBlock, value: Value, polarity: bool) -> Value:
    """An i1, or its complement computed at the end of a block."""
    if polarity:
        return value
    builder = Builder().before(block.terminator)
    return builder.emit("not", value, type=I1)


def append_set(block: BasicBlock, slot: Value, value: Value) -> None:
    """Adds an assignment at a block's end. One of a slot in the block's own guard has to be added last."""
    insert_before_terminator(block, "set", slot, value)


def replace_terminator(
    block: BasicBlock, op: str, operands: tuple[Value, ...], attrs: dict[str, BasicBlock]
) -> None:
    """Ends a block in another branch, at the place in the source of the one it had."""
    loc = block.terminator.loc
    block.terminator.erase()
    block.append(Instruction(op, operands=operands, attrs=attrs, loc=loc))
