"""The interpreter's operations on arrays against the opcode table, which has them on single numbers."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgpu.ir import I1, I8, I16, I32, I64, OPCODES, IntType, Shape
from qgpu.ir.core.opcodes import ICMP_PREDICATES, PERMUTE_MODES
from qgpu.ir.interpreter.arithmetic import OPERATIONS, operation
from qgpu.ir.interpreter.values import UNSIGNED

TYPES = (I1, I8, I16, I32, I64)
PURE = [name for name, info in OPCODES.items() if info.evaluate is not None]
ATTRIBUTES = {
    "icmp": [{"pred": predicate} for predicate in ICMP_PREDICATES],
    "prmt": [{"mode": mode} for mode in PERMUTE_MODES],
    "lop3": [{"lut": lut} for lut in (0, 0x80, 0x96, 0xCA, 0x3F, 0xFF)],
}
CASTS = {"sext": 1, "zext": 1, "trunc": -1}
FIXED = {"pack": Shape(32, 64), "high": Shape(64, 32)}


def test_every_opcode_with_a_definition_has_a_row() -> None:
    assert sorted(OPERATIONS) == sorted(PURE)


def shapes(op: str) -> list[Shape]:
    """The shapes that an opcode may have."""
    info = OPCODES[op]
    if op in FIXED:
        return [FIXED[op]]
    if op in CASTS:
        pairs = [(a, b) for a in TYPES for b in TYPES if (b.width - a.width) * CASTS[op] > 0]
        return [Shape(a.width, b.width) for a, b in pairs]
    widths = [32] if info.operands[0] == "i32" else [type_.width for type_ in TYPES]
    return [
        Shape(1 if op == "select" else width, 1 if op == "icmp" else width, attributes)
        for width in widths
        for attributes in ATTRIBUTES.get(op, [{}])
    ]


def operand_types(op: str, shape: Shape) -> list[IntType]:
    by_width = {type_.width: type_ for type_ in TYPES}
    patterns = {"i1": I1, "i32": I32, "i64": I64, "A": by_width[shape.operand], "T": by_width[shape.operand]}
    patterns["V"] = by_width[shape.result if op == "select" else shape.operand]
    return [patterns[pattern] for pattern in OPCODES[op].operands]


def numbers(type_: IntType) -> st.SearchStrategy[int]:
    corners = [0, 1, 2, 7, 8, 31, 32, 63, 64, 255, 256, type_.width, type_.mask // 2, type_.mask // 2 + 1]
    small = st.sampled_from([corner & type_.mask for corner in [*corners, type_.mask - 1, type_.mask]])
    return small | st.integers(0, type_.mask)


def check(op: str, shape: Shape, rows: Sequence[Sequence[int]]) -> None:
    evaluate = OPCODES[op].evaluate
    assert evaluate is not None
    types = operand_types(op, shape)
    columns = [
        np.array(column, UNSIGNED[type_.width])
        for column, type_ in zip(zip(*rows, strict=True), types, strict=True)
    ]
    found = operation(op, shape)(*columns)
    assert found.dtype == UNSIGNED[shape.result]
    assert [int(value) for value in found] == [evaluate(shape, row) % 2**shape.result for row in rows]


@pytest.mark.parametrize("op", PURE)
@settings(max_examples=60)
@given(data=st.data())
def test_operation(op: str, data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(shapes(op)))
    row = st.tuples(*map(numbers, operand_types(op, shape)))
    check(op, shape, data.draw(st.lists(row, min_size=1, max_size=4)))


@pytest.mark.parametrize("op", [op for op in PURE if len(OPCODES[op].operands) <= 2])
def test_all_pairs_of_bytes(op: str) -> None:
    """Every operand pair of 8 bits, at once."""
    for shape in shapes(op):
        if shape.operand == 8:
            arity = len(OPCODES[op].operands)
            grid = np.indices((256,) * arity).reshape(arity, -1)
            step = 1 if arity == 1 else 37
            check(op, shape, grid.T[::step].tolist())
