"""Routing: the operands of a block through the machine's ports.

A block reads two registers through ports A and B, uniform registers through ports C and E, the thread
register that it writes, or any where it writes none, through the accumulator port, and one immediate. Each
operand has a few ways in (`EXCLUSIVE_ROUTES` of the block format); routing finds a way for all of them at
once, trying the orders of operands that leave the result unchanged, and each of two accesses as the
machine's first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from qgpu.toolchain.codegen.nodes import (
    EQUAL,
    GREATER,
    LESS,
    MEMORY,
    MEMORY_2,
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

    `port` is `a`, `b`, `c`, `e`, `dest` with a register, `imm` with a number, or empty.
    """

    flag: str
    port: str = ""
    value: Register | int = 0


Way = tuple[Route, ...]
"""Routes that are taken together."""

Ports = dict[str, Register | int]
"""What each port in use reads."""


@dataclass(frozen=True)
class Accumulator:
    """What the accumulator port may read: `registers`, or any thread register where that is None."""

    registers: frozenset[Register] | None = None

    def reads(self, register: Register) -> bool:
        """Whether the port may read a register."""
        return register.kind == "thread" and (self.registers is None or register in self.registers)


@dataclass(frozen=True)
class Accesses:
    """The accesses of a block before their roles are known.

    Attributes:
        first, second: those that MEMORY and MEMORY_2 mean; the machine's second access is of a whole word.
    """

    first: Access | None = None
    second: Access | None = None

    def exchanged(self) -> Accesses:
        """The same accesses in each other's role."""
        return Accesses(self.second, self.first)


NO_ACCESS = Accesses()


@dataclass(frozen=True)
class Routing:
    """A block's operands, routed.

    Attributes:
        expression: in the order found; MEMORY is the machine's first access.
        flags: to set.
        ports: what the ports read.
        exchanged: whether the machine's first access is the second of what was routed.
    """

    expression: Expression
    flags: tuple[str, ...]
    ports: Ports
    exchanged: bool = False

    @property
    def registers(self) -> tuple[Register, ...]:
        """The registers that the block reads."""
        return tuple(value for value in self.ports.values() if isinstance(value, Register))

    @property
    def accumulator(self) -> Register | None:
        """The register that the accumulator port reads."""
        value = self.ports.get("dest")
        return value if isinstance(value, Register) else None


def route(
    expression: Expression,
    access: Access | None,
    constant: ConstantRegister | None = None,
    accumulator: Accumulator | None = None,
) -> Routing | None:
    """Route a block with at most one access, the machine's first; see `route_accesses`."""
    return _routed(expression, Accesses(access), constant, accumulator)


def route_accesses(
    expression: Expression,
    accesses: Accesses,
    constant: ConstantRegister | None = None,
    accumulator: Accumulator | None = None,
) -> Routing | None:
    """Route a block whose operands are registers and constants, or give None where the ports do not suffice.

    With `constant`, constants that the immediate has no room for come from uniform registers.
    """
    found = _routed(expression, accesses, constant, accumulator)
    if found is not None or accesses.first is None:
        return found
    exchanged = expression.with_operands(*map(_other_memory, expression.operands))
    found = _routed(exchanged, accesses.exchanged(), constant, accumulator)
    return found and replace(found, exchanged=True)


def _routed(
    expression: Expression,
    accesses: Accesses,
    constant: ConstantRegister | None,
    accumulator: Accumulator | None,
) -> Routing | None:
    for form in forms(expression):
        slots = [*_access_slots(accesses), *_operand_slots(form, accesses.first)]
        if accumulator:
            slots[-1:] = [[*slots[-1], *_accumulated(form.z, accumulator)]] if form.z != 0 else slots[-1:]
        if constant:
            slots = [[*routes, *_from_constants(routes, constant)] for routes in slots]
        chosen = _assign(slots, {})
        if chosen is not None:
            return _routing(form, chosen)
    return None


def _other_memory(operand: Operand) -> Operand:
    if operand is MEMORY:
        return MEMORY_2
    return MEMORY if operand is MEMORY_2 else operand


def _accumulated(operand: Operand, accumulator: Accumulator) -> Iterator[Way]:
    if isinstance(operand, Register) and accumulator.reads(operand):
        yield (Route("dest_to_z", "dest", operand),)


def route_with_constants(
    expression: Expression,
    accesses: Accesses,
    constant: ConstantRegister,
    accumulator: Accumulator | None = None,
) -> Routing | None:
    """Route with the immediate alone if that is possible, else with registers for constants.

    The accumulator port is taken where nothing else will do: its registers are few.
    """
    for port in dict.fromkeys((None, accumulator)):
        found = route_accesses(expression, accesses, None, port)
        found = found or route_accesses(expression, accesses, constant, port)
        if found is not None:
            return found
    return None


