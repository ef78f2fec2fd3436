"""Memory in the interpreter: atomics and stores in thread order, bytes never written, pointers in memory."""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from qgpu.ir import Function, parse_function, to_signed, verify
from qgpu.ir.core.opcodes import ATOMIC_KINDS
from qgpu.ir.interpreter import Fault, interpret


@cache
def kernel(body: str, parameters: str) -> Function:
    function = parse_function(f"kernel @k({parameters}) {{\n{body}\n}}")
    verify(function)
    return function


def run(
    body: str, *args: int | bytearray, parameters: str = "%p: ptr<global>", threads: int = 1, **rest
) -> None:
    interpret(kernel(body, parameters), args, block=(threads, 1, 1), **rest)


def packed(values: list[int], width: int) -> bytearray:
    return bytearray(b"".join(value.to_bytes(width // 8, "little") for value in values))


def unpacked(data: bytearray, width: int) -> list[int]:
    return [int.from_bytes(data[at : at + width // 8], "little") for at in range(0, len(data), width // 8)]


# One thread's atomic operation: what memory holds after it (PTX ISA, atom).
MODEL: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda old, new, w: (old + new) % 2**w,
    "min_s": lambda old, new, w: old if to_signed(old, w) < to_signed(new, w) else new,
    "max_s": lambda old, new, w: old if to_signed(old, w) > to_signed(new, w) else new,
    "min_u": lambda old, new, w: min(old, new),
    "max_u": lambda old, new, w: max(old, new),
    "and": lambda old, new, w: old & new,
    "or": lambda old, new, w: old | new,
    "xor": lambda old, new, w: old ^ new,
    "xchg": lambda old, new, w: new,
    "inc": lambda old, new, w: 0 if old >= new else old + 1,
    "dec": lambda old, new, w: new if old == 0 or old > new else old - 1,
}
ATOMIC = """
entry:
  %t = sreg tid.x : i32
  %qi = ptradd %index, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  %i = load i32 %qi : i32
  %qv = ptradd %operand, %t {{scale: {size}, disp: 0, signed: true}} : ptr<global>
  %v = load {type} %qv : {type}
  %q = ptradd %p, %i {{scale: {size}, disp: 0, signed: true}} : ptr<global>
  %old = {op} : {type}
  {use}
  ret"""
STORE_OLD = """%qo = ptradd %out, %t {{scale: {size}, disp: 0, signed: true}} : ptr<global>
  store {type} %qo, %old"""
FOUR = "%p: ptr<global>, %index: ptr<global>, %operand: ptr<global>, %out: ptr<global>"


@dataclass(frozen=True)
class Conflict:
    """Numbers of a width: a little memory, and for each thread a place in it and an operand."""

    width: int
    memory: list[int]
    places: list[int]
    operands: list[int]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.places, self.operands, strict=True))


def conflict(seed: int) -> Conflict:
    chance = random.Random(seed)
    width = (8, 16, 32, 64)[seed % 4]
    corners = [0, 1, 2, 3, 2 ** (width - 1), 2**width - 1, chance.getrandbits(width)]
    threads = chance.randint(1, 12)
    memory = chance.choices(corners, k=chance.randint(1, 4))
    places = chance.choices(range(len(memory)), k=threads)
    return Conflict(width, memory, places, chance.choices(corners, k=threads))


def atomic(op: str, case: Conflict, used: bool) -> tuple[list[int], list[int]]:
    """Memory and old values after an atomic operation of all threads."""
    width, threads = case.width, len(case.places)
    data, out = packed(case.memory, width), packed([0] * threads, width)
    names = {"type": f"i{width}", "size": width // 8}
    use = STORE_OLD.format(**names) if used else ""
    body = ATOMIC.format(op=op.format(**names), use=use, **names)
    arguments = (data, packed(case.places, 32), packed(case.operands, width), out)
    run(body, *arguments, parameters=FOUR, threads=threads)
    return unpacked(data, width), unpacked(out, width)


@pytest.mark.parametrize("kind", ATOMIC_KINDS)
@pytest.mark.parametrize("used", [True, False])
def test_atomics_take_turns_in_thread_order(kind: str, used: bool) -> None:
    for case in map(conflict, range(60)):
        expected, old = list(case.memory), []
        for place, operand in case.pairs:
            old.append(expected[place])
            expected[place] = MODEL[kind](expected[place], operand, case.width)
        found = atomic(f"atomicrmw {kind} %q, %v", case, used)
        assert found == (expected, old if used else [0] * len(old)), case


@pytest.mark.parametrize("expecting", range(4))
def test_compare_and_swap_takes_turns_in_thread_order(expecting: int) -> None:
    for case in map(conflict, range(60)):
        expected, old = list(case.memory), []
        for place, operand in case.pairs:
            old.append(expected[place])
            expected[place] = operand if expected[place] == expecting else expected[place]
        assert atomic(f"cmpxchg %q, {{type}} {expecting}, %v", case, True) == (expected, old), case


def test_of_stores_to_one_place_the_highest_thread_is_last() -> None:
    body = ATOMIC.replace("%old = {op} : {type}", "store {type} %q, %v")
    for case in map(conflict, range(60)):
        names = {"type": f"i{case.width}", "size": case.width // 8, "op": "", "use": ""}
        data = packed(case.memory, case.width)
        arguments = (data, packed(case.places, 32), packed(case.operands, case.width), bytearray(1))
        run(body.format(**names), *arguments, parameters=FOUR, threads=len(case.places))
        expected = list(case.memory)
        for place, operand in case.pairs:
            expected[place] = operand
        assert unpacked(data, case.width) == expected, case


def test_an_access_of_both_kinds_of_memory_by_different_threads() -> None:
    """Thread 0 writes to shared memory, thread 1 to global, through one pointer."""
    data = packed([7, 7, 7], 32)
    run(
        """
        array @a: shared, 8 bytes, align 4
        entry:
          %t = sreg tid.x : i32
          %c = icmp eq %t, i32 0 : i1
          %s = addrof @a : ptr<shared>
          %sg = ptrcast %s : ptr<generic>
          %pg = ptrcast %p : ptr<generic>
          %w = select %c, %sg, %pg : ptr<generic>
          %q = ptradd %w, i32 4 {scale: 1, disp: 0, signed: true} : ptr<generic>
          store i32 %q, %t
          %v = load i32 %q : i32
          %to = ptradd %p, %t {scale: 8, disp: 0, signed: true} : ptr<global>
          store i32 %to, %v
          ret""",
        data,
        threads=2,
    )
    assert unpacked(data, 32) == [0, 1, 1]


POINTER = "{{scale: {}, disp: {}, signed: true}} : ptr<{}>"
ATOMIC_ADD = "atomicrmw add %r, i32 1 : i32"


def reading(space: str, written: int, access: str, use: str) -> str:
    """A kernel that writes some low bytes of a word, and reads at that word."""
    stores = [f"  store i8 %s{at}, i8 5" for at in range(written)]
    places = [f"  %s{at} = ptradd %b, i32 0 {POINTER.format(1, 4 + at, space)}" for at in range(written)]
    lines = [f"array @a: {space}, 8 bytes, align 4", "entry:", "  %t = sreg tid.x : i32"]
    lines += [f"  %b = addrof @a : ptr<{space}>", *places, *stores]
    lines += [f"  %r = ptradd %b, i32 0 {POINTER.format(1, 4, space)}", f"  %v = {access}", use]
    return "\n".join(lines)


@pytest.mark.parametrize("space", ["shared", "local"])
@pytest.mark.parametrize("access", ["load i32 %r : i32", "load i8 %r {ext: zero} : i32", ATOMIC_ADD])
@pytest.mark.parametrize("written", [0, 1, 2, 4])
def test_a_read_of_bytes_never_written(space: str, access: str, written: int) -> None:
    body = reading(space, written, access, "  store i32 %p, %v\n  ret")
    if written >= (1 if "i8" in access else 4):
        run(body, bytearray(4), threads=2)
        return
    with pytest.raises(Fault, match="at offset 4 of 'a', not all written in '%v") as caught:
        run(body, bytearray(4), threads=2)
    assert (caught.value.kind, caught.value.thread) == ("uninitialised", 0)


INNER = f"ptradd %b, i32 0 {POINTER.format(1, 0, 'shared')}"
DECIDING = {
    "a branch": "  %c = icmp eq %v, i32 0 : i1\n  condbr %c, one, out\none:\n  br out\nout:\n  ret",
    "an address": f"  %q = ptradd %p, %v {POINTER.format(0, 0, 'global')}\n  store i32 %q, i32 1\n  ret",
    "an operand": "  %w = mul %v, i32 2 : i32\n  %o = atomicrmw add %p, %w : i32\n  ret",
    "a vote": "  %c = trunc %v : i1\n  %m = ballot %c, i32 -1 : i32\n  ret",
    "a copy": f"  %q = {INNER}\n  store i32 %q, %v\n  %w = load i32 %q : i32\n  store i32 %p, %w\n  ret",
    "a text": '  printf %v {format: "%d"}\n  ret',
    "a phi": "  br next\nnext:\n  %w = phi [%v, entry] : i32\n  store i32 %p, %w\n  ret",
}
HARMLESS = {
    "nothing": "  ret",
    "a copy that is overwritten": f"  %q = {INNER}\n  store i32 %q, %v\n  store i32 %q, %t\n"
    "  %w = load i32 %q : i32\n  store i32 %p, %w\n  ret",
    "what is not chosen": "  %c = icmp ult %t, i32 9 : i1\n  %w = select %c, i32 0, %v : i32\n"
    "  store i32 %p, %w\n  ret",
}

ABSORBED = {
    "and i32 {other}, %v : i32": (0, 1),
    "and %v, i32 {other} : i32": (0, -2),
    "or %v, i32 {other} : i32": (-1, 0x7FFFFFFF),
    "mul %v, i32 {other} : i32": (0, 2),
    "mulhi_s i32 {other}, %v : i32": (0, 1),
    "mulhi_u %v, i32 {other} : i32": (0, 1),
    "and %c, i1 {other} : i1": (0, 1),
    "or i1 {other}, %c : i1": (1, 0),
    "select %c, i32 {other}, i32 7 : i32": (7, 6),
    "select %c, %p, %same{other} : ptr<global>": (0, 4),
}
"""Computed from %v or %c, never written: an operand that gives it alone, and one that does not."""


@pytest.mark.parametrize("line", ABSORBED)
def test_what_the_other_operand_gives_alone(line: str) -> None:
    results = {
        "i1": "  %z = zext %w : i32\n  store i32 %p, %z",
        "i32": "  store i32 %p, %w",
        "ptr<global>": "  store i32 %w, i32 1",
    }
    preparation = (
        "  %c = icmp eq %v, i32 5 : i1\n"
        f"  %same0 = ptradd %p, i32 0 {POINTER.format(1, 0, 'global')}\n"
        f"  %same4 = ptradd %p, i32 0 {POINTER.format(1, 4, 'global')}\n"
    )
    result = results[line.rpartition(" : ")[2]]
    absorbing, other = ABSORBED[line]

    def attempt(operand: int) -> None:
        use = f"{preparation}  %w = {line.format(other=operand)}\n{result}\n  ret"
        run(reading("shared", 3, "load i32 %r : i32", use), bytearray(8), threads=2)

    attempt(absorbing)
    with pytest.raises(Fault, match="not all written in '%v = load"):
        attempt(other)


def test_an_operand_that_was_never_written_absorbs_nothing() -> None:
    """The 0 that stands where nobody wrote is no 0."""
    use = "  %w = and %v, i32 6 : i32\n  store i32 %p, %w\n  ret"
    with pytest.raises(Fault, match="not all written in '%v = load"):
        run(reading("shared", 0, "load i32 %r : i32", use), bytearray(4))


def test_each_thread_has_its_own_operand_that_absorbs() -> None:
    """Thread 0 multiplies with 0, and thread 1 with 1."""
    use = "  %w = mul %v, %t : i32\n  store i32 %p, %w\n  ret"
    with pytest.raises(Fault) as caught:
        run(reading("shared", 3, "load i32 %r : i32", use), bytearray(4), threads=2)
    assert caught.value.thread == 1


@pytest.mark.parametrize("use", DECIDING)
def test_what_was_never_written_decides_something(use: str) -> None:
    with pytest.raises(Fault, match=r"not all written in '%[vw] = load") as caught:
        run(reading("shared", 3, "load i32 %r : i32", DECIDING[use]), bytearray(4), threads=2)
    assert (caught.value.kind, caught.value.thread) == ("uninitialised", 0)


@pytest.mark.parametrize("use", HARMLESS)
def test_what_was_never_written_decides_nothing(use: str) -> None:
    """A compiler may load what it does not need."""
    data = packed([9], 32)
    run(reading("shared", 3, "load i32 %r : i32", HARMLESS[use]), data, threads=2)
    assert unpacked(data, 32) == [{"nothing": 9, "what is not chosen": 0}.get(use, 1)]


def test_the_thread_that_used_what_was_never_written() -> None:
    """Each thread reads its own word; thread 2 has not written it, and thread 3 is not asked."""
    body = """
    array @a: shared, 16 bytes, align 4
    entry:
      %t = sreg tid.x : i32
      %b = addrof @a : ptr<shared>
      %q = ptradd %b, %t {scale: 4, disp: 0, signed: true} : ptr<shared>
      %low = icmp ult %t, i32 2 : i1
      condbr %low, write, read
    write:
      store i32 %q, %t
      br read
    read:
      %v = load i32 %q : i32
      %mine = icmp ult %t, i32 LAST : i1
      condbr %mine, use, out
    use:
      store i32 %p, %v
      br out
    out:
      ret"""
    data = packed([9], 32)
    run(body.replace("LAST", "2"), data, threads=4)
    assert unpacked(data, 32) == [1]
    with pytest.raises(Fault) as caught:
        run(body.replace("LAST", "3"), data, threads=4)
    assert (caught.value.kind, caught.value.thread) == ("uninitialised", 2)


def test_shared_memory_is_undefined_again_in_the_next_thread_block() -> None:
    body = """
    array @a: shared, 4 bytes, align 4
    entry:
      %b = sreg ctaid.x : i32
      %s = addrof @a : ptr<shared>
      %first = icmp eq %b, i32 0 : i1
      condbr %first, write, read
    write:
      store i32 %s, i32 3
      br read
    read:
      %v = load i32 %s : i32
      store i32 %p, %v
      ret"""
    run(body, bytearray(4))
    with pytest.raises(Fault, match="not all written"):
        run(body, bytearray(4), grid=(2, 1, 1))


def test_global_and_constant_arrays_start_every_launch_as_their_data() -> None:
    body = """
    array @g: global, 8 bytes, align 4, data "05000000"
    array @c: const, 4 bytes, align 4, data "0a"
    entry:
      %g = addrof @g : ptr<global>
      %c = addrof @c : ptr<const>
      %k = load i32 %c : i32
      %old = atomicrmw add %g, %k : i32
      %b = sreg ctaid.x : i32
      %q = ptradd %p, %b {scale: 4, disp: 0, signed: true} : ptr<global>
      store i32 %q, %old
      ret"""
    for _ in range(2):
        data = packed([0, 0], 32)
        run(body, data, grid=(2, 1, 1))
        assert unpacked(data, 32) == [5, 15]


def test_dynamic_shared_memory() -> None:
    body = """
    array @a: shared, 0 bytes, align 4
    array @b: shared, 0 bytes, align 4
    entry:
      %a = addrof @a : ptr<shared>
      %q = ptradd %a, i32 8 {scale: 1, disp: 0, signed: true} : ptr<shared>
      store i32 %q, i32 5
      %b = addrof @b : ptr<shared>
      %r = ptradd %b, i32 8 {scale: 1, disp: 0, signed: true} : ptr<shared>
      %v = load i32 %r : i32
      store i32 %p, %v
      ret"""
    data = packed([0], 32)
    run(body, data, shared_bytes=12)
    assert unpacked(data, 32) == [5]
    with pytest.raises(Fault, match="offset 8 of 'a', which has 8 bytes"):
        run(body, data, shared_bytes=8)


POINTERS = """
array @m: local, 16 bytes, align 8
entry:
  %m = addrof @m : ptr<local>
  %t = sreg tid.x : i32
  %own = ptradd %p, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  store ptr<global> %m, %own
  {between}
  %q = load {type} %m : {type}
  {use}
  ret"""


def test_pointers_go_through_memory() -> None:
    data = packed([9, 9, 9], 32)
    run(POINTERS.format(between="", type="ptr<global>", use="store i32 %q, %t"), data, threads=3)
    assert unpacked(data, 32) == [0, 1, 2]


@pytest.mark.parametrize(
    ("between", "type_"), [("", "i64"), ("", "ptr<shared>"), ("store i32 %m, %t", "ptr<global>")]
)
def test_pointers_and_numbers_in_memory_are_not_the_same(between: str, type_: str) -> None:
    with pytest.raises(Fault) as caught:
        run(POINTERS.format(between=between, type=type_, use=""), bytearray(12), threads=3)
    assert caught.value.kind == "pointer"


def test_buffers_given_twice_are_one_and_must_not_overlap_otherwise() -> None:
    body = """
    entry:
      store i32 %q, i32 5
      %v = load i32 %p : i32
      %w = add %v, i32 1 : i32
      store i32 %p, %w
      ret"""
    both = "%p: ptr<global>, %q: ptr<global>"
    data = packed([0, 0], 32)
    run(body, data, data, parameters=both)
    assert unpacked(data, 32) == [6, 0]
    with pytest.raises(ValueError, match="overlaps"):
        run(body, memoryview(data)[:4], data, parameters=both)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="read-only"):
        run(body, bytes(8), data, parameters=both)  # pyright: ignore[reportArgumentType]


def test_the_lowest_thread_is_to_blame() -> None:
    """Threads 2 and up read past the end; thread 1 is not aligned."""
    body = """
    entry:
      %t = sreg tid.x : i32
      %q = ptradd %p, %t {scale: 6, disp: 0, signed: true} : ptr<global>
      store i32 %q, %t
      ret"""
    data = bytearray(struct.pack("<3i", 1, 2, 3))
    with pytest.raises(Fault) as caught:
        run(body, data, threads=4)
    assert (caught.value.kind, caught.value.thread) == ("alignment", 1)
    assert caught.value.instruction is not None and caught.value.instruction.op == "store"
