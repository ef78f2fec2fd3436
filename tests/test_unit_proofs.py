"""Each functional unit is its definition: proved by z3 for all inputs, with what it says of its channels.

The definitions are those of the machine's documentation, as bit-vectors. The multiplier is proved in parts:
narrow ones for all inputs, and of the whole the partial products by their list, the windows for all counts,
and the sum of columns by z3.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import fields as dataclass_fields
from typing import Any

import numpy as np
import pytest
import z3

from qgpu.backends.machine.block import BOUNDS
from qgpu.backends.machine.description import SEED, SMALL
from qgpu.backends.transformer.circuit import Channel, Circuit, Neuron
from qgpu.backends.transformer.processor import build_processor
from qgpu.backends.transformer.units.address import compute_address
from qgpu.backends.transformer.units.arithmetic import (
    HIGHEST,
    add_columns,
    add_counts,
    count_windows,
    look_ahead,
    population_count,
    product_digits,
)
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.leading import count_leading_zeros, leading_one, reciprocal
from qgpu.backends.transformer.units.logic import (
    Relation,
    Shifter,
    add_relation,
    bitwise,
    choose,
    compare_digits,
    flip_sign,
    merge_bytes,
    permute_bytes,
    reverse,
    shift_left,
    shift_pair,
    shift_right,
    step,
)
from qgpu.backends.transformer.units.registers import INDEX_HIGH, OFFSET_BITS, Operands
from qgpu.ir.core import reciprocals
from symbolic import Symbolic, evaluate, number_of, refute

WORD = 32


class RefutedError(AssertionError):
    """A result that is not what it must be, with an input that shows it."""


class Unit:
    """A circuit whose inputs are free: `word` and `flag` make one, and give its channels and its z3 term."""

    def __init__(self) -> None:
        self.circuit = Circuit(1)
        self.given: dict[Channel, Any] = {}
        self.facts: list[Any] = []

    def word(self, name: str, width: int = WORD) -> tuple[list[Channel], Any]:
        """A word of bits."""
        bus, term = self.circuit.bus(name, width), z3.BitVec(name, width)
        self.given |= {channel: z3.Extract(k, k, term) == 1 for k, channel in enumerate(bus)}
        return bus, term

    def flag(self, name: str) -> tuple[Channel, Any]:
        """A bit."""
        channel, term = self.circuit.channel(name), z3.Bool(name)
        self.given[channel] = term
        return channel, term

    def count(self, name: str, maximum: int) -> tuple[Channel, Any]:
        """A number from 0 to a maximum."""
        channel, term = self.circuit.channel(name, maximum), z3.BitVec(name, maximum.bit_length())
        self.given[channel] = term
        self.facts.append(z3.ULE(term, maximum))
        return channel, term

    def out(self, width: int = WORD) -> list[Channel]:
        """The bus of the result."""
        return self.circuit.bus("result", width)

    def prove(self, *results: tuple[list[Channel] | Channel, Any]) -> None:
        """Prove that each result is what it must be, a word or a bit, whatever the inputs.

        A result is given for those after it.

        Raises:
            RefutedError: there is an input for which it is not.
        """
        symbolic = Symbolic(self.circuit, self.given)
        claims = [
            symbolic.word(found) == wanted if isinstance(found, list) else symbolic.bit(found) == wanted
            for found, wanted in results
        ]
        for number, claim in enumerate(claims):
            if (found := refute(claim, *self.facts, *claims[:number])) is not None:
                raise RefutedError(f"{results[number][0]}: {found}")
        for claim in symbolic.claims:
            if (found := refute(claim, *self.facts)) is not None:
                raise RefutedError(f"{claim}: {found}")


def widened(term: Any, width: int) -> Any:
    return z3.ZeroExt(width - term.size(), term)


@pytest.mark.parametrize("width", [1, 4, 5, 32])
def test_adder(width: int) -> None:
    unit = Unit()
    (x, a), (y, b) = unit.word("x", width), unit.word("y", width)
    out = unit.out(width)
    add_columns(unit.circuit, "add", [p.form() + q for p, q in zip(x, y, strict=True)], out)
    unit.prove((out, a + b))


@pytest.mark.parametrize("width", [4, 16])
def test_adder_of_counts(width: int) -> None:
    """What the multiplier ends with: columns of up to HIGHEST."""
    unit = Unit()
    columns = [unit.count(f"column.{k}", HIGHEST) for k in range(width)]
    out = unit.out(width)
    add_counts(unit.circuit, "add", [c for c, _ in columns], [HIGHEST] * width, out)
    total = sum((widened(term, width) << k for k, (_, term) in enumerate(columns)), z3.BitVecVal(0, width))
    unit.prove((out, total))


def test_comparison() -> None:
    unit = Unit()
    (x, a), (y, b), (flag, is_signed) = unit.word("x"), unit.word("y"), unit.flag("signed")
    left, right = (flip_sign(unit.circuit, f"flip.{n}", bits, flag) for n, bits in (("x", x), ("y", y)))
    orders = compare_digits(unit.circuit, "compare", left, right)
    less, equal, greater = unit.out(3)
    for output, relation in ((less, (1, 0, 0)), (equal, (0, 1, 0)), (greater, (0, 0, 1))):
        add_relation(unit.circuit, orders, Relation(*relation), output)
    unit.prove(
        (less, z3.If(is_signed, a < b, z3.ULT(a, b))),
        (equal, a == b),
        (greater, z3.If(is_signed, a > b, z3.UGT(a, b))),
    )


def test_bitwise() -> None:
    unit = Unit()
    (x, a), (y, b), (z, c) = (unit.word(name) for name in "xyz")
    (table, lut), out = unit.word("lut", 8), unit.out()
    bitwise(unit.circuit, (x, y, z), table, out, 1)
    index = [z3.Concat(*(z3.Extract(k, k, term) for term in (a, b, c))) for k in range(WORD)]
    bits = [z3.Extract(0, 0, z3.LShR(lut, z3.ZeroExt(5, place))) for place in index]
    unit.prove((out, z3.Concat(*reversed(bits))))


@pytest.mark.parametrize("kind", ["shl", "shr", "signed shr", "shf"])
def test_shifts(kind: str) -> None:
    unit = Unit()
    (x, a), (y, amount), (z, above) = (unit.word(name) for name in "xyz")
    out, shifter = unit.out(), Shifter(unit.circuit, y, int(kind == "shl"))
    shift_left(shifter, x, int(kind == "shl"))
    shift_right(shifter, x, int(kind == "signed shr"), out, int(kind.endswith("shr")))
    shift_pair(shifter, x, z, out, int(kind == "shf"))
    shifter.finish(out)
    pair = z3.LShR(z3.Concat(above, a), z3.ZeroExt(WORD, amount))
    wanted = {
        "shl": a << amount,
        "shr": z3.LShR(a, amount),
        "signed shr": a >> amount,
        "shf": z3.If(z3.ULT(amount, WORD), z3.Extract(WORD - 1, 0, pair), above),
    }
    unit.prove((out, wanted[kind]))


def test_choice_reversal_and_steps() -> None:
    for kind in ("choose", "reverse", "inc", "dec"):
        unit = Unit()
        (x, a), (y, b), (flag, holds), out = unit.word("x"), unit.word("y"), unit.flag("flag"), unit.out()
        if kind == "choose":
            choose(unit.circuit, x, y, flag, out, 1)
            unit.prove((out, z3.If(holds, a, b)))
        elif kind == "reverse":
            reverse(unit.circuit, x, out, 1)
            unit.prove((out, z3.Concat(*(z3.Extract(k, k, a) for k in range(WORD)))))
        else:
            step(unit.circuit, x, flag, kind == "inc", out, 1)
            unit.prove((out, z3.If(holds, a + (1 if kind == "inc" else -1), a)))


def test_merging() -> None:
    unit = Unit()
    (x, a), (y, b), (low, address) = unit.word("x"), unit.word("y"), unit.word("address", 2)
    (byte, is_byte), (half, is_half), out = unit.flag("byte"), unit.flag("half"), unit.out()
    merge_bytes(unit.circuit, x, y, (low[0], low[1]), (byte, half), out, 1)
    shift = z3.ZeroExt(WORD - 2, z3.If(is_byte, address, address & 2)) * 8
    mask = z3.If(is_byte, z3.BitVecVal(0xFF, WORD), z3.BitVecVal(0xFFFF, WORD))
    unit.facts.append(is_byte != is_half)
    unit.prove((out, a & ~(mask << shift) | (b & mask) << shift))


def test_permutation() -> None:
    unit = Unit()
    (x, a), (y, b), (z, selector), out = unit.word("x"), unit.word("y"), unit.word("z"), unit.out()
    permute_bytes(unit.circuit, x, y, z, out, 1)
    taken = []
    for place in range(4):
        digit = z3.Extract(4 * place + 3, 4 * place, selector)
        source = z3.LShR(z3.Concat(b, a), z3.ZeroExt(61, z3.Extract(2, 0, digit)) * 8)
        sign = z3.SignExt(7, z3.Extract(7, 7, source))
        taken.append(z3.If(z3.Extract(3, 3, digit) == 1, sign, z3.Extract(7, 0, source)))
    unit.prove((out, z3.Concat(*reversed(taken))))


def test_leading_zeros() -> None:
    unit = Unit()
    (x, a), out = unit.word("x"), unit.out(6)
    count_leading_zeros(unit.circuit, leading_one(unit.circuit, x), out, 1)
    zeros = z3.BitVecVal(WORD, 6)
    for k in range(WORD):
        zeros = z3.If(z3.Extract(k, k, a) == 1, z3.BitVecVal(WORD - 1 - k, 6), zeros)
    unit.prove((out, zeros))


def test_population_count() -> None:
    """A function of the sum of the bits alone, at all of its values."""
    unit = Unit()
    (x, _), out = unit.word("x"), unit.out(6)
    population_count(unit.circuit, x, out, 1)
    assert all(neuron.gate.terms == dict.fromkeys(x, 1) for neuron in unit.circuit.neurons)
    ones = np.arange(WORD + 1)
    values = evaluate(unit.circuit, {channel: (ones > k).astype(np.int64) for k, channel in enumerate(x)})
    assert number_of(values, out).tolist() == ones.tolist()


def test_reciprocal() -> None:
    """It depends on the place of the highest one and the bits below it that make its index: all of these."""
    unit = Unit()
    (x, _), out = unit.word("x"), unit.out()
    reciprocal(unit.circuit, x, leading_one(unit.circuit, x), out, 1)
    below, rng = reciprocals.INDEX_BITS, random.Random(1)
    cases = [0, *range(1, 1 << below + 1)]
    for top, index in itertools.product(range(below + 1, WORD), range(1 << below)):
        rest = top - below
        cases.append(1 << top | index << rest | rng.getrandbits(rest))
    numbers = np.array(cases, np.int64)
    values = evaluate(unit.circuit, {channel: numbers >> k & 1 for k, channel in enumerate(x)})
    assert number_of(values, out).tolist() == [reciprocals.reciprocal(n) for n in cases]


# The multiplier.


def product_unit(width: int) -> tuple[Circuit, list[list[Channel]], list[Channel], list[Channel]]:
    """x * y, z, the flags `low` (z is added to the low half) and `signed`, and both halves."""
    circuit = Circuit(1)
    x, y, z = (circuit.bus(name, width) for name in "xyz")
    z_low, signed = circuit.channel("low"), circuit.channel("signed")
    digits = product_digits(circuit, x, y, z, z_low, signed)
    low, high = circuit.bus("low_half", width), circuit.bus("high_half", width)
    look_ahead(circuit, digits, low)
    look_ahead(circuit, digits, high, None, len(digits) // 2)
    return circuit, [x, y, z], [z_low, signed], [*low, *high]


def check_products(width: int, x: np.ndarray, y: np.ndarray, z: np.ndarray, low: int, signed: int) -> None:
    """The low half of x y + z where `low`, else the high half, plus z, of the product as it is `signed`."""
    circuit, inputs, flags, halves = product_unit(width)
    given = {c: n >> k & 1 for bus, n in zip(inputs, (x, y, z), strict=True) for k, c in enumerate(bus)}
    given |= {flag: np.full_like(x, value) for flag, value in zip(flags, (low, signed), strict=True)}
    values = evaluate(circuit, given)
    mask, top = (1 << width) - 1, 1 << width - 1
    left, right = ([int(v) - (v >= top) * (signed << width) for v in n.tolist()] for n in (x, y))
    products = [a * b for a, b in zip(left, right, strict=True)]
    shifted = [product if low else product >> width for product in products]
    wanted = [(p + c) & mask for p, c in zip(shifted, z.tolist(), strict=True)]
    assert number_of(values, halves[:width] if low else halves[width:]).tolist() == wanted


@pytest.mark.parametrize(("low", "signed"), [(1, 0), (1, 1), (0, 0), (0, 1)])
def test_narrow_products_of_all_numbers(low: int, signed: int) -> None:
    for width in (2, 4):
        numbers = np.arange(1 << 3 * width)
        x, y, z = (numbers >> width * k & (1 << width) - 1 for k in range(3))
        check_products(width, x, y, z, low, signed)


CORNERS = (0, 1, 2, 3, 15, 16, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xAAAAAAAA, 0x55555555)


@pytest.mark.parametrize(("low", "signed"), [(1, 0), (0, 0), (0, 1)])
def test_products_of_words(low: int, signed: int) -> None:
    rng = np.random.default_rng(low + 2 * signed)
    corners = np.array(list(itertools.product(CORNERS, repeat=2)), np.int64).T
    random_words = rng.integers(0, 1 << WORD, (2, 800)) >> rng.integers(0, WORD, (2, 800))
    x, y = np.concatenate([corners, random_words], axis=1)
    check_products(WORD, x, y, rng.integers(0, 1 << WORD, len(x)), low, signed)


def test_partial_products_add_up() -> None:
    """Every bit of x meets every bit of y once, in the column of its weight; signs by Baugh and Wooley."""
    circuit, (x, y, _), (_, signed), _ = product_unit(WORD)
    names = {f"product.{k}": k for k in range(2 * WORD)}
    columns = {channel: names[channel.name] for channel in circuit.channels if channel.name in names}
    products: dict[frozenset[Channel], int] = {}
    for neuron in circuit.neurons:
        sums = [(columns[c], k) for c, k in neuron.outputs if c in columns]
        if sums:
            assert set(neuron.gate.terms.values()) == {1}
            assert neuron.gate.constant == 1 - len(neuron.gate.terms)
            products[frozenset(neuron.gate.terms)] = sum(k << column for column, k in sums)
    top = WORD - 1
    for i, j in itertools.product(range(WORD), repeat=2):
        assert products.pop(frozenset((x[i], y[j]))) == 1 << i + j
        if (i == top) != (j == top):
            assert products.pop(frozenset((x[i], y[j], signed))) == -2 << i + j
    assert products.pop(frozenset((signed,))) % (1 << 2 * WORD) == 0
    assert products == {}


def test_windows_of_a_product_add_up() -> None:
    """Each window is a function of one integer: all of its values."""
    circuit = Circuit(1)
    counts = [*range(1, 33), *range(32, 0, -1)]
    columns = [circuit.channel(f"column.{k}", count) for k, count in enumerate(counts)]
    counted, maxima = count_windows(circuit, "counted", columns, counts)
    assert max(maxima) < HIGHEST
    cases = [
        (first, pair)
        for first in range(0, len(columns), 2)
        for pair in itertools.product(*(range(counts[k] + 1) for k in (first, first + 1)))
    ]
    given = np.zeros((len(columns), len(cases)), np.int64)
    for case, (first, pair) in enumerate(cases):
        given[first : first + 2, case] = pair
    values = evaluate(circuit, dict(zip(columns, given, strict=True)))
    weights = np.uint64(1) << np.arange(len(columns), dtype=np.uint64)
    digits = np.array([values[channel] for channel in counted], np.uint64)
    assert (weights @ digits == weights @ given.astype(np.uint64)).all()  # modulo 2^64


# The choice of the lane.


@pytest.fixture(scope="module")
def processor() -> Circuit:
    return build_processor(SEED)


def part(processor: Circuit, written: Callable[[str], bool]) -> Circuit:
    """The neurons of the machine that write channels of some names, and nothing else."""
    found = Circuit(1)
    found.adopt(processor.channels)
    for neuron in processor.neurons:
        outputs = [(channel, k) for channel, k in neuron.outputs if written(channel.name)]
        found.neurons += [Neuron(neuron.gate, outputs, neuron.unit)] if outputs else []
    return found


def free(unit: Circuit) -> Unit:
    """A unit of these neurons, with a Boolean for every bit that they do not write."""
    proof = Unit()
    proof.circuit = unit
    written = {channel for neuron in unit.neurons for channel, _ in neuron.outputs}
    read = {channel for neuron in unit.neurons for channel in neuron.gate.terms}
    assert all(channel.maximum == 1 for channel in read - written)
    proof.given = {channel: z3.Bool(channel.name) for channel in read - written}
    return proof


def test_bounds_of_predicates(processor: Circuit) -> None:
    """A lane is below the bound where its thread's number, warp * lanes + lane, is, both signed."""
    parts = ("beyond", "over", "there", "lane", "held")
    for predicate in range(BOUNDS):
        names = tuple(f"bound.{predicate}.{name}" for name in parts)
        proof = free(part(processor, lambda name, names=names: name.startswith(names)))
        bit = {channel.name: value for channel, value in proof.given.items()}
        bound = _concat([bit[f"bound.{predicate}.{k}"] for k in range(WORD)])
        lane_bits, warp_bits = (n.bit_length() - 1 for n in (SEED.lanes, SEED.warps))
        warp = _concat([bit[f"warp.{k}"] for k in range(warp_bits)])
        named = {channel.name: channel for channel in proof.circuit.channels}
        for lane in range(SEED.lanes):
            thread: Any = z3.Concat(warp, z3.BitVecVal(lane, lane_bits))
            below = widened(thread, WORD) < bound
            proof.prove((named[f"bound.{predicate}.held.{lane}"], below))


