"""Functions before linearisation: every thread has a place of its own in the program.

Of the threads that can go on, those at the earliest place in the order of the program run together up to
where they part or wait, so that threads that parted meet again. The order is reverse postorder with loops in
one piece; blocks are cut into segments at barriers and exchanges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from qgpu.ir.analysis.graph import directed_graph, postorder
from qgpu.ir.analysis.loops import LoopInfo
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32
from qgpu.ir.interpreter.decode import Decoder, Frame, Read, Step
from qgpu.ir.interpreter.exchanges import EXCHANGES, Warps
from qgpu.ir.interpreter.faults import Fault
from qgpu.ir.interpreter.steps import STEPS
from qgpu.ir.interpreter.values import Lanes, Numbers, Pointers, full

Numbering = dict[BasicBlock, int]
"""The first segment of each block."""
End = Callable[["Threads", Numbers], None]
"""What the threads that have run a segment do next."""


PATIENCE = 1024
"""Segments that others may run before threads that could run a later one get their turn."""


@dataclass(eq=False)
class Segment:
    """Steps in a row, and what comes after them, which `instruction` says."""

    steps: list[Step]
    instruction: Instruction
    end: End


@dataclass(eq=False)
class ThreadProgram:
    """A decoded function: its segments by number, in the order in which they are preferred."""

    decoder: Decoder
    segments: list[Segment]


def decode_threads(function: Function) -> ThreadProgram:
    """Decodes a function that is not linearised."""
    decoder = Decoder(function)
    order = _program_order(function)
    pieces = [(block, piece) for block in order for piece in _pieces(block)]
    first: Numbering = {}
    for number, (block, _) in enumerate(pieces):
        first.setdefault(block, number)
    segments = []
    for number, (_, piece) in enumerate(pieces):
        *body, last = piece
        steps = [STEPS[instruction.op](decoder, instruction) for instruction in body]
        segments.append(Segment(steps, last, ENDS[last.op](decoder, last, first, number + 1)))
    return ThreadProgram(decoder, segments)


def _program_order(function: Function) -> list[BasicBlock]:
    """Reverse postorder in which what a loop leaves to comes after all of the loop."""
    loops = LoopInfo(function)

    def depth(block: BasicBlock) -> int:
        loop = loops.innermost(block)
        return 0 if loop is None else loop.depth

    edges = {block: sorted(block.successors, key=depth) for block in function.blocks}
    return postorder(directed_graph(edges), function.entry)[::-1]


def _pieces(block: BasicBlock) -> Iterator[list[Instruction]]:
    """A block's instructions without phis, cut behind each that may wait."""
    piece: list[Instruction] = []
    for instruction in block.instructions:
        if instruction.op == "phi":
            continue
        piece.append(instruction)
        if instruction.op in ENDS:
            yield piece
            piece = []


@dataclass(eq=False)
class Named:
    """A barrier of a number of threads: how many have come, and who waits where to go on."""

    come: int = 0
    waiting: list[tuple[Instruction, int, Numbers]] = field(default_factory=list)


@dataclass(eq=False)
class Waiting:
    """Threads that wait at an instruction, and what is to be done when they need not any more."""

    lanes: Numbers
    masks: Numbers | None
    go_on: End


