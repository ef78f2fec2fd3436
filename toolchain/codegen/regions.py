"""Regions: the basic blocks of a linearised function as lists of nodes under one guard."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from qgpu.ir import BasicBlock, Location
from qgpu.toolchain.codegen.nodes import Access, Arg, Expression, Node, NodeGuard, word
from qgpu.toolchain.codegen.registers import Register


@dataclass(eq=False)
class Region:
    """One basic block.

    Attributes:
        block: of the linearised function.
        guard: lanes that take part.
        nodes: in program order; the branch, if any, is the last.
        successors: regions that may follow: none (the end), one, or where the branch is taken and where not.
    """

    block: BasicBlock
    guard: NodeGuard = ()
    nodes: list[Node] = field(default_factory=list)
    successors: tuple[Region, ...] = ()

    @property
    def branch(self) -> Node | None:
        """The node that decides between two successors."""
        return self.nodes[-1] if self.nodes and self.nodes[-1].kind == "branch" else None

    def __repr__(self) -> str:
        return f"Region({self.block.name})"


class Emitter:
    """Creates nodes in a region; equal pure nodes without registers of their own are made once."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.loc: Location | None = None
        self._known: dict[tuple[Expression, bool], Node] = {}

    def add(self, kind: str, expression: Expression, uniform: bool, access: Access | None = None) -> Node:
        """Append a node."""
        node = Node(kind, expression, self.region.block, self.loc, access=access, uniform=uniform)
        node.order = len(self.region.nodes)
        self.region.nodes.append(node)
        return node

    def value(self, expression: Expression) -> Arg:
        """The result of a pure expression, uniform if its operands are."""
        expression = folded(expression)
        if isinstance(expression.moved, Node | Register | int):
            return expression.moved
        uniform = all(is_uniform(arg) for arg in expression.operands)
        key = (expression, uniform)
        if key not in self._known:
            self._known[key] = self.add("value", expression, uniform)
        return self._known[key]


def is_uniform(operand: object) -> bool:
    """Whether a scalar block can read an operand."""
    if isinstance(operand, Node):
        return operand.uniform
    return operand.kind == "uniform" if isinstance(operand, Register) else True


def folded(expression: Expression) -> Expression:
    """An equal expression with constant arithmetic done; only mad is of interest here."""
    x, y, z = expression.operands
    if expression.op != "mad":
        return expression
    if isinstance(x, int) and isinstance(y, int):
        if isinstance(z, int):
            return replace(expression, x=0, y=0, z=word(x * y + z))
        return replace(expression, x=word(x * y), y=1) if x * y else replace(expression, x=0, y=0)
    if isinstance(x, int) and x == 1 and z == 0:
        return replace(expression, x=y, y=1)
    return replace(expression, x=0, y=0) if 0 in (x, y) else expression
