"""Miscompilations to plant: the strength of the random kernels is how many of them they find.

A plant is a wrong step in the pipeline: at its start, before linearisation, or after it. Each is what a
mistake in one rule of one pass would do, wherever the rule applies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir import I1, I8, I16, I32, I64, Builder, Constant, Function, Instruction, Value, constant
from qgpu.ir.core.types import IntType
from qgpu.ir.passes import Pass

Rewrite = Callable[[Builder, Instruction], Value | None]
"""What stands for an instruction instead, or None where it stays; may change the instruction itself."""


@dataclass(frozen=True)
class Plant(Pass):
    """A mistake: `stage` is the name of the pass before which it runs, or `start`.

    One that shows only where threads run `apart` is looked at before linearisation, where they do.
    """

    title: str
    stage: str
    change: Callable[[Function], bool]
    apart: bool = False
    name: ClassVar[str] = "planted"

    def run(self, function: Function) -> bool:
        return self.change(function)


def rewriting(rewrite: Rewrite, *opcodes: str) -> Callable[[Function], bool]:
    """Rewrites every instruction of some opcodes."""

    def change(function: Function) -> bool:
        changed = False
        for instruction in [i for i in function.instructions if i.op in opcodes]:
            value = rewrite(Builder().before(instruction), instruction)
            changed |= value is not None
            if value is not None and value is not instruction:
                uses = [use for use in instruction.uses if use.user is not value]
                for use in uses:
                    use.replace(value)
        return changed

    return change


def renaming(before: str, after: str, *, width: int | None = None) -> Callable[[Function], bool]:
    """One opcode for another, of one width where it is given."""

    def rewrite(build: Builder, old: Instruction) -> Value | None:
        if width is not None and (not isinstance(old.type, IntType) or old.type.width != width):
            return None
        return build.emit(after, *old.operands, type=old.type)

    return rewriting(rewrite, before)


def attribute(opcode: str, name: str, before: object, after: object) -> Callable[[Function], bool]:
    """Another value of an attribute."""

    def rewrite(build: Builder, old: Instruction) -> Value | None:
        if old.attrs.get(name) != before:
            return None
        old.attrs[name] = after
        return old

    return rewriting(rewrite, opcode)


def _swapped(build: Builder, old: Instruction) -> Value:
    a, b = old.operands
    return build.emit(old.op, b, a, attrs=dict(old.attrs))


def _swapped_arms(build: Builder, old: Instruction) -> Value | None:
    condition, a, b = old.operands
    return None if isinstance(a, Constant) or isinstance(b, Constant) else build.select(condition, b, a)


def _amount_cut(build: Builder, old: Instruction) -> Value | None:
    """Shifts as C compilers have them: by the amount modulo the width."""
    type_, amount = old.type, old.operands[1]
    assert isinstance(type_, IntType)
    if isinstance(amount, Constant) and amount.value < type_.width:
        return None
    cut = build.emit("and", amount, constant(type_, type_.width - 1))
    return build.emit(old.op, old.operands[0], cut)


def _without_carry(build: Builder, old: Instruction) -> Value | None:
    if old.type is not I64:
        return None
    low, high = (
        build.emit("add", *(part(build, operand) for operand in old.operands)) for part in (_low, _high)
    )
    return build.emit("pack", low, high)


def _low(build: Builder, value: Value) -> Value:
    return build.cast("trunc", value, I32)


def _high(build: Builder, value: Value) -> Value:
    return build.emit("high", value)


def _low_product(build: Builder, old: Instruction) -> Value | None:
    """The high word of a 64-bit product without the products of a low and a high word."""
    if old.type is not I64:
        return None
    lows = [_low(build, operand) for operand in old.operands]
    return build.emit("pack", build.emit("mul", *lows), build.emit("mulhi_u", *lows))


def _one_too_many(build: Builder, old: Instruction) -> Value | None:
    if old.type is not I32 or not isinstance(old.operands[1], Constant) or old.operands[1].value < 256:
        return None
    return build.emit("add", old.operands[0], constant(I32, old.operands[1].value + 1))


def _zero_has_31_zeros(build: Builder, old: Instruction) -> Value | None:
    if old.type is not I32:
        return None
    zero = build.icmp("eq", old.operands[0], constant(I32, 0))
    again = build.emit("clz", old.operands[0])
    return build.select(zero, constant(I32, 31), again)


def _unsigned_selectors(build: Builder, old: Instruction) -> Value | None:
    selector = old.operands[2]
    if not isinstance(selector, Constant) or selector.value & 0x8888 == 0:
        return None
    attrs = dict(old.attrs)
    return build.emit("prmt", *old.operands[:2], constant(I32, selector.value & 0x7777), attrs=attrs)


def _new_value(build: Builder, old: Instruction) -> Value | None:
    """The value after an atomic addition for the one before."""
    if old.attrs["kind"] != "add" or not old.uses:
        return None
    block = old.block
    after = block.instructions[block.instructions.index(old) + 1]
    return Builder().before(after).emit("add", old, old.operands[1])


def _exchanged_always(build: Builder, old: Instruction) -> Value:
    return build.atomicrmw("xchg", old.operands[0], old.operands[2])


def _neighbouring_lane(build: Builder, old: Instruction) -> Value:
    value, lane, mask = old.operands
    return build.emit("shuffle", value, build.emit("xor", lane, constant(I32, 1)), mask)


def _own_bit_only(build: Builder, old: Instruction) -> Value:
    return build.emit("shl", constant(I32, 1), build.sreg("laneid"))


def _first_block(build: Builder, old: Instruction) -> Value | None:
    return constant(I32, 0) if old.attrs["name"] == "ctaid.x" else None


def _lane_for_thread(build: Builder, old: Instruction) -> Value | None:
    return build.sreg("laneid") if old.attrs["name"] == "tid.x" else None


def _sign_lost(build: Builder, old: Instruction) -> Value | None:
    return build.cast("zext", old.operands[0], I32) if old.operands[0].type in (I8, I16) else None


def _backwards(build: Builder, old: Instruction) -> Value | None:
    """A loop's variable that keeps what it had, where it does not count rounds."""
    if old.type is not I32 or any(isinstance(u, Instruction) and u.op == "icmp" for u in old.users):
        return None
    for use, source in enumerate(old.attrs["blocks"]):
        if source in _dominated_by(old) and old.operands[use] is not old:
            old.replace_operand(use, old)
            return old
    return None


