"""Errors about what is set aside, told as what they are: host code in the device's place."""

import dataclasses
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from qgpu.toolchain.cuda.declarations import Declaration
from qgpu.toolchain.cuda.host_code import HostCode
from qgpu.toolchain.diagnostics import Diagnostic, note

Refusals = dict[Declaration, list[Diagnostic]]
"""The errors for which declarations were set aside."""

_UNKNOWN = re.compile(
    r"""identifier\ "(?P<edg>[^"]+)"\ is\ undefined
      | (?:namespace|class|struct|union)\ "[^"]*"\ has\ no\ (?:actual\ )?member\ "(?P<member>[^"]+)"
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
_IN_HEADERS = {
    "cooperative_groups": "cooperative_groups.h",
    "numeric_limits": "limits",
    "is_same": "type_traits",
    "CUDA_VERSION": "cuda.h",
}
"""Headers, by names that they declare."""
_BUILT_IN = frozenset(
    re.findall(
        r"\w+",
        "threadIdx blockIdx blockDim gridDim warpSize printf __syncthreads __syncwarp __popc __clz "
        "atomicAdd atomicSub atomicExch atomicMin atomicMax atomicAnd atomicOr atomicXor atomicCAS __ffs "
        "__shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync __ballot_sync __any_sync __all_sync",
    )
)
_HOST_LIBRARY = re.compile(
    r"(cuda|cu|cublas|curand|thrust|cub)[A-Z]\w*|std|thrust|cub|cout|cerr|endl|malloc|free|new|rand|srand|exit|"
    r"vector|string|map|unordered_map|swap|sort|array|function|unique_ptr|shared_ptr|min|max|accumulate|fprintf|scanf|"
    r"puts|putchar|memcmp|strlen|strcmp|strcpy|qsort|time|sleep|getenv|abort"
)


def explained(diagnostics: Iterable[Diagnostic], host: HostCode, refused: Refusals) -> list[Diagnostic]:
    """The errors of the last try, each that comes of what was set aside told as that; one for each line."""
    found: dict[tuple[str | None, int], Diagnostic] = {}
    for diagnostic in diagnostics:
        for told in _told(diagnostic, host, refused):
            if told.severity == "error":
                found.setdefault((told.file, told.line), told)
    return list(found.values())


def _told(diagnostic: Diagnostic, host: HostCode, refused: Refusals) -> Iterator[Diagnostic]:
    match = _UNKNOWN.fullmatch(diagnostic.message)
    name = next(filter(None, match.groups()), None) if match else _before_scope(diagnostic)
    if diagnostic.severity != "error" or name is None:
        yield diagnostic
        return
    own = name.rpartition("::")[2].rpartition(" ")[2]
    meant = [declaration for declaration in host.aside if own in declaration.names]
    for declaration in meant:
        if declaration in refused:
            for error in refused[declaration]:
                yield from _told(error, host, {})
            return
    if meant:
        yield _about(diagnostic, meant[0], own, host)
    else:
        yield _unknown(diagnostic, own, host, match is None or bool(match["edg"]))


def _unknown(diagnostic: Diagnostic, name: str, host: HostCode, undeclared: bool) -> Diagnostic:
    """An error about a name that the source does not declare."""
    if name in _IN_HEADERS:
        hint = note(f"it takes #include <{_IN_HEADERS[name]}>")
        return dataclasses.replace(diagnostic, message=f"'{name}' is not declared", notes=(hint,))
    if _HOST_LIBRARY.fullmatch(name):
        return _reworded(diagnostic, _LIBRARY, name)
    return _undeclared(diagnostic, name, host) if undeclared else diagnostic


def _undeclared(diagnostic: Diagnostic, name: str, host: HostCode) -> Diagnostic:
    """The error that a name means nothing, with the name that may have been meant."""
    words = {token.text for file in host.unit.files.values() for token in file.tokens if token.kind == "name"}
    alike = get_close_matches(name, (words | _BUILT_IN) - {name}, 1, 0.75)
    hints = (note(f"did you mean '{alike[0]}'?"),) if alike else ()
    return dataclasses.replace(
        diagnostic, message=f"'{name}' is not declared", notes=(*diagnostic.notes, *hints), length=len(name)
    )


def _before_scope(diagnostic: Diagnostic) -> str | None:
    """The name before a `::` that a message speaks of without saying it."""
    if diagnostic.message != 'name followed by "::" must be a class or namespace name':
        return None
    found = re.match(r"\w+", (diagnostic.source_line or "")[max(0, diagnostic.column - 1) :])
    return found.group() if found else None


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
