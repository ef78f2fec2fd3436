"""The rules of the grammar as nodes of the syntax."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from lark import Token, Transformer

from qgpu.toolchain.llvm import ast

_Kind = TypeVar("_Kind")


def name_of(token: str) -> str:
    """A name without its sigil and quotes, its escapes `\\XX` resolved."""
    return unescaped(token[1:].strip('"')).decode("utf-8", "replace")


def unescaped(text: str) -> bytes:
    """The bytes of a string of LLVM IR, in which a backslash stands before two hexadecimal digits."""
    first, *rest = text.split("\\")
    result = first.encode()
    for piece in rest:
        result += b"\\" + piece.encode() if not piece[:2] else bytes.fromhex(piece[:2]) + piece[2:].encode()
    return result


def _all(children: Iterable[Any], kind: type[_Kind]) -> tuple[_Kind, ...]:
    return tuple(child for child in children if isinstance(child, kind) and not isinstance(child, Token))


def _words(children: Iterable[Any]) -> tuple[str, ...]:
    return tuple(child for child in children if type(child) is str)


class TreeBuilder(Transformer):
    """Makes the nodes of `ast`; one method per rule or alias of the grammar."""

    # entities

    def type_definition(self, children: Sequence[Any]) -> tuple[str, ast.Type | None]:
        return name_of(children[0]), children[1] if len(children) > 1 else None

    def variable(self, children: Sequence[Any]) -> ast.Variable:
        attributes = _all(children, ast.Attribute)
        space = next((int(str(a.value)) for a in attributes if a.name == "addrspace"), 0)
        align = next((a.value for a in attributes if a.name == "align"), 0)
        value = next(iter(_all(children, ast.Value)), None)
        (type_, *_) = _all(children, ast.Type)
        assert isinstance(align, int)
        return ast.Variable(name_of(children[0]), type_, space, value, align)

    def function_head(self, children: Sequence[Any]) -> ast.Head:
        (type_, *_) = _all(children, ast.Type)
        name = next(child for child in children if isinstance(child, Token) and child.type == "GLOBAL")
        found = _all(children, ast.Parameter)
        parameters = tuple(
            p if p.name else ast.Parameter(p.type, str(i), p.attributes) for i, p in enumerate(found)
        )
        return ast.Head(name_of(name), type_, parameters, _all(children, ast.Attribute))

    def parameter(self, children: Sequence[Any]) -> ast.Parameter:
        name = children[-1]
        return ast.Parameter(children[0], name_of(name) if name else "", _all(children, ast.Attribute))

    def attribute_group(self, children: Sequence[Any]) -> tuple[str, tuple[ast.Attribute, ...]]:
        return str(children[0]), _all(children, ast.Attribute)

    def metadata(self, children: Sequence[Any]) -> tuple[str, ast.Node]:
        return str(children[0])[1:], children[-1]

    def label(self, children: Sequence[Any]) -> str:
        return name_of(f"%{children[0][:-1]}")

    def word(self, children: Sequence[Any]) -> ast.Attribute:
        value = children[1] if len(children) > 1 else None
        return ast.Attribute(str(children[0]), str(value) if isinstance(value, Token) else value)

    def align(self, children: Sequence[Any]) -> ast.Attribute:
        return ast.Attribute("align", int(children[0]))

    def byval(self, children: Sequence[Any]) -> ast.Attribute:
        return ast.Attribute("byval", children[0])

    def pair(self, children: Sequence[Any]) -> ast.Attribute:
        return ast.Attribute(children[0][1:-1], children[1][1:-1])

    def group(self, children: Sequence[Any]) -> ast.Attribute:
        return ast.Attribute("group", str(children[0]))

    def attached(self, children: Sequence[Any]) -> ast.Attribute:
        value = children[1]
        return ast.Attribute(str(children[0]), str(value)[1:] if isinstance(value, Token) else None)

    # metadata

    def elements(self, children: Sequence[Any]) -> ast.Node:
        return ast.Node("", {}, tuple(children))

    def text(self, children: Sequence[Any]) -> str:
        return unescaped(children[0][1:-1]).decode("utf-8", "replace")

    def node(self, children: Sequence[Any]) -> ast.Node:
        fields = {name: value for child in children[1:] if type(child) is tuple for name, value in [child]}
        return ast.Node(str(children[0])[1:], fields, tuple(children[1:]))

    def field(self, children: Sequence[Any]) -> tuple[str, object]:
        value = children[1] if len(children) > 1 else None
        if isinstance(value, Token):
            value = self.text([value]) if value.type == "STRING" else str(value)
        return str(children[0])[:-1], value

    def absent(self, children: Sequence[Any]) -> None:
        return None

    # types

    def int_type(self, children: Sequence[Any]) -> ast.Type:
        return ast.Integer(int(children[0][1:]))

    def ptr_type(self, children: Sequence[Any]) -> ast.Type:
        return ast.Pointer(int(children[1] or 0))

    def void_type(self, children: Sequence[Any]) -> ast.Type:
        return ast.Void()

    def float_type(self, children: Sequence[Any]) -> ast.Type:
        return ast.Float(str(children[0]))

    def named_type(self, children: Sequence[Any]) -> ast.Type:
        return ast.Named(name_of(children[0]))

    def array_type(self, children: Sequence[Any]) -> ast.Type:
        return ast.Array(int(children[0]), children[1])

    def vector_type(self, children: Sequence[Any]) -> ast.Type:
        return ast.Array(int(children[0]), children[1], vector=True)

    def struct_type(self, children: Sequence[Any]) -> ast.Type:
        return ast.Struct(_all(children, ast.Type))

    def packed_type(self, children: Sequence[Any]) -> ast.Type:
        return ast.Struct(_all(children, ast.Type), packed=True)

    def function_type(self, children: Sequence[Any]) -> None:
        return None

    # values

    def local(self, children: Sequence[Any]) -> ast.Value:
        return ast.Local(name_of(children[0]))

    def global_name(self, children: Sequence[Any]) -> ast.Value:
        return ast.Global(name_of(children[0]))

    def integer(self, children: Sequence[Any]) -> ast.Value:
        return ast.Number(int(children[0]))

    def true(self, children: Sequence[Any]) -> ast.Value:
        return ast.Number(1)

    def false(self, children: Sequence[Any]) -> ast.Value:
        return ast.Number(0)

    def zero(self, children: Sequence[Any]) -> ast.Value:
        return ast.Zero()

    def undefined(self, children: Sequence[Any]) -> ast.Value:
        return ast.Undefined()

    def float_literal(self, children: Sequence[Any]) -> ast.Value:
        return ast.FloatLiteral(str(children[0]))

    def byte_string(self, children: Sequence[Any]) -> ast.Value:
        return ast.Bytes(unescaped(children[0][2:-1]))

    def aggregate(self, children: Sequence[Any]) -> ast.Value:
        return ast.Aggregate(_all(children, ast.Typed))

    def splat(self, children: Sequence[Any]) -> ast.Value:
        return ast.Splat(children[0])

    def gep_constant(self, children: Sequence[Any]) -> ast.Value:
        (element, *_) = _all(children, ast.Type)
        return ast.Expression("getelementptr", _all(children, ast.Typed), element=element)

    def cast_constant(self, children: Sequence[Any]) -> ast.Value:
        return ast.Expression(str(children[0]), _all(children, ast.Typed), to=children[-1])

    def binary_constant(self, children: Sequence[Any]) -> ast.Value:
        return ast.Expression(str(children[0]), _all(children, ast.Typed))

    def asm(self, children: Sequence[Any]) -> ast.Value:
        text, constraints = (str(token)[1:-1] for token in children[-2:])
        return ast.Assembly(unescaped(text).decode("utf-8", "replace"), constraints)

    def typed(self, children: Sequence[Any]) -> ast.Typed:
        return ast.Typed(children[0], children[1])

    def flag(self, children: Sequence[Any]) -> str:
        return str(children[0]) if len(children) == 1 else "inrange"

    # instructions

    def instruction(self, children: Sequence[Any]) -> ast.Instruction:
        result, operation, *rest = children
        attributes = {a.name: a.value for a in _all(rest, ast.Attribute)}
        return ast.Instruction(
            operation.opcode,
            operation.type,
            (*operation.operands, *_all(rest, ast.Typed)),
            operation.flags,
            operation.labels,
            operation.cases,
            (*operation.incoming, *(pair for pair in rest if type(pair) is tuple)),
            tuple(index for index in rest if type(index) is int),
            operation.callee,
            int(str(attributes.get("align") or 0)),
            name_of(result) if result else None,
            str(attributes["!dbg"]) if attributes.get("!dbg") else None,
        )

    def position(self, children: Sequence[Any]) -> int:
        return int(children[0])

    def incoming(self, children: Sequence[Any]) -> tuple[ast.Value, str]:
        return children[0], name_of(children[1])

    def binary(self, children: Sequence[Any]) -> ast.Instruction:
        opcode, *flags, type_, a, b = children
        return ast.Instruction(str(opcode), type_, (ast.Typed(type_, a), ast.Typed(type_, b)), _words(flags))

    def cast(self, children: Sequence[Any]) -> ast.Instruction:
        opcode, *flags, operand, type_ = children
        return ast.Instruction(str(opcode), type_, (operand,), _words(flags))

    def compare(self, children: Sequence[Any]) -> ast.Instruction:
        *flags, type_, a, b = children
        return ast.Instruction("icmp", type_, (ast.Typed(type_, a), ast.Typed(type_, b)), _words(flags))

    def select(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("select", None, _all(children, ast.Typed), _words(children))

    def phi(self, children: Sequence[Any]) -> ast.Instruction:
        *_, type_, first = children
        return ast.Instruction("phi", type_, incoming=(first,))

    def load(self, children: Sequence[Any]) -> ast.Instruction:
        (type_, *_) = _all(children, ast.Type)
        return ast.Instruction("load", type_, _all(children, ast.Typed), _words(children))

    def store(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("store", None, _all(children, ast.Typed), _words(children))

    def alloca(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("alloca", children[-1], (), _words(children))

    def gep(self, children: Sequence[Any]) -> ast.Instruction:
        _, *flags, type_, base = children
        return ast.Instruction("getelementptr", type_, (base,), _words(flags))

    def atomic(self, children: Sequence[Any]) -> ast.Instruction:
        (operator, *_) = _words(children)
        return ast.Instruction("atomicrmw", None, _all(children, ast.Typed), (operator,))

    def operator(self, children: Sequence[Any]) -> str:
        return str(children[0])

    def exchange(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("cmpxchg", None, _all(children, ast.Typed))

    def fence(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("fence")

    def scope(self, children: Sequence[Any]) -> str:
        return str(children[0])

    def call(self, children: Sequence[Any]) -> ast.Instruction:
        (type_, *_) = _all(children, ast.Type)
        (callee, *_) = _all(children, ast.Value)
        return ast.Instruction("call", type_, _all(children, ast.Typed), callee=callee)

    def argument(self, children: Sequence[Any]) -> ast.Typed:
        if not isinstance(children[0], ast.Type):
            return ast.Typed(ast.Void(), ast.Undefined())
        return ast.Typed(children[0], children[-1], _all(children, ast.Attribute))

    def bundles(self, children: Sequence[Any]) -> None:
        return None

    def branch(self, children: Sequence[Any]) -> ast.Instruction:
        condition, then, otherwise = children
        return ast.Instruction("br", None, (condition,), labels=(name_of(then), name_of(otherwise)))

    def jump(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("br", labels=(name_of(children[0]),))

    def switch(self, children: Sequence[Any]) -> ast.Instruction:
        value, default, *cases = children
        labels = (name_of(default), *(label for _, label in cases))
        return ast.Instruction("switch", None, (value,), labels=labels, cases=tuple(n for n, _ in cases))

    def case(self, children: Sequence[Any]) -> tuple[int, str]:
        number = children[0].value
        return (number.number if isinstance(number, ast.Number) else 0), name_of(children[1])

    def ret(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("ret", None, _all(children, ast.Typed))

    def unreachable(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("unreachable")

    def extract_value(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("extractvalue", None, _all(children, ast.Typed))

    def insert_value(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("insertvalue", None, _all(children, ast.Typed))

    def extract_element(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("extractelement", None, _all(children, ast.Typed))

    def insert_element(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("insertelement", None, _all(children, ast.Typed))

    def shuffle(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("shufflevector", None, _all(children, ast.Typed))

    def freeze(self, children: Sequence[Any]) -> ast.Instruction:
        return ast.Instruction("freeze", None, _all(children, ast.Typed))
