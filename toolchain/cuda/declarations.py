"""Declarations of a CUDA C++ file: where each begins and ends, what it declares, for host or device.

No types and no expressions: a declaration is told by its brackets, its keywords and the annotations in its
head (CUDA C++ Programming Guide, "Function Execution Space Specifiers" and "Variable Memory Space
Specifiers").
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from qgpu.toolchain.cuda.tokens import Directive, Token, directive_of, tokens_of

Kind = Literal["function", "variable", "class", "type", "namespace", "other"]

ANNOTATIONS = frozenset(("__global__", "__device__", "__constant__", "__shared__", "__managed__"))
"""What says that a declaration is for the device, too."""


@dataclass(frozen=True)
class Macro:
    """A macro: whether it takes arguments, and the tokens that it stands for."""

    function_like: bool
    body: tuple[Token, ...]


@dataclass(eq=False)
class Declaration:
    """A declaration: the text from `start` to `end`, its last `;` or `}` included.

    Attributes:
        kind: `variable` may be a prototype as well, which only its types would tell.
        names: what it declares; the first is the one that errors speak of.
        scope: the namespaces and classes around it.
        head: its tokens outside of brackets, before the body or initialiser.
        template: the tokens between the angle brackets of its innermost `template <...>`, if it has one.
        parameters: the tokens between the parentheses after a function's name, or None.
        body: where a function's body begins, with the list of initialisers before it, or None.
        inner: what a class or namespace declares.
        tail: how a function without a body ends: `default`, `delete` or `0` after `=`, else nothing.
        annotated: whether it, or something in it, is for the device.
    """

    kind: Kind
    names: tuple[str, ...]
    scope: tuple[str, ...]
    start: int
    end: int
    head: tuple[Token, ...]
    template: tuple[Token, ...] | None = None
    parameters: tuple[Token, ...] | None = None
    body: int | None = None
    inner: list["Declaration"] = field(default_factory=list)
    tail: str = ""
    annotated: bool = False
    file: str = ""

    @property
    def name(self) -> str:
        """The name that errors speak of, or nothing."""
        return self.names[0] if self.names else ""

    def has(self, *words: str) -> bool:
        """Whether its head holds one of these words."""
        return any(token.text in words for token in self.head)

    def walk(self) -> "Iterator[Declaration]":
        """It and all that it holds."""
        yield self
        for declaration in self.inner:
            yield from declaration.walk()


def macros_of(tokens: Iterable[Token]) -> dict[str, list[Macro]]:
    """The macros that directives define, each with all of its definitions."""
    found: dict[str, list[Macro]] = {}
    for token in tokens:
        directive = directive_of(token) if token.kind == "directive" else Directive("", "")
        if directive.word != "define":
            continue
        body = tuple(tokens_of(directive.rest))
        if not body:
            continue
        name, rest = body[0], body[1:]
        function_like = bool(rest) and rest[0].text == "(" and rest[0].start == name.end
        if function_like:
            closing = next((n for n, part in enumerate(rest) if part.text == ")"), len(rest))
            rest = rest[closing + 1 :]
        found.setdefault(name.text, []).append(Macro(function_like, rest))
    return found


def words_for(macros: Mapping[str, Sequence[Macro]], annotations: Collection[str] = ANNOTATIONS) -> set[str]:
    """Some annotations, and the macros that stand for text with one of them in any of their definitions."""
    words = set(annotations)
    while True:
        more = {
            name
            for name, definitions in macros.items()
            if name not in words and any(part.text in words for macro in definitions for part in macro.body)
        }
        if not more:
            return words
        words |= more
