"""Routing: the operands of a block through the machine's ports.

A block reads two registers through ports A and B, a uniform register through port C, and one immediate. Each
operand has a few ways in (`EXCLUSIVE_ROUTES` of the block format); routing finds a way for all of them at
once, trying the orders of operands that leave the result unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from qgpu.toolchain.codegen.nodes import (
    EQUAL,
    GREATER,
    LESS,
    MEMORY,
    Access,
    Expression,
    Operand,
    Term,
    word,
)
from qgpu.toolchain.codegen.registers import Register

ConstantRegister = Callable[[int], Register]
"""Gives the uniform register that holds a constant."""


@dataclass(frozen=True)
class Route:
    """One way in for one operand: the flag of the block that opens it, and the port it takes.

    `port` is `a`, `b`, `c` with a register, `imm` with a number, or empty.
    """

    flag: str
    port: str = ""
    value: Register | int = 0


Way = tuple[Route, ...]
"""Routes that are taken together."""

Ports = dict[str, Register | int]
"""What each port in use reads."""


@dataclass(frozen=True)
class Routing:
    """A block's operands, routed: the expression in the order found, flags to set, what the ports read."""

    expression: Expression
    flags: tuple[str, ...]
    ports: Ports

    @property
    def registers(self) -> tuple[Register, ...]:
        """The registers that the block reads."""
        return tuple(value for value in self.ports.values() if isinstance(value, Register))


def route(
    expression: Expression, access: Access | None, constant: ConstantRegister | None = None
) -> Routing | None:
    """Route a block whose operands are registers and constants, or give None where the ports do not suffice.

    With `constant`, constants that the immediate has no room for come from uniform registers.
    """
    for form in forms(expression):
        slots = [*_offset_slots(access), *_operand_slots(form, access)]
        if constant:
            slots = [[*routes, *_from_constants(routes, constant)] for routes in slots]
        chosen = _assign(slots, {})
        if chosen is not None:
            return _routing(form, chosen)
    return None


def route_with_constants(
    expression: Expression, access: Access | None, constant: ConstantRegister
) -> Routing | None:
    """Route with the immediate alone if that is possible, else with registers for constants."""
    return route(expression, access) or route(expression, access, constant)


def forms(expression: Expression) -> Iterator[Expression]:
    """The expression with its operands in every order that gives the same result."""
    x, y, z = expression.operands
    yield expression
    match expression.op:
        case "mad":
            yield from (expression.with_operands(*operands) for operands in _mad_orders(x, y, z))
        case "lop3":
            yield from _logic_orders(expression)
        case "cmp":
            yield Expression("cmp", y, x, relation=mirrored(expression.relation), signed=expression.signed)
        case "pick" if expression.relation in (LESS, GREATER):
            yield expression.with_operands(y, x, z)


def _mad_orders(x: Operand, y: Operand, z: Operand) -> Iterator[tuple[Operand, Operand, Operand]]:
    yield y, x, z
    if 0 in (x, y):
        yield from ((z, 1, 0), (1, z, 0))
    if y != 1:
        return
    yield from ((z, 1, x), (1, x, z), (1, z, x))
    if z == 0:
        yield 0, 0, x


