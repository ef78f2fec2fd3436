"""Fourth step: the guard of every block, a conjunction of literals that tells which lanes run it.

Guards follow from the forward edges, those that are no back edges. A block with one predecessor adds the
literal of the edge. A join that every lane of its immediate dominator reaches has the dominator's guard.
For other joins (an `||` of two conditions, a goto) no conjunction of branch conditions exists: a slot says
who goes there, set by the branching blocks.
"""

from __future__ import annotations

from qgpu.ir.analysis.dominators import DominatorTree
from qgpu.ir.analysis.graph import Tree, directed_graph, dominator_tree, nodes_reaching, postorder
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.types import I1
from qgpu.ir.core.values import FALSE, TRUE, Literal, Value
from qgpu.ir.passes.linearize.state import Guard, LoopRegion, State, append_set, value_with_polarity

END = "end"


class Guards:
    """Guards of all blocks, and what else the layout has to know about them.

    Attributes:
        flow: the graph of the forward edges, each block's in the order of `_last_first`.
        order: all blocks, dominators first and each dominator's subtree in one piece, along forward edges.
        guard: the guard of each block.
        may_be_empty: the blocks that control may reach although no lane runs them, for a reason of their own.
        inherits: for other blocks, the block which has a lane that runs it if and only if this one has.
        alternatives: for a guard's literal, the blocks of the source where lanes go in which it does
        not hold.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.tree = DominatorTree(state.function)
        self.headers = {loop.header: loop for loop in state.loops if loop.divergent}
        self.latches = {loop.latch: loop for loop in state.loops if loop.latch}
        self.arriving = self._dominators_of_arrivals()
        self.flow = directed_graph({block: self._last_first(block) for block in self.tree.order})
        self.order = self._dominance_order()
        self.number = {block: index for index, block in enumerate(self.order)}
        self.post = self._post_dominators()
        self.guard: dict[BasicBlock, Guard] = {}
        self.entry_guard: dict[LoopRegion, Guard] = {}
        self.may_be_empty: set[BasicBlock] = set()
        self.inherits: dict[BasicBlock, BasicBlock] = {}
        self.alternatives: dict[Literal, list[BasicBlock]] = {}
        for block in self.order:
            self.guard[block] = self._guard(block)

    def forward(self, block: BasicBlock) -> list[BasicBlock]:
        """The successors of a block without back edges."""
        return [other for other in block.successors if not self.tree.dominates(other, block)]

    def sources(self, block: BasicBlock) -> list[BasicBlock]:
        """The predecessors of a block without back edges."""
        return [other for other in self.tree.predecessors[block] if not self.tree.dominates(block, other)]

    def _dominance_order(self) -> list[BasicBlock]:
        """Preorder of the dominator tree, siblings in reverse postorder of the forward edges; the `ret` last.

        Where one side of a branch traps or never ends, nothing joins both, and the block that returns would
        lie in the other side; but it ends the kernel for all lanes, so what is left has to come before it.
        """
        rank = {block: -index for index, block in enumerate(postorder(self.flow, self.state.function.entry))}
        result: list[BasicBlock] = []
        stack = [self.state.function.entry]
        while stack:
            block = stack.pop()
            result.append(block)
            stack += sorted(self.tree.children(block), key=rank.__getitem__, reverse=True)
        return sorted(result, key=_returns)

    def _dominators_of_arrivals(self) -> set[BasicBlock]:
        """The blocks that all ways to some `arrive` run through."""
        found: set[BasicBlock] = set()
        for block in self.tree.order:
            runner: BasicBlock | None = block if any(i.op == "arrive" for i in block.instructions) else None
            while runner is not None and runner not in found:
                found.add(runner)
                runner = self.tree.idom(runner)
        return found

    def _last_first(self, block: BasicBlock) -> list[BasicBlock]:
        """Successors in the order of a walk that shall put loop exits last and `then` before `else`.

        Blocks in which lanes cease to be active come first, before what the lanes that stay run, and blocks
        that arrive at a barrier before those that may wait there.
        """
        loop, state = self.state.innermost(block), self.state
        following = self.forward(block)
        following.reverse()

        def rank(other: BasicBlock) -> int:
            if loop is not None and other not in loop.members:
                return 0
            if other in self.arriving:
                return 3
            return 2 if other in state.clears and other not in state.stays else 1

        return sorted(following, key=rank)

    def _post_dominators(self) -> Tree:
        """Post-dominators along forward edges, of the blocks that do not all end in a trap.

        The latch of a uniform loop counts as going to the loop's exits: in the end its lanes do.
        """
        targets: dict[BasicBlock | str, list[BasicBlock | str]] = {}
        exits = {loop.header: _exits(loop) for loop in self.state.loops}
        for block in self.order:
            targets[block] = [*self.forward(block)]
            for other in set(block.successors).difference(self.forward(block)):
                targets[block] += exits.get(other, [])
            if not targets[block] and block.terminator.op != "trap":
                targets[block].append(END)
        targets[END] = []
        return dominator_tree(directed_graph(targets).reverse(), END)

    def _guard(self, block: BasicBlock) -> Guard:
        guard = self._entry(block)
        loop = self.headers.get(block)
        if loop is None:
            return guard
        assert loop.active is not None
        self.entry_guard[loop] = self._guard_after(loop, guard)
        active = Literal(loop.active)
        self._note_alternatives(active, _left_to(loop))
        return guard if active in guard else (*guard, active)

    def _guard_after(self, loop: LoopRegion, guard: Guard) -> Guard:
        """The guard of the lanes that entered a loop, once they have left it."""
        for (source, before), literal in self.state.entered_with.items():
            if literal.value is loop.active:
                condition = Literal(source.terminator.operands[0], source.terminator.attrs["then"] is before)
                self._note_alternatives(condition, [t for t in source.successors if t is not before])
                return (*self.guard[source], condition)
        return guard

    def _note_alternatives(self, literal: Literal, blocks: list[BasicBlock]) -> None:
        self.alternatives.setdefault(literal, []).extend(self.state.sources_of(blocks))

    def _entry(self, block: BasicBlock) -> Guard:
        """The guard of a block by the edges into it."""
        sources = self.sources(block)
        if not sources:
            return ()
        if len(sources) == 1:
            return self._single(sources[0], block)
        dominator = self.tree.idom(block)
        assert dominator is not None
        if self._post_dominates(block, dominator):
            self._inherit(block, dominator, self.order[self.number[dominator] : self.number[block]])
            return self.guard[dominator]
        incoming = [self._single(source, block) for source in sources]
        self.may_be_empty.add(block)
        if all(set(guard) == set(incoming[0]) for guard in incoming):
            return incoming[0]
        return (*self.guard[dominator], self._slot_literal(block, dominator, sources))

    def _single(self, source: BasicBlock, block: BasicBlock) -> Guard:
        """The guard of the lanes that take one edge."""
        if source in self.latches:
            self.inherits[block] = self.latches[source].header
            return self.entry_guard[self.latches[source]]
        literal = self.state.literal(source, block)
        if literal is None:
            self._inherit(block, source, [source])
            return self.guard[source]
        self.may_be_empty.add(block)
        self._note_alternatives(literal, [t for t in source.successors if t is not block])
        return (*self.guard[source], literal)

    def _post_dominates(self, block: BasicBlock, other: BasicBlock) -> bool:
        return block in self.post and other in self.post and self.post.is_ancestor(block, other)

    def _inherit(self, block: BasicBlock, first: BasicBlock, between: list[BasicBlock]) -> None:
        """Notes that a block runs if `first` does, but for lanes that leave a loop of both in between."""
        clears = self.state.clears
        if any(other in clears and block in clears[other].members for other in between):
            self.may_be_empty.add(block)
        else:
            self.inherits[block] = first

    def _slot_literal(self, block: BasicBlock, dominator: BasicBlock, sources: list[BasicBlock]) -> Literal:
        """A slot that is set at the dominator to say no, and by each branch into the block to its condition.

        Its polarity is that of the dominator's own branch, if that goes to the block too.
        """
        own = self._edge_value(dominator, block) if dominator in sources else None
        polarity = own is None or own.polarity
        slot = self.state.new_slot(I1, f"{block.name}.{'in' if polarity else 'out'}")
        append_set(dominator, slot, own.value if own else FALSE)
        for source in sources:
            if source is not dominator:
                append_set(source, slot, self._taken(source, block, polarity))
        literal = Literal(slot, polarity)
        self._note_alternatives(literal, self._bypasses(block, dominator))
        return literal

    def _edge_value(self, source: BasicBlock, block: BasicBlock) -> Literal | None:
        """The condition of an edge, also of a uniform branch's; None where the source goes nowhere else."""
        if source.terminator.op != "condbr":
            return None
        return Literal(source.terminator.operands[0], source.terminator.attrs["then"] is block)

    def _taken(self, source: BasicBlock, block: BasicBlock, polarity: bool) -> Value:
        """The i1 that equals `polarity` in the lanes that take an edge."""
        edge = self._edge_value(source, block)
        if edge is None:
            return TRUE if polarity else FALSE
        return value_with_polarity(source, edge.value, edge.polarity == polarity)

    def _bypasses(self, block: BasicBlock, dominator: BasicBlock) -> list[BasicBlock]:
        """Where lanes go that pass the dominator and leave the ways to the block."""
        toward = {dominator} | nodes_reaching(self.flow, block)
        inside = [
            b for b in self.order if b in toward and self.tree.dominates(dominator, b) and b is not block
        ]
        return [other for b in inside for other in self.forward(b) if other not in toward]


def _exits(loop: LoopRegion) -> list[BasicBlock]:
    return [other for block in loop.members for other in block.successors if other not in loop.members]


def _left_to(loop: LoopRegion) -> list[BasicBlock]:
    """The block behind a divergent loop."""
    assert loop.latch is not None
    return [other for other in loop.latch.successors if other is not loop.header]


def _returns(block: BasicBlock) -> bool:
    return block.terminator.op == "ret"
