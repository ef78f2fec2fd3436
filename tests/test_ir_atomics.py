"""Serialised atomic operations against the operations one lane after the other."""

import random
import struct
from collections.abc import Callable

import pytest

from qgpu.ir import I32, Function, parse_function, verify
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.passes import Linearize, PassError, SerialiseAtomics

KERNEL = """
kernel @f(%in: ptr<global>, %memory: ptr<global>, %other: ptr<global>, %out: ptr<global>) {
entry:
  %t = sreg tid.x : i32
  %c = sreg ctaid.x : i32
  %n = sreg ntid.x : i32
  %b = mul %c, %n : i32
  %i = add %b, %t : i32
  %at = ptradd %in, %i {scale: 32, disp: 0, signed: true} : ptr<global>
  %to = ptradd %out, %i {scale: 8, disp: 0, signed: true} : ptr<global>
  %word = load i32 %at : i32
  %at8 = ptradd %at, i32 0 {scale: 1, disp: 8, signed: true} : ptr<global>
  %x = load TYPE %at8 : TYPE
  %at16 = ptradd %at, i32 0 {scale: 1, disp: 16, signed: true} : ptr<global>
  %y = load TYPE %at16 : TYPE
  %odd = trunc %word : i1
  %two = and %word, i32 2 : i32
  %second = icmp ne %two, i32 0 : i1
  %buffer = select %second, %other, %memory : ptr<global>
  %where = lshr %word, i32 8 : i32
  %p = ptradd %buffer, %where {scale: 8, disp: 0, signed: true} : ptr<global>
  BRANCH
work:
  CODE
  br done
done:
  ret
}
"""
BRANCHES = {"all": "br work", "odd": "condbr %odd, work, done"}
CELLS = 3


def signed(number: int, width: int) -> int:
    return number - (1 << width) if number >> (width - 1) else number


Operation = Callable[[int, int, int, int], int]
"""The new value from the old one, the operands, and the width in bits."""

OPERATIONS: dict[str, Operation] = {
    "add": lambda old, x, y, w: old + x,
    "xor": lambda old, x, y, w: old ^ x,
    "and": lambda old, x, y, w: old & x,
    "or": lambda old, x, y, w: old | x,
    "xchg": lambda old, x, y, w: x,
    "min_s": lambda old, x, y, w: min(signed(old, w), signed(x, w)),
    "max_s": lambda old, x, y, w: max(signed(old, w), signed(x, w)),
    "min_u": lambda old, x, y, w: min(old, x),
    "max_u": lambda old, x, y, w: max(old, x),
    "inc": lambda old, x, y, w: 0 if old >= x else old + 1,
    "dec": lambda old, x, y, w: x if old == 0 or old > x else old - 1,
    "cmpxchg": lambda old, x, y, w: y if old == x else old,
}


def serialised(text: str, warp_size: int = 4, threads: int = 11) -> Function:
    function = parse_function(text)
    verify(function)
    Linearize().run(function)
    SerialiseAtomics(warp_size=warp_size, threads=threads).run(function)
    verify(function)
    return function


def kernel(kind: str, width: int, branch: str, used: bool) -> str:
    code = "%r = cmpxchg %p, %x, %y" if kind == "cmpxchg" else f"%r = atomicrmw {kind} %p, %x"
    code = f"{code} : TYPE" + ("\n  store TYPE %to, %r" if used else "")
    return KERNEL.replace("BRANCH", BRANCHES[branch]).replace("CODE", code).replace("TYPE", f"i{width}")