class Threads:
    """One thread block that runs; `spend` is told of every instruction before it runs."""

    def __init__(
        self, program: ThreadProgram, frame: Frame, spend: Callable[[int, Instruction], None]
    ) -> None:
        self.program = program
        self.frame = frame
        self.spend = spend
        self.alive = np.ones(frame.count, np.bool_)
        self.ready: dict[int, Numbers] = {0: frame.threads}
        self.exchanges: dict[Instruction, Waiting] = {}
        self.barriers: dict[Instruction, Waiting] = {}
        self.named: dict[int, Named] = {}
        self._passed_over: Numbers | None = None
        self._patience = PATIENCE

    def run(self) -> None:
        """Runs all threads to their end."""
        segments, frame = self.program.segments, self.frame
        while self.ready or self._release():
            number = self._turn()
            lanes = self.ready.pop(number)
            segment = segments[number]
            self.spend(len(segment.steps) + 1, segment.instruction)
            active = self.active(lanes)
            for step in segment.steps:
                step(frame, active)
            segment.end(self, lanes)

    def _turn(self) -> int:
        """The segment to run: the earliest, but in the end also that which others never let come.

        Threads that wait in a loop for what a thread behind it does are to get it (CUDA C++ Programming
        Guide, independent thread scheduling).
        """
        if len(self.ready) == 1:
            return next(iter(self.ready))
        latest = max(self.ready)
        if self.ready[latest] is not self._passed_over:
            self._passed_over, self._patience = self.ready[latest], PATIENCE
        self._patience -= 1
        return latest if self._patience < 0 else min(self.ready)

    def active(self, lanes: Numbers) -> Lanes:
        """Threads as a step takes them."""
        return None if len(lanes) == self.frame.count else lanes

    def go(self, number: int, lanes: Numbers) -> None:
        """Threads are to run a segment next."""
        others = self.ready.get(number)
        self.ready[number] = lanes if others is None else np.sort(np.concatenate((others, lanes)))

    def wait_at_exchange(self, instruction: Instruction, lanes: Numbers, masks: Numbers, go_on: End) -> None:
        """Threads have come to an exchange; those that need not wait run it."""
        others = self.exchanges.pop(instruction, None)
        if others is not None:
            assert others.masks is not None
            lanes, masks = np.concatenate((others.lanes, lanes)), np.concatenate((others.masks, masks))
            order = np.argsort(lanes)
            lanes, masks = lanes[order], masks[order]
        complete = self._complete(lanes, masks)
        if not complete.all():
            self.exchanges[instruction] = Waiting(lanes[~complete], masks[~complete], go_on)
        if complete.any():
            go_on(self, lanes[complete])

    def _complete(self, lanes: Numbers, masks: Numbers) -> Numbers:
        """For which threads at an exchange all lanes of their mask that have not ended are there too."""
        size = self.frame.warp_size
        missing = self.alive.copy()
        missing[lanes] = False
        padded = np.zeros(-(-len(missing) // size) * size, np.uint64)
        padded[: len(missing)] = missing
        absent = (padded.reshape(-1, size) << np.arange(size, dtype=np.uint64)).sum(axis=1)
        return masks & absent[lanes // size] == 0

    def wait_at_barrier(self, instruction: Instruction, lanes: Numbers, go_on: End) -> None:
        """Threads have come to a barrier of all threads."""
        others = self.barriers.get(instruction)
        if others is not None:
            lanes = np.sort(np.concatenate((others.lanes, lanes)))
        self.barriers[instruction] = Waiting(lanes, None, go_on)

    def come_to(self, instruction: Instruction, lanes: Numbers, following: int, waits: bool) -> None:
        """Threads have come, in order, to a barrier of a number of threads, and wait there or go on."""
        barrier = self.named.setdefault(instruction.attrs["id"], Named())
        count = instruction.attrs["count"]
        while len(lanes):
            taken, lanes = np.split(lanes, [max(0, count - barrier.come)])
            barrier.come += len(taken)
            if waits:
                barrier.waiting.append((instruction, following, taken))
            else:
                self.go(following, taken)
            if barrier.come < count:
                return
            for _, number, others in barrier.waiting:
                self.go(number, others)
            barrier.come = 0
            barrier.waiting.clear()

    def finish(self, lanes: Numbers) -> None:
        """Threads have ended."""
        self.alive[lanes] = False

    def _release(self) -> bool:
        """Nobody can go on: lets those go on who wait for none but threads that have ended.

        Returns False where all threads have ended. Raises Fault where threads wait for each other.
        """
        for instruction, waiting in list(self.exchanges.items()):
            del self.exchanges[instruction]
            assert waiting.masks is not None
            self.wait_at_exchange(instruction, waiting.lanes, waiting.masks, waiting.go_on)
        if self.ready:
            return True
        for instruction, waiting in list(self.barriers.items()):
            if len(waiting.lanes) == np.count_nonzero(self.alive):
                del self.barriers[instruction]
                waiting.go_on(self, waiting.lanes)
                return True
        if self.alive.any():
            raise self._deadlock()
        return False

    def _deadlock(self) -> Fault:
        for instruction, waiting in self.exchanges.items():
            message = "a lane of the mask neither comes to the exchange nor ends"
            return Fault("exchange", message, instruction, int(waiting.lanes[0]))
        for number, barrier in self.named.items():
            for instruction, _, lanes in barrier.waiting:
                count = instruction.attrs["count"]
                message = f"{barrier.come} of {count} threads come to barrier {number}"
                return Fault("barrier", message, instruction, int(lanes[0]))
        return Fault("barrier", "threads wait at different barriers", next(iter(self.barriers)))


Edge = Callable[[Threads, Numbers], None]
Maker = Callable[[Decoder, Instruction, dict[BasicBlock, int], int], End]
"""Makes the end of a segment from its last instruction, the first segment of each block, and the next one."""


def _edge(decoder: Decoder, terminator: Instruction, first: Numbering, target: BasicBlock) -> Edge:
    """What takes threads along an edge: phis get their values, all at once."""
    number, source = first[target], terminator.block
    incoming = [(phi, value) for phi in target.phis for value, origin in phi.incoming if origin is source]
    if not incoming:
        return lambda threads, lanes: threads.go(number, lanes)
    writes = [decoder.write(phi) for phi, _ in incoming]
    reads = [decoder.read_any(value, phi) for phi, value in incoming]
    targets = [decoder.number(phi) for phi, _ in incoming]
    sources = [decoder.number(value) for _, value in incoming]

    def take(threads: Threads, lanes: Numbers) -> None:
        frame, active = threads.frame, threads.active(lanes)
        values = [read(frame, active) for read in reads]
        if frame.shadow.marks:
            marks = [frame.shadow.of(source, active) for source in sources]
            for target, mark in zip(targets, marks, strict=True):
                frame.shadow.set(target, active, mark)
        for write, value in zip(writes, values, strict=True):
            write(frame, active, value)
        threads.go(number, lanes)

    return take


def _br(decoder: Decoder, br: Instruction, first: Numbering, following: int) -> End:
    return _edge(decoder, br, first, br.attrs["target"])


def _condbr(decoder: Decoder, condbr: Instruction, first: Numbering, following: int) -> End:
    condition = decoder.read(condbr.operands[0], condbr)
    then, otherwise = (_edge(decoder, condbr, first, condbr.attrs[name]) for name in ("then", "else"))

    def branch(threads: Threads, lanes: Numbers) -> None:
        taken = condition(threads.frame, threads.active(lanes))
        assert not isinstance(taken, Pointers)
        if taken.all():
            then(threads, lanes)
        elif not taken.any():
            otherwise(threads, lanes)
        else:
            then(threads, lanes[taken])
            otherwise(threads, lanes[~taken])

    return branch


def _ret(decoder: Decoder, ret: Instruction, first: Numbering, following: int) -> End:
    return lambda threads, lanes: threads.finish(lanes)


def _trap(decoder: Decoder, trap: Instruction, first: Numbering, following: int) -> End:
    def stop(threads: Threads, lanes: Numbers) -> None:
        raise trap_fault(trap, int(lanes[0]))

    return stop


def trap_fault(trap: Instruction, thread: int) -> Fault:
    """The fault of a trap that a thread runs."""
    message = trap.attrs.get("message", "the kernel stopped itself")
    return Fault(trap.attrs["kind"], message, trap, thread)


def _barrier(decoder: Decoder, barrier: Instruction, first: Numbering, following: int) -> End:
    if barrier.attrs.get("count") is not None:
        return lambda threads, lanes: threads.come_to(barrier, lanes, following, waits=True)

    def go_on(threads: Threads, lanes: Numbers) -> None:
        threads.go(following, lanes)

    return lambda threads, lanes: threads.wait_at_barrier(barrier, lanes, go_on)


def _arrive(decoder: Decoder, arrive: Instruction, first: Numbering, following: int) -> End:
    return lambda threads, lanes: threads.come_to(arrive, lanes, following, waits=False)


def _barrier_reduce(decoder: Decoder, barrier: Instruction, first: Numbering, following: int) -> End:
    read, write = decoder.read(barrier.operands[0], barrier), decoder.write(barrier)

    def go_on(threads: Threads, lanes: Numbers) -> None:
        active = threads.active(lanes)
        write(threads.frame, active, reduced(barrier, read, threads.frame, active))
        threads.go(following, lanes)

    return lambda threads, lanes: threads.wait_at_barrier(barrier, lanes, go_on)


def reduced(barrier: Instruction, read: Read, frame: Frame, lanes: Lanes) -> Numbers:
    """The result of a barrier_reduce for the threads that come to it."""
    values = read(frame, lanes)
    assert not isinstance(values, Pointers)
    results = {"popc": np.count_nonzero(values), "and": values.all(), "or": values.any()}
    return full(I32, int(results[barrier.attrs["kind"]]), len(values))


def _exchange(decoder: Decoder, instruction: Instruction, first: Numbering, following: int) -> End:
    mask = decoder.read(instruction.operands[-1], instruction)
    run = exchange_step(decoder, instruction)

    def go_on(threads: Threads, lanes: Numbers) -> None:
        run(threads.frame, threads.active(lanes))
        threads.go(following, lanes)

    def come(threads: Threads, lanes: Numbers) -> None:
        masks = mask(threads.frame, threads.active(lanes))
        assert not isinstance(masks, Pointers)
        threads.wait_at_exchange(instruction, lanes, masks, go_on)

    return come


def exchange_step(decoder: Decoder, instruction: Instruction) -> Step:
    """The step in which some threads run an exchange together."""
    row, attrs = EXCHANGES[instruction.op], instruction.attrs

    def compute(frame: Frame, lanes: Lanes, *operands: Numbers) -> Numbers | Pointers:
        warps = Warps(frame.running(lanes), operands[-1], frame.warp_size)
        return row(warps, attrs, operands[:-1])

    return decoder.deciding(instruction, compute, instruction.operands)


ENDS: dict[str, Maker] = {
    "br": _br,
    "condbr": _condbr,
    "ret": _ret,
    "trap": _trap,
    "barrier": _barrier,
    "arrive": _arrive,
    "barrier_reduce": _barrier_reduce,
    **dict.fromkeys(EXCHANGES, _exchange),
}
"""One row for each opcode that may wait or branch, in functions before linearisation."""
