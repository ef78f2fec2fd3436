"""Moves, conversions and addresses (PTX ISA 9.0, section 9.7.9)."""

from qgpu.ir import I1, I32, I64, Constant, IntType, PtrType, Value, integer
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.pointer_rules import convert_address
from qgpu.toolchain.ptx.rule import RESULT, Rule
from qgpu.toolchain.ptx.special_registers import read_special

_SCALAR = r"(?P<type>[bsuf](?:8|16|32|64))"
_INT = r"[su](?:8|16|32|64)"
_SPACE = r"(?P<space>global|shared|local|const|param)(?:::(?:cta|cluster|entry))?"


def _move(x: Emitter) -> None:
    """mov: a copy, or the packing or unpacking of a vector of registers (lowest part first)."""
    type_ = x.type()
    if isinstance(x.operand("a"), ast.Vector):
        x.define(_pack(x, type_))
    elif isinstance(x.operand(RESULT), ast.Vector):
        x.define(*_unpack(x, x.integer("a", type_)))
    else:
        x.define(x.value("a", type_))


def _pack(x: Emitter, type_: IntType) -> Value:
    vector = x.operand("a")
    assert isinstance(vector, ast.Vector)
    part = _part_type(x, type_, len(vector.elements))
    parts = x.elements("a", part)
    if any(value.type is not part for value in parts):
        raise x.refusal(f"the parts have to have {part.width} bits each", "a")
    if part is I32:
        return x.operation("pack", *parts)
    packed = x.resized(parts[0], type_, False)
    for index, value in enumerate(parts[1:], 1):
        amount = Constant(type_, index * part.width)
        packed = x.operation("or", packed, x.operation("shl", x.resized(value, type_, False), amount))
    return packed


def _part_type(x: Emitter, whole: IntType, count: int) -> IntType:
    """The type of each of `count` equal parts."""
    width = whole.width // count
    if count not in (2, 4) or width < 8:
        raise x.refusal(f"{whole.width} bits do not split into {count} parts")
    return integer(width)


def _unpack(x: Emitter, value: Value) -> list[Value]:
    results = list(x.results())
    assert isinstance(value.type, IntType)
    part = _part_type(x, value.type, len(results))
    if part is I32:
        return [x.resized(value, part, False), x.operation("high", value)]
    amounts = (Constant(value.type, index * part.width) for index in range(len(results)))
    shifted = (x.operation("lshr", value, amount) if amount.value else value for amount in amounts)
    return [x.resized(low, part, False) for low in shifted]


def _move_elements(x: Emitter) -> None:
    """mov of a vector: one register each. The vector may be a special register such as %tid."""
    operand = x.operand("a")
    special = operand.text if isinstance(operand, ast.Name) else ""
    parts = [read_special(x, f"{special}.{axis}") for axis in "xyzw"]
    values = [part for part in parts if part is not None] or x.elements("a", x.type())
    if any(value.type is not x.type() for value in values):
        raise x.refusal(f"the elements have to have {x.type().width} bits each", "a")
    x.define(*values)


def _move_predicate(x: Emitter) -> None:
    x.define(x.predicate("a"))


def _convert(x: Emitter) -> None:
    """cvt: the low bits of the source, extended by the source's sign and again to the register by the
    target's. With `.sat`, limited to the target's numbers."""
    source, target = x.type("from"), x.type("to")
    (value,) = x.elements("a", source)
    low = x.resized(value, source, False)
    if x.form["saturate"]:
        low = _clamped(x, low, x.form["from"] or "", x.form["to"] or "")
    converted = x.resized(low, target, x.signed("from"))
    (result,) = x.results()
    x.define(x.resized(converted, result[1], x.signed("to")) if result else converted)


def _limits(type_name: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer type."""
    width = int(type_name[1:])
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if type_name[0] == "s" else (0, (1 << width) - 1)


def _clamped(x: Emitter, value: Value, source: str, target: str) -> Value:
    """A number of the source type, limited to what the target type holds."""
    (least, most), (lowest, highest) = _limits(source), _limits(target)
    type_ = integer(int(source[1:]))
    if lowest > least:
        value = x.operation("smax", value, Constant(type_, lowest))
    if highest < most:
        value = x.operation("smin" if source[0] == "s" else "umin", value, Constant(type_, highest))
    return value


def _convert_packed(x: Emitter) -> None:
    """cvt.pack: two numbers, limited to the width of a field, become the lowest fields of the word.

    The fields of the third operand, where there is one, move up to make room.
    """
    field = x.form["to"] or ""
    width = int(field[1:])
    mask = Constant(I32, (1 << width) - 1)
    high, low = (x.operation("and", _clamped(x, x.integer(role, I32), "s32", field), mask) for role in "ab")
    pair = x.operation("or", x.operation("shl", high, Constant(I32, width)), low)
    if x.has("c"):
        rest = x.operation("shl", x.integer("c", I32), Constant(I32, 2 * width))
        pair = x.operation("or", pair, rest)
    x.define(pair)


def _is_in_space(x: Emitter) -> None:
    """isspacep: a pointer's state space is known."""
    pointer = x.value("a", I64)
    if not isinstance(pointer.type, PtrType):
        raise x.no_address("a")
    if pointer.type.space == "generic":
        raise x.refusal("which memory the address points to is not known before the kernel runs", "a")
    x.define(Constant(I1, pointer.type.space == x.form["space"]))


RULES = [
    Rule("mov", r"(?P<type>[bsuf](?:16|32|64))", "d a", _move, "a"),
    Rule("mov", "pred", "d a", _move_predicate),
    Rule("mov", rf"v[24]\.{_SCALAR}", "d a", _move_elements, "a"),
    Rule("cvt", rf"(?P<saturate>sat\.)?(?P<to>{_INT})\.(?P<from>{_INT})", "d a", _convert, "a"),
    Rule("cvt", r"pack\.sat\.(?P<to>[su]16)\.s32", "d a b", _convert_packed),
    Rule("cvt", r"pack\.sat\.(?P<to>[su][248])\.s32\.b32", "d a b c", _convert_packed),
    Rule("cvta", rf"(?:to\.)?{_SPACE}\.u(?:32|64)", "d a", convert_address, "a"),
    Rule("isspacep", _SPACE, "d a", _is_in_space),
]
