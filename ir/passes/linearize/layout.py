"""Fifth step: the order in which the thread block runs the blocks, and the branches between them.

Control visits the targets of a divergent branch one after the other, in the order of the guards; targets
that have to wait are deferred and come before anything later in that order. Uniform branches stay. This is
partial control-flow linearisation (Moll, Hack: Partial Control-Flow Linearization, PLDI 2018), with guards
in place of masks, and with branches that skip what no active lane runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import VOID
from qgpu.ir.core.values import TRUE
from qgpu.ir.passes.linearize.guards import Guards
from qgpu.ir.passes.linearize.normalise import is_barrier
from qgpu.ir.passes.linearize.state import LoopRegion, State, replace_terminator, value_with_polarity


@dataclass(eq=False)
class Check:
    """A block `vote` in front of `block` in which lanes vote whether its guard holds in any of them.

    `deferred` are the blocks that wait when control comes there.
    """

    block: BasicBlock
    vote: BasicBlock
    deferred: set[BasicBlock] = field(default_factory=set)


class Layout:
    """Linearises the control flow of a function whose guards are known."""

    def __init__(self, state: State, guards: Guards, skip_limit: int) -> None:
        self.state = state
        self.guards = guards
        self.skip_limit = skip_limit
        self.number = guards.number
        self.deferred: dict[BasicBlock, set[BasicBlock]] = {block: set() for block in guards.order}
        self.checks: dict[BasicBlock, Check] = {}
        self.checked: set[BasicBlock] = set()
        self.order: list[BasicBlock] = []

    def run(self) -> None:
        """Rewrites terminators, sets guards and puts the blocks in order."""
        for block in self.guards.order:
            if block in self.checks:
                self._finish_check(self.checks[block])
            self.order.append(block)
            self._rewrite(block)
        for block in self.guards.order:
            block.guard = self.guards.guard[block]
        self.state.function.blocks = self.order

    def _rewrite(self, block: BasicBlock) -> None:
        terminator = block.terminator
        waiting = self.deferred[block] - {block}
        if terminator.op in ("ret", "trap"):
            return
        if terminator.op == "condbr" and block in self.state.divergent:
            self._split(block, waiting)
            return
        loop = self.state.clears.get(block)
        if loop is not None and block not in self.state.stays:
            self._rewrite_exit(block, waiting, loop)
            return
        for name in terminator.info.targets:
            target = terminator.attrs[name]
            if not self._is_back_edge(block, target):
                terminator.attrs[name] = self._enter({target} | waiting)

    def _rewrite_exit(self, block: BasicBlock, waiting: set[BasicBlock], loop: LoopRegion) -> None:
        """Goes on with the lanes that wait in a loop after others left; to the latch if there are none."""
        latch = block.terminator.attrs["target"]
        if waiting & loop.members:
            block.terminator.attrs["target"] = self._enter(waiting)
            return
        self.state.all_left.add(block)
        block.terminator.attrs["target"] = self._enter(waiting | {latch})

    def _is_back_edge(self, block: BasicBlock, target: BasicBlock) -> bool:
        return self.number[target] <= self.number[block]

    def _first(self, blocks: set[BasicBlock]) -> BasicBlock:
        return min(blocks, key=self.number.__getitem__)

    def _defer(self, blocks: set[BasicBlock]) -> BasicBlock:
        """The first of the blocks that wait; the others wait on, behind it."""
        first = self._first(blocks)
        self.deferred[first] |= blocks - {first}
        return first

    def _enter(self, blocks: set[BasicBlock]) -> BasicBlock:
        """Where to go for the first of the blocks that wait: itself, or a vote before it."""
        first = self._defer(blocks)
        votes = first in self.checks or self._needs_vote(first)
        if not votes or self._after(first, blocks - {first}) is None:
            return first
        if first not in self.checks:
            self.checks[first] = Check(first, self._new_block(f"{first.name}.check"))
        self.checks[first].deferred |= blocks - {first}
        self.checked.add(first)
        return self.checks[first].vote

    def _after(self, block: BasicBlock, waiting: set[BasicBlock]) -> BasicBlock | None:
        """Where control goes if nobody runs `block`: to what else waits, or to the latch of its loop.

        Lanes that have left a divergent loop wait behind its latch, so that it comes before what waits
        outside.
        """
        loop = self.state.innermost(block)
        while loop is not None and not loop.divergent:
            loop = loop.parent
        if loop is not None and loop.latch is not None and loop.latch is not block:
            waiting = waiting | {loop.latch}
        return self._first(waiting) if waiting else None

    def _skip_to(
        self,
        source: BasicBlock,
        block: BasicBlock,
        others: set[BasicBlock],
        waiting: set[BasicBlock],
        left: bool = True,
    ) -> BasicBlock:
        """Where `source` goes if nobody runs `block`; `waiting` are the blocks that lanes wait for already.

        `left`: lanes that `source` itself sends to the latch have left the loop.
        """
        after = self._after(block, others)
        assert after is not None
        if after in self.guards.latches and after not in (waiting if left else others):
            self.state.all_left.add(source)
        return self._enter(others | {after})

    def _finish_check(self, check: Check) -> None:
        """Ends the vote before a block, now that all that waits there is known."""
        vote, waiting = check.vote, check.deferred
        attrs = {"then": check.block, "else": self._skip_to(vote, check.block, waiting, waiting)}
        vote.append(Instruction("brany", operands=(TRUE,), attrs=attrs, loc=check.block.instructions[0].loc))
        self.guards.guard[vote] = self.guards.guard[check.block]
        vote.guard = self.guards.guard[vote]
        self.order.append(vote)

    def _split(self, block: BasicBlock, waiting: set[BasicBlock]) -> None:
        """Lets a divergent branch go on to its first target, or skip it if no lane takes it."""
        branch = block.terminator
        leaving = [target for target in block.successors if self._is_exit(block, target)]
        if leaving:
            self._leave(block, leaving[0], waiting)
            return
        targets = set(block.successors)
        first = self._first(waiting | targets)
        others = (waiting | targets) - {first}
        if self.guards.sources(first) != [block] or not self._worth_skipping(first):
            replace_terminator(block, "br", (), {"target": self._enter(others | {first})})
            return
        self._defer(others | {first})
        self.checked.add(first)
        after = self._skip_to(block, first, others, waiting, block in self.state.stays)
        self._branch_any(block, branch.attrs["then"] is first, first, after)

    def _is_exit(self, block: BasicBlock, target: BasicBlock) -> bool:
        """Whether a target is a block of its own for lanes that leave a loop."""
        clears_only = target in self.state.clears and target not in self.state.stays
        return clears_only and self.guards.sources(target) == [block]

    def _leave(self, block: BasicBlock, target: BasicBlock, waiting: set[BasicBlock]) -> None:
        """Runs the block for lanes that leave a loop, in two copies: one goes on with those that stay.

        The other is for the case that none stays; so the branch's own comparison decides, and later blocks
        need no vote.
        """
        [rest] = [other for other in block.successors if other is not target]
        then_stays = block.terminator.attrs["then"] is rest
        latch = target.terminator.attrs["target"]
        last = self._copy(target)
        self.deferred[target] |= waiting | {rest}
        self.state.some_stay.add(target)
        self.checked |= {target, rest} if self.guards.sources(rest) == [block] else {target}
        replace_terminator(last, "br", (), {"target": self._enter(waiting | {latch})})
        if latch not in waiting:
            self.state.all_left.add(last)
        self._branch_any(block, then_stays, target, last)

    def _copy(self, block: BasicBlock) -> BasicBlock:
        """A copy of a block that only sets slots, in front of it in the order."""
        copy = self._new_block(f"{block.name}.last")
        for instruction in block.instructions:
            copy.append(
                Instruction(instruction.op, VOID, instruction.operands, instruction.attrs, instruction.loc)
            )
        self.guards.guard[copy] = copy.guard = self.guards.guard[block]
        self.order.append(copy)
        return copy

    def _new_block(self, name: str) -> BasicBlock:
        block = BasicBlock(self.state.function.unique_block_name(name))
        block.parent = self.state.function
        self.state.function.blocks.append(block)
        return block

    def _branch_any(self, block: BasicBlock, polarity: bool, then: BasicBlock, otherwise: BasicBlock) -> None:
        """Ends a block by a vote on its branch's condition, or on the complement of that."""
        value = value_with_polarity(block, block.terminator.operands[0], polarity)
        replace_terminator(block, "brany", (value,), {"then": then, "else": otherwise})

    def _runs(self, block: BasicBlock) -> bool:
        """Whether a block is known to have an active lane whenever control reaches it."""
        while block not in self.checked:
            if block in self.guards.may_be_empty:
                return False
            if block not in self.guards.inherits:
                return True
            block = self.guards.inherits[block]
        return True

    def _region(self, block: BasicBlock) -> list[BasicBlock]:
        """The blocks that only run where `block` does: its subtree of the dominator tree."""
        first = self.number[block]
        rest = self.guards.order[first:]
        return [other for other in rest if self.guards.tree.dominates(block, other)]

    def _worth_skipping(self, block: BasicBlock) -> bool:
        """Whether a block has anything to skip."""
        return len(block.instructions) > 1 or block.terminator.op != "br" or len(self._region(block)) > 1

    def _needs_vote(self, block: BasicBlock) -> bool:
        """Whether lanes should vote before a block that a branch on its own condition could not skip.

        They have to where running it with no lane would be wrong (barriers, traps) or need not end (loops and
        uniform branches), and it pays where it is long.
        """
        if self._runs(block) or block in self.guards.latches:
            return False
        region = self._region(block)
        length = sum(len(other.instructions) for other in region)
        return length > self.skip_limit or any(map(self._needs_lanes, region))

    def _needs_lanes(self, block: BasicBlock) -> bool:
        """Whether a block must not be run with no active lane."""
        if any(map(is_barrier, block.instructions)) or block.terminator.op in ("trap", "brany"):
            return True
        uniform = block.terminator.op == "condbr" and block not in self.state.divergent
        return uniform or any(loop.header is block for loop in self.state.loops)


def mark_returned(state: State, guards: Guards) -> None:
    """Tells each guarded barrier which literals fail only in lanes that reach no barrier any more."""
    for block in guards.order:
        for barrier in filter(is_barrier, block.instructions):
            returned = tuple(
                index
                for index, literal in enumerate(block.guard)
                if not state.barrier_follows.intersection(guards.alternatives[literal])
            )
            if returned:
                barrier.attrs["returned"] = returned


def gather_sets(state: State) -> None:
    """Moves the assignments of a block to its end, the one of a slot in its own guard last.

    They assign SSA values, so that their order does not matter otherwise; but after a change of its guard a
    block does not act for the lanes that have gone.
    """
    for block in state.function.blocks:
        own = {literal.value for literal in block.guard}
        sets = [i for i in block.instructions if i.op == "set"]
        for instruction in sorted(sets, key=lambda i: i.operands[0] in own):
            instruction.detach()
            block.insert(len(block.instructions) - 1, instruction)
