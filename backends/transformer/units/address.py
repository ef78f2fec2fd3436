"""The address unit: offset, byte address, and the checks of an access."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.backends.machine.description import DESCRIPTOR_BASE_BITS, MachineDescription
from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Form,
    FormLike,
    as_form,
    at_least,
    conjunction,
    equals,
    exactly,
    total,
)
from qgpu.backends.transformer.units.arithmetic import add_columns, add_counts
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.logic import Relation, add_relation, compare_digits
from qgpu.backends.transformer.units.registers import INDEX_HIGH, OFFSET_BITS, Operands

BASE_SHIFT = 4
"""The base of a descriptor is in units of 16 bytes."""

SIZE_BITS = 32 - DESCRIPTOR_BASE_BITS


@dataclass(frozen=True)
class Address:
    """Channels of the address unit.

    Attributes:
        byte: bits of the byte address.
        out_of_bounds: the checked access lies outside its buffer.
        misaligned: the checked access lies inside but is not aligned to its width.
    """

    byte: list[Channel]
    out_of_bounds: Channel
    misaligned: Channel


def compute_address(
    circuit: Circuit, machine: MachineDescription, fields: Fields, operands: Operands
) -> Address:
    """Build the adders of the byte address and of the offset, and compare the offset with the size."""
    circuit.unit("address")
    width = (machine.memory_words - 1).bit_length() + 2
    columns: list[FormLike] = [as_form(operands.i[k]) + operands.j[k] for k in range(width)]
    bounds = [2] * width
    for k in range(BASE_SHIFT, min(width, BASE_SHIFT + DESCRIPTOR_BASE_BITS)):
        columns[k] = as_form(columns[k]) + operands.descriptor[k - BASE_SHIFT]
        bounds[k] = 3
    byte = circuit.bus("byte_address", width)
    add_counts(circuit, "address", columns, bounds, byte)
    circuit.unit("bounds")
    offset = circuit.bus("offset", OFFSET_BITS)
    sums = [as_form(i) + j for i, j in zip(operands.i, operands.j, strict=True)]
    add_columns(circuit, "offset", sums, offset)
    inside = _inside(circuit, fields, offset, operands)
    misplaced = _misplaced(circuit, fields, offset)
    checked = fields.flag("check")
    out_of_bounds = circuit.both("out_of_bounds", checked, 1 - inside.form())
    misaligned = circuit.both("misaligned", checked, inside, misplaced)
    return Address(byte, out_of_bounds, misaligned)


def _inside(circuit: Circuit, fields: Fields, offset: list[Channel], operands: Operands) -> Channel:
    """1 where the last byte of the aligned access lies below the size and no index is out of range."""
    size = operands.descriptor[DESCRIPTOR_BASE_BITS:]
    high = compare_digits(circuit, "bounds.word", offset[2:SIZE_BITS], size[2:])
    (low,) = compare_digits(circuit, "bounds.byte", offset[:2], size[:2])
    beyond = circuit.channel("bounds.beyond")
    circuit.add_function(total(offset[SIZE_BITS:]), OFFSET_BITS - SIZE_BITS, [(beyond, at_least(1))])
    strange = _out_of_range(circuit, fields, operands)
    allowed: list[FormLike] = [1 - beyond.form(), *(1 - form for form in strange)]
    inside = circuit.channel("bounds.inside")
    less_only = Relation(1, 0, 0)
    add_relation(circuit, high, less_only, inside, *allowed)
    equal_high = [order.equal for order in high]
    byte, half = fields.flag("width8"), fields.flag("width16")
    circuit.add_and(inside, *allowed, *equal_high, byte, low.less)
    circuit.add_and(inside, *allowed, *equal_high, half, 1 - as_form(offset[1]), size[1])
    return inside


def _out_of_range(circuit: Circuit, fields: Fields, operands: Operands) -> list[Form]:
    """Flags that an index's high bits are not all alike, or that an unsigned one has any."""
    strange = []
    for name, high in (("i", operands.i_high), ("j", operands.j_high)):
        mixed = circuit.channel(f"bounds.{name}_range")
        circuit.add_function(high, INDEX_HIGH, [(mixed, lambda v: int(0 < v < INDEX_HIGH))])
        strange.append(mixed.form())
    negative = circuit.channel("bounds.i_negative")
    circuit.add_function(
        operands.i_high, INDEX_HIGH, [(negative, exactly(INDEX_HIGH))], enable=fields.flag("i_unsigned")
    )
    return [*strange, negative.form()]


def _misplaced(circuit: Circuit, fields: Fields, offset: list[Channel]) -> Channel:
    byte, half = as_form(fields.flag("width8")), as_form(fields.flag("width16"))
    misplaced = circuit.channel("bounds.misplaced")
    circuit.add_and(misplaced, half, offset[0])
    for low in range(1, 4):
        circuit.neuron(conjunction(1 - byte - half, *equals(offset[:2], low)), (misplaced, 1))
    return misplaced
