"""Linearised functions: one block after the other, all threads in lockstep, each under the block's guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Literal
from qgpu.ir.interpreter.decode import Decoder, Frame, Read, Step, known_lanes
from qgpu.ir.interpreter.ends import exchange_step, reduced, trap_fault
from qgpu.ir.interpreter.exchanges import EXCHANGES
from qgpu.ir.interpreter.faults import Fault
from qgpu.ir.interpreter.steps import STEPS
from qgpu.ir.interpreter.values import Lanes, Numbers, Pointers, Values

Meet = Callable[["Lockstep", "LockstepBlock", Lanes], None]
"""What happens at a barrier, to which the active lanes come, perhaps none."""
Next = Callable[[Frame, Lanes], "int | None"]
"""What a terminator does for the active lanes: the number of the block to go to, None at the end."""


@dataclass(eq=False)
class Part:
    """Steps of a block under a guard that stays as it is, and the barrier after them, if there is one."""

    steps: list[Step]
    meet: Meet | None = None


@dataclass(eq=False)
class LockstepBlock:
    """A decoded block: its guard (literals, numbers and readers of their values), parts, and terminator."""

    guard: list[tuple[Literal, int, Read]]
    parts: list[Part]
    terminator: Instruction
    following: Next


@dataclass(eq=False)
class LockstepProgram:
    """A decoded function: its blocks by number."""

    decoder: Decoder
    blocks: list[LockstepBlock]


def decode_lockstep(function: Function) -> LockstepProgram:
    """Decodes a linearised function."""
    decoder = Decoder(function)
    numbers = {block: number for number, block in enumerate(function.blocks)}
    return LockstepProgram(decoder, [_decoded(decoder, block, numbers) for block in function.blocks])


def _decoded(decoder: Decoder, block: BasicBlock, numbers: dict[BasicBlock, int]) -> LockstepBlock:
    guard = [(literal, decoder.number(literal.value), decoder.read(literal.value)) for literal in block.guard]
    own = {literal.value for literal in block.guard}
    *body, terminator = block.instructions
    parts = [Part([])]
    for instruction in body:
        if instruction.op in MEETINGS:
            parts[-1].meet = MEETINGS[instruction.op](decoder, instruction)
        elif instruction.op in EXCHANGES:
            parts[-1].steps.append(exchange_step(decoder, instruction))
        else:
            parts[-1].steps.append(STEPS[instruction.op](decoder, instruction))
        if instruction.op in MEETINGS or not own.isdisjoint((instruction, *instruction.operands[:1])):
            parts.append(Part([]))
    return LockstepBlock(guard, parts, terminator, TERMINATORS[terminator.op](decoder, terminator, numbers))


class Lockstep:
    """One thread block that runs; `spend` is told of every instruction before it runs."""

    def __init__(
        self, program: LockstepProgram, frame: Frame, spend: Callable[[int, Instruction], None]
    ) -> None:
        self.program = program
        self.frame = frame
        self.spend = spend
        self.come: dict[int, int] = {}

    def run(self) -> None:
        """Runs all lanes to the end."""
        number: int | None = 0
        while number is not None:
            block = self.program.blocks[number]
            self.spend(sum(len(part.steps) for part in block.parts) + 1, block.terminator)
            number = block.following(self.frame, self._run_parts(block))

    def _run_parts(self, block: LockstepBlock) -> Lanes:
        """Runs a block; the lanes that are active at its end."""
        lanes = self.active(block)
        for place, part in enumerate(block.parts):
            if place:
                lanes = self.active(block)
            if lanes is None or len(lanes):
                for step in part.steps:
                    step(self.frame, lanes)
            if part.meet is not None:
                part.meet(self, block, lanes)
        return lanes

    def active(self, block: LockstepBlock) -> Lanes:
        """The lanes in which all literals of a block's guard hold now."""
        lanes: Lanes = None
        for literal, _, read in block.guard:
            holds = _numbers(read(self.frame, lanes)) == literal.polarity
            if not holds.all():
                lanes = self.frame.running(lanes)[holds]
            if lanes is not None and not len(lanes):
                break
        return lanes

    def check_barrier(self, block: LockstepBlock, barrier: Instruction) -> None:
        """A lane may miss a barrier only if the first literal that fails in it says that it has returned."""
        returned, frame = barrier.attrs.get("returned", ()), self.frame
        left, missing = frame.threads, []
        for index, (literal, number, _) in enumerate(block.guard):
            known = known_lanes(frame, number, left)
            holds = np.ones(len(left), np.bool_) if known is None else known.copy()
            values = frame.values[number]
            if values is not None:
                holds &= _numbers(values)[left] == literal.polarity
            if index not in returned:
                missing += left[~holds][:1].tolist()
            left = left[holds]
        if missing:
            message = "a thread that has not ended does not reach the barrier"
            raise Fault("barrier", message, barrier, min(missing))

    def come_to(self, barrier: Instruction, lanes: Lanes, waits: bool) -> None:
        """Lanes come to a barrier of a number of threads; those that wait have to be its last."""
        number, count = barrier.attrs["id"], barrier.attrs["count"]
        running = self.frame.running(lanes)
        come = self.come.get(number, 0) + len(running)
        self.come[number] = come % count
        if waits and come % count:
            message = f"{come} threads come to barrier {number} of {count} threads before it lets them go on"
            raise Fault("barrier", message, barrier, int(running[0]))


