"""Unrolled kernels compute what they did: random control flow, and loops that end in all sorts of ways."""

import struct

import pytest

from ir_random_kernels import SITES, random_kernel
from qgpu.ir import Function, parse_function, print_function
from qgpu.ir.analysis.loops import LoopInfo
from qgpu.ir.interpreter import interpret
from qgpu.ir.passes import PassManager, PromoteLocal, Simplify, Unroll
from qgpu.ir.passes.unroll import count_rounds


def outcome(function: Function) -> bytes:
    rows = bytearray(3 * SITES * 4)
    interpret(function, [bytearray(struct.pack("<3i", 1, -2, 3)), rows, 2], block=(3, 1, 1))
    return bytes(rows)


@pytest.mark.parametrize("seed", range(30))
def test_random_kernels_keep_their_results(seed: int) -> None:
    function = random_kernel(seed, size=4)
    unrolled = parse_function(print_function(function))
    PassManager([Unroll(plain=600), Simplify()]).run(unrolled)
    assert outcome(unrolled) == outcome(function)


LOOP = """
kernel @k(%p: ptr<global>) {{
entry:
  br loop
loop:
  %i = phi [i32 {start}, entry], [%next, loop] : i32
  %n = phi [i32 0, entry], [%m, loop] : i32
  %next = {step}
  %m = add %n, i32 1 : i32
  %c = icmp {test} : i1
  condbr %c, {targets}
done:
  store i32 %p, %m
  ret
}}
"""
COUNTS = [
    (0, "add %i, i32 1 : i32", "slt %next, i32 10", "loop, done", 10),
    (0, "add %i, i32 3 : i32", "ult %i, i32 10", "loop, done", 5),
    (100, "lshr %i, i32 1 : i32", "eq %next, i32 0", "done, loop", 7),
    (1, "mul %i, i32 3 : i32", "sle %i, i32 100", "loop, done", 6),
    (5, "sub %i, i32 1 : i32", "ne %next, i32 0", "loop, done", 5),
    (7, "xor %i, %n : i32", "ugt %next, i32 3", "loop, done", 5),
    (0, "add %i, i32 1 : i32", "slt %next, i32 0", "loop, done", 1),
]


@pytest.mark.parametrize(("start", "step", "test", "targets", "rounds"), COUNTS)
def test_rounds_are_counted(start: int, step: str, test: str, targets: str, rounds: int) -> None:
    text = LOOP.format(start=start, step=step, test=test, targets=targets)
    function = parse_function(text)
    loops = LoopInfo(function)
    counted = count_rounds(loops, loops.loops[0])
    out = bytearray(4)
    interpret(function, [out])
    assert counted is not None
    assert (counted.back_edges + 1, int.from_bytes(out, "little")) == (rounds, rounds)
    PassManager([Unroll(plain=200), Simplify()]).run(function)
    assert [block.name for block in function.blocks] == ["entry"]
    assert f"store i32 %p, i32 {rounds}" in str(function)


@pytest.mark.parametrize("test", ["ne %next, i32 -5", "slt %next, %next"])
def test_endless_and_unknown_rounds_are_not_counted(test: str) -> None:
    targets = "done, loop" if test.startswith("slt") else "loop, done"
    text = LOOP.format(start=0, step="add %i, i32 2 : i32", test=test, targets=targets)
    loops = LoopInfo(parse_function(text))
    assert count_rounds(loops, loops.loops[0]) is None


NESTED = """
kernel @table(%p: ptr<global>, %n: i32) {
  array @a: local, 48 bytes, align 4
entry:
  %a = addrof @a : ptr<local>
  br outer
outer:
  %i = phi [i32 0, entry], [%i1, after] : i32
  %row = phi [%a, entry], [%row1, after] : ptr<local>
  br inner
inner:
  %j = phi [i32 0, outer], [%j1, inner] : i32
  %x = ptradd %row, %j {scale: 4, disp: 0, signed: true} : ptr<local>
  %v = mul %i, %n : i32
  %w = add %v, %j : i32
  store i32 %x, %w
  %j1 = add %j, i32 1 : i32
  %c = icmp ult %j1, i32 4 : i1
  condbr %c, inner, after
after:
  %row1 = ptradd %row, i32 1 {scale: 16, disp: 0, signed: true} : ptr<local>
  %i1 = add %i, i32 1 : i32
  %d = icmp ult %i1, i32 3 : i1
  condbr %d, outer, done
done:
  %y = ptradd %a, i32 9 {scale: 4, disp: 0, signed: true} : ptr<local>
  %z = load i32 %y : i32
  store i32 %p, %z
  ret
}
"""


def test_nested_loops_over_a_local_array_leave_no_array() -> None:
    function = parse_function(NESTED)
    PassManager([Unroll(), Simplify(), PromoteLocal(), Simplify()]).run(function)
    assert function.shared == [] and len(function.blocks) == 1
    out = bytearray(4)
    interpret(function, [out, 100])
    assert int.from_bytes(out, "little") == 201


def test_an_array_that_is_indexed_otherwise_too_is_left_alone() -> None:
    dynamic = NESTED.replace("ptradd %a, i32 9", "ptradd %a, %n")
    assert not Unroll().run(parse_function(dynamic))
    assert not Unroll(limit=20).run(parse_function(NESTED))
