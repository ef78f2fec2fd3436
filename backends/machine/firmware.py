"""Firmware: blocks that every machine has, so that the host speaks to it in the tokens of a launch.

The host uploads data by starting a firmware block and sending, as value tokens, the results that its lanes
should have; the machine commits them like its own. READ is a firmware block whose results it computes itself.
Firmware blocks have the ids from `rom_blocks` on.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from qgpu.backends.machine.block import Block
from qgpu.backends.machine.description import MachineDescription

HOST_ADDRESS = 0
"""The uniform register that holds the byte address of READ and WRITE; kernels do not use it."""

ENTRY_BLOCK = 0
"""The program block that LAUNCH goes to."""


@dataclass(frozen=True)
class Firmware:
    """One firmware block: the name of the token that starts it, and what it does."""

    name: str
    block: Block
    meaning: str


def firmware_count(machine: MachineDescription) -> int:
    """Number of firmware blocks of a machine."""
    return 4 + machine.uniform_registers // machine.lanes


def firmware_blocks(machine: MachineDescription) -> tuple[Firmware, ...]:
    """Return the firmware in the order of its block ids, the first being `machine.rom_blocks`.

    `uniform.G` loads the uniform registers from G * lanes on, one a lane.
    """
    words = Block(visit=1, next_exit=1, lane_to_i4=1, e=HOST_ADDRESS, e_to_j=1)
    fixed = (
        Firmware(
            "addr",
            Block(visit=1, scalar=1, wr_uni=1, dest=HOST_ADDRESS),
            "set the byte address of READ and WRITE",
        ),
        Firmware(
            "read",
            dataclasses.replace(words, m_to_x=1, one_to_y=1),
            "answer with the words at address + 4 lane, from the current lane to the last, then EXIT",
        ),
        Firmware("write", dataclasses.replace(words, wr_mem=1), "store words at address + 4 lane"),
        Firmware(
            "threads", Block(visit=1, scalar=1, wr_bound=1, dest_pred=0), "say how many threads there are"
        ),
    )
    groups = tuple(
        Firmware(
            f"uniform.{group}",
            Block(visit=1, wr_uni=1, dest=group * machine.lanes, dest_lane=1),
            f"load uniform registers {group * machine.lanes} to {(group + 1) * machine.lanes - 1}",
        )
        for group in range(machine.uniform_registers // machine.lanes)
    )
    return fixed + groups


def firmware_id(machine: MachineDescription, name: str) -> int:
    """Return the block id of the firmware block called `name`.

    Raises:
        KeyError: there is none of that name.
    """
    names = [firmware.name for firmware in firmware_blocks(machine)]
    if name not in names:
        raise KeyError(name)
    return machine.rom_blocks + names.index(name)
