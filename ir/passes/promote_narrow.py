"""Promotion of i8 and i16 to i32, with explicit masks and sign extensions where upper bits matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.analysis.cfg import reverse_postorder
from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I1, I8, I16, I32, IntType, Type
from qgpu.ir.core.values import Argument, Constant, Value
from qgpu.ir.passes.dead_code import remove_dead_instructions, remove_unreachable_blocks
from qgpu.ir.passes.manager import Pass

Facts = frozenset[str]
ANY: Facts = frozenset()
ZERO: Facts = frozenset({"zero"})
SIGN: Facts = frozenset({"sign"})
BOTH: Facts = ZERO | SIGN
SIGNED_USERS = ("sext", "ashr", "smin", "smax", "sdiv", "srem", "mulhi_s")


@dataclass(frozen=True)
class Rule:
    """How an operation on narrow integers is done in 32 bits.

    `needs` says per operand what its upper bits have to be: "any", "zero" (zero-extended) or "sign".
    `facts` gives, from the facts of the operands, what the upper bits of the result are.
    """

    needs: tuple[str, ...]
    facts: Callable[[list[Facts]], Facts]


def _all(facts: list[Facts]) -> Facts:
    return frozenset.intersection(*facts)


def _masked(facts: list[Facts]) -> Facts:
    return _all(facts) | (ZERO if any("zero" in fact for fact in facts) else ANY)


RULES: dict[str, Rule] = {
    "add": Rule(("any", "any"), lambda facts: ANY),
    "sub": Rule(("any", "any"), lambda facts: ANY),
    "mul": Rule(("any", "any"), lambda facts: ANY),
    "and": Rule(("any", "any"), _masked),
    "or": Rule(("any", "any"), _all),
    "xor": Rule(("any", "any"), _all),
    "not": Rule(("any",), lambda facts: facts[0] & SIGN),
    "shl": Rule(("any", "zero"), lambda facts: ANY),
    "lshr": Rule(("zero", "zero"), lambda facts: ZERO),
    "ashr": Rule(("sign", "zero"), lambda facts: SIGN),
    "smin": Rule(("sign", "sign"), lambda facts: SIGN),
    "smax": Rule(("sign", "sign"), lambda facts: SIGN),
    "umin": Rule(("zero", "zero"), lambda facts: ZERO),
    "umax": Rule(("zero", "zero"), lambda facts: ZERO),
    "udiv": Rule(("zero", "zero"), lambda facts: ANY),
    "urem": Rule(("zero", "zero"), lambda facts: ANY),
    "sdiv": Rule(("sign", "sign"), lambda facts: ANY),
    "srem": Rule(("sign", "sign"), lambda facts: ANY),
    "popc": Rule(("zero",), lambda facts: BOTH),
    "bfe_u": Rule(("zero",), lambda facts: ZERO),
    "bfe_s": Rule(("sign",), lambda facts: SIGN),
    "bfi": Rule(("any", "any"), lambda facts: ANY),
    "shuffle": Rule(("any",), lambda facts: facts[0]),
    "match": Rule(("zero",), lambda facts: ANY),
}
"""Operations whose low bits in 32-bit arithmetic are those of the narrow operation.

