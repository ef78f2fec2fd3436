"""The syntax tree of a PTX module.

Positions do not take part in comparisons: two trees are equal where their texts mean the same.
"""

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
    """An integer literal; negative where it was written with a sign."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Float(Node):
    """A floating-point literal by its bits: `0f` and 8, or `0d` and 16 hexadecimal digits."""

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
class Memory(Node):
    """`[address]`."""

    base: Name | Integer
    offset: int

    def __str__(self) -> str:
        return f"[{self.base}+{self.offset}]" if self.offset else f"[{self.base}]"


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
    """`p|q`: a result and a second one."""

    first: Name
    second: Name

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True)
class Negated(Node):
    """`!p`: a predicate operand taken negated."""

    operand: Name

    def __str__(self) -> str:
        return f"!{self.operand}"


Operand = Name | Integer | Float | Offset | Memory | Vector | Group | Pair | Negated


@dataclass(frozen=True)
class SourceLine:
    """What a `.loc` says: a line of the file with that number, and what it was inlined at."""

    file: int
    line: int
    column: int
    inlined_at: tuple[int, int, int] | None = None
    inlined_name: str = ""


@dataclass(frozen=True)
class Guard:
    """`@p` or `@!p`."""

    predicate: Name
    negated: bool


@dataclass(frozen=True)
class Instruction(Node):
    """`@guard opcode.modifiers operands;`."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None

    @property
    def name(self) -> str:
        """The opcode with its modifiers, as written."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True)
class Label(Node):
    name: str


@dataclass(frozen=True)
class RegisterRange:
    """`%r<4>` declares %r0 to %r3; without a count it declares the one register of that name."""

    name: str
    count: int | None = None

    def __str__(self) -> str:
        return self.name if self.count is None else f"{self.name}<{self.count}>"


@dataclass(frozen=True)
class Registers(Node):
    """`.reg .b32 %r<4>;`."""

    type: str
    ranges: tuple[RegisterRange, ...]
    vector: str | None = None


@dataclass(frozen=True)
class Variable(Node):
    """A variable in a state space; `extents` of an array, None where the size is left open."""

    space: str
    type: str
    name: str
    extents: tuple[int | None, ...] = ()
    align: int | None = None
    vector: str | None = None
    linkage: str | None = None
    initializer: "Operand | Aggregate | None" = None


@dataclass(frozen=True)
class Aggregate:
    """`{1, 2}` or `{{1}, {2}}`: the initial value of an array."""

    values: "tuple[Operand | Aggregate, ...]"

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.values))}}}"


@dataclass(frozen=True)
class CallParameter(Node):
    """A `.param` variable in a body, which carries an argument or result of a call."""

    type: str
    name: str
    extents: tuple[int | None, ...] = ()
    align: int | None = None


@dataclass(frozen=True)
class Pragma:
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Targets(Node):
    """`.branchtargets a, b`, `.calltargets` or `.callprototype`, as written."""

    text: str


@dataclass(frozen=True)
class Body:
    """`{ ... }`: a kernel's body, or a scope in one."""

    statements: tuple["Statement", ...]


Statement = Registers | Variable | CallParameter | SourceLine | Pragma | Label | Body | Targets | Instruction


@dataclass(frozen=True)
class Pointee:
    """What a `.ptr` parameter points to; a space of None is the generic one."""

    space: str | None = None
    align: int | None = None


@dataclass(frozen=True)
class Parameter(Node):
    """A parameter of a kernel or function; `extents` where it is an array (a structure is one of bytes)."""

    type: str
    name: str
    extents: tuple[int | None, ...] = ()
    align: int | None = None
    pointee: Pointee | None = None


Performance = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Entry(Node):
    """A kernel. `performance` holds directives such as `("maxntid", (128, 1, 1))`."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Body
    performance: tuple[Performance, ...] = ()
    linkage: str | None = None


@dataclass(frozen=True)
class Function(Node):
    """A device function; `body` is None where it is only declared."""

    name: str
    results: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    body: Body | None
    performance: tuple[Performance, ...] = ()
    linkage: str | None = None


@dataclass(frozen=True)
class File:
    """`.file number "path"`."""

    number: int
    path: str


@dataclass(frozen=True)
class Section:
    """`.section name { ... }`: debug data, as written."""

    text: str


Item = Entry | Function | Variable | File | Section | SourceLine | Pragma


@dataclass(frozen=True)
class Module:
    """A PTX file. `version` is written `major.minor`; `targets` starts with the architecture."""

    version: str
    targets: tuple[str, ...]
    address_size: int
    items: tuple[Item, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(item for item in self.items if isinstance(item, Entry))

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(item for item in self.items if isinstance(item, Variable))

    @property
    def files(self) -> dict[int, str]:
        """The paths of the source files by their numbers."""
        return {item.number: item.path for item in self.items if isinstance(item, File)}
