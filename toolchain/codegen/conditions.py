"""Conditions: comparisons turned round and joined so that they take few blocks.

A guard reads a predicate in both polarities for nothing, but `not` takes a block. So a condition that is used
negated alone is computed negated, by De Morgan's laws through `and` and `or`.

`a and b` is computed as a, and then b under the guard a into the same predicate; `a or b` likewise under not
a.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.inline import is_inversion
from qgpu.toolchain.codegen.nodes import BOOLEAN, EQUAL, GREATER, LESS, Condition, Node, Operand, Slot
from qgpu.toolchain.codegen.places import conditions_of, count_users, last_step
from qgpu.toolchain.codegen.regions import Region

AND, _OR = 0xC0, 0xFC
DUAL = {AND: _OR, _OR: AND}


def test_differences(lowered: Lowered) -> None:
    """Turn a = b into a - b = 0 where the difference is computed anyway."""
    for region in lowered.regions:
        differences = {_difference_of(node): node for node in region.nodes if node.kind == "value"}
        for node in region.nodes:
            x, y, _ = node.expression.operands
            found = differences.get((x, y)) or differences.get((y, x))
            earlier = found is not None and region.nodes.index(found) < region.nodes.index(node)
            if (
                earlier
                and node.expression.op == "cmp"
                and node.expression.relation in (EQUAL, LESS | GREATER)
            ):
                node.expression = replace(node.expression, x=found, y=0)


def _difference_of(node: Node) -> tuple[Operand, Operand] | None:
    x, y, z = node.expression.operands
    return (z, x) if node.expression.op == "mad" and y == 0xFFFFFFFF else None


def orient_conditions(lowered: Lowered) -> None:
    """Compute negated those conditions that nothing uses as they are."""
    count_users(lowered)
    conditions = {c for region in lowered.regions for c, _ in conditions_of(region)}
    guarded = _guarded(lowered)
    for region in reversed(lowered.regions):
        for node in reversed(region.nodes):
            if _is_used_negated(node) and _can_invert(node, conditions):
                _invert(node)
                _turn_users(node, guarded)
    count_users(lowered)


def _guarded(lowered: Lowered) -> dict[Condition, dict[Region | Node, None]]:
    """The regions and nodes whose guard a condition is in."""
    found: dict[Condition, dict[Region | Node, None]] = {}
    for region in lowered.regions:
        for holder in (region, *region.nodes):
            for condition, _ in holder.guard or ():
                found.setdefault(condition, {})[holder] = None
    return found


def _is_used_negated(node: Node) -> bool:
    return bool(node.users) and all(
        is_inversion(user.expression) and user.kind == "value" for user in node.users
    )


def _can_invert(node: Operand, conditions: Container[Operand | Slot]) -> bool:
    """Whether the operation has an inverse, down to its operands, which nothing else uses, nor a guard."""
    if not isinstance(node, Node) or node.kind != "value" or node.over:
        return False
    expression = node.expression
    if expression.op == "cmp":
        return True
    joined = expression.op == "lop3" and expression.lut in DUAL and expression.z == 0
    return joined and all(
        operand not in conditions and owned(operand, node) and _can_invert(operand, conditions)
        for operand in expression.operands[:2]
    )


def owned(operand: Operand, user: Node) -> bool:
    """Whether nothing but one node reads an operand."""
    return isinstance(operand, Node) and set(operand.users) == {user}


def _invert(node: Node) -> None:
    expression = node.expression
    if expression.op == "cmp":
        node.expression = replace(expression, relation=expression.relation ^ 7)
        return
    node.expression = replace(expression, lut=DUAL[expression.lut])
    for operand in dict.fromkeys(expression.operands[:2]):
        assert isinstance(operand, Node)
        _invert(operand)


def _turn_users(inverted: Node, guarded: dict[Condition, dict[Region | Node, None]]) -> None:
    """Let guards read an inverted condition the other way, and read it where its negation was read."""
    negations = dict(inverted.users)
    holders = {holder: None for c in (inverted, *negations) for holder in guarded.get(c, ())}
    for holder in holders:
        guard = holder.guard or ()
        holder.guard = tuple(_turned(c, polarity, inverted, negations) for c, polarity in guard)
    guarded[inverted] = holders
    for negation in negations:
        for user in negation.users:
            operands = user.expression.operands
            user.expression = user.expression.with_operands(
                *(inverted if o in negations else o for o in operands)
            )
            inverted.users[user] = None
        inverted.users.pop(negation)


def _turned(
    condition: Condition, polarity: bool, inverted: Node, negations: Container[Condition]
) -> tuple[Condition, bool]:
    if condition in negations:
        return inverted, polarity
    return condition, polarity is not (condition is inverted)


def join_condition(
    node: Node, region: Region, computed: Mapping[Node, Node], owners: Container[Node]
) -> bool:
    """Turn `a and b` into b under the guard a, over a, if nothing else uses them; returns whether it did."""
    expression = node.expression
    if expression.op != "lop3" or expression.lut not in DUAL or expression.z != 0 or node.uniform:
        return False
    if node.over or node.guard or (expression.lut == _OR and node in owners):
        return False
    set_ = computed.get(last_step(node))
    if set_ and not _may_narrow(set_.slot, region, expression.lut):
        return False
    for base, over in (expression.operands[:2], expression.operands[1::-1]):
        if _may_join(base, node, computed) and _may_join(over, node, computed):
            assert isinstance(base, Node) and isinstance(over, Node)
            if over.expression.op == "cmp":
                node.over = base
                node.guard = (*region.guard, (base, expression.lut == AND))
                node.expression = over.expression
                return True
    return False


def _may_narrow(slot: Slot | None, region: Region, lut: int) -> bool:
    """Whether a slot may be written by both steps: if it guards them, the first must only take lanes away."""
    polarities = [polarity for condition, polarity in region.guard if condition is slot]
    return not polarities or (all(polarities) and lut == AND)


def _may_join(operand: Operand, node: Node, computed: Container[Node]) -> bool:
    if not isinstance(operand, Node) or not owned(operand, node) or operand in computed:
        return False
    here = operand.block is node.block and operand.kind == "value" and not operand.uniform
    return here and operand.predicate is None and _is_boolean(operand)


def _is_boolean(operand: Operand) -> bool:
    if not isinstance(operand, Node):
        return operand in (0, 1)
    expression = operand.expression
    return expression.op in BOOLEAN or (
        expression.op == "lop3" and all(map(_is_boolean, expression.operands))
    )
