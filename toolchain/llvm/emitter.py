"""What lowering rules work with: operands of one instruction as IR values, and the IR built so far.

A number of another width than the IR has lies in the next wider type, its upper bits zero. A value of a
structure, an array or a vector is a tuple of values. A pointer has the type of the memory it points to where
that is known, whatever its type in LLVM is; a number that came from a pointer is still that pointer.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from qgpu.ir import I32, I64, Builder, Constant, Function, IntType, PtrType, Type, Value, integer, ptr
from qgpu.ir.core.folding import folded
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import INTEGER_WIDTHS
from qgpu.toolchain.diagnostics import DiagnosticError
from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.arrays import Arrays
from qgpu.toolchain.llvm.constants import float_bits
from qgpu.toolchain.llvm.layout import Layout, Unsized
from qgpu.toolchain.llvm.module import Module
from qgpu.toolchain.llvm.places import Places

Item = Value | tuple["Item", ...]

GENERIC = "generic"
SPACES = {0: GENERIC, 1: "global", 3: "shared", 4: "const", 5: "local", 101: "param"}
"""The address spaces of nvptx64 (LLVM, User Guide for NVPTX Back-end)."""

NULL_OFFSET = -(1 << 30)
"""Where null pointers lie: no access at an offset below 2^30 from there falls into a buffer."""

MAX_INSTRUCTIONS = 100_000
"""Instructions of the largest kernel, with the functions inlined in it."""


class Emitter:
    """Emits IR for one kernel; `function_name` and `instruction` say what is lowered just now."""

    def __init__(self, function: Function, module: Module, places: Places) -> None:
        self.function = function
        self.module = module
        self.layout: Layout = module.layout
        self.builder = Builder()
        self.places = places
        self.arrays = Arrays(function, module, places)
        self.function_name = ""
        self.instruction = ast.Instruction("")
        self.values: dict[str, Item] = {}
        self.local_types: dict[str, ast.Type] = {}
        self.pointer_accesses: list[tuple[Instruction, Callable[[], DiagnosticError]]] = []
        self._null: Value | None = None
        self._clock: str | None = None

    # ------------------------------------------------------------- diagnostics

    def refusal(self, message: str, *notes: str) -> DiagnosticError:
        """The error that refuses the current instruction."""
        location = self.builder.loc
        return self.places.error(message, self.function_name, self.instruction.ordinal, location, *notes)

    def refusal_later(self, message: str, *notes: str) -> Callable[[], DiagnosticError]:
        """Makes the error that refuses what is now the current instruction."""
        location = self.builder.loc
        return partial(
            self.places.error, message, self.function_name, self.instruction.ordinal, location, *notes
        )

    def unsupported(self, why: str, *notes: str) -> DiagnosticError:
        return self.refusal(f"unsupported instruction '{self.instruction.opcode}': {why}", *notes)

    # ------------------------------------------------------------------- types

    def width(self, type_: ast.Type) -> int:
        """The bits of a type of numbers, floating-point ones by their bits; raises where it is none."""
        try:
            type_ = self.layout.resolved(type_)
        except Unsized:
            raise self.unsupported(f"type '{type_}' has no size") from None
        if isinstance(type_, ast.Float):
            return 8 * self.layout.store_size(type_)
        if not isinstance(type_, ast.Integer):
            raise self.unsupported(f"a number is needed where there is a '{type_}'")
        if type_.width > max(INTEGER_WIDTHS):
            raise self.unsupported(
                f"numbers of {type_.width} bits", "the widest have 64: use two of them, and their carries"
            )
        return type_.width

    def held(self, type_: ast.Type) -> IntType:
        """The IR's type that holds numbers of a type."""
        return container(self.width(type_))

    def is_pointer(self, type_: ast.Type) -> bool:
        return isinstance(self.layout.resolved(type_), ast.Pointer)

    def leaf_type(self, type_: ast.Type) -> Type:
        """The IR's type of a number or pointer."""
        return ptr(GENERIC) if self.is_pointer(type_) else self.held(type_)

    def size(self, type_: ast.Type) -> int:
        """The bytes of a type in an array; raises DiagnosticError where it has no size."""
        try:
            return self.layout.size(type_)
        except Unsized:
            raise self.unsupported(f"type '{type_}' has no size") from None

    # ---------------------------------------------------------------- operands

    def item(self, operand: ast.Typed) -> Item:
        """An operand's value."""
        value, type_ = operand.value, operand.type
        if isinstance(value, ast.Local):
            return self.values[value.name]
        return self.constant(type_, value)

    def operand(self, index: int) -> Item:
        return self.item(self.instruction.operands[index])

    def scalar(self, operand: ast.Typed) -> Value:
        """An operand that is a number or a pointer."""
        value = self.item(operand)
        if isinstance(value, tuple):
            raise self.unsupported(f"operand of type '{operand.type}'")
        return value

    def number(self, index: int) -> Value:
        """Operand `index`, which has to be a number."""
        value = self.scalar(self.instruction.operands[index])
        if isinstance(value.type, PtrType):
            raise self.refusal("an address is used as a number")
        return value

    def literal(self, index: int, what: str) -> int:
        """Operand `index`, which has to be known here, as an unsigned number."""
        value = self.operand(index)
        if not isinstance(value, Constant):
            raise self.refusal(f"{what} has to be a constant")
        return value.value

    def pointer(self, operand: ast.Typed) -> Value:
        """An operand that is a pointer, as one into the memory that its type names."""
        value = self.scalar(operand)
        if not isinstance(value.type, PtrType):
            raise self.refusal("a number is used as an address", "compute addresses by getelementptr")
        type_ = self.layout.resolved(operand.type)
        space = SPACES.get(type_.space, GENERIC) if isinstance(type_, ast.Pointer) else GENERIC
        if GENERIC in (space,) or value.type.space != GENERIC:
            return value
        return self.builder.emit("ptrcast", value, type=ptr(space))

    # --------------------------------------------------------------- constants

    def constant(self, type_: ast.Type, value: ast.Value) -> Item:
        """A constant, also one that is an expression."""
        if isinstance(value, ast.Expression):
            return self._expression(value)
        if isinstance(value, ast.Global):
            return self._address(value)
        if self.layout.is_aggregate(type_):
            return self._members(type_, value)
        if self.is_pointer(type_):
            return self.null()
        if isinstance(value, ast.Number):
            return Constant(self.held(type_), value.number & ((1 << self.width(type_)) - 1))
        if isinstance(value, ast.FloatLiteral):
            return Constant(self.held(type_), float_bits(value.text, self.width(type_)))
        if isinstance(value, ast.Zero | ast.Undefined):
            return Constant(self.held(type_), 0)
        raise self.unsupported("a constant of a kind that is not known")

    def _members(self, type_: ast.Type, value: ast.Value) -> Item:
        types = [member for _, member in self.layout.members(type_)]
        if isinstance(value, ast.Aggregate):
            return tuple(self.constant(member.type, member.value) for member in value.members)
        if isinstance(value, ast.Splat):
            return tuple(self.constant(member, value.member.value) for member in types)
        if isinstance(value, ast.Bytes):
            return tuple(Constant(integer(8), byte) for byte in value.data)
        return tuple(self.constant(member, value) for member in types)

    def _address(self, name: ast.Global) -> Value:
        variable = self.module.variables.get(name.name)
        if variable is None:
            raise self.refusal(
                f"the address of '@{name.name}' is used", "call functions by their names: they are inlined"
            )
        array = self.arrays.array(variable)
        return self.builder.addrof(array.name, array.space)

    def _expression(self, value: ast.Expression) -> Item:
        """A constant expression is what the instruction of the same opcode gives."""
        outer = self.instruction
        type_ = value.element or value.to or (value.operands[0].type if value.operands else None)
        self.instruction = ast.Instruction(
            value.opcode, type_, value.operands, debug=outer.debug, ordinal=outer.ordinal
        )
        try:
            return self.lower(self.instruction)
        finally:
            self.instruction = outer

    lower: Callable[[ast.Instruction], Item]
    """Lowers an instruction by its rule; set by `rules`, which are made of this class."""

    def null(self) -> Value:
        """The null pointer of the kernel, which lies far outside of an array that nothing else uses."""
        if self._null is None:
            entry = Builder().at_start(self.function.entry)
            base = entry.addrof(self.arrays.nothing().name, "global")
            far = entry.ptradd(base, Constant(I32, 0), 1, NULL_OFFSET)
            self._null = entry.emit("ptrcast", far, type=ptr(GENERIC))
        return self._null

    def tick(self) -> Value:
        """The thread's clock: the number of its reads, this one included."""
        counter = self._counter()
        now = self.operation("add", self.builder.load(counter, I64), Constant(I64, 1))
        self.builder.store(counter, now)
        return now

    def _counter(self) -> Value:
        """Where the number of clock reads lies, which is 0 when the kernel starts."""
        name = self._clock
        if name is None:
            name = self._clock = self.arrays.local("clock", 8, 8).name
            entry = Builder().at_start(self.function.entry)
            entry.store(entry.addrof(name, "local"), Constant(I64, 0))
        return self.builder.addrof(name, "local")

    def is_null(self, value: Value) -> bool:
        return value is self._null

    # -------------------------------------------------------------- operations

    def operation(self, opcode: str, *operands: Value, attrs: dict[str, Any] | None = None) -> Value:
        """The result of a pure operation; a constant where all its operands are."""
        return folded(self.builder.emit(opcode, *operands, attrs=attrs))

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        return self.operation("icmp", a, b, attrs={"pred": predicate})

    def choose(self, condition: Value, a: Value, b: Value) -> Value:
        """A `select`, of pointers into different memories a generic one."""
        if a.type is not b.type:
            a, b = self.as_generic(a), self.as_generic(b)
        return a if a is b else self.operation("select", condition, a, b)

    def as_generic(self, value: Value) -> Value:
        if not isinstance(value.type, PtrType) or value.type.space == GENERIC:
            return value
        return self.builder.emit("ptrcast", value, type=ptr(GENERIC))

    def displaced(self, pointer: Value, bytes_: int) -> Value:
        """A pointer moved by a constant number of bytes."""
        return self.builder.ptradd(pointer, Constant(I32, 0), 1, bytes_) if bytes_ else pointer

    def resized(self, value: Value, type_: IntType, signed: bool = False) -> Value:
        """A number truncated or extended to a type of the IR."""
        assert isinstance(value.type, IntType)
        if isinstance(value, Constant):
            return Constant(type_, value.signed if signed else value.value)
        if type_.width <= value.type.width:
            return self.builder.cast("trunc", value, type_)
        return self.builder.cast("sext" if signed else "zext", value, type_)

    def wrapped(self, value: Value, width: int) -> Value:
        """A number with the bits above `width` cleared, where its type has more."""
        assert isinstance(value.type, IntType)
        if value.type.width == width:
            return value
        return self.operation("and", value, Constant(value.type, (1 << width) - 1))

    def signed(self, value: Value, width: int) -> Value:
        """A number of `width` bits as a signed one of its whole type."""
        assert isinstance(value.type, IntType)
        above = Constant(value.type, value.type.width - width)
        if not above.value:
            return value
        return self.operation("ashr", self.operation("shl", value, above), above)


def container(width: int) -> IntType:
    """The narrowest type of the IR with at least `width` bits."""
    return integer(next(legal for legal in INTEGER_WIDTHS if legal >= width))


def mapped(function: Callable[..., Value], *items: Item) -> Item:
    """A function applied to values, or member by member to tuples of the same form."""
    first = items[0]
    if isinstance(first, tuple):
        return tuple(mapped(function, *members) for members in zip(*items, strict=True))
    return function(*items)


def leaves(item: Item) -> list[Value]:
    """The numbers and pointers of a value, in order."""
    return [leaf for member in item for leaf in leaves(member)] if isinstance(item, tuple) else [item]
