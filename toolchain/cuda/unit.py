"""A translation unit: a CUDA source and the user's headers that it includes, with what they declare.

Nothing is preprocessed: a header counts wherever an `#include` names it, whichever way conditions go.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from qgpu.toolchain.cuda.declaration_parser import declarations_of
from qgpu.toolchain.cuda.declarations import Declaration, Macro, macros_of, words_for
from qgpu.toolchain.cuda.tokens import Token, directive_of, tokens_of
from qgpu.toolchain.diagnostics import Source

HEADERS = Path(__file__).parent.parent / "include"
"""The folder of the headers that this project brings for kernels."""

HOST_HEADERS = frozenset((HEADERS / "host_headers.txt").read_text().split())
"""Headers of the host's standard library and of CUDA's host libraries: they are taken for empty."""

_INCLUDE = re.compile(r'(?P<quote>["<])(?P<name>[^">]+)[">]')


@dataclass(frozen=True)
class Include:
    """An `#include` line: where it lies, the name that it has, and the user's file that it means, if any."""

    directive: Token
    name: str
    quoted: bool
    file: str | None


class SourceFile:
    """A file of the user's, with its tokens."""

    def __init__(self, name: str, text: str, folders: Sequence[Path]) -> None:
        self.source = Source(name, text)
        self.tokens = list(tokens_of(text))
        self.includes = [
            include for token in self.tokens if (include := _include(token, Path(name).parent, folders))
        ]

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def text(self) -> str:
        return self.source.text

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def place(self, position: int) -> tuple[int, int]:
        """Line and column, from 1, of a position in the text."""
        from bisect import bisect_right

        line = bisect_right(self._starts, position)
        return line, position - self._starts[line - 1] + 1

    def position(self, line: int, column: int) -> int:
        """The position in the text of a line and a column, both from 1; column 0 is the line's first mark."""
        if not 1 <= line < len(self._starts):
            return len(self.text)
        start = self._starts[line - 1]
        if column:
            return start + column - 1
        content = self.source.line(line) or ""
        return start + len(content) - len(content.lstrip())


def _include(token: Token, folder: Path, folders: Sequence[Path]) -> Include | None:
    if token.kind != "directive" or (directive := directive_of(token)).word != "include":
        return None
    match = _INCLUDE.match(directive.rest)
    if match is None:
        return None
    quoted = match["quote"] == '"'
    return Include(token, match["name"], quoted, _found(match["name"], [folder] * quoted + list(folders)))


def _found(name: str, folders: Sequence[Path]) -> str | None:
    for folder in folders:
        path = os.path.normpath(folder / name)
        if os.path.isfile(path):
            return path
    return None


class TranslationUnit:
    """A source and the user's headers that it includes, by their names.

    Attributes:
        files: the source first.
    """

    def __init__(self, source: Source, include_dirs: Sequence[Path]) -> None:
        self.files: dict[str, SourceFile] = {}
        self._read(SourceFile(source.name, source.text, include_dirs), include_dirs)
        self.macros: dict[str, list[Macro]] = {}
        for file in self.files.values():
            for name, definitions in macros_of(file.tokens).items():
                self.macros.setdefault(name, []).extend(definitions)
        self.device_words = words_for(self.macros)
        self.declarations = {
            name: declarations_of(file.tokens, self.macros, self.device_words, name)
            for name, file in self.files.items()
        }

    def _read(self, file: SourceFile, folders: Sequence[Path]) -> None:
        self.files[file.name] = file
        for include in file.includes:
            if include.file is None or include.file in self.files:
                continue
            try:
                text = Path(include.file).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            self._read(SourceFile(include.file, text, folders), folders)

    def all_declarations(self) -> list[Declaration]:
        """Every declaration of every file, outer ones before what they hold."""
        return [found for outer in self.declarations.values() for one in outer for found in one.walk()]
