"""PTX text to syntax tree."""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedInput

from qgpu.toolchain.diagnostics import DiagnosticError, Source
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.syntax_errors import syntax_error
from qgpu.toolchain.ptx.tree_builder import InvalidText, TreeBuilder


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
