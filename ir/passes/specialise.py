"""Specialisation: what is known of the launches a kernel is compiled for becomes constant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from qgpu.ir.core.function import Function
from qgpu.ir.core.opcodes import SPECIAL_REGISTERS
from qgpu.ir.core.types import I32, IntType
from qgpu.ir.core.values import Argument, Constant, Value
from qgpu.ir.passes.errors import PassError
from qgpu.ir.passes.manager import Pass

LAUNCH_REGISTERS = tuple(name for name in SPECIAL_REGISTERS if name.startswith(("ntid", "nctaid")))


@dataclass(frozen=True)
class Specialise(Pass):
    """Replaces parameters and sizes by the numbers that every launch gives them.

    Contract: the kernel computes what it did in launches with these numbers, and may compute anything in
    others. Options: `NAME=NUMBER` for an integer parameter, or for ntid.x, nctaid.y and so on. The parameter
    stays in the list of parameters. Raises PassError where the kernel has no such parameter, or the number
    does not fit it.
    """

    name: ClassVar[str] = "specialise"
    values: dict[str, int] = field(default_factory=dict)

    def run(self, function: Function) -> bool:
        if function.linearised:
            return False
        numbers = numbers_of(function, self.values)
        changed = False
        for instruction in function.instructions:
            for index, operand in enumerate(instruction.operands):
                if operand in numbers:
                    instruction.replace_operand(index, numbers[operand])
                    changed = True
        for instruction in function.instructions:
            name = instruction.attrs.get("name")
            if instruction.op == "sreg" and name in self.values:
                instruction.replace_all_uses_with(Constant(I32, self.values[name]))
                instruction.erase()
                changed = True
        return changed


def numbers_of(function: Function, values: Mapping[str, int]) -> dict[Value, Constant]:
    """The constants of the parameters that are named; PassError where a name or a number is wrong."""
    arguments = {argument.name: argument for argument in function.args}
    numbers: dict[Value, Constant] = {}
    for name, number in values.items():
        if name in LAUNCH_REGISTERS:
            _check_fits(function, name, number, I32, least=1)
        elif name in arguments:
            numbers[arguments[name]] = _constant(function, arguments[name], number)
        else:
            there = ", ".join([*arguments, *LAUNCH_REGISTERS])
            message = f"kernel '{function.name}' has no '{name}' to specialise"
            raise PassError(message, None, f"there are: {there}")
    return numbers


def _constant(function: Function, argument: Argument, number: int) -> Constant:
    if not isinstance(argument.type, IntType):
        raise PassError(f"parameter '{argument.name}' of kernel '{function.name}' is a buffer, not a number")
    least = -(1 << argument.type.width - 1) if argument.type.width > 1 else 0
    _check_fits(function, argument.name, number, argument.type, least)
    return Constant(argument.type, number)


def _check_fits(function: Function, name: str, number: int, type_: IntType, least: int) -> None:
    if not least <= number <= type_.mask:
        raise PassError(f"{number} does not fit '{name}' of kernel '{function.name}', which is an {type_}")
