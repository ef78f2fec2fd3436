"""Address narrowing: offsets computed in 64 bits become chains of `ptradd` over 32-bit indices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from qgpu.ir.analysis.dominators import DominatorTree
from qgpu.ir.analysis.loops import LoopInfo
from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import to_signed
from qgpu.ir.core.types import I32, I64, IntType
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.dead_code import remove_dead_instructions
from qgpu.ir.passes.manager import Pass

Key = tuple[int, bool]


@dataclass
class Affine:
    """An i64 as a sum modulo 2^64: `disp` plus, for each term, ext(value) * scale.

    Terms are keyed by the value and by whether it is sign-extended, in the order they were found. A value
    of 64 bits is a term of its own.
    """

    disp: int = 0
    terms: dict[Key, tuple[Value, bool, int]] = field(default_factory=dict)

    def add(self, value: Value, signed: bool, scale: int) -> None:
        key = (id(value), signed)
        total = to_signed(self.terms[key][2] + scale if key in self.terms else scale, 64)
        self.terms[key] = (value, signed, total)
        if total == 0:
            del self.terms[key]

    def add_constant(self, number: int) -> None:
        self.disp = to_signed(self.disp + number, 64)


def decompose(value: Value, scale: int, into: Affine) -> None:
    """Adds value * scale to a sum; exact modulo 2^64, so that no bound on the operands is needed."""
    if isinstance(value, Constant):
        into.add_constant(value.signed * scale)
        return
    rule = _LINEAR.get(value.op) if isinstance(value, Instruction) and value.type is I64 else None
    if rule is None or not isinstance(value, Instruction) or not rule(value, scale, into):
        into.add(value, True, scale)


def _decompose_add(value: Instruction, scale: int, into: Affine) -> bool:
    decompose(value.operands[0], scale, into)
    decompose(value.operands[1], scale, into)
    return True


def _decompose_sub(value: Instruction, scale: int, into: Affine) -> bool:
    decompose(value.operands[0], scale, into)
    decompose(value.operands[1], -scale, into)
    return True


def _decompose_mul(value: Instruction, scale: int, into: Affine) -> bool:
    for factor, other in (value.operands, value.operands[::-1]):
        if isinstance(factor, Constant):
            decompose(other, scale * factor.signed, into)
            return True
    return False


def _decompose_shl(value: Instruction, scale: int, into: Affine) -> bool:
    amount = value.operands[1]
    if not isinstance(amount, Constant):
        return False
    if amount.value < 64:
        decompose(value.operands[0], scale << amount.value, into)
    return True


def _decompose_extension(value: Instruction, scale: int, into: Affine) -> bool:
    narrow = value.operands[0]
    if isinstance(narrow, Constant):
        into.add_constant((narrow.signed if value.op == "sext" else narrow.value) * scale)
        return True
    if narrow.type is not I32:
        narrow = Builder().before(value).emit(value.op, narrow, type=I32)
    into.add(narrow, value.op == "sext", scale)
    return True


def _decompose_and(value: Instruction, scale: int, into: Affine) -> bool:
    """A constant mask below 2^32 keeps low bits alone, so that 32 bits of the other operand suffice.

    Of a multiple of 2^k, (x * 2^k) & mask = (x & (mask >> k)) * 2^k, whatever of x * 2^k is cut off above.
    """
    for other, mask in (value.operands, value.operands[::-1]):
        if isinstance(mask, Constant) and mask.value < 1 << 32:
            builder = Builder().before(value)
            index, unit = _without_power_of_two(_low_word(builder, other))
            kept = constant(I32, mask.value // unit)
            into.add(builder.emit("and", index, kept), kept.signed >= 0, scale * unit)
            return True
    return False


def _low_word(builder: Builder, value: Value) -> Value:
    """The low 32 bits of an i64, computed in 32 bits as far as possible."""
    if isinstance(value, Constant):
        return constant(I32, value.value)
    if isinstance(value, Instruction) and value.op in ("sext", "zext"):
        return _resize(builder, value.operands[0], I32, value.op)
    if isinstance(value, Instruction) and value.op in _LOW_BITS:
        return builder.emit(value.op, *(_low_word(builder, operand) for operand in value.operands))
    return builder.emit("trunc", value, type=I32)


def _without_power_of_two(value: Value) -> tuple[Value, int]:
    """An i32 as another times a power of two, modulo 2^32."""
    if isinstance(value, Instruction) and value.op == "mul":
        factor = value.operands[1]
        if isinstance(factor, Constant) and factor.value.bit_count() == 1:
            return value.operands[0], factor.value
    return value, 1


_LINEAR: dict[str, Callable[[Instruction, int, Affine], bool]] = {
    "add": _decompose_add,
    "sub": _decompose_sub,
    "mul": _decompose_mul,
    "shl": _decompose_shl,
    "and": _decompose_and,
    "sext": _decompose_extension,
    "zext": _decompose_extension,
}


@dataclass(frozen=True)
class NarrowAddresses(Pass):
    """Rewrites every `ptradd` whose index is an i64 into `ptradd`s whose indices are i32.

    Contract: every pointer keeps its buffer and its offset, exact modulo 2^64. The sign or zero extension
    of a 32-bit sum stays an index of its own, since the sum may wrap. A loop-carried i64 offset becomes a
    loop-carried pointer. Comparisons and truncations of extended values become 32-bit ones. What is left in
    64 bits has no 32-bit form, and later stages have to refuse it.
    """

    name: ClassVar[str] = "narrow-addresses"

    def run(self, function: Function) -> bool:
        changed = narrow_integers(function)
        changed |= AddressNarrowing(function).run()
        return remove_dead_instructions(function) or changed


class AddressNarrowing:
    """Rewrites the `ptradd`s of one function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.tree = DominatorTree(function)
        self.loops = LoopInfo(function, self.tree)
        self.pointer_phis: dict[tuple[int, int, int], Instruction] = {}

    def run(self) -> bool:
        wide = [i for i in self.function.instructions if i.op == "ptradd" and i.operands[1].type is I64]
        for pointer in wide:
            if self.tree.reachable(pointer.block):
                self.rewrite(pointer)
        return bool(wide)

    def rewrite(self, pointer: Instruction) -> None:
        base, index = pointer.operands
        narrowed = self.offset(
            Builder().before(pointer), base, index, pointer.attrs["scale"], pointer.attrs["disp"]
        )
        if isinstance(narrowed, Instruction) and not narrowed.uses:
            narrowed.name = pointer.name
        pointer.replace_all_uses_with(narrowed)
        pointer.erase()

    def offset(self, builder: Builder, base: Value, index: Value, scale: int, disp: int) -> Value:
        """The pointer base + index * scale + disp, built from 32-bit indices as far as possible."""
        affine = Affine(disp)
        decompose(index, scale, affine)
        terms = sorted(affine.terms.values(), key=lambda term: self._depth(term[0]))
        for value, signed, factor in terms:
            carried = self._carried(value, base, factor)
            base = carried or self._advance(builder, base, value, signed, factor)
        if not affine.disp and terms:
            return base
        return builder.ptradd(base, constant(I32, 0), 1, affine.disp)

    def _depth(self, value: Value) -> int:
        """How many loops a value is computed in: sums of outer terms can stay outside."""
        return self.loops.depth(value.block) if isinstance(value, Instruction) else 0

    def _advance(self, builder: Builder, base: Value, value: Value, signed: bool, scale: int) -> Instruction:
        """Adds one term, outside the loops in which neither the base nor the value changes."""
        place = builder.block
        loop = self.loops.innermost(place)
        while loop is not None and all(self._is_outside(v, loop.header) for v in (base, value)):
            preheader = loop.preheader(self.tree.predecessors)
            if preheader is None:
                break
            place, loop = preheader, loop.parent
        inside = builder if place is builder.block else Builder(loc=builder.loc).before(place.terminator)
        return inside.ptradd(base, value, scale, 0, signed)

    def _is_outside(self, value: Value, header: object) -> bool:
        loop = next(found for found in self.loops.loops if found.header is header)
        return not isinstance(value, Instruction) or value.block not in loop

    def _carried(self, value: Value, base: Value, scale: int) -> Value | None:
        """The pointer base + value * scale for an i64 phi, as a phi of pointers; None for other values."""
        if not isinstance(value, Instruction) or value.op != "phi" or value.type is not I64:
            return None
        if isinstance(base, Instruction) and not self.tree.strictly_dominates(base.block, value.block):
            return None
        key = (id(value), id(base), scale)
        if key not in self.pointer_phis:
            self.pointer_phis[key] = self._pointer_phi(key, value, base, scale)
        return self.pointer_phis[key]

    def _pointer_phi(
        self, key: tuple[int, int, int], value: Instruction, base: Value, scale: int
    ) -> Instruction:
        phi = Instruction("phi", base.type, (), {"blocks": ()}, value.loc)
        value.block.insert(0, phi)
        self.pointer_phis[key] = phi
        for incoming, source in value.incoming:
            builder = Builder(loc=value.loc).before(source.terminator)
            phi.add_incoming(self._step(builder, phi, value, incoming, base, scale), source)
        return phi

    def _step(
        self, builder: Builder, phi: Instruction, value: Instruction, incoming: Value, base: Value, scale: int
    ) -> Value:
        """The pointer for one incoming value: from the phi itself where that is a step from its number."""
        affine = Affine()
        decompose(incoming, 1, affine)
        step = affine.terms.pop((id(value), True), None)
        if step is None or step[2] != 1:
            return self.offset(builder, base, incoming, scale, 0)
        pointer: Value = phi
        for term, signed, factor in affine.terms.values():
            pointer = builder.ptradd(pointer, term, factor * scale, 0, signed)
        return builder.ptradd(pointer, constant(I32, 0), 1, affine.disp * scale) if affine.disp else pointer


