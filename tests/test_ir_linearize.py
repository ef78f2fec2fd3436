"""Linearisation: every lane does what its thread did, and guards, votes and slots are as few as promised."""

import random
import struct

import pytest

from ir_random_kernels import SITES, random_kernel
from qgpu.ir import Function, SlotType, VerifyError, parse_function, print_function, verify
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.passes import Linearize, LinearizeError, PassManager, default_pipeline

THREADS = 5


def linearised(function: Function, **options: int) -> Function:
    """A copy of a function, linearised and verified."""
    copy = parse_function(print_function(function))
    Linearize(**options).run(copy)
    verify(copy)
    return copy


def launch(function: Function, n: int) -> bytes | str:
    """What a kernel of `random_kernel` leaves in `out`, or the kind of its fault."""
    chance = random.Random(n)
    data = bytearray(struct.pack(f"<{THREADS}i", *(chance.randrange(-5, 9) for _ in range(THREADS))))
    out = bytearray(THREADS * SITES * 4)
    try:
        interpret(function, [data, out, n], block=(THREADS, 1, 1))
    except Fault as fault:
        return fault.kind
    return bytes(out)


@pytest.mark.parametrize("skip_limit", [0, 40])
@pytest.mark.parametrize("seed", range(100, 125))
def test_lanes_do_what_their_threads_did(seed: int, skip_limit: int) -> None:
    function = random_kernel(seed, size=4)
    lockstep = linearised(function, skip_limit=skip_limit)
    for n in (0, 1, 6):
        assert launch(lockstep, n) == launch(function, n)


@pytest.mark.parametrize("seed", range(200, 225))
def test_a_barrier_faults_in_lockstep_where_threads_miss_it(seed: int) -> None:
    """Lockstep is stricter: it also refuses threads that meet at one barrier in different rounds."""
    function = random_kernel(seed, size=3, barriers=True)
    lockstep = linearised(function)
    for n in (0, 6):
        apart, together = launch(function, n), launch(lockstep, n)
        assert together in (apart, "barrier")


@pytest.mark.parametrize("seed", range(300, 315))
def test_the_whole_pipeline_on_branching_code(seed: int) -> None:
    function = random_kernel(seed, size=4)
    lockstep = parse_function(print_function(function))
    PassManager(default_pipeline()).run(lockstep)
    for n in (1, 6):
        assert launch(lockstep, n) == launch(function, n)


@pytest.mark.parametrize("seed", range(20))
def test_the_form_is_as_documented(seed: int) -> None:
    function = linearised(random_kernel(seed, size=4))
    returns = [block for block in function.blocks if block.terminator.op == "ret"]
    assert len(returns) == 1 and returns[0].guard == ()
    assert not [i for i in function.instructions if i.op == "phi"]
    for block in function.blocks:
        assert len({literal.value for literal in block.guard}) == len(block.guard)
        sets = [i.op == "set" for i in block.instructions[:-1]]
        assert sets == sorted(sets)


def function_of(text: str) -> Function:
    function = parse_function(text)
    verify(function)
    return function


def count(function: Function, op: str) -> int:
    return sum(instruction.op == op for instruction in function.instructions)


IF_THEN = """
kernel @f(%p: ptr<global>, %n: i32) {
entry:
  %t = sreg tid.x : i32
  %q = ptradd %p, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %c = icmp slt %t, %n : i1
  condbr %c, FIRST, SECOND
then:
  store i32 %q, %t
  br done
done:
  ret
}
"""


@pytest.mark.parametrize(("first", "second"), [("then", "done"), ("done", "then")])
def test_the_side_to_skip_is_the_positive_one(first: str, second: str) -> None:
    text = IF_THEN.replace("FIRST", first).replace("SECOND", second)
    function = linearised(function_of(text))
    [literal] = function.block("then").guard
    assert literal.polarity and literal.value is function.entry.terminator.operands[0]
    assert count(function, "not") == 0 and count(function, "slot") == 0
    data = bytearray(8)
    interpret(function, [data, 1], block=(2, 1, 1))
    assert struct.unpack("<2i", data) == ((0, 0) if first == "then" else (0, 1))


