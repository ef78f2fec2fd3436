"""The interpreter: memory, faults, barriers, and both ways of running."""

import struct

import pytest

from qgpu.ir import parse_function, verify
from qgpu.ir.interpreter import FAULTS, Fault, interpret


def words(*values: int) -> bytearray:
    return bytearray(struct.pack(f"<{len(values)}i", *values))


def numbers(data: bytearray) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 4}i", data))


def run(body: str, *args: int | bytearray, parameters: str = "%p: ptr<global>", **launch) -> None:
    function = parse_function(f"kernel @k({parameters}) {{\n{body}\n}}")
    verify(function)
    interpret(function, args, **launch)


OWN = """
entry:
  %t = sreg tid.x : i32
  %q = ptradd %p, %t {scale: 4, disp: 0, signed: true} : ptr<global>
"""


def test_special_registers_in_three_dimensions() -> None:
    body = """
    entry:
      %x = sreg tid.x : i32
      %y = sreg tid.y : i32
      %z = sreg tid.z : i32
      %b = sreg ctaid.y : i32
      %nx = sreg ntid.x : i32
      %ny = sreg ntid.y : i32
      %l = sreg laneid : i32
      %w = sreg warpid : i32
      %a1 = mul %z, %ny : i32
      %a2 = add %a1, %y : i32
      %a3 = mul %a2, %nx : i32
      %a4 = add %a3, %x : i32
      %a5 = mul %b, i32 12 : i32
      %a6 = add %a4, %a5 : i32
      %v1 = mul %w, i32 100 : i32
      %v = add %v1, %l : i32
      %q = ptradd %p, %a6 {scale: 4, disp: 0, signed: true} : ptr<global>
      store i32 %q, %v
      ret"""
    data = words(*[0] * 24)
    run(body, data, grid=(1, 2, 1), block=(3, 2, 2), warp_size=8)
    assert numbers(data) == [index % 8 + 100 * (index // 8) for index in range(12)] * 2


def test_loads_extend_and_stores_cut() -> None:
    data = bytearray(b"\x80\xff\x00\x00" + b"\x00" * 12)
    run(
        """
        entry:
          %a = load i8 %p {ext: sign} : i32
          %b = load i16 %p {ext: zero} : i32
          %q = ptradd %p, i32 1 {scale: 4, disp: 0, signed: true} : ptr<global>
          store i32 %q, %a
          %r = ptradd %p, i32 2 {scale: 4, disp: 0, signed: true} : ptr<global>
          store i32 %r, %b
          %s = ptradd %p, i32 3 {scale: 4, disp: 0, signed: true} : ptr<global>
          store i8 %s, i32 -2
          ret""",
        data,
    )
    assert numbers(data)[1:] == [-128, 0xFF80, 0xFE]


def test_indices_extend_by_sign_or_with_zeros() -> None:
    data = words(5, 6)
    body = """
    entry:
      %q = ptradd %p, i32 -1 {{scale: 4, disp: 8, signed: {signed}}} : ptr<global>
      store i32 %q, i32 9
      ret"""
    run(body.format(signed="true"), data)
    assert numbers(data) == [5, 9]
    with pytest.raises(Fault, match=f"offset {(2**32 - 1) * 4 + 8} of 'p'"):
        run(body.format(signed="false"), data)


@pytest.mark.parametrize(
    ("kind", "operand", "expected"),
    [
        ("add", -3, [7, 4]),
        ("min_s", -3, [7, -3]),
        ("max_s", -3, [7, 7]),
        ("min_u", -3, [7, 7]),
        ("max_u", -3, [7, -3]),
        ("and", 5, [7, 5]),
        ("or", 8, [7, 15]),
        ("xor", 2, [7, 5]),
        ("xchg", 2, [7, 2]),
    ],
)
def test_atomics_give_the_old_value(kind: str, operand: int, expected: list[int]) -> None:
    data = words(0, 7)
    run(
        f"""
        entry:
          %q = ptradd %p, i32 1 {{scale: 4, disp: 0, signed: true}} : ptr<global>
          %old = atomicrmw {kind} %q, i32 {operand} : i32
          store i32 %p, %old
          ret""",
        data,
    )
    assert numbers(data) == expected


def test_shared_memory_and_a_barrier() -> None:
    body = f"""
    array @tile: shared, 12 bytes, align 4
    {OWN}
      %s = addrof @tile : ptr<shared>
      %own = ptradd %s, %t {{scale: 4, disp: 0, signed: true}} : ptr<shared>
      store i32 %own, %t
      barrier
      %m = mul %t, i32 -1 : i32
      %last = ptradd %s, %m {{scale: 4, disp: 8, signed: true}} : ptr<shared>
      %v = load i32 %last : i32
      store i32 %q, %v
      ret"""
    data = words(9, 9, 9)
    run(body, data, block=(3, 1, 1))
    assert numbers(data) == [2, 1, 0]


def test_local_arrays_are_each_threads_own() -> None:
    body = f"""
    array @mine: local, 4 bytes, align 4
    {OWN}
      %l = addrof @mine : ptr<local>
      store i32 %l, %t
      barrier
      %x = load i32 %l : i32
      store i32 %q, %x
      ret"""
    data = words(9, 9)
    run(body, data, block=(2, 1, 1))
    assert numbers(data) == [0, 1]


def test_phis_take_their_values_all_at_once() -> None:
    data = words(0, 0)
    run(
        """
        entry:
          br loop
        loop:
          %a = phi [i32 1, entry], [%b, loop] : i32
          %b = phi [i32 2, entry], [%a, loop] : i32
          %i = phi [i32 0, entry], [%i1, loop] : i32
          %i1 = add %i, i32 1 : i32
          %m = icmp slt %i1, i32 4 : i1
          condbr %m, loop, done
        done:
          store i32 %p, %a
          %q = ptradd %p, i32 1 {scale: 4, disp: 0, signed: true} : ptr<global>
          store i32 %q, %b
          ret""",
        data,
    )
    assert numbers(data) == [2, 1]


def test_pointers_into_different_buffers() -> None:
    data, other = words(0), words(0)
    body = """
    entry:
      %e = icmp eq %p, %q : i1
      %n = icmp ne %p, %q : i1
      %ez = zext %e : i32
      %nz = zext %n : i32
      store i32 %p, %ez
      store i32 %q, %nz
      ret"""
    run(body, data, other, parameters="%p: ptr<global>, %q: ptr<global>")
    assert numbers(data) + numbers(other) == [0, 1]
    with pytest.raises(Fault, match="no order"):
        run(
            "entry:\n  %e = icmp ult %p, %q : i1\n  ret",
            data,
            other,
            parameters="%p: ptr<global>, %q: ptr<global>",
        )


FAULTY = {
    "address": OWN + "  store i32 %q, %t\n  ret",
    "alignment": "entry:\n  %q = ptradd %p, i32 2 {scale: 1, disp: 0, signed: true} : ptr<global>\n"
    "  %v = load i32 %q : i32\n  ret",
    "trap": "entry:\n  trap trap",
    "unreachable": "entry:\n  trap unreachable",
    "steps": "entry:\n  br a\na:\n  br a",
    "barrier": OWN
    + "  %c = icmp eq %t, i32 0 : i1\n  condbr %c, a, b\na:\n  barrier\n  ret\nb:\n  barrier\n  ret",
}


@pytest.mark.parametrize("kind", FAULTY)
def test_faults_have_a_kind(kind: str) -> None:
    assert kind in FAULTS
    with pytest.raises(Fault) as caught:
        run(FAULTY[kind], words(0, 0), block=(3, 1, 1), max_steps=1000)
    assert caught.value.kind == kind
    assert caught.value.instruction is not None


def test_threads_that_have_ended_do_not_count_at_a_barrier() -> None:
    body = (
        OWN
        + "  %c = icmp eq %t, i32 0 : i1\n  condbr %c, a, b\na:\n  ret\n"
        + "b:\n  barrier\n  store i32 %q, %t\n  ret"
    )
    data = words(0, 0, 0)
    run(body, data, block=(3, 1, 1))
    assert numbers(data) == [0, 1, 2]


def test_arguments_have_to_fit_the_parameters() -> None:
    with pytest.raises(TypeError, match="takes a buffer"):
        run("entry:\n  ret", 5)
    with pytest.raises(TypeError, match="takes a number"):
        run("entry:\n  ret", words(1), parameters="%n: i32")
    with pytest.raises(ValueError):
        run("entry:\n  ret")


LOCKSTEP = """
kernel @k(%p: ptr<global>, %n: i32) attributes {{linearised: true}} {{
entry:
  %s = slot : slot<i32>
  %t = sreg tid.x : i32
  %q = ptradd %p, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %c = icmp slt %t, %n : i1
  set %s, i32 7
  brany %c, then, join
then [%c]:
  {then}
join:
  %g = get %s : i32
  store i32 %q, %g
  ret
}}
"""


def lockstep(then: str, n: int) -> list[int]:
    function = parse_function(LOCKSTEP.format(then=then))
    verify(function)
    data = words(0, 0, 0)
    interpret(function, [data, n], block=(3, 1, 1))
    return numbers(data)


def test_a_guarded_block_acts_for_its_lanes_alone() -> None:
    assert lockstep("set %s, %t\n  br join", 2) == [0, 1, 7]


def test_a_vote_without_a_lane_skips() -> None:
    assert lockstep("trap trap", 0) == [7, 7, 7]
    with pytest.raises(Fault) as caught:
        lockstep("trap trap", 1)
    assert caught.value.kind == "trap"


def test_a_branch_that_is_not_uniform_is_a_fault() -> None:
    with pytest.raises(Fault) as caught:
        lockstep("%d = icmp eq %t, i32 0 : i1\n  condbr %d, join, other\nother:\n  br join", 2)
    assert caught.value.kind == "uniformity"


@pytest.mark.parametrize(("returned", "fault"), [("", True), (" {returned: [0]}", False)])
def test_lanes_that_miss_a_barrier_have_to_have_returned(returned: str, fault: bool) -> None:
    then = f"barrier{returned}\n  br join"
    if not fault:
        assert lockstep(then, 2) == [7, 7, 7]
        return
    with pytest.raises(Fault) as caught:
        lockstep(then, 2)
    assert caught.value.kind == "barrier" and caught.value.thread == 2


def test_reading_what_a_lane_never_computed_is_a_fault() -> None:
    with pytest.raises(Fault) as caught:
        lockstep("%x = add %t, %n : i32\n  br after\nafter:\n  set %s, %x\n  br join", 1)
    assert caught.value.kind == "undefined"
