"""Declarations of a CUDA C++ file: where each begins and ends, what it declares, for host or device.

No types and no expressions: a declaration is told by its brackets, its keywords and the annotations in its
head (CUDA C++ Programming Guide, "Function Execution Space Specifiers" and "Variable Memory Space
Specifiers").
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from qgpu.toolchain.cuda.tokens import Directive, Token, directive_of

Kind = Literal["function", "variable", "class", "type", "namespace", "other"]

ANNOTATIONS = frozenset(("__global__", "__device__", "__constant__", "__shared__", "__managed__"))
"""What says that a declaration is for the device, too."""

_ATTRIBUTES = frozenset(
    (
        "alignas",
        "__align__",
        "__attribute__",
        "__launch_bounds__",
        "__declspec",
        "decltype",
        "noexcept",
        "explicit",
        "__cluster_dims__",
        "__maxnreg__",
        "__block_size__",
        "throw",
        "static_assert",
        "asm",
        "__asm__",
        "typeof",
        "__typeof__",
        "requires",
        "__builtin_align__",
    )
)
_CLASS_KEYS = frozenset(("class", "struct", "union"))
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
_TYPE_WORDS = frozenset(("using", "typedef", "enum", "static_assert", "template", "namespace"))
_ACCESS = frozenset(("public", "protected", "private"))
_NO_NAMES = frozenset(
    (
        "void",
        "int",
        "char",
        "short",
        "long",
        "float",
        "double",
        "bool",
        "unsigned",
        "signed",
        "const",
        "volatile",
        "auto",
        "struct",
        "class",
        "union",
        "enum",
        "typename",
        "restrict",
        "__restrict__",
        "__restrict",
    )
)


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
        opening, closing: the positions of a class' or namespace's braces.
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
    from qgpu.toolchain.cuda.tokens import tokens_of

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


def declarations_of(
    tokens: Iterable[Token], macros: Mapping[str, Sequence[Macro]], device: Collection[str], file: str = ""
) -> list[Declaration]:
    """The declarations of a file; `device` are the words that annotate, see words_for."""
    return _Parser(list(_without_directives(tokens)), macros, device, file).scope((), None)


def _without_directives(tokens: Iterable[Token]) -> Iterator[Token]:
    """The tokens between directives; of alternatives that open or close braces, those of the first alone."""
    depth = 0
    outer: list[int] = []
    skipping = 0
    for token in tokens:
        if token.kind == "directive":
            word, rest = (directive := directive_of(token)).word, directive.rest
            if word in ("if", "ifdef", "ifndef"):
                outer.append(depth)
                skipping += bool(skipping) or (word == "if" and rest == "0")
            elif word in ("else", "elif") and outer and skipping <= 1:
                skipping = int(not skipping and depth != outer[-1])
            elif word == "endif" and outer:
                outer.pop()
                skipping -= bool(skipping)
            continue
        if skipping:
            continue
        depth += (token.text == "{") - (token.text == "}")
        yield token


class _Parser:
    """One pass over the tokens; `at` is the next one's index."""

    def __init__(
        self,
        tokens: list[Token],
        macros: Mapping[str, Sequence[Macro]],
        device: Collection[str],
        file: str,
    ) -> None:
        self._tokens = tokens
        self._macros = macros
        self._device = device
        self._file = file
        self._at = 0

    def scope(self, around: tuple[str, ...], class_name: str | None) -> list[Declaration]:
        """The declarations up to the brace that closes the scope, or the end of the file."""
        found: list[Declaration] = []
        while self._at < len(self._tokens) and not (
            self._text() == "}" and (around or class_name is not None)
        ):
            if self._text() in (";", "}"):
                self._at += 1
            elif class_name is not None and self._text() in _ACCESS and self._text(1) == ":":
                self._at += 2
            else:
                found.append(self._declaration(around))
        return found

    def _text(self, ahead: int = 0) -> str:
        index = self._at + ahead
        return self._tokens[index].text if index < len(self._tokens) else ""

    def _declaration(self, around: tuple[str, ...]) -> Declaration:
        first = self._at
        return self._namespace(around) or self._expanded(around) or _Declaring(self, first, around).run()

    def _namespace(self, around: tuple[str, ...]) -> Declaration | None:
        """A namespace, or a linkage specification with braces, with what it holds."""
        start, at = self._at, self._at
        texts = [token.text for token in self._tokens[at : at + 12]]
        if texts[:1] == ["extern"] and texts[1:3] in (['"C"', "{"], ['"C++"', "{"]):
            names: list[str] = []
            opening = at + 2
        elif "namespace" in texts[:2] and texts[0] in ("namespace", "inline") and "{" in texts:
            opening = at + texts.index("{")
            between = texts[texts.index("namespace") + 1 : texts.index("{")]
            if ";" in between or "=" in between:
                return None
            names = [text for text in between if text.isidentifier()]
        else:
            return None
        self._at = opening + 1
        inner = self.scope((*around, *names) or ("",), None)
        self._at += 1
        inner_annotated = any(declaration.annotated for declaration in inner)
        return self.made(
            start,
            kind="namespace",
            names=tuple(names),
            scope=around,
            head=(),
            inner=inner,
            annotated=inner_annotated,
        )

    def _expanded(self, around: tuple[str, ...]) -> Declaration | None:
        """A use of a macro that stands for whole declarations."""
        name = self._tokens[self._at].text
        whole = [
            macro for macro in self._macros.get(name, ()) if any(part.text in "{;" for part in macro.body)
        ]
        if not whole or (whole[0].function_like and self._text(1) != "("):
            return None
        start = self._at
        self._at += 1
        if whole[0].function_like:
            self.skip_group()
        if self._text() == ";":
            self._at += 1
        return self.made(
            start,
            kind="other",
            names=(),
            scope=around,
            head=(self._tokens[start],),
            annotated=name in self._device,
        )

    def skip_group(self) -> tuple[Token, ...]:
        """Go past a bracket and all up to its match; what is between. A `;` closes parentheses left open."""
        start, open_ = self._at, []
        while self._at < len(self._tokens):
            text = self._text()
            if text in _OPENING:
                open_.append(_OPENING[text])
            elif text in _CLOSING:
                while open_ and open_[-1] != text and text == "}":
                    open_.pop()
                if not open_:
                    break
                if open_[-1] == text:
                    open_.pop()
            self._at += 1
            if not open_:
                break
        return tuple(self._tokens[start + 1 : self._at - 1])

    def skip_angles(self) -> tuple[Token, ...] | None:
        """Go past template arguments; None, and no step, where the `<` opens none."""
        start, depth = self._at, 0
        while self._at < len(self._tokens):
            text = self._text()
            if text in ("(", "["):
                self.skip_group()
                continue
            if text in (";", "{", "}", ")"):
                break
            depth += (text == "<") - text.count(">") * (text in (">", ">>>"))
            self._at += 1
            if depth <= 0:
                return tuple(self._tokens[start + 1 : self._at - 1])
        self._at = start
        return None

    def made(self, first: int, **fields) -> Declaration:
        """A declaration from the token `first` to the one before the next."""
        last = self._tokens[max(first, min(self._at, len(self._tokens)) - 1)]
        return Declaration(start=self._tokens[first].start, end=last.end, file=self._file, **fields)

    def is_device(self, token: Token) -> bool:
        return token.text in self._device

    def is_call(self, name: str) -> bool:
        """Whether parentheses after a name are not those of a function's parameters."""
        return name in _ATTRIBUTES or any(macro.function_like for macro in self._macros.get(name, ()))