def narrow_integers(function: Function) -> bool:
    """Replaces comparisons, truncations and loads of i64 that depend on 32 bits alone."""
    changed = False
    for instruction in function.instructions:
        rule = _NARROWING.get(instruction.op)
        replacement = rule(instruction) if rule else None
        if replacement is not None:
            instruction.replace_all_uses_with(replacement)
            instruction.erase()
            changed = True
    return changed


def _split_load(load: Instruction) -> Value | None:
    """A load that extends to 64 bits, as a load of 32 bits and an extension."""
    if load.type is not I64 or "ext" not in load.attrs:
        return None
    builder = Builder().before(load)
    extension, volatile = load.attrs["ext"], load.attrs.get("volatile", False)
    narrow = builder.load(load.operands[0], load.attrs["type"], I32, extension, volatile, load.name)
    return builder.emit("sext" if extension == "sign" else "zext", narrow, type=I64)


def _narrow_comparison(icmp: Instruction) -> Value | None:
    """A comparison of two sign- or two zero-extended i32, which order them alike if signedness agrees."""
    predicate = icmp.attrs["pred"]
    for op in ("sext", "zext") if icmp.operands[0].type is I64 else ():
        narrowed = [_narrowed(operand, op) for operand in icmp.operands]
        a, b = narrowed
        if a is None or b is None or a.type is not b.type:
            continue
        if op == "zext" and predicate.startswith("s"):
            predicate = "u" + predicate[1:]
        return Builder().before(icmp).icmp(predicate, a, b)
    return None


