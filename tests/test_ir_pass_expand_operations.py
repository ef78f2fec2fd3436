"""Expansions compute what the opcode table says: corners of operands against corners, and random numbers."""

import itertools
import random
from typing import Any

import pytest

from operations import check, corners, operation, pairs, results
from qgpu.ir import I8, I16, I32, I64, Instruction, IntType, verify
from qgpu.ir.core.builder import constant
from qgpu.ir.passes import ExpandOperations, PromoteNarrow, Simplify
from qgpu.ir.passes.emitter import Emitter
from qgpu.ir.passes.expand_operations import EXPANSIONS, WORD_OPERATIONS
from qgpu.ir.passes.expand_operations.constant_division import multiplier
from qgpu.ir.passes.expand_operations.division import EXACT_UP_TO, reciprocal

EXPAND = [ExpandOperations()]
NARROW = [PromoteNarrow(), ExpandOperations()]
DIVISIONS = ("udiv", "urem", "sdiv", "srem")
AMOUNTS = (0, 1, 5, 16, 31, 32, 33, 63, 64, 65, 200, 255, 256, 259)


def mixed(width: int, count: int, seed: int = 1) -> list[int]:
    """Random numbers of all lengths."""
    chance = random.Random(seed)
    return [chance.getrandbits(chance.randint(1, width)) for _ in range(count)]


@pytest.mark.parametrize("op", DIVISIONS)
def test_division_of_words_is_exact_at_all_pairs_of_corners(op: str) -> None:
    columns = pairs(32)
    check(EXPAND, op, [I32, I32], I32, [[*c, *mixed(32, 400, n)] for n, c in enumerate(columns)])


@pytest.mark.parametrize("op", DIVISIONS)
def test_division_of_64_bits_is_exact(op: str) -> None:
    numbers = [number for number in corners(64) if number % 5 != 4]
    chance = random.Random(op)
    columns = [chance.choices(numbers, k=500) + mixed(64, 200, n) for n in range(2)]
    columns = [[*columns[0], *numbers, *numbers], [*columns[1], *numbers, *[0] * len(numbers)]]
    check(EXPAND, op, [I64, I64], I64, columns)


@pytest.mark.parametrize("op", DIVISIONS)
@pytest.mark.parametrize("type_", [I8, I16], ids=str)
def test_division_of_narrow_numbers_is_exact(op: str, type_: IntType) -> None:
    columns = pairs(type_.width)
    check(NARROW, op, [type_, type_], type_, [column[:: 1 if type_ is I8 else 7] for column in columns])


DIVISORS = (
    0,
    1,
    2,
    3,
    5,
    6,
    7,
    9,
    10,
    12,
    14,
    25,
    28,
    60,
    100,
    125,
    641,
    1000,
    3600,
    65535,
    65536,
    65537,
    10**6,
)


@pytest.mark.parametrize("op", DIVISIONS)
@pytest.mark.parametrize("width", [32, 64])
def test_division_by_constants_is_exact(op: str, width: int) -> None:
    type_ = {32: I32, 64: I64}[width]
    large = (1 << width - 1, (1 << width - 1) - 1, (1 << width - 1) + 1, (1 << width) - 1, (1 << width) - 10)
    for divisor in (*DIVISORS, *large, -7 & type_.mask, -(1 << 20) & type_.mask, 0x5A5A5A5A):
        near = {divisor * k + e & type_.mask for k in (1, 2, 3, 1000) for e in (-1, 0, 1)}
        numbers = [*corners(width)[::3], *near, *mixed(width, 20, divisor)]
        function = check(EXPAND, op, [type_, type_], type_, [numbers], {1: divisor})
        assert len(function.blocks) == 1, "a division by a constant needs no loop"


def test_a_dividend_of_few_bits_needs_a_product_alone() -> None:
    function = operation("udiv", [I16, I16], I16, {1: 10})
    for step in (*NARROW, Simplify()):
        step.run(function)
    verify(function)
    ops = [instruction.op for instruction in function.instructions]
    assert ops.count("mul") == 2 and ops.count("lshr") <= 2


@pytest.mark.parametrize("bits", [4, 8, 11])
def test_the_multiplier_is_the_least_that_divides_all_numbers(bits: int) -> None:
    for divisor in range(2, 1 << bits):
        factor, power = multiplier(divisor, bits)
        numbers = range(1 << bits) if bits < 8 else (*range(0, 1 << bits, divisor), (1 << bits) - 1)
        for number in numbers:
            for n in (number, max(number - 1, 0)):
                assert n * factor >> power == n // divisor


def divisors() -> list[int]:
    """Divisors of all lengths, with the most near powers of two and entries of the table of reciprocals."""
    near = {(top << shift) + e for top in range(256, 512, 3) for shift in range(24) for e in (-1, 0, 1)}
    return sorted({*range(1, 2000), *corners(32), *near, *mixed(32, 20_000)} - {0})


@pytest.mark.parametrize("largest", [*EXACT_UP_TO, I32.mask])
def test_the_reciprocal_is_as_near_as_the_division_needs(largest: int) -> None:
    """Never above 2^32 / d; below it by at most 2^32 / n for the largest dividend n."""
    function = operation("not", [I32], I32)
    source = next(i for i in function.instructions if i.op == "not")
    emit, divisor = Emitter(source), source.operands[0]
    result = reciprocal(emit, divisor, emit.sub(constant(I32, 0), divisor), largest)
    source.replace_all_uses_with(result)
    types, numbers = [I32], divisors()
    for d, near in zip(numbers, results(function, [numbers], types, I32), strict=True):
        assert near * d <= 1 << 32
        assert largest * ((1 << 32) - near * d) <= d << 32, d


