"""Tokens of CUDA C++, as far as telling declarations apart takes them.

The phases of translation, C++17 [lex.phases]: lines are joined at a backslash, comments are white space, and
a line whose first token is `#` is a directive. Macros are not expanded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["name", "number", "text", "mark", "directive"]

_TOKEN = re.compile(
    r"""
    (?P<space>  \s+ | \\\r?\n | //(?:[^\n\\]|\\\r?\n|\\.)* | /\*.*?(?:\*/|\Z) )
  | (?P<raw>    (?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\(.*?(?:\)(?P=mark)"|\Z) )
  | (?P<text>   (?:u8|[uUL])?(?:"(?:[^"\\\n]|\\\r?\n|\\.)*(?:"|(?=\n)|\Z)|'(?:[^'\\\n]|\\.)*(?:'|(?=\n)|\Z)) )
  | (?P<number> \.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[0-9A-Za-z_.])* )
  | (?P<name>   [A-Za-z_$\u0080-\U0010ffff][\w$]* )
  | (?P<other>  ::|<<<|>>>|->|\.\.\.|[<>=!+\-*/%&|^]=|&&|\|\||. )
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DIRECTIVE = re.compile(
    r"""(?: [^\n\\/"'] | \\\r?\n | \\. | /\*.*?\*/ | //[^\n]* | / | "(?:[^"\\\n]|\\.)*"?
       | '(?:[^'\\\n]|\\.)*'? )*""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token and where it begins; a directive is one, from its `#` to the end of its (joined) lines."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The position after its last character."""
        return self.start + len(self.text)


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of a text, without white space and comments; an unfinished one ends with its line."""
    position, fresh = 0, True
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None, "every character is a token's first"
        kind = match.lastgroup if match.lastgroup != "mark" else "raw"
        if kind == "space":
            fresh = fresh or "\n" in match.group()
        elif kind == "other" and match.group() == "#" and fresh:
            match = _DIRECTIVE.match(text, position)
            assert match is not None, "an empty directive matches"
            yield Token("directive", match.group(), position)
        else:
            fresh = False
            yield Token(_KINDS[kind or "other"], match.group(), position)
        position = match.end()


_KINDS: dict[str, Kind] = {"raw": "text", "text": "text", "number": "number", "name": "name", "other": "mark"}


@dataclass(frozen=True)
class Directive:
    """A preprocessor line: its word (`include`, `define`, ...) and what follows, without comments."""

    word: str
    rest: str


def directive_of(token: Token) -> Directive:
    """What a directive says; lines that a backslash joins are one."""
    text = _LINE_COMMENTS.sub(" ", re.sub(r"\\\r?\n", " ", token.text))[1:].strip()
    word = re.match(r"\w*", text)
    assert word is not None, "an empty word matches"
    return Directive(word.group(), text[word.end() :].strip())
