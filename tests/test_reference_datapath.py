"""The reference datapath against arithmetic on unbounded integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgpu.backends.machine.block import EXCLUSIVE_ROUTES, FAULTS, OPS, Block
from qgpu.backends.reference.datapath import OPERATIONS, Ports, Result, evaluate

MEMORY = [0x80FF7F01, 0x00000000, 0xFFFFFFFF, 0x12345678, 7, 8, 9, 10]
word = st.integers(0, 0xFFFFFFFF) | st.sampled_from([0, 1, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])


def signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value


def compute(x: int, y: int, z: int, **fields: int | str) -> int:
    """R where X, Y, Z are the ports A, B, C."""
    block = Block(a_to_x=1, b_to_y=1, c_to_z=1, **fields)  # pyright: ignore[reportArgumentType]
    return evaluate(block, Ports(a=x, b=y, c=z, e=0, accumulator=0, lane=0), MEMORY).value


def run(a: int = 0, c: int = 0, e: int = 0, lane: int = 0, **fields: int | str) -> Result:
    """What a block computes where the ports hold these values."""
    ports = Ports(a=a, b=0, c=c, e=e, accumulator=0, lane=lane)
    return evaluate(Block(**fields), ports, MEMORY)  # pyright: ignore[reportArgumentType]


def kind(result: Result) -> str:
    return "" if result.fault is None else FAULTS[result.fault]


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


PORTS = Ports(a=11, b=22, c=33, e=0, accumulator=66, lane=3)
ROUTES = {
    "X": ({"a_to_x": 11, "imm_to_x": 44, "m_to_x": MEMORY[0]}, {"one_to_y": 1}),
    "Y": (
        {
            "b_to_y": 22,
            "c_to_y": 33,
            "imm_to_y": 44,
            "one_to_y": 1,
            "ones_to_y": 2**32 - 1,
            "m_to_y": MEMORY[0],
        },
        {"op": "pick"},
    ),
    "Z": ({"b_to_z": 22, "c_to_z": 33, "imm_to_z": 44, "dest_to_z": 66, "m2_to_z": MEMORY[0]}, {}),
}


@pytest.mark.parametrize("operand", ROUTES)
def test_operands_come_from_their_routes(operand: str) -> None:
    values, others = ROUTES[operand]
    assert sorted(values) == sorted(set(EXCLUSIVE_ROUTES[operand]) - {"m_sub_to_x"})
    for route, value in values.items():
        block = Block(imm=44, **{route: 1}, **others)  # pyright: ignore[reportArgumentType]
        assert evaluate(block, PORTS, MEMORY).value == value, route


DESCRIPTOR = 16 << 14 | 1
"""Sixteen bytes from byte 16 on."""


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({"a": 5, "a_to_i": 1}, 5),
        ({"a": 5, "a_to_i4": 1}, 20),
        ({"lane": 3, "lane_to_i4": 1}, 12),
        ({"e": 5, "e_to_j": 1}, 5),
        ({"e": 5, "e_to_j4": 1}, 20),
        ({"imm": 6, "imm_to_j": 1}, 6),
        ({"a": 3, "a_to_i4": 1, "imm": 2**32 - 4, "imm_to_j": 1}, 8),
        ({"c": DESCRIPTOR, "c_to_d": 1, "a": 1, "a_to_i4": 1}, 20),
        ({"a": DESCRIPTOR, "a_to_d": 1, "e": 1, "e_to_j4": 1}, 20),
        ({"e": 2**32 - 4, "e_to_j": 1}, 2**32 - 4),
    ],
)
def test_addresses(fields: dict[str, int], address: int) -> None:
    assert run(**fields).address == address


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({"e": DESCRIPTOR, "e_to_d2": 1}, 16),
        ({"a": 5, "a_to_i": 1, "i_to_k": 1}, 5),
        ({"a": 5, "a_to_i4": 1, "i_to_k": 1}, 20),
        ({"a": 5, "a_to_i4": 1}, 0),
        ({"lane": 3, "lane_to_i4": 1, "i_to_k": 1}, 12),
        ({"imm": 24, "imm_to_k": 1, "e": DESCRIPTOR, "e_to_d2": 1}, 40),
        ({"a": 2, "a_to_i4": 1, "i_to_k": 1, "imm": 4, "imm_to_j": 1, "e": DESCRIPTOR, "e_to_d2": 1}, 24),
        ({"c": DESCRIPTOR, "c_to_d": 1}, 0),
        ({"imm": 2**32 - 4, "imm_to_k": 1}, 2**32 - 4),
    ],
)
def test_addresses_of_the_second_access(fields: dict[str, int], address: int) -> None:
    """Its index is that of the first access or a constant, and the displacement is the first's alone."""
    assert run(**fields).second == address


def test_memory_wraps_where_nothing_is_checked() -> None:
    assert run(e=2**32 - 4, e_to_j=1, m_to_x=1, one_to_y=1).value == MEMORY[7]
    assert run(imm=2**32 - 4, imm_to_k=1, m2_to_z=1).value == MEMORY[7]


