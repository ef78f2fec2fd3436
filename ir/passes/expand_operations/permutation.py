"""Byte permutation: prmt by shifts and masks."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.ir.core.builder import constant
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.emitter import Emitter
from qgpu.ir.passes.simplify.known_bits import possible_ones

MODES: dict[str, tuple[int, int, int, int]] = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""The selectors that a mode means for the control value 0 to 3 (PTX ISA, prmt)."""


@dataclass(frozen=True)
class Move:
    """Bytes of a word that move alike: shifted left by `shift` bits, or the sign of byte `sign`."""

    word: int
    shift: int
    sign: int | None = None


def expand_prmt(emit: Emitter, prmt: Instruction) -> Value:
    """prmt in every mode; constant selectors cost a shift and a bitwise function for each way bytes move."""
    a, b, control = prmt.operands
    mode = prmt.attrs["mode"]
    if mode != "bytes":
        control = _selectors(emit, MODES[mode], control)
    if isinstance(control, Constant):
        return _by_moves(emit, (a, b), control.value)
    return _by_selectors(emit, (a, b), control)


def _selectors(emit: Emitter, table: tuple[int, int, int, int], control: Value) -> Value:
    """The selectors for the two low bits of a control value, from a table in two words."""
    low, high = (table[i] | table[i + 1] << 16 for i in (0, 2))
    half = emit.shl(emit.op("and", control, 1), 4)
    if low == high:
        return emit.lshr(constant(I32, low), half)
    upper = emit.icmp("ne", emit.op("and", control, 2), 0)
    return emit.lshr(emit.select(upper, constant(I32, high), constant(I32, low)), half)


def moves_of(selectors: int) -> dict[Move, int]:
    """How bytes move for constant selectors, each with the mask of the places it fills."""
    moves: dict[Move, int] = {}
    for place in range(4):
        selector = selectors >> 4 * place & 15
        word, byte = divmod(selector & 7, 4)
        move = Move(word, 0, byte) if selector & 8 else Move(word, 8 * (place - byte))
        moves[move] = moves.get(move, 0) | 255 << 8 * place
    return moves


def _by_moves(emit: Emitter, words: tuple[Value, Value], selectors: int) -> Value:
    result: Value | None = None
    for move, mask in sorted(moves_of(selectors).items(), key=lambda item: abs(item[0].shift)):
        moved = _moved(emit, words[move.word], move)
        result = emit.op("and", moved, mask) if result is None else _merged(emit, result, moved, mask)
    assert result is not None
    return result


def _merged(emit: Emitter, result: Value, moved: Value, mask: int) -> Value:
    """The result with the bits of the mask, which are zero in it, from a word."""
    if isinstance(result, Constant) and result.value == 0:
        return emit.op("and", moved, mask)
    if possible_ones(moved) & ~mask == 0:
        return emit.op("or", result, moved)
    return emit.lop3(0xF0 | 0xCC & 0xAA, result, moved, mask)


def _moved(emit: Emitter, word: Value, move: Move) -> Value:
    if move.sign is not None:
        return emit.ashr(emit.shl(word, 24 - 8 * move.sign), 31)
    return emit.shl(word, move.shift) if move.shift >= 0 else emit.lshr(word, -move.shift)


def _by_selectors(emit: Emitter, words: tuple[Value, Value], control: Value) -> Value:
    """Each byte by itself: both words shifted down as the selector says, one of which leaves nothing."""
    result: Value = constant(I32, 0)
    known = possible_ones(control)
    for place in reversed(range(4)):
        result = emit.add(emit.shl(result, 8), _selected(emit, words, control, 4 * place, known))
    return result


def _selected(emit: Emitter, words: tuple[Value, Value], control: Value, position: int, known: int) -> Value:
    scaled = emit.lshr(control, position - 3) if position else emit.shl(control, 3)
    amount = emit.op("and", scaled, 56)
    low, high = emit.lshr(words[0], amount), emit.lshr(words[1], emit.sub(amount, 32))
    byte = emit.lop3((0xF0 | 0xCC) & 0xAA, low, high, 255)
    if not known >> position & 8:
        return byte
    spread = emit.icmp("ne", emit.op("and", control, 8 << position), 0)
    return emit.select(spread, emit.mul(emit.lshr(byte, 7), 255), byte)
