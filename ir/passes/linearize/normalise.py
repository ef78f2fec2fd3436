"""First step: one exit, no branch that does not choose, traps and conditions as the other steps expect."""

from __future__ import annotations

from qgpu.ir.analysis.cfg import control_flow
from qgpu.ir.analysis.dominators import DominatorTree
from qgpu.ir.analysis.graph import nodes_reaching
from qgpu.ir.analysis.loops import LoopInfo
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import INVERSE_PREDICATE
from qgpu.ir.core.values import Value
from qgpu.ir.passes.dead_code import remove_unreachable_blocks
from qgpu.ir.passes.simplify.control_flow import skip_empty_block


def normalise(function: Function) -> None:
    """Merges all returns, gives each branch to a trap a trap of its own, drops branches with one target.

    Blocks that only jump go, so that a branch to the function's end is seen as one.
    """
    remove_unreachable_blocks(function)
    merge_returns(function)
    for block in list(function.blocks):
        skip_empty_block(function, block)
    for block in function.blocks:
        drop_choiceless_branch(block)
    split_traps(function)
    predecessors = function.predecessors()
    loops = LoopInfo(function, DominatorTree(function))
    for block in function.blocks:
        loop = loops.innermost(block)
        prefer_positive_side(block, predecessors, set(loop.blocks) if loop else None)


def drop_choiceless_branch(block: BasicBlock) -> None:
    """A conditional branch with one target becomes unconditional; phis list the edge once already."""
    branch = block.terminator
    if branch.op == "condbr" and len(block.successors) == 1:
        branch.operands = ()
        block.instructions[-1] = Instruction("br", attrs={"target": branch.attrs["then"]}, loc=branch.loc)
        block.instructions[-1].parent = block


def merge_returns(function: Function) -> None:
    """Leaves one block that returns, with nothing else in it: the place where all lanes meet again."""
    returning = [block for block in function.blocks if block.terminator.op == "ret"]
    if len(returning) == 1 and len(returning[0].instructions) == 1:
        return
    if not returning:
        return
    exit_block = function.add_block("exit")
    exit_block.append(Instruction("ret", loc=returning[-1].terminator.loc))
    for block in returning:
        loc = block.terminator.loc
        block.terminator.erase()
        block.append(Instruction("br", attrs={"target": exit_block}, loc=loc))


def split_traps(function: Function) -> None:
    """Copies blocks that only trap, one for each predecessor, so that a branch's condition guards each."""
    for block, sources in function.predecessors().items():
        if block.terminator.op != "trap" or len(block.instructions) > 1:
            continue
        for source in sources[1:]:
            copy = function.add_block(block.name)
            copy.append(Instruction("trap", attrs=block.terminator.attrs, loc=block.terminator.loc))
            source.terminator.replace_successor(block, copy)


def prefer_positive_side(
    block: BasicBlock, predecessors: dict[BasicBlock, list[BasicBlock]], loop: set[BasicBlock] | None
) -> None:
    """Inverts a condition that only this branch uses where the side to be skipped is the negative one.

    That side is the rest of the loop's body where the branch leaves the loop, else the one with no other
    way in.
    """
    branch = block.terminator
    if branch.op != "condbr" or not can_invert(branch.operands[0]):
        return
    then, otherwise = branch.attrs["then"], branch.attrs["else"]
    leaves = loop is not None and (then in loop) != (otherwise in loop)
    negative = (
        then not in loop if leaves and loop else len(predecessors[then]) > 1 == len(predecessors[otherwise])
    )
    if negative:
        invert(branch.operands[0])
        branch.attrs.update({"then": otherwise, "else": then})


COMPLEMENT = {"and": "or", "or": "and"}


def can_invert(condition: Value) -> bool:
    """Whether an i1 is a comparison, or an `and` or `or` of comparisons, that nothing else uses."""
    if not isinstance(condition, Instruction) or len(condition.uses) != 1:
        return False
    return condition.op == "icmp" or (condition.op in COMPLEMENT and all(map(can_invert, condition.operands)))


def invert(condition: Value) -> None:
    """Turns a condition into its complement, by De Morgan's laws."""
    assert isinstance(condition, Instruction)
    if condition.op == "icmp":
        condition.attrs["pred"] = INVERSE_PREDICATE[condition.attrs["pred"]]
        return
    condition.op = COMPLEMENT[condition.op]
    for operand in condition.operands:
        invert(operand)


def is_barrier(instruction: Instruction) -> bool:
    """Whether all threads of the thread block wait for each other at an instruction."""
    return instruction.op == "barrier_reduce" or (
        instruction.op == "barrier" and "count" not in instruction.attrs
    )


def blocks_before_barriers(function: Function) -> set[BasicBlock]:
    """The blocks that hold a barrier of the thread block or from which one can be reached."""
    graph = control_flow(function).graph
    found: set[BasicBlock] = set()
    for block in function.blocks:
        if block not in found and any(map(is_barrier, block.instructions)):
            found |= nodes_reaching(graph, block)
    return found
