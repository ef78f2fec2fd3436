"""Emitter: builds the instructions of an expansion, and computes at once what constants decide."""

from __future__ import annotations

from typing import Any

from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.folding import fold
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64, IntType, Type
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import is_op

Operand = Value | int

_NEUTRAL = {"add": 0, "sub": 0, "or": 0, "xor": 0, "shl": 0, "lshr": 0, "ashr": 0, "mul": 1}
"""The right operand that leaves the left one as it is."""

_ABSORBING = {"mul": 0, "and": 0}
"""The right operand that is the result itself."""


class Emitter:
    """Emits before an instruction. Operands are values, or numbers of the type of the values beside them."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction
        self.builder = Builder().before(instruction)

    def op(self, name: str, *operands: Operand, type: Type | None = None, **attrs: Any) -> Value:
        """The value of an operation: a constant or an operand where that is what it is."""
        kind = next((x.type for x in operands if isinstance(x, Value)), type or I32)
        values = tuple(constant(kind, x) if isinstance(x, int) else x for x in operands)
        known = self._known(name, values)
        if known is not None:
            return known
        emitted = self.builder.emit(name, *values, type=type, attrs=attrs)
        folded = fold(emitted)
        if folded is None and possible_ones(emitted) == 0:
            folded = constant(emitted.type, 0)
        if folded is None:
            return emitted
        emitted.erase()
        return folded

    @staticmethod
    def _known(name: str, values: tuple[Value, ...]) -> Value | None:
        """The result where an identity gives it."""
        if len(values) != 2:
            return None
        a, b = values
        if isinstance(a, Constant) and name in ("add", "mul", "and", "or", "xor"):
            a, b = b, a
        if not isinstance(b, Constant):
            return None
        if _NEUTRAL.get(name) == b.value or (name == "and" and possible_ones(a) & ~b.value == 0):
            return a
        return b if _ABSORBING.get(name) == b.value else None

    def add(self, a: Operand, b: Operand) -> Value:
        return self.op("add", a, b)

    def sub(self, a: Operand, b: Operand) -> Value:
        return self.op("sub", a, b)

    def mul(self, a: Operand, b: Operand) -> Value:
        return self.op("mul", a, b)

    def shl(self, a: Operand, b: Operand) -> Value:
        return self.op("shl", a, b)

    def lshr(self, a: Operand, b: Operand) -> Value:
        return self.op("lshr", a, b)

    def ashr(self, a: Operand, b: Operand) -> Value:
        return self.op("ashr", a, b)

    def lop3(self, lut: int, a: Operand, b: Operand, c: Operand) -> Value:
        """A bitwise function of three words: `lut` is F0, CC and AA combined as a, b and c are."""
        return self.op("lop3", a, b, c, lut=lut & 0xFF)

    def icmp(self, predicate: str, a: Operand, b: Operand) -> Value:
        return self.op("icmp", a, b, pred=predicate)

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        kind = next((x.type for x in (a, b) if isinstance(x, Value)), I32)
        pair = [constant(kind, x) if isinstance(x, int) else x for x in (a, b)]
        if isinstance(condition, Constant):
            return pair[0] if condition.value else pair[1]
        return pair[0] if pair[0] is pair[1] else self.builder.select(condition, pair[0], pair[1])

    def cast(self, op: str, value: Value, type: IntType) -> Value:
        """`sext`, `zext` or `trunc`; the value itself where it has the type."""
        return value if value.type is type else self.op(op, value, type=type)

    # Words

    def low(self, value: Value) -> Value:
        """The low word of a number of 32 or 64 bits."""
        if value.type is I32:
            return value
        pair = is_op(value, "pack")
        if pair:
            return pair.operands[0]
        cast = is_op(value, "zext") or is_op(value, "sext")
        if cast and cast.operands[0].type is I32:
            return cast.operands[0]
        return self.op("trunc", value, type=I32)

    def high(self, value: Value) -> Value:
        """The high word of an i64."""
        pair = is_op(value, "pack")
        if pair:
            return pair.operands[1]
        if possible_ones(value) >> 32 == 0:
            return constant(I32, 0)
        cast = is_op(value, "sext")
        if cast and cast.operands[0].type is I32:
            return self.ashr(cast.operands[0], 31)
        return self.op("high", value)

    def pack(self, low: Operand, high: Operand) -> Value:
        """The i64 of two words."""
        pair = [constant(I32, x) if isinstance(x, int) else x for x in (low, high)]
        return self.op("pack", *pair)

    def wide(self, word: Value) -> Value:
        """A word as an i64, its high word zero."""
        return self.op("zext", word, type=I64)
