"""Random blocks over random state, as token sequences: every field of the block format in one stream."""

from __future__ import annotations

import random
from dataclasses import replace

from qgpu.backends.machine.block import EXCLUSIVE_ROUTES, FAULTS, OPS, Block, encode_block
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.tokens import STAGE_PARTS, stage_slices, vocabulary
from qgpu.backends.reference.machine import Machine

WORDS = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    31,
    32,
    33,
    255,
    2047,
    2048,
    2**12,
    2**19,
    2**23,
    2**31,
    2**32 - 1,
    2**32 - 2048,
)
FREE_FLAGS = (
    "m_signed",
    "i_unsigned",
    "cond_lt",
    "cond_eq",
    "cond_gt",
    "signed",
)
MOST_TOKENS = 400
"""Tokens that a block may generate before the next one starts."""


ENDS = ("wr_reg", "wr_pred", "wr_mem2")
"""Destinations of the blocks that operate on two thread registers for certain."""


def word(rng: random.Random) -> int:
    """A 32-bit word: a special one, a small one of either sign, or any."""
    kinds = (rng.choice(WORDS), rng.randrange(-40, 40) % 2**32, rng.getrandbits(32))
    return rng.choice(kinds)


def _routes(rng: random.Random) -> dict[str, int | str]:
    """An operation with routes, flags and destinations, of which no two exclude each other."""
    values: dict[str, int | str] = {"op": rng.choice(tuple(OPS)), "lut": rng.getrandbits(8)}
    for routes in EXCLUSIVE_ROUTES.values():
        if rng.random() < 0.8:
            values[rng.choice(routes)] = 1
    values.pop("lane_to_i4", None)
    if rng.random() < 0.4:
        values |= dict.fromkeys(("a_thread", "a_to_x", "b_thread", "b_to_y", rng.choice(ENDS)), 1)
        values |= dict.fromkeys(("a_uniform", "imm_to_x", "b_uniform", "imm_to_y"), 0)
    values.update({flag: int(rng.random() < 0.4) for flag in FREE_FLAGS})
    values |= {check: int(rng.random() < 0.15) for check in ("check", "check2")}
    if rng.random() < 0.5:
        values |= {"wr_mem": 0, "wr_mem2": 0}
    for routes in EXCLUSIVE_ROUTES.values():
        given = [route for route in routes if values.get(route)]
        values |= dict.fromkeys(rng.sample(given, max(0, len(given) - 1)), 0)
    return values


def random_block(rng: random.Random, machine: MachineDescription, index: int) -> Block:
    """A block with random routes, operation, guards and destinations, followed by itself or the next."""
    values = _routes(rng)
    displaces = "imm_to_j" in values or "imm_to_k" in values
    values["imm"] = rng.randrange(-64, 64) % 2**32 if displaces else word(rng)
    if values["op"] == "merge" or "m_sub_to_x" in values:
        values[rng.choice(("width8", "width16"))] = values["check"] = 1
    if "width8" in values:
        values.pop("width16", None)
    stride = machine.warp_stride(4)
    for port, routes in (("a", ("a_thread",)), ("b", ("b_thread",)), ("dest", ("wr_reg", "dest_to_z"))):
        thread = any(values.get(route) for route in routes)
        values[port] = stride * rng.randrange(4) if thread else rng.randrange(1, 8)
    values["c"], values["e"] = rng.randrange(1, 8), rng.randrange(1, 8)
    values["dest_pred"] = rng.choice((1, 1, 2, 3, machine.predicates - 1))
    if values.get("wr_bound"):
        values["dest_pred"] = rng.randrange(2)
    values["guard_true"] = 1 | rng.choice((0, 0, 0, 2, 4, 8, 128)) & (1 << machine.predicates) - 1
    values["guard_false"] = rng.choice((0, 0, 2, 4, 8)) & ~values["guard_true"]
    shape = (
        "scalar"
        if values.get("wr_bound")
        else rng.choice(("threads", "threads", "threads", "scalar", "none"))
    )
    values["visit"] = int(shape != "none")
    values["scalar"] = int(shape == "scalar")
    if shape == "scalar":
        values["guard_true"] = values["guard_false"] = 0
    values["all_warps"] = int(shape == "threads")
    values |= {"next": index, "taken": (index + 1) % machine.rom_blocks}
    if values.get("fall"):
        values["next"] = (index + 1) % machine.rom_blocks
    block = Block(**values)  # pyright: ignore[reportArgumentType]
    return replace(block, trap=1, imm=rng.randrange(len(FAULTS))) if rng.random() < 0.05 else block