def forms(expression: Expression) -> Iterator[Expression]:
    """The expression with its operands in every order that gives the same result."""
    x, y, z = expression.operands
    yield expression
    match expression.op:
        case "mad":
            yield from (expression.with_operands(*operands) for operands in _mad_orders(x, y, z))
        case "lop3":
            yield from _logic_orders(expression)
        case "mulhi":
            yield expression.with_operands(y, x, z)
        case "cmp" | "inc" | "dec" | "lex":
            yield replace(expression, x=y, y=x, relation=mirrored(expression.relation))
        case "prmt" if isinstance(z, int):
            yield expression.with_operands(y, x, z ^ 0x4444)
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


def _access_slots(accesses: Accesses) -> Iterator[Sequence[Way]]:
    """The ways in of descriptors, and of both offsets together."""
    first, second = accesses.first, accesses.second
    offsets: list[Way] = [()]
    if first is not None:
        yield _through(_descriptor(first), {"c": "c_to_d", "a": "a_to_d"})
        offsets = offset_routes(first.terms, first.displacement)
    if second is not None:
        yield _through(_descriptor(second), {"e": "e_to_d2"}) if second.width == 4 else []
        offsets = [(*way, *other) for way in offsets for other in _second_offset_routes(first, way, second)]
    if first or second:
        yield offsets


def _descriptor(access: Access) -> Register:
    assert isinstance(access.descriptor, Register)
    return access.descriptor


def offset_routes(terms: tuple[Term, ...], displacement: int) -> list[Way]:
    """The ways to form an offset: I from port A, J from port E or the immediate."""
    shift: Way = ()
    if displacement:
        shift = (Route("imm_to_j", "imm", word(displacement)),)
    if not terms:
        return [shift]
    if len(terms) == 1 and terms[0].scale == 2:
        twice = _register(terms[0])
        fits = not shift and twice.kind == "uniform"
        return [(Route("a_to_i", "a", twice), Route("e_to_j", "e", twice))] if fits else []
    if len(terms) == 1 and shift:
        return [(*_to_i(terms[0]), *shift)]
    if len(terms) == 1:
        return [_to_i(replace(terms[0], unsigned=False)), *_to_j(terms[0])]
    if len(terms) == 2 and not shift:
        pairs = ((a, b) for a, b in (terms, terms[::-1]) if not b.unsigned)
        return [(*_to_i(a), *way) for a, b in pairs for way in _to_j(b)]
    return []


def _register(term: Term) -> Register:
    assert isinstance(term.value, Register)
    return term.value


def _to_i(term: Term) -> Way:
    flag = {1: "a_to_i", 4: "a_to_i4"}[term.scale]
    unsigned = (Route("i_unsigned"),) if term.unsigned else ()
    return Route(flag, "a", _register(term)), *unsigned


def _to_j(term: Term) -> Iterator[Way]:
    register = _register(term)
    if register.kind == "uniform":
        yield (Route({1: "e_to_j", 4: "e_to_j4"}[term.scale], "e", register),)


def _second_offset_routes(first: Access | None, way: Way, second: Access) -> Iterator[Way]:
    """The ways to form the second access's offset: the index I of the first one's way, or the immediate."""
    if not second.terms:
        yield (Route("imm_to_k", "imm", word(second.displacement)),) if second.displacement else ()
        return
    term = second.terms[0]
    if len(second.terms) > 1 or second.displacement or term.scale not in (1, 4):
        return
    index = _to_i(replace(term, unsigned=False))[0]
    if index in way:
        yield (Route("i_to_k"),)
    elif first is None:
        yield index, Route("i_to_k")


_WAYS = {
    "x": {"a": "a_to_x"},
    "y": {"b": "b_to_y", "c": "c_to_y"},
    "z": {"b": "b_to_z", "c": "c_to_z"},
}


def _operand_slots(expression: Expression, access: Access | None) -> Iterator[Sequence[Way]]:
    for name, operand in zip("xyz", expression.operands, strict=True):
        if operand is MEMORY:
            yield _memory_routes(name, expression, access)
        elif operand is MEMORY_2:
            yield [(Route("m2_to_z"),)] if name == "z" else []
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


_UNIFORM_PORTS = ("c", "e")


def _through(register: Register, ways: dict[str, str]) -> list[Way]:
    return [
        (Route(flag, port, register),)
        for port, flag in ways.items()
        if port not in _UNIFORM_PORTS or register.kind == "uniform"
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
    return Routing(expression, tuple(dict.fromkeys(found.flag for found in routes)), ports)
