"""The program of one kernel: blocks and what the host has to know to launch it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from qgpu.backends.machine.block import Block
from qgpu.backends.machine.description import MachineDescription

Variants: TypeAlias = tuple[tuple[int, Block], ...]
"""Blocks for some of a program's numbers."""


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter.

    Attributes:
        name: as in the source, or the PTX name.
        type: element type for a pointer (`i8` ... `u64`, `void` where not known), else the scalar's type.
        pointer: whether the argument is a buffer.
        uniform: uniform registers that hold the argument at launch: for a buffer its descriptor; for a scalar
            its value, low word first (two registers for 64 bits). Empty where the kernel does not use it.
    """

    name: str
    type: str
    pointer: bool
    uniform: tuple[int, ...] = ()


@dataclass(frozen=True)
class Preload:
    """A special register that the host writes before the launch.

    Attributes:
        name: `tid.x`, `tid.y`, `tid.z`, `laneid`, `warpid`, `frame` (one value a thread), or `ntid.x`,
            `nctaid.y`, `-nctaid.x` (negated, as a count up to zero), `shared`, `local`, `memory`
            (descriptors), `zero`, `limit.s0:3` (parameter 3, signed, clamped to what an index may be;
            `limit.u1:3` would be unsigned, and one more), `room.x.s0:3` (that less the threads of a thread
            block along x), `outside.x.s0:3,y.s0:4` (1 where one of these is negative), one value a launch.
            `frame` is where the thread's local memory begins, in words.
        block: for a value a thread: the program block through which the host sends it, one value a lane.
        uniform: for a value a launch: the uniform register that holds it.
    """

    name: str
    block: int | None = None
    uniform: int | None = None


@dataclass(frozen=True)
class HiddenBuffer:
    """A buffer that no argument gives: a variable of the source's in global or constant memory, and the like.

    Attributes:
        name: of the variable.
        size: in bytes.
        data: what every launch starts with; zeros follow.
        uniform: the uniform register that holds its descriptor, or None where the kernel needs none.
    """

    name: str
    size: int
    data: bytes = b""
    uniform: int | None = None


SPILLED_UNIFORMS = "uniform registers"
"""The name of the hidden buffer that uniform registers are kept in; no variable of a source has it."""


@dataclass(frozen=True)
class SharedArray:
    """Where an array lies in shared memory, in bytes; one of size 0 is what the launch adds."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True)
class Printf:
    """The buffer that device code prints into, and what it prints.

    The buffer is a word that counts the words written, and then these words, as many as there is room for.
    A record is the number of its format, from 1, then a word for each of its conversions (of 64 bits two, low
    word first).

    Attributes:
        buffer: which of the kernel's hidden buffers it is.
        formats: the formats, the first being number 1.
    """

    buffer: int
    formats: tuple[str, ...]


@dataclass(frozen=True)
class SourceLine:
    """Where a block comes from; line 0 where that is not known."""

    file: str = ""
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Kernel:
    """One kernel in machine code.

    Attributes:
        name: entry name as in the PTX (mangled where the source is C++).
        parameters: in order.
        preloads: special registers that the host has to write.
        blocks: program memory from block 0, the entry block, on.
        lines: source line of each block.
        registers: thread registers used (before rounding up to a power of two).
        predicates: predicate registers used, with predicate 0.
        warp_stride: warps for which the register rows were laid out: the largest thread block in warps.
        shared_bytes: static shared memory, in bytes.
        max_threads: bound of threads in a block that the source states (.maxntid), or 0.
        local_bytes: local memory of a thread, in bytes: a multiple of 4.
        hidden: buffers that the launch adds to the arguments'.
        printf: what device code prints, or None.
        messages: what the assertion says that a trap block stands for, with the block's number.
        flat: blocks, with their numbers, that take the place of the program's where the thread block has one
            dimension.
        single: the same where the grid is one thread block.
        shared_arrays: the arrays of shared memory, by their offsets.
        thread_block_end: the block that runs once after each thread block, before the next one begins; None
            where the kernel is one of a single thread block.
    """

    name: str
    parameters: tuple[Parameter, ...]
    preloads: tuple[Preload, ...]
    blocks: tuple[Block, ...]
    lines: tuple[SourceLine, ...]
    registers: int
    predicates: int
    warp_stride: int
    shared_bytes: int = 0
    max_threads: int = 0
    local_bytes: int = 0
    hidden: tuple[HiddenBuffer, ...] = ()
    printf: Printf | None = None
    messages: tuple[tuple[int, str], ...] = ()
    flat: Variants = ()
    single: Variants = ()
    shared_arrays: tuple[SharedArray, ...] = ()
    thread_block_end: int | None = None

    def launched(self, grid: tuple[int, int, int], block: tuple[int, int, int]) -> tuple[Block, ...]:
        """The program of a launch of so many thread blocks and threads in x, y, z."""
        blocks = list(self.blocks)
        for number, variant in self.flat if block[1:] == (1, 1) else ():
            blocks[number] = variant
        for number, variant in self.single if grid == (1, 1, 1) else ():
            blocks[number] = variant
        return tuple(blocks)


@dataclass(frozen=True)
class Program:
    """The content of a .qbin: kernels compiled for one machine description."""

    machine: MachineDescription
    kernels: tuple[Kernel, ...]
    source: str = field(default="")
