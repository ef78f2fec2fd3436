"""Orders over the control-flow graph of a function."""

from __future__ import annotations

from qgpu.ir.analysis import graph
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function


def postorder(function: Function) -> list[BasicBlock]:
    """The blocks reachable from the entry, each after those a depth-first walk reaches from it."""
    return graph.postorder(function.entry, lambda block: block.successors)


def reverse_postorder(function: Function) -> list[BasicBlock]:
    """The reachable blocks, each before its successors except along back edges."""
    return postorder(function)[::-1]


def reachable_blocks(function: Function) -> list[BasicBlock]:
    """The blocks reachable from the entry, in block order."""
    reached = set(postorder(function))
    return [block for block in function.blocks if block in reached]
