"""Every functional unit against integers: a token is a test case, its table the operands."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from qgpu.backends.machine.description import ModelShape
from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Column,
    CounterHead,
    Form,
    Head,
    at_least,
    bit_of,
    conjunction,
    equals,
    exactly,
    number,
)
from qgpu.backends.transformer.evaluate import EvaluationError, Evaluator
from qgpu.backends.transformer.schedule import Schedule, schedule
from qgpu.backends.transformer.units.arithmetic import (
    add_columns,
    add_counts,
    look_ahead,
    population_count,
    product_digits,
    sum_digits,
)
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

WORD = 0xFFFFFFFF
CORNERS = (0, 1, 2, 3, 15, 16, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xAAAAAAAA, 0x55555555)
SHAPE = ModelShape()


def words(count: int, seed: int) -> list[int]:
    """Corner cases, then random words of random length."""
    rng = random.Random(seed)
    return [*CORNERS, *(rng.getrandbits(rng.randrange(1, 33)) for _ in range(count - len(CORNERS)))]


def shuffled(values: list[int], seed: int) -> list[int]:
    """The values in another order, so that pairs of operands vary."""
    return random.Random(seed).sample(values, len(values))


class Bench:
    """A circuit whose tokens are cases: `inputs` gives each case's operands as buses."""

    def __init__(self, cases: int) -> None:
        self.cases = cases
        self.circuit = Circuit(cases)
        case = self.circuit.token_channel("case", np.arange(cases))
        self.circuit.readout.logits[0] = case.form()

    def bus(self, name: str, values: Sequence[int], width: int) -> list[Channel]:
        """A bus that holds one value a case."""
        table = np.array(values, dtype=np.int64)
        return [self.circuit.token_channel(f"{name}.{i}", table >> i & 1) for i in range(width)]

    @functools.cached_property
    def plan(self) -> Schedule:
        """The layers of the circuit, which is then complete."""
        return schedule(self.circuit, SHAPE)

    def run(self, output: str, width: int) -> list[int]:
        """The number on a bus in each case."""
        (results,) = self.run_several((output,), width)
        return results

    def run_several(self, outputs: Sequence[str], width: int) -> list[list[int]]:
        """The numbers on buses in each case."""
        evaluator = Evaluator(self.circuit, self.plan)
        results: list[list[int]] = [[] for _ in outputs]
        for token in range(self.cases):
            evaluator.step(token)
            for output, numbers in zip(outputs, results, strict=True):
                numbers.append(evaluator.number_of(output, width))
        return results


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


X, Y, Z = words(200, 1), shuffled(words(200, 2), 3), shuffled(words(200, 4), 5)


def three(bench: Bench) -> tuple[list[Channel], list[Channel], list[Channel]]:
    return bench.bus("x", X, 32), bench.bus("y", Y, 32), bench.bus("z", Z, 32)


@pytest.mark.parametrize("width", [1, 3, 4, 9, 24, 32])
def test_addition(width: int) -> None:
    bench = Bench(len(X))
    x, y = bench.bus("x", X, width), bench.bus("y", Y, width)
    add_columns(
        bench.circuit, "add", [a.form() + b for a, b in zip(x, y, strict=True)], bench.circuit.bus("r", width)
    )
    mask = (1 << width) - 1
    assert bench.run("r", width) == [(a + b) & mask for a, b in zip(X, Y, strict=True)]


@pytest.mark.parametrize("highest", [2, 3, 4, 5])
def test_addition_of_several_in_two_layers(highest: int) -> None:
    bench = Bench(len(X))
    numbers = [shuffled(words(200, seed), seed) for seed in range(highest)]
    buses = [bench.bus(f"n{k}", values, 32) for k, values in enumerate(numbers)]
    columns = [sum(bits[1:], bits[0].form()) for bits in zip(*buses, strict=True)]
    add_counts(bench.circuit, "add", columns, [highest] * 32, bench.circuit.bus("r", 32))
    assert bench.plan.layers <= 3  # one of them is the full attention
    assert bench.run("r", 32) == [sum(row) & WORD for row in zip(*numbers, strict=True)]