@pytest.mark.parametrize("is_signed", [0, 1])
def test_parts_of_words(is_signed: int) -> None:
    data = b"".join(w.to_bytes(4, "little") for w in MEMORY)
    for offset in range(16):
        fields = {"e": offset, "e_to_j": 1, "m_sub_to_x": 1, "m_signed": is_signed, "one_to_y": 1}
        byte = int.from_bytes(data[offset : offset + 1], "little", signed=bool(is_signed))
        assert run(**fields, width8=1).value == byte % 2**32
        even = offset & ~1
        half = int.from_bytes(data[even : even + 2], "little", signed=bool(is_signed))
        assert run(**fields, width16=1).value == half % 2**32


def test_merge_replaces_one_part() -> None:
    fields = {"op": "merge", "e_to_j": 1, "m_to_x": 1, "imm_to_y": 1, "imm": 0xABCDEF98}
    for offset in range(4):
        expected = bytearray(MEMORY[3].to_bytes(4, "little"))
        expected[offset] = 0x98
        assert run(e=12 + offset, **fields, width8=1).value == int.from_bytes(expected, "little")
    assert run(e=14, **fields, width16=1).value == 0xEF985678
    assert run(e=12, **fields, width16=1).value == 0x1234EF98


near = st.integers(-40, 40) | st.integers(-(2**19), 2**19 - 1)


def expected_fault(offset: int, size: int, width: int) -> str:
    """An access is out of bounds where a byte of its aligned place is, else misaligned where it is."""
    outside = offset < 0 or (offset | width - 1) >= size
    return "out-of-bounds" if outside else "misaligned" if offset % width else ""


@given(near, near, st.integers(0, 40), st.sampled_from([1, 2, 4]))
def test_bounds_and_alignment_near_a_buffer(i: int, j: int, size: int, width: int) -> None:
    fields = {"c": size << 14 | 1, "c_to_d": 1, "check": 1, "width8": width == 1, "width16": width == 2}
    for scale_i, scale_j in ((1, 1), (4, 1), (1, 4), (4, 4)):
        routes = {"a_to_i" if scale_i == 1 else "a_to_i4": 1, "e_to_j" if scale_j == 1 else "e_to_j4": 1}
        found = kind(run(i % 2**32, e=j % 2**32, **fields, **routes))
        assert found == expected_fault(i * scale_i + j * scale_j, size, width)


@given(near, st.integers(0, 40))
def test_bounds_and_alignment_of_the_second_access(k: int, size: int) -> None:
    """It is one of words, whatever the width of the first."""
    fields = {"e": size << 14 | 1, "e_to_d2": 1, "check2": 1, "width8": 1}
    by_index = {"a": k % 2**32, "i_to_k": 1}
    assert kind(run(**fields, **by_index, a_to_i=1)) == expected_fault(k, size, 4)
    assert kind(run(**fields, **by_index, a_to_i4=1)) == expected_fault(4 * k, size, 4)
    assert kind(run(**fields, imm=k % 2**32, imm_to_k=1)) == expected_fault(k, size, 4)
    assert kind(run(**fields)) == expected_fault(0, size, 4)


BUFFER = 16 << 14
FIRST_FAULTS = {"": 4, "misaligned": 6, "out-of-bounds": 16}
"""The first access's index, by the fault that it gives; its displacement is 0."""
SECOND_FAULTS = {"": 8, "misaligned": 9, "out-of-bounds": 18}


@pytest.mark.parametrize("second", SECOND_FAULTS)
@pytest.mark.parametrize("first", FIRST_FAULTS)
def test_the_first_access_is_looked_at_first(first: str, second: str) -> None:
    fields = {"c": BUFFER, "c_to_d": 1, "e": BUFFER, "e_to_d2": 1, "a": FIRST_FAULTS[first], "a_to_i": 1}
    fields |= {"check2": 1, "imm": SECOND_FAULTS[second], "imm_to_k": 1}
    assert kind(run(**fields, check=1)) == (first or second)
    assert kind(run(**fields, check=0)) == second


@pytest.mark.parametrize("bit", range(19, 32))
def test_indices_out_of_range(bit: int) -> None:
    """An index beyond 20 bits must not come round to a word of the buffer."""
    fields = {"c": 16 << 14, "c_to_d": 1, "check": 1}
    opposite = 2**32 - (1 << bit) & 2**32 - 1
    assert kind(run(1 << bit, e=opposite, **fields, a_to_i=1, e_to_j=1)) == "out-of-bounds"
    assert kind(run(1 << bit, **fields, a_to_i4=1)) == "out-of-bounds"
    assert kind(run(1 << bit, **fields, a_to_i4=1, i_unsigned=1)) == "out-of-bounds"
    assert kind(run(e=1 << bit, **fields, e_to_j4=1)) == "out-of-bounds"
    assert kind(run(1 << bit, e=16 << 14, e_to_d2=1, check2=1, a_to_i4=1, i_to_k=1)) == "out-of-bounds"


def test_an_index_of_either_sign() -> None:
    fields = {"c": 16 << 14, "c_to_d": 1, "check": 1, "e": 4, "e_to_j": 1}
    for index, route in ((2**32 - 4, "a_to_i"), (2**32 - 1, "a_to_i4")):
        assert kind(run(index, **fields, **{route: 1})) == ""
        assert kind(run(index, **fields, **{route: 1}, i_unsigned=1)) == "out-of-bounds"


def test_a_trap_comes_before_the_address() -> None:
    assert kind(run(imm=3, trap=1, check=1, check2=1)) == "trap"
    assert kind(run(check=1)) == kind(run(check2=1)) == "out-of-bounds"
