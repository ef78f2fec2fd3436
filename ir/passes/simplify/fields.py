"""Bit fields, reversal, byte permutation, and words of 64 bits."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import Rule, before, is_op, is_zero, like, number, width

IDENTITY, SECOND = 0x3210, 0x7654
"""The selectors of prmt that take one of the words as it is."""

TAKE_PAIRS = ("atomicrmw", "cmpxchg", "printf")
"""What takes numbers of 64 bits as pairs of words until the end."""


def simplify_extract(extract: Instruction) -> Value | None:
    """A field at a constant place is shifted and masked, or shifted up and down."""
    value, position, length = extract.operands
    if not isinstance(position, Constant) or not isinstance(length, Constant):
        return None
    start, size = position.value & 255, length.value & 255
    builder = before(extract)
    if size == 0:
        return like(value, 0)
    if extract.op == "bfe_u":
        shifted = builder.emit("lshr", value, like(value, start))
        return builder.emit("and", shifted, like(value, (1 << size) - 1))
    above = max(width(value) - start - size, 0)
    top = builder.emit("shl", value, like(value, above))
    return builder.emit("ashr", top, like(value, min(above + start, width(value))))


def simplify_insert(insert: Instruction) -> Value | None:
    """Nothing or everything inserted; a constant place becomes a shift and masks."""
    value, base, position, length = insert.operands
    if not isinstance(position, Constant) or not isinstance(length, Constant):
        return None
    start, size = position.value & 255, length.value & 255
    mask = like(value, ((1 << size) - 1) << start)
    if mask.value == 0:
        return base
    if mask.value != mask.type.mask and not is_zero(base):
        return None
    builder = before(insert)
    return builder.emit("and", builder.emit("shl", value, like(value, start)), mask)


def simplify_brev(brev: Instruction) -> Value | None:
    inner = is_op(brev.operands[0], "brev")
    return inner.operands[0] if inner else None


def simplify_prmt(prmt: Instruction) -> Value | None:
    a, b, control = prmt.operands
    selectors = number(control)
    if selectors is None or prmt.attrs["mode"] != "bytes":
        return None
    kept = selectors & 0xFFFF
    if kept in (IDENTITY, SECOND):
        return a if kept == IDENTITY else b
    if kept != selectors:
        return before(prmt).emit("prmt", a, b, like(control, kept), attrs=prmt.attrs)
    return _moved_alike(prmt, kept)


def _moved_alike(prmt: Instruction, selectors: int) -> Value | None:
    """A mask or a shift, where that is all that happens to the bytes of one word, the others being 0."""
    words, taken, mask = prmt.operands[:2], set[tuple[int, int]](), 0
    for place in range(4):
        selector = selectors >> 4 * place & 15
        word, byte = divmod(selector & 7, 4)
        if is_zero(words[word]):
            continue
        if selector & 8:
            return None
        taken.add((word, place - byte))
        mask |= 255 << 8 * place
    if len(taken) != 1:
        return None
    ((word, distance),) = taken
    value, builder = words[word], before(prmt)
    if distance == 0:
        return builder.emit("and", value, like(value, mask))
    whole = I32.mask << 8 * distance & I32.mask if distance > 0 else I32.mask >> -8 * distance
    if mask != whole:
        return None
    return builder.emit("shl" if distance > 0 else "lshr", value, like(value, 8 * abs(distance)))


def join_shifts(joined: Instruction) -> Value | None:
    """A word shifted up beside one shifted down by what is left of 32 is a word of the pair."""
    for up, down in (joined.operands, joined.operands[::-1]) if joined.type is I32 else ():
        places, low = _places_up(up), is_op(down, "lshr")
        if places and low and number(low.operands[1]) == 32 - places:
            assert isinstance(up, Instruction)
            amount = Constant(I32, 32 - places)
            return before(joined).emit("shf", low.operands[0], up.operands[0], amount)
    return None


def _places_up(value: Value) -> int:
    """By how many places a shift to the left, or a product, moves its first operand; else 0."""
    shift, product = is_op(value, "shl"), is_op(value, "mul")
    if shift:
        return number(shift.operands[1]) or 0
    factor = number(product.operands[1]) if product else None
    return factor.bit_length() - 1 if factor and factor.bit_count() == 1 else 0


def simplify_shf(shf: Instruction) -> Value | None:
    """One of the words, where the amount is 0 or 32, or the shift of one where the other is 0."""
    low, high, amount = shf.operands
    if is_zero(high):
        return before(shf).emit("lshr", low, amount)
    places = number(amount)
    if places is None:
        return None
    if places == 0 or places >= 32:
        return high if places else low
    return before(shf).emit("shl", high, like(high, 32 - places)) if is_zero(low) else None


def simplify_pack(pack: Instruction) -> Value | None:
    """A word below zeros or its sign is extended; the words of a number are the number."""
    low, high = pack.operands
    if any(isinstance(user, Instruction) and user.op in TAKE_PAIRS for user in pack.users):
        return None
    if is_zero(high):
        return before(pack).emit("zext", low, type=I64)
    sign = is_op(high, "ashr")
    if sign and sign.operands[0] is low and number(sign.operands[1]) == 31:
        return before(pack).emit("sext", low, type=I64)
    parts = is_op(low, "trunc"), is_op(high, "high")
    if parts[0] and parts[1] and parts[0].operands[0] is parts[1].operands[0]:
        return parts[1].operands[0]
    return None


def simplify_high(high: Instruction) -> Value | None:
    value = high.operands[0]
    if possible_ones(value) >> 32 == 0:
        return Constant(I32, 0)
    pack = is_op(value, "pack")
    if pack:
        return pack.operands[1]
    extended = is_op(value, "sext")
    if extended and extended.operands[0].type is I32:
        return before(high).emit("ashr", extended.operands[0], Constant(I32, 31))
    return None


FIELDS: dict[str, Rule] = {
    "bfe_u": simplify_extract,
    "bfe_s": simplify_extract,
    "bfi": simplify_insert,
    "brev": simplify_brev,
    "prmt": simplify_prmt,
    "shf": simplify_shf,
    "pack": simplify_pack,
    "high": simplify_high,
}
