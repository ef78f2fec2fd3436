"""PTX text to syntax tree."""

import os
import sys
from collections.abc import Iterable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken
from lark.lexer import PatternStr

from qgpu.toolchain.diagnostics import DiagnosticError, Source
from qgpu.toolchain.ptx import ast

_READABLE = {
    "NAME": "a name",
    "LABEL": "a label",
    "INT": "an integer",
    "FLOAT": "a number",
    "FLOAT_BITS": "a floating-point literal",
    "STRING": "a string",
    "TYPE": "a type",
    "SPACE": "a state space",
    "VECTOR": "'.v2' or '.v4'",
    "LINKAGE": "a linkage directive",
    "OPCODE": "an instruction",
    "PERFORMANCE": "a performance directive",
    "SECTION": "a section",
    "TARGETS": "a list of targets",
    "$END": "the end of the file",
}
_MOST_ALTERNATIVES = 4


def parse(source: Source) -> ast.Module:
    """The syntax tree of a PTX file; raises DiagnosticError at the first place that is not PTX."""
    try:
        tree: Any = _parser().parse(source.text)
    except UnexpectedInput as error:
        raise _syntax_error(source, error) from None
    return tree


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("ptx.lark").read_text(encoding="utf-8")
    return Lark(
        grammar, parser="lalr", start="module", transformer=_TreeBuilder(), cache=_cache_file() or False
    )


def _cache_file() -> str | None:
    """Where the parser's tables are kept between runs: to build them takes longer than to compile a kernel.

    Lark rebuilds tables that do not fit the grammar or its own version. They are a pickle, so only a folder
    that nobody else can write to will do; None where there is none.
    """
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qgpu" / "tables"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError):
        return None
    private = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    if not private or not os.access(folder, os.W_OK):
        return None
    return str(folder / f"ptx-{sys.version_info.major}.{sys.version_info.minor}.lark")


def _syntax_error(source: Source, error: UnexpectedInput) -> DiagnosticError:
    if isinstance(error, UnexpectedToken) and "SEMICOLON" in error.expected:
        before = source.text[: error.pos_in_stream].rstrip().split("\n")
        if len(before) < error.line:
            return DiagnosticError(source.diagnostic("expected ';'", len(before), len(before[-1]) + 1))
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        line, column, length = error.line, error.column, len(error.token)
        message, expected = f"unexpected '{error.token}'", error.accepts or error.expected
    elif isinstance(error, UnexpectedCharacters):
        line, column, length = error.line, error.column, 1
        message, expected = f"unexpected character {error.char!r}", error.allowed
    else:
        lines = source.text.split("\n")
        line, column, length = len(lines), len(lines[-1]) + 1, 1
        message = "unexpected end of the file"
        expected = error.expected if isinstance(error, UnexpectedEOF | UnexpectedToken) else ()
    alternatives = sorted(map(_readable, expected or ()))
    if 0 < len(alternatives) <= _MOST_ALTERNATIVES:
        message = f"{message}; expected {' or '.join(alternatives)}"
    return DiagnosticError(source.diagnostic(message, line, column, length=length))


def _readable(terminal: str) -> str:
    if terminal in _READABLE:
        return _READABLE[terminal]
    pattern = _parser().get_terminal(terminal).pattern
    return f"'{pattern.value}'" if isinstance(pattern, PatternStr) else terminal


def _at(token: Token) -> ast.Position:
    return ast.Position(token.line or 0, token.column or 0, len(token))


def _word(token: Token | None) -> str | None:
    """An optional directive without its dot."""
    return None if token is None else str(token[1:])


def _number(text: str) -> int:
    digits = text.rstrip("U")
    return int(digits, 8) if digits.isdigit() and digits.startswith("0") else int(digits, 0)


def _flat(nodes: Iterable) -> tuple:
    """The nodes in order, with those of a declaration of several variables one by one."""
    return tuple(chain.from_iterable(node if isinstance(node, tuple) else (node,) for node in nodes))


