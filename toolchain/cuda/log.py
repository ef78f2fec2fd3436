"""NVRTC's log to diagnostics.

The log is a sequence of paragraphs in the form of the EDG front end:

    k.cu(4): error: identifier "foo" is undefined
        foo(a);
        ^

The line before the caret is the source line, indented by two; the other lines go on with the message.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from qgpu.toolchain.diagnostics import Diagnostic, Severity, note

_HEAD = re.compile(
    r"^(?:(?P<file>[^\n]+?)\((?P<line>\d+)\)|At end of source): "
    r"(?P<severity>catastrophic error|error|warning|remark)(?: #[\w-]+)?: (?P<message>.*)$"
)
_PLACED_NOTE = re.compile(r"^\s*(?P<file>[^\n]+?)\((?P<line>\d+)\): note(?: #[\w-]+)?: (?P<message>.*)$")
_CARET = re.compile(r"^\s*\^\s*$")
_INDENT = 2
END_OF_SOURCE = "<end of source>"
"""The file of an error about what is missing at the end."""

_SEVERITY: dict[str, Severity] = {"catastrophic error": "error", "error": "error", "warning": "warning"}
_NOISE = re.compile(r"^(Compilation terminated\.|\d+ .* detected in the compilation of .*|Remark: .*|)$")


@dataclass(frozen=True)
class _Rewording:
    """A message, what to say instead (or None, to leave it), and what to do about it."""

    pattern: re.Pattern[str]
    message: str | None
    hint: str


_REWORDINGS = (
    _Rewording(
        re.compile(r'(?:could not|cannot) open source file "(?P<name>[^"]+)".*'),
        r"'\g<name>' file not found",
        "found are headers in the source's folder, in folders given with -I, and those for kernels "
        "(cuda_runtime.h, stdint.h, cooperative_groups.h, ...); headers of the host's standard library are "
        "taken for empty",
    ),
    _Rewording(
        re.compile(r"device-side kernel launch could not be processed .*"),
        "a kernel cannot launch a kernel",
        "let the host launch it, or make it a __device__ function and call it",
    ),
    _Rewording(
        re.compile(r'function "cooperative_groups::grid_group::sync\(\) const" .* deleted function'),
        "grid groups have no barrier: thread blocks run one after another",
        "end the kernel where the grid would wait, and launch another",
    ),
    _Rewording(
        re.compile(r'expected a ";"'), None, "the ';' that ends the statement before this place is missing"
    ),
    _Rewording(
        re.compile(r'expected a "}"'), "a '}' is missing at the end of the file", "close what is opened here"
    ),
    _Rewording(
        re.compile(r"a __global__ function must have a void return type"),
        None,
        "a kernel returns nothing: write the result to memory that a parameter points to",
    ),
    _Rewording(
        re.compile(r"expression must be a modifiable lvalue"),
        None,
        "what is const, or a value, is not assigned",
    ),
    _Rewording(
        re.compile(r'no operator ".*" matches these operands'),
        None,
        "threadIdx, blockIdx, blockDim and gridDim have parts: threadIdx.x",
    ),
    _Rewording(
        re.compile(r"the format string requires additional arguments"),
        "the format has more directives than there are arguments",
        "give printf a value for every % of its format",
    ),
)
_ERRORS = ("the format string requires additional arguments",)
"""Warnings about what has no defined meaning: they are errors here."""


def parse_log(text: str) -> tuple[Diagnostic, ...]:
    """The errors and warnings of a log, in its order; lines that belong to none are dropped."""
    return tuple(
        diagnostic for paragraph in _paragraphs(text) if (diagnostic := _diagnostic(*paragraph)) is not None
    )


def plain_lines(text: str) -> list[str]:
    """The lines of a log that name no place in a file, without blank lines and counts."""
    return [line for line in map(str.strip, text.splitlines()) if not _NOISE.match(line)]


def _paragraphs(text: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Every head line with the lines that follow it, up to a blank line or the next head."""
    head: re.Match[str] | None = None
    rest: list[str] = []
    for line in [*text.splitlines(), ""]:
        found = _HEAD.match(line)
        if head and (found or not line.strip()):
            yield head, rest
            head, rest = None, []
        if found:
            head = found
        elif head:
            rest.append(line)


def _diagnostic(head: re.Match[str], rest: list[str]) -> Diagnostic | None:
    severity = _SEVERITY.get(head["severity"])
    if severity is None:
        return None
    if head["message"] in _ERRORS:
        severity = "error"
    message, hints = _reworded(head["message"], rest)
    first = next((index for index, line in enumerate(rest) if _PLACED_NOTE.match(line)), len(rest))
    source_line, column, own = _caret(rest[:first])
    rest = own + rest[first:]
    return Diagnostic(
        severity=severity,
        message=message,
        file=head["file"] or END_OF_SOURCE,
        line=int(head["line"] or 0),
        column=column,
        source_line=source_line,
        notes=(*_notes(rest), *map(note, hints)),
    )


def _caret(lines: list[str]) -> tuple[str | None, int, list[str]]:
    """The source line and the column that a caret in some lines marks, and the lines without these."""
    caret = next((index for index, line in enumerate(lines) if index and _CARET.match(line)), None)
    if caret is None:
        return None, 0, lines
    column = lines[caret].index("^") - _INDENT + 1
    return lines[caret - 1][_INDENT:], column, lines[: caret - 1] + lines[caret + 1 :]


def _notes(lines: list[str]) -> Iterator[Diagnostic]:
    """The lines that go on with a message, each of those with a place of its own at that place."""
    starts = [index for index, line in enumerate(lines) if _PLACED_NOTE.match(line)]
    for line in lines[: starts[0] if starts else len(lines)]:
        yield note(line.strip())
    for start, end in pairwise([*starts, len(lines)]):
        head = _PLACED_NOTE.match(lines[start])
        assert head is not None, "it has matched"
        source_line, column, _ = _caret(["", *lines[start + 1 : end]])
        if "built-in operator" not in head["message"]:
            yield Diagnostic(
                severity="note",
                message=head["message"].replace('"', "'"),
                file=head["file"],
                line=int(head["line"]),
                column=column,
                source_line=source_line,
            )


def _reworded(message: str, rest: list[str]) -> tuple[str, list[str]]:
    for rewording in _REWORDINGS:
        if not rewording.pattern.fullmatch(message):
            continue
        if "operator" in message and not any("uint3" in line for line in rest):
            continue
        text = message if rewording.message is None else rewording.pattern.sub(rewording.message, message)
        return text, [rewording.hint]
    return message, []
