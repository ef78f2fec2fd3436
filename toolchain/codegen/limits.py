"""How many registers a kernel may have: what its machine, its thread blocks and its user allow."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.backends.machine.description import MachineDescription
from qgpu.toolchain.codegen.registers import Kind


@dataclass(frozen=True)
class Limits:
    """How many registers of each kind a kernel may have, and what says so.

    `reason` ends the sentence "there are N registers a thread ...".
    """

    counts: dict[Kind, int]
    reason: str


def limits_of(machine: MachineDescription, threads: int = 0, registers: int | None = None) -> Limits:
    """The limits of a machine, of thread blocks of so many threads (0: not known), and of a user's choice."""
    warps = min(max(1, -(-threads // machine.lanes)), machine.warps)
    rows = machine.register_rows // warps
    fitting = 1 << rows.bit_length() - 1
    reason = f"on machine '{machine.name}'"
    if warps > 1:
        reason = f"for {threads} threads {reason}"
    if registers is not None and registers < fitting:
        fitting, reason = registers, "by -maxrregcount"
    counts: dict[Kind, int] = {
        "thread": fitting,
        "uniform": machine.uniform_registers,
        "predicate": machine.predicates,
    }
    return Limits(counts, reason)
