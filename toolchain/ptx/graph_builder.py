"""A kernel's statements as a control flow graph, with the device functions that it calls inlined.

A guarded instruction other than a branch becomes a branch around a block of its own, so that whatever follows
sees guards only on edges. An indexed branch and an indirect call become chains of comparisons; an
asynchronous copy becomes loads and stores.
"""

from collections.abc import Sequence
from dataclasses import replace

from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.async_copies import copy_body
from qgpu.toolchain.ptx.calls import MAX_INSTRUCTIONS, Frame, Routines
from qgpu.toolchain.ptx.cfg import BRANCH, CALL, ENDS, INDEXED_BRANCH, Block, Site, reachable
from qgpu.toolchain.ptx.names import Passed, Register, Scope
from qgpu.toolchain.ptx.places import Places, line_in_force
from qgpu.toolchain.ptx.system_calls import ASSERT

_CHOICE = "(choice)"
_TARGETS = (ast.BranchTargets, ast.CallTargets, ast.CallPrototype)


def build_graph(entry: ast.Entry, outer: Scope, routines: Routines, places: Places) -> list[Block]:
    """The blocks of a kernel in the order of the text, without those control cannot reach.

    The first block has no predecessors. Raises DiagnosticError where a branch names no label of its routine,
    where a call cannot be inlined, or where the kernel would grow beyond MAX_INSTRUCTIONS.
    """
    blocks = _GraphBuilder(routines, places).build(entry, outer)
    reached = reachable(blocks[0])
    return [block for block in blocks if block in reached]


