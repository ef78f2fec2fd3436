"""Errors about PTX that was made from CUDA, told at the place in the CUDA source."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

from qgpu.toolchain.cuda.names import readable
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source, note

_ORIGIN = "compiled from here"
_FLOATS = "floating-point"
_INTEGERS = "write it with integers, for example in fixed point"


@contextmanager
def at_the_source(ptx: Source | None) -> Iterator[None]:
    """Move errors about a PTX text to the CUDA lines that they name, one for each line; None moves none."""
    try:
        yield
    except DiagnosticError as error:
        if ptx is None:
            raise
        first: dict[tuple[str | None, int, int], Diagnostic] = {}
        for found in (_moved(one, ptx) for one in error.diagnostics):
            first.setdefault((found.file, found.line, found.column), found)
        raise DiagnosticError(*first.values()) from None


def _moved(found: Diagnostic, ptx: Source) -> Diagnostic:
    place = next((one for one in found.notes if one.message == _ORIGIN and one.file is not None), None)
    if found.file != ptx.name or place is None:
        return found
    others = [one for one in found.notes if one is not place]
    instruction = " ".join((found.source_line or "").split())
    hints = [note(_INTEGERS)] if _FLOATS in found.message else []
    return dataclasses.replace(
        place,
        severity=found.severity,
        message=readable(found.message),
        notes=(note(f"compiled to '{instruction}'"), *others, *hints),
    )