class Stream:
    """A token sequence in the making; a reference machine follows it and says how blocks go on."""

    def __init__(self, rng: random.Random, machine: MachineDescription) -> None:
        self.rng = rng
        self.machine = machine
        self.ids = vocabulary(machine)
        self.reference = Machine(machine)
        self.tokens: list[int] = []

    def send(self, *tokens: int) -> int | None:
        """Append tokens; return what the machine says after the last."""
        following = None
        for token in tokens:
            following = self.reference.step(token)
            self.tokens.append(token)
        return following

    def memory(self) -> None:
        """Write the first words of memory."""
        for first in range(0, min(self.machine.memory_words, 64), self.machine.lanes):
            self.send(self.ids.firmware("addr"), *self.ids.value(4 * first), self.ids.firmware("write"))
            for _ in range(self.machine.lanes):
                self.send(*self.ids.value(word(self.rng)))

    def registers(self) -> None:
        """Write four registers of the first warps."""
        stride = self.machine.warp_stride(4)
        for register in range(4):
            block = Block(visit=1, all_warps=1, wr_reg=1, dest=stride * register)
            self.enter(block, register)
            for warp in range(min(2, self.machine.warps)):
                self.send(*([self.ids.id("warp", warp)] if warp else []))
                for _ in range(self.machine.lanes):
                    self.send(*self.ids.value(word(self.rng)))

    def predicates(self) -> None:
        """Write the stored predicates of the first warps."""
        self.enter(Block(visit=1, all_warps=1, wr_pred=1, dest_pred=2), 0)
        for warp in range(min(2, self.machine.warps)):
            self.send(*([self.ids.id("warp", warp)] if warp else []))
            for _ in range(self.machine.lanes):
                vector = self.rng.getrandbits(self.machine.predicates - 1) << 1
                self.send(self.ids.id("last", vector))

    def bound(self) -> None:
        """Give predicate 1 a bound, which may be negative or beyond the threads."""
        self.enter(Block(visit=1, scalar=1, wr_bound=1, dest_pred=1), 0)
        self.send(*self.ids.value(self.rng.randrange(-8, self.machine.threads + 8)))

    def threads(self) -> None:
        """Say how many threads there are."""
        self.send(self.ids.firmware("threads"))
        self.send(*self.ids.value(self.rng.randrange(1, self.machine.threads + 1)))

    def uniforms(self) -> None:
        """Write descriptors and words to the first uniform registers."""
        self.send(self.ids.firmware("uniform.0"), *self.ids.value(0))
        for register in range(1, min(8, self.machine.lanes)):
            descriptor = self.rng.randrange(0, 70) << 14 | self.rng.randrange(4)
            self.send(*self.ids.value(descriptor if register % 2 else word(self.rng)))

    def enter(self, block: Block, number: int) -> int | None:
        """Load a block and start it; what the machine says first."""
        self.send(*_program_row(self.machine, block, number))
        self.send(self.ids.launch(self.rng.randrange(1, self.machine.warps + 1)))
        return self.send(self.ids.id("exec", number))

    def run(self, block: Block, number: int) -> None:
        """Load a block and run it to its end."""
        following = self.enter(block, number)
        for _ in range(MOST_TOKENS):
            if following is None or self.ids.token(following).kind in ("exit", "fault", "exec"):
                return
            following = self.send(following)


def random_stream(rng: random.Random, machine: MachineDescription, blocks: int) -> list[int]:
    """Return a token sequence: state, then one random block after another, each loaded and run to its end."""
    stream = Stream(rng, machine)
    stream.send(stream.ids.id("reset"))
    stream.memory()
    stream.registers()
    stream.threads()
    for index in range(blocks):
        number = index % machine.rom_blocks
        if index % 6 == 0:
            stream.uniforms()
        if index % 4 == 0:
            stream.threads()
            stream.predicates()
            stream.bound()
        stream.run(random_block(rng, machine, number), number)
    return stream.tokens


def _program_row(machine: MachineDescription, block: Block, number: int) -> list[int]:
    ids, bits = vocabulary(machine), machine.payload_bits
    row = sum(bit << i for i, bit in enumerate(encode_block(block, machine)))
    tokens: list[int] = []
    for index in range(stage_slices(machine)):
        for part in range(STAGE_PARTS):
            tokens.append(ids.id("more", row >> bits * (STAGE_PARTS * index + part) & (1 << bits) - 1))
        tokens.append(ids.id("stage", index))
    return [*tokens, ids.id("rom", number)]
