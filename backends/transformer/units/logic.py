"""Shifts, bitwise functions, comparison, selection, byte merging and permutation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Form,
    FormLike,
    as_form,
    conjunction,
    equals,
    number,
    total,
)


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


FINE_BITS = 3
"""A shift is one by a multiple of 2^FINE_BITS, then one by less."""


class Shifter:
    """Shifts as the low word of a longer number moved right: by a multiple of 8, then by 0 to 7.

    The amount is decoded in the first layer, `begin` moves by the multiple of 8 in the next, `finish` by the
    rest in the third. Amounts of the width and more choose no fine shift: such results are added aside.
    """

    def __init__(self, circuit: Circuit, y: Sequence[FormLike], left: FormLike) -> None:
        """Decode the amount y, of a shift to the left where `left`: by n to the left is by width - n to the
        right, of the number with a word of zeros below it.
        """
        self.circuit = circuit
        self.width = len(y)
        bits = (self.width - 1).bit_length()
        high_clear = [1 - as_form(bit) for bit in y[bits:]]
        fine = 1 << FINE_BITS
        self.fine = [circuit.channel(f"shift.fine.{f}") for f in range(fine)]
        for amount, channel in enumerate(self.fine):
            low = list(y[:FINE_BITS])
            circuit.add_and(channel, 1 - as_form(left), *equals(low, amount), *high_clear)
            circuit.add_and(channel, left, *equals(low, -amount % fine), *high_clear)
        steps = self.width // fine
        self.right = [
            circuit.both(f"shift.right.{step}", *equals(list(y[FINE_BITS:bits]), step))
            for step in range(steps)
        ]
        self.left = [circuit.channel(f"shift.left.{step}") for step in range(steps + 1)]
        rounded = [(channel, _rounds_up_to(steps - step)) for step, channel in enumerate(self.left)]
        circuit.add_function(number(y[:bits]), self.width - 1, rounded)
        self.moved = circuit.bus("shift.moved", self.width + fine - 1)

    @property
    def beyond(self) -> Form:
        """1 where the amount is the width or more."""
        return 1 - total(self.fine)

    def begin(self, steps: Sequence[Channel], bits: Mapping[int, FormLike], *enable: FormLike) -> None:
        """Move a number, of which `bits` gives those that may be 1, by multiples of 8 where `enable`."""
        for step, chosen in enumerate(steps):
            for place, moved in enumerate(self.moved):
                bit = bits.get(place + (step << FINE_BITS))
                if bit is not None:
                    self.circuit.add_and(moved, *enable, chosen, bit)

    def fill(self, sign: FormLike, *enable: FormLike) -> None:
        """The bits above a word's highest one, which are its sign, where it is moved by multiples of 8."""
        for step, chosen in enumerate(self.right):
            filled = self.moved[self.width - (step << FINE_BITS) :]
            self.circuit.neuron(conjunction(*enable, chosen, sign), *((moved, 1) for moved in filled))

    def finish(self, outputs: Sequence[Channel]) -> None:
        """Add the result to `outputs`; nothing where no number was moved."""
        for amount, chosen in enumerate(self.fine):
            for output, moved in zip(outputs, self.moved[amount:], strict=False):
                self.circuit.add_and(output, chosen, moved)


def _rounds_up_to(step: int) -> Callable[[int], int]:
    """The function that is 1 where its argument, over 8 and rounded up, is `step`."""
    return lambda n: int(-(-n >> FINE_BITS) == step)


def shift_left(shifter: Shifter, x: Sequence[FormLike], enable: FormLike) -> None:
    """Begin x << amount where `enable` is 1 (PTX ISA, shl: amounts beyond the width give 0)."""
    shifter.begin(shifter.left, {shifter.width + k: bit for k, bit in enumerate(x)}, enable)


def shift_right(
    shifter: Shifter, x: Sequence[FormLike], signed: FormLike, outputs: Sequence[Channel], enable: FormLike
) -> None:
    """Begin x >> amount where `enable` is 1, filled with the sign where `signed` (PTX shr)."""
    shifter.begin(shifter.right, dict(enumerate(x)), enable)
    shifter.fill(x[-1], enable, signed)
    everywhere = conjunction(enable, signed, x[-1], shifter.beyond)
    shifter.circuit.neuron(everywhere, *((output, 1) for output in outputs))


def shift_pair(
    shifter: Shifter,
    x: Sequence[FormLike],
    z: Sequence[FormLike],
    outputs: Sequence[Channel],
    enable: FormLike,
) -> None:
    """Begin the low word of z:x >> amount where `enable` is 1; z where the amount is the width or more (PTX
    shf.r.clamp).
    """
    shifter.begin(shifter.right, dict(enumerate([*x, *z])), enable)
    for output, bit in zip(outputs, z, strict=True):
        shifter.circuit.add_and(output, enable, shifter.beyond, bit)


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


def permute_bytes(
    circuit: Circuit,
    x: Sequence[FormLike],
    y: Sequence[FormLike],
    selector: Sequence[FormLike],
    outputs: Sequence[Channel],
    enable: FormLike,
) -> None:
    """Add to each byte of `outputs` the byte of y:x that a digit of 4 bits of `selector` names where `enable`
    is 1, or its sign where the digit's highest bit is set; one layer (PTX prmt).
    """
    source = [*x, *y]
    for place in range(4):
        digit = selector[4 * place : 4 * place + 4]
        filled = outputs[8 * place : 8 * place + 8]
        for byte in range(8):
            here, bits = equals(digit[:3], byte), source[8 * byte : 8 * byte + 8]
            for bit, output in zip(bits, filled, strict=True):
                circuit.add_and(output, enable, *here, 1 - as_form(digit[3]), bit)
            sign = conjunction(enable, *here, digit[3], bits[7])
            circuit.neuron(sign, *((output, 1) for output in filled))


def reverse(circuit: Circuit, x: Sequence[FormLike], outputs: Sequence[Channel], enable: FormLike) -> None:
    """Add the bits of x in reverse order to `outputs` where `enable` is 1; one layer."""
    for bit, output in zip(x, reversed(outputs), strict=True):
        circuit.add_and(output, enable, bit)


def step(
    circuit: Circuit,
    z: Sequence[FormLike],
    condition: FormLike,
    up: bool,
    outputs: Sequence[Channel],
    enable: FormLike,
) -> None:
    """Add z + 1 or z - 1 where `condition`, z where not, to `outputs`, all where `enable` is 1; one layer.

    A bit changes where all those below it are ones, or where they are zeros.
    """
    carrying = [as_form(bit) if up else 1 - as_form(bit) for bit in z]
    for k, (bit, output) in enumerate(zip(z, outputs, strict=True)):
        circuit.add_and(output, enable, bit)
        circuit.add_and(output, enable, condition, *carrying[:k], 1 - as_form(bit))
        circuit.add_and(output, enable, condition, *carrying[:k], bit, coefficient=-1)