A shift by the narrow width or more is right too: all low bits are then zero, or the sign. So is a field that
ends beyond the narrow width. Operands after those that `needs` speaks of are words already.
"""


IN_PLACE = ("store", "ptradd", "atomicrmw", "cmpxchg", "printf")


def is_narrow(type_: Type) -> bool:
    return type_ is I8 or type_ is I16


@dataclass(frozen=True)
class PromoteNarrow(Pass):
    """Computes every i8 and i16 as an i32.

    Contract: the low bits of every value are what they were, and wherever more than the low bits counts
    (comparisons, right shifts, extensions, divisions) they are extended first. Loads extend to i32 by their
    `ext`, stores write the low bits of an i32. Narrow kernel parameters are extended where they are read;
    narrow atomics stay, for the back end to refuse.
    """

    name: ClassVar[str] = "promote-narrow"

    def run(self, function: Function) -> bool:
        remove_unreachable_blocks(function)
        if not any(_touches_narrow(instruction) for instruction in function.instructions):
            return False
        Promotion(function).run()
        return True


def _touches_narrow(instruction: Instruction) -> bool:
    return is_narrow(instruction.type) or any(is_narrow(operand.type) for operand in instruction.operands)


_FACTS: dict[str, Facts] = {
    "zext": BOTH,
    "sext": SIGN,
    "mulhi_u": ZERO,
    "mulhi_s": SIGN,
    "param": ZERO,
    "clz": BOTH,
    "brev": ZERO,
}
"""What is known of results of operations that are not the same in 32 bits."""


class Promotion:
    """Rewrites one function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.order = [i for block in reverse_postorder(function) for i in block.instructions]
        self.touched = [i for i in self.order if _touches_narrow(i)]
        self.facts: dict[Value, Facts] = {}
        self.wide: dict[Value, Value] = {}
        self._find_facts()

    def run(self) -> None:
        for phi in [i for i in self.order if i.op == "phi" and is_narrow(i.type)]:
            self.wide[phi] = phi.block.insert(
                0, Instruction("phi", I32, (), {"blocks": ()}, phi.loc, phi.name)
            )
        for instruction in self.touched:
            if instruction.op != "phi":
                self._rewrite(instruction)
        for phi, wide in self.wide.items():
            if isinstance(phi, Instruction) and phi.op == "phi":
                self._fill_phi(phi, wide)
        self._erase_replaced()
        remove_dead_instructions(self.function)

    def _erase_replaced(self) -> None:
        """Takes out the instructions that were replaced, which by now only use each other."""
        replaced = [i for i in self.touched if i.op not in IN_PLACE]
        for instruction in replaced:
            instruction.operands = ()
        for instruction in replaced:
            instruction.erase()

    def _find_facts(self) -> None:
        """The upper bits of every narrow value, as the greatest fixpoint over phis."""
        narrow = [i for i in self.order if is_narrow(i.type)]
        self.facts.update(dict.fromkeys(narrow, BOTH))
        changed = True
        while changed:
            changed = False
            for instruction in narrow:
                found = self._facts_of(instruction)
                changed |= found != self.facts[instruction]
                self.facts[instruction] = found

    def _facts_of(self, instruction: Instruction) -> Facts:
        op, operands = instruction.op, instruction.operands
        if op in RULES:
            return RULES[op].facts([self.facts_at(operand) for operand in operands])
        if op == "phi":
            return _all([self.facts_at(operand) for operand in operands])
        if op == "select":
            return _all([self.facts_at(operand) for operand in operands[1:]])
        if op == "load":
            return self._load_facts(instruction)
        return _FACTS.get(op, ANY)

    def facts_at(self, value: Value) -> Facts:
        """What is known of an operand; a constant is written as it is needed, but only one way at a time."""
        if isinstance(value, Constant):
            return BOTH if value.signed >= 0 else SIGN
        return self.facts.get(value, ZERO if isinstance(value, Argument) else ANY)

    def _load_facts(self, load: Instruction) -> Facts:
        if load.attrs.get("ext") == "zero":
            return BOTH
        if load.attrs.get("ext") == "sign" or _wants_sign(load):
            return SIGN
        return ZERO

    def value(self, builder: Builder, value: Value, need: str) -> Value:
        """The i32 that stands for a narrow value, its upper bits as needed."""
        type_ = value.type
        assert isinstance(type_, IntType)
        if isinstance(value, Constant):
            return constant(I32, value.value if need == "zero" else value.signed)
        if isinstance(value, Argument):
            return builder.emit("sext" if need == "sign" else "zext", value, type=I32)
        wide = self.wide[value]
        if need == "any" or need in self.facts[value]:
            return wide
        if need == "zero":
            return builder.emit("and", wide, constant(I32, type_.mask))
        amount = constant(I32, 32 - type_.width)
        return builder.emit("ashr", builder.emit("shl", wide, amount), amount)

    def _rewrite(self, instruction: Instruction) -> None:
        builder = Builder().before(instruction)
        op = instruction.op
        if op in RULES:
            needs = RULES[op].needs
            wide = [self.value(builder, *pair) for pair in zip(instruction.operands, needs, strict=False)]
            rest = instruction.operands[len(needs) :]
            emitted = builder.emit(op, *wide, *rest, attrs=instruction.attrs, name=instruction.name)
            self._define(instruction, emitted)
        else:
            self._special(builder, instruction)

    def _define(self, instruction: Instruction, value: Value) -> None:
        """Records the i32 for a narrow instruction; others give way to their replacement."""
        if is_narrow(instruction.type):
            self.wide[instruction] = value
        elif value is not instruction:
            instruction.replace_all_uses_with(value)

    def _special(self, builder: Builder, instruction: Instruction) -> None:
        """The operations that are not the same in 32 bits."""
        handler = _SPECIAL.get(instruction.op)
        if handler is not None:
            self._define(instruction, handler(self, builder, instruction))

    def _fill_phi(self, phi: Instruction, wide: Value) -> None:
        assert isinstance(wide, Instruction)
        need = next(iter(sorted(self.facts[phi])), "any")
        for value, source in phi.incoming:
            builder = Builder().before(source.terminator)
            wide.add_incoming(self.value(builder, value, need), source)


def _wants_sign(load: Instruction) -> bool:
    """Whether a narrow load's users rather want it sign-extended."""
    users = [user for user in load.users if isinstance(user, Instruction)]
    signed = [u.op in SIGNED_USERS or (u.op == "icmp" and u.attrs["pred"].startswith("s")) for u in users]
    return any(signed) and not any(user.op in ("zext", "lshr") for user in users)


def _extend(promotion: Promotion, builder: Builder, cast: Instruction) -> Value:
    """zext and sext: from a narrow type to any, or from i1 to a narrow one."""
    value = cast.operands[0]
    if value.type is I1:
        return builder.emit(cast.op, value, type=I32)
    wide = promotion.value(builder, value, "zero" if cast.op == "zext" else "sign")
    assert isinstance(cast.type, IntType)
    return builder.emit(cast.op, wide, type=cast.type) if cast.type.width > 32 else wide


