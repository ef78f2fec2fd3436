"""PTX text to syntax tree."""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken
from lark.lexer import PatternStr

from qgpu.toolchain.diagnostics import DiagnosticError, Source
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.tree_builder import InvalidText, TreeBuilder

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
    except InvalidText as error:
        place = error.position
        diagnostic = source.diagnostic(error.message, place.line, place.column, length=place.length)
        raise DiagnosticError(diagnostic) from None
    return tree


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("ptx.lark").read_text(encoding="utf-8")
    return Lark(
        grammar, parser="lalr", start="module", transformer=TreeBuilder(), cache=_cache_file() or False
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
