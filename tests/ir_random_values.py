"""Random straight-line kernels over all integer types and operations, with constants at the corners.

A kernel `@values(%in, %out, %n)` reads words, half words and bytes of `in`, computes, and stores everything
it computed. Divisions have odd divisors, so that none is by zero. Addresses of stores are sums of extended
indices, kept inside `out` by masks.
"""

from __future__ import annotations

import random

from qgpu.ir import I1, I8, I16, I32, I64, Builder, Constant, Function, IntType, Value, ptr
from qgpu.ir.core.opcodes import ICMP_PREDICATES

TYPES = (I8, I16, I32, I64)
BINARY = [
    "add",
    "sub",
    "mul",
    "and",
    "or",
    "xor",
    "shl",
    "lshr",
    "ashr",
    "smin",
    "smax",
    "umin",
    "umax",
    "mulhi_s",
    "mulhi_u",
    "sdiv",
    "udiv",
    "srem",
    "urem",
]
INPUT_BYTES = 16
OUTPUT_BYTES = 512


class ValueGenerator:
    """Writes one kernel; `types` are the integer types it computes in."""

    def __init__(self, seed: int, length: int, types: tuple[IntType, ...]) -> None:
        self.random = random.Random(seed)
        self.types = types
        self.function = Function("values", [("in", ptr("global")), ("out", ptr("global")), ("n", I32)])
        self.builder = Builder(self.function.add_block("entry"))
        self.pool: dict[IntType, list[Value]] = {type_: [] for type_ in (I1, *TYPES)}
        self.pool[I32].append(self.function.args[2])
        self.length = length
        self.stored = 0

    def generate(self) -> Function:
        for _ in range(3):
            self.load()
        for _ in range(self.length):
            self.step()
        for type_ in self.types:
            for value in self.pool[type_][-6:]:
                self.store(value)
        for value in self.pool[I1][-6:]:
            self.store(self.builder.emit("zext", value, type=I32))
        self.builder.ret()
        return self.function

    def constant(self, type_: IntType) -> Constant:
        corners = [0, 1, 2, 3, type_.width - 1, type_.width, type_.mask, type_.mask // 2, type_.mask // 2 + 1]
        return Constant(type_, self.random.choice([*corners, 4, 16, 255, self.random.getrandbits(8)]))

    def value(self, type_: IntType) -> Value:
        pool = self.pool[type_]
        return self.random.choice(pool[-8:]) if pool and self.random.random() < 0.7 else self.constant(type_)

    def add(self, value: Value) -> None:
        assert isinstance(value.type, IntType)
        self.pool[value.type].append(value)

    def load(self) -> None:
        memory = self.random.choice([type_ for type_ in self.types if type_ is not I64])
        index = Constant(I32, self.random.randrange(INPUT_BYTES // memory.bytes))
        pointer = self.builder.ptradd(self.function.args[0], index, memory.bytes)
        wider = [type_ for type_ in self.types if type_.width >= memory.width]
        ext = self.random.choice(["zero", "sign"])
        self.add(self.builder.load(pointer, memory, self.random.choice(wider), ext))

    def store(self, value: Value) -> None:
        """Stores at an offset that depends on values and constants, in a place of its own."""
        assert isinstance(value.type, IntType)
        builder, out = self.builder, self.function.args[1]
        place = 8 * self.stored
        self.stored += 1
        if place + 8 > OUTPUT_BYTES:
            return
        if I64 not in self.types:
            builder.store(builder.ptradd(out, Constant(I32, place)), value)
            return
        zero = builder.emit("and", self.value(I32), Constant(I32, 0))
        wide = builder.emit(self.random.choice(["sext", "zext"]), zero, type=I64)
        scaled = builder.emit(self.random.choice(["mul", "shl"]), wide, Constant(I64, 2))
        moved = builder.emit("add", scaled, Constant(I64, place))
        builder.store(builder.ptradd(out, moved), value)

    def step(self) -> None:
        self.random.choice([self.binary, self.binary, self.unary, self.compare, self.select, self.cast])()

    def binary(self) -> None:
        op, type_ = self.random.choice(BINARY), self.random.choice(self.types)
        a, b = self.value(type_), self.value(type_)
        if op.endswith(("div", "rem")):
            b = self.builder.emit("or", b, Constant(type_, 1))
        self.add(self.builder.emit(op, a, b))

    def unary(self) -> None:
        choice = self.random.random()
        if choice < 0.3:
            self.add(self.builder.emit("not", self.value(I1)))
        elif choice < 0.6:
            lut = self.random.choice([0x80, 0xFE, 0x96, 0x0F, 0xCC, self.random.getrandbits(8)])
            operands = [self.value(I32) for _ in range(3)]
            self.add(self.builder.emit("lop3", *operands, attrs={"lut": lut}))
        else:
            op = self.random.choice(["not", "popc"])
            self.add(self.builder.emit(op, self.value(self.random.choice(self.types))))

    def compare(self) -> None:
        type_ = self.random.choice([I1, *self.types])
        predicate = self.random.choice(ICMP_PREDICATES)
        self.add(self.builder.icmp(predicate, self.value(type_), self.value(type_)))

    def select(self) -> None:
        type_ = self.random.choice([I1, *self.types])
        self.add(self.builder.select(self.value(I1), self.value(type_), self.value(type_)))

    def cast(self) -> None:
        source, target = self.random.choice([I1, *self.types]), self.random.choice([I1, *self.types])
        if source is target:
            return
        op = self.random.choice(["sext", "zext"]) if source.width < target.width else "trunc"
        self.add(self.builder.emit(op, self.value(source), type=target))


def random_values(seed: int, length: int = 25, types: tuple[IntType, ...] = TYPES) -> Function:
    """The kernel of a seed, with about `length` operations."""
    return ValueGenerator(seed, length, types).generate()