def _truncate(promotion: Promotion, builder: Builder, cast: Instruction) -> Value:
    """trunc: to a narrow type the low bits are there already, to i1 it tests the lowest."""
    value = cast.operands[0]
    if is_narrow(value.type):
        value = promotion.value(builder, value, "any")
    if cast.type is I1:
        return builder.icmp("ne", builder.emit("and", value, constant(I32, 1)), constant(I32, 0))
    return builder.cast("trunc", value, I32)


def _compare(promotion: Promotion, builder: Builder, icmp: Instruction) -> Value:
    """Signed comparisons need signs; others only that both sides are extended alike, which keeps order."""
    operands = icmp.operands
    signed = icmp.attrs["pred"].startswith("s")
    common = _all([promotion.facts_at(operand) for operand in operands])
    need = "sign" if signed or (common == SIGN) else "zero"
    a, b = (promotion.value(builder, operand, need) for operand in operands)
    return builder.icmp(icmp.attrs["pred"], a, b)


def _select(promotion: Promotion, builder: Builder, select: Instruction) -> Value:
    need = next(iter(sorted(promotion.facts[select])), "any")
    a, b = (promotion.value(builder, operand, need) for operand in select.operands[1:])
    return builder.select(select.operands[0], a, b)


def _high_half(promotion: Promotion, builder: Builder, multiply: Instruction) -> Value:
    """The high half of a product of at most 16 bits by 16 fits 32 bits as a whole."""
    assert isinstance(multiply.type, IntType)
    need, shift = ("sign", "ashr") if multiply.op == "mulhi_s" else ("zero", "lshr")
    product = builder.emit("mul", *(promotion.value(builder, operand, need) for operand in multiply.operands))
    return builder.emit(shift, product, constant(I32, multiply.type.width))


def _load(promotion: Promotion, builder: Builder, load: Instruction) -> Value:
    memory = load.attrs["type"]
    ext = load.attrs.get("ext") or ("sign" if "sign" in promotion.facts[load] else "zero")
    volatile = load.attrs.get("volatile", False)
    return builder.load(load.operands[0], memory, I32, ext, volatile, load.name)


def _store(promotion: Promotion, builder: Builder, store: Instruction) -> Value:
    pointer, value = store.operands
    store.operands = (pointer, promotion.value(builder, value, "any"))
    return store


def _ptradd(promotion: Promotion, builder: Builder, pointer: Instruction) -> Value:
    need = "sign" if pointer.attrs["signed"] else "zero"
    pointer.operands = (pointer.operands[0], promotion.value(builder, pointer.operands[1], need))
    return pointer


def _atomic(promotion: Promotion, builder: Builder, atomic: Instruction) -> Value:
    """Stays as narrow as it is, between truncations and an extension."""
    pointer, *values = atomic.operands
    low = [builder.emit("trunc", promotion.value(builder, x, "any"), type=atomic.type) for x in values]
    atomic.operands = (pointer, *low)
    extended = Instruction("zext", I32, (atomic,), loc=atomic.loc)
    return atomic.block.insert(atomic.block.instructions.index(atomic) + 1, extended)


def _printf(promotion: Promotion, builder: Builder, printf: Instruction) -> Value:
    printf.operands = tuple(
        promotion.value(builder, x, "zero") if is_narrow(x.type) else x for x in printf.operands
    )
    return printf


def _leading_zeros(promotion: Promotion, builder: Builder, clz: Instruction) -> Value:
    """Those of the extended number, less those that the extension added."""
    assert isinstance(clz.type, IntType)
    zeros = builder.emit("clz", promotion.value(builder, clz.operands[0], "zero"))
    return builder.emit("add", zeros, constant(I32, clz.type.width - 32))


def _reversed(promotion: Promotion, builder: Builder, brev: Instruction) -> Value:
    """The reversed bits come out at the top."""
    assert isinstance(brev.type, IntType)
    reverse = builder.emit("brev", promotion.value(builder, brev.operands[0], "any"))
    return builder.emit("lshr", reverse, constant(I32, 32 - brev.type.width))


def _wide_copy(promotion: Promotion, builder: Builder, instruction: Instruction) -> Value:
    """undef stays arbitrary; a parameter is extended."""
    if instruction.op == "undef":
        return builder.emit("undef", type=I32)
    read = builder.emit("param", type=instruction.type, attrs=instruction.attrs)
    return builder.emit("zext", read, type=I32)


_SPECIAL: dict[str, Callable[[Promotion, Builder, Instruction], Value]] = {
    "zext": _extend,
    "sext": _extend,
    "trunc": _truncate,
    "icmp": _compare,
    "select": _select,
    "mulhi_s": _high_half,
    "mulhi_u": _high_half,
    "load": _load,
    "store": _store,
    "ptradd": _ptradd,
    "atomicrmw": _atomic,
    "cmpxchg": _atomic,
    "printf": _printf,
    "clz": _leading_zeros,
    "brev": _reversed,
    "undef": _wide_copy,
    "param": _wide_copy,
}
