"""Setting host code aside: the text that a compiler for the device alone gets.

A function without an annotation is the host's, and so is a variable that is neither annotated nor constant.
What is set aside is blanked in place, so that lines and columns stay; preprocessor lines stay as well. Of
other declarations without annotations (types, constants) only a compiler can tell whether the device can have
them: those that it refuses are set aside when it has said so.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from qgpu.toolchain.cuda.declarations import Declaration
from qgpu.toolchain.cuda.unit import HEADERS, HOST_HEADERS, SourceFile, TranslationUnit

_CONSTANT = ("const", "constexpr", "consteval", "constinit")
_DELETED = "=delete;"


@dataclass(frozen=True)
class _Edit:
    """The text from `start` to `end` becomes blank, but for the replacement, which is put at its start."""

    start: int
    end: int
    replacement: str = ""


def is_host_function(declaration: Declaration) -> bool:
    """Whether it is a function that runs on the host alone; a constexpr function may run anywhere."""
    if declaration.annotated or declaration.has(*_CONSTANT[1:]) or declaration.kind != "function":
        return False
    return declaration.tail not in ("default", "delete", "0")


def is_host_variable(declaration: Declaration) -> bool:
    """Whether it is a variable (or a function's prototype) that only the host can reach."""
    if declaration.annotated or declaration.kind != "variable" or not declaration.head:
        return False
    texts = [token.text for token in declaration.head]
    constant = [index for index, text in enumerate(texts) if text in _CONSTANT]
    if declaration.parameters is not None and "constexpr" not in texts:
        return True
    return not constant or ("constexpr" not in texts and "*" in texts[constant[-1] :])


class HostCode:
    """What of a translation unit is set aside.

    Attributes:
        aside: declarations that the device's compiler does not see, or sees as deleted members.
    """

    def __init__(self, unit: TranslationUnit) -> None:
        self.unit = unit
        self.aside: list[Declaration] = []
        self._blank: set[Declaration] = set()
        self._deleted: set[Declaration] = set()
        for declarations in unit.declarations.values():
            self._divide(declarations, None)

    def _divide(self, declarations: list[Declaration], around: Declaration | None) -> None:
        """Set aside the functions and variables of a scope; `around` is its class, if it is one's."""
        for found in declarations:
            if is_host_function(found) and around is not None and not _is_copying(found, around):
                self._deleted.add(found)
                self.aside.append(found)
            elif is_host_function(found) or (around is None and is_host_variable(found)):
                self.set_aside(found)
            elif found.kind in ("class", "namespace"):
                self._divide(found.inner, found if found.kind == "class" else around)

    def set_aside(self, declaration: Declaration) -> None:
        """Blank a declaration."""
        self._deleted.discard(declaration)
        self._blank.add(declaration)
        if declaration not in self.aside:
            self.aside.append(declaration)

    def in_a_body(self, file: str, line: int, column: int) -> bool:
        """Whether a place is in the body of a function."""
        if file not in self.unit.files:
            return False
        position = self.unit.files[file].position(line, column)
        found = self._around(file, position)
        return bool(found) and (found[-1].body or position + 1) <= position

    def _around(self, file: str, position: int) -> list[Declaration]:
        """The declarations that a position lies in, the outer ones first."""
        return [
            found
            for outer in self.unit.declarations[file]
            for found in outer.walk()
            if found.start <= position < found.end
        ]

    def removable(self, file: str, line: int, column: int) -> Declaration | None:
        """The innermost declaration at a place where it is not for the device: without it, no error."""
        if file not in self.unit.files:
            return None
        around = self._around(file, self.unit.files[file].position(line, column))
        inner = around[-1] if around else None
        if inner is None or inner in self._blank or inner.kind == "namespace" or inner.annotated:
            return None
        classes = [found for found in around if found.kind == "class"]
        if classes and inner not in self._deleted:
            return None if classes[0].annotated else classes[0]
        return inner

    def text(self, file: SourceFile) -> str:
        """The text of a file for the device: as long as the file, but for members without a body."""
        edits = list(self._edits(file))
        edits += [
            _Edit(found.directive.start, found.directive.end, f'#include "{found.file}"')
            for found in file.includes
            if found.file in self.unit.files
        ]
        edits += [
            _Edit(found.directive.start, found.directive.end)
            for found in file.includes
            if found.file is None and _is_for_the_host(found.name)
        ]
        return _edited(file, edits)

    def _edits(self, file: SourceFile) -> Iterator[_Edit]:
        for outer in self.unit.declarations[file.name]:
            for found in outer.walk():
                if found in self._blank:
                    yield _Edit(found.start, found.end)
                elif found in self._deleted:
                    yield _Edit(found.end - 1 if found.body is None else found.body, found.end, _DELETED)


def _is_copying(member: Declaration, around: Declaration) -> bool:
    """Whether a member destroys, copies or assigns objects, which the compiler's own do, or is none."""
    if member.has("friend", "~") or member.name == "operator=":
        return True
    parameters = [token.text for token in member.parameters or ()]
    return member.name == around.name and around.name in parameters and bool({"&", "&&"} & set(parameters))


def _is_for_the_host(header: str) -> bool:
    return header in HOST_HEADERS and not (HEADERS / header).is_file()


def _edited(file: SourceFile, edits: list[_Edit]) -> str:
    """A text with edits, which may lie within each other; directives stay but for edits of their own."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if edit.start < at:
            continue
        parts += [file.text[at : edit.start], _blanked(file, edit)]
        at = edit.end
    return "".join([*parts, file.text[at:]])


def _blanked(file: SourceFile, edit: _Edit) -> str:
    """Spaces in the place of a text, with its line ends and the directives within it."""
    kept: list[str] = []
    at = edit.start
    for token in file.tokens:
        if token.kind == "directive" and edit.start < token.start < edit.end:
            kept += [_spaces(file.text[at : token.start]), token.text]
            at = token.end
    kept.append(_spaces(file.text[at : edit.end]))
    blank = "".join(kept)
    line = blank.split("\n", 1)[0]
    room = len(edit.replacement) if line.isspace() or not line else 0
    return edit.replacement + blank[min(room, len(line)) :]


def _spaces(text: str) -> str:
    return "".join(character if character in "\r\n" else " " for character in text)
