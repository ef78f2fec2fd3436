"""Random kernels with any control flow: forward jumps, nested loops, breaks, continues, returns, gotos.

A kernel has a few variables; every block assigns some of them, stores one, and branches on a comparison of
two. Conditions are uniform or divergent as the variables are. Loops end: each counts its rounds against a
bound of at most 3, which may be different for each thread.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from qgpu.ir import I32, BasicBlock, Builder, Function, Instruction, Value, constant, ptr

SITES = 64
VARIABLES = 5
UNIFORM = (0, 1)
LANE_VARIABLES = (2, 3)


@dataclass
class Region:
    """A loop being generated: where `break` and `continue` go."""

    exit: BasicBlock
    latch: BasicBlock


@dataclass
class Generator:
    """Writes one kernel `@random(%in, %out, %n)`: `in` has one word for each thread, `out` SITES words."""

    seed: int
    size: int = 8
    barriers: bool = False
    rounds: int = 1
    extras: tuple[str, ...] = ()
    regions: list[Region] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.function = Function("random", [("in", ptr("global")), ("out", ptr("global")), ("n", I32)])
        self.values: dict[BasicBlock, list[Value]] = {}
        self.phis: dict[BasicBlock, list[Instruction]] = {}
        self.sites = 0
        self.budget = self.size

    def generate(self) -> Function:
        entry = self.function.add_block("entry")
        builder = Builder(entry)
        self.tid = builder.sreg("tid.x", "tid")
        pointer = builder.ptradd(self.function.args[0], self.tid, 4)
        data = builder.load(pointer, I32)
        row = builder.emit("mul", self.tid, constant(I32, SITES))
        self.row = builder.ptradd(self.function.args[1], row, 4, name="row")
        n = self.function.args[2]
        self.values[entry] = [n, constant(I32, 3), data, self.tid, constant(I32, self.rounds)]
        self.exit = self.new_block("done")
        first = self.new_block("b")
        builder.at_end(entry).br(first)
        self.sequence(first, self.exit)
        Builder(self.exit).ret()
        self.store_all(self.exit)
        self.connect()
        remove_trivial_phis(self.function)
        return self.function

    def new_block(self, name: str) -> BasicBlock:
        """A block that starts with a phi for each variable."""
        block = self.function.add_block(name)
        builder = Builder(block)
        self.phis[block] = [builder.phi(I32, f"v{i}.{block.name}") for i in range(VARIABLES)]
        self.values[block] = list(self.phis[block])
        return block

    def connect(self) -> None:
        """Gives all phis their incoming values, and puts the exit last."""
        self.function.blocks.remove(self.exit)
        self.function.blocks.append(self.exit)
        predecessors = self.function.predecessors()
        reached = {self.function.entry}
        work = [self.function.entry]
        while work:
            for successor in work.pop().successors:
                if successor not in reached:
                    reached.add(successor)
                    work.append(successor)
        for block in [block for block in self.function.blocks if block not in reached]:
            self.phis.pop(block)
            self.function.erase_block(block)
        for block, phis in self.phis.items():
            for source in predecessors[block]:
                if source in reached:
                    for phi, value in zip(phis, self.values[source], strict=True):
                        phi.add_incoming(value, source)

    def sequence(self, first: BasicBlock, end: BasicBlock) -> None:
        """Fills a chain of blocks and loops from `first` on; each goes to later ones, or out."""
        count = self.random.randint(1, 4)
        chain = [first, *(self.new_block("b") for _ in range(count))]
        for position, block in enumerate(chain):
            self.fill(block)
            later = [*chain[position + 1 :], end]
            if self.budget > 0 and self.random.random() < 0.35:
                self.budget -= 1
                self.loop(block, later)
            else:
                self.branch(block, later)

    def fill(self, block: BasicBlock) -> None:
        """A few assignments, perhaps a store, an atomic, a barrier."""
        builder, values = Builder(block), self.values[block]
        for _ in range(self.random.randint(0, 3)):
            target = self.random.randrange(VARIABLES)
            pool = UNIFORM if target in UNIFORM else range(VARIABLES)
            a, b = (values[self.random.choice(pool)] for _ in range(2))
            values[target] = builder.emit(self.random.choice(["add", "sub", "xor", "mul"]), a, b)
        if self.random.random() < 0.5:
            self.store(builder, values[self.random.randrange(VARIABLES)])
        if self.barriers and self.random.random() < 0.25:
            builder.barrier()
        for extra in self.extras:
            if self.random.random() < 0.3:
                values[self.random.choice(LANE_VARIABLES)] = getattr(self, extra)(builder, values)

    def exchange(self, builder: Builder, values: list[Value]) -> Value:
        """A value of other lanes, by a shuffle of one of several forms or what all lanes have in common."""
        value, other = (values[self.random.choice(LANE_VARIABLES)] for _ in range(2))
        everyone = constant(I32, -1)
        kind = self.random.choice(["xor", "add", "idx", "pick", "ballot", "match", "redux"])
        lane = builder.sreg("laneid")
        if kind in ("xor", "add"):
            source = builder.emit(kind, lane, constant(I32, self.random.choice([1, 2])))
            return builder.emit("shuffle", value, source, everyone)
        if kind in ("idx", "pick"):
            mask = everyone if kind == "idx" else builder.emit("or", other, constant(I32, 5))
            return builder.emit("shuffle", value, builder.emit("and", other, constant(I32, 3)), mask)
        if kind == "ballot":
            return builder.emit("ballot", builder.icmp("slt", value, other), everyone)
        if kind == "match":
            return builder.emit("match", builder.emit("and", value, constant(I32, 1)), everyone)
        reduction = self.random.choice(["add", "min_s", "max_u", "or", "xor"])
        return builder.emit("redux", value, everyone, attrs={"kind": reduction})

    def atomic(self, builder: Builder, values: list[Value]) -> Value:
        """An operation on one of the first words of `out`, which all threads share."""
        value, other = (values[self.random.choice(LANE_VARIABLES)] for _ in range(2))
        index = builder.emit("and", other, constant(I32, 1))
        pointer = builder.ptradd(self.function.args[1], index, 4)
        kind = self.random.choice(["add", "max_s", "and", "xchg", "inc", "dec", "cmpxchg"])
        if kind == "cmpxchg":
            return builder.emit("cmpxchg", pointer, other, value)
        return builder.atomicrmw(kind, pointer, value)

    def store(self, builder: Builder, value: Value) -> None:
        """Adds to a word of the thread's own row, so that the number of times counts too."""
        if self.sites == SITES:
            return
        pointer = builder.ptradd(self.row, constant(I32, self.sites), 4)
        self.sites += 1
        old = builder.load(pointer, I32)
        mixed = builder.emit("add", builder.emit("mul", old, constant(I32, 31)), value)
        builder.store(pointer, mixed)

    def store_all(self, block: BasicBlock) -> None:
        builder = Builder().before(block.terminator)
        for value in self.values[block]:
            self.store(builder, value)

    def condition(self, builder: Builder, values: list[Value]) -> Value:
        pool = UNIFORM if self.random.random() < 0.35 else range(VARIABLES)
        a, b = (values[self.random.choice(pool)] for _ in range(2))
        bit = builder.emit("and", a, constant(I32, self.random.choice([1, 2, 3])))
        other = constant(I32, self.random.randrange(3)) if a is b or self.random.random() < 0.5 else b
        return builder.icmp(self.random.choice(["eq", "ne", "slt", "ule"]), bit, other)

    def target(self, later: list[BasicBlock]) -> BasicBlock:
        """A later block, or a way out of the loops around."""
        choice = self.random.random()
        if self.regions and choice < 0.12:
            return self.random.choice(self.regions).exit
        if self.regions and choice < 0.2:
            return self.regions[-1].latch
        if choice < 0.26:
            return self.exit
        return later[0] if choice < 0.6 else self.random.choice(later[:3])

    def branch(self, block: BasicBlock, later: list[BasicBlock]) -> None:
        builder = Builder(block)
        if self.random.random() < 0.2:
            builder.br(self.target(later))
            return
        condition = self.condition(builder, self.values[block])
        builder.condbr(condition, self.target(later), self.target(later))

    def loop(self, block: BasicBlock, later: list[BasicBlock]) -> None:
        """A loop after `block`; it leaves at its header or its latch to the first of the later blocks."""
        header, latch = self.new_block("header"), self.new_block("latch")
        builder = Builder(block)
        divergent = self.random.random() < 0.6
        start = (
            builder.emit("and", self.values[block][2], constant(I32, 3)) if divergent else constant(I32, 1)
        )
        enters = self.condition(builder, self.values[block]) if self.random.random() < 0.4 else None
        exit_block = self.target(later[:1])
        if enters is None:
            builder.br(header)
        else:
            builder.condbr(enters, header, self.target(later))
        counter = Builder().at_start(header).phi(I32, "round")
        header.instructions.insert(0, header.instructions.pop(header.instructions.index(counter)))
        builder = Builder(header)
        following = builder.emit("add", counter, constant(I32, 1))
        counter.add_incoming(start, block)
        counter.add_incoming(following, latch)
        more = builder.icmp("slt", following, constant(I32, 4))
        self.regions.append(Region(later[0], latch))
        self.fill(header)
        body = self.new_block("b")
        at_header = self.random.random() < 0.5
        if at_header:
            builder.condbr(more, body, exit_block)
        else:
            builder.br(body)
        self.sequence(body, latch)
        self.fill(latch)
        builder.at_end(latch)
        if at_header:
            builder.br(header)
        else:
            builder.condbr(more, header, exit_block)
        self.regions.pop()


