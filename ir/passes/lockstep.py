"""What passes over linearised functions share: where a lane is, and loops that lanes leave one by one."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I1, I32, Type, slot
from qgpu.ir.core.values import TRUE, Literal, Value
from qgpu.ir.passes.blocks import split_before


@dataclass
class Lanes:
    """The lanes of a function's thread block, of which a warp has `lanes` and the block at most `threads`.

    Values that say where a lane is are computed once, in the entry block.
    """

    function: Function
    lanes: int
    threads: int
    _values: dict[str, Instruction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.threads = int(self.function.attrs.get("max_threads", self.threads))

    @property
    def warps(self) -> int:
        """How many warps the thread block may have."""
        return -(-self.threads // self.lanes)

    def in_entry(self, key: str, op: str, *operands: Value, type_: Type = I32, **attrs: object) -> Value:
        """An instruction of the entry block, created when it is first asked for by its key."""
        if key not in self._values:
            entry = self.function.entry
            position = sum(1 for i in entry.instructions if i.op == "slot") + len(self._values)
            new = Instruction(op, type_, operands, attrs, name=key)
            self._values[key] = entry.insert(position, new)
        return self._values[key]

    def lane(self) -> Value:
        """The lane's number in its warp."""
        return self.in_entry("lane", "sreg", name="laneid")

    def warp(self) -> Value:
        """The warp's number; 0 where there is one warp only."""
        return constant(I32, 0) if self.warps == 1 else self.in_entry("warp", "sreg", name="warpid")

    def first(self) -> Value:
        """The number of the warp's first thread."""
        if self.warps == 1:
            return constant(I32, 0)
        return self.in_entry("first", "mul", self.warp(), constant(I32, self.lanes))

    def thread(self) -> Value:
        """The thread's number in its thread block."""
        return self.lane() if self.warps == 1 else self.in_entry("thread", "add", self.first(), self.lane())


def function_of(instruction: Instruction) -> Function:
    function = instruction.block.parent
    assert function is not None
    return function


def declare_slot(function: Function, element: Type, name: str) -> Instruction:
    """A slot for a value of each lane's own."""
    return function.entry.insert(0, Instruction("slot", slot(element), name=name))


def insert_block(name: str, before: BasicBlock, guard: tuple[Literal, ...]) -> BasicBlock:
    """An empty block in front of another."""
    function = before.parent
    assert function is not None
    block = function.add_block(name, before)
    block.guard = guard
    return block


@dataclass(frozen=True)
class LaneLoop:
    """A loop in front of a block `rest` that lanes leave one by one.

    The slot `pending` tells which lanes are still in it; `body` is its first block, to be filled and closed.
    """

    pending: Instruction
    body: BasicBlock
    rest: BasicBlock

    @classmethod
    def before(cls, instruction: Instruction, name: str) -> LaneLoop:
        """A new loop that all active lanes enter just before an instruction."""
        function, block = function_of(instruction), instruction.block
        pending = declare_slot(function, I1, f"{name}.pending")
        rest = split_before(instruction, f"{block.name.removesuffix('.rest')}.rest")
        block.terminator.erase()
        body = insert_block(name, rest, (*block.guard, Literal(pending)))
        builder = Builder(block, instruction.loc)
        builder.set(pending, TRUE)
        builder.br(body)
        return cls(pending, body, rest)

    def close(self, builder: Builder, goes_on: Value) -> None:
        """Ends the loop at the builder's block: lanes in which `goes_on` is false leave."""
        builder.set(self.pending, goes_on)
        builder.brany(goes_on, self.body, self.rest)
