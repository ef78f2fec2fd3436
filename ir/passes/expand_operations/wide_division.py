"""Division of 64 bits: words where both numbers are words, else bit by bit."""

from __future__ import annotations

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64
from qgpu.ir.core.values import Value
from qgpu.ir.passes.blocks import split_before
from qgpu.ir.passes.emitter import Emitter
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import is_op, is_zero


def divide_wide(emit: Emitter, dividend: Value, divisor: Value) -> tuple[Value, Value]:
    """Unsigned quotient and remainder of numbers of 64 bits; the divisor is not 0.

    Numbers that happen to be words take the branch of word division; the emitter goes on where the two meet.
    """
    if (possible_ones(dividend) | possible_ones(divisor)) >> 32 == 0:
        return _as_words(emit, dividend, divisor)
    if is_told_apart(emit.instruction):
        return _in_a_loop(emit, dividend, divisor)
    source = emit.builder.block
    wide = emit.icmp("ne", emit.op("or", emit.high(dividend), emit.high(divisor)), 0)
    join = split_before(emit.instruction)
    function = join.parent
    assert function is not None
    narrow_block = function.add_block(f"{source.name}.words", before=join)
    loop = function.add_block(f"{source.name}.divide", before=join)
    start = function.add_block(f"{source.name}.wide", before=loop)
    source.terminator.erase()
    loc = emit.builder.loc
    Builder(source, loc).condbr(wide, start, narrow_block)

    jump = Builder(narrow_block, loc).br(join)
    narrow = _as_words(_at(emit, jump), dividend, divisor)
    bitwise = _bit_by_bit(emit, start, loop, join, dividend, divisor)
    ways = zip(narrow, (constant(I64, 0), dividend), bitwise, strict=True)
    blocks = (narrow_block, start, loop)
    quotient, rest = (_joined(emit, join, list(zip(values, blocks, strict=True))) for values in ways)
    emit.builder.before(emit.instruction)
    return quotient, rest


def is_told_apart(division: Instruction) -> bool:
    """Whether the branch to a division's block tests if both operands are words, as compilers write it."""
    block = division.block
    function = block.parent
    assert function is not None
    sources = function.predecessors()[block]
    branch = sources[0].terminator if len(sources) == 1 else division
    test = is_op(branch.operands[0], "icmp") if branch.op == "condbr" else None
    if test is None or not is_zero(test.operands[1]):
        return False
    masked = is_op(test.operands[0], "and") or is_op(test.operands[0], "high")
    joined = is_op(masked.operands[0], "or") if masked else None
    return joined is not None and set(joined.operands) == set(division.operands)


def _in_a_loop(emit: Emitter, dividend: Value, divisor: Value) -> tuple[Value, Value]:
    """Bit by bit, whatever the numbers are."""
    source = emit.builder.block
    join = split_before(emit.instruction)
    function = join.parent
    assert function is not None
    loop = function.add_block(f"{source.name}.divide", before=join)
    source.terminator.erase()
    longer = _bit_by_bit(emit, source, loop, join, dividend, divisor)
    pairs = zip((constant(I64, 0), dividend), longer, strict=True)
    quotient, rest = (_joined(emit, join, [(none, source), (long, loop)]) for none, long in pairs)
    emit.builder.before(emit.instruction)
    return quotient, rest


def _joined(emit: Emitter, join: BasicBlock, incoming: list[tuple[Value, BasicBlock]]) -> Instruction:
    """A phi at the start of the block where the ways of division meet."""
    phi = join.insert(0, Instruction("phi", I64, (), {"blocks": ()}, emit.builder.loc))
    for value, source in incoming:
        phi.add_incoming(value, source)
    return phi


def _at(emit: Emitter, instruction: Instruction) -> Emitter:
    """An emitter before another instruction, with the same place in the source."""
    other = Emitter(instruction)
    other.builder.loc = emit.builder.loc
    return other


def _as_words(emit: Emitter, dividend: Value, divisor: Value) -> tuple[Value, Value]:
    words = emit.low(dividend), emit.low(divisor)
    return emit.wide(emit.op("udiv", *words)), emit.wide(emit.op("urem", *words))


def _bit_by_bit(
    emit: Emitter,
    start: BasicBlock,
    loop: BasicBlock,
    join: BasicBlock,
    dividend: Value,
    divisor: Value,
) -> tuple[Value, Value]:
    """Fills `start` and `loop`, which subtracts the divisor at every place that the quotient has.

    The quotient and remainder at the end of the loop; `start` goes on without it where the quotient is 0.
    """
    builder = Builder(start, emit.builder.loc)
    zeros = [builder.emit("trunc", builder.emit("clz", x), type=I32) for x in (divisor, dividend)]
    place = builder.emit("sub", *zeros)
    shifted = builder.emit("shl", divisor, builder.emit("zext", place, type=I64))
    builder.condbr(builder.icmp("sge", place, constant(I32, 0)), loop, join)

    builder.at_end(loop)
    first: tuple[Value, ...] = (place, shifted, dividend, constant(I64, 0))
    left, subtrahend, rest, quotient = (builder.phi(value.type) for value in first)
    fits = builder.icmp("uge", rest, subtrahend)
    difference = builder.select(fits, builder.emit("sub", rest, subtrahend), rest)
    doubled = builder.emit("shl", quotient, constant(I64, 1))
    digits = builder.emit("or", doubled, builder.emit("zext", fits, type=I64))
    halved = builder.emit("lshr", subtrahend, constant(I64, 1))
    following = builder.emit("add", left, constant(I32, -1))
    builder.condbr(builder.icmp("sge", following, constant(I32, 0)), loop, join)
    phis = (left, subtrahend, rest, quotient)
    for phi, initial, later in zip(phis, first, (following, halved, difference, digits), strict=True):
        phi.add_incoming(initial, start)
        phi.add_incoming(later, loop)
    return digits, difference
