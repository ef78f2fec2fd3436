"""Basic blocks: straight-line instructions with one terminator, and after linearisation a guard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Literal, Value

if TYPE_CHECKING:
    from qgpu.ir.core.function import Function


class BasicBlock:
    """A list of instructions of which the last is the terminator.

    `guard` is a conjunction of literals: the block acts only for the lanes in which all of them hold. It is
    empty before linearisation, and in blocks that every lane that runs them takes part in.
    """

    def __init__(self, name: str = "", guard: Iterable[Literal] = ()) -> None:
        self.name = name
        self.instructions: list[Instruction] = []
        self.parent: Function | None = None
        self._guard: tuple[Literal, ...] = ()
        self.guard = tuple(guard)

    @property
    def guard(self) -> tuple[Literal, ...]:
        return self._guard

    @guard.setter
    def guard(self, literals: Iterable[Literal]) -> None:
        for index, literal in enumerate(self._guard):
            literal.value.remove_use(self, index)
        self._guard = tuple(literals)
        for index, literal in enumerate(self._guard):
            literal.value.add_use(self, index)

    def replace_operand(self, index: int, value: Value) -> None:
        """Makes literal `index` of the guard read `value`, with the polarity it had."""
        literals = list(self._guard)
        literals[index] = Literal(value, literals[index].polarity)
        self.guard = literals

    @property
    def terminator(self) -> Instruction:
        """The last instruction; ValueError where the block does not end in a terminator."""
        if not self.instructions or not self.instructions[-1].info.terminator:
            raise ValueError(f"block '{self.name}' has no terminator")
        return self.instructions[-1]

    @property
    def terminated(self) -> bool:
        return bool(self.instructions) and self.instructions[-1].info.terminator

    @property
    def successors(self) -> tuple[BasicBlock, ...]:
        """The blocks control may go to next, each once; empty for a block that ends the kernel."""
        return tuple(dict.fromkeys(self.terminator.successors))

    @property
    def phis(self) -> list[Instruction]:
        return [instruction for instruction in self.instructions if instruction.op == "phi"]

    @property
    def body(self) -> list[Instruction]:
        """The instructions between the phis and the terminator."""
        return [i for i in self.instructions if i.op != "phi" and not i.info.terminator]

    def insert(self, index: int, instruction: Instruction) -> Instruction:
        """Puts a new or detached instruction before position `index`."""
        instruction.parent = self
        self.instructions.insert(index, instruction)
        return instruction

    def append(self, instruction: Instruction) -> Instruction:
        return self.insert(len(self.instructions), instruction)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __repr__(self) -> str:
        return f"BasicBlock({self.name})"
