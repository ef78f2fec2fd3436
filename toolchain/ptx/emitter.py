"""What a lowering rule works with: the operands of one PTX instruction as IR values, and its result.

The emitter walks a kernel's instructions; `form` holds the groups of the current one's modifiers. Every
method that takes a role raises DiagnosticError, at the operand, where that is not what the rule asks for.
"""

import struct
import sys
from collections.abc import Callable, Iterator
from ctypes import c_float
from typing import Any

from qgpu.ir import (
    I1,
    I32,
    I64,
    Argument,
    Builder,
    Constant,
    Function,
    IntType,
    PtrType,
    Type,
    Value,
    integer,
    ptr,
)
from qgpu.ir.core.folding import folded
from qgpu.toolchain.diagnostics import DiagnosticError
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Site
from qgpu.toolchain.ptx.explain import explain
from qgpu.toolchain.ptx.names import Register, byte_size, type_width
from qgpu.toolchain.ptx.places import Places
from qgpu.toolchain.ptx.pointer_flow import variable_of
from qgpu.toolchain.ptx.pointer_targets import GENERIC, NullClass, Pointers
from qgpu.toolchain.ptx.rule import CLOCK, MEMORY, RESULT, Rule
from qgpu.toolchain.ptx.special_registers import read_special, why_absent
from qgpu.toolchain.ptx.ssa import Node
from qgpu.toolchain.ptx.variables import Arrays

_SINK = "_"

NULL_OFFSET = -(1 << 30)
"""Where null pointers lie: no access at an offset below 2^30 from there falls into a buffer."""


