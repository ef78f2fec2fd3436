"""64-bit integers by words: every operation equals the opcode table, and nothing wide is left."""

import random
import struct
from collections.abc import Sequence
from typing import Any

import pytest

from ir_random_values import random_values
from operations import check, corners, pairs
from qgpu.ir import (
    I1,
    I8,
    I16,
    I32,
    I64,
    Function,
    Instruction,
    IntType,
    parse_function,
    print_function,
    verify,
)
from qgpu.ir.core.opcodes import ICMP_PREDICATES
from qgpu.ir.core.values import Argument
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.passes import (
    ExpandOperations,
    NarrowAddresses,
    Pass,
    PassManager,
    PromoteNarrow,
    Simplify,
    SplitWide,
)

WORDS = [ExpandOperations(), SplitWide(), ExpandOperations()]
BINARY = ("add", "sub", "mul", "and", "or", "xor", "smin", "smax", "umin", "umax")
DIVISIONS = ("udiv", "urem", "sdiv", "srem", "mulhi_u", "mulhi_s")
FEW = [column[::3] for column in pairs(64)]
NUMBERS = corners(64)
CONSTANTS = (
    0,
    1,
    3,
    10,
    1 << 31,
    1 << 32,
    5 << 32,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
    (1 << 64) - 9,
    1 << 40,
)


def left_wide(function: Function) -> list[Instruction]:
    """The instructions on i64 that should not be there."""
    wide = [i for i in function.instructions if I64 in (i.type, *(x.type for x in i.operands))]
    sources = ("ptrdiff", "ptrtoint", "atomicrmw", "cmpxchg", "printf", "pack")
    return [
        i
        for i in wide
        if i.op not in sources
        and not (
            i.op in ("trunc", "high")
            and isinstance(i.operands[0], Argument | Instruction)
            and (isinstance(i.operands[0], Argument) or i.operands[0].op in sources[:4])
        )
    ]


def checked(
    op: str,
    types: Sequence[IntType],
    result: IntType,
    columns: list[list[int]],
    constants: dict[int, int] | None = None,
    **attrs: Any,
) -> None:
    function = check(WORDS, op, types, result, columns, constants, **attrs)
    assert left_wide(function) == []


@pytest.mark.parametrize("op", BINARY)
def test_arithmetic(op: str) -> None:
    checked(op, [I64, I64], I64, FEW)
    for number in CONSTANTS:
        checked(op, [I64, I64], I64, [NUMBERS[::2]], {1: number})
    checked(op, [I64, I64], I64, [NUMBERS[::2]], {0: CONSTANTS[4]})


@pytest.mark.parametrize("op", DIVISIONS)
def test_division_and_high_products(op: str) -> None:
    chance = random.Random(op)
    checked(op, [I64, I64], I64, [chance.choices(NUMBERS, k=400) for _ in range(2)])
    checked(op, [I64, I64], I64, [NUMBERS], {1: 1000003})


@pytest.mark.parametrize("predicate", ICMP_PREDICATES)
def test_comparisons(predicate: str) -> None:
    checked("icmp", [I64, I64], I1, FEW, pred=predicate)
    for number in CONSTANTS:
        checked("icmp", [I64, I64], I1, [NUMBERS], {1: number}, pred=predicate)


AMOUNTS = [
    0,
    1,
    2,
    31,
    32,
    33,
    62,
    63,
    64,
    65,
    100,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    (1 << 32) + 1,
    1 << 63,
    (1 << 64) - 1,
]


@pytest.mark.parametrize("op", ["shl", "lshr", "ashr"])
def test_shifts(op: str) -> None:
    columns = [[x for x in NUMBERS for _ in AMOUNTS], AMOUNTS * len(NUMBERS)]
    checked(op, [I64, I64], I64, columns)
    for amount in AMOUNTS:
        checked(op, [I64, I64], I64, [NUMBERS], {1: amount})


@pytest.mark.parametrize("op", ["not", "popc", "clz", "brev"])
def test_operations_on_one_number(op: str) -> None:
    checked(op, [I64], I64, [NUMBERS])


def test_fields() -> None:
    chance = random.Random(3)
    rows = [
        (
            chance.choice(NUMBERS),
            chance.choice(NUMBERS),
            *chance.choices([0, 1, 7, 31, 32, 33, 63, 64, 255], k=2),
        )
        for _ in range(600)
    ]
    a, b, position, length = (list(column) for column in zip(*rows, strict=True))
    for op in ("bfe_u", "bfe_s"):
        checked(op, [I64, I32, I32], I64, [a, position, length])
    checked("bfi", [I64, I64, I32, I32], I64, [a, b, position, length])


