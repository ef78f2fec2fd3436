"""A kernel's statements as a control flow graph.

A guarded instruction other than a branch becomes a branch around a block of its own, so that whatever follows
sees guards only on edges.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from qgpu.ir import Location
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.names import Scope
from qgpu.toolchain.ptx.places import Places, line_in_force

BRANCH = "bra"
ENDS = {"ret": "ret", "exit": "ret", "trap": "trap"}


@dataclass(eq=False)
class Site:
    """An instruction with the scope its names are read in and its place in the source."""

    instruction: ast.Instruction
    scope: Scope
    location: Location


@dataclass(eq=False)
class Block:
    """Straight-line instructions; a `guard` chooses the first of two different successors where it holds.

    Without successors the block ends the kernel as `end` says: `ret` or `trap`. `closing` is the instruction
    that the last transfer of control comes from, None where control falls through.
    """

    name: str
    sites: list[Site] = field(default_factory=list)
    guard: ast.Guard | None = None
    successors: list["Block"] = field(default_factory=list)
    end: str = "ret"
    closing: Site | None = None


def build_graph(entry: ast.Entry, outer: Scope, places: Places) -> list[Block]:
    """The blocks of a kernel in the order of the text, without those control cannot reach.

    The first block has no predecessors. Raises DiagnosticError where a branch names no label of the kernel.
    """
    blocks = _GraphBuilder(places).build(entry.body, outer)
    reached = reachable(blocks[0])
    return [block for block in blocks if block in reached]


def reachable(first: Block) -> set[Block]:
    """The blocks control can reach from a block, itself among them."""
    reached, waiting = {first}, [first]
    while waiting:
        fresh = [block for block in waiting.pop().successors if block not in reached]
        reached.update(fresh)
        waiting += fresh
    return reached


def predecessors(blocks: list[Block]) -> dict[Block, list[Block]]:
    """For every block those that may go to it, each once, in block order."""
    result: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in blocks:
        for successor in block.successors:
            result[successor].append(block)
    return result


class _GraphBuilder:
    def __init__(self, places: Places) -> None:
        self._places = places
        self._blocks = [Block("entry")]
        self._labels: dict[str, Block] = {}
        self._branches: list[tuple[Block, Site]] = []
        self._line: ast.SourceLine | None = None
        self._open = True

    def build(self, body: ast.Body, outer: Scope) -> list[Block]:
        for item, scope in _walk(body, Scope(outer)):
            if isinstance(item, ast.SourceLine):
                self._line = line_in_force(self._line, item)
            elif isinstance(item, ast.Label):
                self._start_label(item)
            else:
                location = self._places.location(self._line, item.position)
                self._add(Site(item, scope, location))
        for block, site in self._branches:
            block.successors.insert(0, self._target(site))
        return self._blocks

    def _start(self, name: str) -> Block:
        """Begins a block; the one before falls through to it if it is still open."""
        block = Block(name)
        if self._open:
            self._blocks[-1].successors.append(block)
        self._blocks.append(block)
        self._open = True
        return block

    def _start_label(self, label: ast.Label) -> None:
        if label.name in self._labels:
            raise self._places.error(f"label '{label.name}' is defined twice", label.position)
        self._labels[label.name] = self._start(label.name.replace("%", "$"))

    def _add(self, site: Site) -> None:
        if not self._open:
            self._start("after")
        if site.instruction.guard is None:
            self._append(site)
        else:
            self._append_guarded(site, site.instruction.guard)

    def _append(self, site: Site) -> None:
        block, opcode = self._blocks[-1], site.instruction.opcode
        if opcode != BRANCH and opcode not in ENDS:
            block.sites.append(site)
            return
        block.closing = site
        self._open = False
        if opcode == BRANCH:
            self._branches.append((block, site))
        else:
            block.end = ENDS[opcode]

    def _append_guarded(self, site: Site, guard: ast.Guard) -> None:
        block = self._blocks[-1]
        block.guard, block.closing = guard, site
        if site.instruction.opcode == BRANCH:
            self._branches.append((block, site))
            self._start("next")
            return
        self._start("guarded")
        self._append(Site(replace(site.instruction, guard=None), site.scope, site.location))
        block.successors.append(self._start("next"))

    def _target(self, site: Site) -> Block:
        operands = site.instruction.operands
        target = operands[0] if len(operands) == 1 else None
        if isinstance(target, ast.Name) and target.text in self._labels:
            return self._labels[target.text]
        where = target.position if isinstance(target, ast.Name) else site.instruction.position
        raise self._places.error("the branch target is not a label of this kernel", where, site.location)


def _walk(
    body: ast.Body, scope: Scope
) -> Iterator[tuple[ast.SourceLine | ast.Label | ast.Instruction, Scope]]:
    """Lines, labels and instructions in order, with the innermost scope around them."""
    for statement in body.statements:
        if isinstance(statement, ast.Registers):
            scope.declare(statement)
        elif isinstance(statement, ast.Variable):
            scope.meanings[statement.name] = statement
        elif isinstance(statement, ast.Body):
            yield from _walk(statement, Scope(scope))
        elif isinstance(statement, ast.SourceLine | ast.Label | ast.Instruction):
            yield statement, scope
