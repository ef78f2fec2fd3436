"""Values that change places where some threads run: a copy breaks a cycle of moves."""

import random

import numpy as np
import pytest

from qgpu.backends.machine.description import LARGE
from qgpu.backends.machine.host import build_launch
from qgpu.backends.reference.vector import run_blocks
from qgpu.ir import Function
from qgpu.ir.interpreter import interpret
from qgpu.ir.parser import parse_function
from qgpu.ir.passes import default_pipeline
from qgpu.ir.passes.linearize import Linearize
from qgpu.toolchain.codegen import generate_kernel

THREADS = 8
MOST = 7
"""Values of a thread at most; its words in memory are one more, for the condition."""


def moves(count: int, choose: random.Random, permuted: bool) -> list[int]:
    """Which value each of `count` takes: a permutation, or any of them."""
    if permuted:
        return choose.sample(range(count), count)
    return [choose.randrange(count) for _ in range(count)]


def head(words: int, conditions: int, choose: random.Random) -> str:
    """Read a thread's words; some are computed on the way. The last values are conditions."""
    lines = ["  %t = sreg tid.x : i32", f"  %s = mul %t, i32 {MOST + 1} : i32"]
    for i in range(words + conditions + 1):
        lines.append(f"  %p{i} = ptradd %a, %s {{scale: 4, disp: {4 * i}, signed: true}} : ptr<global>")
        lines.append(f"  %l{i} = load i32 %p{i} : i32")
        if i < words:
            lines.append(f"  %x{i} = {choose.choice(('add %l{}, %t', 'or %l{}, i32 0')).format(i)} : i32")
        elif i < words + conditions:
            lines.append(f"  %x{i} = icmp slt %l{i}, i32 {choose.randrange(-40, 40)} : i1")
    last = words + conditions
    return "\n".join([*lines, f"  %n = and %l{last}, i32 3 : i32", "  %c = icmp sgt %n, i32 1 : i1"])


def tail(words: int, conditions: int) -> str:
    """Write the values back; conditions also decide whether that happens."""
    lines = []
    for i in range(words + conditions):
        if i < words:
            lines.append(f"  store i32 %p{i}, %r{i}")
            continue
        lines += [f"  condbr %r{i}, set{i}, unset{i}", f"set{i}:", f"  store i32 %p{i}, i32 1"]
        lines += [f"  br next{i}", f"unset{i}:", f"  store i32 %p{i}, i32 0", f"  br next{i}", f"next{i}:"]
    return "\n".join([*lines, "  ret"])


def phis(names: str, ways: dict[str, list[str]], words: int) -> str:
    """A phi a value, from the values of each way."""
    count = len(next(iter(ways.values())))
    pairs = [", ".join(f"[%{values[i]}, {block}]" for block, values in ways.items()) for i in range(count)]
    return "\n".join(f"  %{names}{i} = phi {pairs[i]} : {'i32' if i < words else 'i1'}" for i in range(count))


def kernel(seed: int, shape: str) -> str:
    """A kernel whose values change places: `once` or as often as the `loop` of a thread goes round.

    Where there are conditions among them, two guard the exchange.
    """
    choose = random.Random(seed)
    conditions = choose.choice((0, 0, 2, 3))
    words = choose.randrange(2, MOST - conditions + 1)
    permuted = seed % 4 > 0
    taken = moves(words, choose, permuted) + [words + i for i in moves(conditions, choose, permuted)]
    count = words + conditions
    old, fixed = "v" if shape == "loop" else "x", [f"x{i}" for i in range(count)]
    kept, moved = [f"{old}{i}" for i in range(count)], [f"{old}{i}" for i in taken]
    outer = f"%{old}{words}" if conditions else "%c"
    inner = f"  condbr %{old}{words + 1}, swap, join" if conditions else "  br swap"
    join = {"swap": moved, "top": kept} | ({"test": kept} if conditions else {})
    exchange = (
        f"  condbr {outer}, test, join\ntest:\n{inner}\nswap:\n  br join\njoin:\n{phis('r', join, words)}"
    )
    if shape == "once":
        body = f"  br top\ntop:\n{exchange}"
    else:
        again = [f"r{i}" for i in range(count)]
        counter = "  %i = phi [i32 0, entry], [%i1, join] : i32"
        leave = "  %i1 = add %i, i32 1 : i32\n  %more = icmp slt %i1, %n : i1\n  condbr %more, top, out\nout:"
        values = phis("v", {"entry": fixed, "join": again}, words)
        body = f"  br top\ntop:\n{counter}\n{values}\n{exchange}\n{leave}"
    text = f"{head(words, conditions, choose)}\n{body}\n{tail(words, conditions)}"
    return f"kernel @permute(%a: ptr<global>) {{\nentry:\n{text}\n}}\n"


def memory(seed: int) -> bytes:
    numbers = np.random.default_rng(seed).integers(-50, 50, THREADS * (MOST + 1))
    return numbers.astype("<i4").tobytes()


def interpreted(function: Function, data: bytes) -> bytes:
    buffer = bytearray(data)
    interpret(function, [buffer], (1, 1, 1), (THREADS, 1, 1))
    return bytes(buffer)


@pytest.mark.parametrize("passes", ["linearised", "all"])
@pytest.mark.parametrize("shape", ["once", "loop"])
@pytest.mark.parametrize("seed", range(16))
def test_values_change_places(seed: int, shape: str, passes: str) -> None:
    text, data = kernel(seed, shape), memory(seed)
    expected = interpreted(parse_function(text), data)
    function = parse_function(text)
    for step in [Linearize()] if passes == "linearised" else default_pipeline():
        step.run(function)
    launch = build_launch(LARGE, generate_kernel(function, LARGE), (1, 1, 1), (THREADS, 1, 1), [data])
    result = run_blocks(launch, 1_000_000)
    assert result.fault is None
    (buffer,) = (region for region in launch.buffers if region)
    assert result.buffer(buffer) == expected
