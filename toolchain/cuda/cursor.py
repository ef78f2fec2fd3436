"""The tokens between directives, a place among them, and steps over groups."""

from collections.abc import Iterable, Iterator

from qgpu.toolchain.cuda.tokens import Token, directive_of

_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())


def without_directives(tokens: Iterable[Token]) -> Iterator[Token]:
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


class Cursor:
    """Goes over tokens; `at` is the next one's index."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def ended(self) -> bool:
        """Whether there is no next token."""
        return self.at >= len(self.tokens)

    def text(self, ahead: int = 0) -> str:
        """The text of the next token, or of one after it; nothing beyond the end."""
        index = self.at + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def skip_group(self) -> tuple[Token, ...]:
        """Go past a bracket and all up to its match; what is between. A `;` closes parentheses left open."""
        start, open_ = self.at, []
        while self.at < len(self.tokens):
            text = self.text()
            if text in _OPENING:
                open_.append(_OPENING[text])
            elif text in _CLOSING:
                while open_ and open_[-1] != text and text == "}":
                    open_.pop()
                if not open_:
                    break
                if open_[-1] == text:
                    open_.pop()
            self.at += 1
            if not open_:
                break
        return tuple(self.tokens[start + 1 : self.at - 1])

    def skip_angles(self) -> tuple[Token, ...] | None:
        """Go past template arguments; None, and no step, where the `<` opens none."""
        start, depth = self.at, 0
        while self.at < len(self.tokens):
            text = self.text()
            if text in ("(", "["):
                self.skip_group()
                continue
            if text in (";", "{", "}", ")"):
                break
            depth += (text == "<") - text.count(">") * (text in (">", ">>>"))
            self.at += 1
            if depth <= 0:
                return tuple(self.tokens[start + 1 : self.at - 1])
        self.at = start
        return None
