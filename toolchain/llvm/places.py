"""Where instructions come from: the lines of the .ll file, and those of the source that `!dbg` names.

LLVM reads the file and gives an instruction's function and number, not its line. The lines are found again
by the order of the instructions: where LLVM has replaced some (it knows intrinsics of older versions), those
around them are matched by their opcodes.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from qgpu.ir import Location
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source, note
from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.module import Module, statements
from qgpu.toolchain.llvm.tree_builder import name_of

_GLOBAL = re.compile(r'@(?:[-\w$.]+|"[^"]*")')
_CONTINUES = ("to label", "unwind", "catch", "cleanup", "filter", "[", "]")
_PREFIXES = ("tail", "musttail", "notail")
_FARTHEST = 32


@dataclass(frozen=True)
class Place:
    """A place of the .ll file; line and column count from 1."""

    line: int
    column: int
    length: int = 1


@dataclass
class Places:
    """The .ll text and what its debug information says."""

    source: Source
    module: Module
    _lines: dict[str, list[Place]] = field(default_factory=dict)

    def place(self, function: str, ordinal: int) -> Place:
        """Where instruction number `ordinal` of a function stands, or the function's first line."""
        if function not in self._lines:
            self._lines[function] = self._matched(function)
        found = self._lines[function]
        return found[ordinal] if ordinal < len(found) else self._bodies.get(function, (Place(0, 0), []))[0]

    def location(self, function: str, instruction: ast.Instruction) -> Location:
        """The source line of an instruction, or where there is no debug information the .ll line."""
        found = self._debug_location(instruction.debug)
        if found is not None:
            return found
        place = self.place(function, instruction.ordinal)
        return Location(self.source.name, place.line, place.column)

    def error(
        self, message: str, function: str, ordinal: int, location: Location | None, *notes: str
    ) -> DiagnosticError:
        """An error at an instruction, with a note about the source line it comes from, and further ones."""
        place = self.place(function, ordinal)
        attached = (*self._origin(location), *map(note, notes))
        return DiagnosticError(
            self.source.diagnostic(message, place.line, place.column, length=place.length, notes=attached)
        )

    def entity_error(self, message: str, name: str, *notes: str) -> DiagnosticError:
        """An error at the line where a global name is defined."""
        for number, line in enumerate(self.source.text.split("\n"), 1):
            found = _GLOBAL.search(line) if line.startswith(("@", "define", "declare")) else None
            if found is not None and name_of(found.group()) == name:
                diagnostic = self.source.diagnostic(
                    message,
                    number,
                    found.start() + 1,
                    length=len(found.group()),
                    notes=map(note, notes),
                )
                return DiagnosticError(diagnostic)
        return DiagnosticError(
            Diagnostic(message=message, file=self.source.name, notes=tuple(map(note, notes)))
        )

    # --------------------------------------------------------------- the lines

    @cached_property
    def _bodies(self) -> dict[str, tuple[Place, list[tuple[str, Place]]]]:
        """For each function its first line, and the opcode and place of every instruction."""
        return {name: (place, body) for name, place, body in _functions(self.source.text.split("\n"))}

    def _matched(self, function: str) -> list[Place]:
        """The places of a function's instructions as LLVM numbers them."""
        first, written = self._bodies.get(function, (Place(0, 0), []))
        known = [opcode_of(text) for text in statements(self.module.bodies[function]) if text.startswith(" ")]
        if len(written) == len(known):
            return [place for _, place in written]
        places = [first] * len(known)
        matcher = SequenceMatcher(None, known, [opcode for opcode, _ in written], autojunk=False)
        for a, b, size in matcher.get_matching_blocks():
            places[a : a + size] = [place for _, place in written[b : b + size]]
        for index in range(1, len(places)):
            if places[index] is first:
                places[index] = places[index - 1]
        return places

    # ------------------------------------------------------- debug information

    def _debug_location(self, name: object) -> Location | None:
        """The place that a DILocation names; one in another file that was inlined counts as the call's."""
        node = self.module.node(name) if name else None
        for _ in range(_FARTHEST):
            if node is None or node.kind != "DILocation":
                return None
            caller = self.module.node(node.fields.get("inlinedAt"))
            if caller is None or self._file(caller) == self._file(node):
                break
            node = caller
        assert node is not None
        file, line = self._file(node), int(str(node.fields.get("line") or 0))
        if not file or not line:
            return None
        return Location(file, line, int(str(node.fields.get("column") or 0)))

    def _file(self, node: ast.Node | None) -> str:
        """The file of the scope that a node is in, as the user would write it."""
        for _ in range(_FARTHEST):
            if node is None:
                return ""
            if "file" in node.fields:
                return _shown(self.module.node(node.fields["file"]))
            node = self.module.node(node.fields.get("scope"))
        return ""

    def _origin(self, location: Location | None) -> Iterator[Diagnostic]:
        if location is None or location.file == self.source.name:
            return
        try:
            text = Path(location.file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            text = ""
        source = Source(location.file, text)
        yield source.diagnostic("compiled from here", location.line, location.column, severity="note")


def opcode_of(text: str) -> str:
    """The opcode of an instruction's text."""
    words = text.strip().split()
    if len(words) > 2 and words[1] == "=":
        words = words[2:]
    return next((word for word in words if word not in _PREFIXES), "")


def _shown(node: ast.Node | None) -> str:
    if node is None:
        return ""
    name = str(node.fields.get("filename") or "")
    if not os.path.isabs(name):
        return name
    relative = os.path.relpath(name)
    return name if relative.startswith(os.pardir) else relative


def _functions(lines: list[str]) -> Iterator[tuple[str, Place, list[tuple[str, Place]]]]:
    """Name, first line and instructions of each function that a text defines."""
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        if not line.startswith("define"):
            continue
        found = _GLOBAL.search(line)
        name = name_of(found.group()) if found else ""
        place = Place(number, found.start() + 1, len(found.group())) if found else Place(number, 1)
        if not line.partition(";")[0].rstrip().endswith("{"):
            next((True for _, text in numbered if text.strip().startswith("{")), None)
        yield name, place, list(_instructions(numbered))


def _instructions(numbered: Iterator[tuple[int, str]]) -> Iterator[tuple[str, Place]]:
    """The instructions up to the brace that ends a body."""
    for number, line in numbered:
        code = line.partition(";")[0].strip()
        if code == "}":
            return
        if not code or code.endswith(":") or code.startswith(("#dbg", *_CONTINUES)):
            continue
        opcode = opcode_of(code)
        assigned = line.find(" = ") if code.startswith("%") else 0
        column = line.find(opcode, assigned) + 1
        yield opcode, Place(number, column, len(opcode))
        if code.endswith("["):
            next((True for _, text in numbered if "]" in text), None)
