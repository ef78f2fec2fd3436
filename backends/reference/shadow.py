"""Values that come from shared memory which nothing has written in this thread block.

The machine reads what memory holds there; a GPU would read anything. The rule is the IR interpreter's:
the read itself is no fault, since a compiler may load before it knows that the value is wanted. Its result is
marked, and so is what is computed from it, through registers, predicates and memory; a marked value that
decides something (a guard, a branch, an address, what leaves the thread block) is the fault, and is put down
to the read. Tokens show nothing of this, so it is a check of the interpreters alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qgpu.backends.machine.block import Block
from qgpu.backends.machine.follow import UNINITIALISED, Fault, Follower
from qgpu.backends.machine.host import Launch, Region
from qgpu.backends.machine.program import SPILLED_UNIFORMS, SharedArray
from qgpu.backends.reference.datapath import OPERATIONS, WORD, Result

_WHOLE = 0b1111
"""All bytes of a word."""

_Address = TypeVar("_Address", int, NDArray[Any])
"""Byte addresses of one lane or of many."""

Operands = tuple[int, int, int]
"""X, Y and Z of a lane, or their marks."""


@dataclass(frozen=True)
class Read:
    """A read of bytes that nothing wrote: the block, warp * lanes + lane, and what is wrong."""

    block: int
    place: int
    text: str


class UninitialisedError(Exception):
    """A value that decides something comes from memory which was never written."""

    def __init__(self, read: Read) -> None:
        super().__init__(read.text)
        self.read = read

    def fault(self, launch: Launch, follower: Follower) -> Fault:
        """The fault that this is; `follower` knows the thread block."""
        follower.block = self.read.block
        follower.warp, follower.lane = divmod(self.read.place, launch.machine.lanes)
        return follower.stopped(UNINITIALISED, self.read.text)


class Shadow:
    """The marks of a launch: by the number of a read, 0 where all is well.

    Attributes:
        active: whether any register or predicate may have a mark.
    """

    def __init__(self, launch: Launch) -> None:
        machine, kernel = launch.machine, launch.kernel
        self.active = False
        self._lanes = machine.lanes
        self._end = kernel.thread_block_end
        self._arrays = kernel.shared_arrays
        self._shared = launch.shared
        spilled = [r for r, h in zip(launch.hidden, kernel.hidden, strict=True) if h.name == SPILLED_UNIFORMS]
        self._private = [_words(region) for region in (launch.shared, launch.local, *spilled)]
        self._reads: list[Read] = []
        self._written = np.full(machine.memory_words, _WHOLE, np.uint8)
        self._memory = np.zeros(machine.memory_words, np.int32)
        self._registers = np.zeros(machine.register_rows * machine.lanes, np.int32)
        self._uniforms = np.zeros(machine.uniform_registers, np.int32)
        self._predicates = np.zeros((machine.predicates, machine.warps * machine.lanes), np.int32)
        self._result = 0
        self._forget()

    def _forget(self) -> None:
        """A thread block begins: nothing is written in shared memory, and no value comes from it."""
        if self.active:
            self._written[:] = _WHOLE
            for marks in (self._memory, self._registers, self._uniforms, self._predicates):
                marks[:] = 0
            self._reads.clear()
        self._written[self._private[0]] = 0
        self.active = False

    # What one lane does

    def enter(self, number: int, block: Block, holds: Callable[[], NDArray[np.bool_]]) -> None:
        """A block begins; `holds` tells which predicates hold: [predicate, warp * lanes + lane].

        Raises:
            UninitialisedError: whether a lane takes part comes from memory that was never written.
        """
        if number == self._end:
            self._forget()
        if not self.active or block.scalar or not self._predicates.any():
            return
        true, false = (self._guard(mask) for mask in (block.guard_true, block.guard_false))
        marks = np.zeros(self._predicates.shape[1], np.int32)
        off = np.zeros(marks.shape, np.bool_)
        for wanted, chosen in ((True, true), (False, false)):
            own, value = self._predicates[chosen], holds()[chosen, : len(marks)]
            marks = np.maximum(marks, own.max(axis=0, initial=0))
            off |= ((value != wanted) & (own == 0)).any(axis=0)
        marks[off] = 0
        if marks.any():
            raise self._error(int(marks[marks > 0][0]))

    def _guard(self, mask: int) -> list[int]:
        return [index for index in range(len(self._predicates)) if mask >> index & 1]

    def compute(
        self, number: int, block: Block, place: int, result: Result, operands: Callable[[], Operands]
    ) -> None:
        """A lane computes a result from operands; `commit` will follow.

        Raises:
            UninitialisedError: the result is or does something that a value from unwritten memory decides.
        """
        self._result = 0
        ports = self._ports(block, place)
        for port, routes in ADDRESS_ROUTES.items():
            if ports[port] and any(getattr(block, route) for route in routes):
                raise self._error(ports[port])
        if result.fault is not None:
            return
        first = self._read(number, block, place, result.address, _needed(block, result.address))
        second = self._read(number, block, place, result.second, _WHOLE if block.m2_to_z else 0)
        changed = first if block.wr_mem and not _keeps(block) else second if block.wr_mem2 else 0
        if changed:
            raise self._error(changed)
        sources = {**ports, "m": first, "m2": second}
        x, y, z = (_routed(block, routes, sources) for routes in OPERAND_ROUTES)
        mark = MARKS.get(block.op, _any)(block, operands(), (x, y, z)) if x or y or z else 0
        if mark and (block.branch_any or block.wr_bound or self._leaves(block, result)):
            raise self._error(mark)
        self._result = mark

    def _leaves(self, block: Block, result: Result) -> bool:
        """Whether the result goes to memory that is not the thread block's alone."""
        if block.wr_mem and not self._is_private(result.address):
            return True
        return bool(block.wr_mem2 and not self._is_private(result.second))

    def commit(self, block: Block, place: int, address: int, second: int) -> None:
        """The result of `compute` goes to the block's destinations."""
        mark = self._result
        self.active = self.active or mark != 0
        if block.wr_reg:
            self._registers[self._cells(block.dest, place)] = mark
        if block.wr_uni:
            self._uniforms[block.dest % len(self._uniforms)] = mark
        if block.wr_pred:
            self._predicates[block.dest_pred, place] = mark
        if block.wr_mem:
            self._write(address, _stored(block, address), mark)
        if block.wr_mem2:
            self._write(second, _WHOLE, mark)

    def _write(self, address: int, bits: int, mark: int) -> None:
        word = (address >> 2) % len(self._written)
        if not mark:
            self._written[word] |= bits
            return
        self._written[word] &= ~bits & _WHOLE
        self._memory[word] = 0 if _inside(self._private[0], word) else mark

    def _ports(self, block: Block, place: int) -> dict[str, int]:
        """The marks of what a lane has at its ports."""
        if not self.active:
            return dict.fromkeys(PORTS, 0)
        uniforms = self._uniforms
        return {
            "a": self._port(block.a, block.a_thread, block.a_uniform, place),
            "b": self._port(block.b, block.b_thread, block.b_uniform, place),
            "c": int(uniforms[block.c % len(uniforms)]),
            "e": int(uniforms[block.e % len(uniforms)]),
            "dest": self._port(block.dest, block.dest_to_z, 0, place),
        }

    def _port(self, number: int, thread: int, uniform: int, place: int) -> int:
        if thread:
            return int(self._registers[self._cells(number, place)])
        return int(self._uniforms[number % len(self._uniforms)]) if uniform else 0

    def _read(self, number: int, block: Block, place: int, address: int, needed: int) -> int:
        """The mark of what a lane reads from memory, of whose word it needs some bytes."""
        word = (address >> 2) % len(self._written)
        if self._written[word] & needed == needed:
            return 0
        if self._memory[word]:
            return int(self._memory[word])
        self._reads.append(Read(number, place, self._text(address, needed.bit_count())))
        return len(self._reads)

    def _text(self, address: int, size: int) -> str:
        offset = address - self._shared.address
        before = [array for array in self._arrays if array.offset <= offset]
        array = max(before, key=lambda array: array.offset, default=SharedArray("shared memory", 0, 0))
        return f"{size} bytes at offset {offset - array.offset} of '{array.name}', not all written"

    def _is_private(self, address: int) -> bool:
        word = (address >> 2) % len(self._written)
        return any(_inside(words, word) for words in self._private)

    def _error(self, mark: int) -> UninitialisedError:
        return UninitialisedError(self._reads[mark - 1])

    # What many lanes do

    def concerns(
        self, block: Block, places: NDArray[np.intp], address: NDArray[Any], second: NDArray[Any]
    ) -> bool:
        """Whether a value with a mark, or memory that was not written, is among what lanes read."""
        reads = block.m_to_x or block.m_to_y or block.m_sub_to_x
        if reads and self._any_unwritten(address, _needed(block, address)):
            return True
        if block.m2_to_z and self._any_unwritten(second, np.array([_WHOLE])):
            return True
        if not self.active:
            return False
        marks = [self._uniforms[number % len(self._uniforms)] for number in (block.c, block.e)]
        for number, thread, uniform in (
            (block.a, block.a_thread, block.a_uniform),
            (block.b, block.b_thread, block.b_uniform),
            (block.dest, block.dest_to_z, 0),
        ):
            if thread:
                marks.append(self._registers[self._cells(number, places)].any())
            elif uniform:
                marks.append(self._uniforms[number % len(self._uniforms)])
        return any(marks)

    def _any_unwritten(self, address: NDArray[Any], needed: NDArray[Any]) -> bool:
        return bool((self._written[(address >> 2) % len(self._written)] & needed != needed).any())

    def commit_clean(
        self, block: Block, places: NDArray[np.intp], address: NDArray[Any], second: NDArray[Any]
    ) -> None:
        """Results that have no mark go to the block's destinations."""
        if block.wr_mem:
            self._written[(address >> 2) % len(self._written)] |= _stored(block, address)
        if block.wr_mem2:
            self._written[(second >> 2) % len(self._written)] = _WHOLE
        if not self.active:
            return
        if block.wr_reg:
            self._registers[self._cells(block.dest, places)] = 0
        if block.wr_uni and len(places):
            self._uniforms[block.dest % len(self._uniforms)] = 0
        if block.wr_pred:
            self._predicates[block.dest_pred, places] = 0

    def _cells(self, row: int, places: int | NDArray[np.intp]) -> int | NDArray[np.intp]:
        """Where lanes have a register: the rows of the warps follow each other."""
        return (places + row * self._lanes) % len(self._registers)


