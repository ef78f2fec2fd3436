"""Pointer inference: which values are addresses, and of what.

PTX keeps addresses in integer registers. Certain to be a pointer are the address of a variable and a parameter
declared `.ptr`; from there the property flows forward to all that is computed from them. What is used as an
address, converted by cvta, or merged or compared with a pointer has to be one: it is traced back to the parameters
that it must have come from, through variables of the kernel in which pointers are kept.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from qgpu.ir import PtrType, ptr
from qgpu.toolchain.diagnostics import DiagnosticError
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Block, Site
from qgpu.toolchain.ptx.names import Register
from qgpu.toolchain.ptx.passing import Component
from qgpu.toolchain.ptx.places import Places
from qgpu.toolchain.ptx.pointer_flow import (
    Access,
    Flow,
    carriers,
    displacement,
    is_argument,
    is_comparison,
    is_merge,
    is_zero,
    variable_of,
)
from qgpu.toolchain.ptx.rule import MEMORY, Rule
from qgpu.toolchain.ptx.ssa import Definition, Node, Phi, Values

GENERIC = "generic"


@dataclass(frozen=True, eq=False)
class Target:
    """What a pointer may point to: a variable, or the buffer of an argument; NULL is neither."""

    name: str
    space: str
    variable: ast.Variable | None = None
    component: Component | None = None

    @property
    def holds_pointers(self) -> bool:
        """Whether a pointer may lie there: memory that only the kernel's own code fills."""
        return self.variable is not None


NULL = Target("null", GENERIC)


@dataclass
class Pointers:
    """The result: for every node that is a pointer what it may point to; and the arguments that are pointers.

    `nulls` gives, for a pointer that may be null, the class of pointers that share one null pointer; `null_stores`
    the same for stores of 0.
    """

    flow: Flow
    targets: dict[Node, dict[Target, None]] = field(default_factory=dict)
    arguments: dict[Component, str] = field(default_factory=dict)
    nulls: dict[Node, "NullClass"] = field(default_factory=dict)
    null_stores: dict[Access, "NullClass"] = field(default_factory=dict)
    _variables: dict[int, Target] = field(default_factory=dict)

    def type(self, node: Node) -> PtrType | None:
        """The type of a node that is a pointer; None for a number."""
        if node not in self.targets:
            return None
        shared = self.nulls.get(node)
        found = {target.space for target in (shared.targets if shared else self.targets[node])} - {GENERIC}
        return ptr(next(iter(found)) if len(found) == 1 else GENERIC if found else "global")

    def contents(self, target: Target, offset: int | None) -> list[Access]:
        """The stores of 64 bits that may have written what lies at an offset in a variable."""
        return [store for store in self.flow.stores if self._may_write(store, target, offset)]

    def _may_write(self, store: Access, target: Target, offset: int | None) -> bool:
        return any(
            found is target and (at is None or offset is None or at == offset)
            for found, at in self.places(store)
        )

    def places(self, access: Access) -> Iterator[tuple[Target, int | None]]:
        """Where an access may go: targets, and the offset where it is constant."""
        operand, node, _ = self.flow.address(access.site)
        offset = self.offset(access.site, operand)
        at = None if offset is None else offset + access.displacement
        variable = variable_of(operand, access.site)
        found = (
            [self.variable(variable)] if variable is not None else self.targets.get(node, ()) if node else ()
        )
        yield from ((target, at) for target in found if target is not NULL)

    def stored(self, store: Access) -> list[Target]:
        """What the value of a store points to; nothing for a number."""
        variable = variable_of(store.operand, store.site)
        if variable is not None:
            return [self.variable(variable)]
        if store.value is None:
            return [NULL] if isinstance(store.operand, ast.Integer) and store.operand.value == 0 else []
        return [NULL] if is_zero(store.value) else list(self.targets.get(store.value, ()))

    def nulls_stored(self, site: Site) -> list[Access]:
        """The elements of a store that are null pointers."""
        return [access for access in self.flow.stores_of(site) if access in self.null_stores]

    @cached_property
    def kept_type(self) -> PtrType:
        """The type that pointers have in memory: one for all of a kernel, so that loads and stores agree."""
        found = {target.space for store in self.flow.stores for target in self.stored(store)} - {GENERIC}
        return ptr(found.pop() if len(found) == 1 else GENERIC)

    def variable(self, variable: ast.Variable) -> Target:
        """The target that a variable is."""
        if id(variable) not in self._variables:
            self._variables[id(variable)] = Target(variable.name, variable.space, variable)
        return self._variables[id(variable)]

    def offset(self, site: Site, operand: ast.Operand, depth: int = 32) -> int | None:
        """The constant offset of an address operand in what it points to; None where it is not constant."""
        if variable_of(operand, site) is not None:
            return displacement(operand)
        added = displacement(operand)
        node = next(iter(self.flow.read(site, operand)), None)
        base = self.node_offset(node, depth) if node is not None else None
        return None if base is None or added is None else base + added

    def node_offset(self, node: Node, depth: int = 32) -> int | None:
        """The constant offset of a pointer in what it points to; None where it is not constant."""
        if is_argument(node):
            return 0
        if not isinstance(node, Definition) or depth == 0 or node in self.flow.loads:
            return None
        instruction, rule = node.site.instruction, self.flow.rules[node.site]
        sources = [
            operand
            for operand in carriers(node, rule)
            if variable_of(operand, node.site) or self.flow.read(node.site, operand)
        ]
        if len(sources) != 1 or rule.opcode not in ("mov", "add", "sub", "cvta", "cvt", "ld", "st"):
            return None
        base = self.offset(node.site, sources[0], depth - 1)
        rest = [operand for operand in instruction.operands[1:] if operand is not sources[0]]
        if base is None or rule.opcode not in ("add", "sub"):
            return base
        if len(rest) != 1 or not isinstance(rest[0], ast.Integer):
            return None
        return base + rest[0].value if rule.opcode == "add" else base - rest[0].value


