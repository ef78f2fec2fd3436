"""Functions and modules: a kernel is a list of blocks, a module a list of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import Type
from qgpu.ir.core.values import Argument


@dataclass(frozen=True)
class Array:
    """An array of a kernel: `size` and `align` in bytes. `addrof {name}` gives its address.

    One in shared or local memory starts undefined. One in global or const memory starts each launch as `data`
    and zeros after it.
    """

    name: str
    space: str
    size: int
    align: int = 4
    data: bytes = b""


class Function:
    """One kernel. The first block is the entry; it has no predecessors.

    `attrs` holds what the source says about launches, for example `max_threads`; after linearisation
    `linearised` is true. `control_flow` is for `qgpu.ir.analysis.cfg`, which keeps there what it last found.
    """

    def __init__(
        self,
        name: str,
        args: Iterable[tuple[str, Type]] = (),
        shared: Iterable[Array] = (),
        attrs: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.args = [Argument(type_, arg, index) for index, (arg, type_) in enumerate(args)]
        self.blocks: list[BasicBlock] = []
        self.shared = list(shared)
        self.attrs: dict[str, Any] = dict(attrs or {})
        self.control_flow: object = None

    @property
    def entry(self) -> BasicBlock:
        return self.blocks[0]

    @property
    def linearised(self) -> bool:
        """Whether the function runs the whole thread block in lockstep, under guards."""
        return bool(self.attrs.get("linearised"))

    @property
    def instructions(self) -> Iterator[Instruction]:
        """All instructions, block after block; the blocks may be changed while iterating."""
        for block in list(self.blocks):
            yield from list(block.instructions)

    def add_block(self, name: str = "", before: BasicBlock | None = None) -> BasicBlock:
        """Adds an empty block at the end, or before another, under a name made unique."""
        block = BasicBlock(self.unique_block_name(name or "bb"))
        block.parent = self
        self.blocks.insert(self.blocks.index(before) if before else len(self.blocks), block)
        return block

    def unique_block_name(self, name: str) -> str:
        """`name`, or `name.N` with the first N that no block has."""
        taken = {block.name for block in self.blocks}
        candidate, number = name, 0
        while candidate in taken:
            number += 1
            candidate = f"{name}.{number}"
        return candidate

    def block(self, name: str) -> BasicBlock:
        """The block called `name`; KeyError where there is none."""
        for block in self.blocks:
            if block.name == name:
                return block
        raise KeyError(name)

    def array(self, name: str) -> Array:
        """The shared or local array called `name`; KeyError where there is none."""
        for array in self.shared:
            if array.name == name:
                return array
        raise KeyError(name)

    def predecessors(self) -> dict[BasicBlock, list[BasicBlock]]:
        """For every block the blocks that may go to it, each once, in block order."""
        result: dict[BasicBlock, list[BasicBlock]] = {block: [] for block in self.blocks}
        for block in self.blocks:
            for successor in block.successors:
                result[successor].append(block)
        return result

    def erase_block(self, block: BasicBlock) -> None:
        """Takes a block out, and its pairs off its successors' phis; its values must be unused elsewhere."""
        for successor in block.successors:
            for phi in successor.phis:
                phi.remove_incoming(block)
        block.guard = ()
        for instruction in block.instructions:
            instruction.operands = ()
            if instruction.op == "phi":
                instruction.attrs["blocks"] = ()
        self.blocks.remove(block)
        block.parent = None

    def __str__(self) -> str:
        from qgpu.ir.core.printer import print_function

        return print_function(self)


@dataclass
class Module:
    """The kernels of one source file, in its order."""

    functions: list[Function] = field(default_factory=list)

    def function(self, name: str) -> Function:
        """The kernel called `name`; KeyError where there is none."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)

    def __str__(self) -> str:
        from qgpu.ir.core.printer import print_module

        return print_module(self)
