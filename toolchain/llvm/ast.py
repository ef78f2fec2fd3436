"""The syntax of LLVM IR: types, values, instructions, and the entities of a module."""

from dataclasses import dataclass, field, replace

# ----------------------------------------------------------------------- types


@dataclass(frozen=True)
class Type:
    """A type; `str()` is how LLVM writes it."""


@dataclass(frozen=True)
class Void(Type):
    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True)
class Integer(Type):
    width: int

    def __str__(self) -> str:
        return f"i{self.width}"


@dataclass(frozen=True)
class Pointer(Type):
    space: int = 0

    def __str__(self) -> str:
        return f"ptr addrspace({self.space})" if self.space else "ptr"


@dataclass(frozen=True)
class Float(Type):
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Array(Type):
    """An array, or where `vector` a vector, of `count` elements."""

    count: int
    element: Type
    vector: bool = False

    def __str__(self) -> str:
        text = f"{self.count} x {self.element}"
        return f"<{text}>" if self.vector else f"[{text}]"


@dataclass(frozen=True)
class Struct(Type):
    fields: tuple[Type, ...]
    packed: bool = False

    def __str__(self) -> str:
        text = "{ " + ", ".join(map(str, self.fields)) + " }"
        return f"<{text}>" if self.packed else text


@dataclass(frozen=True)
class Named(Type):
    name: str

    def __str__(self) -> str:
        return f"%{self.name}"


# ---------------------------------------------------------------------- values


@dataclass(frozen=True)
class Value:
    """An operand without its type."""


@dataclass(frozen=True)
class Local(Value):
    name: str


@dataclass(frozen=True)
class Global(Value):
    name: str


@dataclass(frozen=True)
class Number(Value):
    number: int


@dataclass(frozen=True)
class Zero(Value):
    """null, none and zeroinitializer."""


@dataclass(frozen=True)
class Undefined(Value):
    """undef and poison."""


@dataclass(frozen=True)
class FloatLiteral(Value):
    text: str


@dataclass(frozen=True)
class Bytes(Value):
    data: bytes


@dataclass(frozen=True)
class Typed:
    """A value with its type, and in a call the attributes of the argument."""

    type: Type
    value: Value
    attributes: tuple["Attribute", ...] = ()


@dataclass(frozen=True)
class Aggregate(Value):
    members: tuple[Typed, ...]


@dataclass(frozen=True)
class Splat(Value):
    member: Typed


@dataclass(frozen=True)
class Expression(Value):
    """A constant expression: `element` is a getelementptr's source type, `to` a cast's result type."""

    opcode: str
    operands: tuple[Typed, ...]
    element: Type | None = None
    to: Type | None = None


@dataclass(frozen=True)
class Assembly(Value):
    text: str
    constraints: str


# ---------------------------------------------------------------- instructions


@dataclass(frozen=True)
class Attribute:
    """A word or a string, with a value where it has one: `noundef`, `align` 4, `byval` T."""

    name: str
    value: "int | str | Type | None" = None


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    `type` is the type that the opcode is followed by: of a `load` what is loaded, of a `getelementptr` the
    source element, of a cast the result. `labels` are the blocks that a terminator goes to, `cases` the
    numbers of a switch (its first label is the default), `incoming` a phi's pairs. `flags` are the words
    between opcode and type; an icmp's predicate and an atomicrmw's operation are the last.
    """

    opcode: str
    type: Type | None = None
    operands: tuple[Typed, ...] = ()
    flags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    cases: tuple[int, ...] = ()
    incoming: tuple[tuple[Value, str], ...] = ()
    indices: tuple[int, ...] = ()
    callee: Value | None = None
    align: int = 0
    result: str | None = None
    debug: str | None = None
    ordinal: int = 0

    def at(self, ordinal: int) -> "Instruction":
        """The same instruction as number `ordinal` of its function."""
        return replace(self, ordinal=ordinal)


@dataclass(frozen=True)
class Block:
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    @property
    def terminator(self) -> Instruction:
        return self.instructions[-1]


@dataclass(frozen=True)
class Parameter:
    type: Type
    name: str
    attributes: tuple[Attribute, ...] = ()

    def attribute(self, name: str) -> Attribute | None:
        return next((found for found in self.attributes if found.name == name), None)


@dataclass(frozen=True)
class Head:
    """What stands before a function's body."""

    name: str
    type: Type
    parameters: tuple[Parameter, ...]
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True)
class Function:
    head: Head
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Variable:
    """A global variable; `value` is None for one that is defined elsewhere."""

    name: str
    type: Type
    space: int
    value: Value | None
    align: int


@dataclass(frozen=True)
class Node:
    """A metadata node: the name of its kind, its fields by name, its elements in order."""

    kind: str
    fields: dict[str, object]
    elements: tuple[object, ...]