def _concat(bits: Sequence[Any]) -> Any:
    one, zero = z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)
    return z3.Concat(*(z3.If(bit, one, zero) for bit in reversed(bits)))


def test_lane_selection(processor: Circuit) -> None:
    proof = free(part(processor, lambda name: name.startswith(("lanes.", "first_lane."))))
    named = {channel.name: channel for channel in proof.circuit.channels}
    left, at = (
        [proof.given[named[f"{bus}.{k}"]] for k in range(SEED.lanes)] for bus in ("lane_left", "at_lane")
    )
    proof.facts.append(z3.AtMost(*at, 1))
    ones = z3.Sum([z3.If(bit, z3.BitVecVal(1, 8), z3.BitVecVal(0, 8)) for bit in left])
    proof.prove(
        (named["lanes.here"], z3.Or([z3.And(*pair) for pair in zip(left, at, strict=True)])),
        (named["lanes.single"], ones == 1),
        (named["lanes.none"], ones == 0),
        *(
            (named[f"first_lane.{lane}"], z3.And(bit, z3.Not(z3.Or(left[:lane]))))
            for lane, bit in enumerate(left)
        ),
    )


def test_a_wrong_circuit_is_refuted() -> None:
    """One literal too many, one weight of the other sign, one neuron too few: for each there is an input."""
    for fault in range(3):
        unit = Unit()
        (x, a), (y, b) = unit.word("x", 8), unit.word("y", 8)
        out = unit.out(8)
        add_columns(unit.circuit, "add", [p.form() + q for p, q in zip(x, y, strict=True)], out)
        last = unit.circuit.neurons[-1]
        if fault == 0:
            last.gate = last.gate + x[0] - 1
        elif fault == 1:
            last.outputs = [(channel, -k) for channel, k in last.outputs]
        else:
            unit.circuit.neurons.remove(last)
        with pytest.raises(RefutedError):
            unit.prove((out, a + b))


