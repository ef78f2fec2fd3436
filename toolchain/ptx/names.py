"""What a name in a kernel's body stands for: registers, variables, parameters, functions, by scope."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from qgpu.toolchain.ptx import ast

_BITS = re.compile(r"\d+")


@dataclass(frozen=True, eq=False)
class Register:
    """A declared register; two registers of one name in different scopes are different.

    `initial` is what it holds before anything was written to it; None where that may be any value.
    """

    name: str
    type: str
    initial: int | None = None

    @property
    def width(self) -> int:
        """Bits; a predicate has one."""
        return type_width(self.type)


@dataclass(eq=False)
class Passed:
    """A piece of parameter memory: what a kernel, a call or a return gets.

    `size` and `align` are in bytes. `kernel` is the parameter where it is a kernel's, `array` the local array
    that holds it where its address is used as a number; else it lives in registers.
    """

    name: str
    size: int
    align: int
    kernel: ast.Parameter | None = None
    array: ast.Variable | None = None

    @classmethod
    def declared(cls, parameter: ast.Parameter | ast.CallParameter) -> "Passed":
        """The memory of a declaration; of a kernel's, `kernel` is still to be set."""
        vector = parameter.vector if isinstance(parameter, ast.Parameter) else None
        size = byte_size(parameter.type, parameter.extents, vector)
        return cls(parameter.name, size, parameter.align or byte_size(parameter.type, (), vector))


Meaning = Register | ast.Variable | Passed | ast.Function | ast.Targets


@dataclass(eq=False)
class Scope:
    """The names declared between a pair of braces, over those around it."""

    parent: "Scope | None" = None
    meanings: dict[str, Meaning] = field(default_factory=dict)
    ranges: dict[str, tuple[str, int]] = field(default_factory=dict)

    def declare(self, statement: ast.Registers) -> None:
        for range_ in statement.ranges:
            if statement.vector is not None:
                for name in _components(range_.name, statement.vector):
                    self.meanings[name] = Register(name, statement.type)
            elif range_.count is None:
                self.meanings[range_.name] = Register(range_.name, statement.type)
            else:
                self.ranges[range_.name] = statement.type, range_.count

    def lookup(self, name: str) -> Meaning | None:
        """The meaning of a name, or None where nothing declares it.

        Parameter memory that lies in an array is that array.
        """
        found = self._find(name)
        return found.array if isinstance(found, Passed) and found.array is not None else found

    def _find(self, name: str) -> Meaning | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.meanings.get(name) or scope._from_range(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def register(self, name: str) -> Register | None:
        found = self.lookup(name)
        return found if isinstance(found, Register) else None

    def passed(self, name: str) -> Passed | None:
        """The parameter memory of a name, wherever it lies."""
        found = self._find(name)
        return found if isinstance(found, Passed) else None

    def _from_range(self, name: str) -> Register | None:
        """The register of a range such as `%r<4>`, made when it is first named."""
        for prefix, number in _splits(name) if self.ranges else ():
            type_, count = self.ranges.get(prefix, ("", 0))
            if int(number) < count:
                register = Register(name, type_)
                self.meanings[name] = register
                return register
        return None


def type_width(type_: str) -> int:
    """Bits of a fundamental type: 32 of `s32`, 1 of `pred`."""
    found = _BITS.search(type_)
    return int(found.group()) if found else 1


def is_structure(parameter: ast.Parameter) -> bool:
    """Whether a parameter is passed in parts: an array of bytes, a vector, or wider than a register."""
    return bool(parameter.extents) or parameter.vector is not None or type_width(parameter.type) > 64


def byte_size(type_: str, extents: tuple[int | None, ...], vector: str | None = None) -> int:
    """Bytes of a declaration; 0 where its size is left open."""
    size = max(1, type_width(type_) // 8) * int((vector or "v1")[1:])
    for extent in extents:
        size *= extent or 0
    return size


def _components(name: str, vector: str) -> Iterator[str]:
    """The registers of a vector register: `v.x`, `v.y` and so on."""
    for letter in "xyzw"[: int(vector[1:])]:
        yield f"{name}.{letter}"


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """All ways to read a name as a prefix and a number without leading zeros."""
    digits = len(name) - len(name.rstrip("0123456789"))
    for start in range(len(name) - digits, len(name)):
        if name[start] != "0" or start == len(name) - 1:
            yield name[:start], name[start:]