class _Declaring:
    """One declaration that is neither a namespace nor a macro's."""

    def __init__(self, parser: _Parser, first: int, around: tuple[str, ...]) -> None:
        self._p = parser
        self._first = first
        self._around = around
        self._head: list[Token] = []
        self._names: list[str] = []
        self._template: tuple[Token, ...] | None = None
        self._parameters: tuple[Token, ...] | None = None
        self._inner: list[Declaration] = []
        self._assigned = False
        self._tail = ""
        self._body: int | None = None
        self._initialisers: int | None = None

    def run(self) -> Declaration:
        p = self._p
        while p._at < len(p._tokens):
            token = p._tokens[p._at]
            if token.text == "}" or self._step(token):
                break
        annotated = any(map(p.is_device, self._head)) or any(member.annotated for member in self._inner)
        return p.made(
            self._first,
            kind=self._kind(),
            names=tuple(self._names),
            scope=self._around,
            head=tuple(self._head),
            template=self._template,
            parameters=self._parameters,
            body=self._body,
            inner=self._inner,
            tail=self._tail,
            annotated=annotated,
        )

    def _step(self, token: Token) -> bool:
        """Take a token or a group; whether the declaration has ended."""
        p, text = self._p, token.text
        if text == ";":
            p._at += 1
            self._name_last()
            return True
        if text == "(":
            self._parentheses()
        elif text == "{":
            return self._braces(token)
        elif text == "[":
            self._name_last()
            p.skip_group()
            if self._last() == "operator":
                self._head.append(Token("mark", "[]", token.start))
        elif text == "<" and not self._assigned and self._last() != "operator":
            self._angles()
        else:
            self._mark(token)
            p._at += 1
        return False

    def _last(self) -> str:
        return self._head[-1].text if self._head else ""

    def _angles(self) -> None:
        found = self._p.skip_angles()
        if found is None:
            self._p._at += 1
        elif self._last() == "template":
            self._template = found
            self._head.pop()

    def _mark(self, token: Token) -> None:
        if self._assigned:
            if self._parameters is not None and not self._tail:
                self._tail = token.text
            if token.text == ",":
                self._assigned = False
            return
        if token.text == "=" and self._last() != "operator":
            self._name_last()
            self._assigned = True
        elif token.text == ":" and self._parameters is not None:
            self._initialisers = token.start
        elif token.text == "," and self._initialisers is None:
            self._name_last()
        if self._initialisers is None:
            self._head.append(token)

    def _name_last(self) -> None:
        """Note the name before a token that ends a declarator."""
        if self._assigned or self._parameters is not None or not self._head:
            return
        last = self._head[-1]
        if last.kind == "name" and last.text not in _NO_NAMES and last.text not in self._names:
            self._names.append(last.text)

    def _parentheses(self) -> None:
        p = self._p
        last = self._head[-1] if self._head else None
        group = p.skip_group()
        if self._assigned or self._parameters is not None or last is None or p.is_call(last.text):
            return
        if last.text == "operator" and not group:
            self._head.append(Token("mark", "()", last.start))
            return
        self._parameters = group
        if group and group[0].text == "*":
            self._names += [token.text for token in group if token.kind == "name"][:1]
        else:
            self._names.append(self._function_name())

    def _function_name(self) -> str:
        texts = [token.text for token in self._head]
        if "operator" in texts:
            return "".join(texts[texts.index("operator") :])
        return texts[-1]

    def _braces(self, token: Token) -> bool:
        p = self._p
        if self._parameters is not None and not self._assigned:
            return self._function_body(token)
        if self._assigned or not _CLASS_KEYS & {part.text for part in self._head} or self.has_enum():
            self._name_last()
            p.skip_group()
            self._head.append(Token("mark", "{}", token.start))
            return False
        name = self._class_name()
        self._names.append(name)
        p._at += 1
        self._inner = p.scope((*self._around, name), name)
        p._at += 1
        self._head.append(Token("mark", "{}", token.start))
        return False

    def has_enum(self) -> bool:
        return any(part.text == "enum" for part in self._head)

    def _class_name(self) -> str:
        texts = [token.text for token in self._head]
        start = next(index for index, text in enumerate(texts) if text in _CLASS_KEYS)
        after = texts[start + 1 :]
        before_bases = after[: after.index(":")] if ":" in after else after
        names = [text for text in before_bases if text.isidentifier() and text not in ("final", *_ATTRIBUTES)]
        return names[-1] if names else ""

    def _function_body(self, token: Token) -> bool:
        """A body ends the declaration; braces after a member's name in the list of initialisers do not."""
        p = self._p
        before = p._tokens[p._at - 1]
        if self._initialisers is not None and (before.kind == "name" or before.text == ">"):
            p.skip_group()
            return False
        self._body = token.start if self._initialisers is None else self._initialisers
        p.skip_group()
        return True

    def _kind(self) -> Kind:
        texts = {token.text for token in self._head}
        if self._body is not None:
            return "function"
        if "{}" in texts and texts & _CLASS_KEYS and self._names and "enum" not in texts:
            return "class"
        if texts & _TYPE_WORDS or (self._head and self._head[0].text == "template"):
            return "type"
        if self._head and self._head[0].text in _CLASS_KEYS and len(self._head) == 2:
            return "type"
        return "function" if self._parameters is not None and self._around else "variable"
