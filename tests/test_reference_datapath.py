"""The reference datapath against arithmetic on unbounded integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgpu.backends.machine.block import FAULTS, OPS, Block
from qgpu.backends.reference.datapath import OPERATIONS, Ports, evaluate

MEMORY = [0x80FF7F01, 0x00000000, 0xFFFFFFFF, 0x12345678, 7, 8, 9, 10]
word = st.integers(0, 0xFFFFFFFF) | st.sampled_from([0, 1, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])


def signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value


def compute(x: int, y: int, z: int, **fields: int | str) -> int:
    """R where X, Y, Z are the ports A, B, C."""
    block = Block(a_to_x=1, b_to_y=1, c_to_z=1, **fields)  # pyright: ignore[reportArgumentType]
    return evaluate(block, Ports(a=x, b=y, c=z, e=0, accumulator=0, lane=0), MEMORY).value


def access(a: int = 0, b: int = 0, c: int = 0, lane: int = 0, **fields: int | str) -> tuple[int, int, str]:
    """R, address and fault kind of an access."""
    result = evaluate(Block(**fields), Ports(a, b, c, lane), MEMORY)  # pyright: ignore[reportArgumentType]
    return result.value, result.address, "" if result.fault is None else FAULTS[result.fault]


def test_every_operation_is_there() -> None:
    assert OPERATIONS.keys() == OPS.keys()


@given(word, word, word)
def test_arithmetic(x: int, y: int, z: int) -> None:
    assert compute(x, y, z) == (x * y + z) % 2**32
    assert compute(x, y, z, op="shl") == (x * 2**y % 2**32 if y < 32 else 0)
    assert compute(x, y, z, op="shr") == (x // 2**y if y < 32 else 0)
    assert compute(x, y, z, op="shr", signed=1) == signed(x) // 2 ** min(y, 99) % 2**32
    assert compute(x, y, z, op="select") == (x if z % 2 else y)
    assert compute(x, y, z, op="shf") == (z * 2**32 + x) // 2 ** min(y, 32) % 2**32
    assert compute(x, y, z, op="mulhi") == (x * y // 2**32 + z) % 2**32
    assert compute(x, y, z, op="mulhi", signed=1) == (signed(x) * signed(y) // 2**32 + z) % 2**32
    assert compute(x, y, z, op="popc") == bin(x).count("1")
    assert compute(x, y, z, op="clz") == len(f"{x:b}".rjust(32, "0").partition("1")[0])
    assert compute(x, y, z, op="brev") == sum((x >> k & 1) << 31 - k for k in range(32))
    assert compute(x, y, z, op="rcp") <= 2**32 // max(x, 1)


@given(word, word, st.integers(0, 0xFFFF) | word)
def test_prmt(x: int, y: int, z: int) -> None:
    data = [*x.to_bytes(4, "little"), *y.to_bytes(4, "little")]
    digits = [z >> 4 * k & 15 for k in range(4)]
    signs = [255 * (byte > 127) for byte in data]
    expected = bytes(signs[d - 8] if d > 7 else data[d] for d in digits)
    assert compute(x, y, z, op="prmt").to_bytes(4, "little") == expected


@given(word, word, word, st.integers(0, 255))
def test_lop3(x: int, y: int, z: int, lut: int) -> None:
    expected = 0
    for bit in range(32):
        index = 4 * (x >> bit & 1) + 2 * (y >> bit & 1) + (z >> bit & 1)
        expected |= (lut >> index & 1) << bit
    assert compute(x, y, z, op="lop3", lut=lut) == expected


def test_lop3_has_the_truth_tables_of_ptx() -> None:
    ta, tb, tc = 0xF0, 0xCC, 0xAA
    assert compute(5, 3, 9, op="lop3", lut=ta & tb) == 5 & 3
    assert compute(5, 3, 9, op="lop3", lut=ta ^ tb ^ tc) == 5 ^ 3 ^ 9
    assert compute(5, 3, 9, op="lop3", lut=(ta & tb) | tc) == (5 & 3) | 9


@given(word, word, st.booleans())
def test_relations(x: int, y: int, is_signed: bool) -> None:
    p, q = (signed(x), signed(y)) if is_signed else (x, y)
    for relation, holds in ((1, p < q), (2, p == q), (3, p <= q), (4, p > q), (5, p != q), (6, p >= q)):
        fields = {"cond_lt": relation & 1, "cond_eq": relation >> 1 & 1, "cond_gt": relation >> 2}
        assert compute(x, y, 0, op="cmp", signed=int(is_signed), **fields) == holds
        assert compute(x, y, 7, op="inc", signed=int(is_signed), **fields) == 7 + holds
        assert compute(x, y, 0, op="dec", signed=int(is_signed), **fields) == -holds % 2**32
        for low in (6, 7):
            expected = low % 2 if x == y else holds
            assert compute(x, y, low, op="lex", signed=int(is_signed), **fields) == expected
        assert compute(x, y, 0, op="pick", signed=int(is_signed), **fields) == (x if holds else y)


def test_operands_come_from_their_routes() -> None:
    ports = Ports(11, 22, 33, 3)
    routes = {
        "X": ({"a_to_x": 11, "imm_to_x": 44, "m_to_x": MEMORY[0]}, {"one_to_y": 1}),
        "Y": (
            {"b_to_y": 22, "c_to_y": 33, "imm_to_y": 44, "one_to_y": 1, "ones_to_y": 2**32 - 1,
             "m_to_y": MEMORY[0]},
            {},
        ),
        "Z": ({"b_to_z": 22, "c_to_z": 33, "imm_to_z": 44}, {}),
    }  # fmt: skip
    for operand, (values, others) in routes.items():
        for route, value in values.items():
            if operand == "Y":
                block = Block(op="pick", imm=44, **{route: 1})  # pyright: ignore[reportArgumentType]
            else:
                block = Block(imm=44, **{route: 1}, **others)  # pyright: ignore[reportArgumentType]
            assert evaluate(block, ports, MEMORY).value == value, route


DESCRIPTOR = 16 << 14 | 1
"""Sixteen bytes from byte 16 on."""


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({"a": 5, "a_to_i": 1}, 5),
        ({"a": 5, "a_to_i4": 1}, 20),
        ({"lane": 3, "lane_to_i4": 1}, 12),
        ({"b": 5, "b_to_j": 1}, 5),
        ({"b": 5, "b_to_j4": 1}, 20),
        ({"imm": 6, "imm_to_j": 1}, 6),
        ({"a": 3, "a_to_i4": 1, "imm": 2**32 - 4, "imm_to_j": 1}, 8),
        ({"c": DESCRIPTOR, "c_to_d": 1, "a": 1, "a_to_i4": 1}, 20),
        ({"a": DESCRIPTOR, "a_to_d": 1, "b": 1, "b_to_j4": 1}, 20),
        ({"b": 2**32 - 4, "b_to_j": 1}, 2**32 - 4),
    ],
)
def test_addresses(fields: dict[str, int], address: int) -> None:
    assert access(**fields)[1] == address


def test_memory_wraps_where_nothing_is_checked() -> None:
    assert access(b=2**32 - 4, b_to_j=1, m_to_x=1, one_to_y=1)[0] == MEMORY[7]


@pytest.mark.parametrize("is_signed", [0, 1])
def test_parts_of_words(is_signed: int) -> None:
    data = b"".join(w.to_bytes(4, "little") for w in MEMORY)
    for offset in range(16):
        fields = {"b": offset, "b_to_j": 1, "m_sub_to_x": 1, "m_signed": is_signed, "one_to_y": 1}
        byte = int.from_bytes(data[offset : offset + 1], "little", signed=bool(is_signed))
        assert access(**fields, width8=1)[0] == byte % 2**32
        even = offset & ~1
        half = int.from_bytes(data[even : even + 2], "little", signed=bool(is_signed))
        assert access(**fields, width16=1)[0] == half % 2**32


def test_merge_replaces_one_part() -> None:
    fields = {"op": "merge", "b_to_j": 1, "m_to_x": 1, "imm_to_y": 1, "imm": 0xABCDEF98}
    for offset in range(4):
        expected = bytearray(MEMORY[3].to_bytes(4, "little"))
        expected[offset] = 0x98
        assert access(b=12 + offset, **fields, width8=1)[0] == int.from_bytes(expected, "little")
    assert access(b=14, **fields, width16=1)[0] == 0xEF985678
    assert access(b=12, **fields, width16=1)[0] == 0x1234EF98


near = st.integers(-40, 40) | st.integers(-(2**19), 2**19 - 1)


@given(near, near, st.integers(0, 40), st.sampled_from([1, 2, 4]))
def test_bounds_and_alignment_near_a_buffer(i: int, j: int, size: int, width: int) -> None:
    """Each access is out of bounds where a byte of it is, else misaligned where it is, else right."""
    fields = {"c": size << 14 | 1, "c_to_d": 1, "check": 1, "width8": width == 1, "width16": width == 2}
    for scale_i, scale_j in ((1, 1), (4, 1), (1, 4), (4, 4)):
        routes = {"a_to_i" if scale_i == 1 else "a_to_i4": 1, "b_to_j" if scale_j == 1 else "b_to_j4": 1}
        offset = i * scale_i + j * scale_j
        last = offset | width - 1
        outside = offset < 0 or last >= size
        expected = "out-of-bounds" if outside else "misaligned" if offset % width else ""
        assert access(i % 2**32, j % 2**32, **fields, **routes)[2] == expected


@pytest.mark.parametrize("bit", range(19, 32))
def test_indices_out_of_range(bit: int) -> None:
    """An index beyond 20 bits must not come round to a word of the buffer."""
    fields = {"c": 16 << 14, "c_to_d": 1, "check": 1}
    assert (
        access(1 << bit, 2**32 - (1 << bit) & 2**32 - 1, **fields, a_to_i=1, b_to_j=1)[2] == "out-of-bounds"
    )
    assert access(1 << bit, **fields, a_to_i4=1)[2] == "out-of-bounds"
    assert access(1 << bit, **fields, a_to_i4=1, i_unsigned=1)[2] == "out-of-bounds"
    assert access(b=1 << bit, **fields, b_to_j4=1)[2] == "out-of-bounds"
    assert access(2**32 - 4, 4, **fields, a_to_i=1, b_to_j=1)[2] == ""
    assert access(2**32 - 4, 4, **fields, a_to_i=1, b_to_j=1, i_unsigned=1)[2] == "out-of-bounds"
    assert access(2**32 - 1, 4, **fields, a_to_i4=1, b_to_j=1)[2] == ""
    assert access(2**32 - 1, 4, **fields, a_to_i4=1, b_to_j=1, i_unsigned=1)[2] == "out-of-bounds"


def test_a_trap_comes_before_the_address() -> None:
    assert access(imm=3, trap=1, check=1)[2] == "trap"
    assert access(check=1)[2] == "out-of-bounds"
