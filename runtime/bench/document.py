"""The document that measurements are kept in: one section a kind, each with where and how it was made."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qgpu.runtime.bench.host import host, host_text
from qgpu.runtime.bench.report import Section
from qgpu.toolchain.outputs import write_output

HEAD = """\
# Benchmarks

Written by the commands that the sections name; a command replaces its own sections. Ratios compare what one
command measured side by side; figures of different sections may be of different days and machines.
"""

ORDER = ("kernels", "memory", "problem", "agreement", "soak", "interpreters")
"""Keys of sections in the order of the document."""

_MARK = re.compile(r"^<!-- (\w+) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Provenance:
    """How figures came to be."""

    command: str
    date: str
    host: dict[str, str]

    def markdown(self) -> str:
        return f"{self.date}, {host_text(self.host)}:\n\n    {self.command}"


def provenance(command: str) -> Provenance:
    """The provenance of figures made now, here, by a command."""
    return Provenance(command, datetime.date.today().isoformat(), host())


def write_sections(
    path: str, sections: list[Section], origin: Provenance, head: str = HEAD, order: Sequence[str] = ORDER
) -> None:
    """Replace sections of a document, or add them; the others stay as they are. `order` is of their keys.

    Raises:
        DiagnosticError: the document cannot be written.
    """
    found = _sections(Path(path).read_text(encoding="utf-8")) if Path(path).exists() else {}
    for section in sections:
        found[section.key] = f"## {section.heading}\n\n{origin.markdown()}\n\n{section.markdown()}\n"
    ordered = sorted(found, key=lambda key: (order.index(key) if key in order else len(order), key))
    text = head + "".join(f"\n<!-- {key} -->\n{found[key].strip()}\n" for key in ordered)
    write_output(path, text.encode())


def _sections(text: str) -> dict[str, str]:
    """The sections of a document by key."""
    parts = _MARK.split(text)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))
