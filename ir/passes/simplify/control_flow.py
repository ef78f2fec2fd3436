"""Control flow: branches that are decided, phis of one value, empty blocks, blocks that can be one."""

from __future__ import annotations

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.dead_code import merge_blocks, remove_unreachable_blocks
from qgpu.ir.passes.simplify.rules import is_op


def simplify_control_flow(function: Function) -> bool:
    """Applies all rules once; True where one did."""
    changed = [simplify_branch(block) for block in function.blocks]
    changed.append(remove_unreachable_blocks(function))
    changed += [skip_empty_block(function, block) for block in list(function.blocks)]
    changed.append(merge_blocks(function))
    return any(changed)


def simplify_phi(phi: Instruction) -> Value | None:
    """The only value a phi can have besides its own, if there is just one."""
    others = list(dict.fromkeys(value for value in phi.operands if value is not phi))
    return others[0] if len(others) == 1 else None


def simplify_branch(block: BasicBlock) -> bool:
    """Decides a branch on a constant, and turns one on a complement round."""
    branch = block.terminator
    if branch.op != "condbr":
        return False
    condition, then, otherwise = branch.operands[0], branch.attrs["then"], branch.attrs["else"]
    if then is otherwise:
        go_to(block, then)
        return True
    if isinstance(condition, Constant):
        taken, other = (then, otherwise) if condition.value else (otherwise, then)
        for phi in other.phis:
            phi.remove_incoming(block)
        go_to(block, taken)
        return True
    inverted = is_op(condition, "not")
    if inverted:
        branch.operands = (inverted.operands[0],)
        branch.attrs.update({"then": otherwise, "else": then})
    return inverted is not None


def go_to(block: BasicBlock, target: BasicBlock) -> None:
    """Ends a block in an unconditional branch instead of the one it has."""
    loc = block.terminator.loc
    block.terminator.erase()
    block.append(Instruction("br", attrs={"target": target}, loc=loc))


def skip_empty_block(function: Function, block: BasicBlock) -> bool:
    """Lets the predecessors of a block that only jumps go to its target, where the target's phis allow it."""
    target = block.terminator.attrs.get("target")
    if len(block.instructions) != 1 or target is None or target is block or block is function.entry:
        return False
    predecessors = function.predecessors()
    if target.phis and set(predecessors[block]) & set(predecessors[target]):
        return False
    if not predecessors[block]:
        return False
    for phi in target.phis:
        value = next(value for value, source in phi.incoming if source is block)
        phi.remove_incoming(block)
        for source in predecessors[block]:
            phi.add_incoming(value, source)
    for source in predecessors[block]:
        source.terminator.replace_successor(block, target)
    block.terminator.erase()
    function.blocks.remove(block)
    block.parent = None
    return True
