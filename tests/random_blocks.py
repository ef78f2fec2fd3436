"""Random blocks over random state, as token sequences: every field of the block format in one stream."""

from __future__ import annotations

import random
from collections.abc import Iterator
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
    "check",
    "i_unsigned",
    "cond_lt",
    "cond_eq",
    "cond_gt",
    "signed",
    "wr_mem",
    "wr_pred",
)
MOST_TOKENS = 400
"""Tokens that a block may generate before the next one starts."""


def word(rng: random.Random) -> int:
    """A 32-bit word: a special one, a small one of either sign, or any."""
    kinds = (rng.choice(WORDS), rng.randrange(-40, 40) % 2**32, rng.getrandbits(32))
    return rng.choice(kinds)


def random_block(rng: random.Random, machine: MachineDescription, index: int) -> Block:
    """A block with random routes, operation, guards and destinations whose successor is itself or the next."""
    values: dict[str, int | str] = {"op": rng.choice(tuple(OPS)), "lut": rng.getrandbits(8)}
    for routes in EXCLUSIVE_ROUTES.values():
        if rng.random() < 0.8:
            values[rng.choice(routes)] = 1
    values.pop("lane_to_i4", None)
    values.update({flag: int(rng.random() < 0.4) for flag in FREE_FLAGS})
    values["imm"] = rng.randrange(-64, 64) % 2**32 if "imm_to_j" in values else word(rng)
    if "wr_mem" in values and rng.random() < 0.5:
        values["wr_mem"] = 0
    if values["op"] == "merge" or "m_sub_to_x" in values:
        values[rng.choice(("width8", "width16"))] = values["check"] = 1
    if "width8" in values:
        values.pop("width16", None)
    stride = machine.warp_stride(4)
    for port, thread in (("a", "a_thread"), ("b", "b_thread"), ("dest", "wr_reg")):
        values[port] = stride * rng.randrange(4) if thread in values else rng.randrange(1, 8)
    values["c"] = rng.randrange(1, 8)
    values["dest_pred"] = rng.randrange(1, machine.predicates)
    values["guard_true"] = 1 | rng.choice((0, 0, 2, 6, 128)) & (1 << machine.predicates) - 1
    values["guard_false"] = rng.choice((0, 0, 4, 8))
    shape = rng.choice(("threads", "threads", "threads", "scalar", "none"))
    values["visit"] = int(shape != "none")
    values["scalar"] = int(shape == "scalar")
    if shape == "scalar":
        values["guard_true"] = values["guard_false"] = 0
    values["all_warps"] = int(shape == "threads")
    values |= {"next": index, "taken": (index + 1) % machine.rom_blocks, "branch_any": rng.randrange(2)}
    values["next_exit"] = rng.randrange(2)
    block = Block(**values)  # pyright: ignore[reportArgumentType]
    return replace(block, trap=1, imm=rng.randrange(len(FAULTS))) if rng.random() < 0.05 else block


def random_stream(rng: random.Random, machine: MachineDescription, blocks: int) -> Iterator[int]:
    """Yield a token sequence: state, then one random block after another, each loaded and run to its end."""
    ids = vocabulary(machine)
    shadow = Machine(machine)

    def send(*tokens: int) -> Iterator[int]:
        for token in tokens:
            shadow.step(token)
            yield token

    yield from send(ids.id("reset"))
    yield from _memory(rng, machine, send)
    yield from _predicates(rng, machine, send)
    for index in range(blocks):
        number = index % machine.rom_blocks
        if index % 6 == 0:
            yield from _uniforms(rng, machine, send)
        block = random_block(rng, machine, number)
        yield from send(*_program_row(machine, block, number))
        yield from send(ids.launch(rng.randrange(1, machine.warps + 1)))
        follower = None
        for token in send(ids.id("exec", number)):
            yield token
        follower = shadow_emission(shadow)
        for _ in range(MOST_TOKENS):
            if follower is None or ids.token(follower).kind in ("exit", "fault", "exec"):
                break
            yield follower
            follower = shadow.step(follower)


def shadow_emission(machine: Machine) -> int | None:
    """What a machine says after the tokens so far."""
    return machine._emit()


def _memory(rng, machine, send) -> Iterator[int]:
    ids = vocabulary(machine)
    for first in range(0, min(machine.memory_words, 64), machine.lanes):
        yield from send(ids.firmware("addr"), *ids.value(4 * first), ids.firmware("write"))
        for _ in range(machine.lanes):
            yield from send(*ids.value(word(rng)))


def _predicates(rng, machine, send) -> Iterator[int]:
    ids = vocabulary(machine)
    yield from send(ids.firmware("exists"))
    for warp in range(machine.warps):
        yield from send(*([ids.id("warp", warp)] if warp else []))
        for _ in range(machine.lanes):
            yield from send(*ids.value(int(rng.random() < 0.8)))


def _uniforms(rng, machine, send) -> Iterator[int]:
    ids = vocabulary(machine)
    yield from send(ids.firmware("uniform.0"), *ids.value(0))
    for register in range(1, min(8, machine.lanes)):
        descriptor = rng.randrange(0, 70) << 14 | rng.randrange(4)
        yield from send(*ids.value(descriptor if register % 2 else word(rng)))


def _program_row(machine: MachineDescription, block: Block, number: int) -> list[int]:
    ids, bits = vocabulary(machine), machine.payload_bits
    row = sum(bit << i for i, bit in enumerate(encode_block(block, machine)))
    tokens: list[int] = []
    for index in range(stage_slices(machine)):
        for part in range(STAGE_PARTS):
            tokens.append(ids.id("more", row >> bits * (STAGE_PARTS * index + part) & (1 << bits) - 1))
        tokens.append(ids.id("stage", index))
    return [*tokens, ids.id("rom", number)]
