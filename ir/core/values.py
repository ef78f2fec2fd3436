"""Values: constants, kernel arguments, and the base class that keeps track of uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qgpu.ir.core.types import I1, IntType, Type

if TYPE_CHECKING:
    from qgpu.ir.core.block import BasicBlock
    from qgpu.ir.core.instruction import Instruction


@dataclass(frozen=True)
class Location:
    """A place in a source file; line and column count from 1, column 0 means unknown."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, eq=False)
class Use:
    """One use of a value: operand `index` of an instruction, or literal `index` of a block's guard."""

    user: Instruction | BasicBlock
    index: int

    def replace(self, value: Value) -> None:
        """Makes the user read `value` instead."""
        self.user.replace_operand(self.index, value)


class Value:
    """Something an instruction can read. `uses` lists who reads it, in the order the uses were made.

    Constants are values of their own (equal where type and number are equal) and keep no uses.
    """

    tracks_uses: ClassVar[bool] = True

    def __init__(self, type_: Type, name: str = "") -> None:
        self.type = type_
        self.name = name
        self._uses: dict[tuple[int, int], Use] = {}

    @property
    def uses(self) -> tuple[Use, ...]:
        return tuple(self._uses.values())

    @property
    def users(self) -> tuple[Instruction | BasicBlock, ...]:
        """The instructions and guarded blocks that read this value, each once."""
        return tuple({id(use.user): use.user for use in self._uses.values()}.values())

    def add_use(self, user: Instruction | BasicBlock, index: int) -> None:
        if self.tracks_uses:
            self._uses[id(user), index] = Use(user, index)

    def remove_use(self, user: Instruction | BasicBlock, index: int) -> None:
        if self.tracks_uses:
            del self._uses[id(user), index]

    def replace_all_uses_with(self, value: Value) -> None:
        """Makes every user of this value, guards included, read `value` instead."""
        for use in self.uses:
            use.replace(value)


class Constant(Value):
    """An integer constant. `value` is kept modulo 2^width, as an unsigned number."""

    tracks_uses = False

    def __init__(self, type_: IntType, value: int) -> None:
        super().__init__(type_)
        self.type: IntType = type_
        self.value = value & type_.mask

    @property
    def signed(self) -> int:
        """The number in two's complement."""
        return self.value - (1 << self.type.width) if self.value >> (self.type.width - 1) else self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and (self.type, self.value) == (other.type, other.value)

    def __hash__(self) -> int:
        return hash((self.type, self.value))

    def __repr__(self) -> str:
        return f"Constant({self.type} {self.signed})"


TRUE = Constant(I1, 1)
FALSE = Constant(I1, 0)


class Argument(Value):
    """Kernel parameter number `index`; a pointer parameter points at offset 0 of its own buffer."""

    def __init__(self, type_: Type, name: str, index: int) -> None:
        super().__init__(type_, name)
        self.index = index

    def __repr__(self) -> str:
        return f"Argument({self.name}: {self.type})"


@dataclass(frozen=True)
class Literal:
    """A member of a guard: holds in a lane where `value` (an i1 or a slot<i1>) equals `polarity` there."""

    value: Value
    polarity: bool = True

    def __invert__(self) -> Literal:
        return Literal(self.value, not self.polarity)
