"""Structures passed by value: written as `bytes:0a00...`, spread over the parameters that are their parts.

A kernel gets of a structure the parts that it reads, each a parameter `structure.offset` by its first byte.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from qgpu.backends.machine.program import Kernel, Parameter
from qgpu.backends.machine.verify import SCALAR_BITS
from qgpu.runtime.arguments import Argument, ArgumentError, Scalar, SpecError, parameter_text, parse_argument
from qgpu.toolchain.cuda.names import readable

_PREFIX = "bytes:"
_PART = re.compile(r"(?P<structure>.+)\.(?P<offset>\d+)")


@dataclass(frozen=True)
class Structure:
    """The bytes of a structure, as they lie in memory."""

    content: bytes


def parse_given(spec: str) -> Argument | Structure:
    """The argument that a text describes, or the structure that `bytes:` and hexadecimal digits do.

    Raises:
        SpecError, ArgumentError: as for `parse_argument`.
    """
    if not spec.startswith(_PREFIX):
        return parse_argument(spec)
    try:
        return Structure(bytes.fromhex(spec.removeprefix(_PREFIX)))
    except ValueError:
        raise SpecError(f"'{spec}' has no whole number of bytes in hexadecimal digits") from None


def spread(kernel: Kernel, given: Sequence[Argument | Structure]) -> tuple[Argument, ...]:
    """The arguments of a kernel, with structures taken apart into its parameters.

    Raises:
        ArgumentError: where a structure is given there is none, it is too short, or it holds a pointer.
    """
    arguments: list[Argument] = []
    for argument in given:
        if isinstance(argument, Structure):
            arguments += _parts(kernel, len(arguments), argument)
        else:
            arguments.append(argument)
    return tuple(arguments)


def _parts(kernel: Kernel, first: int, structure: Structure) -> list[Scalar]:
    """The parts of a structure, from parameter number `first` on."""
    left = kernel.parameters[first:]
    found = _PART.fullmatch(left[0].name) if left else None
    if found is None:
        wanted = parameter_text(left[0]) if left else "none"
        raise ArgumentError(
            f"argument {first + 1} of kernel '{readable(kernel.name)}' is a structure; "
            f"parameter {wanted} is wanted"
        )
    prefix = f"{found['structure']}."
    return [_part(part, structure) for part in takewhile(lambda part: part.name.startswith(prefix), left)]


def _part(parameter: Parameter, structure: Structure) -> Scalar:
    if parameter.pointer:
        raise ArgumentError(
            f"'{parameter.name}' is a pointer: give the structure's parts one by one, this one as a buffer"
        )
    offset, size = int(parameter.name.rpartition(".")[2]), SCALAR_BITS[parameter.type] // 8
    content = structure.content[offset : offset + size]
    if len(content) < size:
        raise ArgumentError(
            f"the structure has {len(structure.content)} bytes; '{parameter.name}' lies at {offset} to "
            f"{offset + size - 1}"
        )
    return Scalar(parameter.type, int.from_bytes(content, "little", signed=parameter.type[0] == "i"))
