"""Unrolling of loops whose number of rounds is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.analysis.dominators import DominatorTree, dominance_frontiers
from qgpu.ir.analysis.loops import Loop, LoopInfo
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.folding import evaluate
from qgpu.ir.core.function import Array, Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Constant, Use, Value
from qgpu.ir.passes.dead_code import remove_dead_instructions, remove_unreachable_blocks
from qgpu.ir.passes.manager import Pass
from qgpu.ir.passes.simplify.control_flow import go_to
from qgpu.ir.passes.variables import Variable

ACCESSES = ("load", "store")
DERIVED = ("ptradd", "ptrcast", "phi", "select")


@dataclass(frozen=True)
class Unroll(Pass):
    """Writes a loop with a constant number of rounds out, round by round.

    Contract: each thread does what it did, in the same order. On the machine a counter that all threads share
    costs two passes a round however many threads there are, so that unrolling alone saves next to nothing
    and costs program memory. It pays where it makes indices of local arrays constant, so that
    `promote-local` can keep them in registers. Options: `limit` is how many instructions such a loop may
    come to, `plain` the same for all other loops.
    """

    name: ClassVar[str] = "unroll"
    limit: int = 1024
    plain: int = 0

    def run(self, function: Function) -> bool:
        if function.linearised:
            return False
        changed = False
        while self._unroll_one(function):
            changed = True
        if changed:
            remove_dead_instructions(function)
        return changed

    def _unroll_one(self, function: Function) -> bool:
        """Unrolls the first innermost loop that is worth it; loops around it come to be innermost."""
        if not self.plain and not any(array.space == "local" for array in function.shared):
            return False
        loops = LoopInfo(function)
        counted = {loop: found for loop in loops.loops if (found := count_rounds(loops, loop)) is not None}
        wanted = loops_of_local_indices(function, loops, set(counted))
        for loop in reversed(loops.loops):
            if loop not in counted or loop.children:
                continue
            rounds = counted[loop]
            size = sum(len(block.instructions) for block in loop.blocks) * (rounds.back_edges + 1)
            if size <= (self.limit if loop in wanted else self.plain):
                unroll(function, loop, rounds)
                return True
        return False


@dataclass(frozen=True)
class Rounds:
    """How often a loop's back edge is taken before the branch at the end of `exiting` leaves it."""

    back_edges: int
    exiting: BasicBlock
    stay: BasicBlock
    leave: BasicBlock


MOST_ROUNDS = 256


def count_rounds(loops: LoopInfo, loop: Loop) -> Rounds | None:
    """The rounds of a loop that a branch on constants, which every round reaches, ends; None for others."""
    if len(loop.latches) != 1:
        return None
    for block in loop.exiting_blocks:
        branch = block.terminator
        if branch.op != "condbr" or not loops.tree.dominates(block, loop.latches[0]):
            continue
        then, otherwise = branch.attrs["then"], branch.attrs["else"]
        stay, leave = (then, otherwise) if then in loop else (otherwise, then)
        number = _rounds_until(loop, branch.operands[0], stay is then)
        if number is not None:
            return Rounds(number, block, stay, leave)
    return None


def _rounds_until(loop: Loop, condition: Value, stays_if: bool) -> int | None:
    """In which round a condition, followed from the constants before the loop, lets the loop end."""
    state = {phi: value for phi in loop.header.phis if (value := _initial(loop, phi)) is not None}
    for number in range(MOST_ROUNDS):
        known: dict[Value, int | None] = {**state}
        outcome = _number(loop, condition, known)
        if outcome is None:
            return None
        if bool(outcome) != stays_if:
            return number
        following = {phi: _number(loop, _carried(loop, phi), known) for phi in state}
        state = {phi: value for phi, value in following.items() if value is not None}
    return None


def _initial(loop: Loop, phi: Instruction) -> int | None:
    """The constant that a phi starts with."""
    values = {value for value, source in phi.incoming if source not in loop}
    value = values.pop() if len(values) == 1 else None
    return value.value if isinstance(value, Constant) else None


def _carried(loop: Loop, phi: Instruction) -> Value:
    """What a phi takes over from the round before."""
    return next(value for value, source in phi.incoming if source in loop)


def _number(loop: Loop, value: Value, known: dict[Value, int | None]) -> int | None:
    """The number that a value has in this round, if it follows from constants and `known`."""
    if isinstance(value, Constant):
        return value.value
    if value in known or not isinstance(value, Instruction) or value.parent not in loop:
        return known.get(value)
    known[value] = None
    if value.info.evaluate is not None:
        numbers = [_number(loop, operand, known) for operand in value.operands]
        complete = [number for number in numbers if number is not None]
        if len(complete) == len(numbers):
            known[value] = evaluate(value, complete)
    return known[value]


def loops_of_local_indices(function: Function, loops: LoopInfo, counted: set[Loop]) -> set[Loop]:
    """The loops to unroll so that every access to some local array is at a constant offset."""
    headers = {loop.header: loop for loop in counted}
    wanted: set[Loop] = set()
    for array in function.shared:
        if array.space == "local":
            found = _loops_of_array(function, array, headers)
            wanted |= found or set()
    return wanted


def _loops_of_array(function: Function, array: Array, headers: dict[BasicBlock, Loop]) -> set[Loop] | None:
    """The loops that count where an array is accessed; None where something else says so too."""
    pointers: list[Instruction] = [
        i for i in function.instructions if i.op == "addrof" and i.attrs["name"] == array.name
    ]
    found: set[Loop] = set()
    for pointer in pointers:
        if not _counts(pointer, headers, found, set()):
            return None
        for use in pointer.uses:
            user = use.user
            if not isinstance(user, Instruction) or user.op not in (*DERIVED, *ACCESSES):
                return None
            if user.op in ACCESSES and use.index != 0:
                return None
            if user.op in DERIVED and user not in pointers:
                pointers.append(user)
    return found


