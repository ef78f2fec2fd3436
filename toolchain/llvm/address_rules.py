"""Numbers that are pointers: what ptrtoint gave, and what is computed from it.

A pointer is a buffer and an offset. Numbers can be added to it; two pointers into one buffer can be
subtracted and compared; and what depends on the address modulo 2^LOW_BITS alone can be computed, as
alignment checks do.
"""

from qgpu.ir import I1, I64, Constant, IntType, PtrType, Value
from qgpu.toolchain.llvm.emitter import GENERIC, Emitter

LOW_BITS = 8
"""An address modulo 2^LOW_BITS is that of the offset: buffers and arrays are aligned to as much."""

_HINT = "an address has no number here: compute with indices, and add them to the pointer last"


def address_arithmetic(x: Emitter, opcode: str, a: Value, b: Value) -> Value:
    """A binary operation of which one operand or both are pointers."""
    both = isinstance(a.type, PtrType) and isinstance(b.type, PtrType)
    if opcode == "sub" and both:
        return x.builder.emit("ptrdiff", a, b)
    if opcode == "sub" and isinstance(a.type, PtrType):
        return moved(x, a, x.operation("sub", Constant(_number(b), 0), b))
    if opcode == "add" and not both:
        return moved(x, a, b) if isinstance(a.type, PtrType) else moved(x, b, a)
    pointer, number = (a, b) if isinstance(a.type, PtrType) else (b, a)
    if isinstance(number, Constant) and not both:
        return _masked(x, opcode, pointer, number)
    raise x.refusal("an address is used as a number", _HINT)


def _masked(x: Emitter, opcode: str, pointer: Value, number: Constant) -> Value:
    """Low bits of an address, or the address aligned."""
    if opcode == "urem" and number.value and not number.value & (number.value - 1):
        opcode, number = "and", Constant(number.type, number.value - 1)
    if opcode == "and" and number.value < 1 << LOW_BITS:
        return _low(x, pointer, number)
    below = ~number.signed
    if opcode == "and" and 0 <= below < 1 << LOW_BITS and not below & (below + 1):
        low = _low(x, pointer, Constant(I64, below))
        return x.builder.ptradd(pointer, x.operation("sub", Constant(I64, 0), low))
    raise x.refusal("an address is used as a number", _HINT)


def _low(x: Emitter, pointer: Value, mask: Constant) -> Value:
    low = x.operation("and", x.builder.emit("ptrtoint", pointer), Constant(I64, mask.value))
    return x.resized(low, mask.type)


def _number(value: Value) -> IntType:
    assert isinstance(value.type, IntType)
    return value.type


def moved(x: Emitter, pointer: Value, index: Value, scale: int = 1) -> Value:
    """A pointer moved by a number of elements of `scale` bytes."""
    if isinstance(index, Constant):
        return x.displaced(pointer, index.signed * scale)
    return x.builder.ptradd(pointer, index, scale)


def low_bits(x: Emitter, pointer: Value, type_: IntType) -> Value:
    """An address as a narrower number, of which no more than LOW_BITS are known."""
    if type_.width > LOW_BITS:
        if type_.width >= 32:
            return pointer
        raise x.refusal("an address is used as a number", _HINT)
    return x.resized(x.builder.emit("ptrtoint", pointer), type_)


def pointer_of_number(x: Emitter, value: Value) -> Value:
    """inttoptr: what came from a pointer is that pointer again, and 0 the null pointer."""
    if isinstance(value.type, PtrType):
        return value
    if isinstance(value, Constant) and value.value == 0:
        return x.null()
    raise x.refusal("a number becomes a pointer", "addresses come from parameters, arrays and getelementptr")


def compare_addresses(x: Emitter, predicate: str, a: Value, b: Value) -> Value:
    """icmp of pointers; a parameter or an array is never null, and a number is only compared if it is 0."""
    a, b = _as_pointer(x, a), _as_pointer(x, b)
    null = x.null() if x.is_null(a) or x.is_null(b) else None
    other = b if null is a else a
    if null is not None and predicate in ("eq", "ne") and _is_certain(other):
        return Constant(I1, int(predicate == "ne"))
    if predicate.startswith("s"):
        raise x.refusal("addresses are compared as signed numbers", "compare them as unsigned ones")
    if a.type is not b.type:
        a, b = x.as_generic(a), x.as_generic(b)
    return x.compare(predicate, a, b)


def _as_pointer(x: Emitter, value: Value) -> Value:
    if isinstance(value.type, PtrType):
        return value
    if isinstance(value, Constant) and value.value == 0:
        return x.null()
    raise x.refusal("an address is compared with a number", _HINT)


def _is_certain(value: Value) -> bool:
    """Whether a pointer is known to point into a buffer: its memory is known, which no null pointer's is."""
    return isinstance(value.type, PtrType) and value.type.space != GENERIC
