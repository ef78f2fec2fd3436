"""Shifts, bitwise functions, comparison, selection and byte merging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.backends.transformer.circuit import Channel, Circuit, Form, FormLike, as_form, equals, total


def bitwise(
    circuit: Circuit,
    operands: tuple[Sequence[FormLike], Sequence[FormLike], Sequence[FormLike]],
    table: Sequence[FormLike],
    outputs: Sequence[Channel],
    enable: FormLike,
) -> None:
    """Add the bitwise function with truth table `table` (8 bits, index 4 x + 2 y + z) to `outputs`; one
    layer.
    """
    for bits in zip(*operands, outputs, strict=True):
        x, y, z, output = as_form(bits[0]), as_form(bits[1]), as_form(bits[2]), bits[3]
        for index, entry in enumerate(table):
            circuit.add_and(output, enable, entry, *equals([z, y, x], index))


@dataclass(frozen=True)
class ShiftAmount:
    """A decoded shift amount: one channel an amount below the width, and the form that all bits are shifted
    out.
    """

    amounts: list[Channel]
    beyond: Form


def decode_amount(circuit: Circuit, y: Sequence[FormLike]) -> ShiftAmount:
    """Decode the unsigned number y into one-hot amounts 0 ... len(y) - 1; one layer."""
    width = len(y)
    digits = (width - 1).bit_length()
    high_clear = [1 - as_form(bit) for bit in y[digits:]]
    amounts = [
        circuit.both(f"shift.amount.{amount}", *equals(list(y[:digits]), amount), *high_clear)
        for amount in range(width)
    ]
    return ShiftAmount(amounts, 1 - total(amounts))


def shift_left(
    circuit: Circuit, x: Sequence[FormLike], amount: ShiftAmount, outputs: Sequence[Channel], enable: FormLike
) -> None:
    """Add x << amount to `outputs` where `enable` is 1; one layer (PTX ISA, shl: amounts beyond the width
    give 0).
    """
    for shift, chosen in enumerate(amount.amounts):
        for bit in range(len(x) - shift):
            circuit.add_and(outputs[bit + shift], enable, chosen, x[bit])


def shift_right(
    circuit: Circuit,
    x: Sequence[FormLike],
    amount: ShiftAmount,
    signed: FormLike,
    outputs: Sequence[Channel],
    enable: FormLike,
) -> None:
    """Add x >> amount to `outputs` where `enable` is 1, filled with the sign where `signed`; one layer (PTX
    shr).
    """
    width = len(x)
    for shift, chosen in enumerate(amount.amounts):
        for bit in range(shift, width):
            circuit.add_and(outputs[bit - shift], enable, chosen, x[bit])
    for bit in range(width):
        filled = total(amount.amounts[width - bit :]) + amount.beyond
        circuit.add_and(outputs[bit], enable, signed, x[width - 1], filled)


@dataclass(frozen=True)
class DigitOrder:
    """How two digits compare: forms of value 0 or 1."""

    less: Form
    greater: Form

    @property
    def equal(self) -> Form:
        """1 where neither is greater."""
        return 1 - self.less - self.greater


def compare_digits(
    circuit: Circuit, name: str, x: Sequence[FormLike], y: Sequence[FormLike], digit_bits: int = 4
) -> list[DigitOrder]:
    """Compare two unsigned numbers digit by digit, lowest first; one layer, four neurons a digit."""
    orders = []
    for index, start in enumerate(range(0, len(x), digit_bits)):
        pairs = list(zip(x[start : start + digit_bits], y[start : start + digit_bits], strict=True))
        difference = total((as_form(a) - b) * (1 << i) for i, (a, b) in enumerate(pairs))
        less = circuit.channel(f"{name}.less.{index}")
        greater = circuit.channel(f"{name}.greater.{index}")
        for channel, value in ((greater, difference), (less, -difference)):
            circuit.neuron(value, (channel, 1))
            circuit.neuron(value - 1, (channel, -1))
        orders.append(DigitOrder(less.form(), greater.form()))
    return orders


@dataclass(frozen=True)
class Relation:
    """Which outcomes of a comparison count, as forms of value 0 or 1."""

    less: FormLike
    equal: FormLike
    greater: FormLike


def add_relation(
    circuit: Circuit, orders: Sequence[DigitOrder], relation: Relation, output: Channel, *enable: FormLike
) -> None:
    """Add 1 to `output` where the compared numbers are in `relation`; one layer of exclusive terms."""
    for index, order in enumerate(orders):
        above = [other.equal for other in orders[index + 1 :]]
        circuit.add_and(output, *enable, relation.less, order.less, *above)
        circuit.add_and(output, *enable, relation.greater, order.greater, *above)
    circuit.add_and(output, *enable, relation.equal, *(order.equal for order in orders))


def flip_sign(circuit: Circuit, name: str, bits: Sequence[FormLike], signed: FormLike) -> list[FormLike]:
    """Return the bits with the highest one inverted where `signed`: signed order becomes unsigned order; one
    layer.
    """
    top, flag = as_form(bits[-1]), as_form(signed)
    flipped = circuit.channel(f"{name}.flipped")
    circuit.add_and(flipped, top, 1 - flag)
    circuit.add_and(flipped, 1 - top, flag)
    return [*bits[:-1], flipped]


def choose(
    circuit: Circuit,
    x: Sequence[FormLike],
    y: Sequence[FormLike],
    condition: FormLike,
    outputs: Sequence[Channel],
    enable: FormLike,
) -> None:
    """Add x to `outputs` where `condition`, y where not, both where `enable` is 1; one layer."""
    for a, b, output in zip(x, y, outputs, strict=True):
        circuit.add_and(output, enable, condition, a)
        circuit.add_and(output, enable, 1 - as_form(condition), b)


def merge_bytes(
    circuit: Circuit,
    x: Sequence[FormLike],
    y: Sequence[FormLike],
    address: tuple[FormLike, FormLike],
    widths: tuple[FormLike, FormLike],
    outputs: Sequence[Channel],
    enable: FormLike,
) -> None:
    """Add x with the byte or half word at `address` (its two low bits) replaced by low bits of y; two layers.

    `widths` are the flags for one and two bytes; with neither the result is 0.
    """
    byte_flag, half_flag = widths
    at_byte = [circuit.both(f"merge.byte.{k}", *equals(list(address), k)) for k in range(4)]
    high = as_form(address[1])
    for bit, output in enumerate(outputs):
        byte, in_half = at_byte[bit // 8], (high if bit >= 16 else 1 - high)
        circuit.add_and(output, enable, byte_flag, byte, y[bit % 8])
        circuit.add_and(output, enable, byte_flag, ~byte.form(), x[bit])
        circuit.add_and(output, enable, half_flag, in_half, y[bit % 16])
        circuit.add_and(output, enable, half_flag, 1 - in_half, x[bit])
