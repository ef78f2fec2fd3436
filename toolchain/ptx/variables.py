"""Variables of shared, local, global and constant memory as arrays, with their initial bytes."""

import struct
from collections.abc import Callable

from qgpu.ir import Array, Builder, Function, Value
from qgpu.toolchain.diagnostics import note
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.names import Scope, byte_size, type_width
from qgpu.toolchain.ptx.places import Places

SPACES = ("shared", "local", "global", "const")

_DYNAMIC_ALIGN = 16
"""What dynamic shared memory is aligned to; several arrays of open size are one piece of memory."""

MAX_BYTES = 1 << 24
"""Bytes of the largest variable; no machine has as many."""


class Arrays:
    """The arrays of one function, made from variables when they are first named."""

    def __init__(
        self, function: Function, scope: Scope, address: Callable[[ast.Function], int], places: Places
    ) -> None:
        self._function = function
        self._scope = scope
        self._address = address
        self._places = places
        self._arrays: dict[int, tuple[ast.Variable, Array]] = {}

    def array(self, variable: ast.Variable) -> Array:
        """The array of a variable. Raises DiagnosticError where it has no known initial value."""
        if id(variable) not in self._arrays:
            array = self._make(variable)
            self._arrays[id(variable)] = variable, array
            self._function.shared.append(array)
        return self._arrays[id(variable)][1]

    def constant_bytes(self, variable: ast.Variable) -> bytes | None:
        """The initial bytes of a variable of global or constant memory, all of them; None of another."""
        if variable.space not in ("global", "const") or variable.initializer is None:
            return None
        extents = self._extents(variable)
        return bytes(_Bytes(variable, self._scope, self._address, self._places).fill(extents))

    def nothing(self, builder: Builder) -> Value:
        """The address of a global array of one byte, for a null pointer that could point to nothing else."""
        array = Array("null", "global", 1, 1)
        if array not in self._function.shared:
            self._function.shared.append(array)
        return builder.addrof(array.name, array.space)

    def _make(self, variable: ast.Variable) -> Array:
        self._check(variable)
        element = byte_size(variable.type, (), variable.vector)
        extents = self._extents(variable)
        size = element
        for extent in extents:
            size *= extent
        if size > MAX_BYTES:
            raise self._refusal(variable, f"it has {size} bytes; at most {MAX_BYTES} are supported")
        align = max(variable.align or element, 0 if size else _DYNAMIC_ALIGN)
        data = b""
        if variable.initializer is not None:
            data = bytes(_Bytes(variable, self._scope, self._address, self._places).fill(extents))
        return Array(self._name(variable), variable.space, size, align, data.rstrip(b"\0"))

    def _check(self, variable: ast.Variable) -> None:
        if variable.space not in SPACES:
            raise self._refusal(variable, f"it is in {variable.space} memory")
        if variable.type in ("texref", "samplerref", "surfref"):
            raise self._refusal(variable, "it needs texture or surface memory")
        if variable.linkage == "extern" and variable.space in ("global", "const"):
            raise self._refusal(variable, "it is declared here and defined elsewhere")

    def _extents(self, variable: ast.Variable) -> list[int]:
        """The dimensions; one that is left open is as long as the initial value, or 0."""
        first = len(variable.initializer.values) if isinstance(variable.initializer, ast.Aggregate) else 0
        return [first if extent is None else extent for extent in variable.extents]

    def _name(self, variable: ast.Variable) -> str:
        """The variable's name as one of the IR's, which no other array has."""
        name = wanted = array_name(variable)
        taken = {array.name for array in self._function.shared}
        number = 0
        while name in taken:
            number += 1
            name = f"{wanted}.{number}"
        return name

    def _refusal(self, variable: ast.Variable, reason: str):
        message = f"variable '{variable.name}' cannot be used: {reason}"
        return self._places.error(message, variable.position, None, note("pass a pointer to it instead"))


def array_name(variable: ast.Variable) -> str:
    """The name of a variable's array where no other has that name."""
    return variable.name.replace("%", "$")


class _Bytes:
    """The initial bytes of one variable."""

    def __init__(
        self,
        variable: ast.Variable,
        scope: Scope,
        address: Callable[[ast.Function], int],
        places: Places,
    ) -> None:
        self._variable = variable
        self._scope = scope
        self._address = address
        self._places = places
        self._width = byte_size(variable.type, ())

    def fill(self, extents: list[int]) -> bytearray:
        """The bytes of an array with these dimensions; what the initial value leaves out is zero."""
        lanes = int((self._variable.vector or "v1")[1:])
        shape = [*extents, lanes] if lanes > 1 else extents
        value = self._variable.initializer
        assert value is not None
        return self._part(value, shape)

    def _part(self, value: ast.Initializer, shape: list[int]) -> bytearray:
        if not isinstance(value, ast.Aggregate):
            number = self._number(value) & ((1 << 8 * self._width) - 1)
            return bytearray(number.to_bytes(self._width, "little"))
        inner = shape[1:]
        stride = self._width
        for extent in inner:
            stride *= extent
        flat = inner and not any(map(_is_list, value.values))
        step = self._width if flat else stride
        parts = bytearray()
        for part in value.values:
            parts += self._part(part, [] if flat else inner).ljust(step, b"\0")
        size = stride * (shape[0] if shape else 1)
        if len(parts) > size:
            raise self._refusal(f"its initial value has {len(parts)} bytes where it has {size}")
        return parts.ljust(size, b"\0")

    def _number(self, value: ast.Initializer) -> int:
        if isinstance(value, ast.Integer):
            return value.value
        if isinstance(value, ast.Float):
            return self._float(value)
        if isinstance(value, ast.Masked):
            return self._masked(value)
        if isinstance(value, ast.Name):
            function = self._scope.lookup(value.text)
            if isinstance(function, ast.Function):
                return self._address(function)
        raise self._refusal(f"its initial value holds the address '{value}', which is known at launch alone")

    def _masked(self, value: ast.Masked) -> int:
        """One byte of an address, the one under the mask's bits."""
        number, low = self._number(value.address), (value.mask & -value.mask).bit_length() - 1
        return (number & value.mask) >> low if value.mask else 0

    def _float(self, value: ast.Float) -> int:
        """The bits of a literal, rounded to the variable's type."""
        kind, width = value.text[:2].lower(), type_width(self._variable.type)
        if (kind, width) in (("0f", 32), ("0d", 64)):
            return value.bits
        if kind not in ("0f", "0d"):
            number = float(value.text)
        else:
            form = ">f" if kind == "0f" else ">d"
            (number,) = struct.unpack(form, value.bits.to_bytes(struct.calcsize(form)))
        form = {16: ">e", 32: ">f"}.get(width, ">d")
        return int.from_bytes(struct.pack(form, number))

    def _refusal(self, reason: str):
        message = f"variable '{self._variable.name}' cannot be used: {reason}"
        return self._places.error(message, self._variable.position)


def _is_list(value: ast.Initializer) -> bool:
    return isinstance(value, ast.Aggregate)
