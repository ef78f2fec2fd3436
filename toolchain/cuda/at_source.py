"""Errors about PTX that was made from CUDA, told at the place in the CUDA source."""

import dataclasses
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qgpu.toolchain.cuda.float_places import float_place
from qgpu.toolchain.cuda.names import readable
from qgpu.toolchain.cuda.unit import HEADERS, SourceFile
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source, note

_LOCATION = re.compile(
    r"\s*\.loc\s+\d+ \d+ \d+(?:, function_name \S+, inlined_at \d+ (?P<line>\d+) (?P<column>\d+))?"
)
_ORIGIN = "compiled from here"
_FLOATS = "floating-point"
_INTEGERS = "write it with integers, for example in fixed point"


@contextmanager
def at_the_source(ptx: Source, cuda: Source | None) -> Iterator[None]:
    """Move errors about PTX to the lines of the CUDA source behind it, if there is one, once for each."""
    try:
        yield
    except DiagnosticError as error:
        if cuda is None:
            raise
        first: dict[tuple[str | None, int, int], Diagnostic] = {}
        for found in (_moved(one, ptx, cuda) for one in error.diagnostics):
            first.setdefault((found.file, found.line, found.column), found)
        raise DiagnosticError(*first.values()) from None


def _moved(found: Diagnostic, ptx: Source, cuda: Source) -> Diagnostic:
    place = next((one for one in found.notes if one.message == _ORIGIN and one.file is not None), None)
    if found.file != ptx.name or place is None:
        return found
    others = [one for one in found.notes if one is not place]
    instruction = " ".join((found.source_line or "").split())
    floats = _FLOATS in found.message
    hints = [note(_INTEGERS)] if floats else []
    called = _call(place, found.line, ptx, cuda)
    return dataclasses.replace(
        _at_the_number(called, cuda) if floats else called,
        severity=found.severity,
        message=readable(found.message),
        notes=(note(f"compiled to '{instruction}'"), *others, *hints),
    )


def _at_the_number(place: Diagnostic, cuda: Source) -> Diagnostic:
    """The place of the floating-point number in a statement, for that of the statement."""
    name = place.file or ""
    try:
        text = cuda.text if name == cuda.name else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return place
    file = SourceFile(name, text, ())
    token = float_place(file, place.line, place.column)
    if token is None:
        return place
    line, column = file.place(token.start)
    return file.source.diagnostic(place.message, line, column, severity="note", length=len(token.text))


def _call(place: Diagnostic, line: int, ptx: Source, cuda: Source) -> Diagnostic:
    """For a place in a header of the compiler's, the place in the source from where it was inlined."""
    inlined = place.source_line is None or str(HEADERS) in str(place.file)
    if place.file == cuda.name or not inlined:
        return place
    before = ptx.text.split("\n")[:line]
    found = next((match for text in reversed(before) if (match := _LOCATION.match(text))), None)
    if found is None or found["line"] is None:
        return place
    return cuda.diagnostic(place.message, int(found["line"]), int(found["column"]), severity="note")
