"""SSA form anew after control flow has changed: phis where several definitions of one value meet."""

from __future__ import annotations

from collections.abc import Iterable

from qgpu.ir.analysis.dominators import DominatorTree, dominance_frontiers
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import VOID
from qgpu.ir.core.values import Use, Value


def restore_dominance(function: Function) -> bool:
    """Gives each use that its definition no longer dominates a phi that brings the value, or undef, to it.

    New paths on which the definition is missing have to be ones that no thread takes. Phis stand where the
    iterated dominance frontier of the definition and the blocks that still need the value meet (Cytron et
    al. 1991, pruned).
    """
    tree = DominatorTree(function)
    broken = [(value, uses) for value in function.instructions if (uses := _undominated(tree, value))]
    if not broken:
        return False
    frontiers = dominance_frontiers(function)
    for value, uses in broken:
        _Repair(tree, frontiers, value).run(uses)
    return True


def _undominated(tree: DominatorTree, value: Instruction) -> list[Use]:
    if value.type is VOID or not tree.reachable(value.block):
        return []
    return [
        use for use in value.uses if tree.reachable(_place(use)) and not tree.value_dominates_use(value, use)
    ]


def _place(use: Use) -> BasicBlock:
    """The block at whose end, or in which, a use reads."""
    if isinstance(use.user, BasicBlock):
        return use.user
    return use.user.attrs["blocks"][use.index] if use.user.op == "phi" else use.user.block


class _Repair:
    """The phis that bring one value to the uses it does not dominate."""

    def __init__(
        self, tree: DominatorTree, frontiers: dict[BasicBlock, list[BasicBlock]], value: Instruction
    ) -> None:
        self.tree = tree
        self.frontiers = frontiers
        self.value = value
        self.definitions: dict[BasicBlock, Value] = {value.block: value}

    def run(self, uses: list[Use]) -> None:
        needed = self._needed({_place(use) for use in uses})
        phis = [self._phi(block) for block in self._joins() if block in needed]
        for use in uses:
            use.replace(self._reaching(_place(use)))
        for phi in phis:
            for source in self.tree.predecessors[phi.block]:
                phi.add_incoming(self._reaching(source), source)

    def _needed(self, places: Iterable[BasicBlock]) -> set[BasicBlock]:
        """The blocks at whose start the value is still to be read."""
        found: set[BasicBlock] = set()
        work = list(places)
        while work:
            block = work.pop()
            if block in found or block is self.value.block:
                continue
            found.add(block)
            work += self.tree.predecessors[block]
        return found

    def _joins(self) -> list[BasicBlock]:
        """The iterated dominance frontier of the definition, in reverse postorder."""
        found: set[BasicBlock] = set()
        work = [self.value.block]
        while work:
            for block in self.frontiers[work.pop()]:
                if block not in found:
                    found.add(block)
                    work.append(block)
        return [block for block in self.tree.order if block in found]

    def _phi(self, block: BasicBlock) -> Instruction:
        phi = Instruction("phi", self.value.type, attrs={"blocks": ()}, loc=self.value.loc)
        block.insert(0, phi)
        self.definitions[block] = phi
        return phi

    def _reaching(self, block: BasicBlock) -> Value:
        """The definition that reaches a block's end; undef at the entry where none does."""
        runner: BasicBlock | None = block
        while runner is not None and runner not in self.definitions:
            runner = self.tree.idom(runner)
        if runner is not None:
            return self.definitions[runner]
        entry = self.tree.flow.entry
        missing = entry.insert(0, Instruction("undef", self.value.type))
        self.definitions[entry] = missing
        return missing
