"""Intervals hold every number that an expression of the lane can be."""

import random

import pytest

from qgpu.ir import I32, Builder, Constant, Function, Instruction, Value, constant, to_signed
from qgpu.ir.analysis.intervals import EVERYTHING, Intervals
from qgpu.ir.core.folding import evaluate
from qgpu.ir.core.opcodes import ICMP_PREDICATES

LANES = 8
OPCODES = ("add", "sub", "and", "or", "xor", "lshr", "urem", "umin", "smin", "smax", "mul", "shl")


def expression(builder: Builder, chance: random.Random, depth: int) -> Value:
    """A random i32 of the lane's number and small constants, with selects on comparisons of its parts."""
    if depth == 0 or chance.random() < 0.1:
        return constant(I32, chance.choice([0, 1, 3, 7, 8, 31, -1, -8, chance.getrandbits(32)]))
    a = builder.sreg("laneid") if chance.random() < 0.3 else expression(builder, chance, depth - 1)
    b = expression(builder, chance, depth - 1)
    if chance.random() < 0.6:
        return builder.emit(chance.choice(OPCODES), a, b)
    bound = constant(I32, chance.choice([0, 1, 5, 7, 8, -1, -4]))
    pair = (a, bound) if chance.random() < 0.7 else (bound, a)
    condition = builder.icmp(chance.choice(ICMP_PREDICATES), *pair)
    if chance.random() < 0.1:
        return builder.cast(chance.choice(["zext", "sext"]), condition, I32)
    return builder.select(condition, *((a, b) if chance.random() < 0.5 else (b, a)))


def number(value: Value, lane: int) -> int:
    """The value in a lane."""
    if isinstance(value, Constant):
        return value.value
    assert isinstance(value, Instruction)
    if value.op == "sreg":
        return lane
    operands = [number(operand, lane) for operand in value.operands]
    result = evaluate(value, operands)
    assert result is not None
    return result


@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_no_lane_is_outside(seed: int) -> None:
    for chance in map(random.Random, range(seed, seed + 100)):
        value = expression(Builder(Function("f").add_block("entry")), chance, 3)
        interval = Intervals(LANES).of(value)
        numbers = [to_signed(number(value, lane), 32) for lane in range(LANES)]
        assert interval.low <= min(numbers) and max(numbers) <= interval.high


@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_decided_comparisons_are_the_same_in_every_lane(seed: int) -> None:
    for chance in map(random.Random, range(seed, seed + 100)):
        builder = Builder(Function("f").add_block("entry"))
        a, b = (expression(builder, chance, 2) for _ in range(2))
        comparison = builder.icmp(chance.choice(ICMP_PREDICATES), a, b)
        results = {number(comparison, lane) for lane in range(LANES)}
        assert len(results) == 1 or not Intervals(LANES).decides(comparison)


def test_what_shuffles_read_is_known_to_be_in_the_warp() -> None:
    builder = Builder(Function("f").add_block("entry"))
    lane, one = builder.sreg("laneid"), constant(I32, 1)
    up, down = builder.emit("sub", lane, one), builder.emit("add", lane, one)
    first = builder.select(builder.icmp("sge", up, constant(I32, 0)), up, lane)
    last = builder.select(builder.icmp("sle", down, constant(I32, 31)), down, lane)
    intervals = Intervals(32)
    assert intervals.of(first).within(0, 31) and intervals.of(last).within(0, 31)
    assert intervals.of(builder.emit("xor", lane, constant(I32, 16))).within(0, 31)
    assert not intervals.of(down).within(0, 31)
    assert intervals.of(builder.emit("mul", lane, lane)) == EVERYTHING
