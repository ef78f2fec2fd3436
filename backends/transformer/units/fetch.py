"""Program memory: staged slices, the ROM, and the firmware that is part of every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.backends.machine.block import Block, block_fields, encode_block, row_bits
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.firmware import firmware_blocks
from qgpu.backends.machine.tokens import STAGE_PARTS, stage_slices
from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Column,
    Form,
    FormLike,
    Head,
    as_form,
    conjunction,
    equals,
    matches,
)
from qgpu.backends.transformer.units.incoming import Incoming
from qgpu.backends.transformer.units.state import State

CONSTANT_COLUMNS = 2
"""Columns of a head that hold its constants, at most (see `emit`)."""


@dataclass(frozen=True)
class Fields:
    """The fields of the current block."""

    bits: dict[str, list[Channel]]

    def flag(self, name: str) -> Channel:
        """The only bit of a field of width 1."""
        (bit,) = self.bits[name]
        return bit

    def choice(self, name: str, choices: Sequence[str], value: str) -> Channel:
        """The bit of a one-hot field that stands for `value`."""
        return self.bits[name][list(choices).index(value)]


def fetch_block(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    state: State,
    baked: Sequence[Block] | None = None,
) -> Fields:
    """Build program memory; the fields are those of the block in `state.block`.

    With `baked`, the blocks that can be the current one, there is no memory: the block decides its fields.
    """
    circuit.unit("program memory")
    row = (
        _program_memory(circuit, machine, token, state) if baked is None else _baked(circuit, machine, baked)
    )
    bits: dict[str, list[Channel]] = {}
    position = 0
    for field in block_fields(machine):
        bits[field.name] = row[position : position + field.width]
        position += field.width
    return Fields(bits)


def _program_memory(
    circuit: Circuit, machine: MachineDescription, token: Incoming, state: State
) -> list[Channel]:
    staged = _stage(circuit, machine, token)[: row_bits(machine)]
    row = circuit.bus("field", row_bits(machine), kind="memory")
    _rom(circuit, machine, token, state, staged, row)
    _firmware(circuit, machine, state, row)
    return row


def _baked(circuit: Circuit, machine: MachineDescription, blocks: Sequence[Block]) -> list[Channel]:
    bits = np.array([encode_block(block, machine) for block in blocks])
    return [circuit.row_channel(f"field.{k}", column) for k, column in enumerate(bits.T)]


def _stage(circuit: Circuit, machine: MachineDescription, token: Incoming) -> list[Channel]:
    always = Form({}, 1)
    staged: list[Channel] = []
    more = token.is_kind["more"]
    for index in range(stage_slices(machine)):
        bits = circuit.bus(f"staged.{index}", STAGE_PARTS * machine.payload_bits, kind="memory")
        columns = [
            Column(
                conjunction(more, token.argument[position % machine.payload_bits]),
                [(output, 1)],
                tap=STAGE_PARTS - position // machine.payload_bits,
            )
            for position, output in enumerate(bits)
        ]
        write = conjunction(token.is_kind["stage"], *equals(token.argument[:4], index))
        circuit.heads.append(Head(f"stage.{index}", circuit.current_unit, [always], [always], write, columns))
        staged += bits
    return staged


def _rom(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    state: State,
    staged: Sequence[Channel],
    row: Sequence[Channel],
) -> None:
    rows = machine.model.key_dim
    width = machine.model.head_dim - CONSTANT_COLUMNS
    address = token.argument[: len(state.block)]
    for first in range(0, machine.rom_blocks, rows):
        blocks = range(first, min(first + rows, machine.rom_blocks))
        for low in range(0, len(row), width):
            pairs = zip(staged[low : low + width], row[low : low + width], strict=True)
            circuit.heads.append(
                Head(
                    f"rom.{first}.{low}",
                    circuit.current_unit,
                    matches(address, blocks),
                    matches(state.block, blocks),
                    as_form(token.is_kind["rom"]),
                    [Column(bit.form(), [(output, 1)]) for bit, output in pairs],
                )
            )


def _firmware(circuit: Circuit, machine: MachineDescription, state: State, row: Sequence[Channel]) -> None:
    for index, firmware in enumerate(firmware_blocks(machine)):
        bits = encode_block(firmware.block, machine)
        literals: list[FormLike] = list(equals(state.block, machine.rom_blocks + index))
        outputs = [(output, 1) for output, bit in zip(row, bits, strict=True) if bit]
        circuit.neuron(conjunction(*literals), *outputs)
