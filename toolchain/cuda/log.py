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

from qgpu.toolchain.diagnostics import Diagnostic, Severity, note

_HEAD = re.compile(
    r"^(?P<file>[^\n]+?)\((?P<line>\d+)\): "
    r"(?P<severity>catastrophic error|error|warning|remark)(?: #[\w-]+)?: (?P<message>.*)$"
)
_CARET = re.compile(r"^\s*\^\s*$")
_INDENT = 2

_SEVERITY: dict[str, Severity] = {"catastrophic error": "error", "error": "error", "warning": "warning"}
_NOISE = re.compile(r"^(Compilation terminated\.|\d+ .* detected in the compilation of .*|Remark: .*|)$")


@dataclass(frozen=True)
class _Rewording:
    """A message that speaks of NVRTC's own circumstances, what to say instead, and the way out."""

    pattern: re.Pattern[str]
    message: str
    hint: str


_REWORDINGS = (
    _Rewording(
        re.compile(r'(?:could not|cannot) open source file "(?P<name>[^"]+)".*'),
        r"'\g<name>' file not found",
        "kernels are compiled without a host compiler or a CUDA toolkit: only headers in the source file's "
        "folder, in the folders given with -I, and a few standard integer headers can be included",
    ),
    _Rewording(
        re.compile(r"A function without execution space annotations .* host functions are not allowed .*"),
        "host functions are not compiled",
        "mark a function that kernels call with __device__, and keep host code in a file of its own",
    ),
)


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
    source_line, column = None, 0
    caret = next((index for index, line in enumerate(rest) if index and _CARET.match(line)), None)
    if caret is not None:
        source_line, column = rest[caret - 1][_INDENT:], rest[caret].index("^") - _INDENT + 1
        rest = rest[: caret - 1] + rest[caret + 1 :]
    message, hints = _reworded(head["message"])
    return Diagnostic(
        severity=severity,
        message=message,
        file=head["file"],
        line=int(head["line"]),
        column=column,
        source_line=source_line,
        notes=tuple(note(text) for text in [*(line.strip() for line in rest), *hints]),
    )


def _reworded(message: str) -> tuple[str, list[str]]:
    for rewording in _REWORDINGS:
        if rewording.pattern.fullmatch(message):
            return rewording.pattern.sub(rewording.message, message), [rewording.hint]
    return message, []
