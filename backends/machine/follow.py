"""Follow a launch by its tokens alone: which block, warp and lane each token is about, and where a fault is.

Whoever sees the tokens of a launch can do this with nothing but the program, and without the machine's state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from qgpu.backends.machine.block import FAULTS, Block
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.firmware import ENTRY_BLOCK, firmware_blocks
from qgpu.backends.machine.host import Launch
from qgpu.backends.machine.program import Kernel, SourceLine
from qgpu.backends.machine.tokens import vocabulary

FIELDS = {
    "last": "result",
    "final": "last result of the block",
    "more": "part of the result",
    "lane": "next active lane",
    "warp": "next warp",
    "exec": "next block",
    "exit": "end of the launch",
    "fault": "fault",
}
"""What a generated token of a kind says."""


UNINITIALISED = "uninitialised"
"""A fault that no token reports: what memory holds there is read, and the interpreters alone know better."""


@dataclass(frozen=True)
class Place:
    """Where a pass is: a program block (or the firmware block `firmware`), warp, lane, part of the value."""

    block: int
    firmware: str
    warp: int
    lane: int
    part: int

    def __str__(self) -> str:
        block = self.firmware or f"block {self.block}"
        return f"{block}, warp {self.warp}, lane {self.lane}, part {self.part}"


@dataclass(frozen=True)
class Fault:
    """A fault of a launch.

    Attributes:
        kind: one of `FAULTS`, or UNINITIALISED.
        thread: (x, y, z) in the thread block.
        block: (x, y, z) of the thread block in the grid, or None where the kernel does not count them.
        machine_block: the program block that faulted.
        line: the source line of that block.
        message: what the assertion says that has failed, if it is one; of a read of shared memory that was
            never written, which bytes.
    """

    kind: str
    thread: tuple[int, int, int]
    block: tuple[int, int, int] | None
    machine_block: int
    line: SourceLine
    message: str = ""


@dataclass(frozen=True)
class Step:
    """A generated token.

    Attributes:
        token, name: its id and its text.
        field: what it says; one of the texts of FIELDS.
        value: the result that it completes, as a signed number, or None.
        place: where the pass was that gave it.
    """

    token: int
    name: str
    field: str
    value: int | None
    place: Place

    def __str__(self) -> str:
        value = "" if self.value is None else f" {self.value}"
        return f"{self.name:<16} {self.place}: {self.field}{value}"


def follow(launch: Launch, generated: Iterable[int]) -> Iterator[Step]:
    """Yield a step for each generated token of a launch, the first being the one after its prompt."""
    follower = Follower(launch)
    for token in generated:
        yield follower.step(token)
        follower.take(token)


def end_tokens(machine: MachineDescription) -> frozenset[int]:
    """The tokens that end a launch: EXIT and the faults."""
    ids = vocabulary(machine)
    return frozenset((ids.id("exit"), *(ids.id("fault", kind) for kind in range(len(FAULTS)))))


def launch_fault(launch: Launch, generated: Sequence[int]) -> Fault | None:
    """Return the fault that the last generated token of a launch reports, or None where it is none."""
    exit_token = vocabulary(launch.machine).id("exit")
    if not generated or generated[-1] not in end_tokens(launch.machine) - {exit_token}:
        return None
    follower = Follower(launch)
    for token in generated[:-1]:
        follower.take(token)
    return follower.fault(generated[-1])


class Follower:
    """The position of a launch after its prompt and the tokens taken since.

    Attributes:
        block, warp, lane, part: as in Place.
        counters: the uniform registers that count thread blocks, by their preload's name (`ctaid.x`, ...).
    """

    def __init__(self, launch: Launch) -> None:
        machine = launch.machine
        self._launch = launch
        self._vocabulary = vocabulary(machine)
        self._firmware = {machine.rom_blocks + i: f.name for i, f in enumerate(firmware_blocks(machine))}
        self._registers = _counter_registers(launch.kernel)
        self.counters = dict.fromkeys(self._registers.values(), 0)
        self.block = ENTRY_BLOCK
        self.warp = 0
        self.lane = 0
        self._parts: list[int] = []

    @property
    def place(self) -> Place:
        """Where the pass is that follows the tokens taken."""
        name = self._firmware.get(self.block, "")
        return Place(self.block, name, self.warp, self.lane, len(self._parts))

    def step(self, token: int) -> Step:
        """Describe a token as the one that is generated here."""
        kind = self._vocabulary.token(token).kind
        field = FIELDS.get(kind, "no token of a launch")
        complete = kind in ("last", "final") and len(self._parts) < self._launch.machine.parts
        value = self._value(token) if complete else None
        return Step(token, self._vocabulary.name(token), field, value, self.place)

    def _value(self, last: int) -> int:
        value = self._vocabulary.parse_value([*self._parts, last])
        return value - (value >> 31 << 32)

    def take(self, token: int) -> None:
        """Go on by one token."""
        found = self._vocabulary.token(token)
        kind, index = found.kind, found.index
        if kind == "more":
            self._parts.append(token)
            return
        if kind == "exec":
            self.block, self.warp, self.lane = index, 0, 0
        elif kind == "lane":
            self.lane = index
        elif kind == "warp":
            self.warp, self.lane = index, 0
        elif kind == "last":
            self._commit(token)
        elif kind == "final":
            self._commit(token)
            self.block, self.warp, self.lane = self.block + 1, 0, 0
        self._parts.clear()

    def _commit(self, token: int) -> None:
        block = self._program_block()
        if block is not None and block.wr_uni and block.dest in self._registers:
            value = self._vocabulary.parse_value([*self._parts, token])
            self.counters[self._registers[block.dest]] = value
        self.lane += 1

    def _program_block(self) -> Block | None:
        blocks = self._launch.program
        return blocks[self.block] if self.block < len(blocks) else None

    def fault(self, token: int) -> Fault:
        """Return the fault that a FAULT token generated here reports."""
        kind = FAULTS[self._vocabulary.token(token).index]
        return self.stopped(kind, dict(self._launch.kernel.messages).get(self.block, ""))

    def stopped(self, kind: str, message: str) -> Fault:
        """Return the fault of a launch that stops here."""
        lines = self._launch.kernel.lines
        return Fault(
            kind=kind,
            thread=self._thread(),
            block=self._thread_block(),
            machine_block=self.block,
            line=lines[self.block] if self.block < len(lines) else SourceLine(),
            message=message,
        )

    def _thread(self) -> tuple[int, int, int]:
        x, y, _ = self._launch.block
        number = self.warp * self._launch.machine.lanes + self.lane
        return number % x, number // x % y, number // (x * y)

    def _thread_block(self) -> tuple[int, int, int] | None:
        """The thread block, where each dimension of the grid is 1 or counted by the kernel."""
        coordinates = []
        for axis, size in zip("xyz", self._launch.grid, strict=True):
            counted = self.counters.get(f"ctaid.{axis}")
            if counted is None and size > 1:
                return None
            coordinates.append(counted or 0)
        return coordinates[0], coordinates[1], coordinates[2]


def _counter_registers(kernel: Kernel) -> dict[int, str]:
    """Names of the uniform registers that count thread blocks, by register."""
    return {
        preload.uniform: preload.name
        for preload in kernel.preloads
        if preload.uniform is not None and preload.name.startswith("ctaid.")
    }