class GraphGenerator(Generator):
    """Writes a kernel whose blocks go to any others: cycles have several entries, and overlap.

    An edge to an earlier block is taken while variable 4, which each block counts down, is positive.
    """

    def sequence(self, first: BasicBlock, end: BasicBlock) -> None:
        chain = [first, *(self.new_block("b") for _ in range(self.size))]
        for position, block in enumerate(chain):
            self.fill(block)
            builder, values = Builder(block), self.values[block]
            values[4] = builder.emit("sub", self.phis[block][4], constant(I32, 1))
            ahead = [*chain[position + 1 : position + 4], end]
            target = self.random.choice(ahead[:-1] or ahead)
            other = self.random.choice([*chain, *ahead])
            if self.random.random() < 0.1:
                builder.br(target)
                continue
            condition = self.condition(builder, values)
            if other in chain[: position + 1]:
                left = builder.icmp("sgt", values[4], constant(I32, 0))
                condition = builder.emit("and", condition, left)
            builder.condbr(condition, other, target)


def remove_trivial_phis(function: Function) -> None:
    """Replaces phis that only ever take one value, as front ends do."""
    changed = True
    while changed:
        changed = False
        for phi in [i for i in function.instructions if i.op == "phi"]:
            others = {value for value in phi.operands if value is not phi}
            if len(others) == 1:
                phi.replace_all_uses_with(others.pop())
                phi.erase()
                changed = True


def random_kernel(seed: int, size: int = 8, barriers: bool = False, extras: tuple[str, ...] = ()) -> Function:
    """The kernel of a seed; `size` bounds the number of loops, `extras` are `exchange` and `atomic`."""
    return Generator(seed, size, barriers, extras=extras).generate()


def random_graph(seed: int, size: int = 12, barriers: bool = False) -> Function:
    """The kernel of a seed with about `size` blocks that go anywhere."""
    return GraphGenerator(seed, size, barriers, rounds=size).generate()
