"""Inlining: what one node becomes when a node that it reads is computed in the same block.

Every rule keeps the result exactly; whether the ports suffice is not asked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qgpu.backends.machine.block import INDEX_BITS
from qgpu.toolchain.codegen.addresses import magnitude
from qgpu.toolchain.codegen.nodes import (
    BOOLEAN,
    EQUAL,
    GREATER,
    LESS,
    LUT_X,
    LUT_Y,
    MEMORY,
    Access,
    Expression,
    Node,
    Operand,
    Term,
    move,
    signed,
    word,
)

_NEAR = 1 << INDEX_BITS - 2
"""Nearer to 0 than this, an index or a number of bytes leaves the other part of a sum within INDEX_BITS."""


def inlined(expression: Expression, node: Node) -> Iterator[Expression]:
    """The ways to compute an expression together with a node that is one of its operands."""
    if expression.moved is node:
        yield node.expression
        return
    inner = node.expression
    if inner.op == "mad" and inner.x is MEMORY and inner.moved is MEMORY:
        yield expression.with_operands(*(MEMORY if o is node else o for o in expression.operands))
        return
    match expression.op:
        case "mad":
            yield from _into_mad(expression, node)
        case "lop3" if inner.op == "lop3":
            yield from _into_logic(expression, node)
        case "cmp":
            yield from _into_comparison(expression, node)
        case "select" if node not in (expression.x, expression.y) and _is_not(inner):
            yield expression.with_operands(expression.y, expression.x, inner.x)


def _into_mad(outer: Expression, node: Node) -> Iterator[Expression]:
    inner = node.expression
    for a, scale, rest in _linear_readings(outer):
        if a is not node or rest is node:
            continue
        if inner.op == "mad":
            yield from _scaled(inner, scale, rest)
        elif (inner.op, scale) in _ADDING and inner.z == 0:
            yield replace(inner, op=_ADDING[inner.op, scale], z=rest)


_ADDING = {("cmp", 1): "inc", ("cmp", word(-1)): "dec", ("mulhi", 1): "mulhi"}
"""The operation that adds Z to the result of another, or takes it from Z, by that one and its factor."""


def _linear_readings(mad: Expression) -> Iterator[tuple[Operand, int, Operand]]:
    """The readings of a mad as operand * constant + rest."""
    x, y, z = mad.operands
    if isinstance(y, int):
        yield x, y, z
        if y == 1:
            yield z, 1, x
    elif isinstance(x, int):
        yield y, x, z


def _scaled(inner: Expression, scale: int, rest: Operand) -> Iterator[Expression]:
    """scale * (X * Y + Z) + rest as one mad."""
    x, y, z = inner.operands
    added = rest if z == 0 else _constant_sum(z, scale, rest)
    if added is None:
        return
    if scale == 1:
        yield Expression("mad", x, y, added)
    elif isinstance(y, int):
        yield Expression("mad", x, word(y * scale), added)
    elif isinstance(x, int):
        yield Expression("mad", y, word(x * scale), added)


def _constant_sum(z: Operand, scale: int, rest: Operand) -> Operand | None:
    return word(z * scale + rest) if isinstance(z, int) and isinstance(rest, int) else None


def _into_logic(outer: Expression, node: Node) -> Iterator[Expression]:
    inner = node.expression
    used = [o for o in outer.operands if o is not node]
    leaves = list(dict.fromkeys(o for o in (*used, *inner.operands) if o != 0))
    if len(leaves) > 3:
        return
    operands = [*leaves, *[0] * (3 - len(leaves))]
    lut = 0
    for index in range(8):
        bits: dict[Operand, int] = {0: 0}
        for position, leaf in enumerate(leaves):
            bits[leaf] = index >> (2 - position) & 1
        bits[node] = _looked_up(inner, bits)
        lut |= _looked_up(outer, bits) << index
    yield Expression("lop3", *operands, lut=lut)


def _looked_up(logic: Expression, bits: dict[Operand, int]) -> int:
    x, y, z = (bits[operand] for operand in logic.operands)
    return logic.lut >> (4 * x + 2 * y + z) & 1


def _into_comparison(outer: Expression, node: Node) -> Iterator[Expression]:
    inner = node.expression
    if outer.x is not node or not isinstance(outer.y, int) or outer.signed:
        return
    if outer.y == 0 and inner.op == "cmp" and outer.relation in (EQUAL, LESS | GREATER):
        flip = 7 if outer.relation == EQUAL else 0
        yield replace(inner, relation=inner.relation ^ flip)
    shifted = inner.op == "mad" and inner.y == 1 and isinstance(inner.z, int)
    if shifted and isinstance(inner.z, int) and outer.relation in (EQUAL, LESS | GREATER):
        yield replace(outer, x=inner.x, y=word(outer.y - inner.z))


def is_inversion(expression: Expression) -> bool:
    """Whether an expression is `not` of its first operand, if that is 0 or 1."""
    return expression.op == "cmp" and expression.y == 0 and expression.relation == EQUAL


def _is_not(expression: Expression) -> bool:
    return is_inversion(expression) and is_boolean(expression.x)


def is_boolean(operand: Operand) -> bool:
    """Whether a word is known to be 0 or 1."""
    return isinstance(operand, Node) and operand.expression.op in BOOLEAN


def as_test(comparison: Expression) -> Expression | None:
    """An expression that is not 0 where a comparison with a constant holds, and costs no comparison."""
    x, y = comparison.x, comparison.y
    if comparison.op != "cmp" or isinstance(x, int):
        return None
    if comparison.relation == LESS | GREATER and y == 0:
        return move(x)
    mask = _single_bit(x) if comparison.relation == EQUAL else None
    if mask is None or y not in (0, mask):
        return None
    if y == mask:
        return move(x)
    assert isinstance(x, Node)
    return None if is_boolean(x) else replace(x.expression, lut=LUT_Y & ~LUT_X)


def _single_bit(operand: Operand) -> int | None:
    """The bit that a word may have set, all others being 0."""
    if is_boolean(operand):
        return 1
    expression = operand.expression if isinstance(operand, Node) else None
    if expression is None or (expression.op, expression.lut, expression.z) != ("lop3", LUT_X & LUT_Y, 0):
        return None
    mask = expression.y
    return mask if isinstance(mask, int) and mask.bit_count() == 1 else None


def inlined_index(access: Access, node: Node) -> Iterator[Access]:
    """The ways to add up an index in the address unit, where the node that computes it is a sum."""
    sum_ = node.expression
    if node.kind != "value" or sum_.op != "mad" or sum_.y != 1 or MEMORY in sum_.operands:
        return
    for term in access.terms:
        if term.value is node and len(access.terms) == 1:
            yield from _split_term(access, term, sum_)


def _split_term(access: Access, term: Term, sum_: Expression) -> Iterator[Access]:
    """An access at a + b instead of at their sum.

    The sum wraps at 32 bits, the address unit does not: a part that has not INDEX_BITS is out of bounds. With
    one part near 0 both agree, since of a sum that is in bounds the other part is then no larger.
    """
    a, b = sum_.x, sum_.z
    if isinstance(b, int):
        shift = signed(b) * term.scale
        if abs(access.displacement + shift) < _NEAR and not (term.unsigned and access.displacement):
            yield replace(access, terms=(_term(a, term.scale),), displacement=access.displacement + shift)
        return
    small = min(magnitude(a), magnitude(b)) < _NEAR
    if small and not term.unsigned and not access.displacement and term.scale in (1, 4):
        yield replace(access, terms=(_term(a, term.scale), _term(b, term.scale)))


def _term(value: Operand, scale: int) -> Term:
    assert value is not MEMORY
    return Term(value, scale)  # pyright: ignore[reportArgumentType]
