"""Loops with several entries get one: a block that sends threads on to where they came for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.analysis.cfg import reverse_postorder
from qgpu.ir.analysis.graph import strongly_connected_components
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I1, I32, Type
from qgpu.ir.core.values import Value
from qgpu.ir.passes.dead_code import remove_unreachable_blocks
from qgpu.ir.passes.manager import Pass
from qgpu.ir.passes.ssa_repair import restore_dominance


@dataclass(frozen=True)
class MakeReducible(Pass):
    """Makes every cycle a natural loop, whose header dominates it.

    Contract: each thread runs what it ran before. The entries of a cycle that has several are reached through
    a new block, the loop's header, whose phi `entry` tells which of them is meant (Erosa, Hendren: Taming
    Control Flow, ICCL 1994, use such variables for goto). No block is copied, so that code grows by a few
    branches for each such cycle.
    """

    name: ClassVar[str] = "make-reducible"

    def run(self, function: Function) -> bool:
        changed = remove_unreachable_blocks(function)
        dispatched = False
        regions = [reverse_postorder(function)]
        while regions:
            components = strongly_connected_components(regions.pop(), _successors)
            for component in [found for found in components if len(found) > 1]:
                entries = _entries(function, component)
                if len(entries) > 1:
                    _Dispatch(function, component, entries).run()
                    dispatched = True
                    regions.append(component)
                else:
                    regions.append([block for block in component if block is not entries[0]])
        if dispatched:
            restore_dominance(function)
        return changed or dispatched


def _successors(block: BasicBlock) -> tuple[BasicBlock, ...]:
    return block.successors


def _entries(function: Function, component: list[BasicBlock]) -> list[BasicBlock]:
    """The blocks of a component that other blocks go to."""
    inside, predecessors = set(component), function.predecessors()
    return [block for block in component if not inside.issuperset(predecessors[block])]


@dataclass(frozen=True)
class _Edge:
    """A way into an entry: it came from `source`, and now goes to the dispatching block from `block`."""

    source: BasicBlock
    block: BasicBlock
    entry: BasicBlock


class _Dispatch:
    """A new block that leads threads on to the entries of a component.

    It takes the edges from outside, and those that go back; edges to a later block of the component, which is
    in reverse postorder, stay. The first block is an entry that only edges taken go to, so that what is left
    of the component's cycles is smaller.
    """

    def __init__(self, function: Function, component: list[BasicBlock], entries: list[BasicBlock]) -> None:
        self.function = function
        self.number = {block: index for index, block in enumerate(component)}
        self.entries = entries
        self.head = function.add_block("dispatch", before=entries[0])
        self.edges: list[_Edge] = []
        self.missing: dict[Type, Value] = {}

    def run(self) -> None:
        """Rewrites the edges and the entries' phis."""
        for source in [block for block in self.function.blocks if block is not self.head]:
            self._redirect(source)
        self._carry_phis(self._branch())

    def _redirect(self, source: BasicBlock) -> None:
        """Makes edges of a block go to the new one; a second one gets a block for it."""
        taken = [target for target in source.successors if self._takes(source, target)]
        for position, entry in enumerate(taken):
            block = source
            if position:
                block = self.function.add_block(f"{source.name}.{entry.name}", before=self.head)
                Builder(block, source.terminator.loc).br(self.head)
            source.terminator.replace_successor(entry, block if position else self.head)
            self.edges.append(_Edge(source, block, entry))

    def _takes(self, source: BasicBlock, target: BasicBlock) -> bool:
        forward = source in self.number and self.number[source] < self.number.get(target, 0)
        return target in self.entries and not forward

    def _branch(self) -> dict[BasicBlock, BasicBlock]:
        """The phi that tells the entries apart, and a chain of branches on it; which of them goes to each."""
        entries = self.entries
        two = len(entries) == 2
        selector = self.head.append(_empty_phi(I1 if two else I32, "entry"))
        for edge in self.edges:
            number = entries.index(edge.entry)
            selector.add_incoming(constant(I1, number == 0) if two else constant(I32, number), edge.block)
        builder, sources = Builder(self.head), {}
        for number, entry in enumerate(entries[:-2]):
            following = self.function.add_block(self.head.name, before=entries[0])
            builder.condbr(builder.icmp("eq", selector, constant(I32, number)), entry, following)
            sources[entry] = builder.block
            builder.at_end(following)
        last = selector if two else builder.icmp("eq", selector, constant(I32, len(entries) - 2))
        builder.condbr(last, *entries[-2:])
        return sources | dict.fromkeys(entries[-2:], builder.block)

    def _carry_phis(self, sources: dict[BasicBlock, BasicBlock]) -> None:
        """Lets the new block choose between the values of the edges it took; other entries' bring nothing."""
        for entry in self.entries:
            for phi in entry.phis:
                carried = self._carry(phi)
                phi.add_incoming(carried, sources[entry])
                if len(phi.operands) == 1:
                    phi.replace_all_uses_with(carried)
                    phi.erase()

    def _carry(self, phi: Instruction) -> Instruction:
        """Moves an entry's values for the edges that were taken to a phi of the new block."""
        values = dict(zip(phi.attrs["blocks"], phi.operands, strict=True))
        carried = self.head.insert(len(self.head.phis), _empty_phi(phi.type, phi.name))
        for edge in self.edges:
            mine = edge.entry is phi.block
            carried.add_incoming(values[edge.source] if mine else self._undef(phi.type), edge.block)
            if mine:
                phi.remove_incoming(edge.source)
        return carried

    def _undef(self, type_: Type) -> Value:
        if type_ not in self.missing:
            self.missing[type_] = self.function.entry.insert(0, Instruction("undef", type_))
        return self.missing[type_]


def _empty_phi(type_: Type, name: str) -> Instruction:
    return Instruction("phi", type_, attrs={"blocks": ()}, name=name)
