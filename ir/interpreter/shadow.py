"""Values that come from memory which was never written.

A compiler may load before it knows that the value is wanted, so the load itself is no fault: its result is
marked in the threads that found bytes nobody wrote, and so is what is computed from it. A marked value that
decides something (a branch, an address, what leaves the thread) is the fault, and is put down to the load.
Where operands without a mark alone give the result, as the 0 of an `and` does, the result has no mark.
E. Stepanov and K. Serebryany describe this for MemorySanitizer (CGO 2015).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.interpreter.faults import Fault
from qgpu.ir.interpreter.values import Lanes, Numbers, Pointers, Values, equal

Marks = NDArray[np.int32]
"""By thread: the number of the load that a value comes from, 0 where all its bytes were written."""

ABSORBING = {"and": 0, "or": -1, "mul": 0, "mulhi_s": 0, "mulhi_u": 0}
"""The operand that gives the result of an opcode alone, whatever the other one is; -1 has all bits set."""


class Shadow:
    """The marks of a thread block's values, by their numbers; `marks` is empty as long as all is well."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.marks: dict[int, Marks] = {}
        self._causes: list[tuple[str, Instruction]] = []

    def cause(self, message: str, instruction: Instruction) -> int:
        """The number of a load that found bytes nobody wrote, from 1."""
        self._causes.append((message, instruction))
        return len(self._causes)

    def set(self, number: int, lanes: Lanes, marks: Marks | None) -> None:
        """A value was computed in some lanes, with marks in them or none."""
        if lanes is not None:
            old = self.marks.get(number)
            if old is None and marks is None:
                return
            merged = np.zeros(self.count, np.int32) if old is None else old.copy()
            merged[lanes] = 0 if marks is None else marks
            marks = merged
        if marks is not None and marks.any():
            self.marks[number] = marks
        else:
            self.marks.pop(number, None)

    def of(self, number: int, lanes: Lanes) -> Marks | None:
        """The marks of a value in some lanes; None where there are none."""
        marks = self.marks.get(number)
        return marks if marks is None or lanes is None else marks[lanes]

    def joined(self, numbers: Sequence[int], lanes: Lanes) -> Marks | None:
        """The marks of what is computed from several values."""
        found = [marks for number in numbers if (marks := self.of(number, lanes)) is not None]
        return np.maximum.reduce(found) if found else None

    def computed(
        self, numbers: Sequence[int], operands: Sequence[Values], absorbing: int | None, lanes: Lanes
    ) -> Marks | None:
        """The marks of what is computed from operands; an `absorbing` one without a mark gives it alone."""
        marks = self.joined(numbers, lanes)
        if marks is None or absorbing is None:
            return marks
        alone = np.zeros(len(marks), np.bool_)
        for number, operand in zip(numbers, operands, strict=True):
            own = self.of(number, lanes)
            assert not isinstance(operand, Pointers)
            absorbs = operand == np.array(absorbing).astype(operand.dtype)
            alone |= absorbs if own is None else absorbs & (own == 0)
        return np.where(alone, 0, marks).astype(np.int32)

    def chosen(
        self, numbers: Sequence[int], condition: Numbers, yes: Values, no: Values, lanes: Lanes
    ) -> Marks | None:
        """The marks of a select: of the operand that it takes, and of its condition where that matters."""
        of_condition, of_yes, of_no = (self.of(number, lanes) for number in numbers)
        none = np.zeros(len(condition), np.int32)
        of_yes, of_no = (none if marks is None else marks for marks in (of_yes, of_no))
        taken = np.where(condition, of_yes, of_no)
        if of_condition is None:
            return taken
        either = equal(yes, no) & (of_yes == 0) & (of_no == 0)
        return np.where(either, 0, np.maximum(taken, of_condition))

    def check(self, number: int, lanes: Lanes) -> None:
        """Raises Fault where a value that decides something is marked in one of the lanes."""
        marks = self.of(number, lanes)
        if marks is None or not marks.any():
            return
        first = int(np.flatnonzero(marks)[0])
        message, instruction = self._causes[marks[first] - 1]
        raise Fault("uninitialised", message, instruction, first if lanes is None else int(lanes[first]))
