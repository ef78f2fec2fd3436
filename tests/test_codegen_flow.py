"""Control flow: bounds instead of a bit a thread, blocks that are passed over, blocks that fall through."""

import dataclasses
from itertools import product

import pytest

from codegen_runs import LINEARISED, after, made, ran, words
from qgpu.backends.machine.block import RUN_BLOCKS
from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.machine.host import Dim3, build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.backends.reference.vector import run_blocks

LAST = 2**31 - 1


def guarded(comparison: str, axes: str = "x") -> str:
    """Threads add 1 to out[0], and their index to out[1], where comparisons with %n or %m hold."""
    index = "".join(
        f"  %c{axis} = sreg ctaid.{axis} : i32\n  %b{axis} = sreg ntid.{axis} : i32\n"
        f"  %t{axis} = sreg tid.{axis} : i32\n  %m{axis} = mul %c{axis}, %b{axis} : i32\n"
        f"  %{name} = add %m{axis}, %t{axis} : i32\n"
        for axis, name in zip(axes, "ij", strict=False)
    )
    return f"""kernel @k(%out: ptr<global>, %n: i32, %m: i32) {LINEARISED} {{
entry:
{index}{comparison}
  brany %p, then, done
then [%p]:
  %old = atomicrmw add %out, i32 1 : i32
  %q = ptradd %out, i32 1 {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %old2 = atomicrmw add %q, %i : i32
  br done
done:
  ret
}}
"""


def both(kernel: Kernel, numbers: tuple[int, int], block: Dim3, grid: Dim3) -> list[int]:
    """The two words after a launch, which both interpreters agree on, with the tokens."""
    args = [words(0, 0), *(number & 0xFFFFFFFF for number in numbers)]
    (got,) = after(kernel, args, block, grid, DEFAULT)
    launch = build_launch(DEFAULT, kernel, grid, block, args)
    vector, trace = run_blocks(launch), ran(kernel, args, block, grid, DEFAULT)
    assert list(vector.memory) == list(trace.memory) and vector.tokens == len(trace.generated)
    return got


LIMITS = (-(2**31), -1, 0, 1, 5, 6, 7, 12, 18, LAST)
SHAPES: tuple[tuple[Dim3, Dim3], ...] = (
    ((6, 1, 1), (1, 1, 1)),
    ((6, 1, 1), (3, 1, 1)),
    ((3, 2, 1), (2, 2, 1)),
    ((40, 1, 1), (2, 1, 1)),
)


@pytest.mark.parametrize("relation", ["slt", "sle", "ult", "ule"])
def test_a_bound_is_what_the_comparison_says(relation: str) -> None:
    kernel = made(guarded(f"  %p = icmp {relation} %i, %n : i1"), DEFAULT)
    assert [number for number, _ in kernel.flat] == [0]
    for n, (block, grid) in product(LIMITS, SHAPES):
        limit = (n if relation[0] == "s" else n & 0xFFFFFFFF) + (relation[1:] == "le")
        inside = [i for i in range(block[0] * grid[0]) if i < limit]
        times = block[1] * grid[1]
        assert both(kernel, (n, 0), block, grid) == [times * len(inside), times * sum(inside)]


def test_a_bound_in_a_flat_thread_block_takes_one_token() -> None:
    kernel = made(guarded("  %p = icmp slt %i, %n : i1"), DEFAULT)
    assert len(ran(kernel, [words(0, 0), 20, 0], (30, 1, 1), machine=DEFAULT).generated) == 1 + 2 * 20 + 1


@pytest.mark.parametrize("number", [0, 4, 100])
def test_a_bound_may_be_a_constant(number: int) -> None:
    kernel = made(guarded(f"  %p = icmp slt %i, i32 {number} : i1"), DEFAULT)
    assert kernel.flat
    inside = [i for i in range(10) if i < number]
    assert both(kernel, (0, 0), (5, 1, 1), (2, 1, 1)) == [len(inside), sum(inside)]


