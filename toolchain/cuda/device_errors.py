"""Errors about what is set aside, told as what they are: host code in the device's place."""

import dataclasses
import re
from collections.abc import Iterable, Iterator

from qgpu.toolchain.cuda.declarations import Declaration
from qgpu.toolchain.cuda.host_code import HostCode
from qgpu.toolchain.diagnostics import Diagnostic, note

Refusals = dict[Declaration, list[Diagnostic]]
"""The errors for which declarations were set aside."""

_UNKNOWN = re.compile(
    r"""identifier\ "(?P<edg>[^"]+)"\ is\ undefined
      | (?:namespace|class|struct|union)\ "[^"]*"\ has\ no\ (?:actual\ )?member\ "(?P<member>[^"]+)"
      | name\ followed\ by\ "::"\ must\ be\ a\ class\ or\ namespace\ name
      | function\ "(?P<deleted>[^"(]+)[^"]*"\ .*is\ a\ deleted\ function
      | use\ of\ undeclared\ identifier\ '(?P<clang>[^']+)'.*
      | unknown\ type\ name\ '(?P<type>[^']+)'.*
      | no\ (?:member|type)\ named\ '(?P<clang_member>[^']+)'\ in\ .*
      | (?:call\ to|attempt\ to\ use\ a)\ deleted\ (?:member\ )?function\ '(?P<clang_deleted>[^']+)'.*
      | call\ to\ deleted\ constructor\ of\ '(?P<constructor>[^']+)'.*""",
    re.VERBOSE,
)


@dataclasses.dataclass(frozen=True)
class _Explanation:
    """What to say of host code of a kind that the device uses: `{}` is its name."""

    message: str
    hint: str


_FUNCTION = _Explanation(
    "'{}' is a host function: device code cannot call it",
    "mark it __device__, or __host__ __device__ where the host calls it as well",
)
_VARIABLE = _Explanation(
    "'{}' is a host variable: device code cannot use it",
    "make it __device__ or __constant__, declare it constexpr, or pass its value as an argument",
)
_LIBRARY = _Explanation(
    "'{}' is not available in device code",
    "the host's standard library and CUDA's host functions stay out of kernels",
)
_HOST_LIBRARY = re.compile(
    r"(cuda|cu|cublas|curand|thrust|cub)[A-Z]\w*|std|thrust|cub|cout|cerr|endl|malloc|free|new|rand|srand|exit|"
    r"vector|string|map|unordered_map|swap|sort|array|function|unique_ptr|shared_ptr|min|max|accumulate|fprintf|scanf|"
    r"puts|putchar|memcmp|strlen|strcmp|strcpy|qsort|time|sleep|getenv|abort"
)


def explained(diagnostics: Iterable[Diagnostic], host: HostCode, refused: Refusals) -> list[Diagnostic]:
    """The errors of the last try, each that comes of what was set aside told as that."""
    found: list[Diagnostic] = []
    for diagnostic in diagnostics:
        for told in _told(diagnostic, host, refused):
            if told not in found:
                found.append(told)
    return [diagnostic for diagnostic in found if diagnostic.severity == "error"]


def _told(diagnostic: Diagnostic, host: HostCode, refused: Refusals) -> Iterator[Diagnostic]:
    match = _UNKNOWN.fullmatch(diagnostic.message)
    name = next(filter(None, match.groups()), None) if match else None
    if diagnostic.severity != "error" or name is None:
        yield diagnostic
        return
    own = name.rpartition("::")[2].rpartition(" ")[2]
    meant = [declaration for declaration in host.aside if own in declaration.names]
    for declaration in meant:
        if declaration in refused:
            yield from refused[declaration]
            return
    if meant:
        yield _about(diagnostic, meant[0], own, host)
    elif _HOST_LIBRARY.fullmatch(own):
        yield _reworded(diagnostic, _LIBRARY, own)
    else:
        yield diagnostic


def _about(diagnostic: Diagnostic, declaration: Declaration, name: str, host: HostCode) -> Diagnostic:
    """The error that device code uses what a host declaration declares, with that one's place."""
    function = declaration.kind == "function" or declaration.parameters is not None
    file = host.unit.files[declaration.file]
    position = next((token.start for token in declaration.head if token.text == name), declaration.start)
    where = file.source.diagnostic(
        f"'{name}' is declared here, without an annotation for the device",
        *file.place(position),
        severity="note",
        length=len(name),
    )
    told = _reworded(diagnostic, _FUNCTION if function else _VARIABLE, name)
    return dataclasses.replace(told, notes=(where, *told.notes))


def _reworded(diagnostic: Diagnostic, explanation: _Explanation, name: str) -> Diagnostic:
    return dataclasses.replace(
        diagnostic,
        message=explanation.message.format(name),
        notes=(note(explanation.hint),),
        length=len(name),
    )
