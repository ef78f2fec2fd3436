"""Memory of a kernel's own: local arrays, variables, and pointers into one buffer or several."""

import pytest

from codegen_runs import LINEARISED, after, made, ran, words
from qgpu.backends.machine.host import LaunchError


def kernel(body: str, parameters: str = "%out: ptr<global>, %n: i32", arrays: str = "") -> str:
    head = f"kernel @k({parameters}) {LINEARISED} {{\n{arrays}entry:\n  %t = sreg tid.x : i32\n"
    return f"{head}{body}\n  ret\n}}\n"


OUT = "  %po = ptradd %out, %t {scale: 4, disp: 0, signed: true} : ptr<global>\n"


def test_local_arrays_belong_to_the_thread() -> None:
    body = f"""{OUT}
  %a = addrof @stack : ptr<local>
  %b = addrof @other : ptr<local>
  store i32 %b, i32 1000
  %x = mul %t, i32 7 : i32
  %d0 = and %t, i32 3 : i32
  %p0 = ptradd %a, %d0 {{scale: 4, disp: 0, signed: true}} : ptr<local>
  store i32 %p0, %x
  %d1 = xor %d0, i32 1 : i32
  %p1 = ptradd %a, %d1 {{scale: 4, disp: 0, signed: true}} : ptr<local>
  store i32 %p1, %t
  %y = load i32 %p0 : i32
  %z = load i32 %p1 : i32
  %w = load i32 %b : i32
  %s = add %y, %z : i32
  %r = add %s, %w : i32
  store i32 %po, %r"""
    arrays = "  array @stack: local, 16 bytes, align 4\n  array @other: local, 4 bytes, align 4\n"
    made_ = made(kernel(body, arrays=arrays))
    assert made_.local_bytes == 20
    assert after(made_, [bytes(4 * 70), 0], (70, 1, 1)) == [[8 * t + 1000 for t in range(70)]]


def test_a_pointer_beyond_all_local_memory_faults() -> None:
    body = """
  %a = addrof @stack : ptr<local>
  %p = ptradd %a, %n {scale: 4, disp: 0, signed: true} : ptr<local>
  store i32 %p, %t"""
    made_ = made(kernel(body, arrays="  array @stack: local, 16 bytes, align 4\n"))
    assert ran(made_, [b"", 3], (2, 1, 1)).fault is None
    fault = ran(made_, [b"", 4], (2, 1, 1)).fault
    assert fault and (fault.kind, fault.thread) == ("out-of-bounds", (1, 0, 0))


def test_local_memory_that_a_launch_has_no_room_for() -> None:
    body = "  %a = addrof @stack : ptr<local>\n  store i32 %a, %t"
    made_ = made(kernel(body, arrays="  array @stack: local, 4096 bytes, align 4\n"))
    with pytest.raises(LaunchError, match=r"409600 bytes of local memory \(4096 a thread; a smaller thread"):
        ran(made_, [b"", 0], (100, 1, 1))


def test_variables_start_every_launch_as_they_are_written() -> None:
    body = f"""{OUT}
  %c = addrof @table : ptr<const>
  %i = and %t, i32 3 : i32
  %pc = ptradd %c, %i {{scale: 4, disp: 0, signed: true}} : ptr<const>
  %x = load i32 %pc : i32
  %g = addrof @count : ptr<global>
  %old = atomicrmw add %g, i32 1 : i32
  %y = add %x, %old : i32
  store i32 %po, %y"""
    arrays = (
        '  array @table: const, 16 bytes, align 4, data "0a000000140000001e"\n'
        '  array @count: global, 4 bytes, align 4, data "64"\n'
        "  array @unused: global, 400 bytes, align 4\n"
    )
    made_ = made(kernel(body, arrays=arrays))
    assert [(h.name, h.size, h.data.hex()) for h in made_.hidden] == [
        ("table", 16, "0a000000140000001e"),
        ("count", 4, "64"),
    ]
    expected = [[10, 20, 30, 0][t % 4] + 100 + t for t in range(6)]
    assert after(made_, [bytes(24), 0], (6, 1, 1)) == [expected]


def test_dynamic_shared_memory_comes_after_arrays_that_passes_add() -> None:
    body = f"""{OUT}
  %d = addrof @dynamic : ptr<shared>
  %s = addrof @scratch : ptr<shared>
  store i32 %s, i32 5
  store i32 %d, i32 6
  %x = load i32 %s : i32
  store i32 %po, %x"""
    arrays = "  array @dynamic: shared, 0 bytes, align 16\n  array @scratch: shared, 8 bytes, align 4\n"
    made_ = made(kernel(body, arrays=arrays))
    assert made_.shared_bytes == 16
    fault = ran(made_, [bytes(4), 0]).fault
    assert fault and fault.kind == "out-of-bounds"


