"""Splitting of 64-bit integers into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.analysis.cfg import reverse_postorder
from qgpu.ir.core.builder import Builder
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64
from qgpu.ir.core.values import Argument, Value
from qgpu.ir.passes.dead_code import remove_dead_instructions, remove_unreachable_blocks
from qgpu.ir.passes.emitter import Emitter
from qgpu.ir.passes.manager import Pass
from qgpu.ir.passes.split_wide.arithmetic import ARITHMETIC
from qgpu.ir.passes.split_wide.memory import MEMORY, aligned_pointer

__all__ = ["RULES", "SplitWide", "aligned_pointer"]

RULES = {**ARITHMETIC, **MEMORY}
"""How each operation on 64 bits is done by words."""

KEPT = ("ptrdiff", "ptrtoint", "atomicrmw", "cmpxchg")
"""What still gives an i64 afterwards, of which `trunc` and `high` take the words."""


@dataclass(frozen=True)
class SplitWide(Pass):
    """Computes on 64-bit integers by pairs of words.

    Contract: every value, access and fault is what it was, but that an access which is neither aligned nor
    inside its buffer may fault as either, that differences of pointers have 32 bits, and that an index too
    far from a buffer for 32 bits leaves it. What is left in 64 bits: parameters, `ptrdiff`, `ptrtoint` and
    atomics, read by `trunc` and `high` just after them; and the operands of atomics and printf, constants or
    a `pack` just before. Division, high products and bit fields have to be expanded before; high products of
    words arise.
    """

    name: ClassVar[str] = "split-wide"

    def run(self, function: Function) -> bool:
        if function.linearised or not has_wide(function):
            return False
        before = str(function)
        remove_unreachable_blocks(function)
        split_arguments(function)
        pending = [pair for block in reverse_postorder(function) for pair in split_phis(block.phis)]
        for block in reverse_postorder(function):
            for instruction in block.body:
                split(instruction)
        for phi, low, high in pending:
            fill_phi(phi, low, high)
        for phi, _, _ in pending:
            phi.erase()
        remove_dead_instructions(function)
        return str(function) != before


def is_wide(instruction: Instruction) -> bool:
    return instruction.type is I64 or any(operand.type is I64 for operand in instruction.operands)


def has_wide(function: Function) -> bool:
    return any(map(is_wide, function.instructions))


def split_arguments(function: Function) -> None:
    """Reads the words of parameters at the start."""
    for argument in function.args:
        if argument.type is I64 and argument.uses:
            split_argument(function, argument)


def split_argument(function: Function, argument: Argument) -> None:
    uses = argument.uses
    builder = Builder().at_start(function.entry)
    low, high = (builder.emit(op, argument, type=I32) for op in ("trunc", "high"))
    pair = builder.emit("pack", low, high)
    for use in uses:
        use.replace(pair)


def split_phis(phis: list[Instruction]) -> list[tuple[Instruction, Instruction, Instruction]]:
    """Gives the phis of 64 bits phis of words, which are filled later."""
    pending = []
    for phi in phis:
        if phi.type is not I64:
            continue
        low, high = (
            phi.block.insert(0, Instruction("phi", I32, (), {"blocks": ()}, phi.loc)) for _ in range(2)
        )
        low.name, high.name = phi.name, phi.name and f"{phi.name}.high"
        phi.name = ""
        pair = Builder(loc=phi.loc).at_start(phi.block).emit("pack", low, high)
        phi.replace_all_uses_with(pair)
        pending.append((phi, low, high))
    return pending


def fill_phi(phi: Instruction, low: Instruction, high: Instruction) -> None:
    for value, source in phi.incoming:
        emit = Emitter(source.terminator)
        low.add_incoming(emit.low(value), source)
        high.add_incoming(emit.high(value), source)


def split(instruction: Instruction) -> None:
    """Puts words in the place of an instruction on 64 bits."""
    rule = RULES.get(instruction.op)
    if not is_wide(instruction) or rule is None or is_split(instruction):
        return
    value = rule(Emitter(instruction), instruction)
    if value is not None and value is not instruction:
        name_words(instruction, value)
        instruction.replace_all_uses_with(value)
        instruction.erase()


def is_split(instruction: Instruction) -> bool:
    """Whether an instruction takes a word of what gives an i64 afterwards too."""
    if instruction.op not in ("trunc", "high") or instruction.type is not I32:
        return False
    source = instruction.operands[0]
    return isinstance(source, Argument) or (isinstance(source, Instruction) and source.op in KEPT)


def name_words(instruction: Instruction, value: Value) -> None:
    """The low word, or the value itself, takes over the name."""
    named = value.operands[0] if isinstance(value, Instruction) and value.op == "pack" else value
    if isinstance(named, Instruction) and not named.name and instruction.name:
        named.name = instruction.name
        instruction.name = ""
