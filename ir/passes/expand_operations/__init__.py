"""Expansion of operations that the machine lacks into those that it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64
from qgpu.ir.core.values import Value
from qgpu.ir.passes.dead_code import remove_dead_instructions
from qgpu.ir.passes.emitter import Emitter
from qgpu.ir.passes.expand_operations.counting import expand_brev, expand_clz, expand_popc
from qgpu.ir.passes.expand_operations.division import expand_division
from qgpu.ir.passes.expand_operations.fields import (
    expand_insert,
    expand_signed_extract,
    expand_unsigned_extract,
)
from qgpu.ir.passes.expand_operations.permutation import expand_prmt
from qgpu.ir.passes.expand_operations.products import expand_high_product
from qgpu.ir.passes.manager import Pass

Expansion = Callable[[Emitter, Instruction], Value]
"""Emits what an instruction computes before it, and gives the result."""

EXPANSIONS: dict[str, Expansion] = {
    "mulhi_u": expand_high_product,
    "mulhi_s": expand_high_product,
    "udiv": expand_division,
    "urem": expand_division,
    "sdiv": expand_division,
    "srem": expand_division,
    "popc": expand_popc,
    "clz": expand_clz,
    "brev": expand_brev,
    "bfe_u": expand_unsigned_extract,
    "bfe_s": expand_signed_extract,
    "bfi": expand_insert,
    "prmt": expand_prmt,
}
"""How operations on words are done without a unit for them, and on 64 bits in any case."""

WORD_OPERATIONS = frozenset({"mulhi_u", "mulhi_s", "popc", "clz", "brev", "prmt"})
"""The operations of the table that the machine has on words; permutation by selectors for bytes."""


@dataclass(frozen=True)
class ExpandOperations(Pass):
    """Computes what the machine has no unit for (division, high products, bit fields ...) by what it has.

    Contract: every value is what it was. Operations on 64 bits become ones on words and simple ones on 64
    bits. Division of 64 bits becomes a branch with a loop; all else is straight code. Narrow integers have
    to be promoted before.
    """

    name: ClassVar[str] = "expand-operations"

    def run(self, function: Function) -> bool:
        if function.linearised:
            return False
        changed = False
        while found := [i for i in function.instructions if is_lacking(i)]:
            changed = True
            for instruction in found:
                if instruction.parent is not None:
                    expand(instruction)
        if changed:
            remove_dead_instructions(function)
        return changed


def is_lacking(instruction: Instruction) -> bool:
    """Whether an instruction has to be expanded."""
    if instruction.op not in EXPANSIONS:
        return False
    there = instruction.op in WORD_OPERATIONS and instruction.attrs.get("mode", "bytes") == "bytes"
    type_ = instruction.operands[0].type
    return type_ is I64 or (type_ is I32 and not there)


def expand(instruction: Instruction) -> None:
    """Puts an instruction's expansion in its place."""
    value = EXPANSIONS[instruction.op](Emitter(instruction), instruction)
    if isinstance(value, Instruction) and not value.name and not value.uses:
        value.name = instruction.name
    instruction.replace_all_uses_with(value)
    instruction.erase()
