"""Machines whose warps are narrower than CUDA's, and kernels that depend on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qgpu.ir import Constant, Function, Instruction, Module
from qgpu.toolchain.cuda.names import readable
from qgpu.toolchain.diagnostics import Diagnostic, emit
from qgpu.toolchain.special_registers import WARP

if TYPE_CHECKING:
    from qgpu.backends.machine.description import MachineDescription

EXCHANGES = ("shuffle", "ballot", "match", "redux")

PLACES = ("laneid", "warpid")
"""Special registers that say where in a warp, and in which, a thread is."""


def bound_to_a_warp(module: Module, machine: MachineDescription) -> None:
    """Bound the thread blocks of kernels that depend on warps to one warp of a narrower machine.

    In a block of no more threads an exchange is what it is in CUDA, where the other lanes do not exist; in a
    larger one it would be among the lanes of a narrower warp. A warning says so, at the instruction.
    """
    if machine.lanes >= WARP:
        return
    for function in module.functions:
        found = next((i for i in function.instructions if _depends_on_warps(i)), None)
        if found is None:
            continue
        stated = int(function.attrs.get("max_threads", machine.lanes))
        function.attrs["max_threads"] = min(stated, machine.lanes)
        emit([_warning(function, found, machine)])


def _depends_on_warps(instruction: Instruction) -> bool:
    """Whether lanes exchange values, or a thread asks for its place.

    activemask alone does not: it may give any of the lanes that run together.
    """
    if instruction.op == "sreg":
        return instruction.attrs["name"] in PLACES
    if instruction.op not in EXCHANGES:
        return False
    first, mask = instruction.operands[0], instruction.operands[-1]
    asks_nothing = isinstance(first, Constant) and isinstance(mask, Constant) and mask.value == 0
    return not (instruction.op == "ballot" and asks_nothing)


def _warning(function: Function, instruction: Instruction, machine: MachineDescription) -> Diagnostic:
    place, lanes = instruction.loc, machine.lanes
    return Diagnostic(
        severity="warning",
        message=f"kernel '{readable(function.name)}' runs blocks of at most {lanes} threads on machine "
        f"'{machine.name}': it depends on warps of {WARP} lanes, and the machine's have {lanes}",
        file=place.file if place else None,
        line=place.line if place else 0,
        column=place.column if place else 0,
    )