@pytest.mark.parametrize("op", ["mulhi_u", "mulhi_s"])
@pytest.mark.parametrize("type_", [I16, I32, I64], ids=str)
def test_high_products(op: str, type_: IntType) -> None:
    columns = [
        [*c[:: 1 if type_ is I32 else 3], *mixed(type_.width, 200, n)]
        for n, c in enumerate(pairs(type_.width))
    ]
    check(NARROW, op, [type_, type_], type_, columns)
    check(NARROW, op, [type_, type_], type_, [corners(type_.width)], {1: 0xCCCCCCCD & type_.mask})


@pytest.mark.parametrize("op", ["clz", "brev", "popc"])
@pytest.mark.parametrize("type_", [I8, I16, I32, I64], ids=str)
def test_counts_and_reversal(op: str, type_: IntType) -> None:
    check(NARROW, op, [type_], type_, [[*corners(type_.width), *mixed(type_.width, 200)]])


@pytest.mark.parametrize("op", ["bfe_u", "bfe_s"])
@pytest.mark.parametrize("type_", [I16, I32, I64], ids=str)
def test_extracted_fields(op: str, type_: IntType) -> None:
    numbers = corners(type_.width)[::9]
    rows = list(itertools.product(numbers, AMOUNTS, AMOUNTS))
    check(NARROW, op, [type_, I32, I32], type_, [list(column) for column in zip(*rows, strict=True)])
    for position, length in itertools.product((0, 3, 31, 60, 256), (0, 8, 32, 40)):
        check(NARROW, op, [type_, I32, I32], type_, [numbers], {1: position, 2: length})


@pytest.mark.parametrize("type_", [I16, I32, I64], ids=str)
def test_inserted_fields(type_: IntType) -> None:
    numbers = corners(type_.width)
    rows = list(itertools.product(numbers[::40], numbers[3::40], AMOUNTS, AMOUNTS))
    types = [type_, type_, I32, I32]
    check(NARROW, "bfi", types, type_, [list(column) for column in zip(*rows, strict=True)])
    for position, length in itertools.product((0, 3, 31, 60, 256), (0, 8, 32, 40)):
        fixed = {2: position, 3: length}
        check(NARROW, "bfi", types, type_, [numbers[::5], numbers[::-1][::5]], fixed)


MODES = ("bytes", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16")


@pytest.mark.parametrize("mode", MODES)
def test_permutations(mode: str) -> None:
    columns = [[random.Random(n).getrandbits(32) for n in range(k, 400 + k)] for k in (0, 1000, 2000)]
    check(EXPAND, "prmt", [I32] * 3, I32, columns, mode=mode)
    for control in (0, 1, 2, 3, 0x3210, 0x7654, 0x0123, 0x5410, 0xBA98, 0x8888, 0xF3B1, 0x4440):
        check(EXPAND, "prmt", [I32] * 3, I32, [columns[0][:40], columns[1][:40]], {2: control}, mode=mode)


def test_quotient_and_remainder_of_the_same_numbers_share_one_division() -> None:
    from qgpu.ir import parse_function
    from qgpu.ir.passes import CommonSubexpressions

    function = parse_function("""
    kernel @both(%p: ptr<global>, %a: i32, %b: i32) {
    entry:
      %q = sdiv %a, %b : i32
      %r = srem %a, %b : i32
      %s = add %q, %r : i32
      store i32 %p, %s
      ret
    }""")
    for step in (ExpandOperations(), CommonSubexpressions(), Simplify()):
        step.run(function)
    verify(function)
    assert sum(instruction.op == "rcp" for instruction in function.instructions) == 1


def test_operations_that_the_machine_has_stay() -> None:
    assert not ExpandOperations().run(operation("clz", [I32], I32))
    assert not ExpandOperations().run(operation("prmt", [I32] * 3, I32, mode="bytes"))
    assert ExpandOperations().run(operation("prmt", [I32] * 3, I32, mode="f4e"))
    assert ExpandOperations().run(operation("clz", [I64], I64))


@pytest.mark.parametrize("op", sorted(EXPANSIONS))
def test_nothing_that_is_to_be_expanded_is_left(op: str) -> None:
    for type_ in (I32, I64):
        if op == "prmt" and type_ is I64:
            continue
        extra = {"bfe_u": [I32, I32], "bfe_s": [I32, I32], "bfi": [type_, I32, I32], "prmt": [I32, I32]}
        types = [type_, *extra.get(op, [type_] if op.startswith(("mul", "s", "u")) else [])]
        mode: Any = {"mode": "bytes"} if op == "prmt" else {}
        function = operation(op, types, type_, **mode)
        ExpandOperations().run(function)
        verify(function)
        left: list[Instruction] = [i for i in function.instructions if i.op in EXPANSIONS]
        assert all(i.op in WORD_OPERATIONS and i.operands[0].type is I32 for i in left)
        assert not ExpandOperations().run(function)