def _counts(value: Value, headers: dict[BasicBlock, Loop], found: set[Loop], visited: set[Value]) -> bool:
    """Whether a value follows from constants and the counting of loops, which are added to `found`."""
    if isinstance(value, Constant) or value in visited:
        return True
    if not isinstance(value, Instruction):
        return False
    visited.add(value)
    if value.op == "phi":
        if value.block not in headers:
            return False
        found.add(headers[value.block])
    elif value.op != "addrof" and value.op not in DERIVED and value.info.evaluate is None:
        return False
    return all(_counts(operand, headers, found, visited) for operand in value.operands)


def unroll(function: Function, loop: Loop, rounds: Rounds) -> None:
    """Writes the rounds of a loop one after another."""
    rest = function.blocks[1 + max(map(function.blocks.index, loop.blocks)) :]
    behind = rest[0] if rest else None
    copies = [Copy(function, loop, behind) for _ in range(rounds.back_edges)]
    latch = loop.latches[0]
    carried = {phi: _carried(loop, phi) for phi in loop.header.phis}
    original = Copy(function, loop, behind, identity=True)
    for before, copy in zip([original, *copies], copies, strict=False):
        copy.fill({phi: before.value(value) for phi, value in carried.items()})
    sequence = [original, *copies]
    headers = [copy.block(loop.header) for copy in (*copies, sequence[-1])]
    for copy, header in zip(sequence, headers, strict=True):
        copy.block(latch).terminator.replace_successor(copy.block(loop.header), header)
    for phi in loop.header.phis:
        phi.remove_incoming(latch)
    for copy, header in zip(sequence[:-1], headers, strict=False):
        stay = header if rounds.stay is loop.header else copy.block(rounds.stay)
        _decide(copy.block(rounds.exiting), stay, rounds.leave)
    _decide(sequence[-1].block(rounds.exiting), rounds.leave, rounds.leave)
    remove_unreachable_blocks(function)
    _reach_outside(function, loop, sequence)
    for phi in loop.header.phis:
        if len(phi.operands) == 1:
            phi.replace_all_uses_with(phi.operands[0])
            phi.erase()


def _decide(block: BasicBlock, target: BasicBlock, leave: BasicBlock) -> None:
    """Ends a round in the way that its number says."""
    if target is not leave:
        for phi in leave.phis:
            phi.remove_incoming(block)
    go_to(block, target)


def place_of(use: Use) -> BasicBlock:
    """The block in which, or at whose end, a use reads."""
    assert isinstance(use.user, Instruction)
    return use.user.attrs["blocks"][use.index] if use.user.op == "phi" else use.user.block


class Copy:
    """A copy of a loop's blocks, before another or at the end; `identity` stands for the loop itself."""

    def __init__(
        self, function: Function, loop: Loop, before: BasicBlock | None, identity: bool = False
    ) -> None:
        self._loop = loop
        self._values: dict[Value, Value] = {}
        self._blocks = {block: block for block in loop.blocks}
        if not identity:
            self._blocks = {block: function.add_block(block.name, before) for block in loop.blocks}

    def block(self, block: BasicBlock) -> BasicBlock:
        return self._blocks.get(block, block)

    def value(self, value: Value) -> Value:
        return self._values.get(value, value)

    def fill(self, header: Mapping[Value, Value]) -> None:
        """Copies the instructions; `header` gives the values of the header's phis in this round."""
        self._values.update(header)
        copied = []
        for block, copy in self._blocks.items():
            for instruction in block.instructions:
                if instruction not in header:
                    copied.append((instruction, copy.append(self._bare(instruction))))
        for instruction, new in copied:
            new.operands = tuple(map(self.value, instruction.operands))
        for block, copy in self._blocks.items():
            self._enter_exits(block, copy)

    def _bare(self, instruction: Instruction) -> Instruction:
        """The instruction without operands, which may not have been copied yet."""
        attrs = {name: self._attribute(value) for name, value in instruction.attrs.items()}
        new = Instruction(instruction.op, instruction.type, (), attrs, instruction.loc, instruction.name)
        self._values[instruction] = new
        return new

    def _attribute(self, value: object) -> object:
        if isinstance(value, BasicBlock):
            return self.block(value)
        blocks = isinstance(value, tuple) and any(isinstance(item, BasicBlock) for item in value)
        return tuple(self.block(item) for item in value) if blocks else value  # type: ignore[union-attr]

    def _enter_exits(self, block: BasicBlock, copy: BasicBlock) -> None:
        """Gives the phis outside what they take when this copy leaves the loop."""
        for target in block.successors:
            for phi in target.phis if target not in self._loop else []:
                value = next(value for value, source in phi.incoming if source is block)
                phi.add_incoming(self.value(value), copy)


def _reach_outside(function: Function, loop: Loop, sequence: list[Copy]) -> None:
    """Lets reads outside find the value of the round in which the loop was left."""
    tree = DominatorTree(function)
    frontiers = dominance_frontiers(function)
    inside = {copy.block(block) for copy in sequence for block in loop.blocks}
    for value in [i for block in loop.blocks for i in block.instructions]:
        uses = [use for use in value.uses if place_of(use) not in inside]
        if not uses:
            continue
        rounds = [(copy.block(value.block), copy.value(value)) for copy in sequence]
        definitions = {block: version for block, version in rounds if tree.reachable(block)}
        variable = Variable(tree, frontiers, value.type, definitions, map(place_of, uses))
        for use in uses:
            assert isinstance(use.user, Instruction)
            at = variable.at_end if use.user.op == "phi" else variable.at_start
            use.replace(at(place_of(use)))
