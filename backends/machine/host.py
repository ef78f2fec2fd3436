"""The host's side of a launch: where buffers lie, the prompt's tokens, and the tokens that read memory back.

A sequence begins with `reset`, so every register, predicate and memory word is 0 before the prompt writes it;
what is to be 0 is not written. docs/tokens.md is the prose of this file.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from qgpu.backends.machine.block import Block, encode_block
from qgpu.backends.machine.description import (
    BUFFER_ALIGN_WORDS,
    DESCRIPTOR_BASE_BITS,
    MachineDescription,
)
from qgpu.backends.machine.program import Kernel, Parameter
from qgpu.backends.machine.tokens import STAGE_PARTS, stage_slices, vocabulary
from qgpu.backends.machine.verify import SCALAR_BITS, THREAD_PRELOADS, verify_kernel
from qgpu.ir.core.limits import LAUNCH

Dim3 = tuple[int, int, int]
BUFFER_ALIGN = 4 * BUFFER_ALIGN_WORDS
"""Alignment of a buffer, in bytes."""

MAX_BUFFER_BYTES = (1 << (32 - DESCRIPTOR_BASE_BITS)) - 1


class LaunchError(ValueError):
    """A launch that does not fit its kernel or its machine; the message says what, and by how much."""


@dataclass(frozen=True)
class Region:
    """Bytes of data memory: a buffer, or shared memory. `address` is a multiple of BUFFER_ALIGN."""

    address: int
    size: int

    @property
    def descriptor(self) -> int:
        """The 32-bit word that a kernel reads the region through."""
        base = self.address // BUFFER_ALIGN % (1 << DESCRIPTOR_BASE_BITS)
        return self.size << DESCRIPTOR_BASE_BITS | base


NOWHERE = Region(0, 0)


@dataclass(frozen=True)
class Launch:
    """A kernel launch, ready to be sent.

    Attributes:
        machine, kernel: what runs.
        grid, block: thread blocks of the grid and threads of a block, in x, y, z.
        buffers: the region of each parameter, None for a scalar.
        shared, local: the regions of shared and of local memory, of size 0 where there is none.
        hidden: the regions of the kernel's hidden buffers.
        program: the kernel's blocks, as they are for this grid and block.
        prompt: token ids up to LAUNCH; the machine generates what follows.
        in_weights: whether the program is none of the prompt's: the checkpoint holds it.
    """

    machine: MachineDescription
    kernel: Kernel
    grid: Dim3
    block: Dim3
    buffers: tuple[Region | None, ...]
    shared: Region
    local: Region
    hidden: tuple[Region, ...]
    program: tuple[Block, ...]
    prompt: tuple[int, ...]
    in_weights: bool = False

    @property
    def resident(self) -> tuple[Block, ...]:
        """The blocks that program memory holds before the prompt."""
        return self.program if self.in_weights else ()


def build_launch(
    machine: MachineDescription,
    kernel: Kernel,
    grid: Dim3,
    block: Dim3,
    arguments: Sequence[int | bytes],
    shared_bytes: int = 0,
    in_weights: bool = False,
) -> Launch:
    """Lay out memory for a launch and build its prompt.

    Args:
        arguments: one a parameter: the content of a buffer as bytes (little-endian), or a scalar as a number
            that is taken modulo 2 to the power of its width.
        shared_bytes: shared memory beyond what the kernel declares.
        in_weights: leave out the program, which the checkpoint holds.

    Raises:
        ProgramError: the kernel is not one that the machine defines.
        LaunchError: wrong arguments or sizes, or something does not fit.
    """
    verify_kernel(kernel, machine)
    _check_shape(machine, kernel, grid, block)
    _check_arguments(kernel, arguments)
    layout = _lay_out(machine, kernel, arguments, kernel.shared_bytes + shared_bytes, thread_count(block))
    buffers, starts = layout.buffers, zip(layout.hidden, kernel.hidden, strict=True)
    contents = {r.address: a for r, a in zip(buffers, arguments, strict=True) if r and isinstance(a, bytes)}
    contents |= {region.address: hidden.data for region, hidden in starts}
    prompt, program = _Prompt(machine, kernel), kernel.launched(grid, block)
    prompt.reset()
    if not in_weights:
        prompt.program(program)
    prompt.memory(contents)
    prompt.threads(block)
    prompt.uniforms(_uniform_values(kernel, arguments, layout, grid, block))
    prompt.launch(block)
    regions = (buffers, layout.shared, layout.local, layout.hidden)
    return Launch(machine, kernel, grid, block, *regions, program, tuple(prompt.ids), in_weights)


def read_tokens(machine: MachineDescription, address: int, count: int) -> list[int]:
    """Return the tokens that ask for `count` words (1 to `lanes`) from a byte address, a multiple of 4.

    The machine answers with `count` values, then `exit`.

    Raises:
        LaunchError: the words are not `count` aligned words of the machine's memory.
    """
    if (
        not 1 <= count <= machine.lanes
        or address % 4
        or not 0 <= address <= 4 * (machine.memory_words - count)
    ):
        raise LaunchError(f"cannot read {count} words from byte address {address}")
    ids = vocabulary(machine)
    skipped = machine.lanes - count
    tokens = [ids.firmware("addr"), *ids.value(address - 4 * skipped), ids.firmware("read")]
    return [*tokens, ids.id("lane", skipped)] if skipped else tokens


def read_requests(machine: MachineDescription, region: Region) -> Iterator[tuple[list[int], int]]:
    """Yield the requests that read a region: the tokens of each, and the number of words that it asks for."""
    words = -(-region.size // 4)
    for first in range(0, words, machine.lanes):
        count = min(machine.lanes, words - first)
        yield read_tokens(machine, region.address + 4 * first, count), count


def region_bytes(region: Region, words: Sequence[int]) -> bytes:
    """Return the bytes of a region from its words."""
    return b"".join(word.to_bytes(4, "little") for word in words)[: region.size]


def thread_count(block: Dim3) -> int:
    """Threads of a block."""
    return block[0] * block[1] * block[2]


def _check_shape(machine: MachineDescription, kernel: Kernel, grid: Dim3, block: Dim3) -> None:
    for name, size in (("grid", grid), ("block", block)):
        if len(size) != 3 or min(size) < 1 or max(size) >= 1 << 31:
            raise LaunchError(
                f"{name} {','.join(map(str, size))}: each of x, y, z must be 1 to {(1 << 31) - 1}"
            )
    if any(blocks * size >= LAUNCH for blocks, size in zip(grid, block, strict=True)):
        sizes = ",".join(map(str, grid))
        raise LaunchError(f"grid {sizes}: a launch has fewer than {LAUNCH} threads an axis")
    threads, most = thread_count(block), machine.lanes * kernel.warp_stride
    if threads > most:
        raise LaunchError(
            f"blocks of {threads} threads: kernel '{kernel.name}' with {kernel.registers} registers a thread "
            f"runs blocks of at most {most} on machine '{machine.name}'{_advice(machine, threads)}"
        )
    if kernel.max_threads and threads > kernel.max_threads:
        raise LaunchError(
            f"blocks of {threads} threads: kernel '{kernel.name}' states a bound of {kernel.max_threads}"
            f"{_of_a_warp(machine, kernel)}"
        )


def _of_a_warp(machine: MachineDescription, kernel: Kernel) -> str:
    """Where a bound may come from that the source does not state."""
    if kernel.max_threads != machine.lanes:
        return ""
    return f", a warp of machine '{machine.name}': what depends on CUDA's warps of 32 runs in one"


def _advice(machine: MachineDescription, threads: int) -> str:
    """What lets a thread block run that is too large for a kernel's registers."""
    if threads > machine.threads:
        return ""
    registers = machine.register_rows // -(-threads // machine.lanes)
    fitting = 1 << registers.bit_length() - 1
    return f"; compile it with -maxrregcount {fitting}, or state __launch_bounds__({threads})"