# The address unit.


def test_addresses_and_faults() -> None:
    unit = Unit()
    unused: dict[str, Any] = {field.name: [] for field in dataclass_fields(Operands)}
    (i, a), (j, b), (k, c) = (unit.word(name, OFFSET_BITS) for name in "ijk")
    (descriptor, d), (descriptor2, d2) = unit.word("descriptor"), unit.word("descriptor2")
    (i_high, strays_i), (j_high, strays_j) = (unit.count(f"{n}_high", INDEX_HIGH) for n in "ij")
    unused |= {"i": i, "j": j, "k": k, "i_high": i_high, "j_high": j_high}
    unused |= {"descriptor": descriptor, "descriptor2": descriptor2}
    operands = Operands(**unused)
    names = ("width8", "width16", "check", "check2", "i_unsigned", "i_to_k", "wr_mem", "wr_mem2")
    flags = {name: unit.flag(name) for name in names}
    holds = {name: term for name, (_, term) in flags.items()}
    found = compute_address(unit.circuit, SMALL, Fields({n: [f] for n, (f, _) in flags.items()}), operands)
    width = len(found.byte)
    # Program rules: one width at most, one store at most, and K from one source.
    unit.facts += [z3.Not(z3.And(holds["width8"], holds["width16"]))]
    unit.facts += [z3.Not(z3.And(holds["wr_mem"], holds["wr_mem2"])), z3.Or(z3.Not(holds["i_to_k"]), c == 0)]

    def named(bus: str, bits: int) -> list[Channel]:
        by_name = {channel.name: channel for channel in unit.circuit.channels}
        return [by_name[f"{bus}.{bit}"] for bit in range(bits)]

    def base(term: Any) -> Any:
        return z3.Concat(z3.Extract(width - 5, 0, term), z3.BitVecVal(0, 4))

    def mixed(count: Any) -> Any:
        return z3.And(count != 0, count != INDEX_HIGH)

    def beyond(offset: Any, last: Any, term: Any) -> Any:
        size = z3.ZeroExt(OFFSET_BITS - 18, z3.Extract(31, 14, term))
        return z3.UGE(offset | last, size)

    offset: Any = a + b
    second: Any = z3.If(holds["i_to_k"], a, c)
    byte, other = (base(t) + z3.Extract(width - 1, 0, o) for t, o in ((d, offset), (d2, second)))
    zero, one, three = (z3.BitVecVal(n, OFFSET_BITS) for n in (0, 1, 3))
    last = z3.If(holds["width8"], zero, z3.If(holds["width16"], one, three))
    negative = z3.And(holds["i_unsigned"], strays_i == INDEX_HIGH)
    out = z3.Or(mixed(strays_i), mixed(strays_j), negative, beyond(offset, last, d))
    out2 = z3.Or(z3.And(holds["i_to_k"], mixed(strays_i)), beyond(second, 3, d2))
    faults = z3.And(holds["check"], out), z3.And(holds["check"], z3.Not(out), offset & last != 0)
    faults2 = z3.And(holds["check2"], out2), z3.And(holds["check2"], z3.Not(out2), second & 3 != 0)
    none = z3.Not(z3.Or(*faults))
    unit.prove(
        (named("offset", OFFSET_BITS), offset),
        (named("offset2", OFFSET_BITS), second),
        (found.byte, byte),
        (found.second, other),
        (found.stored, z3.If(holds["wr_mem"], byte, z3.If(holds["wr_mem2"], other, z3.BitVecVal(0, width)))),
        (found.out_of_bounds, z3.Or(faults[0], z3.And(none, faults2[0]))),
        (found.misaligned, z3.Or(faults[1], z3.And(none, faults2[1]))),
    )
