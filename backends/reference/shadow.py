"""Values that come from shared memory which nothing has written in this thread block.

The machine reads what memory holds there; a GPU would read anything. The rule is the IR interpreter's: the
read itself is no fault, since a compiler may load before it knows that the value is wanted. Its result is
marked, and so is what is computed from it, through registers, predicates and memory; a marked value that
decides something (a store, a branch, an address, what leaves the thread block) is the fault, and is put down
to the read. Tokens show nothing of this, so it is a check of the interpreters alone.

The compiler makes guards of conditions, and those of the source that are combined one after another. So a
guard decides nothing by itself: a lane goes on in both `worlds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from qgpu.backends.machine.block import Block
from qgpu.backends.machine.follow import UNINITIALISED, Fault, Follower
from qgpu.backends.machine.host import Launch, Region
from qgpu.backends.machine.program import SPILLED_UNIFORMS, SharedArray
from qgpu.backends.reference.datapath import Ports, Result, evaluate, operands
from qgpu.backends.reference.possible import possible
from qgpu.backends.reference.worlds import Outcome, World, Worlds

_WHOLE = 0b1111
"""All bytes of a word."""

_Address = TypeVar("_Address", int, NDArray[Any])
"""Byte addresses of one lane or of many."""


class State(Protocol):
    """The machine, as a shadow sees it; a cell of the register file is row * lanes + lane."""

    @property
    def words(self) -> Sequence[int]:
        """Data memory."""
        ...

    def cell(self, index: int) -> int: ...

    def uniform(self, number: int) -> int: ...

    def holds(self, predicate: int, thread: int) -> bool: ...


@dataclass(frozen=True)
class Read:
    """A read of bytes that nothing wrote: the block, warp * lanes + lane, and what is wrong."""

    block: int
    thread: int
    text: str


class UninitialisedError(Exception):
    """A value that decides something comes from memory which was never written."""

    def __init__(self, read: Read) -> None:
        super().__init__(read.text)
        self.read = read

    def fault(self, launch: Launch, follower: Follower) -> Fault:
        """The fault that this is; `follower` knows the thread block."""
        follower.block = self.read.block
        follower.warp, follower.lane = divmod(self.read.thread, launch.machine.lanes)
        return follower.stopped(UNINITIALISED, self.read.text)


class Shadow:
    """What is not known in a launch. A mark is as in `possible`.

    Attributes:
        active: whether anything has a mark, or a lane several worlds.
    """

    def __init__(self, launch: Launch, state: State) -> None:
        machine, kernel = launch.machine, launch.kernel
        self.active = False
        self._state = state
        self._machine = machine
        self._end = kernel.thread_block_end
        self._arrays = kernel.shared_arrays
        self._shared = launch.shared
        spilled = [r for r, h in zip(launch.hidden, kernel.hidden, strict=True) if h.name == SPILLED_UNIFORMS]
        self._private = [_words(region) for region in (launch.shared, launch.local, *spilled)]
        self._reads: list[Read] = []
        self._written = np.full(machine.memory_words, _WHOLE, np.uint8)
        self._memory = np.zeros(machine.memory_words, np.int32)
        self._uniforms = np.zeros(machine.uniform_registers, np.int32)
        self._cells = machine.register_rows * machine.lanes
        self._worlds = Worlds(self._cells, machine.predicates, machine.warps * machine.lanes)
        self._outcomes: list[Outcome] = []
        self._forget()

    def _forget(self) -> None:
        """A thread block begins: nothing is written in shared memory, and no value comes from it."""
        if self.active:
            self._written[:] = _WHOLE
            self._memory[:] = 0
            self._uniforms[:] = 0
            self._worlds.forget()
            self._reads.clear()
        self._written[self._private[0]] = 0
        self.active = False

    # What one lane does

    def enter(self, number: int, block: Block, warps: int) -> None:
        """A block begins, of `warps` warps: lanes that the machine does not visit may take part elsewhere.

        Raises:
            UninitialisedError: what a lane does there would show.
        """
        if number == self._end:
            self._forget()
        if not self.active or block.scalar or not block.visit:
            return
        for thread in sorted(self._worlds.lanes):
            if thread < warps * self._machine.lanes and not self._takes_part(block, thread, World()):
                self._outcomes = self._decided(block, self._run(number, block, thread))
                if any(outcome.runs for outcome in self._outcomes):
                    self._assign(block, thread)

    def compute(self, number: int, block: Block, thread: int, result: Result) -> None:
        """A lane that the machine visits has a result; `commit` will follow.

        Raises:
            UninitialisedError: it does something that a value from unwritten memory decides.
        """
        self._outcomes = []
        if not self.active and self._are_written(block, result):
            return
        self._outcomes = self._decided(block, self._run(number, block, thread))

    def commit(self, block: Block, thread: int, address: int, second: int) -> None:
        """The result of `compute` goes to the block's destinations."""
        if self._outcomes:
            self._assign(block, thread)
            return
        if block.wr_mem:
            self._write(address, _stored(block, address), 0)
        if block.wr_mem2:
            self._write(second, _WHOLE, 0)

    def _run(self, number: int, block: Block, thread: int) -> list[Outcome]:
        """What a block makes of a lane in each of its worlds, first the one that the machine runs."""
        found: list[Outcome] = []
        for world in self._worlds.of(thread):
            if self._takes_part(block, thread, world):
                found += self._evaluated(number, block, thread, world)
            else:
                value, mark = self._held(block, thread, world)
                found.append(Outcome(world, False, value, mark))
        actual = next(outcome for outcome in found if not outcome.world.cause)
        return [actual, *(outcome for outcome in found if outcome is not actual)]

    def _takes_part(self, block: Block, thread: int, world: World) -> bool:
        if block.scalar:
            return True
        for mask, wanted in ((block.guard_true, True), (block.guard_false, False)):
            for predicate in range(self._machine.predicates):
                if mask >> predicate & 1:
                    held = int(self._state.holds(predicate, thread))
                    value, mark = self._worlds.known(thread, world, ~predicate, held)
                    if mark:
                        raise self._error(mark)
                    if bool(value) != wanted:
                        return False
        return True

    def _held(self, block: Block, thread: int, world: World) -> tuple[int, int]:
        """What the destination of a block holds in a world."""
        if block.wr_pred:
            held = int(self._state.holds(block.dest_pred, thread))
            return self._worlds.known(thread, world, ~block.dest_pred, held)
        return self._register(thread, world, block.dest) if block.wr_reg else (0, 0)

    def _register(self, thread: int, world: World, row: int) -> tuple[int, int]:
        cell = self._cell(row, thread)
        return self._worlds.known(thread, world, cell, self._state.cell(cell))

    def _cell(self, row: int, thread: int) -> int:
        """Where a lane has a register: the rows of the warps follow each other."""
        return (thread + row * self._machine.lanes) % self._cells

    def _evaluated(self, number: int, block: Block, thread: int, world: World) -> list[Outcome]:
        """What becomes of a lane that takes part; of two worlds where its result is an unknown condition."""
        values, marks = self._ports(block, thread, world)
        result = evaluate(block, values, self._state.words)
        for port, routes in ADDRESS_ROUTES.items():
            if marks[port] and any(getattr(block, route) for route in routes):
                raise self._error(marks[port])
        outcome = Outcome(world, True, result.value, 0, result.address, result.second, result.fault)
        if block.wr_pred:
            outcome.value = int(result.value != 0)
        if result.fault is not None:
            return [outcome]
        marks["m"] = self._read(number, block, thread, result.address, _needed(block, result.address))
        marks["m2"] = self._read(number, block, thread, result.second, _second_needed(block))
        changed = marks["m"] if block.wr_mem and not _keeps(block) else marks["m2"] if block.wr_mem2 else 0
        if changed:
            raise self._error(changed)
        x, y, z = (_routed(block, routes, marks) for routes in OPERAND_ROUTES)
        if not (x or y or z):
            return [outcome]
        cause = max(map(abs, (x, y, z)))
        given = operands(block, values, self._state.words, result.address, result.second)
        return self._forked(block, outcome, cause, possible(block, given, (x, y, z), result.address))

    def _forked(self, block: Block, outcome: Outcome, cause: int, values: set[int] | None) -> list[Outcome]:
        if values is not None and len(values) == 1:
            return [outcome]
        condition = bool(block.wr_pred) or (values is not None and values <= {0, 1})
        if not condition or not (block.wr_pred or block.wr_reg):
            return [replace(outcome, mark=-cause if condition else cause)]
        other = World(cause, dict(outcome.world.values) if outcome.world.cause else {})
        return [outcome, replace(outcome, world=other, value=1 - outcome.value)]

    def _ports(self, block: Block, thread: int, world: World) -> tuple[Ports, dict[str, int]]:
        """What a lane has at its ports in a world, and the marks of that."""
        reads = block.dest_to_z and self._cell(block.dest, thread) < self._accumulators
        a, of_a = self._port(block.a, block.a_thread, block.a_uniform, thread, world)
        b, of_b = self._port(block.b, block.b_thread, block.b_uniform, thread, world)
        c, of_c = self._uniform(block.c)
        e, of_e = self._uniform(block.e)
        old, of_old = self._register(thread, world, block.dest) if reads else (0, 0)
        marks = {"a": of_a, "b": of_b, "c": of_c, "e": of_e, "dest": of_old}
        return Ports(a, b, c, e, old, thread % self._machine.lanes), marks

    @property
    def _accumulators(self) -> int:
        return self._machine.accumulator_rows * self._machine.lanes

    def _port(
        self, number: int, from_thread: int, uniform: int, thread: int, world: World
    ) -> tuple[int, int]:
        if from_thread:
            return self._register(thread, world, number)
        return self._uniform(number) if uniform else (0, 0)

    def _uniform(self, number: int) -> tuple[int, int]:
        number %= len(self._uniforms)
        return self._state.uniform(number), int(self._uniforms[number])

    def _decided(self, block: Block, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes; UninitialisedError where what is not known shows in more than registers."""
        actual = outcomes[0]
        shows = block.branch_any or block.wr_bound
        for outcome in outcomes:
            if outcome.mark and outcome.runs and (shows or self._leaves(block, outcome)):
                raise self._error(outcome.mark)
        for other in outcomes[1:]:
            if self._shows(block, actual, other):
                raise self._error(other.world.cause)
        return outcomes

    def _shows(self, block: Block, actual: Outcome, other: Outcome) -> bool:
        """Whether two outcomes differ in more than registers."""
        if actual.fault != other.fault:
            return True
        results = [outcome.value if outcome.runs else 0 for outcome in (actual, other)]
        if block.branch_any and bool(results[0]) != bool(results[1]):
            return True
        if not (block.wr_mem or block.wr_mem2 or block.wr_bound):
            return False
        if actual.runs != other.runs or (actual.address, actual.second) != (other.address, other.second):
            return True
        return actual.differs(other) and (bool(block.wr_bound) or self._leaves(block, actual))

    def _leaves(self, block: Block, outcome: Outcome) -> bool:
        """Whether a result goes to memory that is not the thread block's alone."""
        if block.wr_mem and not self._is_private(outcome.address):
            return True
        return bool(block.wr_mem2 and not self._is_private(outcome.second))

    def _assign(self, block: Block, thread: int) -> None:
        """Outcomes go to the block's destinations."""
        outcomes, actual = self._outcomes, self._outcomes[0]
        mark = actual.mark
        for other in outcomes[1:]:
            if not mark and (other.runs != actual.runs or other.differs(actual)):
                mark = other.mark or other.world.cause
        self.active = self.active or mark != 0
        if block.wr_mem:
            self._write(actual.address, _stored(block, actual.address), mark)
        if block.wr_mem2:
            self._write(actual.second, _WHOLE, mark)
        if block.wr_uni:
            self._uniforms[block.dest % len(self._uniforms)] = mark
        if block.wr_pred:
            self._worlds.assign(thread, ~block.dest_pred, outcomes)
        if block.wr_reg:
            self._worlds.assign(thread, self._cell(block.dest, thread), outcomes)

    # Memory

    def _write(self, address: int, bits: int, mark: int) -> None:
        word = (address >> 2) % len(self._written)
        if not mark:
            self._written[word] |= bits
            return
        self._written[word] &= ~bits & _WHOLE
        self._memory[word] = 0 if _inside(self._private[0], word) else mark

    def _read(self, number: int, block: Block, thread: int, address: int, needed: int) -> int:
        """The mark of what a lane reads from memory, of whose word it needs some bytes."""
        word = (address >> 2) % len(self._written)
        if self._written[word] & needed == needed:
            return 0
        if self._memory[word]:
            return int(self._memory[word])
        self._reads.append(Read(number, thread, self._text(address, needed.bit_count())))
        return len(self._reads)

    def _are_written(self, block: Block, result: Result) -> bool:
        """Whether the bytes that a lane reads are."""
        if result.fault is not None:
            return True
        accesses = ((result.address, _needed(block, result.address)), (result.second, _second_needed(block)))
        words = ((int(self._written[(at >> 2) % len(self._written)]), needed) for at, needed in accesses)
        return all(written & needed == needed for written, needed in words)

    def _text(self, address: int, size: int) -> str:
        offset = address - self._shared.address
        before = [array for array in self._arrays if array.offset <= offset]
        array = max(before, key=lambda array: array.offset, default=SharedArray("shared memory", 0, 0))
        return f"{size} bytes at offset {offset - array.offset} of '{array.name}', not all written"

    def _is_private(self, address: int) -> bool:
        word = (address >> 2) % len(self._written)
        return any(_inside(words, word) for words in self._private)

    def _error(self, mark: int) -> UninitialisedError:
        return UninitialisedError(self._reads[abs(mark) - 1])

    # What many lanes do

    def concerns(
        self, block: Block, threads: NDArray[np.intp], address: NDArray[Any], second: NDArray[Any]
    ) -> bool:
        """Whether what is not known is among what lanes read, or decides whether they take part."""
        if _reads(block) and self._any_unwritten(address, _needed(block, address)):
            return True
        if block.m2_to_z and self._any_unwritten(second, np.array([_WHOLE])):
            return True
        if not self.active:
            return False
        guard = [
            p for p in range(self._machine.predicates) if (block.guard_true | block.guard_false) >> p & 1
        ]
        if not block.scalar and self._worlds.predicates[guard][:, threads].any():
            return True
        if any(self._uniforms[number % len(self._uniforms)] for number in (block.c, block.e)):
            return True
        ports = (
            (block.a, block.a_thread, block.a_uniform),
            (block.b, block.b_thread, block.b_uniform),
            (block.dest, block.dest_to_z, 0),
        )
        for number, thread, uniform in ports:
            if thread and self._worlds.registers[self._lane_cells(number, threads)].any():
                return True
            if uniform and self._uniforms[number % len(self._uniforms)]:
                return True
        return False

    def _any_unwritten(self, address: NDArray[Any], needed: NDArray[Any]) -> bool:
        return bool((self._written[(address >> 2) % len(self._written)] & needed != needed).any())

    def commit_known(
        self, block: Block, threads: NDArray[np.intp], address: NDArray[Any], second: NDArray[Any]
    ) -> None:
        """Results of lanes that `concerns` says nothing of go to the block's destinations."""
        if block.wr_mem:
            self._written[(address >> 2) % len(self._written)] |= _stored(block, address)
        if block.wr_mem2:
            self._written[(second >> 2) % len(self._written)] = _WHOLE
        if not self.active:
            return
        if block.wr_uni and len(threads):
            self._uniforms[block.dest % len(self._uniforms)] = 0
        if block.wr_reg:
            cells = self._lane_cells(block.dest, threads)
            unsure = self._worlds.registers[cells]
            self._worlds.assign_known(threads[unsure].tolist(), cells[unsure].tolist())
        if block.wr_pred:
            unsure = threads[self._worlds.predicates[block.dest_pred, threads]].tolist()
            self._worlds.assign_known(unsure, [~block.dest_pred] * len(unsure))

    def _lane_cells(self, row: int, threads: NDArray[np.intp]) -> NDArray[np.intp]:
        return (threads + row * self._machine.lanes) % self._cells


ADDRESS_ROUTES = {
    "a": ("a_to_i", "a_to_i4", "a_to_d"),
    "c": ("c_to_d",),
    "e": ("e_to_j", "e_to_j4", "e_to_d2"),
}
"""The routes from each port to an address."""

OPERAND_ROUTES: tuple[dict[str, str], ...] = (
    {"a_to_x": "a", "m_to_x": "m", "m_sub_to_x": "m"},
    {"b_to_y": "b", "c_to_y": "c", "m_to_y": "m"},
    {"b_to_z": "b", "c_to_z": "c", "m2_to_z": "m2", "dest_to_z": "dest"},
)
"""The routes to X, Y and Z, and the port or memory word that each comes from."""


def _routed(block: Block, routes: dict[str, str], marks: dict[str, int]) -> int:
    """The mark of an operand: that of the source whose route is on."""
    return next((marks[source] for route, source in routes.items() if getattr(block, route)), 0)


def _words(region: Region) -> slice:
    return slice(region.address // 4, -(-(region.address + region.size) // 4))


def _inside(words: slice, word: int) -> bool:
    return words.start <= word < words.stop


def _reads(block: Block) -> bool:
    return bool(block.m_to_x or block.m_to_y or block.m_sub_to_x)


def _bytes(block: Block, address: _Address) -> _Address:
    """The bytes of its word that an access selects, as a mask."""
    whole = _WHOLE + 0 * address
    if block.width8:
        return 1 << (address & 3)
    return 3 << (address & 2) if block.width16 else whole


def _stored(block: Block, address: _Address) -> _Address:
    """The bytes of the word that a store of a block writes anew."""
    return _bytes(block, address) if block.op == "merge" else _WHOLE + 0 * address


def _keeps(block: Block) -> bool:
    """Whether a block replaces a part of a word in memory: what it reads besides goes back unchanged."""
    return bool(block.wr_mem and block.op == "merge")


def _needed(block: Block, address: _Address) -> _Address:
    """The bytes of the memory word that a result depends on."""
    if block.m_sub_to_x:
        return _bytes(block, address)
    reads = (block.m_to_x or block.m_to_y) and not _keeps(block)
    return (_WHOLE if reads else 0) + 0 * address


def _second_needed(block: Block) -> int:
    return _WHOLE if block.m2_to_z else 0
