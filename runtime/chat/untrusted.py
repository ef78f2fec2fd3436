"""Compile a kernel that a text model has written, which is trusted with nothing.

Its text is looked at first: directives that name a file other than a header for kernels are refused, with the
place. Then another process compiles it (`compile_child.py`), without a shell, with little time and memory,
and without the right to open any file: an include that the look has missed finds nothing.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.program import Program
from qgpu.backends.machine.qbin import QbinError, program_from_bytes
from qgpu.runtime.chat.limits import (
    COMPILE_BYTES,
    COMPILE_CPU_SECONDS,
    COMPILE_SECONDS,
    SOURCE_CHARACTERS,
)
from qgpu.runtime.chat.tool import ToolError
from qgpu.toolchain.cuda.tokens import Token, directive_of, tokens_of
from qgpu.toolchain.cuda.unit import HEADERS, HOST_HEADERS
from qgpu.toolchain.diagnostics import Source, note, render

FILE = "kernel.cu"
"""What the source is called in messages."""

_CHILD = "qgpu.runtime.chat.compile_child"
_DIRECTIVES = {
    "",
    "define",
    "undef",
    "if",
    "ifdef",
    "ifndef",
    "elif",
    "else",
    "endif",
    "pragma",
    "error",
    "warning",
}
_INCLUDED = re.compile(r'[<"]([^<>"]*)[>"]\s*')
_QUERIES = ("__has_include", "__has_include_next", "__has_embed")
_JOINED = re.compile(r"\\[ \t\r]*\n")
_SPELLINGS = re.compile(r"%:|\?\?[=/'()!<>-]|\\[uU]")
"""Other ways to write marks, with which a directive could be hidden."""


def check_source(text: str) -> None:
    """Look at a source before anything else does.

    Raises:
        ToolError: it is too long, or names files.
    """
    if len(text) > SOURCE_CHARACTERS:
        raise ToolError(f"the source has {len(text)} characters: {SOURCE_CHARACTERS} are the most")
    joined = _JOINED.sub("", text)
    for position, message, hint in _faults(joined):
        raise ToolError(_pointed(joined, position, message, hint))


def compile_untrusted(text: str, machine: MachineDescription) -> Program:
    """The program of a kernel's source.

    Raises:
        ToolError: it is refused, does not compile, or takes too long; the message is for the model.
    """
    check_source(text)
    answer = _ask_child({"source": text, "file": FILE, "machine": dataclasses.asdict(machine)})
    if "error" in answer:
        raise ToolError(answer["error"])
    try:
        return program_from_bytes(base64.b64decode(answer["qbin"], validate=True))
    except (KeyError, ValueError, QbinError):
        raise ToolError("the compiler has failed") from None


def headers() -> dict[str, str]:
    """The headers that a kernel may include, by the names under which it does."""
    files = [path for path in sorted(HEADERS.rglob("*")) if path.is_file() and path.suffix != ".txt"]
    return {path.relative_to(HEADERS).as_posix(): path.read_text(encoding="utf-8") for path in files}


def _faults(text: str) -> Iterator[tuple[int, str, str]]:
    """Where a source, with lines joined, names files: position, message and hint."""
    hint = "a kernel needs no other file"
    if hidden := _SPELLINGS.search(text):
        yield hidden.start(), f"'{hidden.group()}' is not taken", hint
    for token in tokens_of(text):
        if token.kind == "name" and token.text in _QUERIES:
            yield token.start, f"'{token.text}' is not taken", hint
        if token.kind == "directive" and (message := _directive_fault(token)):
            yield token.start, message, f"there are: {', '.join(_shown_headers())}"


def _directive_fault(token: Token) -> str | None:
    directive = directive_of(token)
    if any(query in directive.rest for query in _QUERIES):
        return "a directive that asks for files"
    if directive.word == "include":
        match = _INCLUDED.fullmatch(directive.rest.strip())
        if match is None:
            return "an include without the name of a header"
        return None if match[1] in _known_headers() else f"'{match[1]}' is no header for kernels"
    return None if directive.word in _DIRECTIVES else f"the directive '#{directive.word}' is not taken"


@functools.cache
def _known_headers() -> frozenset[str]:
    return frozenset(headers()) | HOST_HEADERS


def _shown_headers() -> list[str]:
    return ["cuda_runtime.h", "cooperative_groups.h", "stdint.h", "limits.h", "assert.h", "stdio.h"]


def _pointed(text: str, position: int, message: str, hint: str) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return render([Source(FILE, text).diagnostic(message, line, column, notes=[note(hint)])])


def _ask_child(request: dict[str, object]) -> dict[str, str]:
    """Have a new process compile; it has its own folder, few variables, and no shell."""
    limits = {"cpu_seconds": COMPILE_CPU_SECONDS, "bytes": COMPILE_BYTES}
    with tempfile.TemporaryDirectory(prefix="qgpu-") as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-m", _CHILD],
                input=json.dumps({**request, "limits": limits}).encode(),
                capture_output=True,
                timeout=COMPILE_SECONDS,
                cwd=folder,
                env=_environment(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ToolError(f"the kernel takes more than {COMPILE_SECONDS} seconds to compile") from None
    try:
        return json.loads(done.stdout)
    except ValueError:
        most = f"{COMPILE_CPU_SECONDS} seconds and {COMPILE_BYTES >> 30} GiB of memory"
        raise ToolError(f"the kernel takes more than {most} to compile: make it smaller") from None


def _environment() -> dict[str, str]:
    """The variables that Python needs to find the modules that this process has."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP", "LANG") if name in os.environ}
    path = os.pathsep.join(os.path.abspath(folder) for folder in sys.path if folder)
    return {**kept, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
