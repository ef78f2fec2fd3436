"""Address narrowing: offsets computed in 64 bits become chains of `ptradd` over 32-bit indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.analysis.dominators import DominatorTree
from qgpu.ir.analysis.loops import LoopInfo
from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64
from qgpu.ir.core.values import Value
from qgpu.ir.passes.dead_code import remove_dead_instructions
from qgpu.ir.passes.manager import Pass
from qgpu.ir.passes.narrow_addresses.affine import Affine, decompose
from qgpu.ir.passes.narrow_addresses.counters import narrow_counters
from qgpu.ir.passes.narrow_addresses.extended import narrow_extended
from qgpu.ir.passes.narrow_addresses.integers import narrow_integers


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
        while narrow_extended(function) | narrow_counters(function):
            changed = True
        changed |= narrow_integers(function)
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
