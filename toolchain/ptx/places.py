"""Where PTX instructions come from: the lines of the CUDA source that `.loc` names."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from qgpu.ir import Location
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source
from qgpu.toolchain.ptx import ast


@dataclass
class Places:
    """The PTX text, and the CUDA source it was compiled from, where that is known.

    The path of the CUDA source in diagnostics and locations is the one the user gave.
    """

    ptx: Source
    cuda: Source | None = None
    files: dict[int, str] = field(default_factory=dict)

    def location(self, line: ast.SourceLine | None, position: ast.Position) -> Location:
        """The CUDA line in force, or the PTX line itself where no `.loc` tells, or one of an unknown file."""
        if line is None or line.file not in self.files:
            return Location(self.ptx.name, position.line, position.column)
        return Location(self._shown(self.files[line.file]), line.line, line.column)

    def error(
        self, message: str, position: ast.Position, location: Location | None = None, *notes: Diagnostic
    ) -> DiagnosticError:
        return DiagnosticError(self.diagnostic(message, position, location, *notes))

    def diagnostic(
        self, message: str, position: ast.Position, location: Location | None = None, *notes: Diagnostic
    ) -> Diagnostic:
        """An error at a place of the PTX, with a note about the CUDA line it comes from, and further ones."""
        notes = (*self._origin(location), *notes)
        return self.ptx.diagnostic(
            message, position.line, position.column, length=position.length, notes=notes
        )

    def note(self, message: str, position: ast.Position) -> Diagnostic:
        """A note at a place of the PTX."""
        line, column, length = position.line, position.column, position.length
        return self.ptx.diagnostic(message, line, column, length=length, severity="note")

    def _origin(self, location: Location | None) -> Iterator[Diagnostic]:
        if location is None or location.file == self.ptx.name:
            return
        source = self._source(location.file)
        yield source.diagnostic("compiled from here", location.line, location.column, severity="note")

    def _source(self, shown: str) -> Source:
        if self.cuda is not None and shown == self.cuda.name:
            return self.cuda
        try:
            return Source(shown, Path(shown).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            return Source(shown, "")

    def _shown(self, path: str) -> str:
        """A path of the PTX as the user would write it."""
        if self.cuda is not None and os.path.abspath(self.cuda.name) == os.path.abspath(path):
            return self.cuda.name
        if not os.path.isabs(path):
            return path
        relative = os.path.relpath(path)
        return path if relative.startswith(os.pardir) else relative


def line_in_force(previous: ast.SourceLine | None, line: ast.SourceLine) -> ast.SourceLine | None:
    """What a `.loc` says, given the one before it.

    Code inlined from another file (a CUDA header) counts as the line it was inlined at, and line 0, which
    stands for none, leaves the line before in force.
    """
    if line.inlined_at is not None and line.inlined_at[0] != line.file:
        return ast.SourceLine(*line.inlined_at)
    return line if line.line > 0 else previous
