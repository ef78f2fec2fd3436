"""A kernel's control flow graph: instructions, blocks, and what follows from the edges."""

from dataclasses import dataclass, field

from qgpu.ir import Location
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.names import Scope

BRANCH = "bra"
INDEXED_BRANCH = "brx"
CALL = "call"
ENDS = {"ret": "ret", "exit": "ret", "trap": "trap", "brkpt": "trap"}


@dataclass(eq=False)
class Site:
    """An instruction with the scope its names are read in and its place in the source."""

    instruction: ast.Instruction
    scope: Scope
    location: Location


@dataclass(eq=False)
class Block:
    """Straight-line instructions; a `guard` chooses the first of two different successors where it holds.

    Without successors the block ends the kernel as `end` says: `ret`, `trap` or `assert`. `closing` is the
    instruction that the last transfer of control comes from, None where control falls through.
    """

    name: str
    sites: list[Site] = field(default_factory=list)
    guard: ast.Guard | None = None
    successors: list["Block"] = field(default_factory=list)
    end: str = "ret"
    closing: Site | None = None


def reachable(first: Block) -> set[Block]:
    """The blocks control can reach from a block, itself among them."""
    reached, waiting = {first}, [first]
    while waiting:
        fresh = [block for block in waiting.pop().successors if block not in reached]
        reached.update(fresh)
        waiting += fresh
    return reached


def predecessors(blocks: list[Block]) -> dict[Block, list[Block]]:
    """For every block those that may go to it, each once, in block order."""
    result: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in blocks:
        for successor in dict.fromkeys(block.successors):
            result[successor].append(block)
    return result


def reverse_postorder(first: Block) -> list[Block]:
    """All blocks, each after those that dominate it."""
    order: list[Block] = []
    visited = {first}
    stack = [(first, iter(first.successors))]
    while stack:
        block, successors = stack[-1]
        successor = next((block for block in successors if block not in visited), None)
        if successor is None:
            order.append(block)
            stack.pop()
        else:
            visited.add(successor)
            stack.append((successor, iter(successor.successors)))
    return order[::-1]
