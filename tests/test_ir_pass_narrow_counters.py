"""64-bit counters that are counted in words: every loop ends, writes and faults as it did."""

import itertools

import pytest

from qgpu.ir import I64, Function, parse_function
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.passes import NarrowAddresses, PassManager, Simplify, SplitWide

LATCH = """
kernel @latch(%p: ptr<global>, %n: i64, %x: i32) {{
entry:
  %word = sext %x : i64
  br loop
loop:
  %i = phi [i64 {start}, entry], [%next, loop] : i64
  %next = add %i, i64 {step} : i64
  %q = ptradd %p, {index} {{scale: 4, disp: {disp}, signed: true}} : ptr<global>
  %old = load i32 %q : i32
  %new = add %old, i32 1 : i32
  store i32 %q, %new
  %more = icmp {test} : i1
  condbr %more, {targets}
done:
  %last = trunc %i : i32
  store i32 %p, %last
  ret
}}
"""

HEAD = """
kernel @head(%p: ptr<global>, %n: i64, %x: i32) {{
entry:
  %word = sext %x : i64
  br loop
loop:
  %i = phi [i64 {start}, entry], [%next, body] : i64
  %more = icmp {test} : i1
  condbr %more, {targets}
body:
  %q = ptradd %p, {index} {{scale: 4, disp: {disp}, signed: true}} : ptr<global>
  %old = load i32 %q : i32
  %new = add %old, i32 1 : i32
  store i32 %q, %new
  %next = add %i, i64 {step} : i64
  br loop
done:
  %last = trunc %i : i32
  store i32 %p, %last
  ret
}}
"""

BOUNDS = (0, 5, 8, -1, 1 << 31, (1 << 32) + 5, -(1 << 32), (1 << 63) - 1, -(1 << 63))
STEPS = ((2, 3), (9, -2))


def outcome(function: Function, arguments: list[int]) -> bytes | str:
    data = bytearray(64)
    try:
        interpret(function, [data, *arguments], max_steps=600)
    except Fault as fault:
        return fault.kind
    return bytes(data)


def narrowed(text: str) -> Function:
    function = parse_function(text)
    PassManager([NarrowAddresses()]).run(function)
    return function


def count_wide_phis(function: Function) -> int:
    return sum(i.op == "phi" and i.type is I64 for i in function.instructions)


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
@pytest.mark.parametrize("shape", [LATCH, HEAD], ids=["latch", "head"])
def test_loops_that_access_memory_end_as_they_did(predicate: str, shape: str) -> None:
    for (start, step), value, left in itertools.product(STEPS, ("%i", "%next"), (True, False)):
        if shape is HEAD and value == "%next":
            continue
        test = f"{predicate} {value}, %n" if left else f"{predicate} %n, {value}"
        inside = "body, done" if shape is HEAD else "loop, done"
        text = shape.format(start=start, step=step, index="%i", disp=0, test=test, targets=inside)
        original, after = parse_function(text), narrowed(text)
        assert count_wide_phis(after) == 0
        for bound in BOUNDS:
            assert outcome(after, [bound, 0]) == outcome(original, [bound, 0]), (text, bound)


@pytest.mark.parametrize("start", [4, -1, -(1 << 31), (1 << 31) - 1])
@pytest.mark.parametrize("step", [-1, 3])
@pytest.mark.parametrize("predicate", ["slt", "sge", "ne"])
def test_loops_from_an_unknown_word(start: int, step: int, predicate: str) -> None:
    text = LATCH.replace("[i64 {start}, entry]", "[%word, entry]").format(
        step=step, index="%i", disp=0, test=f"{predicate} %next, %n", targets="loop, done"
    )
    original, after = parse_function(text), narrowed(text)
    assert count_wide_phis(after) == 0
    for bound in (*BOUNDS, (1 << 31) - 1, (1 << 31) - 2):
        assert outcome(after, [bound, start]) == outcome(original, [bound, start])


@pytest.mark.parametrize("offset", [1 << 40, 5, -(1 << 33)])
@pytest.mark.parametrize("step", [1, -2])
def test_loops_from_anywhere_that_test_for_equality(offset: int, step: int) -> None:
    for value in ("%i", "%next"):
        text = LATCH.format(
            start=offset,
            step=step,
            index="%i",
            disp=-4 * offset + 24,
            test=f"ne {value}, %n",
            targets="loop, done",
        )
        original, after = parse_function(text), narrowed(text)
        for bound in (offset, offset + 4, offset - 4, offset + (1 << 32) + 4, offset + 1000):
            assert outcome(after, [bound, 0]) == outcome(original, [bound, 0])


GUARDED = """
kernel @guarded(%p: ptr<global>, %n: i64, %x: i32) {{
entry:
  %word = {extension} %x : i64
  br loop
loop:
  %i = phi [i64 {start}, entry], [%next, loop] : i64
  %s = phi [i64 1, entry], [%t, loop] : i64
  %t = mul %s, i64 3 : i64
  %next = add %i, i64 {step} : i64
  %more = icmp {test}, %word : i1
  condbr %more, loop, done
done:
  store i64 %p, %t
  ret
}}
"""


@pytest.mark.parametrize("test", ["slt %i", "sle %i", "slt %next", "sle %next"])
@pytest.mark.parametrize("bound", [0, 7, -5])
@pytest.mark.parametrize(("start", "step"), [(0, 1), (5, 3), ((1 << 30) - 1, 1 << 19)])
def test_guarded_loops(test: str, bound: int, start: int, step: int) -> None:
    text = GUARDED.format(extension="sext", start=start, step=step, test=test)
    original, after = parse_function(text), narrowed(text)
    assert count_wide_phis(after) == 1
    assert outcome(after, [0, bound]) == outcome(original, [0, bound])


@pytest.mark.parametrize("scale", [1, 12])
@pytest.mark.parametrize("op", ["and", "or", "xor", "smin", "umax", "sdiv", "srem"])
@pytest.mark.parametrize("other", [1, -2, 5, 16])
def test_operations_on_extended_words(op: str, other: int, scale: int) -> None:
    for extension, first in itertools.product(("sext", "zext"), ("%a", "%m")):
        text = f"""
        kernel @k(%p: ptr<global>, %x: i32) {{
        entry:
          %a = {extension} %x : i64
          %m = mul %a, i64 4 : i64
          %r = {op} {first}, i64 {other} : i64
          %z = mul %r, i64 {scale} : i64
          store i64 %p, %z
          ret
        }}"""
        original, after = parse_function(text), narrowed(text)
        PassManager([Simplify(), SplitWide()]).run(after) if op not in ("sdiv", "srem") else None
        for number in (1, 7, -8, -(1 << 31)):
            assert outcome(after, [number]) == outcome(original, [number])