THREE = "%a: ptr<global>, %b: ptr<global>, %c: ptr<global>, %out: ptr<global>"


def chosen(use: str) -> str:
    """A kernel in which thread t uses buffer a, b or c, as t is 0, 1 or more, at word t."""
    return kernel(
        f"""{OUT}
  %is0 = icmp eq %t, i32 0 : i1
  %is1 = icmp eq %t, i32 1 : i1
  %q0 = select %is1, %b, %c : ptr<global>
  %q1 = select %is0, %a, %q0 : ptr<global>
  %p = ptradd %q1, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
{use}""",
        THREE,
    )


def test_a_store_to_one_of_three_buffers() -> None:
    made_ = made(chosen("  %v = add %t, i32 50 : i32\n  store i32 %p, %v"))
    a, b, c, _ = after(made_, [bytes(16)] * 4, (4, 1, 1))
    assert (a, b, c) == ([50, 0, 0, 0], [0, 51, 0, 0], [0, 0, 52, 53])


def test_narrow_stores_to_one_of_three_buffers() -> None:
    made_ = made(chosen("  store i16 %p, %t"))
    ones = words(-1, -1, -1, -1)
    _, b, c, _ = after(made_, [ones, ones, ones, ones], (4, 1, 1))
    assert b == [-1, -65535, -1, -1] and c == [-1, -1, -65534, -65533]


def test_the_old_value_of_an_atomic_on_one_of_three_buffers() -> None:
    made_ = made(chosen("  %old = atomicrmw add %p, i32 3 : i32\n  store i32 %po, %old"))
    start = words(10, 20, 30, 40)
    a, b, c, out = after(made_, [start, start, start, bytes(16)], (4, 1, 1))
    assert out == [10, 20, 30, 40] and a[0] == 13 and b[1] == 23 and c[2:] == [33, 43]


def test_a_fault_in_one_of_three_buffers_is_found() -> None:
    made_ = made(chosen("  store i32 %p, %t"))
    fault = ran(made_, [bytes(16), bytes(4), bytes(16), bytes(16)], (4, 1, 1)).fault
    assert fault and (fault.kind, fault.thread) == ("out-of-bounds", (1, 0, 0))


def test_pointers_stored_in_local_and_shared_arrays() -> None:
    body = f"""{OUT}
  %l = addrof @links : ptr<shared>
  %pl = ptradd %l, %t {{scale: 8, disp: 0, signed: true}} : ptr<shared>
  %odd = and %t, i32 1 : i32
  %is = icmp ne %odd, i32 0 : i1
  %q = select %is, %a, %b : ptr<global>
  %p = ptradd %q, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  store ptr<global> %pl, %p
  barrier
  %o = xor %t, i32 1 : i32
  %ol = ptradd %l, %o {{scale: 8, disp: 0, signed: true}} : ptr<shared>
  %r = load ptr<global> %ol : ptr<global>
  %x = load i32 %r : i32
  store i32 %po, %x"""
    arrays = "  array @links: shared, 64 bytes, align 8\n"
    made_ = made(kernel(body, "%a: ptr<global>, %b: ptr<global>, %out: ptr<global>", arrays))
    a, b = words(*range(10, 18)), words(*range(20, 28))
    *_, out = after(made_, [a, b, bytes(32)], (8, 1, 1))
    assert out == [11, 20, 13, 22, 15, 24, 17, 26]


def test_pointers_to_one_buffer_are_offsets_in_memory() -> None:
    body = f"""{OUT}
  %l = addrof @links : ptr<local>
  %p = ptradd %out, %n {{scale: 4, disp: 0, signed: true}} : ptr<global>
  store ptr<global> %l, %p
  %r = load ptr<global> %l : ptr<global>
  store i32 %r, i32 77"""
    made_ = made(kernel(body, arrays="  array @links: local, 8 bytes, align 8\n"))
    assert after(made_, [bytes(16), 2]) == [[0, 0, 77, 0]]


def test_generic_pointers_into_local_shared_and_global_memory() -> None:
    body = f"""{OUT}
  %l = addrof @mine : ptr<local>
  %s = addrof @ours : ptr<shared>
  %gl = ptrcast %l : ptr<generic>
  %gs = ptrcast %s : ptr<generic>
  %gg = ptrcast %po : ptr<generic>
  store i32 %s, i32 -1
  store i32 %l, i32 -2
  %k = and %t, i32 3 : i32
  %is0 = icmp eq %k, i32 0 : i1
  %is1 = icmp eq %k, i32 1 : i1
  %q0 = select %is1, %gs, %gg : ptr<generic>
  %q1 = select %is0, %gl, %q0 : ptr<generic>
  %old = atomicrmw add %q1, %t : i32
  %x = load i32 %l : i32
  %y = add %x, %old : i32
  %z = load i32 %s : i32
  store i32 %po, %y
  barrier
  %zz = load i32 %s : i32
  %pz = ptradd %out, i32 8 {{scale: 4, disp: 0, signed: true}} : ptr<global>
  store i32 %pz, %zz"""
    arrays = "  array @mine: local, 4 bytes, align 4\n  array @ours: shared, 4 bytes, align 4\n"
    made_ = made(kernel(body, arrays=arrays))
    (out,) = after(made_, [bytes(36), 0], (8, 1, 1))
    local = [-2 + (t if t % 4 == 0 else 0) for t in range(8)]
    old = [-2, -1, 0, 0, -2, 0, 0, 0]
    assert out == [*(x + y for x, y in zip(local, old, strict=True)), -1 + 1 + 5]


