"""Expressions of the code generator as numbers: what they mean, and how to draw random ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from qgpu.ir import BasicBlock
from qgpu.toolchain.codegen.nodes import EQUAL, GREATER, LESS, MEMORY, Expression, Node, Operand, signed

WORDS = st.one_of(
    st.sampled_from([0, 1, 2, 3, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF]),
    st.integers(0, 0xFFFFFFFF),
)
CONSTANTS = st.sampled_from([0, 1, 2, 5, 8, 0xFFFFFFFF, 0xFFFFFFFB, 123456789])


def meaning(expression: Expression, values: Mapping[Any, int]) -> int:
    """The result of an expression for the values of its operands; constants mean themselves.

    Written from the table of operations in the block format (`OPS`).
    """
    x, y, z = (operand if isinstance(operand, int) else values[operand] for operand in expression.operands)
    return _OPERATIONS[expression.op](expression, x, y, z) & 0xFFFFFFFF


def _holds(expression: Expression, x: int, y: int) -> bool:
    a, b = (signed(x), signed(y)) if expression.signed else (x, y)
    return bool(expression.relation & (LESS if a < b else EQUAL if a == b else GREATER))


def _logic(expression: Expression, x: int, y: int, z: int) -> int:
    index = lambda bit: 4 * (x >> bit & 1) + 2 * (y >> bit & 1) + (z >> bit & 1)  # noqa: E731
    return sum((expression.lut >> index(bit) & 1) << bit for bit in range(32))


def _permuted(expression: Expression, x: int, y: int, z: int) -> int:
    data = (y << 32 | x).to_bytes(8, "little")
    digits = [z >> 4 * place & 15 for place in range(4)]
    taken = [(255 * (data[d & 7] > 127)) if d & 8 else data[d] for d in digits]
    return int.from_bytes(bytes(taken), "little")


_OPERATIONS = {
    "mad": lambda e, x, y, z: x * y + z,
    "lop3": _logic,
    "shl": lambda e, x, y, z: x << y if y < 32 else 0,
    "shr": lambda e, x, y, z: (signed(x) if e.signed else x) >> min(y, 32),
    "cmp": lambda e, x, y, z: int(_holds(e, x, y)),
    "pick": lambda e, x, y, z: x if _holds(e, x, y) else y,
    "select": lambda e, x, y, z: x if z & 1 else y,
    "popc": lambda e, x, y, z: x.bit_count(),
    "mulhi": lambda e, x, y, z: ((signed(x) * signed(y) if e.signed else x * y) >> 32) + z,
    "inc": lambda e, x, y, z: z + _holds(e, x, y),
    "dec": lambda e, x, y, z: z - _holds(e, x, y),
    "lex": lambda e, x, y, z: z & 1 if x == y else int(_holds(e, x, y)),
    "shf": lambda e, x, y, z: (z << 32 | x) >> min(y, 32),
    "prmt": _permuted,
    "clz": lambda e, x, y, z: 32 - x.bit_length(),
    "brev": lambda e, x, y, z: int(f"{x:032b}"[::-1], 2),
}


def expressions(operands: st.SearchStrategy[Operand]) -> st.SearchStrategy[Expression]:
    """Expressions as lowering makes them: what an operation does not read is 0."""
    relations = st.sampled_from([LESS, EQUAL, GREATER, LESS | EQUAL, EQUAL | GREATER, LESS | GREATER])
    triples = st.tuples(operands, operands, operands)
    mads = [
        st.builds(lambda a, b: Expression("mad", a, 1, b), operands, operands),
        st.builds(lambda a, b: Expression("mad", a, 0xFFFFFFFF, b), operands, operands),
        st.builds(lambda a, b: Expression("mad", a, b, 0), operands, operands),
        st.builds(lambda a: Expression("mad", 0, 0, a), operands),
    ]
    return st.one_of(
        *mads,
        st.builds(
            lambda a, b, lut: Expression("lop3", a, b, 0, lut), operands, operands, st.integers(0, 255)
        ),
        st.builds(lambda a, b, s: Expression("shr", a, b, signed=s), operands, operands, st.booleans()),
        st.builds(lambda a, b: Expression("shl", a, b), operands, operands),
        st.builds(
            lambda a, b, r, s: Expression("cmp", a, b, 0, 0, r, s),
            operands,
            operands,
            relations,
            st.booleans(),
        ),
        st.builds(
            lambda a, b, r, s: Expression("pick", a, b, 0, 0, r, s),
            operands,
            operands,
            st.sampled_from([LESS, GREATER]),
            st.booleans(),
        ),
        st.builds(
            lambda a, r, s: Expression("lex", a[0], a[1], a[2], 0, r, s),
            triples,
            st.sampled_from([LESS, GREATER, LESS | GREATER]),
            st.booleans(),
        ),
        st.builds(lambda a, b, s: Expression("mulhi", a, b, signed=s), operands, operands, st.booleans()),
        st.builds(lambda op, a: Expression(op, a[0], a[1], a[2]), st.sampled_from(["shf", "prmt"]), triples),
        st.builds(Expression, st.sampled_from(["popc", "clz", "brev"]), operands),
    )


def node(expression: Expression) -> Node:
    """A node with that expression, alone in the world."""
    kind = "load" if MEMORY in expression.operands else "value"
    return Node(kind, expression, BasicBlock("block"), None)
