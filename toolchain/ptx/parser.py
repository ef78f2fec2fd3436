"""PTX text to syntax tree."""

from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedInput

from qgpu.toolchain.diagnostics import DiagnosticError, Source
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.syntax_errors import syntax_error
from qgpu.toolchain.ptx.tree_builder import InvalidText, TreeBuilder
from qgpu.toolchain.tables import tables_file


def parse(source: Source) -> ast.Module:
    """The syntax tree of a PTX file; raises DiagnosticError at the first place that is not PTX."""
    try:
        tree: Any = _parser().parse(source.text)
    except UnexpectedInput as error:
        raise DiagnosticError(syntax_error(source, error)) from None
    except InvalidText as error:
        place = error.position
        diagnostic = source.diagnostic(error.message, place.line, place.column, length=place.length)
        raise DiagnosticError(diagnostic) from None
    return tree


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("ptx.lark").read_text(encoding="utf-8")
    return Lark(
        grammar, parser="lalr", start="module", transformer=TreeBuilder(), cache=tables_file("ptx") or False
    )
