"""Pointer inference: which values are addresses, and of what.

PTX keeps addresses in integer registers. Certain to be a pointer are the address of a variable and a
parameter declared `.ptr`; from there the property flows forward to all that is computed from them. What is
used as an address, converted by cvta, or merged or compared with a pointer has to be one: it is traced back
to the parameters that it must have come from, through variables of the kernel in which pointers are kept.
"""

from collections.abc import Iterable, Iterator

from qgpu.toolchain.diagnostics import DiagnosticError
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Block, Site
from qgpu.toolchain.ptx.names import Register
from qgpu.toolchain.ptx.null_pointers import classify_nulls
from qgpu.toolchain.ptx.passing import Component
from qgpu.toolchain.ptx.places import Places
from qgpu.toolchain.ptx.pointer_flow import (
    Flow,
    carriers,
    has_zero_operand,
    is_argument,
    is_comparison,
    is_merge,
    variable_of,
)
from qgpu.toolchain.ptx.pointer_targets import NULL, Pointers, Target
from qgpu.toolchain.ptx.rule import MEMORY, Rule
from qgpu.toolchain.ptx.ssa import Definition, Node, Phi, Values


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
        classify_nulls(self.result)

    def _solve(self) -> bool:
        """Find all pointers, given the differences known; whether there are more differences then."""
        self.result.targets.clear()
        self._seed()
        while self._propagate_memory() or self._add_nulls() or self._trace_all():
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
            self.result.add(node, fresh)
            waiting += [(user, fresh) for user in self._flow.users.get(node, ()) if self._carries(user)]
        return news

    def _carries(self, user: Node) -> bool:
        return not (isinstance(user, Definition) and user.site in self._differences)

    def _propagate_memory(self) -> bool:
        """Mark what is loaded from variables to which only pointers are stored, or has to be a pointer."""
        news = False
        for node in self._flow.loads:
            kept = [list(self.result.stored(store)) for store in self.result.kept_by(node)]
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
        stored = (store.value for store in self.result.kept_by(load))
        yield from (n for n in stored if n is not None and not self._is_pointer(n))

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
        return self._flow.is_zero(node) or self.result.targets.get(node) == {NULL: None}

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

    def _add_nulls(self) -> bool:
        """Add NULL to what is merged with 0; whether that is news."""
        news = False
        for node, targets in list(self.result.targets.items()):
            literal = isinstance(node, Definition) and is_merge(node) and has_zero_operand(node.site)
            if NULL not in targets and (literal or any(map(self._flow.is_zero, self._flow.sources[node]))):
                news |= self._mark(node, [NULL])
        return news

    def _refusal(self, node: Node, message: str) -> DiagnosticError:
        site = site_of(node)
        if site is None:
            return self._places.error(message, ast.Position(0, 0))
        return self._places.error(message, site.instruction.position, site.location)


def site_of(node: Node) -> Site | None:
    """The instruction at which a node can be pointed out."""
    if isinstance(node, Definition):
        return node.site
    block: Block | None = node.block if isinstance(node, Phi) else None
    return (block.sites[0] if block.sites else block.closing) if block else None