def _check_arguments(kernel: Kernel, arguments: Sequence[int | bytes]) -> None:
    if len(arguments) != len(kernel.parameters):
        raise LaunchError(
            f"kernel '{kernel.name}' takes {len(kernel.parameters)} arguments; {len(arguments)} are given"
        )
    for number, (parameter, argument) in enumerate(zip(kernel.parameters, arguments, strict=True), 1):
        if parameter.pointer != isinstance(argument, bytes):
            kinds = ("a scalar", "a buffer")
            raise LaunchError(
                f"argument {number} of kernel '{kernel.name}' is {kinds[not parameter.pointer]}; "
                f"parameter '{parameter.name}' is {kinds[parameter.pointer]}"
            )


@dataclass(frozen=True)
class _Layout:
    """Where everything of a launch lies; see Launch."""

    buffers: tuple[Region | None, ...]
    hidden: tuple[Region, ...]
    shared: Region
    local: Region
    memory: Region


def _lay_out(
    machine: MachineDescription,
    kernel: Kernel,
    arguments: Sequence[int | bytes],
    shared_bytes: int,
    threads: int,
) -> _Layout:
    """Place memory from address 0: buffers in parameter order, hidden ones, shared memory, local memory."""
    given = [len(argument) for argument in arguments if isinstance(argument, bytes)]
    hidden = [buffer.size for buffer in kernel.hidden]
    local_bytes = kernel.local_bytes * threads
    sizes = [*given, *hidden, shared_bytes, local_bytes]
    end = 0
    regions: list[Region] = []
    for size in sizes:
        regions.append(Region(end, size))
        end += -(-size // BUFFER_ALIGN) * BUFFER_ALIGN
    used = max((r.address + -(-r.size // 4) * 4 for r in regions if r.size), default=0)
    memory = Region(0, min(4 * machine.memory_words, MAX_BUFFER_BYTES // 4 * 4))
    addressed = any(preload.name == "memory" for preload in kernel.preloads)
    if used > (memory.size if addressed else 4 * machine.memory_words):
        raise _memory_error(machine, kernel, used, (sum(given), sum(hidden), shared_bytes, local_bytes))
    if max(sizes) > MAX_BUFFER_BYTES:
        raise LaunchError(f"a buffer has at most {MAX_BUFFER_BYTES} bytes; one has {max(sizes)}")
    placed = iter(regions)
    buffers = tuple(next(placed) if isinstance(a, bytes) else None for a in arguments)
    own = tuple(itertools.islice(placed, len(hidden)))
    return _Layout(buffers, own, regions[-2], regions[-1], memory)


def _memory_error(
    machine: MachineDescription, kernel: Kernel, used: int, sizes: tuple[int, int, int, int]
) -> LaunchError:
    """Says what takes the memory, and what the user may change."""
    texts = (
        "{} bytes of arguments",
        "{} bytes of the kernel's own variables",
        "{} bytes of shared memory",
        f"{{}} bytes of local memory ({kernel.local_bytes} a thread; a smaller thread block needs less)",
    )
    parts = ", ".join(text.format(size) for text, size in zip(texts, sizes, strict=True) if size)
    return LaunchError(
        f"the launch needs {used // 4} words of memory; machine '{machine.name}' has "
        f"{machine.memory_words}: {parts}"
    )


def _uniform_values(
    kernel: Kernel, arguments: Sequence[int | bytes], layout: _Layout, grid: Dim3, block: Dim3
) -> dict[int, int]:
    """The value of each uniform register that the host writes."""
    values: dict[int, int] = {}
    for parameter, argument, buffer in zip(kernel.parameters, arguments, layout.buffers, strict=True):
        number = buffer.descriptor if buffer is not None else int(argument)  # pyright: ignore[reportArgumentType]
        extended = _extended(parameter, number)
        values |= {register: extended >> 32 * i & 0xFFFFFFFF for i, register in enumerate(parameter.uniform)}
    for hidden, region in zip(kernel.hidden, layout.hidden, strict=True):
        values |= {} if hidden.uniform is None else {hidden.uniform: region.descriptor}
    for preload in kernel.preloads:
        if preload.uniform is None:
            continue
        kind, _, detail = preload.name.partition(".")
        if kind in _OF_ARGUMENTS:
            value = _OF_ARGUMENTS[kind](_Arguments(kernel.parameters, arguments, block), detail)
        else:
            value = launch_value(preload.name, grid, block, layout.shared, layout.local, layout.memory)
        values[preload.uniform] = value & 0xFFFFFFFF
    return values


@dataclass(frozen=True)
class _Arguments:
    """What preloads that depend on arguments are made of."""

    parameters: Sequence[Parameter]
    arguments: Sequence[int | bytes]
    block: Dim3

    def limit(self, detail: str) -> int:
        """The value of `limit.SM:P`: the low word of scalar P plus M, within 0 and the largest int.

        The word is signed where S is `s`, unsigned where it is `u`.

        Raises:
            LaunchError: there is no such scalar.
        """
        kind, _, number = detail.partition(":")
        known = kind[:1] in ("s", "u") and kind[1:].isdecimal() and number.isdecimal()
        argument = self.arguments[int(number)] if known and int(number) < len(self.arguments) else b""
        if isinstance(argument, bytes):
            raise LaunchError(f"the kernel asks the host for a limit '{detail}', which it does not know")
        value = _extended(self.parameters[int(number)], argument) & 0xFFFFFFFF
        if kind[0] == "s" and value >> 31:
            value -= 1 << 32
        return max(0, min(value + int(kind[1:]), (1 << 31) - 1))

    def room(self, detail: str) -> int:
        """The value of `room.A.SM:P`: that limit, less the threads of a thread block along axis A.

        Raises:
            LaunchError: there is no such axis or scalar.
        """
        axis, _, limit = detail.partition(".")
        if axis not in ("x", "y", "z"):
            raise LaunchError(f"the kernel asks the host for room along '{axis}'")
        return self.limit(limit) - self.block["xyz".index(axis)]

    def outside(self, details: str) -> int:
        """The value of `outside.ROOM,ROOM`: 1 where one of the rooms is negative, else 0."""
        return int(any(self.room(detail) < 0 for detail in details.split(",")))


_OF_ARGUMENTS: dict[str, Callable[[_Arguments, str], int]] = {
    "limit": _Arguments.limit,
    "room": _Arguments.room,
    "outside": _Arguments.outside,
}
"""Preloads that depend on scalar arguments, by the first part of their names."""


def _extended(parameter: Parameter, value: int) -> int:
    """A scalar at its parameter's width, extended to 64 bits as its signedness says."""
    if parameter.pointer:
        return value
    bits = SCALAR_BITS[parameter.type]
    value &= (1 << bits) - 1
    return value - (1 << bits) if parameter.type[0] == "i" and value >> (bits - 1) else value


def launch_value(
    name: str,
    grid: Dim3,
    block: Dim3,
    shared: Region,
    local: Region = NOWHERE,
    memory: Region = NOWHERE,
) -> int:
    """Return the value of a preload that has one value a launch.

    The names are `ntid.x`, `nctaid.x` (and y, z, total: the product), `ctaid.x` (0: the first thread
    block's), `shared`, `local` and `memory` (all of it; their descriptors), `zero`,
    `const:N` (that number); each with or without a minus before.

    Raises:
        LaunchError: there is no such value.
    """
    sign, positive = (-1, name[1:]) if name.startswith("-") else (1, name)
    kind, _, detail = positive.partition(":")
    if kind == "const" and detail.lstrip("-").isdecimal():
        return sign * int(detail)
    values = {"shared": shared.descriptor, "local": local.descriptor, "memory": memory.descriptor, "zero": 0}
    for register, size in (("ntid", block), ("nctaid", grid), ("ctaid", (0, 0, 0))):
        values |= {f"{register}.{axis}": length for axis, length in zip("xyz", size, strict=True)}
    values |= {"ntid.total": thread_count(block), "nctaid.total": thread_count(grid)}
    if positive not in values:
        raise LaunchError(f"the kernel asks the host for '{name}', which it does not know")
    return sign * values[positive]


def thread_value(name: str, thread: int, lanes: int, block: Dim3, local_bytes: int = 0) -> int:
    """Return the value of a preload (one of THREAD_PRELOADS) for a thread, numbered x first, then y, z."""
    x, y, _ = block
    places = (thread % x, thread // x % y, thread // (x * y), thread % lanes, thread // lanes)
    values = (*places, thread * local_bytes // 4)
    return values[THREAD_PRELOADS.index(name)]


class _Prompt:
    """The token ids of a prompt, as they are added."""

    def __init__(self, machine: MachineDescription, kernel: Kernel) -> None:
        self.machine = machine
        self.kernel = kernel
        self.vocabulary = vocabulary(machine)
        self.ids: list[int] = []

    def reset(self) -> None:
        self.ids.append(self.vocabulary.id("reset"))

    def program(self, blocks: Sequence[Block]) -> None:
        """Write the program's rows; of each, only the slices in which it differs from the row sent before."""
        rows = [_row_slices(encode_block(block, self.machine), self.machine) for block in blocks]
        staged = [0] * stage_slices(self.machine)
        for number in _sending_order(rows):
            for index, (old, new) in enumerate(zip(staged, rows[number], strict=True)):
                self.ids += self._stage(index, new) if new != old else ()
            self.ids.append(self.vocabulary.id("rom", number))
            staged = rows[number]

    def _stage(self, index: int, value: int) -> list[int]:
        bits = self.machine.payload_bits
        parts = (value >> bits * part & (1 << bits) - 1 for part in range(STAGE_PARTS))
        return [*(self.vocabulary.id("more", part) for part in parts), self.vocabulary.id("stage", index)]

    def memory(self, contents: Mapping[int, bytes]) -> None:
        """Write the words of buffers, by address, that are not 0."""
        words: dict[int, int] = {}
        for address, data in contents.items():
            for offset in range(0, len(data), 4):
                word = int.from_bytes(data[offset : offset + 4], "little")
                words |= {address + offset: word} if word else {}
        while words:
            first = next(iter(words))
            group = {lane: words.pop(first + 4 * lane, 0) for lane in range(self.machine.lanes)}
            self.ids += [self.vocabulary.firmware("addr"), *self.vocabulary.value(first)]
            self.ids += [self.vocabulary.firmware("write"), *self._lanes(group)]

    def threads(self, block: Dim3) -> None:
        """Say how many threads there are, and write the special registers that have a value a thread."""
        threads, lanes = thread_count(block), self.machine.lanes
        self.ids += [self.vocabulary.firmware("threads"), *self.vocabulary.value(threads)]
        for preload in self.kernel.preloads:
            if preload.block is None:
                continue
            value = functools.partial(
                thread_value, preload.name, lanes=lanes, block=block, local_bytes=self.kernel.local_bytes
            )
            self.ids.append(self.vocabulary.id("exec", preload.block))
            self._each_warp(block, lambda thread, value=value: value(thread) if thread < threads else 0)

    def _each_warp(self, block: Dim3, value: Callable[[int], int]) -> None:
        lanes = self.machine.lanes
        for warp in range(_warps(self.machine, block)):
            self.ids += [self.vocabulary.id("warp", warp)] if warp else ()
            self.ids += self._lanes({lane: value(warp * lanes + lane) for lane in range(lanes)})

    def uniforms(self, values: Mapping[int, int]) -> None:
        """Write uniform registers, in groups of one a lane."""
        lanes = self.machine.lanes
        for group in range(self.machine.uniform_registers // lanes):
            chosen = {lane: values.get(group * lanes + lane, 0) for lane in range(lanes)}
            if any(chosen.values()):
                self.ids += [self.vocabulary.firmware(f"uniform.{group}"), *self._lanes(chosen)]

    def _lanes(self, values: Mapping[int, int]) -> Iterator[int]:
        """Values of lanes, in order; lanes whose value is 0 are passed over."""
        position = 0
        for lane, value in values.items():
            if not value:
                continue
            if lane != position:
                yield self.vocabulary.id("lane", lane)
            yield from self.vocabulary.value(value)
            position = lane + 1

    def launch(self, block: Dim3) -> None:
        self.ids.append(self.vocabulary.launch(_warps(self.machine, block)))


def _warps(machine: MachineDescription, block: Dim3) -> int:
    return -(-thread_count(block) // machine.lanes)


_COMPARED = 256
"""Rows of program memory among which the next to send is looked for."""


def _sending_order(rows: Sequence[Sequence[int]]) -> Iterator[int]:
    """The rows' numbers, each next the one of most slices in common with the last (a fifth fewer tokens).

    Of a long program, whose rows would be too many to compare with each other, similar rows are neighbours
    among the sorted ones, and the next is one of the first `_COMPARED` of these.
    """
    waiting = list(range(len(rows)))
    if len(rows) > _COMPARED:
        waiting.sort(key=lambda number: tuple(rows[number]))
    left, later = waiting[:_COMPARED], iter(waiting[_COMPARED:])
    last: Sequence[int] = (0,) * len(rows[0])
    while left:
        changes = [sum(map(operator.ne, last, rows[number])) for number in left]
        number = left.pop(changes.index(min(changes)))
        left += itertools.islice(later, 1)
        last = rows[number]
        yield number


def _row_slices(bits: Sequence[int], machine: MachineDescription) -> list[int]:
    width = STAGE_PARTS * machine.payload_bits
    number = sum(bit << i for i, bit in enumerate(bits))
    return [number >> width * i & (1 << width) - 1 for i in range(stage_slices(machine))]