def _logic_orders(expression: Expression) -> Iterator[Expression]:
    operands = expression.operands
    for order in ((1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        permuted = tuple(operands[index] for index in order)
        lut = 0
        for index in range(8):
            bits = (index >> 2 & 1, index >> 1 & 1, index & 1)
            source = [0, 0, 0]
            for position, operand in enumerate(order):
                source[operand] = bits[position]
            lut |= (expression.lut >> (4 * source[0] + 2 * source[1] + source[2]) & 1) << index
        yield Expression("lop3", *permuted, lut=lut)


def mirrored(relation: int) -> int:
    """The relation of Y and X that is the same as `relation` of X and Y."""
    return (relation & EQUAL) | (GREATER if relation & LESS else 0) | (LESS if relation & GREATER else 0)


def _offset_slots(access: Access | None) -> Iterator[Sequence[Way]]:
    """The ways in of descriptor and offset."""
    if access is None:
        return
    descriptor = access.descriptor
    assert isinstance(descriptor, Register)
    yield _through(descriptor, {"c": "c_to_d", "a": "a_to_d"})
    yield offset_routes(access.terms, access.displacement)


def offset_routes(terms: tuple[Term, ...], displacement: int) -> list[Way]:
    """The ways to form an offset: I from port A, J from port B or the immediate."""
    shift: Way = ()
    if displacement:
        shift = (Route("imm_to_j", "imm", word(displacement)),)
    if not terms:
        return [shift]
    if len(terms) == 1 and terms[0].scale == 2:
        twice = _register(terms[0])
        return [(Route("a_to_i", "a", twice), Route("b_to_j", "b", twice))] if not shift else []
    if len(terms) == 1 and shift:
        return [(*_to_i(terms[0]), *shift)]
    if len(terms) == 1:
        return [_to_i(replace(terms[0], unsigned=False)), (_to_j(terms[0]),)]
    if len(terms) == 2 and not shift:
        return [(*_to_i(a), _to_j(b)) for a, b in (terms, terms[::-1]) if not b.unsigned]
    return []


def _register(term: Term) -> Register:
    assert isinstance(term.value, Register)
    return term.value


def _to_i(term: Term) -> Way:
    flag = {1: "a_to_i", 4: "a_to_i4"}[term.scale]
    unsigned = (Route("i_unsigned"),) if term.unsigned else ()
    return Route(flag, "a", _register(term)), *unsigned


def _to_j(term: Term) -> Route:
    return Route({1: "b_to_j", 4: "b_to_j4"}[term.scale], "b", _register(term))


_WAYS = {
    "x": {"a": "a_to_x"},
    "y": {"b": "b_to_y", "c": "c_to_y"},
    "z": {"b": "b_to_z", "c": "c_to_z"},
}


def _operand_slots(expression: Expression, access: Access | None) -> Iterator[Sequence[Way]]:
    for name, operand in zip("xyz", expression.operands, strict=True):
        if operand is MEMORY:
            yield _memory_routes(name, expression, access)
        elif isinstance(operand, Register):
            yield _through(operand, _WAYS[name])
        elif operand != 0:
            assert isinstance(operand, int)
            yield _constant_routes(name, operand)


def _memory_routes(name: str, expression: Expression, access: Access | None) -> list[Way]:
    assert access is not None
    if expression.op == "merge" or access.width == 4:
        return [(Route(f"m_to_{name}"),)] if name in "xy" else []
    return [(Route("m_sub_to_x"),)] if name == "x" else []


def _through(register: Register, ways: dict[str, str]) -> list[Way]:
    return [
        (Route(flag, port, register),)
        for port, flag in ways.items()
        if port != "c" or register.kind == "uniform"
    ]


def _constant_routes(name: str, number: int) -> list[Way]:
    if name == "y" and number == 1:
        return [(Route("one_to_y"),)]
    if name == "y" and number == 0xFFFFFFFF:
        return [(Route("ones_to_y"),)]
    return [(Route(f"imm_to_{name}", "imm", number),)]


def _from_constants(ways: Sequence[Way], constant: ConstantRegister) -> Iterator[Way]:
    """Other ways for an operand that would take the immediate."""
    for way in ways:
        found = way[0] if len(way) == 1 else None
        if found and found.flag in ("imm_to_x", "imm_to_y", "imm_to_z"):
            assert isinstance(found.value, int)
            yield from _through(constant(found.value), _WAYS[found.flag[-1]])


def _assign(slots: Sequence[Sequence[Way]], ports: Ports) -> list[Route] | None:
    """One way for each slot so that no port reads two things, by depth-first search."""
    if not slots:
        return []
    for way in slots[0]:
        taken = _with_ports(ports, way)
        rest = _assign(slots[1:], taken) if taken is not None else None
        if rest is not None:
            return [*way, *rest]
    return None


def _with_ports(ports: Ports, way: Way) -> Ports | None:
    taken = dict(ports)
    for found in way:
        if found.port and taken.setdefault(found.port, found.value) != found.value:
            return None
    return taken


def _routing(expression: Expression, routes: list[Route]) -> Routing:
    ports = {found.port: found.value for found in routes if found.port}
    return Routing(expression, tuple(found.flag for found in routes), ports)
