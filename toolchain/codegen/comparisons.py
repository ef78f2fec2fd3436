"""Comparisons: two of which both, or one, must hold, as one.

x and y are both different from 0 if the smaller of them is, and one of them if their bits are; 0 <= x < n
is an unsigned comparison where n is not negative.
"""

from __future__ import annotations

from dataclasses import replace

from qgpu.toolchain.codegen.arithmetic import extreme, logic
from qgpu.toolchain.codegen.conditions import AND, DUAL, owned
from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.nodes import EQUAL, GREATER, LESS, Expression, Node, Operand, signed
from qgpu.toolchain.codegen.places import count_users
from qgpu.toolchain.codegen.regions import is_uniform
from qgpu.toolchain.codegen.selections import step_of


def join_tests(lowered: Lowered) -> None:
    """Turn two comparisons of which both, or one, must hold into one, where nothing else uses them."""
    for region in lowered.regions:
        for node in list(region.nodes):
            expression = node.expression
            joined = expression.op == "lop3" and expression.lut in DUAL and expression.z == 0
            pair = expression.operands[:2]
            if not joined or node.kind != "value" or not all(_is_own_test(operand, node) for operand in pair):
                continue
            a, b = (operand.expression for operand in pair if isinstance(operand, Node))
            conjunction = expression.lut == AND
            found = _of_zeros(node, a, b, conjunction) or _of_range(node, a, b, conjunction, lowered)
            if found is not None:
                steps, node.expression = found
                position = region.nodes.index(node)
                region.nodes[position:position] = steps
    count_users(lowered)


def _is_own_test(operand: Operand, node: Node) -> bool:
    return (
        isinstance(operand, Node)
        and owned(operand, node)
        and operand.kind == "value"
        and operand.expression.op == "cmp"
        and operand.block is node.block
        and not (operand.guard or operand.over)
    )


def _of_zeros(
    node: Node, a: Expression, b: Expression, conjunction: bool
) -> tuple[list[Node], Expression] | None:
    """x != 0 and y != 0 by the smaller of them, x != 0 or y != 0 by the bits of both; and their negations."""
    if a.y != 0 or b.y != 0 or a.relation != b.relation or a.relation not in (EQUAL, LESS | GREATER):
        return None
    both = conjunction is (a.relation != EQUAL)
    joined = step_of(node, extreme("min", a.x, b.x, signed=False) if both else logic("or", a.x, b.x))
    return [joined], Expression("cmp", joined, 0, relation=a.relation)


def _of_range(
    node: Node, a: Expression, b: Expression, conjunction: bool, lowered: Lowered
) -> tuple[list[Node], Expression] | None:
    """x >= 0 and x < n, signed, or the negation: unsigned, against the larger of n and 0."""
    inside = a if conjunction else replace(a, relation=a.relation ^ 7)
    below = b if conjunction else replace(b, relation=b.relation ^ 7)
    if not _is_from_zero(inside):
        inside, below = below, inside
    if not _is_from_zero(inside) or not (below.signed and below.relation == LESS and below.x is inside.x):
        return None
    relation = LESS if conjunction else GREATER | EQUAL
    limit, steps, name = below.y, [], lowered.clamped(below.y, is_signed=True)
    if isinstance(limit, int):
        limit = max(0, signed(limit))
    elif name:
        limit = lowered.special(f"limit.{name}")
    elif is_uniform(limit):
        steps = [step_of(node, extreme("max", limit, 0, signed=True))]
        limit = steps[0]
    else:
        return None
    return steps, Expression("cmp", below.x, limit, relation=relation)


def _is_from_zero(test: Expression) -> bool:
    """Whether a comparison says that X, signed, is not negative."""
    if not test.signed:
        return False
    return (test.relation, test.y) in ((GREATER | EQUAL, 0), (GREATER, 0xFFFFFFFF))
