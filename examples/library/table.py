"""What a routine of the library is: a kernel, how it is launched, and what it refuses.

A routine is a file `NAME.cu` with one `__global__` function of the file's name, on 32-bit integers.
`ROUTINES` in the package's `__init__` has them all; `docs/library.md` is the same table to read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from qgpu.runtime.library import bounds
from qgpu.runtime.library.bounds import Certain
from qgpu.runtime.library.plans import Planner

HERE = Path(__file__).parent
HEADER = HERE / "checked.h"
UNCHECKED = "NDEBUG"
"""The macro with which a routine is compiled without its assertions."""

_ASSERTED = re.compile(r'assert\(.*&& "(.*)"\)')
_CALLED = re.compile(r"\b(?:fetch_)?checked_\w+")


@dataclass(frozen=True, eq=False)
class Routine:
    """A kernel of the library.

    Attributes:
        name: of its file and its function.
        takes: its operands: `vector`, `matrix`, `number` or `any` shape, of which those of one elementwise
            routine have the same or none.
        gives: what its result is, of the same words.
        plan: how it is launched.
        certain: whether no assertion can fail for operands; those launches need none.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    plan: Planner
    certain: Certain = bounds.always

    @property
    def file(self) -> Path:
        """The kernel's source."""
        return HERE / f"{self.name}.cu"

    @cached_property
    def text(self) -> str:
        """The kernel's source."""
        return self.file.read_text(encoding="utf-8")

    @property
    def summary(self) -> str:
        """What it does: the comment that its source begins with, up to a line about its launch."""
        lines: list[str] = []
        for line in self.text.splitlines():
            if not line.startswith("// ") or line.startswith("// Launch:"):
                break
            lines.append(line.removeprefix("// "))
        return " ".join(lines)

    @property
    def refuses(self) -> tuple[str, ...]:
        """What its assertions say, those of `checked.h` that it calls among them."""
        return tuple(_ASSERTED.findall(self.text)) + tuple(
            message for name, message in _checks().items() if name in _CALLED.findall(self.text)
        )


def _checks() -> dict[str, str]:
    """What each function of `checked.h` asserts."""
    functions = HEADER.read_text(encoding="utf-8").split("__device__ inline ")[1:]
    found = {text.split("(")[0].split()[-1]: _ASSERTED.findall(text) for text in functions}
    return {name: messages[0] for name, messages in found.items() if messages}


def routine(name: str, takes: str, gives: str, plan: Planner, certain: Certain = bounds.always) -> Routine:
    """A row of the table; `takes` has its words in order."""
    return Routine(name, tuple(takes.split()), gives, plan, certain)
