"""Splitting: what to do with a node that no block can compute at once.

Offsets of two indices are added up first; a bitwise function of three thread registers takes steps of two; a
selection becomes two guarded blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qgpu.toolchain.codegen.addresses import sum_of
from qgpu.toolchain.codegen.arithmetic import MINUS_ONE, extreme, logic, total
from qgpu.toolchain.codegen.nodes import EQUAL, Access, Arg, Expression, Node, Term, word
from qgpu.toolchain.codegen.refuse import refuse
from qgpu.toolchain.codegen.regions import Region, folded
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.selections import overwrite, step_of


def split(node: Node, region: Region) -> list[Node]:
    """Replace a node by steps; returns the new nodes and then the changed one, all in the region.

    A selection becomes a node over another, under a guard whose predicate has no place yet.

    Raises:
        DiagnosticError: there are no such steps.
    """
    if node.expression.op == "select":
        steps = overwrite(node, region)
    elif node.access and not _is_plain(node.access):
        steps = _offset_steps(node, node.access)
    elif node.expression.op in _STEPS and not node.reads_memory:
        steps = _STEPS[node.expression.op](node)
    else:
        raise refuse("no block of the machine can compute this, nor several", node.loc)
    for step in steps:
        step.order = node.order
    position = region.nodes.index(node)
    region.nodes[position:position] = steps
    _recount(region)
    return [*steps, node]


def _is_plain(access: Access) -> bool:
    """Whether the offset is one register, or constant, that no step can make simpler."""
    if not access.terms:
        return True
    return len(access.terms) == 1 and access.terms[0].scale in (1, 4) and not access.displacement


def _recount(region: Region) -> None:
    """Bring positions and users up to date."""
    for order, node in enumerate(region.nodes):
        node.order = order
        for read in node.nodes:
            read.users[node] = None
    for node in region.nodes:
        node.users = {user: None for user in node.users if node in user.nodes}


def _offset_steps(node: Node, access: Access) -> list[Node]:
    """Add up an offset in a register: its terms, and the displacement."""
    numbers = (access.displacement, *(term.scale for term in access.terms))
    unit = 4 if all(number % 4 == 0 for number in numbers) else 1
    steps: list[Node] = []

    def make(expression: Expression) -> Arg:
        expression = folded(expression)
        if isinstance(expression.moved, Node | Register | int):
            return expression.moved
        steps.append(step_of(node, expression))
        return steps[-1]

    value = make(total(sum_of(access.terms, unit, make), word(access.displacement // unit)))
    node.access = replace(access, terms=(Term(value, unit),), displacement=0)
    return steps


def _logic_steps(node: Node) -> list[Node]:
    """f(x, y, z) = f0(x, y) ^ ((f0 ^ f1)(x, y) & z), where f0 and f1 are f at z = 0 and z = 1 (Shannon)."""
    x, y, z = node.expression.operands
    at_0, at_1 = _cofactor(node.expression.lut, 0), _cofactor(node.expression.lut, 1)
    differ = step_of(node, Expression("lop3", x, y, 0, lut=at_0 ^ at_1))
    if at_0 in (0x00, 0xFF):
        node.expression = replace(logic("and", differ, z), lut=0xC0 ^ at_0)
        return [differ]
    if at_0 ^ at_1 == 0xFF:
        base = step_of(node, Expression("lop3", x, y, 0, lut=at_0))
        node.expression = logic("xor", base, z)
        return [base]
    chosen = step_of(node, logic("and", differ, z))
    if at_0 in _SINGLE:
        operand, lut = (x, y)[at_0 in (0xCC, 0x33)], 0x3C if at_0 in (0xF0, 0xCC) else 0xC3
        node.expression = Expression("lop3", chosen, operand, 0, lut=lut)
        return [differ, chosen]
    base = step_of(node, Expression("lop3", x, y, 0, lut=at_0))
    node.expression = logic("xor", base, chosen)
    return [differ, chosen, base]


def _permutation_steps(node: Node) -> list[Node]:
    """The bytes of either word beside zeros, and both together."""
    x, y, z = node.expression.operands
    exchanged = step_of(node, logic("xor", z, 0x4444))
    parts = [step_of(node, Expression("prmt", x, 0, z)), step_of(node, Expression("prmt", y, 0, exchanged))]
    node.expression = logic("or", *parts)
    return [exchanged, *parts]


def _pair_shift_steps(node: Node) -> list[Node]:
    """The low word down, or the high one up by what is left of 32."""
    x, y, z = node.expression.operands
    amount = step_of(node, extreme("min", y, 32, signed=False))
    rest = step_of(node, Expression("mad", amount, MINUS_ONE, 32))
    parts = [step_of(node, Expression("shr", x, y)), step_of(node, Expression("shl", z, rest))]
    node.expression = logic("or", *parts)
    return [amount, rest, *parts]


def _longer_comparison_steps(node: Node) -> list[Node]:
    """The comparison of the higher words, or that of the lower ones where they are equal."""
    expression = node.expression
    strict = step_of(node, replace(expression, op="cmp", z=0))
    equal = step_of(node, replace(expression, op="cmp", z=0, relation=EQUAL))
    lower = step_of(node, logic("and", equal, expression.z))
    node.expression = logic("or", strict, lower)
    return [strict, equal, lower]


_STEPS: dict[str, Callable[[Node], list[Node]]] = {
    "lop3": _logic_steps,
    "prmt": _permutation_steps,
    "shf": _pair_shift_steps,
    "lex": _longer_comparison_steps,
}
"""The steps of an operation of three thread registers."""

_SINGLE = (0xF0, 0xCC, 0x0F, 0x33)
"""Truth tables of x, y and their complements."""


def _cofactor(lut: int, z: int) -> int:
    """The truth table with Z fixed."""
    return sum((lut >> (index & 6 | z) & 1) << index for index in range(8))
