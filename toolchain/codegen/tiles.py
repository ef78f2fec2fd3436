"""Tiles: blocks with virtual registers, linked to those that follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qgpu.ir import Location
from qgpu.toolchain.codegen.nodes import Access, Expression, Node, Slot, move
from qgpu.toolchain.codegen.regions import Region
from qgpu.toolchain.codegen.registers import Guard, GuardLiteral, Register
from qgpu.toolchain.codegen.routing import Routing, route
from qgpu.toolchain.codegen.selection import Draft, narrowing_set, with_registers


@dataclass(eq=False)
class Tile:
    """One block of the program, but for the numbers of its registers.

    Attributes:
        routing: operands and how they reach the arithmetic unit.
        access, second: the memory it reads or writes.
        guard: lanes that take part, of a block over lanes.
        scalar: whether it is visited once, whatever the guard.
        data, predicate: destinations of the result.
        stores, stores_second: whether the result goes to memory, and by which access.
        trap: the fault of a trap, or None.
        message: what the assertion says that the trap stands for.
        ends_thread_block: whether it runs once after each thread block.
        everyone: whether lanes without a thread take part as well (the host's preloads).
        next: the tile that follows, or None at the end of the launch.
        taken: the tile that follows if some lane's result is not 0, or None where next always does.
        idle: the tile that follows if no lane takes part, or None where next does then as well.
        bound: whether the result is the bound of the predicate.
        complete: whether all threads take part in what follows by `next`.
        flat: the tile that stands for it in thread blocks of one dimension.
        root: the node that it is for, if it is for one.
    """

    routing: Routing
    access: Access | None = None
    guard: Guard = ()
    scalar: bool = False
    data: Register | None = None
    predicate: Register | None = None
    stores: bool = False
    trap: int | None = None
    message: str = ""
    everyone: bool = False
    ends_thread_block: bool = False
    loc: Location | None = None
    next: Tile | None = None
    taken: Tile | None = None
    second: Access | None = None
    stores_second: bool = False
    idle: Tile | None = None
    bound: bool = False
    complete: bool = False
    flat: Tile | None = None
    root: Node | None = None

    @property
    def successors(self) -> Iterator[Tile]:
        yield from (tile for tile in (self.next, self.taken, self.idle) if tile is not None)

    @property
    def touches_memory(self) -> bool:
        """Whether it accesses memory."""
        return self.access is not None or self.second is not None

    @property
    def outside(self) -> frozenset[GuardLiteral]:
        """The literals that hold in none of the lanes that take part."""
        return frozenset(~literal for literal in self.guard)

    @property
    def source(self) -> Register | None:
        """The register that the tile copies, if that is all it does."""
        if self.data is None or self.predicate or self.taken or self.touches_memory or self.trap is not None:
            return None
        moved = self.routing.expression.moved
        return moved if isinstance(moved, Register) and moved.kind == self.data.kind else None


def tile_of(draft: Draft, region: Region) -> Tile:
    """The tile of a draft."""
    root = draft.root
    guard = () if root.uniform else guard_registers(region.guard if root.guard is None else root.guard)
    routing = draft.routing
    assert routing is not None
    access, second = (found and with_registers(found) for found in (draft.access, draft.second))
    if routing.exchanged:
        access, second = second, access
    condition = draft.expression.moved
    if root.kind == "branch" and isinstance(condition, Node) and not root.uniform:
        if narrowing_set(root, region):
            routing = routed(move(1))
        elif condition.predicate:
            guard = (*guard, GuardLiteral(condition.predicate, True))
            routing = routed(move(1))
    tile = Tile(routing, access, guard, root.uniform, loc=root.loc, second=second, root=root)
    tile.stores = root.writes_memory and not routing.exchanged
    tile.stores_second = root.writes_memory and routing.exchanged
    tile.trap = root.trap if root.kind == "trap" else None
    tile.message = root.message
    _give_destinations(tile, draft)
    return tile


def _give_destinations(tile: Tile, draft: Draft) -> None:
    writes = draft.writes
    place: Slot | Node | None = writes.slot if writes and writes.kind == "set" else writes
    if place is not None and (writes is None or writes.kind != "branch"):
        tile.data, tile.predicate = place.data, place.predicate
    if draft.tests is not None:
        tile.predicate = draft.tests.predicate


def guard_registers(guard: tuple[tuple[Node | Slot, bool], ...]) -> Guard:
    """A guard over predicate registers."""
    literals = []
    for condition, polarity in guard:
        assert condition.predicate is not None
        literals.append(GuardLiteral(condition.predicate, polarity))
    return tuple(dict.fromkeys(literals))


def routed(expression: Expression) -> Routing:
    """The routing of an expression over registers and constants that is known to have one."""
    routing = route(expression, None)
    assert routing is not None
    return routing
