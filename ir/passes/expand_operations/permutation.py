"""Byte permutation: the modes of prmt as selectors for bytes."""

from __future__ import annotations

from qgpu.ir.core.builder import constant
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32
from qgpu.ir.core.values import Value
from qgpu.ir.passes.emitter import Emitter

MODES: dict[str, tuple[int, int, int, int]] = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""The selectors that a mode means for the control value 0 to 3 (PTX ISA, prmt)."""


def expand_prmt(emit: Emitter, prmt: Instruction) -> Value:
    """prmt by selectors for bytes, in every mode."""
    a, b, control = prmt.operands
    return emit.op("prmt", a, b, _selectors(emit, MODES[prmt.attrs["mode"]], control), mode="bytes")


def _selectors(emit: Emitter, table: tuple[int, int, int, int], control: Value) -> Value:
    """The selectors for the two low bits of a control value, from a table in two words."""
    low, high = (table[i] | table[i + 1] << 16 for i in (0, 2))
    half = emit.shl(emit.op("and", control, 1), 4)
    if low == high:
        return emit.lshr(constant(I32, low), half)
    upper = emit.icmp("ne", emit.op("and", control, 2), 0)
    return emit.lshr(emit.select(upper, constant(I32, high), constant(I32, low)), half)