def test_columns_too_high_are_an_error() -> None:
    bench = Bench(1)
    with pytest.raises(ValueError, match="add: a column of 6"):
        add_counts(bench.circuit, "add", [0], [6], bench.circuit.bus("r", 1))


def test_one_of_two_sums() -> None:
    bench = Bench(len(X))
    x, y, z = three(bench)
    chosen = z[0]
    first = [a.form() + b for a, b in zip(x, y, strict=True)]
    second = [a.form() * 2 for a in y]
    digits = sum_digits(bench.circuit, "add", [(first, chosen), (second, 1 - chosen.form())])
    look_ahead(bench.circuit, digits, bench.circuit.bus("r", 32))
    cases = zip(X, Y, Z, strict=True)
    assert bench.run("r", 32) == [(a + b if c & 1 else 2 * b) & WORD for a, b, c in cases]


@pytest.mark.parametrize("is_signed", [0, 1])
def test_multiplication_exhaustively_over_four_bits(is_signed: int) -> None:
    cases = [(a, b, c) for a in range(16) for b in range(16) for c in (0, 1, 14, 15)]
    bench = Bench(len(cases))
    circuit = bench.circuit
    x, y, z = (bench.bus(name, [case[i] for case in cases], 4) for i, name in enumerate("xyz"))
    digits = product_digits(circuit, x, y, z, 1, is_signed)
    look_ahead(circuit, digits, circuit.bus("low", 4))
    assert bench.run("low", 4) == [(a * b + c) % 16 for a, b, c in cases]


