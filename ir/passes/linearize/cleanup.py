"""Last step: branches that need no vote, jumps to jumps, and blocks that can be one."""

from __future__ import annotations

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Value
from qgpu.ir.passes.dead_code import merge_blocks, remove_dead_instructions, remove_unreachable_blocks
from qgpu.ir.passes.linearize.normalise import drop_choiceless_branch
from qgpu.ir.passes.linearize.state import LoopRegion, State, replace_terminator


def clean_up(state: State) -> None:
    """Simplifies the control flow that the layout left."""
    function = state.function
    for loop in state.loops:
        if loop.divergent:
            vote_once(state, loop)
    remove_unreachable_blocks(function)
    thread_jumps(function)
    for block in function.blocks:
        drop_choiceless_branch(block)
    remove_unreachable_blocks(function)
    merge_blocks(function)
    for block in function.blocks:
        forward_sets(block)
    remove_dead_instructions(function)


def vote_once(state: State, loop: LoopRegion) -> None:
    """Spares a divergent loop votes whose result is known.

    A branch that skips to the latch because all lanes have left leaves the loop at once. The latch need not
    vote if each way to it comes from a vote since which no lane has left, nor if its only way in is the
    block that updates `active`: that block's own comparison is the vote.
    """
    function, latch = state.function, loop.latch
    if latch is None or latch.terminator.op != "brany" or latch not in function.blocks:
        return
    after = latch.terminator.attrs["else"]
    for source in state.all_left:
        if latch in source.successors:
            source.terminator.replace_successor(latch, after)
            forget_active(source, loop)
    sources = [block for block in function.blocks if latch in block.successors]
    if len(sources) == 1 and fuse_latch(sources[0], latch):
        return
    if latch in populated_blocks(state, loop):
        replace_terminator(latch, "br", (), {"target": loop.header})


def forget_active(block: BasicBlock, loop: LoopRegion) -> None:
    """Drops the assignment of `active` on a way out of the loop that all lanes take: nobody reads it."""
    if block.terminator.op != "br":
        return
    for update in [i for i in block.instructions if i.op == "set" and i.operands[0] is loop.active]:
        update.erase()


def fuse_latch(source: BasicBlock, latch: BasicBlock) -> bool:
    """Lets the block before a latch go round the loop itself, where all lanes in the loop run that block."""
    update = updates(source, latch)
    if source.terminator.op != "br" or source.guard != latch.guard or update is None:
        return False
    replace_terminator(source, "brany", (update,), latch.terminator.attrs)
    return True


def updates(block: BasicBlock, latch: BasicBlock) -> Value | None:
    """The value a block gives to the slot that its and the latch's guard end with, by its last assignment."""
    slot = latch.guard[-1].value
    found = [i.operands[1] for i in block.instructions if i.op == "set" and i.operands[0] is slot]
    return found[-1] if found else None


def populated_blocks(state: State, loop: LoopRegion) -> set[BasicBlock]:
    """The blocks of a loop that control only reaches while a lane is active in the loop."""
    predecessors = state.function.predecessors()
    found = {block for block in state.function.blocks if block in loop.members}
    changed = True
    while changed:
        kept = {
            block
            for block in found
            if block is loop.header
            or all(stays_populated(state, s, block, loop, found) for s in predecessors[block])
        }
        changed = kept != found
        found = kept
    return found


def stays_populated(
    state: State, source: BasicBlock, block: BasicBlock, loop: LoopRegion, populated: set[BasicBlock]
) -> bool:
    """Whether a lane is active in the loop after an edge: it is a vote for that, or nobody left before."""
    branch = source.terminator
    last = [i.operands[1] for i in source.instructions if i.op == "set" and i.operands[0] is loop.active]
    if branch.op == "brany" and branch.attrs["then"] is block and branch.attrs["else"] is not block:
        votes_for_active = any(literal.value is loop.active for literal in block.guard)
        return votes_for_active and (not last or last[-1] is branch.operands[0])
    return source in state.some_stay or (source in populated and not last)


def forward_sets(block: BasicBlock) -> None:
    """Reads what a block has just assigned from the value itself; the last assignment of a slot stays."""
    assigned: dict[Value, Instruction] = {}
    for instruction in list(block.instructions):
        last = assigned.get(instruction.operands[0]) if instruction.op in ("get", "set") else None
        if instruction.op == "get" and last is not None:
            instruction.replace_all_uses_with(last.operands[1])
            instruction.erase()
        elif instruction.op == "set":
            assigned[instruction.operands[0]] = instruction
            if last is not None:
                last.erase()


def thread_jumps(function: Function) -> None:
    """Sends edges to blocks that only jump on to where these jump."""
    for block in function.blocks:
        for name in block.terminator.info.targets:
            target = block.terminator.attrs[name]
            seen: set[BasicBlock] = set()
            while len(target.instructions) == 1 and target.terminator.op == "br" and target not in seen:
                seen.add(target)
                target = target.terminator.attrs["target"]
            block.terminator.attrs[name] = target
