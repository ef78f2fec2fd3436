"""A row of the table: one kernel, its launches, and what each has to leave in memory."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from qgpu.backends.machine.host import Dim3


@dataclass(frozen=True)
class CaseLaunch:
    """`kernel<<<grid, block, shared>>>(arguments)`.

    Attributes:
        arguments: a number for a scalar, for a pointer the bytes of its buffer before the launch.
        expected: each buffer after it, in order, by the kernel's oracle.
    """

    grid: Dim3
    block: Dim3
    shared: int
    arguments: tuple[int | bytes, ...]
    expected: tuple[bytes, ...]

    @property
    def threads(self) -> int:
        """Threads of a thread block."""
        x, y, z = self.block
        return x * y * z


@dataclass(frozen=True)
class Case:
    """A kernel and launches of it, the smallest first.

    Attributes:
        group: what it is a case of, such as `examples` or `instructions`.
        row: the row it is shown in; instructions have one row an opcode.
        name: its own name, unique in its group.
        text, file, language: its source, the source's name, and its language, as in `compile_source`.
        kernel: the kernel's plain name.
        architecture: the least virtual architecture that has what it calls.
    """

    group: str
    row: str
    name: str
    text: str
    file: str
    language: str
    kernel: str
    launches: tuple[CaseLaunch, ...]
    architecture: str = "compute_75"

    @property
    def id(self) -> str:
        """Its name in the file of values."""
        return f"{self.group}/{self.name}"

    def digest(self, launch: CaseLaunch) -> str:
        """Tells launches apart: of the source, the sizes and the arguments, but not of what is expected."""
        arguments = [a.hex() if isinstance(a, bytes) else a for a in launch.arguments]
        content = [self.text, self.kernel, launch.grid, launch.block, launch.shared, arguments]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def first_difference(found: tuple[bytes, ...], expected: tuple[bytes, ...]) -> str:
    """Where buffers are not what they must be, in words; empty where they are."""
    if len(found) != len(expected):
        return f"{len(found)} buffers, not {len(expected)}"
    for number, (content, wanted) in enumerate(zip(found, expected, strict=True)):
        if len(content) != len(wanted):
            return f"buffer {number} has {len(content)} bytes, not {len(wanted)}"
        for at, (got, right) in enumerate(zip(content, wanted, strict=True)):
            if got != right:
                return f"buffer {number}, byte {at}: {got:#04x}, not {right:#04x}"
    return ""
