"""From the text of an expression to its tree, or a diagnostic at the place where it goes wrong."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args
from lark.exceptions import VisitError
from lark.tree import Meta

from qgpu.runtime.expressions.syntax import (
    Array,
    Call,
    Index,
    Member,
    Name,
    Node,
    Number,
    Slice,
    Span,
    Statement,
)
from qgpu.toolchain.diagnostics import DiagnosticError, Source, note

MAX_TEXT = 20_000
"""Characters of the longest expression."""

MAX_DEPTH = 100
"""How deep an expression nests: 1 + 1 + ... + 1 has the depth of its number of terms."""

_LIMITS = (-(2**31), 2**31 - 1)
_MODULES = ("np", "numpy", "math")
_CONSTANTS = {"True": 1, "False": 0, "true": 1, "false": 0}
_WORDS = {
    "and": "write & between comparisons in parentheses: (x > 1) & (x < 5)",
    "or": "write | between comparisons in parentheses: (x < 1) | (x > 5)",
    "not": "write x == 0",
    "if": "write where(condition, x, y)",
    "for": "operations take whole vectors: [1, 2, 3] * 2",
    "lambda": "operations take whole vectors: [1, 2, 3] * 2",
    "import": "functions are there without an import",
}
"""Words of Python's that are none here, and what to write instead."""


def parse(text: str, name: str = "<expression>") -> tuple[Statement, ...]:
    """The statements of a text; the value of the last is the result.

    Raises:
        DiagnosticError: it is no expression; the diagnostic points to the place.
    """
    source = Source(name, text)
    if len(text) > MAX_TEXT:
        raise DiagnosticError(source.diagnostic(f"the expression is longer than {MAX_TEXT} characters", 1))
    if not text.strip():
        raise DiagnosticError(source.diagnostic("the expression is empty", 1))
    try:
        statements = _parser().parse(text)
        return tuple(_Builder(source).transform(statements))
    except UnexpectedInput as error:
        raise DiagnosticError(_syntax_error(error, source)) from None
    except VisitError as error:
        if isinstance(error.orig_exc, RecursionError):
            raise _too_deep(source) from None
        raise error.orig_exc from None
    except RecursionError:
        raise _too_deep(source) from None


def _too_deep(source: Source) -> DiagnosticError:
    return DiagnosticError(source.diagnostic("the expression nests too deep", 1))


