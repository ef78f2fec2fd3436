"""Pointer inference: which values are addresses, and of which state space.

PTX keeps addresses in integer registers. Certain to be a pointer are the address of an array, a parameter
declared `.ptr`, and whatever is converted by cvta or used as an address; from there the property is followed
back to the parameters it must have come from, and forward to all values computed from them. Only instructions
through which a pointer can flow (a row's `carries`) are followed: index arithmetic stays integer arithmetic.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from qgpu.toolchain.diagnostics import DiagnosticError
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Block, Site
from qgpu.toolchain.ptx.names import type_width
from qgpu.toolchain.ptx.places import Places
from qgpu.toolchain.ptx.rule import MEMORY, Rule, registers_of
from qgpu.toolchain.ptx.ssa import Definition, Node, Phi, Values

_POINTER_BITS = 64


@dataclass
class Pointers:
    """The result: the state space of every node that is a pointer, and the parameters that are pointers.

    `loaded` holds all parameters that the kernel reads, pointers or not.
    """

    spaces: dict[Node, str] = field(default_factory=dict)
    parameters: set[ast.Parameter] = field(default_factory=set)
    loaded: set[ast.Parameter] = field(default_factory=set)


def infer_pointers(values: Values, rules: dict[Site, Rule], places: Places) -> Pointers:
    """Find the pointers of a kernel.

    Raises DiagnosticError where a sum could take either operand for its pointer, or where a value would point
    to several state spaces.
    """
    return _Inference(values, rules, places).run()


class _Inference:
    def __init__(self, values: Values, rules: dict[Site, Rule], places: Places) -> None:
        self._values = values
        self._rules = rules
        self._places = places
        self._nodes: list[Node] = [
            *(node for written in values.writes.values() for node in written.values()),
            *(phi for phis in values.phis.values() for phi in phis),
        ]
        self._users: dict[Node, list[Node]] = {}
        for node in self._nodes:
            for source in self._sources(node):
                self._users.setdefault(source, []).append(node)
        self._parameters = dict(self._parameter_loads())
        named = (self._named(node, MEMORY) for node in self._nodes)
        self._result = Pointers(loaded={found for found in named if isinstance(found, ast.Parameter)})

    def run(self) -> Pointers:
        for node in self._nodes:
            self._mark_certain(node)
        possible = self._reached_from([*self._parameters, *self._result.spaces])
        for targets in (self._converted(), self._addresses()):
            for node in list(targets):
                self._trace_back(node, possible)
        return self._result

    def _sources(self, node: Node) -> list[Node]:
        """The nodes through which `node` could have become a pointer."""
        if isinstance(node, Phi):
            return list(node.operands.values())
        if not isinstance(node, Definition):
            return []
        site, rule = node.site, self._rules[node.site]
        reads = self._values.reads[site]
        return [
            reads[register]
            for role in rule.carries
            for register in registers_of(rule.operand(site.instruction, role), site)
        ]

    def _parameter_loads(self) -> Iterator[tuple[Node, ast.Parameter]]:
        """Loads of parameters wide enough for a pointer."""
        for node in self._nodes:
            parameter = self._named(node, MEMORY)
            if not isinstance(parameter, ast.Parameter) or parameter.extents:
                continue
            if type_width(parameter.type) == node.register.width == _POINTER_BITS:
                yield node, parameter

    def _named(self, node: Node, *roles: str):
        """What the name in an operand of a definition stands for, where it is no register."""
        if not isinstance(node, Definition):
            return None
        rule, site = self._rules[node.site], node.site
        for role, operand in rule.operands(site.instruction):
            name = operand.base if isinstance(operand, ast.Memory | ast.Offset) else operand
            if role in roles and isinstance(name, ast.Name):
                return site.scope.lookup(name.text)
        return None

    def _mark_certain(self, node: Node) -> None:
        """Mark addresses of arrays and parameters declared as pointers."""
        parameter = self._parameters.get(node)
        if parameter is not None and parameter.pointee is not None:
            self._mark_parameter(node, parameter)
        if not isinstance(node, Definition) or not self._rules[node.site].carries:
            return
        for role in self._rules[node.site].carries:
            variable = self._named(node, role)
            if isinstance(variable, ast.Variable):
                self._mark(node, variable.space)

    def _mark_parameter(self, node: Node, parameter: ast.Parameter) -> None:
        self._result.parameters.add(parameter)
        space = parameter.pointee.space if parameter.pointee else None
        for load, loaded in self._parameters.items():
            if loaded is parameter:
                self._mark(load, space or "global")

    def _mark(self, node: Node, space: str) -> None:
        """Mark a node and all that is computed from it as pointers to a state space."""
        waiting = [node]
        while waiting:
            node = waiting.pop()
            known = self._result.spaces.get(node)
            if known is not None and known != space:
                first, second = sorted((known, space))
                raise self._refusal(node, f"the value may point to {first} or to {second} memory")
            if known is None:
                self._result.spaces[node] = space
                waiting += self._users.get(node, [])

    def _converted(self) -> Iterator[Node]:
        """The sources of address conversions."""
        for site, rule in self._rules.items():
            if rule.opcode == "cvta":
                yield from self._read(site, rule, "a")

    def _addresses(self) -> Iterator[Node]:
        """The bases of memory accesses."""
        for site, rule in self._rules.items():
            if MEMORY in rule.role_names:
                yield from self._read(site, rule, MEMORY)

    def _read(self, site: Site, rule: Rule, role: str) -> Iterable[Node]:
        registers = registers_of(rule.operand(site.instruction, role), site)
        return [self._values.reads[site][register] for register in registers]

    def _reached_from(self, seeds: list[Node]) -> set[Node]:
        """All nodes into which one of the seeds can flow."""
        reached, waiting = set(seeds), list(seeds)
        while waiting:
            fresh = [node for node in self._users.get(waiting.pop(), []) if node not in reached]
            reached.update(fresh)
            waiting += fresh
        return reached

    def _trace_back(self, target: Node, possible: set[Node]) -> None:
        """Mark the parameters from which a pointer must have come."""
        visited, waiting = {target}, [target]
        while waiting:
            node = waiting.pop()
            if node in self._parameters and node not in self._result.spaces:
                self._mark_parameter(node, self._parameters[node])
            sources = self._possible_sources(node, possible)
            waiting += [source for source in sources if source not in visited]
            visited.update(sources)

    def _possible_sources(self, node: Node, possible: set[Node]) -> list[Node]:
        """The sources that can be pointers; of a sum just the one that is."""
        sources = [source for source in self._sources(node) if source in possible]
        is_sum = isinstance(node, Definition) and node.site.instruction.opcode == "add"
        if not is_sum or len(set(sources)) < 2:
            return sources
        certain = [source for source in sources if source in self._result.spaces]
        if len(certain) != 1:
            raise self._refusal(node, "either operand of this sum could be the pointer")
        return certain

    def _refusal(self, node: Node, message: str) -> DiagnosticError:
        site = _site_of(node)
        if site is None:
            return self._places.error(message, ast.Position(0, 0))
        return self._places.error(message, site.instruction.position, site.location)


def _site_of(node: Node) -> Site | None:
    if isinstance(node, Definition):
        return node.site
    block: Block | None = node.block if isinstance(node, Phi) else None
    return (block.sites[0] if block.sites else block.closing) if block else None