@pytest.mark.parametrize("type_", [I8, I16, I32], ids=str)
def test_casts(type_: IntType) -> None:
    steps = [PromoteNarrow(), *WORDS]
    for op in ("zext", "sext"):
        assert left_wide(check(steps, op, [type_], I64, [corners(type_.width)])) == []
    assert left_wide(check(steps, "trunc", [I64], type_, [NUMBERS])) == []


@pytest.mark.parametrize("extension", ["zext", "sext"])
@pytest.mark.parametrize("op", ["mul", "add", "sub", "icmp"])
def test_extended_words_take_little(op: str, extension: str) -> None:
    """A product of extended words is a high product of the words; a comparison is one of words."""
    attrs = "ult " if op == "icmp" else ""
    function = parse_function(f"""
    kernel @k(%p: ptr<global>, %x: i32, %y: i32) {{
    entry:
      %a = {extension} %x : i64
      %b = {extension} %y : i64
      %c = {op} {attrs}%a, %b : {"i1" if op == "icmp" else "i64"}
      {"%d = zext %c : i64" if op == "icmp" else "%d = or %c, i64 0 : i64"}
      store i64 %p, %d
      ret
    }}""")
    PassManager([SplitWide(), Simplify()]).run(function)
    count = sum(i.op not in ("store", "ptradd", "ret") for i in function.instructions)
    assert count <= {"mul": 2, "icmp": 2, "add": 7, "sub": 7}[op]


@pytest.mark.parametrize("seed", range(25))
def test_random_kernels_keep_their_results(seed: int) -> None:
    function = random_values(seed, 40, (I32, I64) if seed % 2 else (I8, I16, I32, I64))
    outcomes = []
    for steps in ([], [NarrowAddresses(), PromoteNarrow(), *WORDS, Simplify()]):
        copy = parse_function(print_function(function))
        PassManager(steps).run(copy)
        if steps:
            assert left_wide(copy) == []
        out = bytearray(512)
        interpret(copy, [bytearray(random.Random(seed).randbytes(16)), out, 0x80000001])
        outcomes.append(bytes(out))
    assert outcomes[0] == outcomes[1]


def run(
    text: str,
    arguments: Sequence[int | bytes],
    steps: Sequence[Pass],
    block: tuple[int, int, int] = (1, 1, 1),
) -> list[bytes]:
    function = parse_function(text)
    PassManager(steps).run(function)
    buffers = [bytearray(x) if isinstance(x, bytes) else x for x in arguments]
    interpret(function, buffers, block=block)
    return [bytes(x) for x in buffers if isinstance(x, bytearray)]


LOOP = """
kernel @sum(%p: ptr<global>, %n: i64) {
entry:
  %some = icmp sgt %n, i64 0 : i1
  condbr %some, loop, done
loop:
  %i = phi [i64 0, entry], [%next, loop] : i64
  %s = phi [i64 4294967290, entry], [%t, loop] : i64
  %sq = mul %i, %s : i64
  %t = add %sq, %s : i64
  %next = add %i, i64 1 : i64
  %more = icmp slt %next, %n : i1
  condbr %more, loop, done
done:
  %r = phi [i64 -1, entry], [%t, loop] : i64
  store i64 %p, %r
  ret
}
"""


@pytest.mark.parametrize("n", [0, 1, 5, 33, -3])
def test_loops(n: int) -> None:
    outcomes = [run(LOOP, [bytes(8), n], steps) for steps in ([], WORDS)]
    assert outcomes[0] == outcomes[1]


ACCESS = """
kernel @access(%p: ptr<global>, %q: ptr<global>, %i: i32) {
entry:
  %a = ptradd %p, %i {scale: 1, disp: 0, signed: true} : ptr<global>
  %v = load i64 %a : i64
  %w = add %v, i64 4294967297 : i64
  %b = ptradd %q, %i {scale: 1, disp: 0, signed: true} : ptr<global>
  store i64 %b, %w
  ret
}
"""


@pytest.mark.parametrize("offset", [*range(-9, 9), 15, 16, 17, 20, 24, 28])
@pytest.mark.parametrize("size", [24, 28])
def test_accesses_fault_where_they_did(offset: int, size: int) -> None:
    data = bytes(range(1, size + 1))
    outcomes = []
    for steps in ([], WORDS):
        try:
            outcomes.append(run(ACCESS, [data, bytes(size), offset], steps))
        except Fault as fault:
            assert fault.kind in ("address", "alignment")
            outcomes.append([b"fault"])
    assert outcomes[0] == outcomes[1]


