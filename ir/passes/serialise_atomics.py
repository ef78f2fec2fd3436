"""Atomic operations that the machine cannot do in one block become loops in which lanes take turns.

A machine block has one result, so of an atomic operation it has the new value of the word; the old one
follows from it for add and xor only. Other operations need several instructions in which no other lane
comes between. In each round of the loop the lanes that would change a word put their thread number there,
and the lowest stays (`atomicrmw min_u`). That lane writes the new value. Those before it have seen the
word as they should; those behind it go round again, and see what it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64
from qgpu.ir.core.values import Constant, Literal, Value
from qgpu.ir.passes.dead_code import erase_if_dead
from qgpu.ir.passes.errors import PassError
from qgpu.ir.passes.lockstep import LaneLoop, Lanes, declare_slot, insert_block
from qgpu.ir.passes.manager import Pass
from qgpu.ir.passes.split_wide.memory import aligned_pointer

ZERO, ONE, NOBODY = (constant(I32, number) for number in (0, 1, -1))
OLD_KNOWN = ("add", "xor")
"""Kinds whose old value follows from the new one."""

COMPOUND = ("inc", "dec")
"""Kinds that take more than one operation."""

Words = Sequence[Value]
"""A value in memory as its words, lowest first: one or two."""


@dataclass(frozen=True)
class SerialiseAtomics(Pass):
    """Turns atomic operations that are not one block of the machine into loops in which lanes take turns.

    Contract: the function is linearised; memory and results are as if the lanes had run the operation one
    after the other, the first thread first. What stays: operations on words whose result is unused, but for
    inc, dec and cmpxchg, and add and xor. Those on 64 bits become operations on words. Raises PassError for
    operations on less than a word.

    Options: `warp_size` is how many lanes a warp has, `threads` the most threads of a thread block, for
    kernels that state no bound (attribute max_threads).
    """

    name: ClassVar[str] = "serialise-atomics"
    warp_size: int = 32
    threads: int = 128

    def run(self, function: Function) -> bool:
        found = [i for i in function.instructions if i.op in ("atomicrmw", "cmpxchg") and not _is_block(i)]
        if not found or not function.linearised:
            return False
        lanes = Lanes(function, self.warp_size, self.threads)
        for instruction in found:
            _Atomic(function, lanes, instruction).lower()
        return True


def _is_block(instruction: Instruction) -> bool:
    """Whether the machine does an atomic operation as it is."""
    if instruction.type is not I32 or instruction.op == "cmpxchg":
        return False
    kind = instruction.attrs["kind"]
    return kind in OLD_KNOWN or (kind not in COMPOUND and not instruction.uses)


@dataclass(frozen=True)
class _Atomic:
    """One atomic operation while it is lowered."""

    function: Function
    lanes: Lanes
    instruction: Instruction

    @property
    def kind(self) -> str:
        return self.instruction.attrs.get("kind", "cmpxchg")

    def lower(self) -> None:
        """Replaces the operation."""
        instruction = self.instruction
        if instruction.type not in (I32, I64):
            raise PassError(
                f"'{instruction.op}' on {instruction.type}", instruction, "it takes 32 or 64 bits"
            )
        builder = Builder().before(instruction)
        pointer, *values = instruction.operands
        addresses = [pointer]
        if instruction.type is I64:
            aligned = aligned_pointer(builder, pointer)
            addresses = [aligned, builder.ptradd(aligned, ZERO, disp=4)]
        operands = [_words(builder, value) for value in values]
        if instruction.type is I64 and self.kind == "add":
            old: Words = self._add_words(builder, addresses, operands[0])
        elif instruction.type is I64 and self._by_words():
            old = [builder.atomicrmw(self.kind, *pair) for pair in zip(addresses, operands[0], strict=True)]
        else:
            old = self._take_turns(addresses, operands)
        _replace(instruction, old)

    def _by_words(self) -> bool:
        """Whether the words of a pair are combined each by itself, by operations that the machine has."""
        return self.kind == "xor" or (self.kind in ("and", "or", "xchg") and not self.instruction.uses)

    def _add_words(self, builder: Builder, addresses: Words, operand: Words) -> Words:
        """The low words first, in all lanes, then the high ones with their carries: sums have any order."""
        low = builder.atomicrmw("add", addresses[0], operand[0])
        carry = builder.icmp("ult", builder.emit("add", low, operand[0]), operand[0])
        summand = builder.emit("add", operand[1], builder.cast("zext", carry, I32))
        return [low, builder.atomicrmw("add", addresses[1], summand)]

    def _take_turns(self, addresses: Words, operands: Sequence[Words]) -> Words:
        """The loop; the old words where the result is used."""
        instruction, thread = self.instruction, self.lanes.thread()
        used = bool(instruction.uses)
        results = [declare_slot(self.function, I32, "old") for _ in addresses if used]
        loop = LaneLoop.before(instruction, "turn")
        builder = Builder(loop.body, instruction.loc)
        old = [builder.load(address, I32, volatile=True) for address in addresses]
        changes, new = RULES[self.kind](builder, old, operands)
        builder.store(addresses[0], NOBODY, volatile=True)
        number = thread if changes is None else builder.select(changes, thread, NOBODY)
        builder.atomicrmw("min_u", addresses[0], number)
        first = builder.load(addresses[0], I32, volatile=True)
        if changes is not None:
            mine = builder.icmp("eq", first, thread)
            new = [builder.select(mine, *pair) for pair in zip(new, old, strict=True)]
        for slot, word in zip(results, old, strict=used):
            builder.set(slot, word)
        served = builder.icmp("uge", first, thread)
        writes = insert_block("turn.write", loop.rest, (*loop.body.guard, Literal(served)))
        closing = insert_block("turn.next", loop.rest, loop.body.guard)
        builder.br(writes)
        builder.at_end(writes)
        for address, word in zip(addresses, new, strict=True):
            builder.store(address, word, volatile=True)
        builder.br(closing)
        builder.at_end(closing)
        loop.close(builder, builder.icmp("ult", first, thread))
        builder.before(instruction)
        return [builder.get(slot) for slot in results]


def _words(builder: Builder, value: Value) -> Words:
    """The words of an operand of 32 or 64 bits."""
    if value.type is I32:
        return [value]
    if isinstance(value, Constant):
        return [constant(I32, value.value), constant(I32, value.value >> 32)]
    if isinstance(value, Instruction) and value.op == "pack":
        return value.operands
    return [builder.emit("trunc", value, type=I32), builder.emit("high", value)]


def _replace(instruction: Instruction, old: Words) -> None:
    """Makes the users of an atomic operation's result read words."""
    packs = [operand for operand in instruction.operands if isinstance(operand, Instruction)]
    if instruction.type is I32 and instruction.uses:
        instruction.replace_all_uses_with(old[0])
    for user in instruction.users:
        if isinstance(user, Instruction) and (user.op == "high" or (user.op, user.type) == ("trunc", I32)):
            user.replace_all_uses_with(old[user.op == "high"])
            user.erase()
    if instruction.uses:
        instruction.replace_all_uses_with(Builder().before(instruction).emit("pack", *old))
    instruction.erase()
    for pack in packs:
        erase_if_dead(pack)


