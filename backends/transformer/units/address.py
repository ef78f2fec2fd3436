"""The address unit: offsets, byte addresses, and the checks of both accesses."""

from __future__ import annotations

from collections.abc import Sequence
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
from qgpu.backends.transformer.units.arithmetic import add_columns, look_ahead, sum_digits
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.logic import DigitOrder, Relation, add_relation, compare_digits
from qgpu.backends.transformer.units.registers import INDEX_HIGH, OFFSET_BITS, Operands

BASE_SHIFT = 4
"""The base of a descriptor is in units of 16 bytes."""

SIZE_BITS = 32 - DESCRIPTOR_BASE_BITS


@dataclass(frozen=True)
class Address:
    """Channels of the address unit.

    Attributes:
        byte, second: bits of the byte addresses of both accesses.
        stored: bits of the byte address of the access that the block's result goes to.
        out_of_bounds: a checked access lies outside its buffer.
        misaligned: a checked access lies inside but is not aligned to its width.
    """

    byte: list[Channel]
    second: list[Channel]
    stored: list[Channel]
    out_of_bounds: Channel
    misaligned: Channel


def compute_address(
    circuit: Circuit, machine: MachineDescription, fields: Fields, operands: Operands
) -> Address:
    """Build the adders of the byte addresses and of the offset, and compare the offsets with the sizes."""
    circuit.unit("address")
    width = (machine.memory_words - 1).bit_length() + 2
    byte, second, stored = (circuit.bus(f"{n}_address", width) for n in ("byte", "second", "stored"))
    base, base2 = _base(operands.descriptor, width), _base(operands.descriptor2, width)
    columns = _sums(base, _sums(operands.i, operands.j))
    heights = [2] * BASE_SHIFT + [3] * (width - BASE_SHIFT)
    sums = sum_digits(circuit, "address", [(columns, None)], heights)
    same = fields.flag("i_to_k")
    alternatives = [(_sums(base2, operands.i), same.form()), (_sums(base2, operands.k), 1 - same.form())]
    sums2 = sum_digits(circuit, "address2", alternatives)
    for digits, output, flag in ((sums, byte, "wr_mem"), (sums2, second, "wr_mem2")):
        look_ahead(circuit, digits, output)
        look_ahead(circuit, digits, stored, fields.flag(flag))
    circuit.unit("bounds")
    first, other = _first_faults(circuit, fields, operands), _second_faults(circuit, fields, operands)
    return Address(byte, second, stored, *_join(circuit, first, other))


def _base(descriptor: Sequence[Channel], width: int) -> list[FormLike]:
    """The base of a buffer in bytes."""
    return [*([0] * BASE_SHIFT), *descriptor[:DESCRIPTOR_BASE_BITS]][:width]


def _sums(left: Sequence[FormLike], right: Sequence[FormLike]) -> list[FormLike]:
    return [as_form(a) + b for a, b in zip(left, right, strict=False)]


@dataclass(frozen=True)
class _Faults:
    """Whether one access is out of bounds, or else misaligned."""

    out_of_bounds: Channel
    misaligned: Channel


def _join(circuit: Circuit, first: _Faults, second: _Faults) -> tuple[Channel, Channel]:
    """The faults of a block: the first access is looked at first."""
    no_first = [1 - first.out_of_bounds.form(), 1 - first.misaligned.form()]
    out_of_bounds, misaligned = circuit.channel("out_of_bounds"), circuit.channel("misaligned")
    circuit.neuron(first.out_of_bounds, (out_of_bounds, 1))
    circuit.neuron(first.misaligned, (misaligned, 1))
    circuit.add_and(out_of_bounds, *no_first, second.out_of_bounds)
    circuit.add_and(misaligned, *no_first, second.misaligned)
    return out_of_bounds, misaligned


def _first_faults(circuit: Circuit, fields: Fields, operands: Operands) -> _Faults:
    offset = circuit.bus("offset", OFFSET_BITS)
    add_columns(circuit, "offset", _sums(operands.i, operands.j), offset)
    strange = _out_of_range(circuit, fields, operands)
    inside = circuit.channel("bounds.inside")
    words, allowed = _inside_words(circuit, "bounds", offset, operands.descriptor, strange, inside)
    size = operands.descriptor[DESCRIPTOR_BASE_BITS:]
    (low,) = compare_digits(circuit, "bounds.byte", offset[:2], size[:2])
    equal_words = [order.equal for order in words]
    byte, half = fields.flag("width8"), fields.flag("width16")
    circuit.add_and(inside, *allowed, *equal_words, byte, low.less)
    circuit.add_and(inside, *allowed, *equal_words, half, 1 - as_form(offset[1]), size[1])
    misplaced = _misplaced(circuit, fields, offset)
    return _checked(circuit, "first", fields.flag("check"), inside, misplaced)


def _second_faults(circuit: Circuit, fields: Fields, operands: Operands) -> _Faults:
    """The second access is one of words, and its offset K alone."""
    offset = circuit.bus("offset2", OFFSET_BITS)
    same = fields.flag("i_to_k")
    for output, index, constant in zip(offset, operands.i, operands.k, strict=True):
        circuit.add_and(output, same, index)
        circuit.neuron(constant, (output, 1))
    high = circuit.channel("bounds2.index_range")
    mixed = [(high, lambda v: int(0 < v < INDEX_HIGH))]
    circuit.add_function(operands.i_high, INDEX_HIGH, mixed, enable=same)
    inside, misplaced = circuit.channel("bounds2.inside"), circuit.channel("bounds2.misplaced")
    _inside_words(circuit, "bounds2", offset, operands.descriptor2, [high.form()], inside)
    for low in range(1, 4):
        circuit.add_and(misplaced, *equals(offset[:2], low))
    return _checked(circuit, "second", fields.flag("check2"), inside, misplaced)


def _checked(circuit: Circuit, name: str, check: Channel, inside: Channel, misplaced: Channel) -> _Faults:
    return _Faults(
        circuit.both(f"{name}.out_of_bounds", check, 1 - inside.form()),
        circuit.both(f"{name}.misaligned", check, inside, misplaced),
    )


def _inside_words(
    circuit: Circuit,
    name: str,
    offset: Sequence[Channel],
    descriptor: Sequence[Channel],
    strange: Sequence[Form],
    inside: Channel,
) -> tuple[list[DigitOrder], list[FormLike]]:
    """Set `inside` where the whole word of the access lies below the size and no index is out of range.

    Returns the order of offset and size in words, and the literals that allow the access.
    """
    words = compare_digits(
        circuit, f"{name}.word", offset[2:SIZE_BITS], descriptor[DESCRIPTOR_BASE_BITS + 2 :]
    )
    beyond = circuit.channel(f"{name}.beyond")
    circuit.add_function(total(offset[SIZE_BITS:]), OFFSET_BITS - SIZE_BITS, [(beyond, at_least(1))])
    allowed: list[FormLike] = [1 - beyond.form(), *(1 - form for form in strange)]
    add_relation(circuit, words, Relation(1, 0, 0), inside, *allowed)
    return words, allowed


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
