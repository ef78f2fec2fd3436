"""Locks in lockstep: lanes that wait for one that another lane holds get it in the end."""

import struct

import pytest

from qgpu.ir import Function, parse_function, print_function, verify
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.passes import EncloseCriticalSections, Linearize, MakeReducible, PassManager, SerialiseAtomics

SECTION = """
  %s = load i32 %sum {volatile: true} : i32
  %s1 = add %s, %t : i32
  store i32 %sum, %s1 {volatile: true}
"""
SPIN = f"""
kernel @spin(%lock: ptr<global>, %sum: ptr<global>, %out: ptr<global>) {{
entry:
  %t = sreg tid.x : i32
  %q = ptradd %out, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  br try
try:
  %n = phi [i32 0, entry], [%n1, try] : i32
  %n1 = add %n, i32 1 : i32
  %old = cmpxchg %lock, i32 0, i32 1 : i32
  %taken = icmp ne %old, i32 0 : i1
  condbr %taken, try, section
section:
  {SECTION}
  %freed = atomicrmw xchg %lock, i32 0 : i32
  store i32 %q, %s1
  %more = icmp eq %n, i32 0 : i1
  condbr %more, first, done
first:
  store i32 %q, i32 -1
  br done
done:
  ret
}}
"""
FIRST_TRY = f"""
kernel @spin(%lock: ptr<global>, %sum: ptr<global>, %out: ptr<global>) {{
entry:
  %t = sreg tid.x : i32
  %q = ptradd %out, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %early = cmpxchg %lock, i32 0, i32 1 : i32
  %got = icmp eq %early, i32 0 : i1
  condbr %got, section, try
try:
  %tries = phi [i32 1, entry], [%tries1, try] : i32
  %tries1 = add %tries, i32 1 : i32
  %old = cmpxchg %lock, i32 0, i32 1 : i32
  %taken = icmp ne %old, i32 0 : i1
  condbr %taken, try, section
section:
  %n = phi [i32 0, entry], [%tries, try] : i32
  {SECTION}
  %freed = atomicrmw xchg %lock, i32 0 : i32
  store i32 %q, %s1
  %more = icmp eq %n, i32 0 : i1
  condbr %more, first, done
first:
  store i32 %q, i32 -1
  br done
done:
  ret
}}
"""
FLAG = f"""
kernel @flag(%lock: ptr<global>, %sum: ptr<global>, %out: ptr<global>) {{
entry:
  %t = sreg tid.x : i32
  br try
try:
  %old = atomicrmw xchg %lock, i32 1 : i32
  %free = icmp eq %old, i32 0 : i1
  condbr %free, section, next
section:
  {SECTION}
  store i32 %lock, i32 0 {{volatile: true}}
  br next
next:
  %finished = phi [false, try], [true, section] : i1
  condbr %finished, done, try
done:
  ret
}}
"""
TICKET = f"""
kernel @ticket(%lock: ptr<global>, %sum: ptr<global>, %out: ptr<global>) {{
entry:
  %t = sreg tid.x : i32
  %q = ptradd %out, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %mine = atomicrmw add %q, i32 0 : i32
  br wait
wait:
  %now = load i32 %lock {{volatile: true}} : i32
  %turn = icmp eq %now, %mine : i1
  condbr %turn, section, wait
section:
  {SECTION}
  %next = add %mine, i32 1 : i32
  store i32 %lock, %next {{volatile: true}}
  br done
done:
  ret
}}
"""


def lockstep(text: str, enclose: bool = True) -> Function:
    function = parse_function(text)
    verify(function)
    steps = [MakeReducible(), EncloseCriticalSections(), Linearize(), SerialiseAtomics()]
    PassManager([step for step in steps if enclose or step.name != "enclose-critical-sections"]).run(function)
    return function


def launch(function: Function, out: bytes = bytes(32)) -> tuple[int, int, list[int]]:
    """The lock, the sum, and what threads wrote, after a launch of eight threads."""
    lock, total, rest = bytearray(4), bytearray(4), bytearray(out)
    interpret(function, [lock, total, rest], block=(8, 1, 1), max_steps=20_000)
    words = [int.from_bytes(data, "little") for data in (lock, total)]
    return words[0], words[1], list(struct.unpack("<8i", rest))


@pytest.mark.parametrize("text", [SPIN, FIRST_TRY, FLAG])
def test_every_lane_gets_the_lock(text: str) -> None:
    lock, total, _ = launch(lockstep(text))
    assert (lock, total) == (0, 28)


@pytest.mark.parametrize("text", [SPIN, FIRST_TRY])
def test_what_follows_the_release_reads_what_the_section_computed(text: str) -> None:
    _, _, out = launch(lockstep(text))
    assert out == [-1, 1, 3, 6, 10, 15, 21, 28]


def test_lanes_with_tickets_take_turns_in_any_order() -> None:
    tickets = [3, 1, 4, 0, 7, 5, 6, 2]
    lock, total, _ = launch(lockstep(TICKET), struct.pack("<8i", *tickets))
    assert (lock, total) == (8, 28)


def test_a_lock_that_is_not_released_ends_at_the_limit() -> None:
    with pytest.raises(Fault) as caught:
        launch(lockstep(SPIN, enclose=False))
    assert caught.value.kind == "steps"


def test_a_section_inside_its_loop_and_loops_without_locks_stay() -> None:
    for text in (
        FLAG,
        SPIN.replace("rmw xchg %lock", "rmw xchg %out"),
        FIRST_TRY.replace("rmw xchg %lock", "rmw xchg %out"),
        SPIN.replace("%freed =", "barrier\n  %freed ="),
    ):
        function = parse_function(text)
        before = print_function(function)
        assert not EncloseCriticalSections().run(function)
        assert print_function(function) == before


@pytest.mark.parametrize("text", [SPIN, FIRST_TRY])
def test_a_second_run_finds_nothing_to_move(text: str) -> None:
    function = parse_function(text)
    assert EncloseCriticalSections().run(function)
    verify(function)
    assert not EncloseCriticalSections().run(function)
