"""Induction pointers: those that every pass through a loop moves by the same amount for all threads.

Such a pointer is where the thread's own pointer was at the start, plus what the thread block has moved since.
The address unit adds the two for nothing, so that one scalar block a pass is all that moves the pointer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qgpu.ir import I32, BasicBlock, Constant, Function, Instruction, PtrType, SlotType, Value
from qgpu.ir.analysis.loops import Loop, LoopInfo
from qgpu.toolchain.codegen.pointers import PointerShapes
from qgpu.toolchain.codegen.uniformity import Uniformity


@dataclass(frozen=True)
class Induction:
    """A slot that one `set` starts before a loop and one moves on in each pass.

    Attributes:
        start, step: the two sets.
        amount: what says how far a pass moves it; equal for pointers that move alike.
        counter: a slot that counts the same amount from 0, in the pointer's unit, or None.
    """

    start: Instruction
    step: Instruction
    amount: tuple
    counter: Value | None = None

    @property
    def key(self) -> tuple:
        """Equal for inductions that have moved equally far at any time."""
        return self.start.block, self.step.block, self.amount


def find_inductions(
    function: Function, shapes: PointerShapes, uniformity: Uniformity
) -> dict[Value, Induction]:
    """The induction pointers of a linearised function, by their slots."""
    finder = _Finder(function, shapes, uniformity)
    return {slot: found for slot in finder.slots(PtrType) if (found := finder.pointer(slot))}


class _Finder:
    def __init__(self, function: Function, shapes: PointerShapes, uniformity: Uniformity) -> None:
        self._function = function
        self._shapes = shapes
        self._uniformity = uniformity
        self._loops = LoopInfo(function)
        self._position = {block: index for index, block in enumerate(function.blocks)}

    def slots(self, kind: type) -> Iterator[Instruction]:
        """The slots that hold a type of one kind."""
        for instruction in self._function.entry.instructions:
            if isinstance(instruction.type, SlotType) and isinstance(instruction.type.element, kind):
                yield instruction

    def pointer(self, slot: Instruction) -> Induction | None:
        """The induction of a slot of pointers, if it is one."""
        sets = None if self._uniformity.uniform(slot) else self._sets(slot)
        if sets is None:
            return None
        start, step = sets
        moves = self._moves(step.operands[1], slot)
        if moves is None:
            return None
        unit = self._shapes.of(slot).unit
        amount = tuple(_amount(move, unit) for move in moves)
        return Induction(start, step, (unit, amount), self._counter(start, step, amount))

    def _sets(self, slot: Instruction) -> tuple[Instruction, Instruction] | None:
        """The set before the loop and the one in it, where all reads are in the loop."""
        users = [user for user in slot.users if isinstance(user, Instruction)]
        sets = [user for user in users if user.op == "set"]
        if len(users) < len(slot.users) or len(sets) != 2:
            return None
        for start, step in (sets, sets[::-1]):
            loop = self._loops.innermost(step.block)
            if loop and self._starts(start.block, loop) and self._read_inside(users, loop):
                return start, step
        return None

    def _starts(self, block: BasicBlock, loop: Loop) -> bool:
        before = self._position[block] < self._position[loop.header]
        return block not in loop.blocks and before and self._loops.tree.dominates(block, loop.header)

    def _read_inside(self, users: list[Instruction], loop: Loop) -> bool:
        """Whether all gets stay in the loop, and not in one inside it, and so do pointers made of them."""
        gets = [user for user in users if user.op == "get"]
        return all(self._loops.innermost(get.block) is loop and self._stays(get, loop) for get in gets)

    def _stays(self, value: Value, loop: Loop) -> bool:
        for user in value.users:
            block = user if isinstance(user, BasicBlock) else user.block
            if block not in loop.blocks:
                return False
            if isinstance(user, Instruction) and user.op == "ptradd" and not self._stays(user, loop):
                return False
        return True

    def _moves(self, value: Value, slot: Value) -> list[Instruction] | None:
        """The pointer additions from a get of the slot to the value, if all are the thread block's."""
        moves: list[Instruction] = []
        while isinstance(value, Instruction) and value.op == "ptradd":
            moves.append(value)
            if not self._uniformity.uniform(value.operands[1]):
                return None
            value = value.operands[0]
        is_get = isinstance(value, Instruction) and value.op == "get" and value.operands[0] is slot
        return moves if is_get and moves else None

    def _counter(self, start: Instruction, step: Instruction, amount: tuple) -> Value | None:
        """A uniform counter that begins with 0 where the pointer starts and goes on as it does."""
        if len(amount) != 1 or amount[0][0] is not None:
            return None
        for slot in self.slots(type(I32)):
            sets = self._sets(slot) if self._uniformity.uniform(slot) else None
            if sets is None or (sets[0].block, sets[1].block) != (start.block, step.block):
                continue
            if _counts(slot, sets[0], sets[1], amount[0][1]):
                return slot
        return None


def _amount(move: Instruction, unit: int) -> tuple:
    """How far a pointer addition moves: (index, scale, signed, disp), or (None, units) for a constant."""
    index, attrs = move.operands[1], move.attrs
    if isinstance(index, Constant):
        number = index.signed if attrs["signed"] else index.value
        return None, (number * attrs["scale"] + attrs["disp"]) // unit
    return index, attrs["scale"], attrs["signed"], attrs["disp"]


def _counts(slot: Value, start: Instruction, step: Instruction, amount: int) -> bool:
    first, next_ = start.operands[1], step.operands[1]
    if not isinstance(first, Constant) or first.value or not isinstance(next_, Instruction):
        return False
    if next_.op != "add":
        return False
    base, by = next_.operands
    is_get = isinstance(base, Instruction) and base.op == "get" and base.operands[0] is slot
    return is_get and isinstance(by, Constant) and by.signed == amount
