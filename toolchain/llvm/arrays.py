"""Global variables and allocas as arrays of the kernel, with their initial bytes."""

from qgpu.ir import Array, Function
from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.constants import AddressInside, initial_bytes
from qgpu.toolchain.llvm.layout import Unsized
from qgpu.toolchain.llvm.module import Module
from qgpu.toolchain.llvm.places import Places

MAX_BYTES = 1 << 24
"""Bytes of the largest variable; no machine has as many."""

_DYNAMIC_ALIGN = 16
"""What dynamic shared memory is aligned to; several arrays of open size are one piece of memory."""

_SPACES = {0: "global", 1: "global", 3: "shared", 4: "const"}


class Arrays:
    """The arrays of one kernel, made when they are first named."""

    def __init__(self, function: Function, module: Module, places: Places) -> None:
        self._function = function
        self._module = module
        self._places = places
        self._arrays: dict[str, Array] = {}
        self._nothing: Array | None = None

    def array(self, variable: ast.Variable) -> Array:
        """The array of a variable; raises DiagnosticError where it has no known initial value."""
        if variable.name not in self._arrays:
            self._arrays[variable.name] = self._add(self._made(variable))
        return self._arrays[variable.name]

    def variable(self, array: str) -> ast.Variable | None:
        """The variable that an array was made of."""
        found = (name for name, made in self._arrays.items() if made.name == array)
        return next((self._module.variables[name] for name in found), None)

    def local(self, name: str, size: int, align: int) -> Array:
        """A new array of the thread's own."""
        return self._add(Array(self._unique(name), "local", size, align))

    def nothing(self) -> Array:
        """An array of one byte, for null pointers."""
        if self._nothing is None:
            self._nothing = self._add(Array(self._unique("null"), "global", 1, 1))
        return self._nothing

    def _add(self, array: Array) -> Array:
        self._function.shared.append(array)
        return array

    def _made(self, variable: ast.Variable) -> Array:
        layout, space = self._module.layout, _SPACES.get(variable.space)
        if space is None:
            raise self._refusal(variable, f"it is in address space {variable.space}")
        try:
            size, align = layout.size(variable.type), layout.align(variable.type)
        except Unsized:
            raise self._refusal(variable, "its type has no size") from None
        if size > MAX_BYTES:
            raise self._refusal(variable, f"it has {size} bytes; at most {MAX_BYTES} are supported")
        align = max(variable.align or align, 0 if size else _DYNAMIC_ALIGN)
        data = b"" if space == "shared" else self._data(variable)
        return Array(self._unique(variable.name), space, size, align, data.rstrip(b"\0"))

    def _data(self, variable: ast.Variable) -> bytes:
        if variable.value is None:
            raise self._refusal(variable, "it is declared here and defined elsewhere")
        try:
            return initial_bytes(variable.type, variable.value, self._module.layout)
        except AddressInside:
            raise self._refusal(
                variable, "its initial value holds an address, which is known at launch alone"
            ) from None

    def _refusal(self, variable: ast.Variable, reason: str):
        message = f"variable '@{variable.name}' cannot be used: {reason}"
        return self._places.entity_error(message, variable.name, "pass a pointer to it instead")

    def _unique(self, name: str) -> str:
        """The name as one of the IR's, which no other array has."""
        wanted = legal_name(name)
        taken = {array.name for array in self._function.shared}
        candidate, number = wanted, 0
        while candidate in taken:
            number += 1
            candidate = f"{wanted}.{number}"
        return candidate


def legal_name(name: str) -> str:
    """A name with only letters, digits, `_`, `$` and `.`."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_$.") else "_" for c in name) or "_"
