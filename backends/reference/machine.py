"""The machine at the level of tokens: feed it a token, get the token that has to follow.

All state is written by the tokens that come in, and never by what a pass emits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from qgpu.backends.machine.block import (
    BOUNDS,
    FAULTS,
    RUN_BLOCKS,
    Block,
    BlockError,
    decode_block,
    encode_block,
    row_bits,
)
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.firmware import ENTRY_BLOCK, firmware_blocks, firmware_id
from qgpu.backends.machine.tokens import STAGE_PARTS, stage_slices, vocabulary
from qgpu.backends.reference.datapath import WORD, Ports, Result, evaluate, signed
from qgpu.backends.reference.shadow import Shadow, UninitialisedError


class Machine:
    """A machine of a description, in the state after some tokens.

    Attributes:
        block: id of the current block (program blocks, then firmware), or None before the first.
        lane: the current lane, 0 to `lanes`; `lanes` means that the warp is done.
        warp: the current warp.
        any_result: whether a result that was not 0 was committed since the block began.
        visited: whether any result was.
        warps: warps of the launch, 0 before the first.
        parts: payloads of the MORE tokens immediately before this point.
        address, second: byte addresses that the last pass over an active lane computed.
        registers: [row][lane], 32-bit unsigned; row = register * warp_stride + warp.
        uniforms: 32-bit unsigned.
        predicates: [predicate][warp], the stored ones: a mask with one bit a lane; always 0 for predicate 0.
        bounds: for predicates 0 to BOUNDS - 1: they hold as well in threads of a lower number (signed).
        memory: 32-bit unsigned words.
        rom: the bits of each program row, or None where none was written.
        slices: the staged slices of a row, as numbers.
        watch: what is to tell which memory a launch has not written, from LAUNCH on, or None.
        shadow: the same, once it is launched.
        uninitialised: the first value from memory that was never written that has decided something, or None.
    """

    def __init__(self, description: MachineDescription, program: Sequence[Block] = ()) -> None:
        """Make a machine in its state before the first token.

        Args:
            program: the blocks that program memory holds already, as a baked checkpoint's does.
        """
        self.description = description
        self.vocabulary = vocabulary(description)
        self.block: int | None = None
        self.lane = 0
        self.warp = 0
        self.any_result = False
        self.visited = False
        self.warps = 0
        self.parts: list[int] = []
        self.address = 0
        self.second = 0
        self.bounds = [0] * BOUNDS
        self.registers = [[0] * description.lanes for _ in range(description.register_rows)]
        self.uniforms = [0] * description.uniform_registers
        self.predicates = [[0] * description.warps for _ in range(description.predicates)]
        self.memory = [0] * description.memory_words
        self.rom: list[tuple[int, ...] | None] = [None] * description.rom_blocks
        self.slices = [0] * stage_slices(description)
        self.watch: Shadow | None = None
        self.shadow: Shadow | None = None
        self.uninitialised: UninitialisedError | None = None
        self._encoding: Sequence[int] = ()
        self._row_bits = row_bits(description)
        firmware = [firmware.block for firmware in firmware_blocks(description)]
        self._code: list[Block | None] = [*[None] * description.rom_blocks, *firmware]
        self._firmware = [firmware_id(description, name) for name in self.vocabulary.firmware_names]
        self._incoming = {
            "launch": self._on_launch,
            "firmware": lambda index: self._enter(self._firmware[index]),
            "exec": self._enter,
            "lane": self._on_lane,
            "warp": self._on_warp,
            "stage": self._on_stage,
            "rom": self._on_rom,
            "last": self._on_last,
            "final": self._on_final,
        }
        for number, block in enumerate(program):
            self.rom[number], self._code[number] = encode_block(block, description), block
        self._kinds = [
            (kind, index) for kind, count in self.vocabulary.counts.items() for index in range(count)
        ]

    @property
    def code(self) -> Sequence[Block | None]:
        """The block of each id, program blocks first; None where none was written, or what is no block."""
        return self._code

    def step(self, token_id: int) -> int | None:
        """Take a token in, and return the id of the token that follows it.

        Returns None where the machine leaves open what follows: after `pad`, `reset`, `exit`, `fault`,
        `stage` and `rom`, before the first block, in a block that was never written, and after a MORE that
        the current result has no further part for.

        Raises:
            ValueError: the id is outside the vocabulary.
        """
        if not 0 <= token_id < len(self._kinds):
            raise ValueError(f"token id {token_id} is outside 0..{len(self._kinds) - 1}")
        kind, index = self._kinds[token_id]
        if kind == "more":
            self.parts.append(index)
            return self._part() if self._encoding else self._emit()
        self._encoding = ()
        handler = self._incoming.get(kind)
        if handler is not None:
            handler(index)
        self.parts.clear()
        return self._emit() if kind in _EVALUATING else None

    def _enter(self, block: int) -> None:
        self.block = block
        self.lane = self.warp = 0
        self.any_result = self.visited = False
        code = self._code[block]
        if self.shadow is not None and code is not None:
            self._look(functools.partial(self.shadow.enter, block, code, self._visited_warps(code)))

    def _look(self, look: Callable[[], None]) -> None:
        """Let the shadow look at what happens; after the first fault that it finds, it looks no more."""
        try:
            look()
        except UninitialisedError as error:
            self.uninitialised, self.shadow = error, None

    def _on_launch(self, index: int) -> None:
        self.warps = index + 1
        self.shadow = self.watch
        self._enter(ENTRY_BLOCK)

    def _on_lane(self, index: int) -> None:
        self.lane = index

    def _on_warp(self, index: int) -> None:
        self.warp = index
        self.lane = 0

    def _on_stage(self, index: int) -> None:
        bits = self.description.payload_bits
        window = [0] * STAGE_PARTS + self.parts
        self.slices[index] = sum(part << bits * i for i, part in enumerate(window[-STAGE_PARTS:]))

    def _on_rom(self, index: int) -> None:
        bits = STAGE_PARTS * self.description.payload_bits
        number = sum(part << bits * i for i, part in enumerate(self.slices))
        row = tuple(number >> i & 1 for i in range(self._row_bits))
        self.rom[index] = row
        self._code[index] = _decoded(row, self.description)

    def _on_last(self, index: int) -> None:
        """Commit the value that is now complete, as the current lane's result."""
        block = self._current()
        if block is None or self.lane == self.description.lanes:
            return
        value = self._completed_value(index)
        if block.wr_reg:
            self._register_row(block.dest)[self.lane] = value
        if block.wr_uni:
            register = block.dest + (self.lane if block.dest_lane else 0)
            self.uniforms[register % len(self.uniforms)] = value
        if block.wr_pred:
            self._set_predicates(index)
        if block.wr_bound:
            self.bounds[block.dest_pred % BOUNDS] = signed(value)
        if block.wr_mem:
            self.memory[(self.address >> 2) % len(self.memory)] = value
        if block.wr_mem2:
            self.memory[(self.second >> 2) % len(self.memory)] = value
        if self.shadow is not None:
            self.shadow.commit(block, self._thread, self.address, self.second)
        result = index >> self.description.payload_bits - 1 if block.wr_pred else value
        self.any_result = self.any_result or result != 0
        self.visited = True
        self.lane += 1

    def _on_final(self, index: int) -> None:
        """Commit as with LAST, and begin the block after the current one."""
        self._on_last(index)
        if self.block is not None:
            run = self.block & -RUN_BLOCKS
            self._enter(run | (self.block + 1) % RUN_BLOCKS)

    def _set_predicates(self, payload: int) -> None:
        """Write the stored predicates of the current lane, one bit each; predicate 0 is not stored."""
        for number, masks in enumerate(self.predicates[1:], 1):
            masks[self.warp] = masks[self.warp] & ~(1 << self.lane) | (payload >> number & 1) << self.lane

    def _completed_value(self, last: int) -> int:
        bits = self.description.payload_bits
        number = last - (last >> bits - 1 << bits)
        for part in reversed(self.parts):
            number = number << bits | part
        return number & WORD

    def _current(self) -> Block | None:
        return None if self.block is None else self._code[self.block]

    def _register_row(self, row: int) -> list[int]:
        return self.registers[(row + self.warp) % len(self.registers)]

    def _emit(self) -> int | None:
        """The token that the pass over the current lane of the current block gives."""
        block = self._current()
        if block is None:
            return None
        active = self.active_lanes(block) >> self.lane
        if active & 1:
            return self._emit_lane(block, closing=active == 1 and not self._warps_left(block))
        ids = self.vocabulary
        if active:
            return ids.id("lane", self.lane + (active & -active).bit_length() - 1)
        if self._warps_left(block):
            return ids.id("warp", self.warp + 1)
        if (block.branch_any and self.any_result) or (block.skip_idle and not self.visited):
            return self._emit_exec(block.taken)
        return ids.id("exit") if block.next_exit else self._emit_exec(block.next)

    def _visited_warps(self, block: Block) -> int:
        return max(1, self.warps) if block.all_warps else 1

    def _warps_left(self, block: Block) -> bool:
        return bool(block.all_warps and self.warp + 1 < self.warps)

    def active_lanes(self, block: Block) -> int:
        """The lanes of the current warp that a block visits, as a mask."""
        if not block.visit:
            return 0
        if block.scalar:
            return 1
        active = (1 << self.description.lanes) - 1
        for index, holds in block.guards:
            active &= self.holding(index) if holds else ~self.holding(index)
        return active

    def holding(self, predicate: int) -> int:
        """The lanes of the current warp in which a predicate holds, stored or by its bound, as a mask."""
        stored = self.predicates[predicate][self.warp]
        if predicate >= BOUNDS:
            return stored
        below = self.bounds[predicate] - self.warp * self.description.lanes
        return stored | (1 << max(0, min(below, self.description.lanes))) - 1

    @property
    def words(self) -> Sequence[int]:
        """Data memory."""
        return self.memory

    def cell(self, index: int) -> int:
        """A register of a lane: cell row * lanes + lane of the file."""
        row, lane = divmod(index, self.description.lanes)
        return self.registers[row][lane]

    def uniform(self, number: int) -> int:
        """A uniform register."""
        return self.uniforms[number]

    def holds(self, predicate: int, thread: int) -> bool:
        """Whether a predicate holds in a thread, stored or by its bound."""
        warp, lane = divmod(thread, self.description.lanes)
        below = predicate < BOUNDS and thread < self.bounds[predicate]
        return below or bool(self.predicates[predicate][warp] >> lane & 1)

    @property
    def _thread(self) -> int:
        return self.warp * self.description.lanes + self.lane

    def _emit_exec(self, target: int) -> int | None:
        return self.vocabulary.id("exec", target) if target < self.description.rom_blocks else None

    def _emit_lane(self, block: Block, closing: bool) -> int | None:
        """The token of an active lane; `closing` says that it is the last that the block visits."""
        result = self._evaluate(block)
        self.address, self.second = result.address, result.second
        if result.fault is not None:
            return self.vocabulary.id("fault", result.fault) if result.fault < len(FAULTS) else None
        branches = block.branch_any and (self.any_result or result.value)
        ending = "final" if closing and block.fall and not branches else "last"
        if block.wr_pred:
            self._encoding = (self.vocabulary.id(ending, self._payload(block, result.value)),)
        else:
            self._encoding = self.vocabulary.value(result.value, ending)
        return self._part()

    def _part(self) -> int | None:
        """The next token of the current lane's result: a MORE changes nothing else than which is next."""
        return self._encoding[len(self.parts)] if len(self.parts) < len(self._encoding) else None

    def _payload(self, block: Block, value: int) -> int:
        """The lane's stored predicates with the new one among them, and as top bit whether it is 1."""
        vector = sum((masks[self.warp] >> self.lane & 1) << k for k, masks in enumerate(self.predicates))
        new, bit = int(value != 0), 1 << block.dest_pred & -2
        return vector & ~bit | new * bit | new << self.description.payload_bits - 1

    def _evaluate(self, block: Block) -> Result:
        uniforms = self.uniforms
        a = self._port(block.a, block.a_thread, block.a_uniform)
        b = self._port(block.b, block.b_thread, block.b_uniform)
        c, e = uniforms[block.c % len(uniforms)], uniforms[block.e % len(uniforms)]
        ports = Ports(a, b, c, e, self._accumulator(block), self.lane)
        result = evaluate(block, ports, self.memory)
        if self.shadow is not None and self.block is not None and not self.parts:
            self._look(functools.partial(self.shadow.compute, self.block, block, self._thread, result))
        return result

    def _accumulator(self, block: Block) -> int:
        row = (block.dest + self.warp) % len(self.registers)
        reads = block.dest_to_z and row < self.description.accumulator_rows
        return self.registers[row][self.lane] if reads else 0

    def _port(self, number: int, thread: int, uniform: int) -> int:
        if thread:
            return self._register_row(number)[self.lane]
        return self.uniforms[number % len(self.uniforms)] if uniform else 0


@functools.lru_cache(maxsize=1 << 13)
def _decoded(row: tuple[int, ...], description: MachineDescription) -> Block | None:
    """The block of a row, or None where it is the row of none."""
    try:
        return decode_block(row, description)
    except BlockError:
        return None


_EVALUATING = frozenset(("launch", "firmware", "exec", "lane", "warp", "last", "final"))
"""Kinds of tokens after which the machine evaluates a block; after MORE it does too."""
