"""Selection: nodes to blocks, by covering each region's graph with as few blocks as inlining gives.

A region is covered from its end: what is visited is needed, and takes in those of its operands that nothing
else needs, the set that saves most, as long as the ports suffice. A block over all lanes costs a pass a lane;
a scalar block costs two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from qgpu.backends.machine.description import MachineDescription
from qgpu.toolchain.codegen.conditions import join_condition
from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.inline import as_test, inlined, inlined_index
from qgpu.toolchain.codegen.nodes import (
    ANY_SPACE,
    EFFECTS,
    MEMORY,
    MEMORY_2,
    Access,
    Arg,
    Expression,
    Node,
    Operand,
    Slot,
)
from qgpu.toolchain.codegen.places import Decisions, Places, RetryError
from qgpu.toolchain.codegen.regions import Region
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.routing import Accesses, Accumulator, Routing, route_with_constants
from qgpu.toolchain.codegen.selections import is_one_side, prefers_overwriting
from qgpu.toolchain.codegen.splitting import split

SCALAR_COST = 2

_MOST_TRIED = 512
"""Ways to grow a block that are tried at most."""


@dataclass(frozen=True, eq=False)
class Draft:
    """One block before scheduling.

    Attributes:
        root: the node whose effect or result it is.
        expression, access, second: what it computes, over nodes and registers. MEMORY is what the access
            names, the root's, or one that was taken in; MEMORY_2 is what the second one names.
        covers: the nodes computed in it, the root first.
        indices: sums that its address unit forms; others may form them as well.
        routing: how its operands reach it.
        writes: the node whose result goes to registers: the root, or a value that is computed on the way.
        tests: the condition that is true where the result is not 0; its predicate is written.
        branch: the branch that its result decides.
    """

    root: Node
    expression: Expression
    access: Access | None
    covers: tuple[Node, ...]
    second: Access | None = None
    indices: tuple[Node, ...] = ()
    routing: Routing | None = None
    writes: Node | None = None
    tests: Node | None = None
    branch: Node | None = None
    saved: int = 0

    @property
    def leaves(self) -> Iterator[Node]:
        """The nodes whose results it reads."""
        read: list[Operand] = [*self.expression.operands]
        for access in filter(None, (self.access, self.second)):
            read += access.args
        return (operand for operand in read if isinstance(operand, Node))


@dataclass(eq=False)
class Selection:
    """The blocks of every region, in the order of their roots."""

    drafts: dict[Region, list[Draft]] = field(default_factory=dict)


class Selector:
    """Covers the regions of one function."""

    def __init__(
        self, lowered: Lowered, places: Places, decisions: Decisions, machine: MachineDescription
    ) -> None:
        self.lowered = lowered
        self.places = places
        self.decisions = decisions
        self.lane_cost = machine.lanes + 1
        self.needed: set[Node] = set()
        self.covered: set[Node] = set()
        self.owners: set[Node] = set()
        self.read: set[Node] = set()
        self.read_slots = _slots_read_as_data(lowered)
        self.constants: dict[int, Register] = {}
        self.misplaced = False

    def run(self) -> Selection:
        """Cover all regions, the last first, so that all readers of a node come before it.

        Raises:
            RetryError: nodes were changed into ones that need predicates, which have no place yet.
        """
        selection = Selection()
        self._need_conditions()
        for region in reversed(self.lowered.regions):
            selection.drafts[region] = self._cover(region)
        if self.misplaced:
            raise RetryError
        return selection

    def constant(self, number: int) -> Register:
        """The uniform register of a constant."""
        if number not in self.constants:
            name = f"const:{number}"
            self.constants[number] = Register("uniform", name, pinned=True, preload=name)
        return self.constants[number]

    def _need_conditions(self) -> None:
        for region in self.lowered.regions:
            for condition, _ in (*region.guard, *(c for node in region.nodes for c in node.guard or ())):
                if isinstance(condition, Node):
                    self.needed.add(condition)
        self.needed |= set(self.places.computed)

    def _cover(self, region: Region) -> list[Draft]:
        owner = self._branch_owner(region)
        self.owners.update(filter(None, [owner]))
        drafts: list[Draft] = []
        pending = list(region.nodes)
        while pending:
            node = pending.pop()
            if node in self.covered or not self._is_root(node, owner):
                continue
            if join_condition(node, region, self.places.computed, self.owners):
                self.misplaced = True
                continue
            draft = self._best(self._started(node), region)
            if draft.routing is None or prefers_overwriting(node, self.places.computed):
                pending += self._split(node, region)
                continue
            self.covered.update(draft.covers)
            self._read_leaves(draft)
            if node.over:
                self.needed.add(node.over)
                self.read.update([node.over] if self._is_read(node) else ())
            if node is owner:
                draft = replace(draft, branch=region.branch)
            drafts.append(draft)
        return drafts[::-1]

    def _split(self, node: Node, region: Region) -> list[Node]:
        """Split a node; returns what is to be covered now."""
        steps = split(node, region)
        if node.over is None:
            return steps
        self.misplaced = True
        return []

    def _read_leaves(self, draft: Draft) -> None:
        """Note what a block reads: through nodes computed twice, more than its root did at first."""
        self.needed.update(draft.leaves)
        self.read.update(draft.leaves)
        for leaf in draft.leaves:
            leaf.users[draft.root] = None

    def _started(self, node: Node) -> Draft:
        """The draft of a root alone. A test for 0 whose result is not read is as good as what it tests."""
        draft = Draft(node, node.expression, node.access, (node,), writes=node)
        if node.kind != "value" or self._is_read(node):
            return draft
        test = as_test(node.expression)
        return replace(draft, expression=test, writes=None, tests=node) if test else draft

    def _is_read(self, node: Node) -> bool:
        """Whether a block reads the word of a result, and does not only test it."""
        set_ = self.places.computed.get(node)
        return node in self.read or (set_ is not None and set_.slot in self.read_slots)

    def _is_root(self, node: Node, owner: Node | None) -> bool:
        if node.kind == "branch":
            return owner is None
        if node.kind == "set":
            return node not in self.places.writers
        if node.kind in EFFECTS:
            return True
        return (node in self.needed or node is owner) and node not in self.places.aliases

    def _branch_owner(self, region: Region) -> Node | None:
        """The node whose block can take the region's branch, or None where the branch needs its own.

        A block decides by the lanes that it visits, so none can that writes one side of a selection alone.
        """
        branch = region.branch
        value = branch.expression.moved if branch else None
        if branch is None or not isinstance(value, Node):
            return None
        fits = value.block is region.block and value.uniform == branch.uniform and not is_one_side(value)
        if fits and value.kind in ("value", "load") and branch not in self.decisions.detached:
            return value
        if branch in self.decisions.alone:
            return None
        copies = (node for node in region.nodes if node.kind == "set" and node.expression.moved is value)
        free = (node for node in copies if node not in self.places.writers and node.uniform == branch.uniform)
        return next(free, None)

    # Growing a draft

    def _best(self, draft: Draft, region: Region) -> Draft:
        """The draft grown by the nodes that save most, or itself; without a routing if none has one.

        Nodes are taken in depth first, a set of them once, in whatever order.
        """
        best = replace(draft, routing=self._routing(draft))
        seen = {_identity(draft)}
        pending = [iter(tuple(self._grown(draft, region)))]
        while pending and len(seen) < _MOST_TRIED:
            grown = next(pending[-1], None)
            if grown is None:
                pending.pop()
                continue
            identity = _identity(grown)
            if identity in seen:
                continue
            seen.add(identity)
            candidate = replace(grown, routing=self._routing(grown))
            if candidate.routing and (best.routing is None or candidate.saved > best.saved):
                best = candidate
            pending.append(iter(tuple(self._grown(candidate, region))))
        return best

    def _grown(self, draft: Draft, region: Region) -> Iterator[Draft]:
        for node in dict.fromkeys(draft.leaves):
            if self._may_cover(draft, node, region):
                for expression in inlined(draft.expression, node):
                    yield self._covering(draft, node, expression)
            elif draft.root.kind == "set" and draft.expression.moved is node and _is_comparison(node, region):
                yield replace(draft, expression=node.expression, saved=draft.saved + 1)
            if draft.access and self._may_cover_index(draft, node, region):
                for access in inlined_index(draft.access, node):
                    saved = draft.saved + self._cost(node)
                    yield replace(draft, access=access, indices=(*draft.indices, node), saved=saved)

    def _cost(self, node: Node) -> int:
        return SCALAR_COST if node.uniform else self.lane_cost

    def _covering(self, draft: Draft, node: Node, expression: Expression) -> Draft:
        shared = node in self.places.computed or set(node.users) - set(draft.covers)
        access, second = draft.access or node.access, draft.second
        if node.access and node.access != access:
            second = node.access
            operands = (MEMORY_2 if operand is node else operand for operand in draft.expression.operands)
            expression = draft.expression.with_operands(*operands)
        return replace(
            draft,
            expression=expression,
            access=access,
            second=second,
            covers=(*draft.covers, node),
            saved=draft.saved + self._cost(node),
            writes=node if shared else draft.writes,
        )

    def _may_cover(self, draft: Draft, node: Node, region: Region) -> bool:
        if node.kind not in ("value", "load") or node.block is not region.block or node.predicate:
            return False
        if node not in draft.expression.operands or any(
            node in access.args for access in (draft.access, draft.second) if access
        ):
            return False
        if node.over or node.guard or node in self.owners or (node.access and draft.root.guard is not None):
            return False
        alone = set(node.users) <= set(draft.covers) and node not in self.places.computed
        if not alone and not self._may_share(draft, node, region):
            return False
        if node.access and not self._may_read(draft, node, region):
            return False
        return not (draft.root.uniform and not node.uniform)

    def _may_share(self, draft: Draft, node: Node, region: Region) -> bool:
        """Whether a block may compute what it stores or tests for others too: none of them comes before."""
        root = draft.root
        if draft.expression.moved is not node or node.uniform != root.uniform or root.guard is not None:
            return False
        if root.kind != "store":
            return False
        others = (user for user in node.users if user is not root and user.block is region.block)
        return not any(user.order < root.order for user in others)

    def _may_read(self, draft: Draft, load: Node, region: Region) -> bool:
        """Whether a load may move down to the draft's root: nothing between may write what it reads.

        A block's lanes access memory one after another. So the root must not write for one lane what the load
        reads for another.
        """
        if draft.access == load.access:
            if MEMORY in draft.expression.operands:
                return False
        elif draft.access and (draft.second or not self._may_be_second(draft, load)):
            return False
        between = region.nodes[load.order + 1 : draft.root.order]
        return not any(interferes(load, other) for other in between if other not in draft.covers)

    def _may_be_second(self, draft: Draft, load: Node) -> bool:
        assert load.access and draft.access
        if load.volatile and draft.root.volatile:
            return False
        return not draft.root.writes_memory or are_distinct(load.access, draft.access)

    def _may_cover_index(self, draft: Draft, node: Node, region: Region) -> bool:
        """Whether an index need not be computed: all that use it are accesses of this region."""
        if node.block is not region.block or node in self.places.computed or node.predicate:
            return False
        return all(
            user in draft.indices
            or (user.block is region.block and user.access and node not in user.expression.operands)
            for user in node.users
        )

    def _routing(self, draft: Draft) -> Routing | None:
        expression = draft.expression.with_operands(*map(_register, draft.expression.operands))
        first, second = (access and with_registers(access) for access in (draft.access, draft.second))
        return route_with_constants(
            expression, Accesses(first, second), self.constant, self._accumulator(draft)
        )

    def _accumulator(self, draft: Draft) -> Accumulator | None:
        """What a block may read through the accumulator port: the register that it writes, if it writes one,
        or that of a value that is not read again, which can be the same register.
        """
        if draft.root.uniform or draft.root in self.decisions.plain:
            return None
        place = draft.writes.slot if draft.writes and draft.writes.kind == "set" else draft.writes
        if place is None or place.data is None:
            return Accumulator()
        last = (node.data for node in draft.leaves if self._is_last_read(draft, node))
        return Accumulator(frozenset(filter(None, (place.data, *last))))

    def _is_last_read(self, draft: Draft, node: Node) -> bool:
        """Whether nothing after a block reads a value of the same region."""
        root = draft.root
        if node.kind not in ("value", "load") or node.block is not root.block or node in self.places.computed:
            return False
        return all(user.block is root.block and user.order <= root.order for user in node.users)


def _is_comparison(node: Node, region: Region) -> bool:
    """Whether a node may be computed twice in its region: a comparison in all lanes there."""
    return node.expression.op == "cmp" and node.guard is None and node.block is region.block


def _slots_read_as_data(lowered: Lowered) -> set[Slot]:
    """The slots whose words are read, not only their predicates."""
    gets = (node for region in lowered.regions for node in region.nodes if node.kind == "get")
    return {get.slot for get in gets if get.slot and any(_reads_word(user, get) for user in get.users)}


def _reads_word(user: Node, get: Node) -> bool:
    return user.kind != "branch" or get.predicate is None


def _identity(draft: Draft) -> tuple[object, ...]:
    """What two drafts have in common that differ only in the order in which nodes were taken in."""
    return draft.expression, draft.access, draft.second, frozenset(draft.covers), frozenset(draft.indices)


def _register(operand: Operand) -> Operand:
    return operand.data if isinstance(operand, Node) and operand.data else operand


def _arg_register(arg: Arg) -> Arg:
    return arg.data if isinstance(arg, Node) and arg.data else arg


def with_registers(access: Access) -> Access:
    """The access with the registers of the nodes that it reads."""
    terms = tuple(replace(term, value=_arg_register(term.value)) for term in access.terms)
    return replace(access, descriptor=_arg_register(access.descriptor), terms=terms)


def narrowing_set(branch: Node, region: Region) -> Node | None:
    """The set that gives a slot of the region's own guard the branch's condition, if there is one."""
    condition = branch.expression.moved
    if branch.kind != "branch" or not isinstance(condition, Node):
        return None
    for node in region.nodes:
        if node.kind == "set" and node.expression.moved is condition and (node.slot, True) in region.guard:
            return node
    return None


def interferes(a: Node, b: Node) -> bool:
    """Whether the order of two nodes of a region matters for memory."""
    if "fence" in (a.kind, b.kind) or "trap" in (a.kind, b.kind):
        return True
    if not (a.access and b.access):
        return False
    if a.volatile and b.volatile:
        return True
    return (a.writes_memory or b.writes_memory) and not are_distinct(a.access, b.access)


def are_distinct(a: Access, b: Access) -> bool:
    """Whether two accesses are to different spaces, or to different buffers that the host lays out.

    A descriptor that is pinned is one of these; all of memory is named by accesses of any space alone.
    """
    if ANY_SPACE in (a.space, b.space):
        return False
    if a.space != b.space:
        return True
    return a.descriptor is not b.descriptor and all(
        isinstance(access.descriptor, Register) and access.descriptor.pinned for access in (a, b)
    )
