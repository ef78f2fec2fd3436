"""Parser for the textual form of the IR (docs/ir.md): a tokenizer and recursive descent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Array, Function, Module
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import OPCODES, OpInfo
from qgpu.ir.core.types import VOID, IntType, PtrType, Type, parse_type
from qgpu.ir.core.values import FALSE, TRUE, Constant, Literal, Location, Value


class ParseError(Exception):
    """The text is not the textual form of a module. `line` and `column` count from 1."""

    def __init__(self, message: str, filename: str, line: int, column: int) -> None:
        super().__init__(f"{filename}:{line}:{column}: error: {message}")
        self.message = message
        self.filename = filename
        self.line = line
        self.column = column


@dataclass(frozen=True)
class Token:
    """A lexical unit; `kind` is `string`, `number`, `value`, `symbol`, `word`, `end`, or the mark itself."""

    kind: str
    text: str
    line: int
    column: int


_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r]+|;[^\n]*) | (?P<newline>\n)
    | (?P<string>"(?:[^"\\\n]|\\.)*") | (?P<value>%[\w$.]+) | (?P<symbol>@[\w$.]+)
    | (?P<number>-?\d+\b) | (?P<word>(?:ptr|slot)<[\w<>]+>|[A-Za-z_$.][\w$.]*) | (?P<punct>[\[\](){},:=!])""",
    re.VERBOSE,
)


def tokenize(text: str, filename: str) -> Iterator[Token]:
    """The tokens of a text, ended by an `end` token; ParseError at a character that starts none."""
    position, line, start = 0, 1, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ParseError(f"unexpected character {text[position]!r}", filename, line, position - start + 1)
        kind, found = match.lastgroup or "", match.group()
        if kind == "newline":
            line, start = line + 1, match.end()
        elif kind != "skip":
            yield Token(found if kind == "punct" else kind, found, line, position - start + 1)
        position = match.end()
    yield Token("end", "end of file", line, position - start + 1)


def unquote(text: str) -> str:
    """The contents of a string literal."""
    return re.sub(r"\\(u[0-9a-f]{6}|.)", _unescaped, text[1:-1])


def _unescaped(escape: re.Match[str]) -> str:
    text = escape.group(1)
    if len(text) > 1:
        return chr(int(text[1:], 16))
    return "\n" if text == "n" else text


@dataclass
class _Scope:
    """The names of one function, and the operands that wait for all names to be known."""

    function: Function
    values: dict[str, Value] = field(default_factory=dict)
    blocks: dict[str, BasicBlock] = field(default_factory=dict)
    defined: list[BasicBlock] = field(default_factory=list)
    operands: list[tuple[Instruction, list[Token | Constant]]] = field(default_factory=list)
    guards: list[tuple[BasicBlock, list[tuple[Token, bool]]]] = field(default_factory=list)
    block_uses: list[Token] = field(default_factory=list)


