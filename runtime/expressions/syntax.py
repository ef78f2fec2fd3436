"""The syntax tree of an expression."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Span:
    """A place in the text: line and column from 1, and how many characters from there on."""

    line: int
    column: int
    length: int


@dataclass(frozen=True)
class Node:
    """Something with a value, and where it is written. `depth` counts the nodes down to the deepest below."""

    span: Span
    depth: int = field(init=False, default=1)

    def parts(self) -> tuple[Node, ...]:
        """The nodes that its value is made of, in the order in which they are evaluated."""
        return ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", 1 + max((part.depth for part in self.parts()), default=0))


@dataclass(frozen=True)
class Number(Node):
    """A whole number of 32 bits, signed."""

    value: int


@dataclass(frozen=True)
class Name(Node):
    """A name that an assignment bound."""

    name: str


@dataclass(frozen=True)
class Array(Node):
    """A vector of numbers, or a matrix of its rows."""

    items: tuple[Node, ...]

    def parts(self) -> tuple[Node, ...]:
        return self.items


@dataclass(frozen=True)
class Call(Node):
    """A function or an operator: the name it has in the tables, and its arguments."""

    name: str
    arguments: tuple[Node, ...]
    keywords: tuple[tuple[str, Node], ...] = ()
    operator: bool = False

    def parts(self) -> tuple[Node, ...]:
        return (*self.arguments, *(value for _, value in self.keywords))


@dataclass(frozen=True)
class Member(Call):
    """A function that is written behind its operand: `x.T`, or `x.sum` before it is called."""


@dataclass(frozen=True)
class Index(Node):
    """An element of a vector, a row of a matrix, or several by a vector of places."""

    base: Node
    place: Node

    def parts(self) -> tuple[Node, ...]:
        return (self.base, self.place)


@dataclass(frozen=True)
class Slice(Node):
    """The elements or rows from one place to before another; None is the beginning, or the end."""

    base: Node
    start: Node | None
    stop: Node | None

    def parts(self) -> tuple[Node, ...]:
        return tuple(one for one in (self.base, self.start, self.stop) if one is not None)


@dataclass(frozen=True)
class Statement:
    """A value, and the name that it is given, if any."""

    name: str | None
    value: Node
