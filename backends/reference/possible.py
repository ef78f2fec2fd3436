"""What the result of a block may be where operands come from memory that was never written.

An operand has a mark: 0 where its value is known, positive where it may be anything, negative where it is 0
or 1 and no more is known. The size of the mark is the number of the read that it comes from.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from qgpu.backends.machine.block import Block
from qgpu.backends.reference.datapath import OPERATIONS, WORD

Operands = tuple[int, int, int]
"""X, Y and Z of a lane, or their marks."""

Values = set[int] | None
"""What a word may be, or numbers that differ in every bit in which it may; None where it may be anything."""


def possible(block: Block, operands: Operands, marks: Operands, address: int) -> Values:
    """What R may be; one value where the operands without a mark give it alone."""
    if all(mark <= 0 for mark in marks):
        return _tried(block, operands, marks, address)
    return POSSIBLE.get(block.op, _unknown)(block, operands, marks, address)


def _unknown(block: Block, operands: Operands, marks: Operands, address: int) -> Values:
    return None


def _tried(block: Block, operands: Operands, marks: Operands, address: int) -> Values:
    """R for all that operands may be: 0 and 1, or the two that differ in every bit."""
    choices = [
        (value,) if not mark else (0, WORD) if mark > 0 else (0, 1)
        for value, mark in zip(operands, marks, strict=True)
    ]
    compute = OPERATIONS[block.op]
    return {compute(block, x, y, z, address) for x, y, z in itertools.product(*choices)}


def _word(value: int, mark: int) -> Values:
    return {value} if not mark else None if mark > 0 else {0, 1}


def _either(one: Values, other: Values) -> Values:
    return None if one is None or other is None else one | other


def _mad(block: Block, operands: Operands, marks: Operands, address: int) -> Values:
    (x, y, z), (of_x, of_y, of_z) = operands, marks
    absorbed = (x == 0 and not of_x) or (y == 0 and not of_y)
    return _word(z, of_z) if absorbed else None


def _select(block: Block, operands: Operands, marks: Operands, address: int) -> Values:
    x, y = (_word(value, mark) for value, mark in zip(operands[:2], marks[:2], strict=True))
    return _either(x, y) if marks[2] else x if operands[2] & 1 else y


def _compared(block: Block, operands: Operands, marks: Operands, address: int) -> Values:
    """cmp and cmpn, of which Z alone is sure."""
    z = operands[2]
    return None if marks[2] else {z, (z + 1 if block.op == "cmp" else z - 1) & WORD}


def _lex(block: Block, operands: Operands, marks: Operands, address: int) -> Values:
    """X and Y have no mark where Z's is one of all bits, of which one counts."""
    x, y, z = operands
    if marks[0] or marks[1]:
        return {0, 1}
    return _tried(block, (x, y, z & 1), (0, 0, -1), address)


POSSIBLE: dict[str, Callable[[Block, Operands, Operands, int], Values]] = {
    "mad": _mad,
    "mulhi": _mad,
    "lop3": _tried,
    "select": _select,
    "cmp": _compared,
    "cmpn": _compared,
    "lex": _lex,
}
"""What R may be where an operand may be anything; of other operations it may be anything then too."""
