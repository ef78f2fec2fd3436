"""Arguments of a launch: written as `i32[]:1,2,3`, held as numpy values, checked against parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.backends.machine.program import Kernel, Parameter
from qgpu.backends.machine.verify import SCALAR_BITS
from qgpu.toolchain.cuda.names import readable

DTYPES = {
    name: np.dtype(f"<{'i' if name[0] == 'i' else 'u'}{bits // 8}") for name, bits in SCALAR_BITS.items()
}
"""numpy's little-endian types, by the names that arguments have."""

MAX_ELEMENTS = 1 << 20
"""Elements of the longest buffer that can be asked for; no machine has as many bytes of memory."""

_SPEC = re.compile(r"(?P<type>\w+)(?P<brackets>\[(?P<count>\w*)\])?(?P<colon>:)?(?P<value>.*)", re.DOTALL)
_OF_KERNEL = re.compile(r".+_(?=param_\d+(?:\.\d+)?$)")

FORMS = "i32:5, i32[]:1,2,3, i32[16] (zeros) or i32[]:@file.npy, with i8 u8 i16 u16 i32 u32 i64 u64"


class ArgumentError(ValueError):
    """An argument that does not fit its type or its parameter, or whose file cannot be read."""


class SpecError(ArgumentError):
    """A text that is not written as an argument."""


@dataclass(frozen=True)
class Scalar:
    """A number and its type (a key of DTYPES)."""

    type: str
    value: int


@dataclass(frozen=True)
class Buffer:
    """A one-dimensional array, of the dtype that its type (a key of DTYPES) has."""

    type: str
    values: np.ndarray


Argument = Scalar | Buffer


def parse_argument(spec: str) -> Argument:
    """Return the argument that a text describes; see FORMS.

    Raises:
        SpecError: the text is no argument.
        ArgumentError: a number is out of its type's range, or the file that the text names is not an array of
            that type.
    """
    match = _SPEC.fullmatch(spec)
    if match is None or match["type"] not in DTYPES:
        raise SpecError(f"'{spec}' is no argument; write {FORMS}")
    kind, count, value = match["type"], match["count"], match["value"]
    has_value = match["colon"] is not None
    if match["brackets"] is None and has_value:
        return Scalar(kind, _number(value, kind))
    if count and not has_value and not value:
        return Buffer(kind, np.zeros(_count(count), DTYPES[kind]))
    if count == "" and has_value:
        return Buffer(kind, _load(value[1:], kind) if value.startswith("@") else _list(value, kind))
    raise SpecError(f"'{spec}' is no argument; write {FORMS}")


def files_of(specs: Iterable[str]) -> list[str]:
    """The files that texts of arguments name."""
    matches = (_SPEC.fullmatch(spec) for spec in specs)
    return [match["value"][1:] for match in matches if match and match["value"].startswith("@")]


def _number(text: str, kind: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        raise SpecError(f"'{text}' is not a whole number") from None
    check_range(value, kind)
    return value


def check_range(value: int, kind: str) -> None:
    """Check that a number is one of a type (a key of DTYPES).

    Raises:
        ArgumentError: it is not.
    """
    limits = np.iinfo(DTYPES[kind])
    if not limits.min <= value <= limits.max:
        raise ArgumentError(f"{value} is out of range for {kind}: {limits.min} to {limits.max}")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:9]) <= MAX_ELEMENTS and len(text) < 9):
        raise SpecError(f"'{text}' is not a number of elements")
    return int(text)


def _list(text: str, kind: str) -> np.ndarray:
    items = text.split(",") if text.strip() else []
    return np.array([_number(item.strip(), kind) for item in items], DTYPES[kind])


def _load(path: str, kind: str) -> np.ndarray:
    try:
        values = np.load(path, allow_pickle=False)
    except OSError as error:
        raise ArgumentError(f"cannot read '{path}': {error.strerror or error}") from None
    except (ValueError, EOFError, OverflowError, MemoryError, SyntaxError) as error:
        raise ArgumentError(f"'{path}' is not a .npy file: {error}") from None
    if not isinstance(values, np.ndarray):
        raise ArgumentError(f"'{path}' is not a .npy file of one array")
    if values.dtype != DTYPES[kind]:
        raise ArgumentError(f"'{path}' holds {values.dtype} values, not {kind}")
    return np.ascontiguousarray(values, DTYPES[kind]).reshape(-1)


def check_arguments(kernel: Kernel, arguments: Sequence[Argument]) -> None:
    """Check arguments against a kernel's parameters: their number, what is a buffer, and widths.

    Signedness is the reader's: an `i32` fits a `u32` parameter.

    Raises:
        ArgumentError: names the parameter and what it wants.
    """
    wanted = ", ".join(map(parameter_text, kernel.parameters)) or "none"
    if len(arguments) != len(kernel.parameters):
        raise ArgumentError(
            f"kernel '{readable(kernel.name)}' takes {len(kernel.parameters)} arguments ({wanted}); "
            f"{len(arguments)} are given"
        )
    for number, (parameter, argument) in enumerate(zip(kernel.parameters, arguments, strict=True), 1):
        if not _fits(parameter, argument):
            raise ArgumentError(
                f"argument {number} of kernel '{readable(kernel.name)}' is {argument_text(argument)}; "
                f"parameter {parameter_text(parameter)} is wanted"
            )


def _fits(parameter: Parameter, argument: Argument) -> bool:
    if parameter.pointer != isinstance(argument, Buffer):
        return False
    return parameter.type == "void" or SCALAR_BITS[parameter.type] == SCALAR_BITS[argument.type]


def parameter_text(parameter: Parameter) -> str:
    """A parameter as C writes it; the one that PTX calls `KERNEL_param_2` is `param_2`."""
    name = _OF_KERNEL.sub("", parameter.name)
    return f"{parameter.type}{'*' if parameter.pointer else ''} {name}"


def argument_text(argument: Argument) -> str:
    """What an argument is, without its values."""
    return f"{argument.type}[{len(argument.values)}]" if isinstance(argument, Buffer) else argument.type


def launch_argument(argument: Argument) -> int | bytes:
    """An argument as the host sends it: a number, or the bytes of a buffer."""
    return argument.values.tobytes() if isinstance(argument, Buffer) else argument.value


def updated(argument: Argument, content: bytes | None) -> Argument:
    """The argument after a launch: a buffer with new content, or the scalar as it was."""
    if content is None or not isinstance(argument, Buffer):
        return argument
    return Buffer(argument.type, np.frombuffer(content, DTYPES[argument.type]).copy())


def argument_values(argument: Argument) -> int | list[int]:
    """The value of a scalar, or the values of a buffer, as plain numbers."""
    return argument.values.tolist() if isinstance(argument, Buffer) else argument.value
