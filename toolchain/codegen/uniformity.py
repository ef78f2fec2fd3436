"""Uniform values: those that a scalar block may compute once for the whole thread block.

A value is computed by a scalar block if its operands are, and if computing it cannot fault where no thread
would have: scalar blocks run whatever the guard. A value made in a loop that threads leave one by one, and
read after it, is each thread's own: the last pass is not every thread's last (temporal divergence).
"""

from __future__ import annotations

from collections.abc import Iterator

from qgpu.ir import VOID, BasicBlock, Function, Instruction, Literal, Value
from qgpu.ir.analysis.loops import Loop, LoopInfo

THREAD_REGISTERS = ("tid.x", "tid.y", "tid.z", "laneid", "warpid")
_TRANSPARENT = ("ptradd", "zext", "sext", "trunc", "add", "mul")


class Uniformity:
    """The uniform values and slots of a linearised function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._divergent: set[Value] = set()
        self._leaving = _values_leaving_divergent_loops(function)
        changed = True
        while changed:
            before = len(self._divergent)
            for instruction in function.instructions:
                self._visit(instruction)
            changed = len(self._divergent) != before

    def uniform(self, value: Value) -> bool:
        """Whether a value, or a slot, is the thread block's."""
        return value not in self._divergent

    def _visit(self, instruction: Instruction) -> None:
        if instruction.op == "set":
            slot, value = instruction.operands
            if value in self._divergent:
                self._divergent.add(slot)
        elif instruction.type is not VOID and self._is_divergent(instruction):
            self._divergent.add(instruction)

    def _is_divergent(self, instruction: Instruction) -> bool:
        if instruction in self._leaving or instruction.op == "atomicrmw":
            return True
        if instruction.op == "sreg":
            return instruction.attrs["name"] in THREAD_REGISTERS
        if instruction.op == "addrof":
            return self._function.array(instruction.attrs["name"]).space == "local"
        if instruction.op == "slot":
            return not instruction.attrs.get("uniform")
        if instruction.op == "load" and instruction.block.guard:
            return True
        return any(operand in self._divergent for operand in instruction.operands)


def _values_leaving_divergent_loops(function: Function) -> set[Value]:
    leaving: set[Value] = set()
    for loop in LoopInfo(function).loops:
        exits = [block for block in loop.exiting_blocks if block.terminator.op == "brany"]
        last = [frozenset(block.guard) for block in exits]
        for block in loop.blocks if exits else ():
            leaving |= {i for i in block.instructions if _read_outside(i, loop, last, set())}
    return leaving


def _read_outside(value: Value, loop: Loop, last: list[frozenset[Literal]], seen: set[Value]) -> bool:
    """Whether a block outside the loop reads a value, or an address or a sum that is made of it.

    A block for none but the lanes of the last pass (those of an exit, or fewer) may read what the pass left.
    """
    seen.add(value)
    for user, block in _readers(value):
        if block not in loop.blocks and not any(lanes and lanes <= set(block.guard) for lanes in last):
            return True
        if isinstance(user, BasicBlock) or user.op not in _TRANSPARENT or user in seen:
            continue
        if _read_outside(user, loop, last, seen):
            return True
    return False


def _readers(value: Value) -> Iterator[tuple[Instruction | BasicBlock, BasicBlock]]:
    for user in value.users:
        yield user, user if isinstance(user, BasicBlock) else user.block
