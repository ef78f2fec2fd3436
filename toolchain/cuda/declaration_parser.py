"""Find the declarations of a CUDA C++ file by its brackets, keywords and annotations; see `declarations`."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from qgpu.toolchain.cuda.cursor import Cursor, without_directives
from qgpu.toolchain.cuda.declarations import Declaration, Kind, Macro
from qgpu.toolchain.cuda.tokens import Token

_ATTRIBUTES = frozenset(
    re.findall(
        r"\w+",
        "alignas __align__ __attribute__ __launch_bounds__ __declspec decltype noexcept explicit "
        "__cluster_dims__ __maxnreg__ __block_size__ throw static_assert asm __asm__ typeof __typeof__ "
        "requires __builtin_align__",
    )
)
_CLASS_KEYS = frozenset(("class", "struct", "union"))
_TYPE_WORDS = frozenset(("using", "typedef", "enum", "static_assert", "template", "namespace"))
_ACCESS = frozenset(("public", "protected", "private"))
_NO_NAMES = frozenset(
    re.findall(
        r"\w+",
        "void int char short long float double bool unsigned signed const volatile auto struct class union "
        "enum typename restrict __restrict__ __restrict",
    )
)


def declarations_of(
    tokens: Iterable[Token], macros: Mapping[str, Sequence[Macro]], device: Collection[str], file: str = ""
) -> list[Declaration]:
    """The declarations of a file; `device` are the words that annotate, see words_for."""
    return _Parser(list(without_directives(tokens)), macros, device, file).scope((), None)


class _Parser:
    """One pass over the tokens."""

    def __init__(
        self,
        tokens: list[Token],
        macros: Mapping[str, Sequence[Macro]],
        device: Collection[str],
        file: str,
    ) -> None:
        self.cursor = Cursor(tokens)
        self._macros = macros
        self._device = device
        self._file = file

    def scope(self, around: tuple[str, ...], class_name: str | None) -> list[Declaration]:
        """The declarations up to the brace that closes the scope, or the end of the file."""
        found: list[Declaration] = []
        while not self.cursor.ended and not (
            self.cursor.text() == "}" and (around or class_name is not None)
        ):
            if self.cursor.text() in (";", "}"):
                self.cursor.at += 1
            elif class_name is not None and self.cursor.text() in _ACCESS and self.cursor.text(1) == ":":
                self.cursor.at += 2
            else:
                found.append(self._declaration(around))
        return found

    def _declaration(self, around: tuple[str, ...]) -> Declaration:
        first = self.cursor.at
        return self._namespace(around) or self._expanded(around) or _Declaring(self, first, around).run()

    def _namespace(self, around: tuple[str, ...]) -> Declaration | None:
        """A namespace, or a linkage specification with braces, with what it holds."""
        start, at = self.cursor.at, self.cursor.at
        texts = [token.text for token in self.cursor.tokens[at : at + 12]]
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
        self.cursor.at = opening + 1
        inner = self.scope((*around, *names) or ("",), None)
        self.cursor.at += 1
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
        name = self.cursor.tokens[self.cursor.at].text
        whole = [
            macro for macro in self._macros.get(name, ()) if any(part.text in "{;" for part in macro.body)
        ]
        if not whole or (whole[0].function_like and self.cursor.text(1) != "("):
            return None
        start = self.cursor.at
        self.cursor.at += 1
        if whole[0].function_like:
            self.cursor.skip_group()
        if self.cursor.text() == ";":
            self.cursor.at += 1
        return self.made(
            start,
            kind="other",
            names=(),
            scope=around,
            head=(self.cursor.tokens[start],),
            annotated=name in self._device,
        )

    def made(self, first: int, **fields) -> Declaration:
        """A declaration from the token `first` to the one before the next."""
        last = self.cursor.tokens[max(first, min(self.cursor.at, len(self.cursor.tokens)) - 1)]
        return Declaration(start=self.cursor.tokens[first].start, end=last.end, file=self._file, **fields)

    def is_device(self, token: Token) -> bool:
        """Whether a word annotates."""
        return token.text in self._device

    def is_call(self, name: str) -> bool:
        """Whether parentheses after a name are not those of a function's parameters."""
        return name in _ATTRIBUTES or any(macro.function_like for macro in self._macros.get(name, ()))


class _Declaring:
    """One declaration that is neither a namespace nor a macro's."""

    def __init__(self, parser: _Parser, first: int, around: tuple[str, ...]) -> None:
        self._p = parser
        self._c = parser.cursor
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
        p, c = self._p, self._c
        while not c.ended:
            token = c.tokens[c.at]
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
        c, text = self._c, token.text
        if text == ";":
            c.at += 1
            self._name_last()
            return True
        if text == "(":
            self._parentheses()
        elif text == "{":
            return self._braces(token)
        elif text == "[":
            self._name_last()
            c.skip_group()
            if self._last() == "operator":
                self._head.append(Token("mark", "[]", token.start))
        elif text == "<" and not self._assigned and self._last() != "operator":
            self._angles()
        else:
            self._mark(token)
            c.at += 1
        return False

    def _last(self) -> str:
        return self._head[-1].text if self._head else ""

    def _angles(self) -> None:
        found = self._c.skip_angles()
        if found is None:
            self._c.at += 1
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
        p, c = self._p, self._c
        last = self._head[-1] if self._head else None
        group = c.skip_group()
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
        p, c = self._p, self._c
        if self._parameters is not None and not self._assigned:
            return self._function_body(token)
        if self._assigned or not _CLASS_KEYS & {part.text for part in self._head} or self._has_enum():
            self._name_last()
            c.skip_group()
            self._head.append(Token("mark", "{}", token.start))
            return False
        name = self._class_name()
        self._names.append(name)
        c.at += 1
        self._inner = p.scope((*self._around, name), name)
        c.at += 1
        self._head.append(Token("mark", "{}", token.start))
        return False

    def _has_enum(self) -> bool:
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
        c = self._c
        before = c.tokens[c.at - 1]
        if self._initialisers is not None and (before.kind == "name" or before.text == ">"):
            c.skip_group()
            return False
        self._body = token.start if self._initialisers is None else self._initialisers
        c.skip_group()
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