PORTS = ("a", "b", "c", "e", "dest")
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


def _routed(block: Block, routes: dict[str, str], sources: dict[str, int]) -> int:
    """The mark of an operand: that of the source whose route is on."""
    return next((sources[source] for route, source in routes.items() if getattr(block, route)), 0)


def _words(region: Region) -> slice:
    return slice(region.address // 4, -(-(region.address + region.size) // 4))


def _inside(words: slice, word: int) -> bool:
    return words.start <= word < words.stop


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


def _any(block: Block, operands: Operands, marks: Operands) -> int:
    return max(marks)


def _mad(block: Block, operands: Operands, marks: Operands) -> int:
    (x, y, _), (of_x, of_y, of_z) = operands, marks
    absorbed = (x == 0 and not of_x) or (y == 0 and not of_y)
    return of_z if absorbed else max(marks)


def _lop3(block: Block, operands: Operands, marks: Operands) -> int:
    """None where the operands without a mark give every bit alone."""
    choices = [(0, WORD) if mark else (value,) for value, mark in zip(operands, marks, strict=True)]
    compute = OPERATIONS["lop3"]
    results = {compute(block, x, y, z, 0) for x in choices[0] for y in choices[1] for z in choices[2]}
    return max(marks) if len(results) > 1 else 0


def _select(block: Block, operands: Operands, marks: Operands) -> int:
    (x, y, z), (of_x, of_y, of_z) = operands, marks
    taken = of_x if z & 1 else of_y
    alike = x == y and not of_x and not of_y
    return 0 if alike else max(taken, of_z)


def _lex(block: Block, operands: Operands, marks: Operands) -> int:
    (x, y, _), (of_x, of_y, of_z) = operands, marks
    return max(of_x, of_y, of_z if x == y else 0)


MARKS: dict[str, Callable[[Block, Operands, Operands], int]] = {
    "mad": _mad,
    "mulhi": _mad,
    "lop3": _lop3,
    "select": _select,
    "lex": _lex,
}
"""The mark of R, of the operations where some operands can give it alone; else it is that of any operand."""
