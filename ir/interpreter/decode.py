"""Decoding: each instruction becomes a step, a function that runs it for some threads of a thread block.

A function is decoded once; what is kept is used as long as its blocks, instructions, operands and attributes
are still the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import SlotType
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.interpreter.faults import Fault
from qgpu.ir.interpreter.memory import Memory
from qgpu.ir.interpreter.shadow import ABSORBING, Shadow
from qgpu.ir.interpreter.values import Lanes, Numbers, Pointers, Values, merged, zeros


@dataclass(eq=False)
class Frame:
    """A thread block that runs.

    Attributes:
        values: by number, what a value, slot or constant is in all threads; None where none has computed it.
        defined: for linearised functions: the threads that have computed it; None where none or all have.
        threads: the indices of the threads.
        specials: special registers by name.
        arrays: the buffer number of each array by name.
        origin: offset 0 in all threads.
        output: takes the text of each printf.
        shadow: which values come from memory that was never written.
    """

    values: list[Values | None]
    threads: Numbers
    specials: dict[str, Numbers]
    arrays: dict[str, int]
    memory: Memory
    warp_size: int
    origin: Numbers
    output: Callable[[str], object]
    shadow: Shadow
    defined: list[Numbers | None] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of threads."""
        return len(self.threads)

    def running(self, lanes: Lanes) -> Numbers:
        """The indices of the threads that run an instruction."""
        return self.threads if lanes is None else lanes


Step = Callable[[Frame, Lanes], None]
Read = Callable[[Frame, Lanes], Values]
Compute = Callable[..., Values]
"""What computes a result from the frame, the lanes and the operands."""


class Decoder:
    """Gives the values of a function numbers, and makes what reads and writes them."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.numbers: dict[Value, int] = {}
        self.constants: list[tuple[int, Constant]] = []
        for argument in function.args:
            self.number(argument)

    def number(self, value: Value) -> int:
        """The place of a value in a frame."""
        if value not in self.numbers:
            self.numbers[value] = len(self.numbers)
            if isinstance(value, Constant):
                self.constants.append((self.numbers[value], value))
        return self.numbers[value]

    def read(self, value: Value, user: Instruction | None = None) -> Read:
        """What reads a value in the threads that run, where it decides something: it must not be marked."""
        number, plain = self.number(value), self.read_any(value, user)

        def read(frame: Frame, lanes: Lanes) -> Values:
            if frame.shadow.marks:
                frame.shadow.check(number, lanes)
            return plain(frame, lanes)

        return plain if isinstance(value, Constant) else read

    def read_any(self, value: Value, user: Instruction | None = None) -> Read:
        """What reads a value in the threads that run; in linearised functions it may be undefined there."""
        number = self.number(value)
        if isinstance(value, Constant):
            return lambda frame, lanes: _constant(frame.values[number], lanes)
        if self.function.linearised:
            return lambda frame, lanes: _checked(frame, number, lanes, value, user)
        return lambda frame, lanes: _plain(frame.values[number], lanes)

    def write(self, value: Value) -> Callable[[Frame, Lanes, Values], None]:
        """What gives a value, or a slot, new contents in the threads that run."""
        number, type_ = self.number(value), value.type
        linearised = self.function.linearised

        def write(frame: Frame, lanes: Lanes, result: Values) -> None:
            if lanes is None:
                frame.values[number] = result
                if linearised:
                    frame.defined[number] = None
                return
            old = frame.values[number]
            if linearised:
                _note_defined(frame, number, lanes)
            frame.values[number] = _merged(zeros(type_, frame.count) if old is None else old, lanes, result)

        return write

    def computing(self, instruction: Instruction, compute: Compute, operands: Sequence[Value]) -> Step:
        """The step that reads operands, computes the result from them alone, and writes it."""
        write, number = self.write(instruction), self.number(instruction)
        reads = [self.read_any(operand, instruction) for operand in operands]
        sources = [self.number(operand) for operand in operands]
        absorbing = ABSORBING.get(instruction.op)

        def step(frame: Frame, lanes: Lanes) -> None:
            values = [read(frame, lanes) for read in reads]
            write(frame, lanes, compute(frame, lanes, *values))
            if frame.shadow.marks:
                frame.shadow.set(number, lanes, frame.shadow.computed(sources, values, absorbing, lanes))

        return step

    def deciding(self, instruction: Instruction, compute: Compute, operands: Sequence[Value]) -> Step:
        """The step of an instruction whose result depends on more than its operands, which it acts on."""
        write, number = self.write(instruction), self.number(instruction)
        reads = [self.read(operand, instruction) for operand in operands]

        def step(frame: Frame, lanes: Lanes) -> None:
            write(frame, lanes, compute(frame, lanes, *[read(frame, lanes) for read in reads]))
            if frame.shadow.marks:
                frame.shadow.set(number, lanes, None)

        return step


def _constant(value: Values | None, lanes: Lanes) -> Values:
    assert value is not None
    return value if lanes is None else value[: lanes.size]


def _plain(value: Values | None, lanes: Lanes) -> Values:
    assert value is not None
    return value if lanes is None else value[lanes]


def _checked(frame: Frame, number: int, lanes: Lanes, value: Value, user: Instruction | None) -> Values:
    known = known_lanes(frame, number, lanes)
    if known is not None and not known.all():
        thread = int(frame.running(lanes)[known.argmin()])
        verb = "set" if isinstance(value.type, SlotType) else "computed"
        raise Fault("undefined", f"the lane never {verb} '%{value.name}'", user, thread)
    return _plain(frame.values[number], lanes)


def known_lanes(frame: Frame, number: int, lanes: Lanes) -> Numbers | None:
    """In which of some lanes a value of a linearised function was computed; None where in all."""
    if frame.values[number] is None:
        return np.zeros(len(frame.running(lanes)), np.bool_)
    defined = frame.defined[number]
    return None if defined is None else defined if lanes is None else defined[lanes]


def _note_defined(frame: Frame, number: int, lanes: Numbers) -> None:
    if frame.values[number] is None:
        frame.defined[number] = np.zeros(frame.count, np.bool_)
    defined = frame.defined[number]
    if defined is not None:
        defined[lanes] = True


def _merged(old: Values, lanes: Numbers, new: Values) -> Values:
    if isinstance(old, Pointers):
        assert isinstance(new, Pointers)
        return old.merged(lanes, new)
    assert not isinstance(new, Pointers)
    return merged(old, lanes, new)