def _dominated_by(phi: Instruction) -> list[object]:
    from qgpu.ir.analysis.dominators import DominatorTree

    function = phi.block.parent
    assert function is not None
    tree = DominatorTree(function)
    return [block for block in function.blocks if tree.dominates(phi.block, block)]


def _bytes_dropped(function: Function) -> bool:
    stores = [i for i in function.instructions if i.op == "store" and i.attrs["type"] is I8]
    for store in stores[:1]:
        store.erase()
    return bool(stores)


def _guards_shortened(function: Function) -> bool:
    changed = False
    for block in function.blocks:
        if len(block.guard) > 1:
            block.guard = block.guard[:-1]
            changed = True
    return changed


def _sets_dropped(function: Function) -> bool:
    """The last of several values that a slot is given."""
    changed = False
    for slot in [i for i in function.instructions if i.op == "slot"]:
        sets = [u for u in slot.users if isinstance(u, Instruction) and u.op == "set"]
        if len(sets) > 1 and slot.type.element is not I1:  # type: ignore[attr-defined]
            sets[-1].erase()
            changed = True
    return changed


def _one_round(function: Function) -> bool:
    """Loops that are left after their first round."""
    order = {block: index for index, block in enumerate(function.blocks)}
    changed = False
    for block in function.blocks:
        branch = block.terminator
        if branch.op == "brany" and order[branch.attrs["then"]] <= order[block]:
            branch.attrs["then"] = branch.attrs["else"]
            changed = True
    function.control_flow = None
    return changed


