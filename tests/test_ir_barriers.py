"""Barriers of a part of the thread block, in lockstep: what has an order, and what is refused."""

import struct

import pytest

from qgpu.ir import Function, parse_function, verify
from qgpu.ir.interpreter import interpret
from qgpu.ir.passes import Linearize, LowerBarriers, PassError

KERNEL = """
kernel @f(%p: ptr<global>) {
entry:
  %t = sreg tid.x : i32
  %q = ptradd %p, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %c = icmp ult %t, i32 4 : i1
  condbr %c, one, two
one:
  FIRST
  br done
two:
  SECOND
  br done
done:
  AFTER
  ret
}
"""
WAIT, ARRIVE = "barrier {id: 2, count: 8}", "arrive {id: 2, count: 8}"
PRODUCE = "store i32 %q, %t"
CONSUME = """
  %a = ptradd %q, i32 0 {scale: 4, disp: -16, signed: true} : ptr<global>
  %x = load i32 %a : i32
  %y = add %x, i32 10 : i32
  store i32 %q, %y
"""


def lowered(first: str, second: str, after: str = "") -> Function:
    text = KERNEL.replace("FIRST", first).replace("SECOND", second).replace("AFTER", after)
    function = parse_function(text)
    verify(function)
    Linearize().run(function)
    verify(function)
    LowerBarriers().run(function)
    verify(function)
    return function


def test_what_others_wrote_before_they_arrived_is_there() -> None:
    function = lowered(f"{PRODUCE}\n{ARRIVE}", f"{WAIT}\n{CONSUME}")
    assert not [i for i in function.instructions if i.op in ("arrive", "barrier")]
    data = bytearray(32)
    interpret(function, [data], block=(8, 1, 1))
    assert struct.unpack("<8i", data) == (0, 1, 2, 3, 10, 11, 12, 13)


def test_the_side_that_arrives_comes_first() -> None:
    consume = CONSUME.replace("-16", "16")
    function = lowered(f"{WAIT}\n{consume}", f"{PRODUCE}\n{ARRIVE}")
    data = bytearray(32)
    interpret(function, [data], block=(8, 1, 1))
    assert struct.unpack("<8i", data) == (14, 15, 16, 17, 4, 5, 6, 7)


def test_one_place_may_be_passed_again_and_again() -> None:
    part = "barrier {id: 1, count: 4}"
    assert lowered(f"{part}\n{part}", PRODUCE)
    assert lowered(f"{part}", "barrier {id: 3, count: 4}")
    assert lowered(part, PRODUCE, "barrier {id: 1, count: 8}")


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (WAIT, WAIT, "wait at barrier 2 at two places"),
        (f"{WAIT}\n{ARRIVE}", f"{ARRIVE}\n{WAIT}", "arrive only at a later place|at two places"),
    ],
)
def test_threads_that_wait_for_each_other_at_two_places_are_refused(
    first: str, second: str, message: str
) -> None:
    with pytest.raises(PassError, match=message):
        lowered(first, second)


def test_a_barrier_of_the_whole_block_is_left() -> None:
    function = lowered(PRODUCE, PRODUCE, "barrier")
    assert [i.op for i in function.instructions if i.op == "barrier"] == ["barrier"]
