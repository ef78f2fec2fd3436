"""Exchanges of a warp, barriers of several kinds, and what threads wait for, in both forms of a function."""

import random
from functools import cache

import pytest

from qgpu.ir import OPCODES, Function, parse_function, to_signed, verify
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.interpreter.ends import ENDS
from qgpu.ir.interpreter.lockstep import MEETINGS, TERMINATORS
from qgpu.ir.interpreter.steps import STEPS

WARP = 8
HEAD = """
entry:
  %t = sreg tid.x : i32
  %q = ptradd %p, %t {scale: 4, disp: 0, signed: true} : ptr<global>
"""


@cache
def kernel(body: str, buffers: int, linearised: bool) -> Function:
    parameters = ", ".join(f"%{name}: ptr<global>" for name in "pabc"[:buffers])
    attributes = " attributes {linearised: true}" if linearised else ""
    function = parse_function(f"kernel @k({parameters}){attributes} {{{body}}}")
    verify(function)
    return function


def launch(body: str, *data: list[int], threads: int, linearised: bool = False) -> list[int]:
    """Runs a kernel over buffers of words; the words of the first one afterwards."""
    function = kernel(body, len(data), linearised)
    buffers = [bytearray(b"".join(word.to_bytes(4, "little") for word in words)) for words in data]
    interpret(function, buffers, block=(threads, 1, 1), warp_size=WARP)
    return [int.from_bytes(buffers[0][at : at + 4], "little") for at in range(0, len(buffers[0]), 4)]


def test_every_opcode_has_a_row_in_the_forms_that_have_it() -> None:
    lockstep_only = {"brany", "set", "get", "slot"}
    assert {*STEPS, *ENDS, "phi", "brany"} == set(OPCODES)
    assert set(STEPS).isdisjoint(ENDS)
    exchanges = {"shuffle", "ballot", "match", "redux"}
    assert {*STEPS, *MEETINGS, *TERMINATORS, *exchanges} == set(OPCODES) - {"phi"}
    assert lockstep_only - {"brany"} <= set(STEPS)


# What lane l of a warp gets: from the operands of the lanes that run it, by lane, and its mask.
def participants(lane: int, values: dict[int, tuple[int, int, int]]) -> dict[int, int]:
    mask = values[lane][2]
    return {other: value for other, (value, _, _) in values.items() if not mask or mask >> other & 1}


def shuffled(lane: int, values: dict[int, tuple[int, int, int]]) -> int:
    return participants(lane, values).get(values[lane][1], values[lane][0])


def balloted(lane: int, values: dict[int, tuple[int, int, int]]) -> int:
    return sum((value & 1) << other for other, value in participants(lane, values).items())


def matched(lane: int, values: dict[int, tuple[int, int, int]]) -> int:
    return sum(1 << o for o, value in participants(lane, values).items() if value == values[lane][0])


REDUCE = {
    "add": lambda values: sum(values) % 2**32,
    "min_s": lambda values: min(values, key=lambda v: to_signed(v, 32)),
    "max_s": lambda values: max(values, key=lambda v: to_signed(v, 32)),
    "min_u": min,
    "max_u": max,
    "and": lambda values: 2**32 - 1 - REDUCE["or"]([2**32 - 1 - v for v in values]),
    "or": lambda values: values[0] if len(values) == 1 else values[0] | REDUCE["or"](values[1:]),
    "xor": lambda values: values[0] if len(values) == 1 else values[0] ^ REDUCE["xor"](values[1:]),
}
EXCHANGES = {
    "shuffle %v, %s, %m : i32": shuffled,
    "ballot %bit, %m : i32": balloted,
    "match %v, %m : i32": matched,
    **{
        f"redux {kind} %v, %m : i32": lambda lane, values, kind=kind: REDUCE[kind](
            list(participants(lane, values).values())
        )
        for kind in REDUCE
    },
}
EXCHANGE = """
  %t = sreg tid.x : i32
  %q = ptradd %p, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %qa = ptradd %a, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %qb = ptradd %b, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %qc = ptradd %c, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %v = load i32 %qa : i32
  %s = load i32 %qb : i32
  %m = load i32 %qc : i32
  %bit = trunc %v : i1
  %low = and %v, i32 16 : i32
  %runs = icmp eq %low, i32 0 : i1
"""
GO = "go{guard}:\n  %r = {exchange}\n  store i32 %q, %r\n  br out\nout:\n  ret"
THREADS_FORM = f"entry:{EXCHANGE}  condbr %runs, go, out\n{GO.replace('{guard}', '')}"
LOCKSTEP_FORM = f"entry:{EXCHANGE}  brany %runs, go, out\n{GO.replace('{guard}', ' [%runs]')}"


