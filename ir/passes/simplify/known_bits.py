"""Which bits of a value may be one, as far as a short look at its definition tells."""

from __future__ import annotations

from collections.abc import Callable

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.limits import LAUNCH, THREADS
from qgpu.ir.core.types import IntType
from qgpu.ir.core.values import Constant, Value

DEPTH = 4


def possible_ones(value: Value, depth: int = DEPTH) -> int:
    """A mask of the bits that may be one; all bits where nothing is known."""
    assert isinstance(value.type, IntType)
    mask = value.type.mask
    if isinstance(value, Constant):
        return value.value
    rule = RULES.get(value.op) if isinstance(value, Instruction) and depth else None
    if rule is None or not isinstance(value, Instruction):
        return mask
    return mask & rule(value, depth - 1)


def _up_to(greatest: int) -> int:
    """The bits that numbers up to one may have."""
    return (1 << greatest.bit_length()) - 1


def _operands(value: Instruction, depth: int) -> tuple[int, ...]:
    return tuple(possible_ones(operand, depth) for operand in value.operands)


def _trailing_zeros(ones: int) -> int:
    return (ones & -ones).bit_length() - 1 if ones else 64


def _and(value: Instruction, depth: int) -> int:
    a, b = _operands(value, depth)
    return a & b


def _either(value: Instruction, depth: int) -> int:
    a, b = _operands(value, depth)[-2:]
    return a | b


def _shifted_right(value: Instruction, depth: int) -> int:
    amount = value.operands[1]
    ones = possible_ones(value.operands[0], depth)
    return ones >> min(amount.value, 64) if isinstance(amount, Constant) else _up_to(ones)


def _shifted_left(value: Instruction, depth: int) -> int:
    amount = value.operands[1]
    return (
        possible_ones(value.operands[0], depth) << min(amount.value, 64)
        if isinstance(amount, Constant)
        else -1
    )


def _sum(value: Instruction, depth: int) -> int:
    """No more than the sum of the greatest, if that does not wrap; zeros at the end of both stay."""
    a, b = _operands(value, depth)
    low = -1 << min(_trailing_zeros(a), _trailing_zeros(b))
    return low if (a + b) >> _width(value) else _up_to(a + b) & low


def _product(value: Instruction, depth: int) -> int:
    if _counts_threads(*map(_register_name, value.operands)):
        return _up_to(LAUNCH - 1)
    a, b = _operands(value, depth)
    low = -1 << _trailing_zeros(a) + _trailing_zeros(b)
    return low if a * b >> _width(value) else _up_to(a * b) & low


def _register_name(value: Value) -> str:
    """The special register that a value is, extended or not."""
    while isinstance(value, Instruction) and value.op in ("zext", "sext"):
        value = value.operands[0]
    return value.attrs["name"] if isinstance(value, Instruction) and value.op == "sreg" else ""


def _counts_threads(a: str, b: str) -> bool:
    """Whether a product is of thread blocks and their size along one axis."""
    blocks, size = sorted((a, b), key=lambda name: name.startswith("ntid"))
    return size.startswith("ntid") and blocks in (f"ctaid{size[4:]}", f"nctaid{size[4:]}")


def _quotient(value: Instruction, depth: int) -> int:
    divisor = value.operands[1]
    if not isinstance(divisor, Constant) or divisor.value == 0:
        return -1
    return _up_to(possible_ones(value.operands[0], depth) // divisor.value)


def _remainder(value: Instruction, depth: int) -> int:
    divisor = value.operands[1]
    if not isinstance(divisor, Constant) or divisor.value == 0:
        return -1
    return _up_to(min(possible_ones(value.operands[0], depth), divisor.value - 1))


def _minimum(value: Instruction, depth: int) -> int:
    return _up_to(min(_operands(value, depth)))


def _width(value: Value) -> int:
    assert isinstance(value.type, IntType)
    return value.type.width


def _count(value: Instruction, depth: int) -> int:
    return _up_to(_width(value))


def _field(value: Instruction, depth: int) -> int:
    length = value.operands[2]
    return (1 << (length.value & 255)) - 1 if isinstance(length, Constant) else -1


def _funnel(value: Instruction, depth: int) -> int:
    low, high, amount = value.operands
    if not isinstance(amount, Constant):
        return -1
    pair = possible_ones(high, depth) << 32 | possible_ones(low, depth)
    return pair >> min(amount.value, 32)


def _loaded(value: Instruction, depth: int) -> int:
    return value.attrs["type"].mask if value.attrs.get("ext") == "zero" else -1


def _register(value: Instruction, depth: int) -> int:
    name = value.attrs["name"]
    if name.startswith(("tid", "laneid", "warpid")):
        return THREADS - 1
    return _up_to(THREADS) if name.startswith("ntid") else -1


def _paired(value: Instruction, depth: int) -> int:
    low, high = _operands(value, depth)
    return high << 32 | low


RULES: dict[str, Callable[[Instruction, int], int]] = {
    "add": _sum,
    "mul": _product,
    "and": _and,
    "or": _either,
    "xor": _either,
    "select": _either,
    "umax": _either,
    "umin": _minimum,
    "lshr": _shifted_right,
    "shl": _shifted_left,
    "udiv": _quotient,
    "urem": _remainder,
    "popc": _count,
    "clz": _count,
    "bfe_u": _field,
    "shf": _funnel,
    "zext": lambda value, depth: possible_ones(value.operands[0], depth),
    "trunc": lambda value, depth: possible_ones(value.operands[0], depth),
    "high": lambda value, depth: possible_ones(value.operands[0], depth) >> 32,
    "pack": _paired,
    "load": _loaded,
    "sreg": _register,
}
"""The bits of an operation's result, by opcode, from those of its operands up to a depth."""
