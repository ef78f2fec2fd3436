"""Addition and multiplication: columns of counts, compressors, and a carry-lookahead adder."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    FormLike,
    as_form,
    at_least,
    bit_of,
    exactly,
    total,
)

DIGIT_BITS = 4
"""Columns of one digit of the adder: a digit sum is at most 30 and its carry at most 1."""


def add_columns(
    circuit: Circuit,
    name: str,
    columns: Sequence[FormLike],
    outputs: Sequence[Channel],
    enable: FormLike | None = None,
) -> None:
    """Add sum(columns[i] * 2^i), modulo 2^len(columns), to `outputs` in two layers.

    Each column is a count of 0 to 2. The first layer gives each digit's sum without carries, and whether it
    generates (sum of 16 and more) or propagates (15) a carry; the second is the lookahead: the carry into a
    digit comes from exactly one generating digit below it with only propagating digits between.
    """
    width = len(columns)
    digits = [range(low, min(low + DIGIT_BITS, width)) for low in range(0, width, DIGIT_BITS)]
    generate: list[Channel] = []
    propagate: list[Channel] = []
    low: list[Channel] = circuit.bus(f"{name}.low", width)
    for index, digit in enumerate(digits):
        size = len(digit)
        generate.append(circuit.channel(f"{name}.generate.{index}"))
        propagate.append(circuit.channel(f"{name}.propagate.{index}"))
        value = total(as_form(columns[bit]) * (1 << offset) for offset, bit in enumerate(digit))
        functions = [(low[bit], bit_of(offset)) for offset, bit in enumerate(digit)]
        if digit.stop < width:
            functions += [(generate[-1], at_least(1 << size)), (propagate[-1], exactly((1 << size) - 1))]
        circuit.add_function(value, 2 * ((1 << size) - 1), functions)
    on: list[FormLike] = [] if enable is None else [enable]
    for index, digit in enumerate(digits):
        carries = [[generate[g], *propagate[g + 1 : index]] for g in range(index)]
        for offset, bit in enumerate(digit):
            circuit.add_and(outputs[bit], *on, low[bit])
            below = low[digit.start : digit.start + offset]
            for carry in carries:
                circuit.add_and(outputs[bit], *on, *carry, *below, ~low[bit].form())
                circuit.add_and(outputs[bit], *on, *carry, *below, low[bit], coefficient=-1)


def compress_columns(
    circuit: Circuit, name: str, columns: Sequence[FormLike], maxima: Sequence[int]
) -> tuple[list[Channel], list[int]]:
    """Replace each column's count by its binary digits, in the columns they weigh; one layer.

    Returns the new columns and the largest count that each can have. Digits beyond the last column are
    dropped: the sum is modulo 2^width.
    """
    width = len(columns)
    given: list[list[int]] = [[] for _ in range(width)]
    for index, maximum in enumerate(maxima):
        for digit in range(maximum.bit_length()):
            if index + digit < width:
                given[index + digit].append(index)
    counts = [len(sources) for sources in given]
    compressed = [circuit.channel(f"{name}.{i}", max(1, counts[i])) for i in range(width)]
    for index, maximum in enumerate(maxima):
        functions = [
            (compressed[index + digit], bit_of(digit))
            for digit in range(maximum.bit_length())
            if index + digit < width
        ]
        circuit.add_function(columns[index], maximum, functions)
    return compressed, counts


def add_counts(
    circuit: Circuit,
    name: str,
    columns: Sequence[FormLike],
    maxima: Sequence[int],
    outputs: Sequence[Channel],
    enable: FormLike | None = None,
) -> None:
    """Add sum(columns[i] * 2^i) to `outputs`, the columns being counts of at most `maxima`.

    Compressor layers until each count is at most 2, then the adder's two.
    """
    forms, bounds, stage = list(columns), list(maxima), 0
    while max(bounds) > 2:
        compressed, bounds = compress_columns(circuit, f"{name}.compress{stage}", forms, bounds)
        forms = list(compressed)
        stage += 1
    add_columns(circuit, f"{name}.sum", forms, outputs, enable)


def multiply_add(
    circuit: Circuit,
    x: Sequence[FormLike],
    y: Sequence[FormLike],
    z: Sequence[FormLike],
    outputs: Sequence[Channel],
    enable: FormLike,
) -> None:
    """Add the low bits of x * y + z to `outputs` where `enable` is 1.

    One layer of partial products summed into column counts (z joins as the next layer reads them),
    compressors 33 -> 6 -> 3 -> 2, and the adder.
    """
    width = len(outputs)
    products = [circuit.channel(f"multiply.product.{i}", i + 1) for i in range(width)]
    for i in range(width):
        for j in range(width - i):
            circuit.add_and(products[i + j], x[i], y[j])
    columns: list[FormLike] = [products[i] + as_form(z[i]) for i in range(width)]
    add_counts(circuit, "multiply", columns, [i + 2 for i in range(width)], outputs, enable)


def population_count(
    circuit: Circuit, x: Sequence[FormLike], outputs: Sequence[Channel], enable: FormLike
) -> None:
    """Add the number of one bits of x to `outputs` (bits) where `enable` is 1; one layer."""
    digits = len(x).bit_length()
    functions = [(outputs[digit], bit_of(digit)) for digit in range(digits)]
    circuit.add_function(total(x), len(x), functions, enable)