def _arrays_shared(function: Function) -> bool:
    """The third word of each local array for the second."""
    changed = False
    for address in [i for i in function.instructions if i.op == "ptradd" and i.attrs["scale"] == 4]:
        base, index = address.operands
        local = isinstance(base, Instruction) and base.op == "addrof" and base.attrs["name"] == "stack"
        if local and isinstance(index, Constant) and index.value == 2:
            address.replace_operand(1, constant(I32, 1))
            changed = True
    return changed


def _barriers_dropped(function: Function) -> bool:
    barriers = [i for i in function.instructions if i.op == "barrier"]
    for barrier in barriers:
        barrier.erase()
    return bool(barriers)


BEFORE_LINEARISATION = "linearize"
AFTER_LINEARISATION = "lower-exchanges"

_TABLE: tuple[tuple[str, str, Callable[[Function], bool]], ...] = (
    ("subtraction turned round", "start", rewriting(_swapped, "sub")),
    ("right shift without sign", BEFORE_LINEARISATION, renaming("ashr", "lshr")),
    ("signed minimum as unsigned", BEFORE_LINEARISATION, renaming("smin", "umin")),
    ("signed less as unsigned", BEFORE_LINEARISATION, attribute("icmp", "pred", "slt", "ult")),
    ("at most as less", BEFORE_LINEARISATION, attribute("icmp", "pred", "sle", "slt")),
    ("unsigned less as at most", BEFORE_LINEARISATION, attribute("icmp", "pred", "ult", "ule")),
    ("arms of a select turned round", BEFORE_LINEARISATION, rewriting(_swapped_arms, "select")),
    ("amount of a left shift cut", "start", rewriting(_amount_cut, "shl")),
    ("amount of a right shift cut", "start", rewriting(_amount_cut, "lshr")),
    ("large constant one too large", BEFORE_LINEARISATION, rewriting(_one_too_many, "add")),
    ("carry lost", "start", rewriting(_without_carry, "add")),
    ("cross products lost", "start", rewriting(_low_product, "mul")),
    ("signed division as unsigned", "start", renaming("sdiv", "udiv", width=32)),
    ("signed remainder as unsigned", "start", renaming("srem", "urem", width=32)),
    ("signed high product as unsigned", "start", renaming("mulhi_s", "mulhi_u", width=32)),
    ("signed bit field as unsigned", "start", renaming("bfe_s", "bfe_u")),
    ("zero has 31 leading zeros", "start", rewriting(_zero_has_31_zeros, "clz")),
    ("signs of permuted bytes lost", "start", rewriting(_unsigned_selectors, "prmt")),
    ("sign of a narrow number lost", "start", rewriting(_sign_lost, "sext")),
    ("sign of a loaded byte lost", "start", attribute("load", "ext", "sign", "zero")),
    ("store of a byte dropped", BEFORE_LINEARISATION, _bytes_dropped),
    ("new value of an atomic for the old", "start", rewriting(_new_value, "atomicrmw")),
    ("compare-and-swap without comparison", "start", rewriting(_exchanged_always, "cmpxchg")),
    ("increment without wrap", "start", attribute("atomicrmw", "kind", "inc", "add")),
    ("shuffle from the neighbouring lane", BEFORE_LINEARISATION, rewriting(_neighbouring_lane, "shuffle")),
    ("match of the own lane alone", "start", rewriting(_own_bit_only, "match")),
    ("reduction of signed numbers as unsigned", "start", attribute("redux", "kind", "max_s", "max_u")),
    ("thread block number always 0", "start", rewriting(_first_block, "sreg")),
    ("lane number for thread number", "start", rewriting(_lane_for_thread, "sreg")),
    ("variable of a loop not carried on", BEFORE_LINEARISATION, rewriting(_backwards, "phi")),
    ("last literal of a guard dropped", AFTER_LINEARISATION, _guards_shortened),
    ("last value of a slot dropped", AFTER_LINEARISATION, _sets_dropped),
    ("loop left after one round", AFTER_LINEARISATION, _one_round),
    ("local array one element short", "start", _arrays_shared),
)
PLANTS = (
    *(Plant(*row) for row in _TABLE),
    Plant("barriers dropped", "start", _barriers_dropped, apart=True),
)
