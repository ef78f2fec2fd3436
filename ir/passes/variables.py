"""Variables in SSA form: phis where several definitions of one variable meet (Cytron et al. 1991, pruned)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qgpu.ir.analysis.dominators import DominatorTree
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import Type
from qgpu.ir.core.values import Value


class Variable:
    """What a variable holds at the start and at the end of blocks.

    `definitions` gives the value that each block leaves in it; blocks that write nothing are not listed.
    `read` lists the blocks at whose start the variable is read, or from whose start it has to last.
    Where nothing was written it is undefined.
    """

    def __init__(
        self,
        tree: DominatorTree,
        frontiers: Mapping[BasicBlock, list[BasicBlock]],
        type_: Type,
        definitions: Mapping[BasicBlock, Value],
        read: Iterable[BasicBlock],
    ) -> None:
        self._tree = tree
        self._type = type_
        self._ends = dict(definitions)
        self._missing: Value | None = None
        places = self._joins(frontiers) & self._needed(read)
        self._phis = {block: self._phi(block) for block in tree.order if block in places}
        for block, phi in self._phis.items():
            self._ends.setdefault(block, phi)
        for block, phi in self._phis.items():
            for source in tree.predecessors[block]:
                phi.add_incoming(self.at_end(source), source)

    def at_start(self, block: BasicBlock) -> Value:
        """The value at a block's start; one of those that `read` names."""
        if block in self._phis:
            return self._phis[block]
        above = self._tree.idom(block)
        return self._undefined() if above is None else self.at_end(above)

    def at_end(self, block: BasicBlock) -> Value:
        """The value at a block's end."""
        runner: BasicBlock | None = block
        while runner is not None and runner not in self._ends:
            runner = self._tree.idom(runner)
        return self._undefined() if runner is None else self._ends[runner]

    def _needed(self, read: Iterable[BasicBlock]) -> set[BasicBlock]:
        """The blocks at whose start the variable is still to be read."""
        found: set[BasicBlock] = set()
        work = list(read)
        while work:
            block = work.pop()
            if block not in found:
                found.add(block)
                work += [source for source in self._tree.predecessors[block] if source not in self._ends]
        return found

    def _joins(self, frontiers: Mapping[BasicBlock, list[BasicBlock]]) -> set[BasicBlock]:
        """The iterated dominance frontier of the definitions."""
        found: set[BasicBlock] = set()
        work = list(self._ends)
        while work:
            for block in frontiers[work.pop()]:
                if block not in found:
                    found.add(block)
                    work.append(block)
        return found

    def _phi(self, block: BasicBlock) -> Instruction:
        return block.insert(0, Instruction("phi", self._type, (), {"blocks": ()}))

    def _undefined(self) -> Value:
        if self._missing is None:
            self._missing = self._tree.flow.entry.insert(0, Instruction("undef", self._type))
        return self._missing
