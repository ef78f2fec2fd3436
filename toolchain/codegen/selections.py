"""Selections: `c ? a : b` as two blocks under complementary guards, which together visit each lane once.

That is as cheap as the machine's select, which needs the condition in a register, and cheaper where a block
can compute what is selected, or where the result takes the place of one of the two.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.nodes import LUT_X, LUT_Y, Expression, Node, Operand, move
from qgpu.toolchain.codegen.places import count_users
from qgpu.toolchain.codegen.regions import Region, is_uniform
from qgpu.toolchain.codegen.registers import Register

_NEUTRAL_LOGIC = (LUT_X | LUT_Y, LUT_X ^ LUT_Y)
"""Functions of two operands that give the one where the other is 0."""


def sink_operations(lowered: Lowered) -> None:
    """Turn x + (c ? a : 0) into c ? x + a : x, which changes x in some lanes alone; likewise -, |, ^."""
    count_users(lowered)
    for region in lowered.regions:
        for node in list(region.nodes):
            sunk = next(_sunk(node), None)
            if sunk is not None:
                step, node.expression = sunk
                region.nodes.insert(region.nodes.index(node), step)
    count_users(lowered)


def _sunk(node: Node) -> Iterator[tuple[Node, Expression]]:
    """The operation on the selected operand alone, and the selection of its result."""
    if node.kind != "value" or node.uniform:
        return
    for expression, other in _readings_of(node.expression):
        selection = expression.x
        if not isinstance(selection, Node) or set(selection.users) != {node}:
            continue
        a, b, condition = selection.expression.operands
        if selection.expression.op != "select" or is_uniform(condition) or 0 not in (a, b):
            continue
        step = step_of(node, expression.with_operands(a if b == 0 else b, expression.y, expression.z))
        pair = (step, other) if b == 0 else (other, step)
        yield step, Expression("select", *pair, condition)


def _readings_of(expression: Expression) -> Iterator[tuple[Expression, Operand]]:
    """Equal expressions that give the second of the pair where X is 0."""
    x, y, z = expression.operands
    if expression.op == "mad" and isinstance(y, int) and y:
        yield expression, z
        if y == 1:
            yield expression.with_operands(z, 1, x), x
    if expression.op == "lop3" and expression.lut in _NEUTRAL_LOGIC and z == 0:
        yield expression, y
        yield expression.with_operands(y, x, 0), x


def prefers_overwriting(node: Node, computed: Container[Node]) -> bool:
    """Whether guarded blocks are better for a selection: they compute what it selects from, or are fewer."""
    expression = node.expression
    condition = expression.z
    if expression.op != "select" or node.kind != "value" or node.uniform:
        return False
    if not isinstance(condition, Node) or condition.uniform:
        return False
    owned = [_is_owned(value, node, computed) for value in (expression.x, expression.y)]
    cost = min(_cost(node, *pair) for pair in _pairs(expression))
    return cost <= 1 + sum(owned) and (any(owned) or cost == 1)


def _pairs(selection: Expression) -> list[tuple[Operand, Operand, bool]]:
    """A selection as (base, value over it, polarity of the condition)."""
    return [(selection.y, selection.x, True), (selection.x, selection.y, False)]


def _is_owned(value: Operand, node: Node, computed: Container[Node]) -> bool:
    if not isinstance(value, Node) or value.block is not node.block or value.predicate:
        return False
    return value.kind in ("value", "load") and set(value.users) == {node} and value not in computed


def _cost(node: Node, base: Operand, over: Operand, polarity: bool) -> int:
    """Blocks: none for a base that is in place already, one more for a load, which must not be guarded."""
    in_place = isinstance(base, Node) and base.data is node.data
    loaded = isinstance(over, Node) and over.access is not None and set(over.users) == {node}
    return (0 if in_place else 1) + 1 + loaded


def overwrite(node: Node, region: Region) -> list[Node]:
    """Turn a selection into a move under the condition, over a move under its opposite; returns the latter.

    The base is moved in all lanes if that block can load it: a load must fault where the source's does. The
    condition has a predicate from now on: it is no longer an operand, but what it is must not be overwritten.
    """
    expression = node.expression
    condition = expression.z
    assert isinstance(condition, Node) and not condition.uniform
    condition.predicate = condition.predicate or Register("predicate", "condition")
    base, over, polarity = min(_pairs(expression), key=lambda pair: _cost(node, *pair))
    first = step_of(node, move(base))
    first.uniform = False
    if not isinstance(base, Node) or base.access is None:
        first.guard = (*region.guard, (condition, not polarity))
    node.over = first
    node.expression = move(over)
    node.guard = (*region.guard, (condition, polarity))
    return [first]


def is_one_side(node: Node) -> bool:
    """Whether a node writes, in some lanes, over what another has selected for the rest."""
    return node.over is not None and all(condition is not node.over for condition, _ in node.guard or ())


def step_of(node: Node, expression: Expression) -> Node:
    """A new node of a block for a step towards another, not yet in its region."""
    uniform = all(is_uniform(operand) for operand in expression.operands)
    step = Node("value", expression, node.block, node.loc, uniform=uniform)
    step.data = Register("uniform" if uniform else "thread", "step")
    return step
