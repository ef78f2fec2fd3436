"""Machine code without tokens: each block for all lanes of all warps at once, with the reference's results.

The machine visits lanes one after another, and a lane sees what those before it have done. That shows only
where a block reads what it writes: lanes that read and write one memory word take turns here, and blocks
whose lanes meet in a uniform register, or in another warp's register row, run lane by lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from qgpu.backends.machine.block import BOUNDS, FAULTS, Block
from qgpu.backends.machine.follow import Fault, Follower
from qgpu.backends.machine.host import Launch, Region, region_bytes
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.reference.datapath import Ports, evaluate
from qgpu.backends.reference.datapath import Result as LaneResult
from qgpu.backends.reference.lanes import (
    NO_FAULT,
    Access,
    LaneDatapath,
    LanePorts,
    MemoryWords,
    Words,
    lane_datapath,
    word,
)
from qgpu.backends.reference.machine import Machine
from qgpu.backends.reference.run import RunawayError
from qgpu.backends.reference.shadow import Shadow, UninitialisedError
from qgpu.ir.interpreter.atomics import turns

Places: TypeAlias = NDArray[np.intp]
"""Lanes of the thread block, ascending: warp * lanes + lane."""
UNIFORM_ROUTES = ("c_to_d", "c_to_y", "c_to_z", "e_to_j", "e_to_j4", "e_to_d2")
"""Routes of the ports that read nothing but uniform registers."""

OPEN = "the machine leaves open which token follows"


@dataclass(frozen=True)
class Stop:
    """The lane that faulted."""

    kind: str
    block: int
    warp: int
    lane: int


@dataclass(frozen=True)
class Result:
    """What comes of a launch.

    Attributes:
        launch: what ran.
        tokens: how many tokens it would have generated: those of Trace.generated.
        memory: words of data memory after it, 32-bit unsigned.
        fault: why it stopped, or None.
    """

    launch: Launch
    tokens: int
    memory: Words
    fault: Fault | None

    def buffer(self, region: Region) -> bytes:
        """The bytes of a region after the launch."""
        first = region.address // 4
        return region_bytes(region, self.memory[first : first + -(-region.size // 4)].tolist())


def run_blocks(launch: Launch, limit: int | None = None) -> Result:
    """Run a launch: its prompt by the reference machine, what follows block by block.

    Raises:
        RunawayError: it would not have ended after `limit` generated tokens.
        ValueError: the machine leaves open what follows.
    """
    machine = Machine(launch.machine, launch.resident)
    for token in launch.prompt:
        machine.step(token)
    lanes = LaneMachine(machine)
    lanes.shadow = Shadow(launch, lanes) if launch.shared.size else None
    try:
        stop = lanes.run(limit)
        fault = None if stop is None else _fault(launch, lanes, stop)
    except UninitialisedError as error:
        fault = error.fault(launch, _follower(launch, lanes))
    return Result(launch, lanes.tokens, lanes.memory, fault)


def _fault(launch: Launch, lanes: LaneMachine, stop: Stop) -> Fault:
    follower = _follower(launch, lanes)
    follower.block, follower.warp, follower.lane = stop.block, stop.warp, stop.lane
    return follower.fault(vocabulary(launch.machine).id("fault", FAULTS.index(stop.kind)))


def _follower(launch: Launch, lanes: LaneMachine) -> Follower:
    """One that knows the thread block that runs."""
    follower = Follower(launch)
    for preload in launch.kernel.preloads:
        if preload.name in follower.counters and preload.uniform is not None:
            follower.counters[preload.name] = int(lanes.uniforms[preload.uniform])
    return follower


class LaneMachine:
    """A machine that goes on, block by block, from where a reference machine has just entered a block.

    Attributes:
        block: the block to run next, None at the end.
        open: whether it ended because the machine leaves open what follows.
        tokens: how many tokens the reference machine would have generated since.
        registers: [row, lane]; row = register * warp_stride + warp.
        uniforms, memory: 32-bit unsigned.
        predicates: [predicate, warp, lane], the stored ones.
        bounds: of the predicates that have one.
        shadow: what tells which memory was never written, or None.
    """

    def __init__(self, machine: Machine) -> None:
        description = machine.description
        self.description = description
        self.block = machine.block
        self.tokens = 0
        self.warps = machine.warps
        self.code = machine.code
        self.registers = np.array(machine.registers, np.uint32)
        self.uniforms = np.array(machine.uniforms, np.uint32)
        self.memory = np.array(machine.memory, np.uint32)
        self.bounds = list(machine.bounds)
        bits = np.arange(description.lanes)
        self.predicates = np.array(machine.predicates, np.int64)[:, :, None] >> bits & 1 != 0
        self.open = False
        self.shadow: Shadow | None = None
        self._cells = self.registers.reshape(-1)
        self._active: dict[tuple[int, int, int], Places] = {}

    def run(self, limit: int | None = None) -> Stop | None:
        """Run to the end; the lane that faulted, or None.

        Raises:
            RunawayError: it would not have ended after `limit` generated tokens.
            UninitialisedError: with a shadow: a value from memory that was never written decides something.
            ValueError: the machine leaves open what follows.
        """
        stop: Stop | None = None
        while self.block is not None:
            block = self.code[self.block]
            if block is None:
                raise ValueError(OPEN)
            stop = self.step(self.block, block)
            if limit is not None and self.tokens + (self.block is not None or self.open) > limit:
                raise RunawayError(f"the launch has not ended after {limit} tokens")
        if self.open:
            raise ValueError(OPEN)
        return stop

    def step(self, number: int, block: Block) -> Stop | None:
        """Run one block for all its lanes, and choose the next; the lane that faulted, or None."""
        if self.shadow is not None:
            self.shadow.enter(number, block, max(1, self.warps) if block.all_warps else 1)
        visited = self.active(block)
        values, fault = self._run_lanes(number, block, visited)
        warps = max(1, self.warps) if block.all_warps else 1
        self.block = None
        if fault == NO_FAULT:
            self.tokens += self._count(values, visited, warps, block)
            last_warp = int(visited[-1]) // self.description.lanes if len(visited) else -1
            self._go_on(block, values, last_warp == warps - 1)
            return None
        lanes, place = self.description.lanes, int(visited[len(values)])
        self.tokens += self._count(values, visited[: len(values) + 1], place // lanes + 1, block)
        if fault >= len(FAULTS):
            self.open = True
            return None
        self.tokens += 1
        return Stop(FAULTS[fault], number, *divmod(place, lanes))

    def _go_on(self, block: Block, values: Words, ends_active: bool) -> None:
        """Choose the next block; `ends_active` says that the last warp had an active lane."""
        taken = (block.branch_any and values.any()) or (block.skip_idle and not len(values))
        target = block.taken if taken else block.next
        if taken or not block.next_exit:
            self.open = target >= self.description.rom_blocks
            self.block = None if self.open else target
        falls = block.fall and ends_active and not taken
        self.tokens += not (self.open or falls)

    def active(self, block: Block) -> Places:
        """The lanes that a block visits, in order, as warp * lanes + lane."""
        warps = max(1, self.warps) if block.all_warps else 1
        if not block.visit:
            return np.zeros(0, np.intp)
        if block.scalar:
            return np.arange(warps) * self.description.lanes
        key = (block.guard_true, block.guard_false, warps)
        if key not in self._active:
            active = np.ones((warps, self.description.lanes), np.bool_)
            for index in range(len(self.predicates)):
                if block.guard_true >> index & 1:
                    active &= self._holding(index, warps)
                if block.guard_false >> index & 1:
                    active &= ~self._holding(index, warps)
            self._active[key] = np.flatnonzero(active)
        return self._active[key]

    def _holding(self, predicate: int, warps: int) -> NDArray[np.bool_]:
        """The threads in which a predicate holds, [warp, lane]."""
        stored = self.predicates[predicate, :warps]
        if predicate >= BOUNDS:
            return stored
        threads = np.arange(stored.size).reshape(stored.shape)
        return stored | (threads < self.bounds[predicate])

    @property
    def words(self) -> Sequence[int]:
        """Data memory."""
        return MemorySequence(self.memory)

    def cell(self, index: int) -> int:
        """A register of a lane: cell row * lanes + lane of the file."""
        return int(self._cells[index])

    def uniform(self, number: int) -> int:
        """A uniform register."""
        return int(self.uniforms[number])

    def holds(self, predicate: int, thread: int) -> bool:
        """Whether a predicate holds in a thread, stored or by its bound."""
        below = predicate < BOUNDS and thread < self.bounds[predicate]
        return below or bool(self.predicates[predicate].reshape(-1)[thread])

    def _count(self, values: Words, visited: Places, warps: int, block: Block) -> int:
        """Tokens of values, and of the steps over inactive lanes and to the next warp."""
        previous = np.concatenate(([-1], visited[:-1])) if len(visited) else visited
        jumps = (visited != previous + 1) & (visited % self.description.lanes != 0)
        parts = len(values) if block.wr_pred else self._parts(values)
        return parts + int(np.count_nonzero(jumps)) + warps - 1

    def _parts(self, values: Words) -> int:
        """Tokens of the shortest encodings of values: as many payloads as hold them as signed numbers."""
        bits, count = self.description.payload_bits, len(values)
        for part in range(1, self.description.parts):
            half = np.uint32(1 << bits * part - 1)
            count += int(np.count_nonzero(values + half >= half << np.uint32(1)))
        return count

    def _run_lanes(self, number: int, block: Block, visited: Places) -> tuple[Words, int]:
        """Compute and commit; the results before the first fault, and its kind."""
        if len(visited) == 1 or _lanes_meet(block, self):
            return self._one_by_one(number, block, visited)
        datapath, fault = lane_datapath(block), NO_FAULT
        access = datapath.access(self._ports(block, visited))
        if self.shadow is not None and self.shadow.concerns(block, visited, access.address, access.second):
            return self._one_by_one(number, block, visited)
        wrong = np.flatnonzero(access.faults != NO_FAULT)
        if len(wrong):
            first = int(wrong[0])
            fault, visited = int(access.faults[first]), visited[:first]
        address = access.address[: len(visited)]
        places = self._memory_places(access, len(visited))
        if _accesses_meet(block, datapath, *places):
            return self._one_by_one(number, block, visited)
        values = np.empty(len(visited), np.uint32)
        for turn in _turns(block, datapath, *places):
            lanes, first, second = visited[turn], places[0][turn], places[1][turn]
            memory = MemoryWords(
                self.memory[first] if datapath.reads_memory else None,
                self.memory[second] if datapath.reads_second else None,
            )
            values[turn] = datapath.result(self._ports(block, lanes), memory, address[turn])
            self._commit(block, lanes, values[turn], (first, second))
            if self.shadow is not None:
                self.shadow.commit_known(block, lanes, address[turn], access.second[: len(visited)][turn])
        if block.wr_uni:
            self._write_uniform(block, visited, values)
        return values, fault

    def _memory_places(self, access: Access, count: int) -> tuple[Words, Words]:
        """The words of both accesses of the first `count` lanes."""
        words = np.uint32(len(self.memory))
        return (access.address[:count] >> 2) % words, (access.second[:count] >> 2) % words

    def _ports(self, block: Block, visited: Places) -> LanePorts:
        lane = (visited % self.description.lanes).astype(np.uint32)
        a = self._port(block.a, block.a_thread, block.a_uniform, visited)
        b = self._port(block.b, block.b_thread, block.b_uniform, visited)
        return LanePorts(
            a, b, self._uniform(block.c), self._uniform(block.e), self._accumulator(block, visited), lane
        )

    def _accumulator(self, block: Block, visited: Places) -> Words:
        if not block.dest_to_z:
            return _NOTHING
        places = self._places(block.dest, visited)
        reads = places < self.description.accumulator_rows * self.description.lanes
        return np.where(reads, self._cells[places], np.uint32(0))

    def _port(self, number: int, thread: int, uniform: int, visited: Places) -> Words:
        if thread:
            return self._cells[self._places(number, visited)]
        return self._uniform(number) if uniform else _NOTHING

    def _places(self, row: int, visited: Places) -> Places:
        """Where lanes have a register: the rows of the warps follow each other."""
        return (visited + row * self.description.lanes) % len(self._cells)

    def _uniform(self, number: int) -> Words:
        number %= len(self.uniforms)
        return self.uniforms[number : number + 1]

    def _commit(self, block: Block, visited: Places, values: Words, places: tuple[Words, Words]) -> None:
        """Write what is not uniform; of several results to one place the last stays."""
        if block.wr_reg:
            self._cells[self._places(block.dest, visited)] = values
        if block.wr_pred:
            predicate = self.predicates[block.dest_pred % len(self.predicates)]
            predicate.reshape(-1)[visited] = values != 0
            self._active.clear()
        if block.wr_bound and len(values):
            self.bounds[block.dest_pred % BOUNDS] = int(values[-1].view(np.int32))
            self._active.clear()
        if block.wr_mem:
            self.memory[places[0]] = values
        if block.wr_mem2:
            self.memory[places[1]] = values

    def _write_uniform(self, block: Block, visited: Places, values: Words) -> None:
        if not len(visited):
            return
        if block.dest_lane:
            places = visited % self.description.lanes + block.dest
            self.uniforms[places % len(self.uniforms)] = values
        else:
            self.uniforms[block.dest % len(self.uniforms)] = values[-1]

    def _one_by_one(self, number: int, block: Block, visited: Places) -> tuple[Words, int]:
        """The same, lane by lane."""
        memory, values = MemorySequence(self.memory), []
        try:
            for at in range(len(visited)):
                result = self._one_lane(number, block, visited[at : at + 1], memory)
                if result.fault is not None:
                    return np.array(values, np.uint32), result.fault
                values.append(result.value)
        except UninitialisedError:
            warps = int(visited[len(values)]) // self.description.lanes + 1
            done = np.array(values, np.uint32)
            self.tokens += self._count(done, visited[: len(values) + 1], warps, block)
            raise
        return np.array(values, np.uint32), NO_FAULT

    def _one_lane(self, number: int, block: Block, visited: Places, memory: MemorySequence) -> LaneResult:
        """Compute for one lane, and commit where it does not fault."""
        ports, thread = self._ports(block, visited), int(visited[0])
        words = (ports.a, ports.b, ports.c, ports.e, ports.accumulator)
        a, b, c, e, accumulator = (int(value[0]) for value in words)
        numbers = Ports(a, b, c, e, accumulator, thread % self.description.lanes)
        result = evaluate(block, numbers, memory)
        if self.shadow is not None:
            self.shadow.compute(number, block, thread, result)
        if result.fault is not None:
            return result
        places = word((result.address >> 2) % len(memory)), word((result.second >> 2) % len(memory))
        self._commit(block, visited, word(result.value), places)
        if block.wr_uni:
            self._write_uniform(block, visited, word(result.value))
        if self.shadow is not None:
            self.shadow.commit(block, thread, result.address, result.second)
        return result


_NOTHING = word(0)


def _turns(
    block: Block, datapath: LaneDatapath, first: Words, second: Words
) -> Iterable[slice | NDArray[np.intp]]:
    """Groups of lanes that may go at once: those that read and write one word take turns."""
    if datapath.reads_memory and block.wr_mem:
        return turns(first)
    if datapath.reads_second and block.wr_mem2:
        return turns(second)
    return (slice(None),)


def _accesses_meet(block: Block, datapath: LaneDatapath, first: Words, second: Words) -> bool:
    """Whether one access of a lane may touch a word that the other access of another lane writes."""
    both = (datapath.reads_memory or block.wr_mem) and (datapath.reads_second or block.wr_mem2)
    if not both or not (block.wr_mem or block.wr_mem2):
        return False
    return bool(np.isin(first, second).any())


class MemorySequence(Sequence[int]):
    """Memory as a sequence of Python's integers."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        return self._words[index].tolist()


def _lanes_meet(block: Block, machine: LaneMachine) -> bool:
    """Whether a lane may read what another writes, other than through memory."""
    if block.wr_reg:
        rows, warps = machine.description.register_rows, machine.warps
        ports = ((block.a, block.a_thread), (block.b, block.b_thread), (block.dest, block.dest_to_z))
        read = [row for row, used in ports if used]
        if any(0 < (block.dest - row) % rows < warps for row in read):
            return True
    reads = block.a_uniform or block.b_uniform or any(getattr(block, route) for route in UNIFORM_ROUTES)
    return bool(block.wr_uni and reads)
