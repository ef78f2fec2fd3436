"""Pointer arithmetic: constant steps join into one displacement, and parameters are read directly."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.simplify.rules import Rule, before, is_op


def simplify_ptradd(pointer: Instruction) -> Value | None:
    base, index = pointer.operands
    inner = is_op(base, "ptradd")
    step = constant_step(pointer)
    if step == 0:
        return base
    if step is not None and inner:
        return move(pointer, inner.operands[0], inner.operands[1], inner, step)
    if inner:
        inner_step = constant_step(inner)
        return None if inner_step is None else move(pointer, inner.operands[0], index, pointer, inner_step)
    canonical = (1, Constant(I32, 0))
    if step is not None and (pointer.attrs["scale"], index) != canonical:
        attrs = {"scale": 1, "disp": step, "signed": True}
        return before(pointer).emit("ptradd", base, Constant(I32, 0), attrs=attrs)
    return None


def constant_step(pointer: Instruction) -> int | None:
    """How many bytes a `ptradd` moves by, if its index is a constant."""
    index = pointer.operands[1]
    if not isinstance(index, Constant):
        return None
    number = index.signed if pointer.attrs["signed"] else index.value
    return number * pointer.attrs["scale"] + pointer.attrs["disp"]


def move(pointer: Instruction, base: Value, index: Value, like: Instruction, step: int) -> Value:
    """A `ptradd` from `base` with the attributes of `like`, and a displacement of `step` bytes more."""
    attrs = {**like.attrs, "disp": like.attrs["disp"] + step}
    return before(pointer).emit("ptradd", base, index, attrs=attrs)


def simplify_param(param: Instruction) -> Value | None:
    function = param.block.parent
    return function.args[param.attrs["index"]] if function else None


ADDRESSES: dict[str, Rule] = {"ptradd": simplify_ptradd, "param": simplify_param}
