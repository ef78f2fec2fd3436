"""LLVM IR by way of LLVM itself: text or bitcode is parsed, verified, and printed in one form.

A text may hold several modules, each from a line `; ModuleID = ...` on, as numba prints them: they are
linked.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from qgpu.toolchain.diagnostics import DiagnosticError, Source, failure, note
from qgpu.toolchain.llvm.guard import guarded

BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
"""How bitcode begins (LLVM Bitcode File Format): the magic number, or that of its wrapper."""

_START = "; ModuleID"
_PLACE = re.compile(r"<string>:(?P<line>\d+):(?P<column>\d+): (?P<severity>error|warning): (?P<message>.*)")
_TARGET = "nvptx64"
_HINT = "clang writes it by: clang -S -emit-llvm --cuda-device-only"


@cache
def _llvm():
    """llvmlite's binding; broken debug information is an error of the module, not the end of the process."""
    import llvmlite.binding as llvm

    llvm.set_option("", "-disable-auto-upgrade-debug-info")
    return llvm


def disassemble(data: bytes, name: str) -> Source:
    """Bitcode as text; raises DiagnosticError where it is none."""
    try:
        with guarded(name):
            module = _llvm().parse_bitcode(data)
    except RuntimeError as error:
        raise failure(f"not LLVM bitcode: {_first_line(error)}", file=name) from None
    return Source(f"<LLVM IR of {name}>", str(module))


def normal_form(source: Source) -> str:
    """The text of a module as LLVM prints it.

    Raises DiagnosticError where it is no LLVM IR, or breaks its rules, or is for another target.
    """
    with guarded(source.name):
        return _linked_form(source)


def _linked_form(source: Source) -> str:
    linked = None
    for text, offset in _modules(source.text):
        module = _parsed(source, text, offset)
        _check_target(source, module.triple)
        if linked is None:
            linked = module
        else:
            _link(source, linked, module)
    return str(linked)


def _modules(text: str) -> Iterator[tuple[str, int]]:
    """The modules in a text, with the number of lines before each."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith(_START)]
    bounds = [0, *starts[1:], len(lines)]
    for begin, end in pairwise(bounds):
        yield "\n".join(lines[begin:end]), begin


def _parsed(source: Source, text: str, offset: int):
    try:
        module = _llvm().parse_assembly(text)
    except RuntimeError as error:
        raise _syntax_error(source, str(error), offset) from None
    try:
        module.verify()
    except RuntimeError as error:
        raise _broken(source, str(error)) from None
    return module


def _link(source: Source, linked, module) -> None:
    try:
        linked.link_in(module)
    except RuntimeError as error:
        raise failure(f"modules cannot be linked: {_first_line(error)}", file=source.name) from None


def _check_target(source: Source, triple: str) -> None:
    if triple and not triple.startswith(_TARGET):
        message = f"the module is for '{triple}', not for {_TARGET}"
        raise failure(message, _HINT, file=source.name)


def _syntax_error(source: Source, text: str, offset: int) -> DiagnosticError:
    """LLVM's message at its place in the file."""
    found = _PLACE.search(text)
    if found is None:
        return failure(f"not LLVM IR: {_last_line(text)}", _HINT, file=source.name)
    line = int(found["line"]) + offset
    return DiagnosticError(source.diagnostic(found["message"], line, int(found["column"])))


def _broken(source: Source, text: str) -> DiagnosticError:
    """What the verifier says, at the line that it shows."""
    message, *shown = [line for line in text.split("\n") if line.strip()] or ["the module is broken"]
    notes = [note(line.strip()) for line in shown[:3]]
    place = next((n for line in shown for n in [_line_of(source, line)] if n), 0)
    column = len(source.line(place) or "") - len((source.line(place) or "").lstrip()) + 1
    return DiagnosticError(source.diagnostic(message, place, column if place else 0, notes=notes))


def _line_of(source: Source, shown: str) -> int:
    """The line that LLVM shows, in which it may have written an alignment and other numbers of metadata."""
    text = shown.strip().partition(", !")[0]
    lines = source.text.split("\n")
    for wanted in (text, text.rpartition(", align")[0]):
        found = next((number for number, line in enumerate(lines, 1) if wanted and wanted in line), 0)
        if found:
            return found
    return 0


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).split("\n") if line.strip()), "")


def _last_line(text: str) -> str:
    return [line for line in text.split("\n") if line.strip()][-1]