class _GraphBuilder:
    def __init__(self, routines: Routines, places: Places) -> None:
        self._routines = routines
        self._places = places
        self._blocks = [Block("entry")]
        self._labels: dict[Scope, dict[str, Block]] = {}
        self._branches: list[tuple[Block, Site, ast.Operand | None]] = []
        self._line: ast.SourceLine | None = None
        self._open = True
        self._count = 0

    def build(self, entry: ast.Entry, outer: Scope) -> list[Block]:
        self._walk(entry.body, Scope(outer), Frame(entry.name), None)
        for block, site, name in self._branches:
            block.successors.insert(0, self._target(site, name))
        return self._blocks

    def _walk(self, body: ast.Body, scope: Scope, frame: Frame, after: Block | None) -> None:
        """Add a body's statements; a return goes to `after`, where there is such a block."""
        scope.meanings |= {found.name: found for found in body.statements if isinstance(found, _TARGETS)}
        for statement in body.statements:
            if isinstance(statement, ast.Instruction):
                location = self._places.location(self._line, statement.position)
                self._add(Site(statement, scope, location), frame, after)
            elif isinstance(statement, ast.SourceLine):
                self._line = line_in_force(self._line, statement)
            elif isinstance(statement, ast.Label):
                self._start_label(statement, scope)
            elif isinstance(statement, ast.Body):
                self._walk(statement, Scope(scope), frame, after)
            else:
                _declare(statement, scope)

    def _start(self, name: str) -> Block:
        """Begins a block; the one before falls through to it if it is still open."""
        return self._begin(Block(name))

    def _begin(self, block: Block) -> Block:
        if self._open:
            self._blocks[-1].successors.append(block)
        self._blocks.append(block)
        self._open = True
        return block

    def _start_label(self, label: ast.Label, scope: Scope) -> None:
        labels = self._labels.setdefault(scope, {})
        if label.name in labels:
            raise self._places.error(f"label '{label.name}' is defined twice", label.position)
        labels[label.name] = self._start(label.name.replace("%", "$"))

    def _add(self, site: Site, frame: Frame, after: Block | None) -> None:
        if not self._open:
            self._start("after")
        guard = site.instruction.guard
        if guard is None:
            self._append(site, frame, after)
            return
        block = self._blocks[-1]
        block.guard, block.closing = guard, site
        if site.instruction.opcode == BRANCH:
            self._branches.append((block, site, _only(site.instruction.operands)))
            self._start("next")
            return
        self._start("guarded")
        bare = replace(site.instruction, guard=None)
        self._append(Site(bare, site.scope, site.location), frame, after)
        block.successors.append(self._start("next"))

    def _append(self, site: Site, frame: Frame, after: Block | None) -> None:
        opcode = site.instruction.opcode
        if opcode == BRANCH:
            self._go(site, _only(site.instruction.operands))
        elif opcode == INDEXED_BRANCH:
            self._add_indexed_branch(site)
        elif opcode == CALL:
            self._add_call(site, frame)
        elif opcode in ENDS:
            self._end(site, after if opcode == "ret" else None)
        elif (body := copy_body(site)) is not None:
            self._walk(body, Scope(site.scope), frame, after)
        else:
            self._append_plain(site)

    def _append_plain(self, site: Site) -> None:
        self._blocks[-1].sites.append(site)
        self._count += 1
        if self._count > MAX_INSTRUCTIONS:
            message = f"with its functions inlined, the kernel has more than {MAX_INSTRUCTIONS} instructions"
            raise self._places.error(message, site.instruction.position, site.location)
        if site.instruction.opcode == ASSERT:
            self._blocks[-1].end = "assert"
            self._open = False

    def _end(self, site: Site, after: Block | None) -> None:
        """End the kernel, or the function whose continuation is `after`."""
        block = self._blocks[-1]
        block.closing = site
        self._open = False
        if after is None:
            block.end = ENDS[site.instruction.opcode]
        else:
            block.successors = [after]

    def _go(self, site: Site, target: ast.Operand | None) -> None:
        self._blocks[-1].closing = site
        self._open = False
        self._branches.append((self._blocks[-1], site, target))

    def _target(self, site: Site, target: ast.Operand | None) -> Block:
        scope: Scope | None = site.scope
        while isinstance(target, ast.Name) and scope is not None:
            found = self._labels.get(scope, {}).get(target.text)
            if found is not None:
                return found
            scope = scope.parent
        where = target.position if isinstance(target, ast.Name) else site.instruction.position
        raise self._places.error("the branch target is not a label of this kernel", where, site.location)

    def _choose(self, site: Site, comparison: str, operand: ast.Operand, number: int) -> Block:
        """End the block with a choice by setp `comparison` operand, number; goes on where that is true."""
        place = site.instruction.position
        scope = Scope(site.scope, {_CHOICE: Register(_CHOICE, "pred")})
        choice = ast.Name(_CHOICE, position=place)
        compared = ast.Instruction(
            "setp",
            tuple(comparison.split(".")),
            (choice, operand, ast.Integer(number, position=place)),
            None,
            position=place,
        )
        block = self._blocks[-1]
        block.sites.append(Site(compared, scope, site.location))
        jump = ast.Instruction(BRANCH, (), (choice,), None, position=place)
        block.guard, block.closing = ast.Guard(choice, False), Site(jump, scope, site.location)
        self._start("chosen")
        return block

    def _otherwise(self, chooser: Block) -> None:
        """Begin the block for where a choice was false."""
        self._open = False
        chooser.successors.append(self._start("other"))

    def _add_indexed_branch(self, site: Site) -> None:
        """brx.idx: a balanced tree of comparisons. PTX leaves open what an index beyond the list does."""
        operands = site.instruction.operands
        listed = operands[1] if len(operands) == 2 else None
        targets = site.scope.lookup(listed.text) if isinstance(listed, ast.Name) else None
        if not isinstance(targets, ast.BranchTargets) or site.instruction.modifiers[:1] != ("idx",):
            message = "brx.idx takes an index and the name of a .branchtargets list"
            raise self._places.error(message, site.instruction.position, site.location)
        self._dispatch(site, targets.labels, 0)

    def _dispatch(self, site: Site, labels: Sequence[ast.Name], first: int) -> None:
        if len({label.text for label in labels}) == 1:
            jump = replace(site.instruction, opcode=BRANCH, modifiers=(), operands=labels[:1])
            self._go(Site(jump, site.scope, site.location), labels[0])
            return
        half = len(labels) // 2
        chooser = self._choose(site, "lt.u32", site.instruction.operands[0], first + half)
        self._dispatch(site, labels[:half], first)
        self._otherwise(chooser)
        self._dispatch(site, labels[half:], first + half)

    def _add_call(self, site: Site, frame: Frame) -> None:
        try:
            call = site.instruction.call
        except ValueError as error:
            raise self._places.error(str(error), site.instruction.position, site.location) from None
        callees = self._routines.callees(site)
        direct = call.callee.text in (function.name for function in callees) or call.targets is None
        after = Block("returned")
        for function in callees if not direct else ():
            chooser = self._choose(site, "eq.u64", call.callee, self._routines.address(function))
            self._inline(function, site, frame, after)
            self._otherwise(chooser)
        if direct:
            self._inline(callees[0], site, frame, after)
        else:
            self._blocks[-1].end, self._blocks[-1].closing = "trap", None
        self._open = False
        self._begin(after)

    def _inline(self, function: ast.Function, site: Site, frame: Frame, after: Block) -> None:
        """Add a function's body at a call of it, and go on at the block `after`."""
        body = self._routines.body(function, site, frame)
        binding = self._routines.bind(function, site)
        line, returned = self._line, after
        for copy in binding.before:
            self._append_plain(copy)
        if binding.after:
            returned = Block("returned")
        self._walk(body, binding.scope, Frame(function.name, frame), returned)
        self._line = line
        if self._open:
            self._blocks[-1].successors.append(returned)
        if binding.after:
            self._open = False
            self._begin(returned)
            for copy in binding.after:
                self._append_plain(copy)
            returned.successors.append(after)


def _declare(statement: ast.Statement, scope: Scope) -> None:
    if isinstance(statement, ast.Registers):
        scope.declare(statement)
    elif isinstance(statement, ast.Variable):
        scope.meanings[statement.name] = statement
    elif isinstance(statement, ast.CallParameter):
        scope.meanings[statement.name] = Passed.declared(statement)


def _only(operands: tuple[ast.Operand, ...]) -> ast.Operand | None:
    """The operand, where there is one alone."""
    return operands[0] if len(operands) == 1 else None