class _Lines:
    """Drops the ends of lines within brackets (lark's `postlex`)."""

    always_accept = ("NEWLINE",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        depth = 0
        for token in stream:
            depth += (token.type in ("LPAR", "LSQB")) - (token.type in ("RPAR", "RSQB"))
            if token.type != "NEWLINE" or depth <= 0:
                yield token


@functools.cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("expression.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        start="program",
        parser="lalr",
        propagate_positions=True,
        maybe_placeholders=True,
        postlex=_Lines(),
    )


def _syntax_error(error: UnexpectedInput, source: Source) -> Any:
    if isinstance(error, UnexpectedCharacters):
        character = source.text[error.pos_in_stream or 0]
        return source.diagnostic(f"unexpected character {character!r}", error.line, error.column)
    if not isinstance(error, UnexpectedToken) or error.token.type == "$END":
        line = source.text.rstrip().count("\n") + 1
        column = len(source.line(line) or "") + 1
        return source.diagnostic("the expression ends too early", line, column, notes=_open_bracket(source))
    token = error.token
    if token.type == "NEWLINE":
        notes = _open_bracket(source)
        return source.diagnostic("the line ends too early", token.line or 1, token.column or 1, notes=notes)
    hint = _WORDS.get(str(token)) or _WORDS.get(_word_before(source.text, token.start_pos or 0))
    return source.diagnostic(
        f"unexpected '{token}'",
        token.line or 1,
        token.column or 1,
        length=len(token),
        notes=() if hint is None else (note(hint),),
    )


def _word_before(text: str, position: int) -> str:
    words = text[:position].split()
    return words[-1] if words else ""


def _open_bracket(source: Source) -> Sequence[Any]:
    """A note about the innermost bracket that nothing closes."""
    stack: list[tuple[str, int, int]] = []
    for number, line in enumerate(source.text.split("\n"), 1):
        for column, character in enumerate(line.split("#")[0], 1):
            if character in "([":
                stack.append((character, number, column))
            elif character in ")]" and stack:
                stack.pop()
    if not stack:
        return ()
    character, line_number, column = stack[-1]
    return (source.diagnostic(f"'{character}' is never closed", line_number, column, severity="note"),)


@v_args(meta=True)
class _Builder(Transformer[Any, Any]):
    """Makes nodes of what the grammar matched, and refuses what it matched for the message alone."""

    def __init__(self, source: Source) -> None:
        super().__init__(visit_tokens=False)
        self._source = source

    def program(self, meta: Meta, children: list[Any]) -> list[Statement]:
        """Statements; lines between them leave nothing."""
        kept = [child for child in children if not isinstance(child, Token)]
        return [one if isinstance(one, Statement) else Statement(None, one) for one in kept]

    def assignment(self, meta: Meta, children: list[Any]) -> Statement:
        name, value = children
        return Statement(str(name), value)

    def number(self, meta: Meta, children: list[Token]) -> Number:
        (token,) = children
        return Number(self._span(meta), self._integer(meta, str(token)))

    def name(self, meta: Meta, children: list[Token]) -> Node:
        (token,) = children
        if str(token) in _CONSTANTS:
            return Number(self._span(meta), _CONSTANTS[str(token)])
        return Name(self._span(meta), str(token))

    def group(self, meta: Meta, children: list[Node]) -> Node:
        (inner,) = children
        return inner

    def array(self, meta: Meta, children: list[Any]) -> Array:
        return self._checked(Array(self._span(meta), tuple(child for child in children if child is not None)))

    def empty(self, meta: Meta, children: list[Any]) -> Node:
        raise self._refused(meta, "an empty vector", "a vector has one element or more")

    def comparison(self, meta: Meta, children: list[Any]) -> Node:
        if len(children) > 3:
            hint = "compare two at a time: (a < b) & (b < c)"
            raise self._refused(meta, "a chain of comparisons", hint)
        return self.binary(meta, children)

    def binary(self, meta: Meta, children: list[Any]) -> Node:
        left, operator, right = children
        if str(operator) == "/":
            place = Span(operator.line, operator.column, 1)
            raise self._refused(place, "numbers are whole: there is no '/'", "write // for a quotient")
        return self._checked(Call(self._span(meta), str(operator), (left, right), operator=True))

    def unary(self, meta: Meta, children: list[Any]) -> Node:
        operator, operand = children
        if str(operator) == "+":
            return operand
        if str(operator) == "-" and isinstance(operand, Number) and operand.value > 0:
            return Number(self._span(meta), -operand.value)
        return self._checked(Call(self._span(meta), f"unary {operator}", (operand,), operator=True))

    def call(self, meta: Meta, children: list[Any]) -> Node:
        function, given = children
        plain = tuple(one for one in given or () if isinstance(one, Node))
        keywords = tuple(one for one in given or () if isinstance(one, tuple))
        if isinstance(function, Member):
            merged = (*function.arguments, *plain)
            return self._checked(Call(self._span(meta), function.name, merged, keywords))
        if not isinstance(function, Name):
            raise self._refused(meta, "what is called is no function", "functions have names: sum([1, 2])")
        return self._checked(Call(self._span(meta), function.name, plain, keywords))

    def member(self, meta: Meta, children: list[Any]) -> Node:
        """`x.T` and `x.f` are functions of x; `np.f` is the function f."""
        base, name = children
        if isinstance(base, Name) and base.name in _MODULES:
            return Name(self._span(meta), str(name))
        return self._checked(Member(self._span(meta), str(name), (base,)))

    def arguments(self, meta: Meta, children: list[Any]) -> list[Any]:
        return [child for child in children if child is not None]

    def keyword(self, meta: Meta, children: list[Any]) -> tuple[str, Node]:
        name, value = children
        return str(name), value

    def places(self, meta: Meta, children: list[Any]) -> list[Any]:
        return children

    def slice(self, meta: Meta, children: list[Any]) -> tuple[Node | None, Node | None]:
        start, stop = children
        return start, stop

    def index(self, meta: Meta, children: list[Any]) -> Node:
        base, places = children
        for place in places:
            made = (
                Slice(self._span(meta), base, *place)
                if isinstance(place, tuple)
                else Index(self._span(meta), base, place)
            )
            base = self._checked(made)
        return base

    def _integer(self, meta: Meta, text: str) -> int:
        try:
            value = int(text, 10 if text.isdigit() else 0)
        except ValueError:
            raise self._refused(meta, f"'{text}' is no whole number", "numbers are whole") from None
        if not _LIMITS[0] <= value <= -_LIMITS[0]:
            raise self._refused(
                meta, f"{value} does not fit 32 bits", f"numbers are {_LIMITS[0]} to {_LIMITS[1]}"
            )
        return value

    def _checked(self, node: Any) -> Any:
        """Refuse what nests too deep to be evaluated."""
        if node.depth > MAX_DEPTH:
            hint = "give parts of it names: x = ...; y = x + ..."
            raise self._refused(node.span, f"the expression nests deeper than {MAX_DEPTH}", hint)
        return node

    def _span(self, meta: Meta) -> Span:
        end = meta.end_pos if meta.end_line == meta.line else self._source.text.find("\n", meta.start_pos)
        return Span(meta.line, meta.column, max(1, end - meta.start_pos))

    def _refused(self, place: Meta | Span, message: str, *hints: str) -> DiagnosticError:
        span = place if isinstance(place, Span) else self._span(place)
        notes = tuple(map(note, hints))
        return DiagnosticError(
            self._source.diagnostic(message, span.line, span.column, length=span.length, notes=notes)
        )