def test_two_axes_are_compared_at_once() -> None:
    text = guarded("  %a = icmp slt %i, %n : i1\n  %b = icmp slt %j, %m : i1\n  %p = and %a, %b : i1", "xy")
    kernel = made(text, DEFAULT)
    assert any(preload.name.startswith("outside.") for preload in kernel.preloads)
    for n, m, (block, grid) in product((-1, 0, 3, 6, 7, LAST), (0, 2, 3, 4), SHAPES):
        inside = [i for i in range(block[0] * grid[0]) for j in range(block[1] * grid[1]) if i < n and j < m]
        assert both(kernel, (n, m), block, grid) == [len(inside), sum(inside)]
    whole = ran(kernel, [words(0, 0), 8, 4], (8, 4, 1), machine=DEFAULT)
    assert len(whole.generated) == 1 + 2 * 32 + 1


def test_what_no_lane_takes_part_in_is_passed_over_by_one_token() -> None:
    steps = "".join(f"  %x{k} = add %x{k - 1}, %t : i32\n  store i32 %pa, %x{k}\n" for k in range(1, 6))
    text = f"""kernel @k(%a: ptr<global>, %n: i32) {LINEARISED} {{
entry:
  %t = sreg tid.x : i32
  %pa = ptradd %a, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %x0 = load i32 %pa : i32
  %p = icmp sgt %x0, %n : i1
  br then
then [%p]:
{steps}  br done
done:
  store i32 %pa, %x0
  ret
}}
"""
    kernel = made(text, DEFAULT)
    none = ran(kernel, [words(1, 2, 3), 9], (3, 1, 1), machine=DEFAULT)
    assert len(none.generated) == 3 + 3 + 1 + 3 + 1


def test_the_likely_way_falls_through() -> None:
    kernel = made(guarded("  %p = icmp slt %i, %n : i1"), DEFAULT)
    falling = [number for number, block in enumerate(kernel.blocks) if block.fall]
    assert falling[:3] == [0, 1, 2]
    assert all(kernel.blocks[number].next == number + 1 for number in falling)


def test_no_block_falls_out_of_its_run() -> None:
    body = "\n".join(
        f"  %p{k} = ptradd %a, i32 {k} {{scale: 4, disp: 0, signed: true}} : ptr<global>\n"
        f"  store i32 %p{k}, %t"
        for k in range(2 * RUN_BLOCKS)
    )
    text = f"kernel @k(%a: ptr<global>) {LINEARISED} {{\nentry:\n  %t = sreg tid.x : i32\n{body}\n  ret\n}}\n"
    kernel = made(text)
    assert not kernel.blocks[RUN_BLOCKS - 1].fall and kernel.blocks[RUN_BLOCKS].fall


LEAVING = f"""kernel @k(%a: ptr<global>, %out: ptr<global>) {LINEARISED} {{
entry:
  %stay = slot : slot<i1>
  %n = slot : slot<i32>
  %left = slot : slot<i32>
  %k = slot {{uniform: true}} : slot<i32>
  %t = sreg tid.x : i32
  %pa = ptradd %a, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %po = ptradd %out, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %x = load i32 %pa : i32
  %some = icmp ne %x, i32 0 : i1
  set %stay, %some
  set %n, %x
  set %left, i32 100
  set %k, i32 0
  brany %some, loop, done
loop [%stay]:
  %v = get %n : i32
  %c = get %k : i32
  %less = sub %v, i32 1 : i32
  %count = add %c, i32 3 : i32
  %on = icmp ne %less, i32 0 : i1
  set %n, %less
  set %k, %count
  brany %on, some, last
last [%stay, !%on]:
  SAVE
  br done
some [%stay, !%on]:
  SAVE
  set %stay, false
  br loop
done:
  %r = get RESULT : i32
  store i32 %po, %r
  ret
}}
"""


