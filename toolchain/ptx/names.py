"""What a name in a kernel's body stands for: registers, variables, parameters, labels, by scope."""

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


Meaning = Register | ast.Variable | ast.Parameter | ast.Function


@dataclass
class Scope:
    """The names declared between a pair of braces, over those around it."""

    parent: "Scope | None" = None
    meanings: dict[str, Meaning] = field(default_factory=dict)
    ranges: dict[str, tuple[str, int]] = field(default_factory=dict)

    def declare(self, statement: ast.Registers) -> None:
        for range_ in statement.ranges:
            if range_.count is None:
                self.meanings[range_.name] = Register(range_.name, statement.type)
            else:
                self.ranges[range_.name] = statement.type, range_.count

    def lookup(self, name: str) -> Meaning | None:
        """The meaning of a name, or None where nothing declares it."""
        found = self.meanings.get(name) or self._from_range(name)
        if found is None and self.parent is not None:
            return self.parent.lookup(name)
        return found

    def register(self, name: str) -> Register | None:
        found = self.lookup(name)
        return found if isinstance(found, Register) else None

    def _from_range(self, name: str) -> Register | None:
        """The register of a range such as `%r<4>`, made when it is first named."""
        for prefix, number in _splits(name):
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


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """All ways to read a name as a prefix and a number without leading zeros."""
    digits = len(name) - len(name.rstrip("0123456789"))
    for start in range(len(name) - digits, len(name)):
        if name[start] != "0" or start == len(name) - 1:
            yield name[:start], name[start:]