def _narrowed(value: Value, op: str) -> Value | None:
    """The i32 of which an i64 is the extension by `op`."""
    if isinstance(value, Instruction) and value.op == op and value.operands[0].type is I32:
        return value.operands[0]
    if not isinstance(value, Constant):
        return None
    number = value.signed
    fits = -(1 << 31) <= number < 1 << 31 if op == "sext" else 0 <= number < 1 << 32
    return Constant(I32, number) if fits else None


_LOW_BITS = ("add", "sub", "mul", "and", "or", "xor")


def _narrow_truncation(trunc: Instruction) -> Value | None:
    """The low bits of a 64-bit sum, product or bitwise operation are those of the operands' low bits."""
    value = trunc.operands[0]
    builder = Builder().before(trunc)
    if isinstance(value, Constant):
        return constant(trunc.type, value.value)
    if value.type is not I64 or not isinstance(value, Instruction) or not isinstance(trunc.type, IntType):
        return None
    if value.op in ("sext", "zext"):
        return _resize(builder, value.operands[0], trunc.type, value.op)
    if value.op in _LOW_BITS and len(value.uses) == 1:
        low = []
        for operand in value.operands:
            cut = builder.emit("trunc", operand, type=trunc.type)
            low.append(_narrow_truncation(cut) or cut)
        return builder.emit(value.op, *low)
    return None


def _resize(builder: Builder, value: Value, type_: IntType, extension: str) -> Value:
    """A value brought to a width, extended as given or truncated."""
    assert isinstance(value.type, IntType)
    op = extension if value.type.width < type_.width else "trunc"
    return builder.cast(op, value, type_)


_NARROWING: dict[str, Callable[[Instruction], Value | None]] = {
    "icmp": _narrow_comparison,
    "trunc": _narrow_truncation,
    "load": _split_load,
}