@v_args(inline=True)
class _TreeBuilder(Transformer):
    """Builds the nodes of the tree: a method per rule of the grammar, with the rule's parts as arguments."""

    def module(self, version, targets, address_size, *items) -> ast.Module:
        return ast.Module(version, targets, address_size, _flat(items))

    def version(self, number) -> str:
        return str(number)

    def target(self, *names) -> tuple[str, ...]:
        return tuple(map(str, names))

    def address_size(self, bits) -> int:
        return _number(bits)

    def file(self, number, path, *_) -> ast.File:
        return ast.File(_number(number), path[1:-1])

    def section(self, token) -> ast.Section:
        return ast.Section(str(token))

    def loc(self, file, line, column, inlined) -> ast.SourceLine:
        name, place = inlined or ("", None)
        return ast.SourceLine(_number(file), _number(line), _number(column), place, name)

    def inlined(self, name, *numbers) -> tuple[str, tuple[int, ...]]:
        *offset, file, line, column = map(_number, numbers)
        return f"{name}+{offset[0]}" if offset else str(name), (file, line, column)

    def pragma(self, *texts) -> ast.Pragma:
        return ast.Pragma(tuple(text[1:-1] for text in texts))

    def entry(self, linkage, name, parameters, *rest) -> ast.Entry:
        *performance, body = rest
        return ast.Entry(
            name.text, parameters or (), body, tuple(performance), _word(linkage), position=name.position
        )

    def function(self, linkage, results, name, parameters, *rest) -> ast.Function:
        body = rest[-1] if rest and isinstance(rest[-1], ast.Body) else None
        performance = rest[:-1] if body else rest
        return ast.Function(
            name.text,
            results or (),
            parameters or (),
            body,
            performance,
            _word(linkage),
            position=name.position,
        )

    def performance(self, directive, *numbers) -> ast.Performance:
        return directive[1:], tuple(map(_number, numbers))

    def parameters(self, *parameters) -> tuple[ast.Parameter, ...]:
        return parameters

    def parameter(self, align, type_, pointee, name, extents) -> ast.Parameter:
        return ast.Parameter(type_[1:], name.text, extents or (), align, pointee, position=name.position)

    def pointee(self, space, align) -> ast.Pointee:
        return ast.Pointee(_word(space), align)

    def variable(self, linkage, space, align, vector, type_, *declarators) -> tuple[ast.Variable, ...]:
        return tuple(
            ast.Variable(
                space[1:], type_[1:], name.text, extents, align, _word(vector), _word(linkage), value,
                position=name.position,
            )
            for name, extents, value in declarators
        )  # fmt: skip

    def declarator(self, name, extents, value) -> tuple:
        return name, extents or (), value

    def align(self, number) -> int:
        return _number(number)

    def extent(self, *numbers) -> tuple[int | None, ...]:
        return tuple(None if number is None else _number(number) for number in numbers)

    def aggregate(self, *values) -> ast.Aggregate:
        return ast.Aggregate(values)

    def body(self, *statements) -> ast.Body:
        return ast.Body(_flat(statements))

    def call_parameter(self, align, type_, name, extents) -> ast.CallParameter:
        return ast.CallParameter(type_[1:], name.text, extents or (), align, position=name.position)

    def targets(self, token) -> ast.Targets:
        return ast.Targets(str(token), position=_at(token))

    def registers(self, vector, type_, *ranges) -> ast.Registers:
        return ast.Registers(type_[1:], ranges, _word(vector), position=_at(type_))

    def register_range(self, name, count) -> ast.RegisterRange:
        return ast.RegisterRange(str(name), None if count is None else _number(count))

    def label(self, token) -> ast.Label:
        return ast.Label(str(token), position=_at(token))

    def instruction(self, guard, opcode, operands) -> ast.Instruction:
        name, *modifiers = opcode.split(".")
        return ast.Instruction(name, tuple(modifiers), operands or (), guard, position=_at(opcode))

    def guard(self, negation, name) -> ast.Guard:
        return ast.Guard(name, negation is not None)

    def operands(self, *operands) -> tuple[ast.Operand, ...]:
        return operands

    def pair(self, first, second) -> ast.Pair:
        return ast.Pair(first, second, position=first.position)

    def negated(self, negation, name) -> ast.Negated:
        return ast.Negated(name, position=_at(negation))

    def offset(self, base, offset) -> ast.Offset:
        return ast.Offset(base, offset, position=base.position)

    def signed(self, minus, number) -> int:
        return -_number(number) if minus else _number(number)

    def memory(self, address) -> ast.Memory:
        if isinstance(address, ast.Offset):
            return ast.Memory(address.base, address.offset, position=address.position)
        return ast.Memory(address, 0, position=address.position)

    def vector(self, elements) -> ast.Vector:
        return ast.Vector(elements, position=elements[0].position)

    def group(self, elements) -> ast.Group:
        return ast.Group(elements or ())

    def integer(self, minus, number) -> ast.Integer:
        return ast.Integer(self.signed(minus, number), position=_at(minus or number))

    def float(self, token) -> ast.Float:
        return ast.Float(str(token), position=_at(token))

    def name(self, token) -> ast.Name:
        return ast.Name(str(token), position=_at(token))