@pytest.mark.parametrize("used", [True, False], ids=["used", "unused"])
@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("kind", OPERATIONS)
def test_lanes_take_turns(kind: str, width: int, branch: str, used: bool) -> None:
    function = serialised(kernel(kind, width, branch, used))
    assert {i.type for i in function.instructions if i.op == "atomicrmw"} <= {I32}
    threads, grid, mask = 11, 2, (1 << width) - 1
    for seed in range(2):
        chance = random.Random(seed)
        small = [0, 1, 2, mask, mask >> 1, 1 << 32 & mask]

        def number(chance: random.Random = chance, small: list[int] = small) -> int:
            return chance.choice([chance.choice(small), chance.choice(small), chance.getrandbits(width)])

        cells = [[number() for _ in range(CELLS)] for _ in range(2)]
        lanes = [
            (chance.randrange(4), chance.randrange(CELLS), number(), number()) for _ in range(threads * grid)
        ]
        data = b"".join(struct.pack("<I4xQQ8x", flags | cell << 8, x, y) for flags, cell, x, y in lanes)
        buffers = [bytearray(struct.pack(f"<{CELLS}Q", *row)) for row in cells]
        out = bytearray(b"\x01" * (8 * threads * grid))
        expected = bytearray(out)
        for index, (flags, cell, x, y) in enumerate(lanes):
            if branch == "odd" and not flags & 1:
                continue
            row = cells[flags >> 1]
            old = row[cell] & mask
            row[cell] = row[cell] & ~mask | OPERATIONS[kind](old, x, y, width) & mask
            if used:
                expected[8 * index : 8 * index + width // 8] = old.to_bytes(width // 8, "little")
        interpret(function, [bytearray(data), *buffers, out], (grid, 1, 1), (threads, 1, 1), warp_size=4)
        assert buffers == [struct.pack(f"<{CELLS}Q", *row) for row in cells]
        assert out == expected


def loops(text: str) -> int:
    return sum(i.op == "brany" for i in serialised(text).instructions)


def test_what_the_machine_does_in_one_block_stays() -> None:
    plain = [kernel(kind, 32, "all", False) for kind in OPERATIONS if kind not in ("inc", "dec", "cmpxchg")]
    assert [loops(text) for text in plain] == [0] * 9
    assert [loops(kernel(kind, 32, "all", True)) for kind in ("add", "xor")] == [0, 0]
    assert [loops(kernel(kind, 64, "all", True)) for kind in ("add", "xor")] == [0, 0]
    assert [loops(kernel(kind, 64, "all", False)) for kind in ("and", "or", "xchg")] == [0, 0, 0]


def test_words_of_a_pair_are_read_where_they_are() -> None:
    text = KERNEL.replace("BRANCH", "br work").replace("TYPE", "i32")
    code = """
  %wide = pack %x, %y : i64
  %r = atomicrmw max_u %p, %wide : i64
  %low = trunc %r : i32
  %h = high %r : i32
  %sum = add %low, %h : i32
  store i32 %to, %sum"""
    function = serialised(text.replace("CODE", code))
    assert not [i for i in function.instructions if i.op in ("pack", "high")]
    buffers = [bytearray(struct.pack("<I4xQQ8x", 0, 7, 9)), bytearray(struct.pack("<II", 5, 3)), bytearray(8)]
    out = bytearray(8)
    interpret(function, [*buffers, out])
    assert (struct.unpack("<II", buffers[1]), struct.unpack("<I4x", out)) == ((7, 9), (8,))


def test_rounds_are_as_many_as_changes() -> None:
    """A compare-and-swap that one lane wins takes two rounds, not one for each lane."""
    text = KERNEL.replace("BRANCH", "br work").replace("TYPE", "i32")
    function = serialised(text.replace("CODE", "%r = cmpxchg %p, %x, %y : i32\n  store i32 %to, %r"), 32, 32)
    data = b"".join(struct.pack("<I4xQQ8x", 0, 0, 100 + t) for t in range(32))
    memory, out = bytearray(8), bytearray(8 * 32)
    interpret(function, [bytearray(data), memory, bytearray(8), out], (1, 1, 1), (32, 1, 1), max_steps=2500)
    assert memory[0] == 100 and struct.unpack("<I4xI", out[:12]) == (0, 100)


def test_an_address_that_is_no_multiple_of_8_is_a_fault() -> None:
    for offset, aligned in ((0, True), (8, True), (4, False), (6, False)):
        place = "%where {scale: 8, disp: "
        text = kernel("max_u", 64, "all", True).replace(f"{place}0", f"{place}{offset}")
        buffers = [bytearray(32), bytearray(16), bytearray(16), bytearray(8)]
        if aligned:
            interpret(serialised(text), buffers)
            continue
        with pytest.raises(Fault) as caught:
            interpret(serialised(text), buffers)
        assert caught.value.kind == "alignment"


def test_less_than_a_word_is_refused() -> None:
    text = KERNEL.replace("BRANCH", "br work").replace("TYPE", "i16")
    with pytest.raises(PassError, match="'cmpxchg' on i16"):
        serialised(text.replace("CODE", "%r = cmpxchg %p, %x, %y : i16"))
