"""Random structured kernels in SSA form: arithmetic, memory, atomics, branches, loops, early returns.

A kernel has the parameters `source` and `other` (64 words each, read), `target` (64 words, each thread writes
its own four), `sums` (4 words, atomics), `k` and `m` (scalars). Every loop ends, and no result depends on the
order of threads. Accesses are in bounds, but for pointers that a chain of loops has moved very far.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from qgpu.ir import I8, I16, I32, Array, BasicBlock, Builder, Function, Value, constant, ptr

THREADS = 16
_BINARY = ("add", "sub", "mul", "and", "or", "xor", "smin", "smax", "umin", "umax")
_SHIFTS = ("shl", "lshr", "ashr")
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_CONSTANTS = (0, 1, -1, 2, 3, 5, 31, 32, 2047, 2048, -2049, 0x7FFFFFFF, -0x80000000, 123456789)
_ATOMICS = ("add", "xor", "max_s", "min_u")


@dataclass
class Generator:
    """Writes one kernel; `values` holds the current value of each variable."""

    random: random.Random
    function: Function = field(init=False)
    builder: Builder = field(default_factory=Builder)
    values: list[Value] = field(default_factory=list)
    pointers: list[Value] = field(default_factory=list)

    def kernel(self, statements: int) -> Function:
        """A kernel with about that many statements at its top level."""
        pointer = ptr("global")
        args = [("source", pointer), ("target", pointer), ("sums", pointer)]
        args += [("k", I32), ("m", I32), ("other", pointer)]
        self.function = Function("random", args, [Array("scratch", "shared", 4 * THREADS)])
        build = self.builder.at_end(self.function.add_block("entry"))
        self.thread_in_block = build.sreg("tid.x", "tid")
        blocks = build.emit("mul", build.sreg("ctaid.x"), build.sreg("ntid.x"))
        self.thread = build.emit("add", blocks, self.thread_in_block)
        self.values = [self.thread, *self.function.args[3:5], constant(I32, 7)]
        self.pointers = [self.function.args[0], build.ptradd(self.function.args[0], self.index(8), 4)]
        self.builder.store(self.scratch(), constant(I32, 0))
        for _ in range(statements):
            self.statement(3, top=True)
        for index, value in enumerate(self.values):
            self.store(index, value)
        build.ret()
        return self.function

    # Expressions

    def operand(self) -> Value:
        if self.random.random() < 0.25:
            return constant(I32, self.random.choice(_CONSTANTS))
        return self.random.choice(self.values)

    def variable(self) -> Value:
        return self.random.choice(self.values)

    def expression(self) -> Value:
        build, choice = self.builder, self.random.random()
        if choice < 0.55:
            return build.emit(self.random.choice(_BINARY), self.operand(), self.variable())
        if choice < 0.65:
            return build.emit(self.random.choice(_SHIFTS), self.variable(), self.operand())
        if choice < 0.72:
            return build.select(self.condition(), self.operand(), self.operand())
        if choice < 0.78:
            lut = self.random.randrange(256)
            return build.emit("lop3", *(self.variable() for _ in range(3)), attrs={"lut": lut})
        if choice < 0.83:
            return build.cast(self.random.choice(("zext", "sext")), self.condition(), I32)
        if choice < 0.88:
            return build.emit(self.random.choice(("not", "popc")), self.variable())
        return self.load()

    def condition(self) -> Value:
        build = self.builder
        first = build.icmp(self.random.choice(_PREDICATES), self.variable(), self.operand())
        choice = self.random.random()
        if choice < 0.7:
            return first
        if choice < 0.8:
            return build.emit("not", first)
        second = build.icmp(self.random.choice(_PREDICATES), self.variable(), self.operand())
        return build.emit(self.random.choice(("and", "or", "xor")), first, second)

    # Memory

    def index(self, limit: int) -> Value:
        return self.builder.emit("and", self.variable(), constant(I32, limit - 1))

    def load(self) -> Value:
        build, source = self.builder, self.function.args[0]
        if self.random.random() < 0.3:
            extension = self.random.choice(("zero", "sign"))
            pointer = build.ptradd(source, self.index(32), 1, self.random.randrange(8))
            return build.load(pointer, I8, I32, ext=extension)
        if self.random.random() < 0.3:
            row = build.ptradd(source, self.index(4), 8, 0)
            return build.load(build.ptradd(row, self.index(4), 4, 4), I32)
        choice = self.random.random()
        if choice < 0.2:
            return build.load(self.own(self.random.randrange(4)), I32)
        if choice < 0.3:
            return build.load(self.scratch(), I32)
        if choice < 0.5:
            step = build.ptradd(
                self.random.choice(self.pointers), self.index(2), 4, self.random.choice((0, 4))
            )
            return build.load(step, I32)
        if choice < 0.6:
            extension = self.random.choice(("zero", "sign"))
            return build.load(build.ptradd(source, self.index(16), 2, 0), I16, I32, ext=extension)
        return build.load(build.ptradd(source, self.index(8), 4, 4 * self.random.randrange(4)), I32)

    def own(self, element: int) -> Value:
        """A pointer to one of the thread's own four words."""
        return self.builder.ptradd(self.function.args[1], self.thread, 16, 4 * element)

    def scratch(self) -> Value:
        """A pointer to the thread's own word of shared memory."""
        return self.builder.ptradd(self.builder.addrof("scratch", "shared"), self.thread_in_block, 4)

    def pointer(self) -> Value:
        """A pointer to read through: another one moved on, or one of two."""
        build, choice = self.builder, self.random.random()
        if choice < 0.4:
            index = self.random.choice((constant(I32, 1), constant(I32, 0), self.index(2)))
            return build.ptradd(self.random.choice(self.pointers), index, self.random.choice((4, 4, 8)))
        if choice < 0.6:
            first, second = (self.random.choice(self.pointers) for _ in range(2))
            return build.select(self.condition(), first, second)
        if choice < 0.7:
            return build.ptradd(self.function.args[5], self.index(8), 4)
        return build.ptradd(self.function.args[0], self.index(8), 4, 4 * self.random.randrange(3))

    def store(self, element: int, value: Value) -> None:
        self.builder.store(self.own(element), value)

    def byte_store(self) -> None:
        pointer = self.builder.ptradd(self.function.args[1], self.thread, 16, self.random.randrange(16))
        self.builder.store(pointer, self.variable(), type=I8)

    def narrow_store(self) -> None:
        if self.random.random() < 0.5:
            self.byte_store()
            return
        pointer = self.builder.ptradd(self.function.args[1], self.thread, 16, 2 * self.random.randrange(8))
        self.builder.store(pointer, self.variable(), type=I16)

    def atomic(self) -> None:
        cell = self.random.randrange(len(_ATOMICS))
        pointer = self.builder.ptradd(self.function.args[2], constant(I32, cell), 4)
        self.builder.atomicrmw(_ATOMICS[cell], pointer, self.variable())

    # Statements

    def statement(self, depth: int, top: bool = False) -> None:
        choice = self.random.random()
        if choice < 0.1:
            self.pointers[self.random.randrange(len(self.pointers))] = self.pointer()
        elif choice < 0.15:
            self.builder.store(self.scratch(), self.variable())
        elif choice < 0.5 or not depth:
            self.values[self.random.randrange(len(self.values))] = self.expression()
        elif choice < 0.58:
            self.store(self.random.randrange(4), self.variable())
        elif choice < 0.61:
            self.narrow_store()
        elif choice < 0.65:
            self.atomic()
        elif choice < 0.83:
            self.branch(depth - 1)
        elif choice < 0.96 or not top:
            self.loop(depth - 1)
        elif self.random.random() < 0.5:
            self.builder.barrier()
        else:
            self.early_return()

    def state(self) -> list[Value]:
        """The current values of all variables."""
        return [*self.values, *self.pointers]

    def set_state(self, state: Sequence[Value]) -> None:
        self.values, self.pointers = list(state[: len(self.values)]), list(state[len(self.values) :])

    def block(self, name: str) -> BasicBlock:
        return self.function.add_block(name)

    def statements(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth)

    def branch(self, depth: int) -> None:
        build = self.builder
        then, otherwise, join = self.block("then"), self.block("else"), self.block("join")
        build.condbr(self.condition(), then, otherwise)
        before, ends = self.state(), []
        for side, filled in ((then, True), (otherwise, self.random.random() < 0.5)):
            build.at_end(side)
            self.set_state(before)
            if filled:
                self.statements(depth)
            ends.append((build.block, self.state()))
            build.br(join)
        build.at_end(join)
        states = zip(*(state for _, state in ends), strict=True)
        self.set_state([self.merge(pair, ends) for pair in states])

    def merge(self, pair: tuple[Value, ...], ends: list[tuple[BasicBlock, list[Value]]]) -> Value:
        if pair[0] is pair[1]:
            return pair[0]
        phi = self.builder.phi(pair[0].type)
        for value, (block, _) in zip(pair, ends, strict=True):
            phi.add_incoming(value, block)
        return phi

    def loop(self, depth: int) -> None:
        """A loop of up to three passes with its test at the start or at the end, perhaps with a break."""
        build = self.builder
        count = build.emit("and", self.variable(), constant(I32, 3))
        header, body, done = self.block("header"), self.block("body"), self.block("done")
        source = build.block
        if at_end := self.random.random() < 0.5:
            build.condbr(build.icmp("ne", count, constant(I32, 0)), header, done)
        else:
            build.br(header)
        entered = self.state()
        build.at_end(header)
        phis = [build.phi(value.type) for value in (count, *entered)]
        for phi, value in zip(phis, (count, *entered), strict=True):
            phi.add_incoming(value, source)
        left = phis[0]
        self.set_state(phis[1:])
        exits = [(source, entered)] if at_end else []
        if at_end:
            build.br(body)
        else:
            build.condbr(build.icmp("ne", left, constant(I32, 0)), body, done)
            exits.append((build.block, self.state()))
        build.at_end(body)
        self.statements(depth)
        if self.random.random() < 0.3:
            go_on = self.block("goon")
            build.condbr(self.condition(), done, go_on)
            exits.append((build.block, self.state()))
            build.at_end(go_on)
            self.statements(depth)
        left = build.emit("add", left, constant(I32, -1))
        for phi, value in zip(phis, (left, *self.state()), strict=True):
            phi.add_incoming(value, build.block)
        if at_end:
            exits.append((build.block, self.state()))
            build.condbr(build.icmp("ne", left, constant(I32, 0)), header, done)
        else:
            build.br(header)
        build.at_end(done)
        joined = [build.phi(value.type) for value in self.state()]
        self.set_state(joined)
        for block, values in exits:
            for phi, value in zip(joined, values, strict=True):
                phi.add_incoming(value, block)

    def early_return(self) -> None:
        build = self.builder
        leave, go_on = self.block("leave"), self.block("goon")
        build.condbr(self.condition(), leave, go_on)
        build.at_end(leave)
        self.store(0, self.variable())
        build.ret()
        build.at_end(go_on)


def random_kernel(seed: int, statements: int = 6) -> Function:
    """The kernel of a seed."""
    return Generator(random.Random(seed)).kernel(statements)
