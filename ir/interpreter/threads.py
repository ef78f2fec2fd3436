"""Functions before linearisation: every thread has a place of its own in the program.

Of the threads that can go on, those at the earliest place in the order of the program run together up to
where they part or wait, so that threads that parted meet again. The order is reverse postorder with loops in
one piece; blocks are cut into segments at barriers and exchanges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.interpreter.decode import Decoder, Frame, Step
from qgpu.ir.interpreter.faults import Fault
from qgpu.ir.interpreter.values import Lanes, Numbers

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
        self,
        program: ThreadProgram,
        frame: Frame,
        spend: Callable[[int, Instruction], None],
        apart: bool = False,
        profile: Counter[Instruction] | None = None,
    ) -> None:
        self.program = program
        self.apart = apart
        self.profile = profile
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
            number, lanes = self._first_thread() if self.apart else self._turn()
            segment = segments[number]
            self.spend(len(segment.steps) + 1, segment.instruction)
            active = self.active(lanes)
            for step in segment.steps:
                step(frame, active)
            if self.profile is not None:
                self.profile[segment.instruction] += len(lanes)
            segment.end(self, lanes)

    def _first_thread(self) -> tuple[int, Numbers]:
        """The first thread that can go on, by itself, and the segment it runs."""
        number = min(self.ready, key=lambda number: self.ready[number][0])
        first, others = np.split(self.ready.pop(number), [1])
        if len(others):
            self.ready[number] = others
        return number, first

    def _turn(self) -> tuple[int, Numbers]:
        """The segment to run, and its threads: the earliest, but in the end also that which others put off.

        Threads that wait in a loop for what a thread behind it does are to get it (CUDA C++ Programming
        Guide, independent thread scheduling).
        """
        if len(self.ready) == 1:
            return self.ready.popitem()
        latest = max(self.ready)
        if self.ready[latest] is not self._passed_over:
            self._passed_over, self._patience = self.ready[latest], PATIENCE
        self._patience -= 1
        number = latest if self._patience < 0 else min(self.ready)
        return number, self.ready.pop(number)

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
