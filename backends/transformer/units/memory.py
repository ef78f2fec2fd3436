"""Data memory: word rows, routed to the operands as words, half words or bytes."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.transformer.circuit import Channel, Circuit, Column, Head, conjunction, equals
from qgpu.backends.transformer.units.address import Address
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.incoming import Incoming
from qgpu.backends.transformer.units.registers import Operands


def access_memory(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    fields: Fields,
    address: Address,
    operands: Operands,
) -> None:
    """Build the memory: it stores at the address of the pass before, then reads at this pass's.

    A value is stored when its last token comes in; the pass that computed it, one token earlier, computed its
    address too, and the key's convolution still sees that token.
    """
    circuit.unit("memory")
    columns = _columns(token.value, fields, address, operands)
    word = address.byte[2:]
    rows = machine.model.head_dim
    for first in range(0, machine.memory_words, rows):
        matches = [
            conjunction(*equals(word, w)) for w in range(first, min(first + rows, machine.memory_words))
        ]
        circuit.heads.append(
            Head(
                f"memory.{first}",
                circuit.current_unit,
                matches,
                matches,
                conjunction(token.is_kind["last"], fields.flag("wr_mem")),
                columns,
                key_tap=1,
            )
        )


def _columns(value: Sequence[Channel], fields: Fields, address: Address, operands: Operands) -> list[Column]:
    part, signed = fields.flag("m_sub_to_x"), fields.flag("m_signed")
    byte, half = fields.flag("width8"), fields.flag("width16")
    low, high = address.byte[0], address.byte[1]
    x = operands.x
    columns = [Column(value[k].form(), [(x[k], 1)], fields.flag("m_to_x").form()) for k in range(32)]
    columns += [
        Column(value[k].form(), [(operands.y[k], 1)], fields.flag("m_to_y").form()) for k in range(32)
    ]
    for at in range(4):
        here = conjunction(part, *equals([low, high], at))
        columns += [Column(value[8 * at + k].form(), [(x[k], 1)], here) for k in range(8)]
        fill = conjunction(part, signed, byte, *equals([low, high], at))
        columns.append(Column(value[8 * at + 7].form(), [(output, 1) for output in x[8:]], fill))
    for at in range(2):
        here = conjunction(part, half, *equals([high], at))
        columns += [Column(value[16 * at + k].form(), [(x[k], 1)], here) for k in range(8, 16)]
        fill = conjunction(part, signed, half, *equals([high], at))
        columns.append(Column(value[16 * at + 15].form(), [(output, 1) for output in x[16:]], fill))
    return columns
