"""Names of kernels: mangled, as `ns::scan<int, 16>`, or as `scan`; and which names mean which kernel.

Mangled names are read by the C++ runtime library (Itanium C++ ABI, section 3.4, `__cxa_demangle`), which
Python's compiled packages bring along on Linux and macOS.
"""

import ctypes
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib")
_LENGTH = re.compile(r"(\d+)")
_SUFFIX = re.compile(r"(?<=\d)(?:u|l|ul|ll|ull)\b", re.IGNORECASE)
_CAST = re.compile(r"\((?:unsigned |signed )?(?:char|short|int|long|long long|bool)\)(?=-?\d)")
_MANGLED = re.compile(r"\b_Z\w+")
_TAG = re.compile(r"\[abi:\w+\]")
_BOOLEAN = re.compile(r"\(bool\)([01])")


@dataclass(frozen=True)
class KernelName:
    """A kernel's name, taken apart: `scope` of `n::scan<16>` is `n`, `own` is `scan`, `arguments` is `16`."""

    scope: tuple[str, ...]
    own: str
    arguments: str | None = None

    @property
    def qualified(self) -> str:
        """With its scope, without template arguments."""
        return "::".join((*self.scope, self.own))

    def __str__(self) -> str:
        return self.qualified + ("" if self.arguments is None else f"<{self.arguments}>")

    def means(self, other: "KernelName") -> bool:
        """Whether this name, as a user writes it, can be the other: scopes and arguments may lack."""
        if self.own != other.own or self.scope != other.scope[len(other.scope) - len(self.scope) :]:
            return False
        return self.arguments is None or self.arguments == other.arguments


def parse_name(text: str) -> KernelName:
    """The parts of a name such as `ns::scan<int, 16>`; spaces and suffixes of numbers do not matter."""
    before, angle, after = text.strip().removeprefix("::").partition("<")
    *scope, own = [part.strip() for part in before.split("::")]
    scope = [part for part in scope if part and part != "(anonymous namespace)"]
    return KernelName(tuple(scope), own, _arguments(after.rpartition(">")[0]) if angle else None)


def _arguments(text: str) -> str:
    text = _BOOLEAN.sub(lambda match: "true" if match[1] == "1" else "false", text)
    text = _SUFFIX.sub("", _CAST.sub("", text))
    text = re.sub(r"\s*([<>,*&()])\s*", r"\1", " ".join(text.split()))
    text = re.sub(r"\bunsigned int\b", "unsigned", text)
    return text.replace(",", ", ")


def kernel_name(mangled: str) -> KernelName:
    """The name that a kernel has in its source."""
    return _parsed(mangled)


@cache
def _parsed(mangled: str) -> KernelName:
    if not mangled.startswith("_Z"):
        return KernelName((), mangled)
    text = _demangled(mangled)
    if text is None:
        return KernelName((), plain_name(mangled))
    return parse_name(_without_types(text))


def _without_types(text: str) -> str:
    """A demangled function without its result's type, its parameters, and tags, by which numba numbers it."""
    text = _TAG.sub("", text.replace("(anonymous namespace)::", ""))
    depth, start, end = 0, 0, len(text)
    for index, character in enumerate(text):
        if character == "(" and depth == 0:
            end = index
            break
        depth += (character in "<(") - (character in ">)")
        if character == " " and depth == 0:
            start = index + 1
    return text[start:end]


@cache
def _demangle_function():
    for name in _LIBRARIES:
        try:
            function = getattr(ctypes.CDLL(name), "__cxa_demangle")
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        return function
    return None


def _demangled(name: str) -> str | None:
    """The declaration that a mangled name stands for, or None where no library can tell."""
    function = _demangle_function()
    if function is None:
        return None
    status = ctypes.c_int()
    result = function(name.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not result:
        return None
    text = ctypes.string_at(result).decode(errors="replace")
    release = ctypes.CDLL(None).free
    release.argtypes = [ctypes.c_void_p]
    release(result)
    return text


def matching(wanted: str, names: Iterable[str]) -> list[str]:
    """The full names that a name means: the one that is equal, or else those it can stand for."""
    names = list(names)
    if wanted in names:
        return [wanted]
    parsed = parse_name(wanted)
    return [name for name in names if parsed.means(kernel_name(name))]


def described(names: Sequence[str]) -> str:
    """Names for a message, one after another; see `told_apart`."""
    return ", ".join(told_apart(names))


def told_apart(names: Sequence[str]) -> list[str]:
    """Names as a source has them where that tells them apart, else in full."""
    short = [str(kernel_name(name)) for name in names]
    return [name if short.count(text) > 1 else text for name, text in zip(names, short, strict=True)]


def readable(text: str) -> str:
    """A message with the names in it as the source has them: of functions, and of variables within."""
    return _MANGLED.sub(lambda match: _local_name(match[0]) or str(kernel_name(match[0])), text)


def _local_name(mangled: str) -> str | None:
    """The own name of a variable that is static in a function (Itanium C++ ABI, section 5.1.6)."""
    text = _demangled(mangled) if mangled.startswith("_ZZ") else None
    return text and text.rpartition("::")[2]


def plain_name(name: str) -> str:
    """The function's own name in a mangled one (`_ZN2ns3dotEPi` gives `dot`), else the name itself.

    Itanium C++ ABI, section 5.1.3: a nested name is a sequence of identifiers, each after its length.
    """
    if not name.startswith("_Z"):
        return name
    position = 3 if name.startswith("_ZN") else 2
    found = ""
    while match := _LENGTH.match(name, position):
        start = match.end()
        position = start + int(match.group())
        found = name[start:position]
        if not name.startswith("_ZN"):
            break
    return found or name
