"""Local arrays become values: random accesses of all widths on all ways through a kernel."""

import random
import struct

import pytest

from qgpu.ir import (
    I8,
    I16,
    I32,
    I64,
    Builder,
    Constant,
    Function,
    Instruction,
    IntType,
    Value,
    constant,
    parse_function,
    print_function,
    ptr,
)
from qgpu.ir.core.function import Array
from qgpu.ir.interpreter import interpret
from qgpu.ir.passes import PassManager, PromoteLocal, Simplify

SIZE = 16
TYPES = (I8, I16, I32, I64)


class Kernel:
    """Writes a kernel `@local(%in, %out)` of four blocks in a loop, which access the array at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.function = Function(
            "local", [("in", ptr("global")), ("out", ptr("global"))], [Array("a", "local", SIZE, 8)]
        )
        self.types = self.random.sample(TYPES, self.random.randint(1, 4))
        self.stored = 0

    def generate(self) -> Function:
        function = self.function
        entry, head, left, right, join, done = map(
            function.add_block, ("entry", "head", "left", "right", "join", "done")
        )
        builder = Builder(entry)
        self.array = builder.addrof("a", "local")
        self.values: list[Value] = [builder.load(function.args[0], I32), builder.sreg("tid.x")]
        for offset in range(0, SIZE, 4):
            builder.store(self.pointer(builder, offset), self.random.choice(self.values))
        builder.br(head)
        builder = Builder(head)
        count = builder.phi(I32, "count")
        self.accesses(builder)
        condition = builder.icmp("eq", builder.emit("and", count, constant(I32, 1)), constant(I32, 0))
        builder.condbr(condition, left, right)
        for block in (left, right):
            builder = Builder(block)
            self.accesses(builder)
            builder.br(join)
        builder = Builder(join)
        self.accesses(builder)
        following = builder.emit("add", count, constant(I32, 1))
        builder.condbr(builder.icmp("ult", following, constant(I32, 4)), head, done)
        count.add_incoming(constant(I32, 0), entry)
        count.add_incoming(following, join)
        builder = Builder(done)
        for offset in range(SIZE):
            loaded = builder.load(self.pointer(builder, offset), I8, I32)
            builder.store(builder.ptradd(function.args[1], constant(I32, offset), 4), loaded)
        builder.ret()
        return function

    def pointer(self, builder: Builder, offset: int) -> Instruction:
        return builder.ptradd(self.array, constant(I32, 0), 1, offset)

    def accesses(self, builder: Builder) -> None:
        """Loads, whose sums are stored again."""
        value: Value = self.random.choice(self.values)
        for _ in range(self.random.randint(0, 4)):
            memory = self.random.choice(self.types)
            place = self.pointer(builder, self.random.randrange(0, SIZE, memory.bytes))
            if self.random.random() < 0.5:
                value = builder.emit("add", value, self.loaded(builder, place, memory))
            else:
                wide = builder.cast("sext", value, I64) if memory is I64 else value
                builder.store(place, wide, memory)

    def loaded(self, builder: Builder, place: Value, memory: IntType) -> Value:
        if memory is I64:
            return builder.cast("trunc", builder.load(place, I64), I32)
        return builder.load(place, memory, I32, self.random.choice(["zero", "sign"]))


def outcome(function: Function) -> bytes:
    out = bytearray(4 * SIZE)
    interpret(function, [bytearray(struct.pack("<i", -123456789)), out])
    return bytes(out)


@pytest.mark.parametrize("seed", range(40))
def test_accesses_of_all_widths_keep_their_results(seed: int) -> None:
    function = Kernel(seed).generate()
    promoted = parse_function(print_function(function))
    PassManager([Simplify(), PromoteLocal()]).run(promoted)
    assert promoted.shared == []
    assert outcome(promoted) == outcome(function)


def test_what_was_never_written_is_undefined() -> None:
    function = parse_function("""
    kernel @k(%p: ptr<global>) {
      array @a: local, 4 bytes, align 4
    entry:
      %a = addrof @a : ptr<local>
      %v = load i32 %a : i32
      store i32 %p, %v
      ret
    }""")
    PassManager([PromoteLocal()]).run(function)
    store = next(i for i in function.instructions if i.op == "store")
    value = store.operands[1]
    assert isinstance(value, Instruction) and value.op == "undef"


def test_pointers_under_integers_stay_in_memory() -> None:
    function = parse_function("""
    kernel @k(%p: ptr<global>) {
      array @a: local, 8 bytes, align 8
    entry:
      %a = addrof @a : ptr<local>
      store ptr<global> %a, %p
      %b = ptradd %a, i32 0 {scale: 1, disp: 4, signed: true} : ptr<local>
      store i32 %b, i32 1
      ret
    }""")
    assert not PromoteLocal().run(function)
    assert Constant(I32, 1) in [x for i in function.instructions for x in i.operands]