class Emitter:
    """Emits IR for the instructions of one kernel, one after another."""

    def __init__(
        self,
        function: Function,
        arguments: dict[Register, Argument],
        arrays: Arrays,
        pointers: Pointers,
        address: Callable[[ast.Function], int],
        before: Callable[[Site], Iterator[Site]],
        places: Places,
    ) -> None:
        self.function = function
        self.assertion = ""
        self.builder = Builder()
        self.values: dict[Node, Value] = {}
        self.form: dict[str, str | None] = {}
        self._arguments = arguments
        self._arrays = arrays
        self.pointers = pointers
        self._function_address = address
        self._before = before
        self._places = places
        self._site: Site
        self._rule: Rule
        self._reads: dict[Register, Node]
        self._writes: dict[Register, Node]

    def begin(
        self,
        site: Site,
        rule: Rule,
        form: dict[str, str | None],
        reads: dict[Register, Node],
        writes: dict[Register, Node],
    ) -> None:
        """Turn to an instruction; what it reads has been emitted."""
        self._site, self._rule, self.form = site, rule, form
        self._reads, self._writes = reads, writes
        self.builder.loc = site.location

    def refusal(self, message: str, role: str | None = None) -> DiagnosticError:
        """The error that refuses the current instruction, at one of its operands or at the whole."""
        position = self._site.instruction.position
        if role is not None:
            position = getattr(self.operand(role), "position", position)
        return self._places.error(message, position, self._site.location)

    def operand(self, role: str) -> ast.Operand:
        return self._rule.operand(self._site.instruction, role)

    def has(self, role: str) -> bool:
        return role in self._rule.role_names

    def type(self, group: str = "type") -> IntType:
        """The type a group of the form names; floating-point types count by their bits."""
        return integer(type_width(self.form[group] or ""))

    def signed(self, group: str = "type") -> bool:
        return (self.form[group] or "").startswith("s")

    def value(self, role: str, type_: IntType) -> Value:
        """An operand of just this type, or a pointer."""
        value = self._read(role, self.operand(role), type_)
        if isinstance(value.type, IntType) and value.type is not type_:
            raise self.refusal(f"operand has {_bits(value)} bits where {type_.width} are needed", role)
        return value

    def integer(self, role: str, type_: IntType) -> Value:
        """An operand of just this type."""
        value = self.value(role, type_)
        if isinstance(value.type, PtrType):
            raise self.refusal("a pointer is used as an integer", role)
        return value

    def elements(self, role: str, type_: IntType) -> list[Value]:
        """An operand's values, at least as wide as the type; several where it is a vector."""
        operand = self.operand(role)
        parts = operand.elements if isinstance(operand, ast.Vector) else (operand,)
        values = [self._read(role, part, type_) for part in parts]
        for value in values:
            if isinstance(value.type, PtrType) and role not in self._rule.carries:
                raise self.refusal("a pointer is used as an integer", role)
            if isinstance(value.type, IntType) and value.type.width < type_.width:
                raise self.refusal(f"operand has {_bits(value)} bits where {type_.width} are needed", role)
        return values

    def predicate(self, role: str) -> Value:
        """A predicate operand, complemented where it is written `!p`."""
        operand = self.operand(role)
        if not isinstance(operand, ast.Negated):
            return self.integer(role, I1)
        value = self._read(role, operand.operand, I1)
        if value.type is not I1:
            raise self.refusal("operand is not a predicate", role)
        return self.builder.emit("not", value)

    def immediate(self, role: str) -> int:
        operand = self.operand(role)
        if not isinstance(operand, ast.Integer):
            raise self.refusal("operand has to be an integer literal", role)
        return operand.value

    def argument(self) -> Value:
        """The kernel's argument for which the result register stands."""
        (register,) = self._writes
        return self._arguments[register]

    def parts(self, role: str) -> list[Value]:
        """The values of a vector operand, each of its own width."""
        operand = self.operand(role)
        assert isinstance(operand, ast.Vector)
        return [self._read(role, part, I64) for part in operand.elements]

    def address(self) -> Value:
        """The pointer that the address operand stands for, with its offset added."""
        operand = self.operand(MEMORY)
        if isinstance(operand, ast.Element):
            return self._element(MEMORY, operand)
        if not isinstance(operand, ast.Memory) or not isinstance(operand.base, ast.Name):
            raise self.refusal("an address has to start from a register or an array", MEMORY)
        pointer = self._read(MEMORY, operand.base, I64)
        if not isinstance(pointer.type, PtrType):
            raise self.no_address(MEMORY)
        space = self.form.get("space")
        if space is None or space == pointer.type.space:
            return self.displaced(pointer, operand.offset)
        if pointer.type.space != GENERIC:
            raise self.refusal(
                f"the address points to {pointer.type.space} memory, not to {space} memory", MEMORY
            )
        return self.displaced(self.as_type(pointer, ptr(space)), operand.offset)

    def no_address(self, role: str, node: Node | None = None) -> DiagnosticError:
        """The refusal of a number as an address, which says where the number comes from."""
        message = "the address does not come from a pointer parameter or an array"
        return self.number_refusal(role, message, node)

    def number_refusal(self, role: str, message: str, node: Node | None = None) -> DiagnosticError:
        """The refusal of a number, an operand or any other node, where a pointer is needed."""
        operand = self.operand(role)
        base = operand.base if isinstance(operand, ast.Memory) else operand
        reason, notes = explain(node or self.node(base), self.pointers, self._places)
        position = getattr(operand, "position", self._site.instruction.position)
        return self._places.error(f"{message}: {reason}", position, self._site.location, *notes)

    def node(self, operand: ast.Operand) -> Node | None:
        """The node of an operand that is a register."""
        register = self._site.scope.register(operand.text) if isinstance(operand, ast.Name) else None
        return self._reads.get(register) if register is not None else None

    @property
    def site(self) -> Site:
        """The current instruction."""
        return self._site

    def is_pointer(self, operand: ast.Operand) -> bool:
        """Whether an operand is a register that holds a pointer, or a variable's address."""
        node = self.node(operand)
        if node is not None:
            return isinstance(self.values[node].type, PtrType)
        return variable_of(operand, self._site) is not None

    def sources(self) -> list[str]:
        """The roles of the operands that are values read."""
        return [role for role in self._rule.role_names if role not in (RESULT, MEMORY)]

    def written(self) -> list[Node]:
        """The nodes that the instruction writes."""
        return list(self._writes.values())

    def written_by(self, register: Register) -> Node:
        """The node of a result register."""
        return self._writes[register]

    def result_types(self) -> list[PtrType | None]:
        """For each node that the instruction writes its pointer type; None for a number."""
        return [self.pointers.type(node) for node in self._writes.values()]

    def before(self) -> Iterator[Site]:
        """The instructions that run before the current one, the last first, where there is but one way."""
        return self._before(self._site)

    def initial_bytes(self, variable: ast.Variable) -> bytes | None:
        """What a variable holds at any time; None where that may change."""
        return self._arrays.constant_bytes(variable)

    def read(self, role: str, operand: ast.Operand, type_: IntType) -> Value:
        """One value of an operand, which is in `role`; numbers have this type."""
        return self._read(role, operand, type_)

    def as_type(self, value: Value, type_: Type) -> Value:
        """A pointer typed as of another space, by way of the generic one if need be; numbers as they are."""
        if value.type is type_ or not isinstance(value.type, PtrType) or not isinstance(type_, PtrType):
            return value
        if GENERIC not in (value.type.space, type_.space):
            value = self.builder.emit("ptrcast", value, type=ptr(GENERIC))
        return self.builder.emit("ptrcast", value, type=type_)

    def null(self, shared: NullClass, type_: PtrType) -> Value:
        """The null pointer of a class, which lies far outside of the first thing it may point to."""
        target = next(iter(shared.targets), None)
        if target is not None and target.variable is not None:
            base = self._address_of(target.variable)
        elif target is not None and target.component is not None:
            base = self._arguments[target.component.register]
        else:
            base = self._arrays.nothing(self.builder)
        return self.as_type(self.displaced(base, NULL_OFFSET), type_)

    def displaced(self, pointer: Value, bytes_: int) -> Value:
        """A pointer moved by a constant number of bytes."""
        return self.builder.ptradd(pointer, Constant(I32, 0), 1, bytes_) if bytes_ else pointer

    def moved(self, pointer: Value, index: Value, role: str) -> Value:
        """A pointer moved by a number of bytes, which is the operand in `role`."""
        if isinstance(index.type, PtrType):
            raise self.refusal("two pointers are added", role)
        if isinstance(index, Constant):
            return self.displaced(pointer, index.signed)
        return self.builder.ptradd(pointer, index)

    def results(self) -> Iterator[tuple[Register, IntType] | None]:
        """The result registers in order, several for a vector or a pair; None for a sink."""
        operand = self.operand(RESULT)
        if isinstance(operand, ast.Vector):
            names = operand.elements
        else:
            names = (operand.first, operand.second) if isinstance(operand, ast.Pair) else (operand,)
        for name in names:
            yield self._result(name)

    def _result(self, name: ast.Operand) -> tuple[Register, IntType] | None:
        if isinstance(name, ast.Name) and name.text == _SINK:
            return None
        register = self._site.scope.register(name.text) if isinstance(name, ast.Name) else None
        if register is None:
            raise self.refusal("the result has to go to a declared register", RESULT)
        return register, integer(register.width)

    def define(self, *values: Value) -> None:
        """Give the result registers their values."""
        results = list(self.results())
        if len(results) != len(values):
            raise self.refusal(f"the result needs {len(values)} registers", RESULT)
        for result, value in zip(results, values, strict=True):
            if result is not None:
                self._define(*result, value)

    def _define(self, register: Register, type_: IntType, value: Value) -> None:
        if isinstance(value.type, IntType) and value.type is not type_:
            raise self.refusal(f"the result has {_bits(value)} bits, its register {type_.width}", RESULT)
        node = self._writes[register]
        self.values[node] = self.as_type(value, self.pointers.type(node) or value.type)

    def define_first(self, *values: Value) -> None:
        """Give the result registers their values; the last ones are for results that may be left out."""
        self.define(*values[: max(1, len(list(self.results())))])

    def read_register(self, register: Register) -> Value:
        """A register that the instruction reads."""
        return self.values[self._reads[register]]

    def write_register(self, register: Register, value: Value) -> None:
        """Gives a register its value that the instruction writes beside its result."""
        self.values[self._writes[register]] = value

    def tick(self) -> Value:
        """The thread's clock; each read advances it."""
        now = self.operation("add", self.read_register(CLOCK), Constant(I64, 1))
        self.write_register(CLOCK, now)
        return now

    def operation(self, opcode: str, *operands: Value, attrs: dict[str, Any] | None = None) -> Value:
        """The result of a pure operation; a constant where all its operands are."""
        return folded(self.builder.emit(opcode, *operands, attrs=attrs))

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """An `icmp`; a constant where both operands are."""
        return self.operation("icmp", a, b, attrs={"pred": predicate})

    def resized(self, value: Value, type_: IntType, signed: bool) -> Value:
        """An integer truncated or extended to a type."""
        assert isinstance(value.type, IntType)
        if isinstance(value, Constant):
            return Constant(type_, value.signed if signed else value.value)
        if type_.width <= value.type.width:
            return self.builder.cast("trunc", value, type_)
        return self.builder.cast("sext" if signed else "zext", value, type_)

    def _read(self, role: str, operand: ast.Operand, type_: IntType) -> Value:
        if isinstance(operand, ast.Integer):
            return Constant(type_, bool(operand.value) if type_ is I1 else operand.value)
        if isinstance(operand, ast.Float):
            return _float(operand, type_)
        if isinstance(operand, ast.Element):
            return self._element(role, operand)
        if isinstance(operand, ast.Offset):
            base = self._read(role, operand.base, type_)
            if isinstance(base.type, IntType):
                return self.operation("add", base, Constant(base.type, operand.offset))
            return self.displaced(base, operand.offset)
        if not isinstance(operand, ast.Name):
            raise self.refusal("operand has to be a register or a literal", role)
        return self._read_name(role, operand, type_)

    def _read_name(self, role: str, name: ast.Name, type_: IntType) -> Value:
        meaning = self._meaning(name)
        if isinstance(meaning, Register):
            return self.read_register(meaning)
        if isinstance(meaning, ast.Variable):
            return self._address_of(meaning)
        if isinstance(meaning, ast.Function):
            return Constant(I64, self._function_address(meaning))
        special = read_special(self, name.text)
        if special is not None:
            return special if _bits(special) <= type_.width else self.resized(special, type_, False)
        what = "special register" if name.text.startswith("%") else "name"
        reason = why_absent(name.text)
        raise self.refusal(f"{what} '{name}' is not supported{f': {reason}' if reason else ''}", role)

    def _meaning(self, name: ast.Operand):
        return self._site.scope.lookup(name.text) if isinstance(name, ast.Name) else None

    def _element(self, role: str, element: ast.Element) -> Value:
        """The address of `array[index]`."""
        variable = self._meaning(element.base)
        if not isinstance(variable, ast.Variable):
            raise self.refusal(f"'{element.base}' is not an array", role)
        size = byte_size(variable.type, (), variable.vector)
        array = self._address_of(variable)
        index = self._read(role, element.index, I32)
        if isinstance(index, Constant):
            return self.displaced(array, size * index.signed)
        return self.builder.ptradd(array, index, size, signed=False)

    def _address_of(self, variable: ast.Variable) -> Value:
        array = self._arrays.array(variable)
        return self.builder.addrof(array.name, array.space)


def _float(literal: ast.Float, type_: IntType) -> Constant:
    """The bits of a literal; a double is rounded where 32 bits are needed (PTX ISA 4.5.2)."""
    if literal.text[:2].lower() == "0f":
        return Constant(I32, literal.bits)
    if type_ is not I32:
        return Constant(I64, literal.bits)
    (double,) = struct.unpack("d", struct.pack("Q", literal.bits))
    return Constant(I32, int.from_bytes(bytes(c_float(double)), sys.byteorder))


def _bits(value: Value) -> int:
    assert isinstance(value.type, IntType)
    return value.type.width
