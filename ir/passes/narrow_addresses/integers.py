"""64-bit integers that depend on words alone, computed as words."""

from __future__ import annotations

from collections.abc import Callable

from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64, IntType
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.narrow_addresses.affine import LOW_BITS, resize


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


def _narrow_truncation(trunc: Instruction) -> Value | None:
    """The low bits of a 64-bit sum, product or bitwise operation are those of the operands' low bits."""
    value = trunc.operands[0]
    builder = Builder().before(trunc)
    if isinstance(value, Constant):
        return constant(trunc.type, value.value)
    if value.type is not I64 or not isinstance(value, Instruction) or not isinstance(trunc.type, IntType):
        return None
    if value.op in ("sext", "zext"):
        return resize(builder, value.operands[0], trunc.type, value.op)
    if value.op in LOW_BITS and len(value.uses) == 1:
        low = []
        for operand in value.operands:
            cut = builder.emit("trunc", operand, type=trunc.type)
            low.append(_narrow_truncation(cut) or cut)
        return builder.emit(value.op, *low)
    return None


_NARROWING: dict[str, Callable[[Instruction], Value | None]] = {
    "icmp": _narrow_comparison,
    "trunc": _narrow_truncation,
    "load": _split_load,
}
