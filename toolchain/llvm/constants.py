"""Floating-point literals as bits, and initial values of variables as bytes."""

import struct

from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.layout import Layout

_FORMS = {16: ">e", 32: ">f", 64: ">d"}


def float_bits(text: str, width: int) -> int:
    """The bits of a literal, a decimal number or the bits of a double (LangRef, simple constants)."""
    if text.startswith("0x") and text[2:3] in "HR":
        return int(text[3:], 16)
    if text.startswith("0x"):
        (number,) = struct.unpack(">d", int(text[2:], 16).to_bytes(8))
    else:
        number = float(text)
    return int.from_bytes(struct.pack(_FORMS[width], number))


class AddressInside(Exception):
    """An initial value that holds an address."""


def initial_bytes(type_: ast.Type, value: ast.Value, layout: Layout) -> bytes:
    """The bytes of a constant in memory; raises AddressInside."""
    size = layout.size(type_)
    if isinstance(value, ast.Zero | ast.Undefined):
        return bytes(size)
    if isinstance(value, ast.Bytes):
        return value.data.ljust(size, b"\0")
    members = layout.members(type_)
    if members:
        return _joined(members, value, layout).ljust(size, b"\0")
    resolved = layout.resolved(type_)
    if isinstance(value, ast.Number):
        width = 8 * layout.store_size(resolved)
        return (value.number & ((1 << width) - 1)).to_bytes(width // 8, "little").ljust(size, b"\0")
    if isinstance(value, ast.FloatLiteral):
        width = 8 * layout.store_size(resolved)
        return float_bits(value.text, width).to_bytes(width // 8, "little")
    raise AddressInside


def _joined(members: list[tuple[int, ast.Type]], value: ast.Value, layout: Layout) -> bytes:
    if isinstance(value, ast.Splat):
        values = [value.member.value] * len(members)
    elif isinstance(value, ast.Aggregate):
        values = [member.value for member in value.members]
    else:
        raise AddressInside
    data = b""
    for (offset, type_), member in zip(members, values, strict=True):
        data = data.ljust(offset, b"\0") + initial_bytes(type_, member, layout)
    return data
