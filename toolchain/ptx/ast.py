"""The syntax tree of a PTX module.

Positions do not take part in comparisons: two trees are equal where their texts mean the same.
"""

from dataclasses import dataclass

from qgpu.toolchain.ptx.operands import (  # noqa: F401 - parts of the tree as well
    Element,
    Float,
    Group,
    Integer,
    Memory,
    Minus,
    Name,
    Negated,
    Node,
    Offset,
    Operand,
    Pair,
    Position,
    Vector,
)


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
class Call:
    """The parts of a `call`.

    `callee` names a function, or a register that holds the address of one; then `targets` names the
    `.calltargets`, the `.callprototype` or the array of functions that says which.
    """

    results: tuple[Operand, ...]
    callee: Name
    arguments: tuple[Operand, ...] = ()
    targets: Name | None = None


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

    @property
    def call(self) -> Call:
        """The parts of a `call` instruction; ValueError where it is none."""
        names = [operand for operand in self.operands if isinstance(operand, Name)]
        if self.opcode != "call" or not names:
            raise ValueError(f"'{self.name}' calls nothing")
        callee, *targets = names
        place = self.operands.index(callee)
        before, after = self.operands[:place], self.operands[place + 1 :]
        return Call(_elements(before), callee, _elements(after), *targets)


def _elements(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """What the parentheses of a call hold; nothing where there are none."""
    return next((operand.elements for operand in operands if isinstance(operand, Group)), ())


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
    align: int | None = None


# A directive without its dot, with its numbers: `("maxntid", (128, 1, 1))`, `("managed", ())`.
Directive = tuple[str, tuple[int, ...]]
Performance = Directive


@dataclass(frozen=True)
class Variable(Node):
    """A variable in a state space; `extents` of an array, None where the size is left open.

    `attributes` are those of `.attribute(...)`.
    """

    space: str
    type: str
    name: str
    extents: tuple[int | None, ...] = ()
    align: int | None = None
    vector: str | None = None
    linkage: str | None = None
    initializer: "Initializer | None" = None
    attributes: tuple[Directive, ...] = ()


@dataclass(frozen=True)
class Generic(Node):
    """`generic(variable)+offset` in an initializer: the generic address of a variable."""

    base: Name
    offset: int = 0

    def __str__(self) -> str:
        return f"generic({self.base})+{self.offset}" if self.offset else f"generic({self.base})"


@dataclass(frozen=True)
class Masked(Node):
    """`0xFF00(address)` in an initializer: the one byte of an address that the mask selects."""

    mask: int
    address: Name | Offset | Generic

    def __str__(self) -> str:
        return f"{self.mask:#x}({self.address})"


@dataclass(frozen=True)
class Setting(Node):
    """`addr_mode_0 = wrap`, a property in the initializer of a sampler, texture or surface reference."""

    name: str
    value: Name | Integer

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


@dataclass(frozen=True)
class Aggregate:
    """`{1, 2}` or `{{1}, {2}}`: the initial value of an array; what it leaves out is zero."""

    values: "tuple[Initializer, ...]"

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.values))}}}"


Initializer = Name | Integer | Float | Offset | Generic | Masked | Setting | Aggregate


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
class Dwarf:
    """`@@DWARF ...`: a line of debug data in the form before `.section`, as written."""

    text: str


@dataclass(frozen=True)
class BranchTargets(Node):
    """`name: .branchtargets a, b;`: the labels a `brx.idx` may go to, by index."""

    name: str
    labels: tuple[Name, ...]


@dataclass(frozen=True)
class CallTargets(Node):
    """`name: .calltargets f, g;`: the functions an indirect call may reach."""

    name: str
    functions: tuple[Name, ...]


@dataclass(frozen=True)
class CallPrototype(Node):
    """`name: .callprototype (results) _ (parameters);`: the signature of an indirect call."""

    name: str
    results: "tuple[Parameter, ...]"
    parameters: "tuple[Parameter, ...]"
    performance: tuple[Directive, ...] = ()


@dataclass(frozen=True)
class Body:
    """`{ ... }`: a kernel's body, or a scope in one."""

    statements: tuple["Statement", ...]


Targets = BranchTargets | CallTargets | CallPrototype
Statement = (
    Registers | Variable | CallParameter | SourceLine | Pragma | Label | Body | Targets | Instruction | Dwarf
)


@dataclass(frozen=True)
class Pointee:
    """What a `.ptr` parameter points to; a space of None is the generic one."""

    space: str | None = None
    align: int | None = None


@dataclass(frozen=True)
class Parameter(Node):
    """A parameter of a kernel or function, or a result of a function.

    `extents` where it is an array (a structure is one of bytes); `space` is `param` or `reg`. In a
    `.callprototype` the name is `_`.
    """

    type: str
    name: str
    extents: tuple[int | None, ...] = ()
    align: int | None = None
    pointee: Pointee | None = None
    space: str = "param"
    vector: str | None = None


@dataclass(frozen=True)
class Routine(Node):
    """What kernels and device functions have in common; `body` is None where one is only declared.

    `performance` holds the directives between signature and body, `pragmas` the texts of `.pragma` there.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: Body | None
    performance: tuple[Directive, ...] = ()
    linkage: str | None = None
    pragmas: tuple[str, ...] = ()
    attributes: tuple[Directive, ...] = ()


@dataclass(frozen=True)
class Entry(Routine):
    """A kernel."""

    body: Body


@dataclass(frozen=True)
class EntryDeclaration(Routine):
    """A kernel declared here and defined elsewhere."""

    body: None


@dataclass(frozen=True)
class Function(Routine):
    """A device function."""

    results: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class Alias(Node):
    """`.alias name, target;`: another name of a function."""

    name: str
    target: Name


@dataclass(frozen=True)
class File:
    """`.file number "path"`; `stamp` is the time of its last change and its size in bytes, where given."""

    number: int
    path: str
    stamp: tuple[int, int] | None = None


@dataclass(frozen=True)
class DebugData:
    """`.b8 1, 2` in a section: numbers, and labels as written, `label+4` and `end-begin` among them."""

    type: str
    values: tuple[int | str, ...]


@dataclass(frozen=True)
class Section:
    """`.section name { ... }`: debug data; a string among the lines is a label."""

    name: str
    lines: tuple[DebugData | str, ...]


Item = (
    Entry
    | EntryDeclaration
    | Function
    | Alias
    | Variable
    | Registers
    | File
    | Section
    | Dwarf
    | SourceLine
    | Pragma
)


@dataclass(frozen=True)
class Module:
    """A PTX file. `version` is written `major.minor`; `targets` starts with the architecture."""

    version: str
    targets: tuple[str, ...]
    address_size: int
    items: tuple[Item, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The kernels defined here."""
        return tuple(item for item in self.items if isinstance(item, Entry))

    @property
    def functions(self) -> tuple[Function, ...]:
        """The device functions, declarations among them."""
        return tuple(item for item in self.items if isinstance(item, Function))

    @property
    def aliases(self) -> tuple[Alias, ...]:
        return tuple(item for item in self.items if isinstance(item, Alias))

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(item for item in self.items if isinstance(item, Variable))

    @property
    def files(self) -> dict[int, str]:
        """The paths of the source files by their numbers."""
        return {item.number: item.path for item in self.items if isinstance(item, File)}
