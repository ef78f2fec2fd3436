"""Every functional unit against integers: a token is a test case, its table the operands."""

from __future__ import annotations

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
from qgpu.backends.transformer.schedule import schedule
from qgpu.backends.transformer.units.arithmetic import add_columns, add_counts, multiply_add, population_count
from qgpu.backends.transformer.units.logic import (
    Relation,
    add_relation,
    bitwise,
    choose,
    compare_digits,
    decode_amount,
    flip_sign,
    merge_bytes,
    shift_left,
    shift_right,
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

    def run(self, output: str, width: int) -> list[int]:
        """The number on a bus in each case."""
        evaluator = Evaluator(self.circuit, schedule(self.circuit, SHAPE))
        results = []
        for token in range(self.cases):
            evaluator.step(token)
            results.append(evaluator.number_of(output, width))
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


def test_addition_of_three() -> None:
    bench = Bench(len(X))
    columns = [a.form() + b + c for a, b, c in zip(*three(bench), strict=True)]
    add_counts(bench.circuit, "add", columns, [3] * 32, bench.circuit.bus("r", 32))
    assert bench.run("r", 32) == [(a + b + c) & WORD for a, b, c in zip(X, Y, Z, strict=True)]


def test_multiplication_exhaustively_over_five_bits() -> None:
    cases = [(a, b, c) for a in range(32) for b in range(32) for c in (0, 1, 30, 31)]
    bench = Bench(len(cases))
    x, y, z = (bench.bus(name, [case[i] for case in cases], 5) for i, name in enumerate("xyz"))
    multiply_add(bench.circuit, x, y, z, bench.circuit.bus("r", 5), 1)
    assert bench.run("r", 5) == [(a * b + c) % 32 for a, b, c in cases]


def test_multiplication() -> None:
    bench = Bench(len(X))
    multiply_add(bench.circuit, *three(bench), bench.circuit.bus("r", 32), 1)
    assert bench.run("r", 32) == [(a * b + c) & WORD for a, b, c in zip(X, Y, Z, strict=True)]


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


@pytest.mark.parametrize("is_signed", [0, 1])
def test_shifts(is_signed: int) -> None:
    bench = Bench(len(AMOUNTS))
    circuit = bench.circuit
    x, y = bench.bus("x", SHIFTED, 32), bench.bus("y", AMOUNTS, 32)
    amount = decode_amount(circuit, y)
    shift_left(circuit, x, amount, circuit.bus("left", 32), 1)
    shift_right(circuit, x, amount, is_signed, circuit.bus("right", 32), 1)
    cases = list(zip(SHIFTED, AMOUNTS, strict=True))
    assert bench.run("left", 32) == [(a << n & WORD) if n < 32 else 0 for a, n in cases]
    values = [(signed(a) if is_signed else a, min(n, 32)) for a, n in cases]
    assert bench.run("right", 32) == [(a >> n) & WORD for a, n in values]


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


def test_a_unit_that_is_off_adds_nothing() -> None:
    bench = Bench(len(X))
    circuit, (x, y, z) = bench.circuit, three(bench)
    r = circuit.bus("r", 32)
    amount = decode_amount(circuit, y)
    multiply_add(circuit, x, y, z, r, 0)
    bitwise(circuit, (x, y, z), [1] * 8, r, 0)
    shift_left(circuit, x, amount, r, 0)
    shift_right(circuit, x, amount, 1, r, 0)
    choose(circuit, x, y, z[0], r, 0)
    merge_bytes(circuit, x, y, (z[0], z[1]), (1, 0), r, 0)
    population_count(circuit, x, r, 0)
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
