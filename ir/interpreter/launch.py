"""A launch: memory, the thread blocks of the grid in order, and the function that they run."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import IntType, PtrType
from qgpu.ir.core.values import Argument
from qgpu.ir.interpreter.decode import Frame
from qgpu.ir.interpreter.ends import decode_threads
from qgpu.ir.interpreter.faults import Fault
from qgpu.ir.interpreter.lockstep import Lockstep, LockstepProgram, decode_lockstep
from qgpu.ir.interpreter.memory import ALIGN, Buffer, Memory
from qgpu.ir.interpreter.shadow import Shadow
from qgpu.ir.interpreter.threads import ThreadProgram, Threads
from qgpu.ir.interpreter.values import Numbers, Pointers, Values, full

Dim3 = tuple[int, int, int]
Program = ThreadProgram | LockstepProgram
MAX_WARP = 32
"""Lanes that the mask of an exchange has room for."""


class Launch:
    """One launch of a function; `run` executes all thread blocks in order."""

    def __init__(
        self,
        function: Function,
        args: Sequence[int | bytearray | memoryview],
        grid: Dim3,
        block: Dim3,
        warp_size: int,
        max_steps: int,
        shared_bytes: int,
        output: Callable[[str], object],
        apart: bool = False,
        profile: Counter[Instruction] | None = None,
    ) -> None:
        if profile is not None and function.linearised:
            raise ValueError("a linearised function has no threads to count")
        if not 1 <= warp_size <= MAX_WARP:
            raise ValueError(f"warps of {warp_size} lanes; they have 1 to {MAX_WARP}")
        self.function = function
        self.grid = grid
        self.block = block
        self.warp_size = warp_size
        self.steps_left = max_steps
        self.output = output
        self.apart = apart
        self.profile = profile
        self.threads = np.arange(block[0] * block[1] * block[2])
        self.program = decoded(function)
        self.arrays: dict[str, int] = {}
        pairs = list(zip(function.args, args, strict=True))
        buffers = [_source(argument, value) for argument, value in pairs if _takes_buffer(argument, value)]
        buffers += self._declare(len(buffers) + 1, shared_bytes)
        self.memory = Memory(buffers, len(self.threads), _moves_pointers(function))
        self.origin = np.zeros(len(self.threads), np.int64)
        self.initial = self._initial_values(pairs)
        self.specials = self._thread_registers()

    def _declare(self, first: int, shared_bytes: int) -> list[Buffer]:
        """The function's arrays, numbered from `first` on, those that keep their content first.

        Shared arrays of size 0 are dynamic shared memory: one buffer under all their names.
        """
        buffers: list[Buffer] = []
        dynamic: int | None = None
        for array in sorted(self.function.shared, key=lambda array: array.space in ("shared", "local")):
            is_dynamic = array.space == "shared" and array.size == 0
            if is_dynamic and dynamic is not None:
                self.arrays[array.name] = dynamic
                continue
            self.arrays[array.name] = first + len(buffers)
            dynamic = self.arrays[array.name] if is_dynamic else dynamic
            size = shared_bytes if is_dynamic else array.size
            stride = -(-size // ALIGN) * ALIGN if array.space == "local" else 0
            buffers.append(Buffer(array.name, array.space, size, stride, data=array.data))
        return buffers

    def _initial_values(self, pairs: Sequence[tuple[Argument, Any]]) -> list[Values | None]:
        """What a frame holds before the first instruction: arguments and constants."""
        decoder, count = self.program.decoder, len(self.threads)
        values: list[Values | None] = [None] * len(decoder.numbers)
        buffer = 0
        for argument, value in pairs:
            if isinstance(argument.type, IntType):
                values[decoder.number(argument)] = full(argument.type, value & argument.type.mask, count)
                continue
            buffer += 1
            values[decoder.number(argument)] = Pointers(buffer, self.origin)
        for number, constant in decoder.constants:
            values[number] = full(constant.type, constant.value, count)
        return values

    def _thread_registers(self) -> dict[str, Numbers]:
        """The special registers that are the same in all thread blocks."""
        x, y, _ = self.block
        threads, size = self.threads, self.warp_size
        numbers = {"laneid": threads % size, "warpid": threads // size}
        numbers |= {"tid.x": threads % x, "tid.y": threads // x % y, "tid.z": threads // (x * y)}
        for axis, length, blocks in zip("xyz", self.block, self.grid, strict=True):
            numbers |= {f"ntid.{axis}": np.full_like(threads, length)}
            numbers |= {f"nctaid.{axis}": np.full_like(threads, blocks)}
        return {name: values.astype(np.uint32) for name, values in numbers.items()}

    def run(self) -> None:
        """Runs all thread blocks, x fastest; buffers get their content at the end or at a fault."""
        try:
            for z, y, x in product(*map(range, reversed(self.grid))):
                self.memory.forget_private()
                self._run_block((x, y, z))
        finally:
            self.memory.write_back()

    def _frame(self, ctaid: Dim3) -> Frame:
        place = {
            f"ctaid.{axis}": np.full(len(self.threads), number, np.uint32)
            for axis, number in zip("xyz", ctaid, strict=True)
        }
        return Frame(
            values=list(self.initial),
            threads=self.threads,
            specials=self.specials | place,
            arrays=self.arrays,
            memory=self.memory,
            warp_size=self.warp_size,
            origin=self.origin,
            output=self.output,
            shadow=Shadow(len(self.threads)),
            defined=[None] * len(self.initial),
        )

    def _run_block(self, ctaid: Dim3) -> None:
        frame = self._frame(ctaid)
        try:
            if isinstance(self.program, LockstepProgram):
                Lockstep(self.program, frame, self.spend).run()
            else:
                Threads(self.program, frame, self.spend, self.apart, self.profile).run()
        except Fault as fault:
            fault.thread_block = ctaid
            raise

    def spend(self, steps: int, instruction: Instruction) -> None:
        """Counts instructions that are about to run, up to `instruction`."""
        self.steps_left -= steps
        if self.steps_left < 0:
            raise Fault("steps", "the launch does not end within the steps allowed", instruction)


def _takes_buffer(argument: Argument, value: object) -> bool:
    """Whether a parameter takes a buffer; TypeError where it is given the other."""
    takes = isinstance(argument.type, PtrType)
    if takes and isinstance(value, int):
        raise TypeError(f"parameter '{argument.name}' takes a buffer")
    if not takes and not isinstance(value, int):
        raise TypeError(f"parameter '{argument.name}' takes a number")
    return takes


def _source(argument: Argument, value: Any) -> Buffer:
    assert isinstance(argument.type, PtrType)
    data: NDArray[np.uint8] = np.frombuffer(memoryview(value).cast("B"), np.uint8)
    space = "global" if argument.type.space == "generic" else argument.type.space
    return Buffer(argument.name, space, len(data), source=data)


def _moves_pointers(function: Function) -> bool:
    """Whether a function has pointers in memory."""
    accesses = (i for i in function.instructions if i.op in ("load", "store"))
    return any(isinstance(access.attrs["type"], PtrType) for access in accesses)


_KEPT = 16
_decoded: OrderedDict[int, tuple[list[Any], Program]] = OrderedDict()


def decoded(function: Function) -> Program:
    """A function's program, decoded anew only where the function is not as it was."""
    content = list(_content(function))
    known = _decoded.pop(id(function), None)
    if known is None or known[0] != content:
        known = content, (decode_lockstep if function.linearised else decode_threads)(function)
    _decoded[id(function)] = known
    if len(_decoded) > _KEPT:
        _decoded.popitem(last=False)
    return known[1]


def _content(function: Function) -> Iterator[Any]:
    """All that a program depends on."""
    yield function, function.linearised, tuple(function.args)
    for block in function.blocks:
        yield block, block.guard
        for instruction in block.instructions:
            yield (
                instruction,
                instruction.type,
                instruction.operands,
                dict(instruction.attrs),
                bool(instruction.uses),
            )