def masks_of(chance: random.Random, threads: int) -> list[int]:
    """The mask of each thread: of each warp, the lanes name one of two groups, their own, or nobody."""
    masks: list[int] = []
    for _ in range(-(-threads // WARP)):
        group = chance.choice([0, 2**WARP - 1, chance.getrandbits(WARP)])
        groups = chance.choice([(0, 0), (group ^ 2**32 - 1, group)])
        masks += [groups[group >> lane & 1] for lane in range(WARP)]
    return masks[:threads]


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("linearised", [False, True])
def test_exchange(exchange: str, linearised: bool) -> None:
    """Lanes whose value has bit 4 do not run it, but end."""
    body = (LOCKSTEP_FORM if linearised else THREADS_FORM).format(exchange=exchange)
    for seed in range(40):
        chance = random.Random(seed)
        threads = chance.randint(1, 2 * WARP + 3)
        words = [0, 1, 2, 3, 2**31, 2**32 - 1, chance.getrandbits(32)]
        values = chance.choices(words, k=threads)
        sources = chance.choices([*range(WARP + 2), *words], k=threads)
        masks = masks_of(chance, threads)
        expected = [7] * threads
        for first in range(0, threads, WARP):
            running = [t for t in range(first, min(first + WARP, threads)) if not values[t] & 16]
            warp = {t - first: (values[t], sources[t], masks[t]) for t in running}
            for thread in running:
                expected[thread] = EXCHANGES[exchange](thread - first, warp)
        buffers = ([7] * threads, values, sources, masks)
        assert launch(body, *buffers, threads=threads, linearised=linearised) == expected, seed


def test_pointers_and_wide_values_are_shuffled() -> None:
    body = (
        HEAD
        + """
  %w = zext %t : i64
  %x = shuffle %w, i32 2, i32 -1 : i64
  %y = shuffle %q, i32 1, i32 -1 : ptr<global>
  %z = trunc %x : i32
  store i32 %y, %z
  ret"""
    )
    assert launch(body, [9, 9, 9, 9], threads=4) == [9, 2, 9, 9]


def test_lanes_of_both_sides_of_a_branch_meet_at_an_exchange_behind_it() -> None:
    """The side of the odd lanes is a loop of as many rounds as the lane's number."""
    body = (
        HEAD
        + """
  %odd = and %t, i32 1 : i32
  %c = icmp ne %odd, i32 0 : i1
  condbr %c, loop, meet
loop:
  %n = phi [i32 0, entry], [%n1, loop] : i32
  %n1 = add %n, i32 1 : i32
  %more = icmp ult %n1, %t : i1
  condbr %more, loop, meet
meet:
  %k = phi [i32 100, entry], [%n1, loop] : i32
  %r = redux add %k, i32 -1 : i32
  store i32 %q, %r
  ret"""
    )
    assert launch(body, [0] * 6, threads=6) == [300 + 1 + 3 + 5] * 6


APART = (
    HEAD
    + """
  %c = icmp ult %t, i32 3 : i1
  condbr %c, a, b
a:
  %x = ballot true, i32 MASK : i32
  store i32 %q, %x
  br out
b:
  OTHER
out:
  ret"""
)


def test_a_lane_of_the_mask_that_has_ended_is_not_waited_for() -> None:
    assert launch(APART.replace("MASK", "-1").replace("OTHER", "ret"), [9] * 5, threads=5) == [7, 7, 7, 9, 9]


def test_lanes_of_the_mask_alone_are_waited_for() -> None:
    """The others wait at a barrier behind the branch."""
    body = APART.replace("OTHER", "br out").replace("out:", "out:\n  barrier")
    assert launch(body.replace("MASK", "7"), [9] * 5, threads=5) == [7, 7, 7, 9, 9]
    assert launch(body.replace("MASK", "0"), [9] * 5, threads=5) == [7, 7, 7, 9, 9]
    with pytest.raises(Fault) as caught:
        launch(body.replace("MASK", "-1"), [9] * 5, threads=5)
    assert caught.value.kind == "exchange"
    assert caught.value.instruction is not None and caught.value.instruction.op == "ballot"


NAMED = (
    HEAD
    + """
  %c = icmp ult %t, i32 2 : i1
  condbr %c, take, give
take:
  barrier {id: 1, count: COUNT}
  %m = mul %t, i32 -1 : i32
  %l = ptradd %p, %m {scale: 4, disp: 12, signed: true} : ptr<global>
  %v = load i32 %l : i32
  store i32 %q, %v
  ret
give:
  store i32 %q, %t
  arrive {id: 1, count: COUNT}
  ret"""
)


def test_a_named_barrier_waits_for_those_that_arrive() -> None:
    """Threads 0 and 1 read what threads 3 and 2 wrote before they arrived."""
    assert launch(NAMED.replace("COUNT", "4"), [9] * 4, threads=4) == [3, 2, 2, 3]
    with pytest.raises(Fault, match="4 of 5 threads come to barrier 1") as caught:
        launch(NAMED.replace("COUNT", "5"), [9] * 4, threads=4)
    assert caught.value.kind == "barrier"


def test_a_named_barrier_can_be_used_again() -> None:
    body = (
        HEAD
        + """
  br loop
loop:
  %n = phi [i32 0, entry], [%n1, loop] : i32
  %old = load i32 %q : i32
  barrier {id: 2, count: 3}
  %n1 = add %n, i32 1 : i32
  %new = add %old, %n1 : i32
  store i32 %q, %new
  %more = icmp ult %n1, i32 4 : i1
  condbr %more, loop, done
done:
  ret"""
    )
    assert launch(body, [0, 1, 2], threads=3) == [10, 11, 12]


def test_a_lock_that_the_threads_of_a_warp_wait_for() -> None:
    """Each thread takes the lock in a[0], adds its number and 1 to p[0] in two steps, and gives it back."""
    body = """
entry:
  %t = sreg tid.x : i32
  br take
take:
  %old = cmpxchg %a, i32 0, i32 1 : i32
  %mine = icmp eq %old, i32 0 : i1
  condbr %mine, inside, take
inside:
  %v = load i32 %p : i32
  %w = add %v, %t : i32
  store i32 %p, %w
  br more
more:
  %x = load i32 %p : i32
  %y = add %x, i32 1 : i32
  store i32 %p, %y
  %was = atomicrmw xchg %a, i32 0 : i32
  ret"""
    assert launch(body, [100], [0], threads=5) == [100 + 10 + 5]


@pytest.mark.parametrize(("kind", "expected"), [("popc", 3), ("and", 0), ("or", 1)])
@pytest.mark.parametrize("linearised", [False, True])
def test_a_barrier_with_a_vote(kind: str, expected: int, linearised: bool) -> None:
    """Over all threads, of several warps."""
    body = (
        HEAD
        + f"""
  %low = and %t, i32 3 : i32
  %c = icmp eq %low, i32 0 : i1
  %r = barrier_reduce {kind} %c : i32
  store i32 %q, %r
  ret"""
    )
    assert launch(body, [9] * 10, threads=10, linearised=linearised) == [expected] * 10


def test_a_vote_of_those_that_have_not_ended() -> None:
    body = (
        HEAD
        + """
  %c = icmp ult %t, i32 3 : i1
  condbr %c, vote, out
vote:
  %odd = trunc %t : i1
  %r = barrier_reduce popc %odd : i32
  store i32 %q, %r
  ret
out:
  ret"""
    )
    assert launch(body, [9] * 5, threads=5) == [1, 1, 1, 9, 9]


@pytest.mark.parametrize("barrier", ["  barrier\n", ""])
def test_threads_that_run_apart_need_their_barriers(barrier: str) -> None:
    """Each thread hands a word to the one before it."""
    text = f"""kernel @k(%out: ptr<global>) {{
  array @tile: shared, 16 bytes, align 4
entry:
  %t = sreg tid.x : i32
  %n = add %t, i32 1 : i32
  %next = and %n, i32 3 : i32
  %tile = addrof @tile : ptr<shared>
  %own = ptradd %tile, %t {{scale: 4, disp: 0, signed: true}} : ptr<shared>
  %other = ptradd %tile, %next {{scale: 4, disp: 0, signed: true}} : ptr<shared>
  store i32 %other, i32 0
{barrier}  store i32 %own, %t
{barrier}  %v = load i32 %other : i32
  %q = ptradd %out, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  store i32 %q, %v
  ret
}}
"""
    results = []
    for apart in (False, True):
        out = bytearray(16)
        interpret(parse_function(text), [out], block=(4, 1, 1), apart=apart)
        results.append(list(out[::4]))
    assert results[0] == [1, 2, 3, 0]
    assert (results[1] == results[0]) == bool(barrier)
