"""Instructions: an opcode of the table, operands, attributes, and where in the source they come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from qgpu.ir.core.opcodes import OPCODES, OpInfo
from qgpu.ir.core.types import VOID, Type
from qgpu.ir.core.values import Location, Value

if TYPE_CHECKING:
    from qgpu.ir.core.block import BasicBlock


class Instruction(Value):
    """One operation, and the value it computes (type void where it computes none).

    `attrs` holds what the opcode's row lists: predicates, memory types, branch targets (as blocks), a phi's
    incoming blocks. Operands are changed through `operands = ...` or `replace_operand`, which keep the uses.
    """

    def __init__(
        self,
        op: str,
        type_: Type = VOID,
        operands: Iterable[Value] = (),
        attrs: dict[str, Any] | None = None,
        loc: Location | None = None,
        name: str = "",
    ) -> None:
        super().__init__(type_, name)
        self.op = op
        self.attrs: dict[str, Any] = dict(attrs or {})
        self.loc = loc
        self.parent: BasicBlock | None = None
        self._operands: tuple[Value, ...] = ()
        self.operands = tuple(operands)

    @property
    def info(self) -> OpInfo:
        """The opcode's row of the table."""
        return OPCODES[self.op]

    @property
    def operands(self) -> tuple[Value, ...]:
        return self._operands

    @operands.setter
    def operands(self, values: Iterable[Value]) -> None:
        for index, value in enumerate(self._operands):
            value.remove_use(self, index)
        self._operands = tuple(values)
        for index, value in enumerate(self._operands):
            value.add_use(self, index)

    @property
    def block(self) -> BasicBlock:
        """The block that holds this instruction; ValueError where it is in none."""
        if self.parent is None:
            raise ValueError(f"instruction '{self.op}' is in no block")
        return self.parent

    @property
    def successors(self) -> tuple[BasicBlock, ...]:
        """The blocks a terminator may go to, in the order of the opcode's row."""
        return tuple(self.attrs[name] for name in self.info.targets)

    @property
    def incoming(self) -> tuple[tuple[Value, BasicBlock], ...]:
        """The pairs (value, predecessor) of a phi."""
        return tuple(zip(self._operands, self.attrs["blocks"], strict=True))

    def replace_operand(self, index: int, value: Value) -> None:
        self._operands[index].remove_use(self, index)
        self._operands = (*self._operands[:index], value, *self._operands[index + 1 :])
        value.add_use(self, index)

    def replace_successor(self, old: BasicBlock, new: BasicBlock) -> None:
        """Sends every edge of this terminator that goes to `old` to `new`; phis are the caller's concern."""
        for name in self.info.targets:
            if self.attrs[name] is old:
                self.attrs[name] = new

    def add_incoming(self, value: Value, block: BasicBlock) -> None:
        """Appends an incoming pair to a phi."""
        self.attrs["blocks"] = (*self.attrs["blocks"], block)
        self.operands = (*self._operands, value)

    def remove_incoming(self, block: BasicBlock) -> None:
        """Takes the pair of `block` off a phi."""
        pairs = [(value, source) for value, source in self.incoming if source is not block]
        self.attrs["blocks"] = tuple(source for _, source in pairs)
        self.operands = tuple(value for value, _ in pairs)

    def detach(self) -> None:
        """Takes the instruction out of its block and keeps its operands, to be inserted elsewhere."""
        self.block.instructions.remove(self)
        self.parent = None

    def erase(self) -> None:
        """Takes the instruction out of its block for good; ValueError where its value is still used."""
        if self._uses:
            raise ValueError(f"erased '{self.op}' still has uses")
        self.operands = ()
        if self.parent is not None:
            self.detach()

    def __repr__(self) -> str:
        return f"Instruction({self.op}{' %' + self.name if self.name else ''}: {self.type})"
