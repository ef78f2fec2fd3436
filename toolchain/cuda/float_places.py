"""Where in a statement of CUDA its floating-point numbers are.

NVRTC and nvcc give an instruction the place where its statement begins, or the first one of its line; a
refusal is better told at the literal, the type, the function or the variable that is of floating-point
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from qgpu.toolchain.cuda.declarations import macros_of
from qgpu.toolchain.cuda.tokens import Token
from qgpu.toolchain.cuda.unit import SourceFile

_LITERAL = re.compile(r"(?!0[xX])[\d.'].*[.eEfF].*|\d[\d']*[fF]|\..*")
_TYPE = re.compile(r"(?:float|double)[1-4]?|__half2?|half2?|__nv_bfloat162?")
_WORD = re.compile(
    r"(?:make_)?(?:float|double)[1-4]?|__\w*(?:float|double|half)\w*|"
    r"(?:__)?(?:r?sqrt|r?cbrt|r?hypot|sin|cos|tan|asin|acos|atan2?|sinh|cosh|tanh|exp(?:2|10|m1)?|log(?:2|10|1p|b)?|"
    r"pow|fabs|floor|ceil|round|rint|trunc|fmod|remainder|fma|fmin|fmax|fdim|copysign|ldexp|frexp|erfc?|[lt]gamma|"
    r"fdivide|saturate)f?"
)
"""Types, their makers, conversions and functions of `<math.h>` and of CUDA's."""
_INTEGER_TYPE = re.compile(r"int|unsigned|signed|long|short|char|bool|size_t|u?int\d+_t|u?char\d|u?int[234]")
_QUALIFIERS = frozenset(("*", "&", "const", "volatile", "restrict", "__restrict__", "__restrict", "[", "]"))
_BEFORE_STATEMENTS = frozenset((";", "{", "}", ")", ":", "else", "do"))
_HEADS = frozenset(("if", "while", "for", "switch"))


def float_place(file: SourceFile, line: int, column: int) -> Token | None:
    """The first token of floating-point numbers in the statement that begins at a place of a file.

    None where no statement begins there (clang's places are exact), and where nothing tells.
    """
    start = file.position(line, column)
    tokens = [token for token in file.tokens if token.kind != "directive"]
    first = next((number for number, token in enumerate(tokens) if token.start == start), None)
    if first is None or not _begins_statement(tokens, first):
        return None
    known = _declared(tokens[:first])
    macros = {
        name
        for name, definitions in macros_of(file.tokens).items()
        if any(_is_float(part, {}) for macro in definitions for part in macro.body)
    }
    known |= dict.fromkeys(macros, True)
    end_of_line = start + len(file.text[start:].partition("\n")[0])
    statement = list(_statement(tokens[first:], end_of_line))
    known |= _declared(statement)
    return next((token for token in statement if _is_float(token, known)), None)


def _begins_statement(tokens: Sequence[Token], index: int) -> bool:
    if index == 0 or tokens[index - 1].text in _BEFORE_STATEMENTS:
        return True
    return index > 1 and tokens[index - 1].text == "(" and tokens[index - 2].text in _HEADS


def _statement(tokens: Sequence[Token], end_of_line: int) -> Iterator[Token]:
    """The tokens of a statement, those of its head if it has one, and all that follow on its first line."""
    head, depth, ended = tokens[0].text in _HEADS, 0, False
    for token in tokens:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if ended and token.start >= end_of_line:
            return
        yield token
        ended = ended or depth < 0 or (depth == 0 and token.text in (";", "{", "}", ")" if head else ";"))


def _declared(tokens: Sequence[Token]) -> dict[str, bool]:
    """Whether a name is of floating-point numbers, by the last declaration of it with a built-in type."""
    found: dict[str, bool] = {}
    for index, token in enumerate(tokens):
        is_float = bool(_TYPE.fullmatch(token.text))
        if token.kind == "name" and (is_float or _INTEGER_TYPE.fullmatch(token.text)):
            found |= dict.fromkeys(_names(tokens[index + 1 :]), is_float)
    return found


def _names(tokens: Sequence[Token]) -> Iterator[str]:
    """The names that a declaration gives after its type: `*x, y = f(1, 2), z[4]` declares x, y and z."""
    depth, expected = 0, True
    for token in takewhile(lambda token: token.text not in (";", "{", "}"), tokens):
        if expected and token.kind == "name" and token.text not in _QUALIFIERS:
            if _TYPE.fullmatch(token.text) or _INTEGER_TYPE.fullmatch(token.text):
                return
            yield token.text
            expected = False
        elif expected and token.text not in _QUALIFIERS:
            return
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth < 0:
            return
        expected = expected or (token.text == "," and depth == 0)


def _is_float(token: Token, known: dict[str, bool]) -> bool:
    if token.kind == "number":
        return bool(_LITERAL.fullmatch(token.text))
    return token.kind == "name" and known.get(token.text, bool(_WORD.fullmatch(token.text)))
