"""Nodes: the operations of the machine before they are put together into blocks.

A node is one expression of the machine with registers, constants or other nodes as operands, at most one
memory access, and at most one effect. Selection inlines nodes into one another; what is left is one block a
node.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from qgpu.ir import BasicBlock, Location
from qgpu.toolchain.codegen.registers import Register

LESS, EQUAL, GREATER = 1, 2, 4
"""Relations of cmp and pick are sums of these."""

LUT_X, LUT_Y, LUT_Z = 0xF0, 0xCC, 0xAA
"""Truth tables of the operands: a function of X, Y, Z is the same function of these (PTX ISA, lop3)."""


BOOLEAN = ("cmp", "lex")
"""Operations whose result is 0 or 1."""

EFFECTS = ("store", "atomic", "trap")
"""Kinds of nodes that do something beside their result."""

ANY_SPACE = "any"
"""The space of an access through a pointer into one of several."""


class _Memory:
    """The word, half word or byte that an access of the block names, as an operand."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


MEMORY: Final = _Memory("mem")
MEMORY_2: Final = _Memory("mem2")
"""What the node's own access names, and what the block's other one does."""

Arg: TypeAlias = "Node | Register | int"
Condition: TypeAlias = "Node | Slot"
NodeGuard: TypeAlias = "tuple[tuple[Condition, bool], ...]"
"""A guard before its conditions have predicate registers: a conjunction, outer conditions first."""

Operand: TypeAlias = "Node | Register | int | _Memory"


@dataclass(frozen=True)
class Expression:
    """One operation of the arithmetic unit; `op` is one of the machine's OPS. Constants are modulo 2^32."""

    op: str
    x: Operand = 0
    y: Operand = 0
    z: Operand = 0
    lut: int = 0
    relation: int = 0
    signed: bool = False

    @property
    def operands(self) -> tuple[Operand, Operand, Operand]:
        return self.x, self.y, self.z

    def with_operands(self, x: Operand, y: Operand, z: Operand) -> Expression:
        return dataclasses.replace(self, x=x, y=y, z=z)

    @property
    def moved(self) -> Operand | None:
        """The operand that this expression hands on unchanged, or None where it computes something."""
        if self.op != "mad":
            return None
        if self.y == 0 or self.x == 0:
            return self.z
        return self.x if self.y == 1 and self.z == 0 else None


def move(value: Operand) -> Expression:
    """The expression whose result is its operand."""
    return Expression("mad", value, 1, 0) if value is MEMORY else Expression("mad", 0, 0, value)


@dataclass(frozen=True)
class Term:
    """A part of an offset: `value` * `scale` bytes, the value read as unsigned or as signed."""

    value: Arg
    scale: int
    unsigned: bool = False


@dataclass(frozen=True)
class Access:
    """One access to memory: the sum of terms and displacement, in bytes, into the buffer of a descriptor.

    Attributes:
        descriptor: the word that describes the buffer.
        width: 1, 2 or 4 bytes.
        sign: a narrow load extends the sign.
        space: address space; accesses to different spaces never meet.
    """

    descriptor: Arg
    terms: tuple[Term, ...]
    displacement: int
    width: int
    sign: bool = False
    space: str = "global"

    @property
    def args(self) -> tuple[Arg, ...]:
        return (self.descriptor, *(term.value for term in self.terms))


@dataclass(eq=False)
class Slot:
    """A variable that outlives a pass through its region: `data` holds it as a word, `predicate` as a guard.

    A slot that no thread's own course can change is `uniform`: scalar blocks write it, whatever the guard.
    """

    name: str
    uniform: bool
    data: Register
    predicate: Register | None = None


@dataclass(eq=False)
class Node:
    """An operation in a region of the program.

    Attributes:
        kind: `value` (pure), `load`, `store`, `atomic`, `get`, `set`, `branch`, `trap`, `fence`.
        expression: what it computes; of a set or a branch, its operand.
        access: the memory it reads or writes.
        slot: the slot of a get or set.
        block: the basic block that it belongs to.
        order: its position in that block.
        uniform: computed by a scalar block, once for the thread block.
        data, predicate: registers of its result.
        volatile: kept in the order of the source among its like.
        trap: of a trap, the number of the fault.
        message: of a trap, what the assertion says that has failed.
        guard: the lanes that take part, where they are not those of the region.
        over: the node whose register this one overwrites, in the lanes of its guard.
    """

    kind: str
    expression: Expression
    block: BasicBlock
    loc: Location | None
    access: Access | None = None
    slot: Slot | None = None
    uniform: bool = False
    volatile: bool = False
    trap: int = 0
    message: str = ""
    guard: NodeGuard | None = None
    over: Node | None = None
    order: int = 0
    data: Register | None = None
    predicate: Register | None = None
    users: dict[Node, None] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Node({self.kind} {self.expression.op} #{self.order} in {self.block.name})"

    @property
    def args(self) -> tuple[Arg, ...]:
        """What it reads besides memory."""
        read = [operand for operand in self.expression.operands if not isinstance(operand, _Memory)]
        return (*read, *(self.access.args if self.access else ()), *([self.over] if self.over else []))

    @property
    def nodes(self) -> Iterator[Node]:
        """The nodes that it reads."""
        return (arg for arg in self.args if isinstance(arg, Node))

    @property
    def reads_memory(self) -> bool:
        return any(operand is MEMORY for operand in self.expression.operands)

    @property
    def writes_memory(self) -> bool:
        return self.kind in ("store", "atomic")


def word(value: int) -> int:
    """A number modulo 2^32."""
    return value & 0xFFFFFFFF


def signed(value: int) -> int:
    """The number that a word means in two's complement."""
    return value - (1 << 32) if value >> 31 & 1 else value
