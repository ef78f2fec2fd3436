"""Random well-formed kernels: arithmetic of all widths, divergence, loops, memory, exchanges, barriers.

A kernel's parameters are `source` (64 words, read), `wide` (16 64-bit numbers, read), `target` (8 words for
each thread, its own), `cells` (one word for each atomic), the words `k` and `m` and the 64-bit number `w`.
Every loop ends. What a kernel leaves in memory does not depend on the order in which threads run between
barriers: a thread writes to what is its own, or by atomics that commute, or where all threads come together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from qgpu.ir import I8, I16, I32, I64, Array, BasicBlock, Builder, Function, IntType, Value, constant, ptr
from qgpu.ir.core.opcodes import BARRIER_REDUCTIONS, ICMP_PREDICATES, PERMUTE_MODES, REDUCTION_KINDS

OWN_WORDS = 8
SOURCE_WORDS = 64
WIDE_NUMBERS = 16
TABLE = bytes(range(1, 256, 4))
LOCAL_WORDS = 4
CELLS = 128
CORNERS = (0, 1, -1, 2, 3, 5, 7, 31, 32, 33, 63, 255, 256, -256, 32767, 65535)
CORNERS += (2**31 - 1, -(2**31), 0x12345678)

COMMUTING = ("add", "xor", "max_s", "min_u", "and", "or", "min_s", "max_u")
OLD_VALUE_KINDS = (*COMMUTING, "xchg", "inc", "dec")
BINARY = ("add", "sub", "mul", "and", "or", "xor", "smin", "smax", "umin", "umax")
COSTLY = ("sdiv", "udiv", "srem", "urem", "mulhi_s", "mulhi_u")
SHIFTS = ("shl", "lshr", "ashr")
UNARY = ("not", "popc", "clz", "brev")

Choice = tuple[int, Callable[["Generator"], object]]
"""A weight, and what to write."""


@dataclass
class Generator:
    """Writes one kernel; `words` and `longs` are the current values of the variables of 32 and 64 bits.

    `together` tells whether all threads of the block that have not returned run what is written next.
    """

    random: random.Random
    threads: int
    function: Function = field(init=False)
    builder: Builder = field(default_factory=Builder)
    words: list[Value] = field(default_factory=list)
    longs: list[Value] = field(default_factory=list)
    cells: int = 0
    depth: int = 3
    together: bool = True
    budget: int = 40

    def kernel(self, statements: int) -> Function:
        """A kernel with that many statements at its top level."""
        pointer = ptr("global")
        args = [(name, pointer) for name in ("source", "wide", "target", "cells")]
        arrays = [
            Array("tile", "shared", 4 * self.threads),
            Array("stack", "local", 4 * LOCAL_WORDS),
            Array("table", "const", len(TABLE), 4, TABLE),
        ]
        self.function = Function("random", [*args, ("k", I32), ("m", I32), ("w", I64)], arrays)
        build = self.builder.at_end(self.function.add_block("entry"))
        self.tid = build.sreg("tid.x", "tid")
        first = build.emit("mul", build.sreg("ctaid.x"), build.sreg("ntid.x"))
        self.thread = build.emit("add", first, self.tid, name="thread")
        self.words = [self.thread, *self.function.args[4:6], constant(I32, 7)]
        self.words.append(self.load_word())
        self.longs = [self.function.args[6], build.cast("sext", self.thread, I64)]
        build.store(self.tile(self.tid), self.word())
        for index in range(LOCAL_WORDS):
            build.store(self.local(constant(I32, index)), self.word())
        for _ in range(statements):
            self.statement()
        self.store_all()
        build.ret()
        return self.function

    def store_all(self) -> None:
        for index, value in enumerate(self.words):
            self.builder.store(self.own(index), value)
        for index in range(LOCAL_WORDS):
            value = self.builder.load(self.local(constant(I32, index)), I32)
            self.builder.atomicrmw("add", self.cell(), value)
        for value in self.longs:
            low = self.builder.cast("trunc", value, I32)
            high = self.builder.cast("trunc", self.builder.emit("lshr", value, constant(I64, 32)), I32)
            self.builder.atomicrmw("add", self.cell(), low)
            self.builder.atomicrmw("xor", self.cell(), high)

    def pick(self, choices: Sequence[Choice]) -> object:
        """Writes one of the choices, by weight."""
        weights, writers = zip(*choices, strict=True)
        (chosen,) = self.random.choices(writers, weights)
        return chosen(self)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # Operands

    def word(self) -> Value:
        return self.random.choice(self.words)

    def long(self) -> Value:
        return self.random.choice(self.longs)

    def value(self, type_: IntType) -> Value:
        """A variable of the type, or one cut or extended to it."""
        build = self.builder
        if type_ is I32:
            return self.word()
        if type_ is I64:
            return self.long() if self.chance(0.7) else build.cast(self.extension(), self.word(), I64)
        return build.cast("trunc", self.word(), type_)

    def operand(self, type_: IntType) -> Value:
        if self.chance(0.3):
            return constant(type_, self.random.choice(CORNERS))
        return self.value(type_)

    def extension(self) -> str:
        return self.random.choice(("zext", "sext"))

    def condition(self) -> Value:
        build, type_ = self.builder, self.random.choice((I32, I32, I32, I64, I16))
        predicate = self.random.choice(ICMP_PREDICATES)
        first = build.icmp(predicate, self.value(type_), self.operand(type_))
        if self.chance(0.75):
            return first
        second = build.icmp(self.random.choice(ICMP_PREDICATES), self.word(), self.operand(I32))
        return build.emit(self.random.choice(("and", "or", "xor")), first, second)

    # Memory

    def index(self, limit: int) -> Value:
        return self.builder.emit("and", self.word(), constant(I32, limit - 1))

    def own(self, element: int, width: int = 4) -> Value:
        """A pointer into the thread's own words, `element` times `width` bytes from their start."""
        return self.builder.ptradd(self.function.args[2], self.thread, 4 * OWN_WORDS, width * element)

    def local(self, index: Value) -> Value:
        return self.builder.ptradd(self.builder.addrof("stack", "local"), index, 4)

    def tile(self, index: Value) -> Value:
        return self.builder.ptradd(self.builder.addrof("tile", "shared"), index, 4)

    def cell(self) -> Value:
        """A pointer to a cell that no other instruction uses."""
        assert self.cells < CELLS
        self.cells += 1
        return self.builder.ptradd(self.function.args[3], constant(I32, self.cells - 1), 4)

    def load_word(self) -> Value:
        return self.builder.load(self.builder.ptradd(self.function.args[0], self.index(SOURCE_WORDS), 4), I32)

    def load_narrow(self) -> Value:
        type_ = self.random.choice((I8, I16))
        index = self.index(4 * SOURCE_WORDS // type_.bytes)
        pointer = self.builder.ptradd(self.function.args[0], index, type_.bytes)
        return self.builder.load(pointer, type_, I32, ext=self.random.choice(("zero", "sign")))

    def load_own(self) -> Value:
        return self.builder.load(self.own(self.random.randrange(OWN_WORDS)), I32)

    def load_local(self) -> Value:
        return self.builder.load(self.local(self.index(LOCAL_WORDS)), I32)

    def load_table(self) -> Value:
        index = self.index(len(TABLE) // 4)
        return self.builder.load(self.builder.ptradd(self.builder.addrof("table", "const"), index, 4), I32)

    def load_selected(self) -> Value:
        """A load through one of two pointers, of one buffer or two."""
        first = self.builder.ptradd(self.function.args[0], self.index(8), 4)
        second = self.own(self.random.randrange(OWN_WORDS))
        if self.chance(0.5):
            second = self.builder.ptradd(self.function.args[0], self.index(16), 4, 4)
        return self.builder.load(self.builder.select(self.condition(), first, second), I32)

    # Expressions of 32 bits

    def binary(self, type_: IntType, names: Sequence[str]) -> Value:
        a, b = self.value(type_), self.operand(type_)
        if self.chance(0.3):
            a, b = b, a
        return self.builder.emit(self.random.choice(names), a, b)

    def unary(self, type_: IntType) -> Value:
        return self.builder.emit(self.random.choice(UNARY), self.value(type_))

    def field_operation(self, type_: IntType) -> Value:
        where = (self.operand(I32), self.operand(I32))
        if self.chance(0.5):
            where = (constant(I32, self.random.randrange(34)), constant(I32, self.random.randrange(34)))
        if self.chance(0.4):
            return self.builder.emit("bfi", self.value(type_), self.value(type_), *where)
        return self.builder.emit(self.random.choice(("bfe_u", "bfe_s")), self.value(type_), *where)

    def permutation(self) -> Value:
        selector = constant(I32, self.random.randrange(65536)) if self.chance(0.7) else self.word()
        attrs = {"mode": "bytes" if self.chance(0.5) else self.random.choice(PERMUTE_MODES)}
        return self.builder.emit("prmt", self.word(), self.word(), selector, attrs=attrs)

    def three_input_logic(self) -> Value:
        attrs = {"lut": self.random.randrange(256)}
        return self.builder.emit("lop3", *(self.word() for _ in range(3)), attrs=attrs)

    def selection(self, type_: IntType) -> Value:
        return self.builder.select(self.condition(), self.operand(type_), self.value(type_))

    def narrow_operation(self) -> Value:
        type_ = self.random.choice((I8, I16))
        result = self.pick(
            (
                (6, lambda x: x.binary(type_, BINARY)),
                (2, lambda x: x.binary(type_, SHIFTS)),
                (2, lambda x: x.binary(type_, COSTLY)),
                (1, lambda x: x.unary(type_)),
            )
        )
        assert isinstance(result, Value)
        return self.builder.cast(self.extension(), result, I32)

    def low_word(self) -> Value:
        value = self.long()
        if self.chance(0.5):
            value = self.builder.emit("lshr", value, constant(I64, 32))
        return self.builder.cast("trunc", value, I32)

    def flag(self) -> Value:
        return self.builder.cast(self.extension(), self.condition(), I32)

    def load_wide(self) -> Value:
        return self.builder.load(self.builder.ptradd(self.function.args[1], self.index(WIDE_NUMBERS), 8), I64)

    def wide_product(self) -> Value:
        cast = self.extension()
        return self.builder.emit("mul", *(self.builder.cast(cast, self.word(), I64) for _ in range(2)))

    # Where threads come together

    def full_mask(self) -> Value:
        return constant(I32, -1)

    def shuffled(self) -> Value:
        build, lane = self.builder, self.builder.sreg("laneid")
        offset = constant(I32, self.random.choice((1, 2, 3, 4, 8, 16, 31)))
        source = self.random.choice(
            (
                lambda: build.emit("xor", lane, offset),
                lambda: build.emit("add", lane, offset),
                lambda: build.emit("sub", lane, offset),
                lambda: build.emit("and", self.word(), constant(I32, 31)),
                lambda: constant(I32, 0),
            )
        )()
        return build.emit("shuffle", self.word(), source, self.full_mask())

    def vote(self) -> Value:
        return self.builder.emit("ballot", self.condition(), self.full_mask())

    def matched(self) -> Value:
        value = self.builder.emit("and", self.word(), constant(I32, 3))
        return self.builder.emit("match", value, self.full_mask())

    def reduced(self) -> Value:
        attrs = {"kind": self.random.choice(REDUCTION_KINDS)}
        return self.builder.emit("redux", self.word(), self.full_mask(), attrs=attrs)

    def block_reduced(self) -> Value:
        attrs = {"kind": self.random.choice(BARRIER_REDUCTIONS)}
        return self.builder.emit("barrier_reduce", self.condition(), attrs=attrs)

    def neighbour(self) -> Value:
        """What another thread of the block has, by shared memory between two barriers."""
        build = self.builder
        build.store(self.tile(self.tid), self.word())
        build.barrier()
        offset = build.emit("add", self.tid, constant(I32, self.random.randrange(1, 8)))
        count = build.sreg("ntid.x")
        wrapped = build.select(build.icmp("ult", offset, count), offset, constant(I32, 0))
        value = build.load(self.tile(wrapped), I32)
        build.barrier()
        return value

    def in_turn(self, write: Callable[[], Value]) -> Value:
        """Something of which the order of threads shows, between barriers, so that it is ascending."""
        self.builder.barrier()
        value = write()
        self.builder.barrier()
        return value

    def old_value(self) -> Value:
        kind = self.random.choice(OLD_VALUE_KINDS)
        return self.in_turn(lambda: self.builder.atomicrmw(kind, self.cell(), self.word()))

    def swapped(self) -> Value:
        expected = self.operand(I32)
        return self.in_turn(lambda: self.builder.emit("cmpxchg", self.cell(), expected, self.word()))

    # Statements

    def assign_word(self) -> None:
        value = self.pick(TOGETHER_WORDS if self.together and self.chance(0.35) else WORDS)
        assert isinstance(value, Value)
        self.words[self.random.randrange(1, len(self.words))] = value
        self.observe(value)

    def assign_long(self) -> None:
        value = self.pick(LONGS)
        assert isinstance(value, Value)
        self.longs[self.random.randrange(len(self.longs))] = value
        self.observe(self.builder.cast("trunc", value, I32))
        self.observe(self.builder.emit("high", value))

    def observe(self, value: Value) -> None:
        """Makes the first variable depend on a word, so that nothing is computed in vain."""
        build = self.builder
        self.words[0] = build.emit("add", build.emit("mul", self.words[0], constant(I32, 5)), value)

    def store_own(self) -> None:
        type_ = self.random.choice((I32, I32, I16, I8))
        element = self.random.randrange(4 * OWN_WORDS // type_.bytes)
        self.builder.store(self.own(element, type_.bytes), self.word(), type=type_)

    def store_wide(self) -> None:
        self.builder.store(self.own(self.random.randrange(OWN_WORDS // 2), 8), self.long())

    def store_local(self) -> None:
        self.builder.store(self.local(self.index(LOCAL_WORDS)), self.word())

    def count(self) -> None:
        self.builder.atomicrmw(self.random.choice(COMMUTING), self.cell(), self.word())

    def statement(self) -> None:
        self.budget -= 1
        self.pick(STATEMENTS if self.depth and self.budget > 0 else SIMPLE_STATEMENTS)

    def statements(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement()

    # Control flow

    def state(self) -> list[Value]:
        return [*self.words, *self.longs]

    def set_state(self, state: Sequence[Value]) -> None:
        self.words, self.longs = list(state[: len(self.words)]), list(state[len(self.words) :])

    def inside(self, write: Callable[[], None], together: bool) -> None:
        """Writes one level deeper; `together` whether all threads get there."""
        before = (self.depth, self.together)
        self.depth, self.together = self.depth - 1, self.together and together
        write()
        self.depth, self.together = before

    def branch(self) -> None:
        build = self.builder
        sides = [self.function.add_block(name) for name in ("then", "else")]
        join = self.function.add_block("join")
        build.condbr(self.condition(), *sides)
        before, ends = self.state(), []
        for side, filled in zip(sides, (True, self.chance(0.5)), strict=True):
            build.at_end(side)
            self.set_state(before)
            if filled:
                self.inside(self.statements, together=False)
            ends.append((build.block, self.state()))
            build.br(join)
        build.at_end(join)
        self.set_state(self.merged(ends))

    def merged(self, ends: list[tuple[BasicBlock, list[Value]]]) -> list[Value]:
        """The state where several edges meet."""
        result: list[Value] = []
        for values in zip(*(state for _, state in ends), strict=True):
            if all(value is values[0] for value in values):
                result.append(values[0])
                continue
            phi = self.builder.phi(values[0].type)
            for value, (block, _) in zip(values, ends, strict=True):
                phi.add_incoming(value, block)
            result.append(phi)
        return result

    def loop(self) -> None:
        """A loop of up to three rounds, as many for all threads or of each its own; perhaps left early."""
        build = self.builder
        alike = self.chance(0.5)
        count = constant(I32, self.random.randint(1, 3)) if alike else self.index(4)
        header, body, done = (self.function.add_block(name) for name in ("header", "body", "done"))
        source, entered = build.block, self.state()
        build.br(header)
        build.at_end(header)
        phis = [build.phi(value.type) for value in (count, *entered)]
        for phi, value in zip(phis, (count, *entered), strict=True):
            phi.add_incoming(value, source)
        self.set_state(phis[1:])
        exits = [(build.block, self.state())]
        build.condbr(build.icmp("ne", phis[0], constant(I32, 0)), body, done)
        build.at_end(body)
        leaves = self.chance(0.3)
        self.inside(self.statements, together=alike and not leaves)
        if leaves:
            go_on = self.function.add_block("goon")
            build.condbr(self.condition(), done, go_on)
            exits.append((build.block, self.state()))
            build.at_end(go_on)
            self.inside(self.statements, together=False)
        left = build.emit("add", phis[0], constant(I32, -1))
        for phi, value in zip(phis, (left, *self.state()), strict=True):
            phi.add_incoming(value, build.block)
        build.br(header)
        build.at_end(done)
        self.set_state(self.merged(exits))

    def early_return(self) -> None:
        if not self.together:
            return
        build = self.builder
        leave, go_on = self.function.add_block("leave"), self.function.add_block("goon")
        build.condbr(self.condition(), leave, go_on)
        build.at_end(leave)
        build.store(self.own(0), self.word())
        build.ret()
        build.at_end(go_on)

    def trap(self) -> None:
        build = self.builder
        stop, go_on = self.function.add_block("stop"), self.function.add_block("goon")
        rare = build.icmp("eq", self.word(), constant(I32, self.random.choice(CORNERS)))
        build.condbr(rare, stop, go_on)
        build.at_end(stop).trap("trap")
        build.at_end(go_on)


WORDS: tuple[Choice, ...] = (
    (10, lambda x: x.binary(I32, BINARY)),
    (3, lambda x: x.binary(I32, SHIFTS)),
    (4, lambda x: x.binary(I32, COSTLY)),
    (2, lambda x: x.unary(I32)),
    (2, lambda x: x.field_operation(I32)),
    (2, lambda x: x.permutation()),
    (2, lambda x: x.three_input_logic()),
    (2, lambda x: x.selection(I32)),
    (2, lambda x: x.narrow_operation()),
    (2, lambda x: x.low_word()),
    (1, lambda x: x.flag()),
    (3, lambda x: x.load_word()),
    (2, lambda x: x.load_narrow()),
    (2, lambda x: x.load_own()),
    (2, lambda x: x.load_local()),
    (1, lambda x: x.load_table()),
    (1, lambda x: x.load_selected()),
)
TOGETHER_WORDS: tuple[Choice, ...] = (
    (3, lambda x: x.shuffled()),
    (1, lambda x: x.vote()),
    (2, lambda x: x.matched()),
    (2, lambda x: x.reduced()),
    (1, lambda x: x.block_reduced()),
    (2, lambda x: x.neighbour()),
    (2, lambda x: x.old_value()),
    (1, lambda x: x.swapped()),
)
LONGS: tuple[Choice, ...] = (
    (8, lambda x: x.binary(I64, BINARY)),
    (3, lambda x: x.binary(I64, SHIFTS)),
    (2, lambda x: x.binary(I64, COSTLY)),
    (1, lambda x: x.unary(I64)),
    (1, lambda x: x.field_operation(I64)),
    (2, lambda x: x.selection(I64)),
    (2, lambda x: x.wide_product()),
    (2, lambda x: x.load_wide()),
)
SIMPLE_STATEMENTS: tuple[Choice, ...] = (
    (8, Generator.assign_word),
    (4, Generator.assign_long),
    (2, Generator.store_own),
    (1, Generator.store_wide),
    (1, Generator.store_local),
    (1, Generator.count),
)
STATEMENTS: tuple[Choice, ...] = (
    *SIMPLE_STATEMENTS,
    (4, Generator.branch),
    (3, Generator.loop),
    (1, Generator.early_return),
)


def random_kernel(source: random.Random, threads: int, statements: int = 6) -> Function:
    """The kernel that a source of random numbers leads to, for blocks of up to `threads` threads."""
    return Generator(source, threads).kernel(statements)
