"""What is known of the low bits of addresses and numbers."""

from qgpu.ir import Argument, Constant, Function, Instruction, IntType, Value

_BUFFER = 256
_MOST = 1 << 32


def alignment(pointer: Value, function: Function, depth: int = 16) -> int:
    """A power of two that a pointer's address is a multiple of."""
    if isinstance(pointer, Argument):
        return _BUFFER
    if not isinstance(pointer, Instruction) or depth == 0:
        return 1
    if pointer.op == "addrof":
        return next(array.align for array in function.shared if array.name == pointer.attrs["name"])
    if pointer.op == "ptrcast":
        return alignment(pointer.operands[0], function, depth - 1)
    if pointer.op != "ptradd":
        return 1
    base, index = pointer.operands
    moved = factor(index, depth - 1) * _low_bit(pointer.attrs["scale"])
    return min(alignment(base, function, depth - 1), moved, _low_bit(pointer.attrs["disp"]))


def factor(value: Value, depth: int) -> int:
    """A power of two that a number is a multiple of."""
    if isinstance(value, Constant):
        return _low_bit(value.value)
    if not isinstance(value, Instruction) or depth == 0 or not isinstance(value.type, IntType):
        return 1
    parts = [factor(operand, depth - 1) for operand in value.operands]
    if value.op == "shl":
        amount = value.operands[1]
        return parts[0] << min(amount.value, 32) if isinstance(amount, Constant) else parts[0]
    if value.op == "mul":
        return min(parts[0] * parts[1], _MOST)
    if value.op == "and":
        return max(parts)
    if value.op in ("add", "sub", "or", "xor"):
        return min(parts)
    return parts[0] if value.op in ("sext", "zext", "trunc") else 1


def _low_bit(number: int) -> int:
    return min(number & -number, _MOST) if number else _MOST
