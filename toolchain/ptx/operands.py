"""The operands of PTX instructions, as parts of the syntax tree."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Position:
    """A place in the PTX text, counted from 1, and the number of characters there."""

    line: int
    column: int
    length: int = 1


@dataclass(frozen=True, kw_only=True)
class Node:
    """A part of the tree that diagnostics can point at."""

    position: Position = field(compare=False, repr=False)


@dataclass(frozen=True)
class Name(Node):
    """A register, special register, variable, parameter, label or function, as written."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Integer(Node):
    """An integer constant; negative where it was written with a sign. A constant expression is its value."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Float(Node):
    """A floating-point constant by its bits: `0f` and 8, or `0d` and 16 hexadecimal digits.

    A decimal literal is a double (PTX ISA 4.5.2), and so is an expression of such.
    """

    text: str

    @property
    def bits(self) -> int:
        return int(self.text[2:], 16)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Offset(Node):
    """`name+immediate`."""

    base: Name
    offset: int

    def __str__(self) -> str:
        return f"{self.base}+{self.offset}"


@dataclass(frozen=True)
class Element(Node):
    """`array[index]`: an element of a declared array; the index counts elements."""

    base: Name
    index: Name | Integer | Offset

    def __str__(self) -> str:
        return f"{self.base}[{self.index}]"


@dataclass(frozen=True)
class Memory(Node):
    """`[address]`; of a texture, surface or tensor also what follows: `[texture, sampler, {x, y}]`."""

    base: Name | Integer
    offset: int
    indices: tuple["Operand", ...] = ()

    def __str__(self) -> str:
        address = f"{self.base}+{self.offset}" if self.offset else f"{self.base}"
        return f"[{', '.join((address, *map(str, self.indices)))}]"


@dataclass(frozen=True)
class Vector(Node):
    """`{a, b}`."""

    elements: tuple["Operand", ...]

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.elements))}}}"


@dataclass(frozen=True)
class Group:
    """`(a, b)`: the arguments or results of a call; its parts know their places."""

    elements: tuple["Operand", ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elements))})"


@dataclass(frozen=True)
class Pair(Node):
    """`p|q`: a result and a second one; the sink `_` stands for a result that is dropped."""

    first: "Name | Vector"
    second: Name

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True)
class Negated(Node):
    """`!p`: a predicate operand taken negated."""

    operand: Name

    def __str__(self) -> str:
        return f"!{self.operand}"


@dataclass(frozen=True)
class Minus(Node):
    """`-r`: an operand of a video instruction taken negative."""

    operand: Name

    def __str__(self) -> str:
        return f"-{self.operand}"


Operand = Name | Integer | Float | Offset | Element | Memory | Vector | Group | Pair | Negated | Minus