@pytest.mark.parametrize("is_signed", [0, 1])
def test_high_products_exhaustively_over_four_bits(is_signed: int) -> None:
    cases = [(a, b, c) for a in range(16) for b in range(16) for c in (0, 1, 14, 15)]
    bench = Bench(len(cases))
    circuit = bench.circuit
    x, y, z = (bench.bus(name, [case[i] for case in cases], 4) for i, name in enumerate("xyz"))
    digits = product_digits(circuit, x, y, z, 0, is_signed)
    look_ahead(circuit, digits, circuit.bus("high", 4), first=len(digits) // 2)

    def expected(a: int, b: int, c: int) -> int:
        a, b = ((v - 16 if is_signed and v > 7 else v) for v in (a, b))
        return (a * b >> 4) + c & 15

    assert bench.run("high", 4) == [expected(*case) for case in cases]


@pytest.mark.parametrize("is_signed", [0, 1])
def test_multiplication_in_four_layers(is_signed: int) -> None:
    bench = Bench(len(X))
    circuit, (x, y, z) = bench.circuit, three(bench)
    low = bench.bus("is_low", [k & 1 for k in range(len(X))], 1)[0]
    digits = product_digits(circuit, x, y, z, low, is_signed)
    look_ahead(circuit, digits, circuit.bus("low", 32), low)
    look_ahead(circuit, digits, circuit.bus("high", 32), 1 - low.form(), len(digits) // 2)
    assert bench.plan.layers <= 5  # one of them is the full attention
    cases = list(zip(X, Y, Z, strict=True))
    view = signed if is_signed else (lambda value: value)
    low_halves, high_halves = bench.run_several(("low", "high"), 32)
    assert low_halves == [(a * b + c & WORD) * (k & 1) for k, (a, b, c) in enumerate(cases)]
    products = [(view(a) * view(b) >> 32) + c & WORD for a, b, c in cases]
    assert high_halves == [high * (1 - (k & 1)) for k, high in enumerate(products)]


@pytest.mark.parametrize("lut", [0x80, 0xFE, 0x96, 0xE8, 0x1B, 0x00, 0xFF])
def test_bitwise_functions(lut: int) -> None:
    bench = Bench(len(X))
    table: list[int] = [lut >> i & 1 for i in range(8)]
    bitwise(bench.circuit, three(bench), table, bench.circuit.bus("r", 32), 1)

    def expected(x: int, y: int, z: int) -> int:
        index = [4 * (x >> i & 1) + 2 * (y >> i & 1) + (z >> i & 1) for i in range(32)]
        return sum((lut >> k & 1) << i for i, k in enumerate(index))

    assert bench.run("r", 32) == [expected(*case) for case in zip(X, Y, Z, strict=True)]


AMOUNTS = [*range(40), 63, 64, 65, 1 << 5, 1 << 31, WORD] * 4
SHIFTED = words(len(AMOUNTS), 7)


@pytest.mark.parametrize("kind", ["shl", "shr", "signed shr", "shf"])
def test_shifts(kind: str) -> None:
    bench = Bench(len(AMOUNTS))
    circuit = bench.circuit
    x, y, z = (
        bench.bus(n, values, 32) for n, values in (("x", SHIFTED), ("y", AMOUNTS), ("z", AMOUNTS[::-1]))
    )
    shifter, r = Shifter(circuit, y, int(kind == "shl")), circuit.bus("r", 32)
    shift_left(shifter, x, int(kind == "shl"))
    shift_right(shifter, x, int(kind == "signed shr"), r, int(kind.endswith("shr")))
    shift_pair(shifter, x, z, r, int(kind == "shf"))
    shifter.finish(r)
    expected: dict[str, Callable[[int, int, int], int]] = {
        "shl": lambda a, n, above: a << n if n < 32 else 0,
        "shr": lambda a, n, above: a >> min(n, 32),
        "signed shr": lambda a, n, above: signed(a) >> min(n, 32),
        "shf": lambda a, n, above: (above << 32 | a) >> min(n, 32),
    }
    cases = zip(SHIFTED, AMOUNTS, AMOUNTS[::-1], strict=True)
    assert bench.run("r", 32) == [expected[kind](*case) & WORD for case in cases]


RELATIONS: dict[str, tuple[tuple[int, int, int], Callable[[int, int], bool]]] = {
    "less": ((1, 0, 0), lambda a, b: a < b),
    "equal": ((0, 1, 0), lambda a, b: a == b),
    "at least": ((0, 1, 1), lambda a, b: a >= b),
    "not equal": ((1, 0, 1), lambda a, b: a != b),
}


@pytest.mark.parametrize("is_signed", [0, 1])
@pytest.mark.parametrize("name", RELATIONS)
def test_comparisons(name: str, is_signed: int) -> None:
    flags, holds = RELATIONS[name]
    near = [*X, *((value + delta) & WORD for value in X[:60] for delta in (0, 1, -1))]
    other = [*Y, *(value for value in X[:60] for _ in range(3))]
    bench = Bench(len(near))
    circuit = bench.circuit
    x = flip_sign(circuit, "x", bench.bus("a", near, 32), is_signed)
    y = flip_sign(circuit, "y", bench.bus("b", other, 32), is_signed)
    add_relation(circuit, compare_digits(circuit, "c", x, y), Relation(*flags), circuit.bus("r", 1)[0])
    view = signed if is_signed else (lambda value: value)
    assert bench.run("r", 1) == [int(holds(view(a), view(b))) for a, b in zip(near, other, strict=True)]


def test_choice_and_population_count() -> None:
    bench = Bench(len(X))
    x, y, z = three(bench)
    choose(bench.circuit, x, y, z[0], bench.circuit.bus("r", 32), 1)
    population_count(bench.circuit, x, bench.circuit.bus("count", 6), 1)
    assert bench.run("r", 32) == [a if c & 1 else b for a, b, c in zip(X, Y, Z, strict=True)]
    assert bench.run("count", 6) == [a.bit_count() for a in X]


@pytest.mark.parametrize("size", [1, 2])
def test_merging(size: int) -> None:
    bench = Bench(len(X))
    x, y, z = three(bench)
    flags = (int(size == 1), int(size == 2))
    merge_bytes(bench.circuit, x, y, (z[0], z[1]), flags, bench.circuit.bus("r", 32), 1)

    def expected(word: int, part: int, address: int) -> int:
        data = bytearray(word.to_bytes(4, "little"))
        place = address & 3 & -size
        data[place : place + size] = part.to_bytes(4, "little")[:size]
        return int.from_bytes(data, "little")

    assert bench.run("r", 32) == [expected(*case) for case in zip(X, Y, Z, strict=True)]


def test_permutation() -> None:
    bench = Bench(len(X))
    x, y, z = three(bench)
    permute_bytes(bench.circuit, x, y, z, bench.circuit.bus("r", 32), 1)

    def expected(low: int, high: int, selector: int) -> int:
        data, taken = (high << 32 | low).to_bytes(8, "little"), bytearray()
        for place in range(4):
            byte = data[selector >> 4 * place & 7]
            taken.append(byte if not selector >> 4 * place & 8 else 255 if byte > 127 else 0)
        return int.from_bytes(taken, "little")

    assert bench.run("r", 32) == [expected(*case) for case in zip(X, Y, Z, strict=True)]


@pytest.mark.parametrize("up", [False, True])
def test_steps(up: bool) -> None:
    near = [*X, *((value + delta) & WORD for value in CORNERS for delta in (0, 1, -1))]
    bench = Bench(len(near))
    z, condition = bench.bus("z", near, 32), bench.bus("c", [v // 2 & 1 for v in near], 1)[0]
    step(bench.circuit, z, condition, up, bench.circuit.bus("r", 32), 1)
    sign = 1 if up else -1
    assert bench.run("r", 32) == [(value + sign * (value // 2 & 1)) & WORD for value in near]


LENGTHS = [0, *(1 << k for k in range(32)), *(WORD >> k for k in range(32)), *X]


def test_leading_zeros_and_reversal() -> None:
    bench = Bench(len(LENGTHS))
    circuit, x = bench.circuit, bench.bus("x", LENGTHS, 32)
    count_leading_zeros(circuit, leading_one(circuit, x), circuit.bus("zeros", 6), 1)
    reverse(circuit, x, circuit.bus("reversed", 32), 1)
    assert bench.run("zeros", 6) == [32 - value.bit_length() for value in LENGTHS]
    assert bench.run("reversed", 32) == [int(f"{value:032b}"[::-1], 2) for value in LENGTHS]


def test_reciprocals() -> None:
    cases = [*LENGTHS, *range(256, 600)]
    bench = Bench(len(cases))
    circuit, x = bench.circuit, bench.bus("x", cases, 32)
    reciprocal(circuit, x, leading_one(circuit, x), circuit.bus("r", 32), 1)
    for value, got in zip(cases, bench.run("r", 32), strict=True):
        if value == 0:
            assert got == WORD
            continue
        exact = 2**32 / value
        assert exact * (1 - 1 / 128) - 1 < got <= exact


def test_a_unit_that_is_off_adds_nothing() -> None:
    bench = Bench(len(X))
    circuit, (x, y, z) = bench.circuit, three(bench)
    r = circuit.bus("r", 32)
    digits, shifter, leading = (
        product_digits(circuit, x, y, z, 0, 0),
        Shifter(circuit, y, 0),
        leading_one(circuit, x),
    )
    look_ahead(circuit, digits, r, 0)
    look_ahead(circuit, digits, r, 0, len(digits) // 2)
    bitwise(circuit, (x, y, z), [1] * 8, r, 0)
    shift_left(shifter, x, 0)
    shift_right(shifter, x, 1, r, 0)
    shift_pair(shifter, x, z, r, 0)
    shifter.finish(r)
    choose(circuit, x, y, z[0], r, 0)
    merge_bytes(circuit, x, y, (z[0], z[1]), (1, 0), r, 0)
    permute_bytes(circuit, x, y, z, r, 0)
    step(circuit, z, x[0], True, r, 0)
    step(circuit, z, x[0], False, r, 0)
    population_count(circuit, x, r, 0)
    count_leading_zeros(circuit, leading, r, 0)
    reverse(circuit, x, r, 0)
    reciprocal(circuit, x, leading, r, 0)
    assert bench.run("r", 32) == [0] * len(X)


@pytest.mark.parametrize("enable", [None, 0, 1])
def test_functions_of_an_integer(enable: int | None) -> None:
    bench = Bench(20)
    circuit = bench.circuit
    value = circuit.token_channel("v", np.arange(20))
    functions = {"bit": bit_of(2), "step": at_least(7), "bump": exactly(0), "square": lambda v: v * v}
    outputs = [(circuit.channel(f"{name}.0", 400), f) for name, f in functions.items()]
    circuit.add_function(value, 19, outputs, enable)
    for name, function in functions.items():
        expected = [0 if enable == 0 else function(v) for v in range(20)]
        assert bench.run(name, 1) == expected


def test_forms() -> None:
    a, b = Channel("a"), Channel("b")
    form = 3 - (a.form() * 2 + b - 1)
    assert (form.terms, form.constant) == ({a: -2, b: -1}, 4)
    assert (a.form() - a).terms == {}
    assert number([a, b]).terms == {a: 1, b: 2}
    assert conjunction(a, ~b.form()).constant == 0
    assert [literal.constant for literal in equals([a, b], 2)] == [1, 0]


def memory_bench(tokens: Sequence[tuple[int, int, int]], tap: int = 0) -> tuple[Bench, list[Channel]]:
    """A memory of 4 rows of 3 bits; a token is (write, row, value), its table that of the case."""
    bench = Bench(len(tokens))
    circuit = bench.circuit
    write = bench.bus("write", [t[0] for t in tokens], 1)[0]
    row, value = bench.bus("row", [t[1] for t in tokens], 2), bench.bus("value", [t[2] for t in tokens], 3)
    outputs = circuit.bus("out", 3, kind="memory")
    rows = [conjunction(*equals(row, i)) for i in range(4)]
    columns = [Column(bit.form(), [(output, 1)], tap=tap) for bit, output in zip(value, outputs, strict=True)]
    circuit.heads.append(Head("memory", "", rows, rows, write.form(), columns, key_tap=tap))
    return bench, outputs


def test_memory_reads_its_own_write_and_keeps_the_rest() -> None:
    rng = random.Random(11)
    tokens = [(rng.randrange(2), rng.randrange(4), rng.randrange(8)) for _ in range(200)]
    bench, _ = memory_bench(tokens)
    rows, expected = [0] * 4, []
    for write, row, value in tokens:
        rows[row] = value if write else rows[row]
        expected.append(rows[row])
    assert bench.run("out", 3) == expected


def test_taps_show_the_token_before() -> None:
    rng = random.Random(12)
    tokens = [(rng.randrange(2), rng.randrange(4), rng.randrange(8)) for _ in range(200)]
    bench, _ = memory_bench(tokens, tap=1)
    rows, expected = [0] * 4, []
    for (_, row_before, value_before), (write, row, _) in zip([(0, 0, 0), *tokens], tokens, strict=False):
        rows[row_before] = value_before if write else rows[row_before]
        expected.append(rows[row])
    assert bench.run("out", 3)[1:] == expected[1:]


def test_two_keys_at_once_are_an_error() -> None:
    bench = Bench(1)
    circuit = bench.circuit
    output = circuit.channel("out.0", kind="memory")
    always = Form({}, 1)
    column = Column(always, [(output, 1)])
    circuit.heads.append(Head("both", "", [always, always], [always, Form({}, 0)], always, [column]))
    with pytest.raises(EvaluationError, match="both: 2 rows written at once"):
        bench.run("out", 1)


def test_counter_counts_and_jumps() -> None:
    rng = random.Random(13)
    kinds = [rng.choice(("step", "set", "none")) for _ in range(200)]
    numbers = [rng.randrange(32) if kind == "set" else 0 for kind in kinds]
    bench = Bench(len(kinds))
    circuit = bench.circuit
    step, jump = (bench.bus(name, [int(kind == name) for kind in kinds], 1)[0] for name in ("step", "set"))
    value = circuit.token_channel("number", np.array(numbers))
    count = circuit.channel("count.0", 300, kind="counter")
    circuit.heads.append(CounterHead("counter", "", step.form(), jump.form(), value.form(), count))
    expected, current = [], 0
    for kind, target in zip(kinds, numbers, strict=True):
        current = target if kind == "set" else current + (kind == "step")
        expected.append(current)
    assert bench.run("count", 1) == expected