@pytest.mark.parametrize(("predicate", "expected"), [("eq", [1, 0, 0, 0]), ("ne", [0, 1, 1, 1])])
def test_comparisons_of_pointers_into_several_buffers(predicate: str, expected: list[int]) -> None:
    body = f"""{OUT}
  %is = icmp sgt %t, i32 1 : i1
  %q = select %is, %b, %a : ptr<global>
  %p = ptradd %q, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %e = icmp {predicate} %p, %a : i1
  %x = zext %e : i32
  store i32 %po, %x"""
    made_ = made(kernel(body, "%a: ptr<global>, %b: ptr<global>, %out: ptr<global>"))
    *_, out = after(made_, [bytes(16), bytes(16), bytes(16)], (4, 1, 1))
    assert out == expected


def test_local_pointers_in_slots() -> None:
    """A slot of a pointer into local memory counts from the thread's frame."""
    text = f"""kernel @k(%out: ptr<global>, %n: i32) {LINEARISED} {{
  array @stack: local, 32 bytes, align 4
entry:
  %t = sreg tid.x : i32
  %s = slot : slot<ptr<local>>
  %i = slot {{uniform: true}} : slot<i32>
  %a = addrof @stack : ptr<local>
  %first = and %t, i32 1 : i32
  %b = ptradd %a, %first {{scale: 4, disp: 0, signed: true}} : ptr<local>
  set %s, %b
  set %i, i32 0
  br loop
loop:
  %p = get %s : ptr<local>
  %k = get %i : i32
  %v = add %k, %t : i32
  store i32 %p, %v
  %q = ptradd %p, i32 1 {{scale: 8, disp: 0, signed: true}} : ptr<local>
  set %s, %q
  %k1 = add %k, i32 1 : i32
  set %i, %k1
  %more = icmp slt %k1, i32 3 : i1
  condbr %more, loop, done
done:
  %pb = ptradd %b, i32 2 {{scale: 8, disp: 0, signed: true}} : ptr<local>
  %x = load i32 %pb : i32
  %e = get %s : ptr<local>
  %d = ptrdiff %e, %b : i64
  %d32 = trunc %d : i32
  %y = add %x, %d32 : i32
  %po = ptradd %out, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  store i32 %po, %y
  ret
}}
"""
    assert after(made(text), [bytes(20), 0], (5, 1, 1)) == [[2 + t + 24 for t in range(5)]]


@pytest.mark.parametrize("parts", ["low", "high", "both"])
def test_words_of_wide_parameters(parts: str) -> None:
    body = {
        "low": "  %x = trunc %w : i32",
        "high": "  %x = high %w : i32",
        "both": """
  %l = trunc %w : i32
  %hh = high %w : i32
  %x = sub %l, %hh : i32""",
    }[parts]
    made_ = made(kernel(f"{body}\n  store i32 %out, %x", "%out: ptr<global>, %w: i64"))
    low, high = 0x12345678, -5
    expected = {"low": low, "high": high, "both": low - high}[parts]
    assert after(made_, [bytes(4), (high << 32) + low]) == [[expected]]


@pytest.mark.parametrize("kind", ["xor", "or", "and", "add", "max_u"])
def test_atomics_of_a_value_at_a_sum_of_indices(kind: str) -> None:
    body = f"""
  %half = lshr %t, i32 1 : i32
  %v = mul %t, i32 5 : i32
  %p = ptradd %out, %half {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %q = ptradd %p, %k {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %old = atomicrmw {kind} %q, %v : i32"""
    last = "  %pk = ptradd %out, i32 7 {scale: 4, disp: 0, signed: true} : ptr<global>"
    loaded = f"{last}\n  %k = load i32 %pk : i32"
    combine = {
        "xor": lambda a, b: a ^ b,
        "or": lambda a, b: a | b,
        "and": lambda a, b: a & b,
        "add": lambda a, b: a + b,
        "max_u": max,
    }[kind]
    expected = [12] * 7 + [1]
    for t in range(8):
        place = t // 2 + 1
        expected[place] = combine(expected[place], 5 * t)
    assert after(made(kernel(loaded + body)), [words(*[12] * 7, 1), 0], (8, 1, 1)) == [expected]
