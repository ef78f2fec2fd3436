"""Arithmetic, comparisons, casts and choices (LangRef: binary, bitwise, conversion and other operations)."""

from collections.abc import Callable

from qgpu.ir import Constant, IntType, PtrType, Value
from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.address_rules import (
    address_arithmetic,
    compare_addresses,
    low_bits,
    pointer_of_number,
)
from qgpu.toolchain.llvm.emitter import Emitter, Item, mapped

_SIGNED = ("sdiv", "srem", "ashr")
_WRAPS = ("add", "sub", "mul", "shl", "sdiv", "srem", "ashr")
_FLOAT_CASTS = ("fptoui", "fptosi", "uitofp", "sitofp", "fptrunc", "fpext")


def element_type(x: Emitter, type_: ast.Type) -> ast.Type:
    """The type of a vector's elements; another type itself."""
    resolved = x.layout.resolved(type_)
    return resolved.element if isinstance(resolved, ast.Array) else resolved


def _binary(x: Emitter, i: ast.Instruction) -> Item:
    a, b = x.operand(0), x.operand(1)
    width = x.width(element_type(x, i.operands[0].type))
    return mapped(lambda a, b: binary(x, i.opcode, a, b, width), a, b)


def binary(x: Emitter, opcode: str, a: Value, b: Value, width: int) -> Value:
    """An operation on two numbers of `width` bits."""
    if isinstance(a.type, PtrType) or isinstance(b.type, PtrType):
        return address_arithmetic(x, opcode, a, b)
    if opcode in _SIGNED:
        a = x.signed(a, width)
        b = b if opcode == "ashr" else x.signed(b, width)
    result = x.operation(opcode, a, b)
    return x.wrapped(result, width) if opcode in _WRAPS else result


def _compare(x: Emitter, i: ast.Instruction) -> Item:
    a, b, predicate = x.operand(0), x.operand(1), i.flags[-1]
    type_ = element_type(x, i.operands[0].type)
    return mapped(lambda a, b: compare(x, predicate, a, b, type_), a, b)


def compare(x: Emitter, predicate: str, a: Value, b: Value, type_: ast.Type) -> Value:
    """icmp of two numbers or two pointers."""
    if isinstance(a.type, PtrType) or isinstance(b.type, PtrType):
        return compare_addresses(x, predicate, a, b)
    if predicate.startswith("s"):
        width = x.width(type_)
        a, b = x.signed(a, width), x.signed(b, width)
    return x.compare(predicate, a, b)


def _select(x: Emitter, i: ast.Instruction) -> Item:
    condition, a, b = (x.item(operand) for operand in i.operands)
    if isinstance(condition, tuple):
        return mapped(x.choose, condition, a, b)
    return mapped(lambda a, b: x.choose(condition, a, b), a, b)


def _freeze(x: Emitter, i: ast.Instruction) -> Item:
    return x.operand(0)


def _cast(x: Emitter, i: ast.Instruction) -> Item:
    if i.opcode in _FLOAT_CASTS:
        raise x.unsupported("it needs floating-point arithmetic", FLOAT_HINT)
    assert i.type is not None
    source, target = element_type(x, i.operands[0].type), element_type(x, i.type)
    return mapped(lambda value: _cast_one(x, i.opcode, value, source, target), x.operand(0))


FLOAT_HINT = "the machine computes with integers: use fixed point"


def _cast_one(x: Emitter, opcode: str, value: Value, source: ast.Type, target: ast.Type) -> Value:
    type_ = x.held(target)
    if isinstance(value.type, PtrType):
        return low_bits(x, value, type_)
    before, after = x.width(source), x.width(target)
    if opcode != "sext":
        return x.wrapped(x.resized(value, type_), after)
    wide = x.resized(x.signed(value, before), type_, signed=True)
    return x.wrapped(wide, after)


def _pointer_to_number(x: Emitter, i: ast.Instruction) -> Item:
    """ptrtoint: the number stays the pointer, which what computes with it has to take."""
    assert i.type is not None
    value, width = x.scalar(i.operands[0]), x.width(i.type)
    if not isinstance(value.type, PtrType):
        return value
    return value if width in (32, 64) else low_bits(x, value, x.held(i.type))


def _number_to_pointer(x: Emitter, i: ast.Instruction) -> Item:
    return pointer_of_number(x, x.scalar(i.operands[0]))


def _change_space(x: Emitter, i: ast.Instruction) -> Item:
    """addrspacecast: the same pointer; what it points to keeps its memory."""
    return x.pointer(i.operands[0])


def bits_of(x: Emitter, value: Item, type_: ast.Type) -> tuple[Value, int]:
    """The bits of a number or of a vector of numbers, lowest element first, and how many they are."""
    if not isinstance(value, tuple):
        if isinstance(value.type, PtrType):
            raise x.unsupported("a pointer is taken apart: pass it on as a whole")
        return value, x.width(type_)
    width = x.width(element_type(x, type_))
    total = width * len(value)
    held = x.held(ast.Integer(total))
    whole: Value = Constant(held, 0)
    for index, element in enumerate(value):
        assert isinstance(element, Value)
        moved = x.operation("shl", x.resized(element, held), Constant(held, index * width))
        whole = x.operation("or", whole, moved)
    return whole, total


def _same_bits(x: Emitter, i: ast.Instruction) -> Item:
    """bitcast: numbers and vectors by their bits."""
    assert i.type is not None
    value, source, target = x.operand(0), i.operands[0].type, i.type
    if x.layout.resolved(source) == x.layout.resolved(target) or _is_single_pointer(value):
        return value
    old, new = element_type(x, source), element_type(x, target)
    if isinstance(value, tuple) and x.layout.is_aggregate(target) and x.width(old) == x.width(new):
        return value
    whole, total = bits_of(x, value, source)
    if not x.layout.is_aggregate(target):
        return whole
    width = x.width(new)
    assert isinstance(whole.type, IntType)
    parts = (x.operation("lshr", whole, Constant(whole.type, at)) for at in range(0, total, width))
    return tuple(x.wrapped(x.resized(part, x.held(new)), width) for part in parts)


def _is_single_pointer(value: Item) -> bool:
    return isinstance(value, Value) and isinstance(value.type, PtrType)


_Rule = Callable[[Emitter, ast.Instruction], Item]
_BINARY = ["add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor"]
RULES: dict[str, _Rule] = {
    **dict.fromkeys(_BINARY, _binary),
    "icmp": _compare,
    "select": _select,
    "freeze": _freeze,
    **dict.fromkeys(("trunc", "zext", "sext", *_FLOAT_CASTS), _cast),
    "ptrtoint": _pointer_to_number,
    "ptrtoaddr": _pointer_to_number,
    "inttoptr": _number_to_pointer,
    "addrspacecast": _change_space,
    "bitcast": _same_bits,
}
