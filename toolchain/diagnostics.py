"""Diagnostics in clang's form: `file:line:col: error: message`, the source line, a caret, notes.

A stage that refuses its input raises `DiagnosticError`; a command line wraps its body in `reporting()`,
which prints what was raised to stderr and ends with exit status 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TextIO

Severity = Literal["error", "warning", "note"]

_WARNS: ContextVar[bool] = ContextVar("warns", default=True)

_BOLD, _RESET, _CARET = "\x1b[1m", "\x1b[0m", "\x1b[1;32m"
_COLOUR: dict[Severity, str] = {"error": "\x1b[1;31m", "warning": "\x1b[1;35m", "note": "\x1b[1;36m"}


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One message about one place of the input.

    `line` and `column` count from 1; 0 means that the place is not known that closely. `length` is the
    number of characters underlined from `column` on. A message about no file has `file` None and is
    printed under the program's own name.
    """

    severity: Severity = "error"
    message: str
    file: str | None = None
    line: int = 0
    column: int = 0
    source_line: str | None = None
    notes: tuple[Diagnostic, ...] = ()
    length: int = 1


class DiagnosticError(Exception):
    """Raised where the input is at fault; holds one or more diagnostics, at least one of them an error."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        if not any(diagnostic.severity == "error" for diagnostic in diagnostics):
            raise ValueError("a DiagnosticError needs at least one error")
        super().__init__(render(diagnostics))
        self.diagnostics = diagnostics

    def __reduce__(self) -> tuple[type[DiagnosticError], tuple[Diagnostic, ...]]:
        """Pickles as its diagnostics, so that a process can hand it to another."""
        return type(self), self.diagnostics


def note(message: str) -> Diagnostic:
    """A note that belongs to the diagnostic it hangs on and to no place of its own."""
    return Diagnostic(severity="note", message=message)


def failure(message: str, *notes: str, file: str | None = None) -> DiagnosticError:
    """An error about the input as a whole, with plain notes."""
    return DiagnosticError(Diagnostic(message=message, file=file, notes=tuple(map(note, notes))))


@dataclass(frozen=True)
class Source:
    """A text with the name under which diagnostics show it."""

    name: str
    text: str
    _lines: list[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lines", self.text.split("\n"))

    def line(self, number: int) -> str | None:
        """The text of a line counted from 1, or None outside the file."""
        if not 1 <= number <= len(self._lines):
            return None
        return self._lines[number - 1].rstrip("\r")

    def diagnostic(
        self,
        message: str,
        line: int,
        column: int = 0,
        *,
        severity: Severity = "error",
        length: int = 1,
        notes: Iterable[Diagnostic] = (),
    ) -> Diagnostic:
        return Diagnostic(
            severity=severity,
            message=message,
            file=self.name,
            line=line,
            column=column,
            source_line=self.line(line),
            notes=tuple(notes),
            length=length,
        )


def render(diagnostics: Iterable[Diagnostic], *, program: str = "qgpuc", colour: bool = False) -> str:
    """The text of the diagnostics, without a newline at its end."""
    lines: list[str] = []
    for diagnostic in diagnostics:
        lines += _render_one(diagnostic, program, colour)
    return "\n".join(lines)


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """clang's closing line, `1 warning and 2 errors generated.`, or an empty string."""
    severities = [diagnostic.severity for diagnostic in diagnostics]
    counts = [(severities.count(kind), kind) for kind in ("warning", "error")]
    parts = [f"{count} {kind}{'s' * (count > 1)}" for count, kind in counts if count]
    return f"{' and '.join(parts)} generated." if parts else ""


def emit(diagnostics: Iterable[Diagnostic], *, program: str = "qgpuc", stream: TextIO | None = None) -> None:
    """Print diagnostics and their summary to stderr, in colour on a terminal."""
    out = sys.stderr if stream is None else stream
    diagnostics = tuple(d for d in diagnostics if d.severity != "warning" or _WARNS.get())
    if diagnostics:
        print(render(diagnostics, program=program, colour=out.isatty()), file=out)
        print(summary(diagnostics), file=out)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Print no warnings while the body runs, which compiles kernels by the hundred."""
    before = _WARNS.set(False)
    try:
        yield
    finally:
        _WARNS.reset(before)


@contextmanager
def reporting(program: str) -> Iterator[None]:
    """Turn a DiagnosticError from the body into printed diagnostics and exit status 1."""
    try:
        yield
    except DiagnosticError as error:
        emit(error.diagnostics, program=program)
        sys.exit(1)


def _render_one(diagnostic: Diagnostic, program: str, colour: bool) -> Iterator[str]:
    def paint(code: str, text: str) -> str:
        return f"{code}{text}{_RESET}" if colour else text

    severity, message = diagnostic.severity, diagnostic.message
    of_no_place = diagnostic.file is None and severity == "note"
    place = "" if of_no_place else paint(_BOLD, f"{_place(diagnostic, program)}: ")
    yield (
        place
        + paint(_COLOUR[severity], f"{severity}: ")
        + (message if severity == "note" else paint(_BOLD, message))
    )
    if diagnostic.source_line is not None:
        yield diagnostic.source_line
    if diagnostic.source_line is not None and diagnostic.column > 0:
        yield paint(_CARET, _caret_line(diagnostic.source_line, diagnostic.column, diagnostic.length))
    for attached in diagnostic.notes:
        yield from _render_one(attached, program, colour)


def _place(diagnostic: Diagnostic, program: str) -> str:
    if diagnostic.file is None:
        return program
    numbers = [number for number in (diagnostic.line, diagnostic.column) if number > 0]
    return ":".join([diagnostic.file, *map(str, numbers)])


def _caret_line(source_line: str, column: int, length: int) -> str:
    """The caret under `column`; tabs before it are kept, so that it lines up however wide a tab is."""
    padding = "".join("\t" if character == "\t" else " " for character in source_line[: column - 1])
    tail = max(0, min(length, len(source_line) - column + 1) - 1)
    return padding.ljust(column - 1) + "^" + "~" * tail