@pytest.mark.parametrize(("save", "result"), [("set %left, %count", "%left"), ("", "%n")])
def test_lanes_leave_a_loop_one_by_one(save: str, result: str) -> None:
    kernel = made(LEAVING.replace("SAVE", save).replace("RESULT", result), DEFAULT)
    for data in ([3, 1, 2], [0, 0, 0], [1, 1, 1], [0, 5, 1]):
        (_, out) = after(kernel, [words(*data), bytes(12)], (3, 1, 1), machine=DEFAULT)
        assert out == [(3 * x if x else 100) if save else 0 for x in data]


def test_a_loop_without_results_computes_who_stays_in_place() -> None:
    kernel = made(LEAVING.replace("SAVE", "").replace("RESULT", "%n"), DEFAULT)
    (back,) = [block for block in kernel.blocks if block.branch_any and not block.scalar]
    assert back.wr_pred and back.guard_true >> back.dest_pred & 1
    (loop,) = [
        block for block in kernel.blocks[back.taken :] if block.dest == kernel.blocks[back.taken].dest
    ][:1]
    assert loop.guard_true == back.guard_true


def test_a_machine_with_few_uniform_registers_compares_all_lanes() -> None:
    text = guarded("  %a = icmp slt %i, %n : i1\n  %b = icmp slt %j, %m : i1\n  %p = and %a, %b : i1", "xy")
    few = dataclasses.replace(DEFAULT, lanes=4, register_words=512, uniform_registers=16)
    kernel = made(text, few)
    assert kernel.preloads and not any("room" in preload.name for preload in kernel.preloads)
    (got,) = after(kernel, [words(0, 0), 5, 3], (3, 2, 1), (2, 2, 1), few)
    assert got == [15, 3 * sum(range(5))]


def marked(comparisons: str) -> Kernel:
    """Threads store 1 where %p, which the comparisons make of %x and %y (of %a and %b) and %n, holds."""
    text = f"""kernel @k(%a: ptr<global>, %b: ptr<global>, %n: i32) {LINEARISED} {{
entry:
  %t = sreg tid.x : i32
  %pa = ptradd %a, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %pb = ptradd %b, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %x = load i32 %pa : i32
  %y = load i32 %pb : i32
{comparisons}
  store i32 %pb, i32 0
  brany %p, then, done
then [%p]:
  store i32 %pb, i32 1
  br done
done:
  ret
}}
"""
    return made(text, DEFAULT)


VALUES = (-(2**31), -1, 0, 1, 4, 5, LAST)


@pytest.mark.parametrize(("relation", "both"), [("ne", "and"), ("ne", "or"), ("eq", "and"), ("eq", "or")])
def test_two_tests_for_zero_are_one(relation: str, both: str) -> None:
    tests = "".join(f"  %{p} = icmp {relation} %{v}, i32 0 : i1\n" for p, v in ("lx", "ry"))
    kernel = marked(f"{tests}  %p = {both} %l, %r : i1")
    assert sum(block.wr_pred for block in kernel.blocks) == 1
    pairs = list(product(VALUES, VALUES))[:32]
    (_, got) = after(
        kernel, [words(*(x for x, _ in pairs)), words(*(y for _, y in pairs)), 0], (len(pairs), 1, 1)
    )
    join = all if both == "and" else any
    assert got == [int(join((v == 0) is (relation == "eq") for v in pair)) for pair in pairs]


@pytest.mark.parametrize("inside", [True, False])
def test_a_range_is_one_unsigned_comparison(inside: bool) -> None:
    low, high, both = ("sge", "slt", "and") if inside else ("slt", "sge", "or")
    kernel = marked(
        f"  %l = icmp {low} %x, i32 0 : i1\n  %r = icmp {high} %x, %n : i1\n  %p = {both} %l, %r : i1"
    )
    assert sum(block.wr_pred for block in kernel.blocks) == 1
    for n in VALUES:
        args = [words(*VALUES), words(*VALUES), n & 0xFFFFFFFF]
        (_, got) = after(kernel, args, (len(VALUES), 1, 1))
        assert got == [int((0 <= x < n) is inside) for x in VALUES]
