"""Addition and multiplication: columns of counts, their digits, and a carry lookahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Form,
    FormLike,
    as_form,
    at_least,
    bit_of,
    exactly,
    total,
)

EXACT = 255
"""Integers up to this are exact in bfloat16 as channels and as gates, so a function of one is exact too."""

PLAIN_BITS = 4
"""Columns of a digit where no column exceeds 2: the digit is at most 30, and its carry at most 1."""

SHIFTED_BITS = 2
"""Columns of a digit where columns are higher: up to 5, a digit is at most 15."""

HIGHEST = 5
"""The largest count that the adder takes in a column."""

WINDOW = 2
"""Columns of a product that are counted together: at most 32 + 2 * 32."""

CARRY_GROUP = 7
"""Digits whose states are read as one number, below 2^8, to tell whether a carry leaves them."""


@dataclass(frozen=True)
class Digit:
    """A digit of a sum before carries come in.

    Attributes:
        low: its bits.
        generate: a carry leaves it whatever comes in.
        propagate: a carry leaves it where one comes in.
    """

    low: list[Channel]
    generate: Channel
    propagate: Channel


def sum_digits(
    circuit: Circuit,
    name: str,
    alternatives: Sequence[tuple[Sequence[FormLike], FormLike | None]],
    maxima: Sequence[int] | None = None,
    below: tuple[Sequence[FormLike], Sequence[int]] = ((), ()),
) -> list[Digit]:
    """Build the adder's first layer: the digits of sum(columns[i] * 2^i) before carries come in.

    Args:
        alternatives: columns, each a count, with the form that enables them; None for always. At most one may
            be enabled.
        maxima: the largest count of each column, up to HIGHEST; None for 2.
        below: the columns of the digit below the first one, with their maxima, of what another sum has there.

    Raises:
        ValueError: a column is higher than HIGHEST.
    """
    width = len(alternatives[0][0])
    maxima = maxima or [2] * width
    highest = max(maxima)
    if highest > HIGHEST:
        raise ValueError(f"{name}: a column of {highest}")
    bits = PLAIN_BITS if highest <= 2 else SHIFTED_BITS
    ranges = [range(start, min(start + bits, width)) for start in range(0, width, bits)]
    digits = [
        Digit(
            circuit.bus(f"{name}.low.{index}", len(places)),
            circuit.channel(f"{name}.generate.{index}"),
            circuit.channel(f"{name}.propagate.{index}"),
        )
        for index, places in enumerate(ranges)
    ]
    circuit.exclusive.update((digit.generate, digit.propagate) for digit in digits)
    for columns, enable in alternatives:
        values = [_value(columns[r.start : r.stop], maxima[r.start : r.stop]) for r in ranges]
        lower = [_value(*below), *values]
        for digit, value, under in zip(digits, values, lower, strict=False):
            if highest <= 2:
                _plain_digit(circuit, digit, value, enable)
            else:
                _shifted_digit(circuit, digit, value, under, enable)
    return digits


def _value(columns: Sequence[FormLike], maxima: Sequence[int]) -> tuple[Form, int]:
    """The number that columns make up, and its maximum."""
    value = total(as_form(column) * (1 << k) for k, column in enumerate(columns))
    return value, sum(maximum << k for k, maximum in enumerate(maxima))


def _plain_digit(circuit: Circuit, digit: Digit, value: tuple[Form, int], enable: FormLike | None) -> None:
    """A digit whose carry is at most 1 even where one comes in."""
    base = 1 << len(digit.low)
    functions = [(channel, bit_of(k)) for k, channel in enumerate(digit.low)]
    functions += [(digit.generate, at_least(base)), (digit.propagate, exactly(base - 1))]
    circuit.add_function(*value, functions, enable)


def _shifted_digit(
    circuit: Circuit,
    digit: Digit,
    own: tuple[Form, int],
    below: tuple[Form, int],
    enable: FormLike | None,
) -> None:
    """A digit v in base b that takes in what the digit u below holds in multiples of b, and gives up its own;
    both with their maxima.

    What it holds then is v mod b + floor(u / b), at most 2 b - 2. With w = b v + u, which has floor(w / b) =
    v + floor(u / b), its bits are those of floor(w / b), it is b - 1 where those are all ones, and its carry
    is floor(w / b^2) - floor(v / b): functions of w, and of v.
    """
    bits, ones = SHIFTED_BITS, (1 << SHIFTED_BITS) - 1
    joined, limit = own[0] * (1 << bits) + below[0], (own[1] << bits) + below[1]
    assert limit <= EXACT and below[1] < 1 << 2 * bits
    functions = [(channel, bit_of(bits + k)) for k, channel in enumerate(digit.low)]
    functions.append((digit.propagate, lambda w: int(w >> bits & ones == ones)))
    functions.append((digit.generate, lambda w: w >> 2 * bits))
    circuit.add_function(joined, limit, functions, enable)
    circuit.add_function(*own, [(digit.generate, lambda v: -(v >> bits))], enable)


def look_ahead(
    circuit: Circuit,
    digits: Sequence[Digit],
    outputs: Sequence[Channel],
    enable: FormLike | None = None,
    first: int = 0,
) -> None:
    """Build the adder's second layer: add the sum's bits from digit `first` on to `outputs`.

    The state of a digit below is 2 where it generates a carry, 1 where it propagates one; a carry leaves n
    digits where their states, as a number in base 2, are at least 2^n. It comes from exactly one group of
    digits below, with only propagating ones between.
    """
    on: list[FormLike] = [] if enable is None else [enable]
    remaining = iter(outputs)
    for index, digit in enumerate(digits[first:], first):
        for offset, output in enumerate(islice(remaining, len(digit.low))):
            bit, below = digit.low[offset], digit.low[:offset]
            circuit.add_and(output, *on, bit)
            for end in range(index, 0, -CARRY_GROUP):
                group = digits[max(0, end - CARRY_GROUP) : end]
                literals = [*on, *(d.propagate for d in digits[end:index]), *below]
                _where_carried(circuit, output, group, [*literals, ~bit.form()], 1)
                _where_carried(circuit, output, group, [*literals, bit], -1)


def _where_carried(
    circuit: Circuit, output: Channel, group: Sequence[Digit], literals: Sequence[FormLike], sign: int
) -> None:
    """Add `sign` where a carry leaves the group by itself and all literals hold."""
    base = 1 << len(group)
    states = total((d.generate.form() * 2 + d.propagate) * (1 << k) for k, d in enumerate(group))
    missing = len(literals) - total(literals)
    gate = states - (base - 1) - missing * base
    circuit.neuron(gate, (output, sign))
    if len(group) > 1:
        circuit.neuron(gate - 1, (output, -sign))


def add_columns(
    circuit: Circuit,
    name: str,
    columns: Sequence[FormLike],
    outputs: Sequence[Channel],
    enable: FormLike | None = None,
) -> None:
    """Add sum(columns[i] * 2^i), modulo 2^len(columns), to `outputs`; columns of 0 to 2; two layers."""
    add_counts(circuit, name, columns, [2] * len(columns), outputs, enable)


def add_counts(
    circuit: Circuit,
    name: str,
    columns: Sequence[FormLike],
    maxima: Sequence[int],
    outputs: Sequence[Channel],
    enable: FormLike | None = None,
) -> None:
    """Add sum(columns[i] * 2^i) to `outputs`, the columns being counts of at most `maxima`, up to HIGHEST;
    two layers.
    """
    look_ahead(circuit, sum_digits(circuit, name, [(columns, None)], maxima), outputs, enable)


def count_windows(
    circuit: Circuit, name: str, columns: Sequence[FormLike], maxima: Sequence[int]
) -> tuple[list[Channel], list[int]]:
    """Replace the counts of WINDOW columns at a time by the binary digits of their sum; one layer.

    Returns the new columns and the largest count that each can have. Digits beyond the last column are
    dropped: the sum is modulo 2^width.
    """
    width = len(columns)
    sums: list[tuple[int, Form, int]] = []
    for start in range(0, width, WINDOW):
        window = range(start, min(start + WINDOW, width))
        value = total(as_form(columns[i]) * (1 << i - start) for i in window)
        sums.append((start, value, sum(maxima[i] << i - start for i in window)))
    places = [range(s, min(s + most.bit_length(), width)) for s, _, most in sums]
    counts = [sum(i in filled for filled in places) for i in range(width)]
    counted = [circuit.channel(f"{name}.{i}", max(1, counts[i])) for i in range(width)]
    for (start, value, most), filled in zip(sums, places, strict=True):
        assert most <= EXACT
        circuit.add_function(value, most, [(counted[p], bit_of(p - start)) for p in filled])
    return counted, counts


def product_digits(
    circuit: Circuit,
    x: Sequence[FormLike],
    y: Sequence[FormLike],
    z: Sequence[FormLike],
    z_low: FormLike,
    signed: FormLike,
) -> list[Digit]:
    """Return the digits of x * y of twice their width, signed where `signed`; three layers.

    Where `z_low`, z is added to the low half, and the high half is of no use; elsewhere it is added to the
    high half. It may come two layers later than x and y.
    Signed numbers: the highest bit weighs less than nothing, so the partial products of one such bit are
    subtracted, as their complements, and constants at the middle and the top make up for it (Baugh, Wooley:
    A Two's Complement Parallel Array Multiplication Algorithm, 1973). That leaves the low half as it is.
    """
    width = len(x)
    counts = [0] * (2 * width)
    for i in range(width):
        for j in range(width):
            counts[i + j] += 1
    counts[width] += 1
    counts[-1] += 1
    products = [circuit.channel(f"product.{i}", count) for i, count in enumerate(counts)]
    negative = _sign_products(width)
    for i in range(width):
        for j in range(width):
            both = [as_form(x[i]), as_form(y[j])]
            circuit.add_and(products[i + j], *both)
            if (i, j) in negative:
                circuit.add_and(products[i + j], *both, signed, coefficient=-2)
    places = [*(i + j for i, j in negative), width, 2 * width - 1]
    circuit.neuron(signed, *((products[place], places.count(place)) for place in sorted(set(places))))
    columns, maxima = count_windows(circuit, "product.counted", products, counts)
    upper = [as_form(column) + bit for column, bit in zip(columns[width:], z, strict=True)]
    lower = [as_form(column) + bit for column, bit in zip(columns[:width], z, strict=True)]
    alternatives = [(lower, z_low), (columns[:width], 1 - as_form(z_low))]
    low = sum_digits(circuit, "product.low", alternatives, [m + 1 for m in maxima[:width]])
    below = range(width - len(low[-1].low), width)
    under = [columns[i] for i in below], [maxima[i] for i in below]
    high = sum_digits(circuit, "product.high", [(upper, None)], [m + 1 for m in maxima[width:]], under)
    return [*low, *high]


def _sign_products(width: int) -> list[tuple[int, int]]:
    """The partial products of exactly one highest bit."""
    top = width - 1
    return [(top, k) for k in range(top)] + [(k, top) for k in range(top)]


def population_count(
    circuit: Circuit, x: Sequence[FormLike], outputs: Sequence[Channel], enable: FormLike
) -> None:
    """Add the number of one bits of x to `outputs` (bits) where `enable` is 1; one layer."""
    digits = len(x).bit_length()
    functions = [(outputs[digit], bit_of(digit)) for digit in range(digits)]
    circuit.add_function(total(x), len(x), functions, enable)
