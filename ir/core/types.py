"""Types of the SIMT IR: integers of 1 to 64 bits, pointers with an address space, slots, void.

Types are frozen data classes, interned by the constructors here, so that equal types are the same object.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

INTEGER_WIDTHS = (1, 8, 16, 32, 64)
ADDRESS_SPACES = ("global", "shared", "param", "local", "const", "generic")


@dataclass(frozen=True)
class Type:
    """A type of the IR; `str()` gives its textual form."""


@dataclass(frozen=True)
class VoidType(Type):
    """The result type of an instruction that has no result."""

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True)
class IntType(Type):
    """An integer of `width` bits; signedness belongs to the operations."""

    width: int

    def __str__(self) -> str:
        return f"i{self.width}"

    @property
    def bytes(self) -> int:
        """Size in memory, in bytes (an i1 takes one)."""
        return max(1, self.width // 8)

    @property
    def mask(self) -> int:
        """The integer with all `width` bits set."""
        return (1 << self.width) - 1


@dataclass(frozen=True)
class PtrType(Type):
    """A pointer: a pair of a buffer of `space` and a byte offset into it; `generic` means of any space."""

    space: str

    def __str__(self) -> str:
        return f"ptr<{self.space}>"


@dataclass(frozen=True)
class SlotType(Type):
    """A per-lane variable: `set` writes it under the block's guard, `get` reads it."""

    element: Type

    def __str__(self) -> str:
        return f"slot<{self.element}>"


@cache
def integer(width: int) -> IntType:
    """The interned integer type of `width` bits; ValueError for a width the IR does not have."""
    if width not in INTEGER_WIDTHS:
        raise ValueError(f"no integer type of {width} bits")
    return IntType(width)


@cache
def ptr(space: str) -> PtrType:
    """The interned pointer type of an address space; ValueError for an unknown space."""
    if space not in ADDRESS_SPACES:
        raise ValueError(f"no address space '{space}'")
    return PtrType(space)


@cache
def slot(element: Type) -> SlotType:
    """The interned type of a slot that holds an `element` (an integer or a pointer)."""
    if not isinstance(element, IntType | PtrType):
        raise ValueError(f"a slot cannot hold {element}")
    return SlotType(element)


VOID = VoidType()
I1, I8, I16, I32, I64 = (integer(width) for width in INTEGER_WIDTHS)


def parse_type(text: str) -> Type:
    """The type written as `text` (`i32`, `ptr<global>`, `slot<i1>`, `void`); ValueError where it is none."""
    if text == "void":
        return VOID
    if text.startswith("i") and text[1:].isdecimal():
        return integer(int(text[1:]))
    if text.startswith("ptr<") and text.endswith(">"):
        return ptr(text[4:-1])
    if text.startswith("slot<") and text.endswith(">"):
        return slot(parse_type(text[5:-1]))
    raise ValueError(f"no type '{text}'")