class Parser:
    """Parses one text; `module()` gives the result."""

    def __init__(self, text: str, filename: str = "<string>") -> None:
        self.filename = filename
        self.tokens = list(tokenize(text, filename))
        self.position = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def error(self, message: str, token: Token | None = None) -> ParseError:
        at = token or self.token
        return ParseError(message, self.filename, at.line, at.column)

    def advance(self) -> Token:
        token = self.token
        self.position += token.kind != "end"
        return token

    def accept(self, text: str) -> bool:
        """Steps over a punctuation mark or word if it comes next."""
        if self.token.kind in ("string", "end") or self.token.text != text:
            return False
        self.advance()
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected '{text}', found '{self.token.text}'")

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.token.kind != kind:
            raise self.error(f"expected {what}, found '{self.token.text}'")
        return self.advance()

    def number(self) -> int:
        return int(self.expect_kind("number", "a number").text)

    def type(self) -> Type:
        token = self.expect_kind("word", "a type")
        try:
            return parse_type(token.text)
        except ValueError as error:
            raise self.error(str(error), token) from None

    def module(self) -> Module:
        functions: list[Function] = []
        while self.token.kind != "end":
            at = self.token
            function = self.function()
            if any(other.name == function.name for other in functions):
                raise self.error(f"kernel '@{function.name}' is defined twice", at)
            functions.append(function)
        return Module(functions)

    def function(self) -> Function:
        self.expect("kernel")
        name = self.expect_kind("symbol", "the kernel's name").text[1:]
        self.expect("(")
        args: list[tuple[Token, Type]] = []
        while not self.accept(")"):
            if args:
                self.expect(",")
            argument = self.expect_kind("value", "a parameter")
            self.expect(":")
            args.append((argument, self.type()))
        attrs = self.attributes() if self.accept("attributes") else {}
        function = Function(name, [(_name(token), type_) for token, type_ in args], attrs=attrs)
        scope = _Scope(function)
        for (token, _), argument in zip(args, function.args, strict=True):
            self.define(scope, token, argument)
        self.expect("{")
        while self.accept("array"):
            function.shared.append(self.array())
        while not self.accept("}"):
            self.block(scope)
        self.resolve(scope)
        return function

    def array(self) -> Array:
        name = self.expect_kind("symbol", "the array's name").text[1:]
        self.expect(":")
        space = self.expect_kind("word", "an address space").text
        self.expect(",")
        size = self.number()
        self.expect("bytes")
        self.expect(",")
        self.expect("align")
        align = self.number()
        return Array(name, space, size, align, self.data(size) if self.accept(",") else b"")

    def data(self, size: int) -> bytes:
        self.expect("data")
        token = self.expect_kind("string", "the array's bytes in hexadecimal")
        try:
            data = bytes.fromhex(unquote(token.text))
        except ValueError:
            raise self.error("the array's bytes are not hexadecimal", token) from None
        if len(data) > size:
            raise self.error(f"{len(data)} bytes for an array of {size}", token)
        return data

    def define(self, scope: _Scope, token: Token, value: Value) -> None:
        if token.text in scope.values:
            raise self.error(f"'{token.text}' is defined twice", token)
        scope.values[token.text] = value

    def block_named(self, scope: _Scope, token: Token) -> BasicBlock:
        return scope.blocks.setdefault(token.text, BasicBlock(token.text))

    def block(self, scope: _Scope) -> None:
        label = self.expect_kind("word", "a block's label")
        block = self.block_named(scope, label)
        if block in scope.defined:
            raise self.error(f"block '{label.text}' is defined twice", label)
        scope.defined.append(block)
        block.parent = scope.function
        if self.accept("["):
            scope.guards.append((block, self.guard()))
        self.expect(":")
        while not self.at_block_end():
            block.append(self.instruction(scope))

    def at_block_end(self) -> bool:
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        return self.token.kind in ("}", "end") or (self.token.kind == "word" and following.kind in (":", "["))

    def guard(self) -> list[tuple[Token, bool]]:
        literals: list[tuple[Token, bool]] = []
        while not self.accept("]"):
            if literals:
                self.expect(",")
            polarity = not self.accept("!")
            literals.append((self.expect_kind("value", "a value"), polarity))
        return literals

    def instruction(self, scope: _Scope) -> Instruction:
        result = self.advance() if self.token.kind == "value" else None
        if result is not None:
            self.expect("=")
        opcode = self.expect_kind("word", "an opcode")
        if opcode.text not in OPCODES:
            raise self.error(f"unknown opcode '{opcode.text}'", opcode)
        info = OPCODES[opcode.text]
        if result is None and info.result != "void":
            raise self.error(f"the result of '{opcode.text}' needs a name", opcode)
        if result is not None and info.result == "void":
            raise self.error(f"'{opcode.text}' has no result", result)
        return self.rest(scope, opcode, info, result)

    def rest(self, scope: _Scope, opcode: Token, info: OpInfo, result: Token | None) -> Instruction:
        """What follows the opcode: bare attributes, operands, successors, attributes, type and location."""
        attrs: dict[str, Any] = {name: self.inline_attribute(info, name) for name in info.inline_attrs}
        operands: list[Token | Constant] = []
        if opcode.text == "phi":
            operands, attrs["blocks"] = self.incoming(scope)
        for index in range(len(info.operands)):
            self.separate(index)
            operands.append(self.operand())
        while opcode.text == "printf" and self.token.kind != "{":
            self.separate(len(operands))
            operands.append(self.operand())
        for index, name in enumerate(info.targets, len(info.operands)):
            self.separate(index)
            attrs[name] = self.target(scope)
        if self.token.kind == "{":
            attrs.update(self.attributes())
        type_ = VOID
        if result is not None:
            self.expect(":")
            type_ = self.type()
        instruction = Instruction(
            opcode.text, type_, (), attrs, self.location(), _name(result) if result else ""
        )
        scope.operands.append((instruction, operands))
        if result is not None:
            self.define(scope, result, instruction)
        return instruction

    def separate(self, index: int) -> None:
        if index:
            self.expect(",")

    def target(self, scope: _Scope) -> BasicBlock:
        token = self.expect_kind("word", "a block's label")
        scope.block_uses.append(token)
        return self.block_named(scope, token)

    def incoming(self, scope: _Scope) -> tuple[list[Token | Constant], tuple[BasicBlock, ...]]:
        values: list[Token | Constant] = []
        blocks: list[BasicBlock] = []
        while not blocks or self.accept(","):
            self.expect("[")
            values.append(self.operand())
            self.expect(",")
            blocks.append(self.target(scope))
            self.expect("]")
        return values, tuple(blocks)

    def inline_attribute(self, info: OpInfo, name: str) -> Any:
        kind = info.attrs[name].kind
        if kind == "int":
            return self.number()
        if kind == "type":
            return self.type()
        if kind == "name":
            return self.expect_kind("symbol", "an array's name").text[1:]
        token = self.expect_kind("word", f"one of {', '.join(info.attrs[name].choices)}")
        if token.text not in info.attrs[name].choices:
            raise self.error(f"'{token.text}' is none of {', '.join(info.attrs[name].choices)}", token)
        return token.text

    def operand(self) -> Token | Constant:
        if self.token.kind == "value":
            return self.advance()
        if self.accept("true"):
            return TRUE
        if self.accept("false"):
            return FALSE
        at = self.token
        type_ = self.type()
        if not isinstance(type_, IntType):
            raise self.error(f"a constant cannot have the type {type_}", at)
        at, number = self.token, self.number()
        if not -(1 << (type_.width - 1)) <= number <= type_.mask:
            raise self.error(f"{number} does not fit {type_}", at)
        return Constant(type_, number)

    def attributes(self) -> dict[str, Any]:
        self.expect("{")
        attrs: dict[str, Any] = {}
        while not self.accept("}"):
            if attrs:
                self.expect(",")
            name = self.expect_kind("word", "an attribute's name").text
            self.expect(":")
            attrs[name] = self.attribute_value()
        return attrs

    def attribute_value(self) -> Any:
        if self.token.kind == "number":
            return self.number()
        if self.token.kind == "string":
            return unquote(self.advance().text)
        if self.accept("["):
            numbers: list[int] = []
            while not self.accept("]"):
                self.separate(len(numbers))
                numbers.append(self.number())
            return tuple(numbers)
        text = self.expect_kind("word", "an attribute's value").text
        return text == "true" if text in ("true", "false") else _type_or_word(text)

    def location(self) -> Location | None:
        if not self.accept("!"):
            return None
        self.expect("loc")
        file = unquote(self.expect_kind("string", "a file name").text)
        self.expect(":")
        line = self.number()
        self.expect(":")
        return Location(file, line, self.number())

    def resolve(self, scope: _Scope) -> None:
        """Looks up operands, guards and blocks now that the whole function has been read."""
        for token in scope.block_uses:
            if scope.blocks[token.text] not in scope.defined:
                raise self.error(f"there is no block '{token.text}'", token)
        for instruction, operands in scope.operands:
            instruction.operands = tuple(self.value(scope, operand) for operand in operands)
        for block, literals in scope.guards:
            block.guard = tuple(Literal(self.value(scope, token), polarity) for token, polarity in literals)
        scope.function.blocks = scope.defined

    def value(self, scope: _Scope, operand: Token | Constant) -> Value:
        if isinstance(operand, Constant):
            return operand
        if operand.text not in scope.values:
            raise self.error(f"'{operand.text}' is not defined", operand)
        return scope.values[operand.text]


def _name(token: Token) -> str:
    """The value's name; numbers are given anew by the printer."""
    name = token.text[1:]
    return "" if name.isdecimal() else name


def _type_or_word(text: str) -> Type | str:
    try:
        parsed = parse_type(text)
    except ValueError:
        return text
    return parsed if isinstance(parsed, IntType | PtrType) else text


def parse_module(text: str, filename: str = "<string>") -> Module:
    """The module written as `text`; ParseError where it is none. Types and dominance are the verifier's."""
    return Parser(text, filename).module()


def parse_function(text: str, filename: str = "<string>") -> Function:
    """The only kernel of `text`; ParseError where there is none or more than one."""
    functions = parse_module(text, filename).functions
    if len(functions) != 1:
        raise ParseError(f"expected one kernel, found {len(functions)}", filename, 1, 1)
    return functions[0]