@dataclass(eq=False)
class NullClass:
    """Pointers that are merged or compared with each other; a null pointer of theirs is one and the same."""

    targets: dict[Target, None] = field(default_factory=dict)


def infer_pointers(
    values: Values, rules: dict[Site, Rule], components: Iterable[Component], places: Places
) -> Pointers:
    """Find the pointers of a kernel.

    Raises DiagnosticError where a sum could take either operand for its pointer.
    """
    inference = _Inference(Flow(values, rules), components, places)
    inference.run()
    return inference.result


class _Inference:
    def __init__(self, flow: Flow, components: Iterable[Component], places: Places) -> None:
        self._flow = flow
        self._places = places
        self._components: dict[Register, Component] = {part.register: part for part in components}
        self._arguments = [node for node in flow.nodes if is_argument(node)]
        self._differences: set[Site] = set()
        self._demanded_loads: dict[Node, None] = {}
        self._buffers: dict[Component, Target] = {}
        self.result = Pointers(flow)

    def run(self) -> None:
        for node in self._arguments:
            component = self._component(node)
            if component.parameter.pointee is not None:
                self._mark_argument(component)
        while self._solve():
            pass
        self._classify_nulls()

    def _solve(self) -> bool:
        """Find all pointers, given the differences known; whether there are more differences then."""
        self.result.targets.clear()
        self._seed()
        while self._propagate_memory() or self._trace_all():
            self._seed()
        found = {
            site
            for site, rule in self._flow.rules.items()
            if rule.opcode == "sub" and any(map(self._is_pointer, self._flow.operands(site, "b")))
        }
        more = not found <= self._differences
        self._differences |= found
        return more

    def _component(self, node: Node) -> Component:
        return self._components[node.register]

    def _is_pointer(self, node: Node) -> bool:
        return node in self.result.targets

    # --------------------------------------------------------------- forward

    def _seed(self) -> None:
        """Mark addresses of variables and the arguments that are known to be pointers, and what follows."""
        for node in self._flow.nodes:
            if is_argument(node) and self._component(node) in self.result.arguments:
                self._mark(node, [self._buffer(self._component(node))])
            elif isinstance(node, Definition):
                operands = carriers(node, self._flow.rules[node.site])
                variables = [variable_of(operand, node.site) for operand in operands]
                self._mark(node, [self.result.variable(v) for v in variables if v is not None])

    def _buffer(self, component: Component) -> Target:
        if component not in self._buffers:
            space = self.result.arguments[component]
            self._buffers[component] = Target(component.name, space, component=component)
        return self._buffers[component]

    def _mark(self, node: Node, targets: Iterable[Target]) -> bool:
        """Add to what a node and all that is computed from it may point to; whether that is news."""
        news = False
        waiting = [(node, dict.fromkeys(targets))]
        while waiting:
            node, found = waiting.pop()
            known = self.result.targets.get(node, {})
            fresh = {target: None for target in found if target not in known}
            if not fresh:
                continue
            news = True
            self.result.targets[node] = known | fresh
            waiting += [(user, fresh) for user in self._flow.users.get(node, ()) if self._carries(user)]
        return news

    def _carries(self, user: Node) -> bool:
        return not (isinstance(user, Definition) and user.site in self._differences)

    def _propagate_memory(self) -> bool:
        """Mark what is loaded from variables to which only pointers are stored, or has to be a pointer."""
        news = False
        for node in self._flow.loads:
            kept = [list(self.result.stored(store)) for store in self._kept_by(node)]
            found = [target for targets in kept for target in targets]
            sure = node in self._demanded_loads or (all(kept) and any(t is not NULL for t in found))
            news |= sure and bool(found) and self._mark(node, found)
        return news

    # -------------------------------------------------------------- backward

    def _trace_all(self) -> bool:
        """Trace what has to be a pointer back to where it comes from; whether that found something.

        Sums that could take either operand for the pointer wait until nothing else helps.
        """
        possible = self._possible()
        for careful in (True, False):
            news = False
            for node in list(self._demanded()):
                news |= self._trace_back(node, possible, careful)
            if news:
                return True
        return False

    def _demanded(self) -> Iterator[Node]:
        """The nodes that have to be pointers and are not known to be."""
        for site, rule in self._flow.rules.items():
            roles = MEMORY if MEMORY in rule.role_names else "a" if rule.opcode == "cvta" else ""
            yield from (n for n in self._flow.operands(site, roles) if not self._is_pointer(n))
            if is_comparison(site):
                yield from self._partners(list(self._flow.operands(site, "ab")))
            elif rule.opcode == "sub" and site in self._differences:
                yield from (n for n in self._flow.operands(site, "a") if not self._is_pointer(n))
        for node in self._flow.nodes:
            if is_merge(node) and self._is_pointer(node):
                yield from (n for n in self._flow.sources[node] if not self._is_pointer(n))
        for node in self._demanded_loads:
            yield from self._kept(node)

    def _partners(self, nodes: list[Node]) -> list[Node]:
        """Of nodes that are compared, those that have to be pointers because another is one."""
        wide = all(node.register.width > 1 for node in nodes)
        return (
            [n for n in nodes if not self._is_pointer(n)]
            if wide and any(map(self._is_pointer, nodes))
            else []
        )

    def _kept(self, load: Node) -> Iterator[Node]:
        """The nodes that are stored where a pointer is loaded from."""
        stored = (store.value for store in self._kept_by(load))
        yield from (n for n in stored if n is not None and not self._is_pointer(n))

    def _kept_by(self, load: Node) -> list[Access]:
        """The stores that a load may read."""
        return [
            store
            for target, at in self.result.places(self._flow.loads[load])
            if target.holds_pointers
            for store in self.result.contents(target, at)
        ]

    def _possible(self) -> set[Node]:
        """All nodes that arguments or pointers can flow into, through memory as well."""
        reached = {*self._arguments, *self.result.targets}
        kept = [
            load
            for load, access in self._flow.loads.items()
            if any(target.holds_pointers for target, _ in self.result.places(access))
        ]
        waiting = [*reached, *kept]
        reached.update(kept)
        while waiting:
            fresh = [node for node in self._flow.users.get(waiting.pop(), ()) if node not in reached]
            reached.update(fresh)
            waiting += fresh
        return reached

    def _trace_back(self, target: Node, possible: set[Node], careful: bool) -> bool:
        """Mark the arguments from which a pointer must have come, and merges of null pointers alone."""
        news = False
        visited, waiting = {target}, [target]
        while waiting:
            node = waiting.pop()
            if is_argument(node) and not self._is_pointer(node):
                news |= self._mark_argument(self._component(node))
            elif node in self._flow.loads and node not in self._demanded_loads:
                self._demanded_loads[node] = None
                news = True
            sources = [n for n in self._flow.sources.get(node, ()) if n not in visited]
            if is_merge(node) and sources and all(map(self._is_null, self._flow.sources[node])):
                news |= self._mark(node, [NULL])
            chosen = self._chosen(node, [n for n in sources if n in possible], careful)
            waiting += chosen
            visited.update(chosen)
        return news

    def _is_null(self, node: Node) -> bool:
        return is_zero(node) or self.result.targets.get(node) == {NULL: None}

    def _mark_argument(self, component: Component) -> bool:
        if component in self.result.arguments:
            return False
        pointee = component.parameter.pointee
        self.result.arguments[component] = (pointee.space if pointee else None) or "global"
        return True

    def _chosen(self, node: Node, sources: list[Node], careful: bool) -> list[Node]:
        """The sources to follow; of a sum just the one that is the pointer."""
        is_sum = isinstance(node, Definition) and node.site.instruction.opcode == "add"
        if not is_sum or len(sources) < 2:
            return sources
        certain = [source for source in sources if self._is_pointer(source)]
        if certain:
            return certain
        likely = [source for source in sources if not self._flow.is_number(source)]
        if len(likely) == 1:
            return likely
        if careful:
            return []
        raise self._refusal(node, "either operand of this sum could be the pointer")

    def _refusal(self, node: Node, message: str) -> DiagnosticError:
        site = site_of(node)
        if site is None:
            return self._places.error(message, ast.Position(0, 0))
        return self._places.error(message, site.instruction.position, site.location)

    # ----------------------------------------------------------------- nulls

    def _classify_nulls(self) -> None:
        """Add NULL to what is merged with 0, and sort pointers that may be null into classes."""
        for node, targets in list(self.result.targets.items()):
            sources = self._flow.sources[node]
            literal = is_merge(node) and isinstance(node, Definition) and _has_zero_operand(node.site)
            if NULL not in targets and (literal or any(map(is_zero, sources))):
                self._mark(node, [NULL])
        classes, pointers = _Classes(), self.result.targets
        for load in [node for node in self._flow.loads if node in pointers]:
            for store in self._kept_by(load):
                if store.value in pointers:
                    classes.join(load, store.value)
        for node in pointers:
            for source in self._flow.sources[node]:
                if source in pointers:
                    classes.join(node, source)
        for site in filter(is_comparison, self._flow.rules):
            compared = [node for node in self._flow.operands(site, "ab") if node in pointers]
            for first, second in zip(compared, compared[1:], strict=False):
                classes.join(first, second)
        shared: dict[Node, NullClass] = {}
        for node, targets in pointers.items():
            found = shared.setdefault(classes.root(node), NullClass())
            found.targets |= {target: None for target in targets if target is not NULL}
        for node, targets in pointers.items():
            if NULL in targets:
                self.result.nulls[node] = shared[classes.root(node)]
        for load in [node for node in self._flow.loads if node in pointers]:
            zeros = (store for store in self._kept_by(load) if self.result.stored(store) == [NULL])
            self.result.null_stores |= {store: shared[classes.root(load)] for store in zeros}


class _Classes:
    """Disjoint sets of nodes."""

    def __init__(self) -> None:
        self._parents: dict[Node, Node] = {}

    def root(self, node: Node) -> Node:
        while node in self._parents:
            node = self._parents[node]
        return node

    def join(self, first: Node, second: Node) -> None:
        first, second = self.root(first), self.root(second)
        if first is not second:
            self._parents[first] = second


def _has_zero_operand(site: Site) -> bool:
    return any(isinstance(o, ast.Integer) and o.value == 0 for o in site.instruction.operands[1:3])


def site_of(node: Node) -> Site | None:
    """The instruction at which a node can be pointed out."""
    if isinstance(node, Definition):
        return node.site
    block: Block | None = node.block if isinstance(node, Phi) else None
    return (block.sites[0] if block.sites else block.closing) if block else None
