"""Exchanges and serialised atomics on the machine: what they leave in memory is what the IR means."""

import dataclasses
import random
import struct

import pytest

from qgpu.backends.machine.description import DEFAULT, MachineDescription
from qgpu.backends.machine.host import build_launch
from qgpu.backends.reference.run import run_launch
from qgpu.ir import parse_function, print_function, verify
from qgpu.ir.interpreter import interpret
from qgpu.ir.passes import PassManager, Target, default_pipeline
from qgpu.toolchain.codegen import generate_kernel

WIDE = dataclasses.replace(
    DEFAULT, name="wide", predicates=11, register_words=4096, rom_blocks=1024, uniform_registers=128
)
NARROW = dataclasses.replace(WIDE, name="narrow", lanes=4, warps=4, register_words=1024)

KERNEL = """
kernel @f(%in: ptr<global>, %memory: ptr<global>, %out: ptr<global>, %u: i32) {
entry:
  %t = sreg tid.x : i32
  %lane = sreg laneid : i32
  %at = ptradd %in, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %to = ptradd %out, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %x = load i32 %at : i32
  %odd = trunc %x : i1
  %where = and %x, i32 1 : i32
  %p = ptradd %memory, %where {scale: 8, disp: 0, signed: true} : ptr<global>
  BRANCH
work:
  CODE
  store i32 %to, %r
  br done
done:
  ret
}
"""
BRANCHES = {"all": "br work", "odd": "condbr %odd, work, done"}
EVERY = "i32 -1 : i32"
CODES = {
    "butterfly": f"%k = xor %lane, i32 1 : i32\n%r = shuffle %x, %k, {EVERY}",
    "any lane": f"%k = and %x, i32 31 : i32\n%r = shuffle %x, %k, {EVERY}",
    "broadcast": f"%r = shuffle %x, i32 0, {EVERY}",
    "sum of a warp": "".join(
        f"%k{n} = xor %lane, i32 {n} : i32\n%s{n} = shuffle {sum_}, %k{n}, {EVERY}\n"
        f"%r{n} = add %s{n}, {sum_} : i32\n"
        for n, sum_ in ((1, "%x"), (2, "%r1"), (4, "%r2"))
    )
    + "%r = xor %r4, %x : i32",
    "ballot": f"%c = icmp sgt %x, i32 2 : i1\n%r = ballot %c, {EVERY}",
    "match": f"%k = and %x, i32 3 : i32\n%r = match %k, {EVERY}",
    "redux": f"%r = redux max_s %x, {EVERY}",
    "groups": f"%k = and %x, i32 3 : i32\n%m = match %k, {EVERY}\n%r = redux add %x, %m : i32",
    "compare and swap": "%r = cmpxchg %p, i32 7, %x : i32",
    "maximum": "%r = atomicrmw max_s %p, %x : i32",
    "exchange": "%r = atomicrmw xchg %p, %x : i32",
    "increment": "%r = atomicrmw inc %p, %u : i32",
    "sum of 64 bits": "%w = pack %x, %u : i64\n%o = atomicrmw add %p, %w : i64\n%r = high %o : i32",
    "maximum of 64 bits": "%w = pack %u, %x : i64\n%o = atomicrmw max_u %p, %w : i64\n%r = high %o : i32",
}
ALL_THREADS = {"votes of the block": "%n = barrier_reduce popc %odd : i32\n%r = add %n, %x : i32"}
CASES = [(name, branch) for name in CODES for branch in BRANCHES] + [(name, "all") for name in ALL_THREADS]


@pytest.mark.parametrize(("machine", "threads"), [(WIDE, 37), (NARROW, 11)], ids=["wide", "narrow"])
@pytest.mark.parametrize(("name", "branch"), CASES)
def test_memory_is_what_the_ir_means(
    name: str, branch: str, machine: MachineDescription, threads: int
) -> None:
    text = KERNEL.replace("BRANCH", BRANCHES[branch]).replace("CODE", (CODES | ALL_THREADS)[name])
    function = parse_function(text)
    verify(function)
    chance = random.Random(name)
    numbers = [chance.choice([0, 1, 2, 3, 7, chance.getrandbits(32)]) for _ in range(threads)]
    arguments = [struct.pack(f"<{threads}I", *numbers), struct.pack("<4I", 7, 0, 3, 1), bytes(4 * threads)]
    expected = [bytearray(data) for data in arguments]
    interpret(function, [*expected, 5], (1, 1, 1), (threads, 1, 1), machine.lanes)
    lowered = parse_function(print_function(function))
    PassManager(default_pipeline(Target(machine.lanes, machine.threads, machine.memory_words))).run(lowered)
    kernel = generate_kernel(lowered, machine)
    launch = build_launch(machine, kernel, (1, 1, 1), (threads, 1, 1), [*arguments, 5])
    trace = run_launch(launch, 300_000)
    assert trace.fault is None
    assert [trace.buffer(region) for region in launch.buffers if region] == expected
