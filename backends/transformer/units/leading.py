"""The highest one of a word: how many zeros are above it, and a reciprocal from the bits below it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qgpu.backends.transformer.circuit import Channel, Circuit, Form, FormLike, as_form, number, total
from qgpu.ir.core.reciprocals import ENTRY_BITS, INDEX_BITS, RECIPROCALS


def leading_one(circuit: Circuit, x: Sequence[FormLike]) -> list[Channel]:
    """Return x with all ones but the highest cleared; one layer."""
    clear: list[Form] = [1 - as_form(bit) for bit in x]
    return [circuit.both(f"leading.{k}", bit, *clear[k + 1 :]) for k, bit in enumerate(x)]


def count_leading_zeros(
    circuit: Circuit, leading: Sequence[Channel], outputs: Sequence[Channel], enable: FormLike
) -> None:
    """Add the number of zeros above the leading one, or the width, to `outputs` where `enable`; one layer."""
    width = len(leading)
    numbers = [(leading[k].form(), width - 1 - k) for k in range(width)]
    for chosen, zeros in [*numbers, (1 - total(leading), width)]:
        ones = [output for digit, output in enumerate(outputs) if zeros >> digit & 1]
        circuit.neuron(as_form(enable) + chosen - 1, *((output, 1) for output in ones))


def reciprocal(
    circuit: Circuit,
    x: Sequence[FormLike],
    leading: Sequence[Channel],
    outputs: Sequence[Channel],
    enable: FormLike,
) -> None:
    """Add about 2^32 / x to `outputs` where `enable` is 1, all ones for 0; three layers.

    The bits below the leading one, a function of the number that they are, and that function's value moved
    to where the leading one's place puts it.
    """
    index = circuit.bus("reciprocal.index", INDEX_BITS)
    for top, chosen in enumerate(leading):
        for k, bit in zip(reversed(range(INDEX_BITS)), reversed(x[:top]), strict=False):
            circuit.add_and(index[k], chosen, bit)
    entry = circuit.bus("reciprocal.entry", ENTRY_BITS)
    functions = [(channel, _entry_bit(k)) for k, channel in enumerate(entry)]
    circuit.add_function(number(index), (1 << INDEX_BITS) - 1, functions)
    for top, chosen in enumerate(leading):
        shift = len(x) - ENTRY_BITS - top
        for k, bit in enumerate(entry):
            if 0 <= k + shift < len(outputs):
                circuit.add_and(outputs[k + shift], enable, chosen, bit)
    circuit.neuron(as_form(enable) - total(leading), *((output, 1) for output in outputs))


def _entry_bit(k: int) -> Callable[[int], int]:
    return lambda index: RECIPROCALS[index] >> k & 1
