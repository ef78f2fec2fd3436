"""Through which instructions a pointer can flow, and which memory it is kept in on its way.

Index arithmetic stays integer arithmetic: of an instruction only the operands are followed through which its
result can be a pointer (a row's `carries`, and what this file knows of constants).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Site
from qgpu.toolchain.ptx.names import type_width
from qgpu.toolchain.ptx.passing import ARGUMENT
from qgpu.toolchain.ptx.rule import MEMORY, RESULT, Rule, registers_of
from qgpu.toolchain.ptx.ssa import Definition, Node, Phi, Values

LOW_BITS = 8
"""An address modulo 2^LOW_BITS is that of the offset: buffers and arrays are aligned to as much."""

_POINTER_WIDTHS = (32, 64)
_MERGES = ("selp", "slct", "min", "max")
_COMPARES = ("setp", "set")
_COPIES = ("mov", "st", "ld", "cvta")
_NUMBERS = ("mul", "mad", "shl", "shr", "div", "rem", "neg", "not", "popc", "clz", "bfe", "bfi", "shf", "cvt")


@dataclass(frozen=True, eq=False)
class Access:
    """An element of a load or store of 64 bits each, which may be a pointer.

    `value` is the node loaded or stored, `displacement` the bytes before the element in a vector.
    """

    site: Site
    value: Node | None
    operand: ast.Operand
    displacement: int


@dataclass
class Flow:
    """The graph along which pointers flow.

    `sources` of a node are those it may be a pointer of; `users` the reverse. `loads` and `stores` list the
    accesses by which a pointer may go through memory.
    """

    values: Values
    rules: Mapping[Site, Rule]
    nodes: list[Node] = field(default_factory=list)
    sources: dict[Node, list[Node]] = field(default_factory=dict)
    users: dict[Node, list[Node]] = field(default_factory=dict)
    loads: dict[Node, Access] = field(default_factory=dict)
    stores: list[Access] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes += [node for written in self.values.writes.values() for node in written.values()]
        self.nodes += [phi for phis in self.values.phis.values() for phi in phis]
        for node in self.nodes:
            self.sources[node] = list(dict.fromkeys(self._sources(node)))
            for source in self.sources[node]:
                self.users.setdefault(source, []).append(node)
        for site, rule in self.rules.items():
            if rule.opcode in ("ld", "st") and MEMORY in rule.role_names and moves_words(site.instruction):
                self._add_accesses(site, rule)

    def _sources(self, node: Node) -> Iterator[Node]:
        if isinstance(node, Phi):
            yield from node.operands.values()
        elif isinstance(node, Definition):
            for operand in carriers(node, self.rules[node.site]):
                yield from self.read(node.site, operand)

    def read(self, site: Site, operand: ast.Operand) -> list[Node]:
        """The nodes of the registers in an operand."""
        reads = self.values.reads[site]
        return [reads[register] for register in registers_of(operand, site) if register in reads]

    def operands(self, site: Site, roles: str) -> Iterator[Node]:
        """The nodes of the registers in some roles of an instruction."""
        rule = self.rules[site]
        for role, operand in rule.operands(site.instruction):
            if role in roles:
                yield from self.read(site, operand)

    def _add_accesses(self, site: Site, rule: Rule) -> None:
        loads = rule.opcode == "ld"
        value = rule.operand(site.instruction, RESULT if loads else "a")
        size = type_width(site.instruction.modifiers[-1]) // 8
        for index, element in enumerate(value.elements if isinstance(value, ast.Vector) else (value,)):
            register = site.scope.register(element.text) if isinstance(element, ast.Name) else None
            if loads and register is not None:
                node = self.values.writes[site][register]
                self.loads[node] = Access(site, node, element, index * size)
            elif not loads:
                source = self.values.reads[site].get(register) if register is not None else None
                self.stores.append(Access(site, source, element, index * size))

    def is_zero(self, node: Node, depth: int = 16) -> bool:
        """Whether a node is the number 0, as instructions copy it, which may be a null pointer."""
        if not isinstance(node, Definition) or node.site.instruction.opcode not in _COPIES or depth == 0:
            return False
        source = node.site.instruction.operands[1]
        if isinstance(source, ast.Integer):
            return source.value == 0
        sources = self.sources[node]
        return len(sources) == 1 and node not in self.loads and self.is_zero(sources[0], depth - 1)

    def stores_of(self, site: Site) -> list[Access]:
        """The elements of a store of 64 bits each, in order; none of another instruction."""
        return self._stores.get(site, [])

    @cached_property
    def _stores(self) -> dict[Site, list[Access]]:
        result: dict[Site, list[Access]] = {}
        for access in self.stores:
            result.setdefault(access.site, []).append(access)
        return result

    def address(self, site: Site) -> tuple[ast.Operand, Node | None, int]:
        """The address operand of an access, the node of its register, and the bytes added to it."""
        operand = self.rules[site].operand(site.instruction, MEMORY)
        offset = operand.offset if isinstance(operand, ast.Memory) else 0
        return operand, next(iter(self.read(site, operand)), None), offset

    @cached_property
    def readers(self) -> dict[Node, list[Site]]:
        """The instructions that read a node."""
        result: dict[Node, list[Site]] = {}
        for site, reads in self.values.reads.items():
            if isinstance(site, Site):
                for node in reads.values():
                    result.setdefault(node, []).append(site)
        return result

    @cached_property
    def _merged(self) -> set[Node]:
        """The nodes that a phi reads."""
        phis = (phi for phis in self.values.phis.values() for phi in phis)
        return {node for phi in phis for node in phi.operands.values()}

    def is_number(self, node: Node) -> bool:
        """Whether some instruction computes with a node as only numbers can be computed with."""
        return any(
            self.rules[site].opcode in _NUMBERS and node not in self.operands(site, "c")
            for site in self.readers.get(node, ())
        )

    def low_bits_only(self, node: Node, depth: int = 8) -> bool:
        """Whether nothing but the value modulo 2^LOW_BITS has an effect."""
        if depth == 0 or node in self._merged:
            return False
        return all(self._keeps_low(site, depth) for site in self.readers.get(node, ()))

    def _keeps_low(self, site: Site, depth: int) -> bool:
        instruction = site.instruction
        if instruction.opcode == "and":
            mask = constant_operand(instruction)
            if mask is not None and 0 <= mask < 1 << LOW_BITS:
                return True
        if instruction.opcode not in ("and", "or", "xor", "mov", "add", "sub", "cvt"):
            return False
        return all(self.low_bits_only(result, depth - 1) for result in self.values.writes[site].values())


def carriers(node: Definition, rule: Rule) -> Iterator[ast.Operand]:
    """The operands through which the result of an instruction can be a pointer."""
    instruction = node.site.instruction
    if node.register.width not in _POINTER_WIDTHS:
        return
    if rule.opcode in ("and", "or"):
        yield from _masked(instruction)
    elif rule.opcode in ("min", "max") and instruction.modifiers[-1].startswith("u"):
        yield from instruction.operands[1:]
    elif rule.opcode == "cvt" and any(type_width(part) < 32 for part in instruction.modifiers[-2:]):
        return
    else:
        operands = [rule.operand(instruction, role) for role in rule.carries]
        yield from (o for o in operands if not isinstance(o, ast.Vector) or len(o.elements) == 1)


def _masked(instruction: ast.Instruction) -> Iterator[ast.Operand]:
    """The pointer that an `and` aligns, or of which an `or` sets low bits."""
    mask = constant_operand(instruction)
    if mask is None or len(instruction.operands) != 3:
        return
    aligns = -(1 << LOW_BITS) <= mask < 0 and -mask & (-mask - 1) == 0
    sets = 0 <= mask < 1 << LOW_BITS
    if aligns if instruction.opcode == "and" else sets:
        yield from (o for o in instruction.operands[1:] if not isinstance(o, ast.Integer))


def constant_operand(instruction: ast.Instruction) -> int | None:
    """The constant among the sources of an instruction, as a signed number of its type; None without one."""
    width = type_width(instruction.modifiers[-1]) if instruction.modifiers else 64
    for operand in instruction.operands[1:]:
        if isinstance(operand, ast.Integer):
            value = operand.value & ((1 << width) - 1)
            return value - (1 << width) if value >> (width - 1) else value
    return None


def moves_words(instruction: ast.Instruction) -> bool:
    """Whether the elements of a load or store have the 64 bits of a pointer."""
    return bool(instruction.modifiers) and type_width(instruction.modifiers[-1]) == 64


def is_argument(node: Node) -> bool:
    """Whether a node is a kernel's argument that is wide enough for a pointer."""
    return (
        isinstance(node, Definition)
        and node.site.instruction.opcode == ARGUMENT
        and node.register.width == 64
    )


def is_merge(node: Node) -> bool:
    """Whether a node is one of several values, which have to be of one kind."""
    if isinstance(node, Phi):
        return True
    return isinstance(node, Definition) and node.site.instruction.opcode in _MERGES


def is_comparison(site: Site) -> bool:
    return site.instruction.opcode in _COMPARES


def has_zero_operand(site: Site) -> bool:
    """Whether an instruction has 0 as one of its first two sources."""
    return any(isinstance(o, ast.Integer) and o.value == 0 for o in site.instruction.operands[1:3])


def variable_of(operand: ast.Operand, site: Site) -> ast.Variable | None:
    """The variable that an operand names, with an offset or index or without one."""
    base = operand.base if isinstance(operand, ast.Memory | ast.Offset | ast.Element) else operand
    found = site.scope.lookup(base.text) if isinstance(base, ast.Name) else None
    return found if isinstance(found, ast.Variable) else None


def displacement(operand: ast.Operand) -> int | None:
    """The constant bytes that an operand adds to the variable it names; None where that is not constant."""
    if isinstance(operand, ast.Offset | ast.Memory):
        return operand.offset
    return None if isinstance(operand, ast.Element) else 0