def _numbers(values: Values) -> Numbers:
    assert not isinstance(values, Pointers)
    return values


Maker = Callable[[Decoder, Instruction], Meet]


def _barrier(decoder: Decoder, barrier: Instruction) -> Meet:
    if barrier.attrs.get("count") is None:
        return lambda run, block, lanes: run.check_barrier(block, barrier)
    return lambda run, block, lanes: run.come_to(barrier, lanes, waits=True)


def _arrive(decoder: Decoder, arrive: Instruction) -> Meet:
    return lambda run, block, lanes: run.come_to(arrive, lanes, waits=False)


def _barrier_reduce(decoder: Decoder, barrier: Instruction) -> Meet:
    read, write = decoder.read(barrier.operands[0], barrier), decoder.write(barrier)

    def meet(run: Lockstep, block: LockstepBlock, lanes: Lanes) -> None:
        run.check_barrier(block, barrier)
        write(run.frame, lanes, reduced(barrier, read, run.frame, lanes))

    return meet


MEETINGS: dict[str, Maker] = {"barrier": _barrier, "arrive": _arrive, "barrier_reduce": _barrier_reduce}
"""One row for each opcode at which the lanes of a thread block meet."""


def _br(decoder: Decoder, br: Instruction, numbers: dict[BasicBlock, int]) -> Next:
    target = numbers[br.attrs["target"]]
    return lambda frame, lanes: target


def _brany(decoder: Decoder, brany: Instruction, numbers: dict[BasicBlock, int]) -> Next:
    read = decoder.read(brany.operands[0], brany)
    then, otherwise = numbers[brany.attrs["then"]], numbers[brany.attrs["else"]]

    def branch(frame: Frame, lanes: Lanes) -> int:
        return then if len(frame.running(lanes)) and _numbers(read(frame, lanes)).any() else otherwise

    return branch


def _condbr(decoder: Decoder, condbr: Instruction, numbers: dict[BasicBlock, int]) -> Next:
    read = decoder.read(condbr.operands[0], condbr)
    then, otherwise = numbers[condbr.attrs["then"]], numbers[condbr.attrs["else"]]

    def branch(frame: Frame, lanes: Lanes) -> int:
        choices = np.unique(_numbers(read(frame, lanes))) if len(frame.running(lanes)) else ()
        if len(choices) != 1:
            raise Fault("uniformity", f"{len(choices)} different conditions in the active lanes", condbr)
        return then if choices[0] else otherwise

    return branch


def _ret(decoder: Decoder, ret: Instruction, numbers: dict[BasicBlock, int]) -> Next:
    return lambda frame, lanes: None


def _trap(decoder: Decoder, trap: Instruction, numbers: dict[BasicBlock, int]) -> Next:
    def stop(frame: Frame, lanes: Lanes) -> None:
        running = frame.running(lanes)
        if not len(running):
            raise Fault("uniformity", "a trap is reached by no lane", trap)
        raise trap_fault(trap, int(running[0]))

    return stop


TERMINATORS: dict[str, Callable[[Decoder, Instruction, dict[BasicBlock, int]], Next]] = {
    "br": _br,
    "brany": _brany,
    "condbr": _condbr,
    "ret": _ret,
    "trap": _trap,
}
"""One row for each terminator."""