def test_accesses_that_are_aligned_by_their_index_are_not_checked() -> None:
    function = parse_function(ACCESS.replace("scale: 1", "scale: 8"))
    SplitWide().run(function)
    verify(function)
    assert not [i for i in function.instructions if i.op == "ptrtoint"]


FAR = """
kernel @far(%p: ptr<global>, %i: i64) {{
entry:
  %a = ptradd %p, %i {{scale: {scale}, disp: {disp}, signed: true}} : ptr<global>
  store i32 %a, i32 7
  ret
}}
"""


@pytest.mark.parametrize("scale", [1, 4, 8, 12])
@pytest.mark.parametrize("disp", [0, -16, 8])
@pytest.mark.parametrize(
    "index",
    [
        0,
        1,
        2,
        4,
        -1,
        1 << 31,
        1 << 32,
        (1 << 32) + 1,
        -(1 << 31),
        -(1 << 32),
        1 << 61,
        1 << 62,
        (3 << 61) + 2,
    ],
)
def test_indices_of_64_bits(scale: int, disp: int, index: int) -> None:
    text = FAR.format(scale=scale, disp=disp)
    outcomes = []
    for steps in ([], [SplitWide()]):
        try:
            outcomes.append(run(text, [bytes(40), index], steps))
        except Fault as fault:
            outcomes.append([fault.kind.encode()])
    assert outcomes[0] == outcomes[1]


ATOMICS = """
kernel @atomics(%p: ptr<global>, %out: ptr<global>, %n: i64) {
entry:
  %t = sreg tid.x : i32
  %w = zext %t : i64
  %m = add %w, %n : i64
  %a = atomicrmw add %p, %m : i64
  %b = cmpxchg %p, %a, i64 5 : i64
  %c = xor %a, %b : i64
  %d = ptradd %out, %t {scale: 8, disp: 0, signed: true} : ptr<global>
  store i64 %d, %c
  ret
}
"""


def test_atomics_stay_between_packs_and_words() -> None:
    function = parse_function(ATOMICS)
    SplitWide().run(function)
    verify(function)
    for atomic in [i for i in function.instructions if i.op in ("atomicrmw", "cmpxchg")]:
        instructions = atomic.block.instructions
        place = instructions.index(atomic)
        packs = [x for x in atomic.operands[1:] if isinstance(x, Instruction)]
        assert instructions[place - len(packs) : place] == packs
        assert all(pack.op == "pack" and len(pack.uses) == 1 for pack in packs)
        assert {user.op for user in atomic.users if isinstance(user, Instruction)} <= {"trunc", "high"}
    arguments = [struct.pack("<q", 1 << 40), bytes(64), -(1 << 35)]
    assert run(ATOMICS, arguments, [], block=(8, 1, 1)) == run(
        ATOMICS, arguments, [SplitWide()], block=(8, 1, 1)
    )


EXCHANGE = """
kernel @exchange(%p: ptr<global>) {
entry:
  %t = sreg laneid : i32
  %at = ptradd %p, %t {scale: 8, disp: 0, signed: true} : ptr<global>
  %v = load i64 %at : i64
  %o = xor %t, i32 1 : i32
  %s = shuffle %v, %o, i32 -1 : i64
  %m = match %s, i32 -1 : i32
  %w = zext %m : i64
  %x = shl %w, i64 32 : i64
  %y = add %x, %s : i64
  store i64 %at, %y
  ret
}
"""


def test_exchanges() -> None:
    data = struct.pack("<8Q", 1, 1 << 32, 1, (1 << 32) + 1, 1, 1 << 32, 9, 0)
    before, after = (run(EXCHANGE, [data], steps, block=(8, 1, 1)) for steps in ([], WORDS))
    assert before == after and before != [data]


@pytest.mark.parametrize("seed", range(5))
def test_a_second_run_changes_nothing(seed: int) -> None:
    function = random_values(seed, 40, (I32, I64))
    PassManager([NarrowAddresses(), *WORDS]).run(function)
    assert not SplitWide().run(function)


def test_atomics_a_second_time() -> None:
    function = parse_function(ATOMICS)
    SplitWide().run(function)
    text = print_function(function)
    SplitWide().run(function)
    assert print_function(parse_function(print_function(function))) == print_function(parse_function(text))
