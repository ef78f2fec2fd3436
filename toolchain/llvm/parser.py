"""Text of LLVM IR to syntax: an entity of a module or an instruction at a time."""

from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedInput

from qgpu.toolchain.llvm.tree_builder import TreeBuilder
from qgpu.toolchain.tables import tables_file

STARTS = (
    "type_definition",
    "variable",
    "function_head",
    "attribute_group",
    "metadata",
    "label",
    "instruction",
)


class NotInGrammar(Exception):
    """Text that the grammar does not take."""


def parse(text: str, start: str) -> Any:
    """The syntax of a text that is one of STARTS; raises NotInGrammar where it is none that is known."""
    try:
        return _parser().parse(text, start=start)
    except UnexpectedInput as error:
        raise NotInGrammar(text) from error


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("llvm.lark").read_text(encoding="utf-8")
    cache_file = tables_file("llvm") or False
    return Lark(grammar, parser="lalr", start=list(STARTS), transformer=TreeBuilder(), cache=cache_file)