Rule = Callable[[Builder, Words, Sequence[Words]], tuple[Value | None, Words]]
"""From the old words and the operands: whether the lane changes the word (None: as good as always), and to
what; only where it does the new words count."""


def _differs(builder: Builder, a: Words, b: Words) -> Value:
    """Whether two numbers are different."""
    unequal = [builder.icmp("ne", *pair) for pair in zip(a, b, strict=True)]
    return unequal[0] if len(unequal) == 1 else builder.emit("or", *unequal)


def _less(builder: Builder, a: Words, b: Words, signed: bool) -> Value:
    """Whether one number is less than another."""
    top = builder.icmp("slt" if signed else "ult", a[-1], b[-1])
    if len(a) == 1:
        return top
    low = builder.emit("and", builder.icmp("eq", a[1], b[1]), builder.icmp("ult", a[0], b[0]))
    return builder.emit("or", top, low)


def _minimum(signed: bool) -> Rule:
    return lambda builder, old, operands: (_less(builder, operands[0], old, signed), operands[0])


def _maximum(signed: bool) -> Rule:
    return lambda builder, old, operands: (_less(builder, old, operands[0], signed), operands[0])


def _bitwise(op: str) -> Rule:
    def rule(builder: Builder, old: Words, operands: Sequence[Words]) -> tuple[Value, Words]:
        new = [builder.emit(op, *pair) for pair in zip(old, operands[0], strict=True)]
        return _differs(builder, new, old), new

    return rule


def _exchange(builder: Builder, old: Words, operands: Sequence[Words]) -> tuple[Value, Words]:
    return _differs(builder, operands[0], old), operands[0]


def _compare_exchange(builder: Builder, old: Words, operands: Sequence[Words]) -> tuple[Value, Words]:
    equal = [builder.icmp("eq", *pair) for pair in zip(old, operands[0], strict=True)]
    return (equal[0] if len(equal) == 1 else builder.emit("and", *equal)), operands[1]


def _increment(builder: Builder, old: Words, operands: Sequence[Words]) -> tuple[None, Words]:
    """PTX atom.inc: old >= bound ? 0 : old + 1."""
    below = _less(builder, old, operands[0], signed=False)
    new = [builder.emit("add", old[0], ONE)]
    if len(old) == 2:
        carry = builder.icmp("eq", new[0], ZERO)
        new.append(builder.emit("add", old[1], builder.cast("zext", carry, I32)))
    return None, [builder.select(below, word, ZERO) for word in new]


def _decrement(builder: Builder, old: Words, operands: Sequence[Words]) -> tuple[None, Words]:
    """PTX atom.dec: old = 0 or old > bound ? bound : old - 1, which is the lesser of bound and old - 1."""
    new = [builder.emit("sub", old[0], ONE)]
    if len(old) == 1:
        return None, [builder.emit("umin", new[0], operands[0][0])]
    borrow = builder.icmp("eq", old[0], ZERO)
    new.append(builder.emit("sub", old[1], builder.cast("zext", borrow, I32)))
    less = _less(builder, new, operands[0], signed=False)
    return None, [builder.select(less, *pair) for pair in zip(new, operands[0], strict=True)]


RULES: dict[str, Rule] = {
    "min_s": _minimum(True),
    "max_s": _maximum(True),
    "min_u": _minimum(False),
    "max_u": _maximum(False),
    "and": _bitwise("and"),
    "or": _bitwise("or"),
    "xchg": _exchange,
    "cmpxchg": _compare_exchange,
    "inc": _increment,
    "dec": _decrement,
}
"""What a lane in the loop does, by the kind of the operation."""
