"""What pointers point to: the result of pointer inference, and what of it can be asked."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from qgpu.ir import PtrType, ptr
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Site
from qgpu.toolchain.ptx.passing import Component
from qgpu.toolchain.ptx.pointer_flow import Access, Flow, carriers, displacement, is_argument, variable_of
from qgpu.toolchain.ptx.ssa import Definition, Node

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

    `nulls` gives, for a pointer that may be null, the class of pointers that share one null pointer;
    `null_stores` the same for stores of 0.
    """

    flow: Flow
    targets: dict[Node, dict[Target, None]] = field(default_factory=dict)
    arguments: dict[Component, str] = field(default_factory=dict)
    nulls: dict[Node, "NullClass"] = field(default_factory=dict)
    null_stores: dict[Access, "NullClass"] = field(default_factory=dict)
    _variables: dict[int, Target] = field(default_factory=dict)
    _stores_to: dict[Target, dict[int | None, list[Access]]] | None = None

    def type(self, node: Node) -> PtrType | None:
        """The type of a node that is a pointer; None for a number."""
        if node not in self.targets:
            return None
        shared = self.nulls.get(node)
        found = {target.space for target in (shared.targets if shared else self.targets[node])} - {GENERIC}
        return ptr(next(iter(found)) if len(found) == 1 else GENERIC if found else "global")

    def add(self, node: Node, found: dict[Target, None]) -> None:
        """Add to what a node may point to."""
        self.targets[node] = self.targets.get(node, {}) | found
        self._stores_to = None

    def contents(self, target: Target, offset: int | None) -> list[Access]:
        """The stores of 64 bits that may have written what lies at an offset in a variable."""
        if self._stores_to is None:
            self._stores_to = self._index()
        found = self._stores_to.get(target, {})
        if offset is None:
            return [store for stores in found.values() for store in stores]
        return [*found.get(offset, ()), *found.get(None, ())]

    def _index(self) -> dict[Target, dict[int | None, list[Access]]]:
        """The stores to each target by their offset, None where it is not constant."""
        result: dict[Target, dict[int | None, list[Access]]] = {}
        for store in self.flow.stores:
            for target, at in self.places(store):
                result.setdefault(target, {}).setdefault(at, []).append(store)
        return result

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

    def kept_by(self, load: Node) -> list[Access]:
        """The stores that a load may read."""
        return [
            store
            for target, at in self.places(self.flow.loads[load])
            if target.holds_pointers
            for store in self.contents(target, at)
        ]

    def stored(self, store: Access) -> list[Target]:
        """What the value of a store points to; nothing for a number."""
        variable = variable_of(store.operand, store.site)
        if variable is not None:
            return [self.variable(variable)]
        if store.value is None:
            return [NULL] if isinstance(store.operand, ast.Integer) and store.operand.value == 0 else []
        return [NULL] if self.flow.is_zero(store.value) else list(self.targets.get(store.value, ()))

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