def test_a_comparison_with_another_use_keeps_its_meaning() -> None:
    text = IF_THEN.replace("FIRST", "done").replace("SECOND", "then")
    text = text.replace("  condbr", "  %z = zext %c : i32\n  store i32 %q, %z\n  condbr")
    function = linearised(function_of(text))
    data = bytearray(8)
    interpret(function, [data, 1], block=(2, 1, 1))
    assert struct.unpack("<2i", data) == (1, 1)


LOOP = """
kernel @f(%p: ptr<global>, %n: i32) {
entry:
  %t = sreg tid.x : i32
  %q = ptradd %p, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  br loop
loop:
  %i = phi [i32 0, entry], [%i1, loop] : i32
  %i1 = add %i, i32 1 : i32
  store i32 %q, %i1
  %more = icmp slt %i1, BOUND : i1
  condbr %more, loop, done
done:
  AFTER
  ret
}
"""


def loop(bound: str, after: str = "store i32 %p, i32 0") -> Function:
    return function_of(LOOP.replace("BOUND", bound).replace("AFTER", after))


def test_a_uniform_loop_keeps_its_branch() -> None:
    function = linearised(loop("%n"))
    assert count(function, "condbr") == 1 and count(function, "brany") == 0
    assert not any(block.guard for block in function.blocks)
    [slot] = [i for i in function.instructions if i.op == "slot"]
    assert slot.attrs == {"uniform": True}


def test_a_divergent_loop_votes_on_its_own_comparison() -> None:
    function = linearised(loop("%t"))
    assert count(function, "condbr") == 0 and count(function, "brany") == 1
    body = function.block("loop")
    update = body.instructions[-2]
    assert update.op == "set" and update.operands[0] is body.guard[-1].value
    assert body.terminator.operands == (update.operands[1],)
    assert body.terminator.attrs["then"] is body


def test_the_counter_of_a_divergent_loop_is_uniform_inside_and_not_outside() -> None:
    function = linearised(loop("%t", "store i32 %q, %i1"))
    uniform = {i.name: bool(i.attrs) for i in function.instructions if i.type.__class__ is SlotType}
    assert uniform == {"i1.exit": False, "i.slot": True, "loop.active": False}
    data = bytearray(16)
    interpret(function, [data, 0], block=(4, 1, 1))
    assert struct.unpack("<4i", data) == (1, 1, 2, 3)


TWO_BARRIERS = """
kernel @f(%p: ptr<global>, %n: i32) {
entry:
  %t = sreg tid.x : i32
  %q = ptradd %p, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %c = icmp slt %t, %n : i1
  condbr %c, work, LEAVE
work:
  store i32 %q, %t
  barrier
  br done
wait:
  barrier
  br done
done:
  ret
}
"""


@pytest.mark.parametrize(("leave", "returned"), [("done", (0,)), ("wait", None)])
def test_only_lanes_that_end_may_miss_a_barrier(leave: str, returned: tuple[int, ...] | None) -> None:
    function = linearised(function_of(TWO_BARRIERS.replace("LEAVE", leave)))
    barrier = function.block("work").instructions[-2]
    assert barrier.op == "barrier" and barrier.attrs.get("returned") == returned


def test_a_barrier_in_a_loop_that_lanes_leave_to_another_barrier_is_missed() -> None:
    body = "store i32 %q, %i1\n  barrier"
    free = LOOP.replace("store i32 %q, %i1", body).replace("BOUND", "%t")
    ends = linearised(function_of(free.replace("AFTER", "store i32 %q, %n")))
    waits = linearised(function_of(free.replace("AFTER", "barrier")))
    assert [i.attrs for i in ends.instructions if i.op == "barrier"] == [{"returned": (0,)}]
    assert [i.attrs for i in waits.instructions if i.op == "barrier"] == [{}, {}]
    interpret(ends, [bytearray(16), 0], block=(4, 1, 1))
    with pytest.raises(Fault) as caught:
        interpret(waits, [bytearray(16), 0], block=(4, 1, 1))
    assert caught.value.kind == "barrier"


