"""Data memory: word rows, routed to the operands as words, half words or bytes."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Column,
    Head,
    as_form,
    conjunction,
    equals,
    matches,
)
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
    """Build the memory: two copies, one for each access.

    A value is stored when its last token comes in; the pass that computed it, one token earlier, computed its
    address too, and the key's convolution still sees that token.
    """
    circuit.unit("memory")
    _copy(
        circuit,
        machine,
        token,
        fields,
        address,
        "memory",
        address.byte,
        _columns(token.value, fields, address, operands),
    )
    circuit.unit("second memory")
    gate = fields.flag("m2_to_z").form()
    second = [Column(v.form(), [(z, 1)], gate) for v, z in zip(token.value, operands.z, strict=True)]
    _copy(circuit, machine, token, fields, address, "memory2", address.second, second)


def _copy(
    circuit: Circuit,
    machine: MachineDescription,
    token: Incoming,
    fields: Fields,
    address: Address,
    name: str,
    read: Sequence[Channel],
    columns: list[Column],
) -> None:
    stores = as_form(fields.flag("wr_mem")) + fields.flag("wr_mem2")
    rows = machine.model.key_dim
    for first in range(0, machine.memory_words, rows):
        words = range(first, min(first + rows, machine.memory_words))
        circuit.heads.append(
            Head(
                f"{name}.{first}",
                circuit.current_unit,
                matches(address.stored[2:], words, stores),
                matches(read[2:], words),
                token.is_kind["value"].form(),
                columns,
                key_tap=1,
                file=name,
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