def test_a_trap_is_only_entered_by_lanes_that_take_it() -> None:
    text = IF_THEN.replace("FIRST", "then").replace("SECOND", "done")
    function = linearised(function_of(text.replace("store i32 %q, %t\n  br done", "trap trap")))
    interpret(function, [bytearray(8), 0], block=(2, 1, 1))
    with pytest.raises(Fault) as caught:
        interpret(function, [bytearray(8), 2], block=(2, 1, 1))
    assert caught.value.kind == "trap"


IRREDUCIBLE = """
kernel @f(%p: ptr<global>, %n: i32) {
entry:
  %t = sreg tid.x : i32
  %c = icmp slt %t, %n : i1
  condbr %c, a, b
a:
  store i32 %p, %t
  br b
b:
  %d = icmp eq %t, %n : i1
  condbr %d, a, done
done:
  ret
}
"""


def test_a_loop_with_two_entries_is_refused_with_its_place() -> None:
    function = function_of(IRREDUCIBLE.replace("condbr %d, a, done", 'condbr %d, a, done !loc "k.cu":7:3'))
    with pytest.raises(LinearizeError, match="more than one entry") as caught:
        Linearize().run(function)
    assert caught.value.instruction is not None
    assert {caught.value.instruction.block.name} <= {"a", "b"}


def test_running_it_twice_changes_nothing() -> None:
    function = linearised(random_kernel(3))
    text = print_function(function)
    assert Linearize().run(function) is False
    assert print_function(function) == text


def test_a_function_must_not_claim_to_be_linearised() -> None:
    function = function_of(LOOP.replace("BOUND", "%n").replace("AFTER", ""))
    function.attrs["linearised"] = True
    with pytest.raises(VerifyError, match="no phis"):
        verify(function)


def test_conditions_of_several_comparisons_are_inverted_without_a_complement() -> None:
    text = IF_THEN.replace("FIRST", "done").replace("SECOND", "then").replace("condbr %c", "condbr %o")
    text = text.replace("  condbr", "  %d = icmp eq %t, i32 2 : i1\n  %o = or %c, %d : i1\n  condbr")
    function = linearised(function_of(text))
    assert count(function, "not") == 0 and count(function, "and") == 1
    data = bytearray(16)
    interpret(function, [data, 1], block=(4, 1, 1))
    assert struct.unpack("<4i", data) == (0, 1, 0, 3)


KEEPS = """
kernel @f(%p: ptr<global>, %n: i32) {
entry:
  %t = sreg tid.x : i32
  %q = ptradd %p, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  br loop
loop:
  %v = phi [i32 9, entry], [%v, keep], [i32 1, loop] : i32
  %i = phi [i32 0, entry], [%i1, keep], [%i1, loop] : i32
  %i1 = add %i, i32 1 : i32
  %c = icmp slt %i, %t : i1
  condbr %c, loop, keep
keep:
  %more = icmp slt %i1, i32 4 : i1
  condbr %more, loop, done
done:
  store i32 %q, %v
  ret
}
"""


def test_a_phi_keeps_its_value_where_lanes_beside_assign_another() -> None:
    """`loop` goes to its header from two blocks: those who go on to the second have been assigned, too."""
    apart = function_of(KEEPS)
    before, after = bytearray(16), bytearray(16)
    interpret(apart, [before, 0], block=(4, 1, 1))
    interpret(linearised(apart), [after, 0], block=(4, 1, 1))
    assert struct.unpack("<4i", before) == (9, 1, 1, 1)
    assert after == before


def test_lanes_that_go_round_before_a_way_out_are_told_from_those_that_leave() -> None:
    """The header serves two loops: the outer one's way out is on every path, yet not all lanes take it."""
    function = linearised(function_of(KEEPS))
    assert count(function, "condbr") == 0
    assert any(slot.name == "loop.active" for slot in function.entry.instructions)
