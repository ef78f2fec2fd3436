"""Addresses: pointers as a descriptor and a sum of terms, and the sums that one block can form.

One block adds a term and a uniform one, of scale 1 or 4, or one term and a constant. What is more than that
is added up in registers first, in words where all scales are whole words. A product there is exact or out
of bounds: an index that could wrap is limited first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from qgpu.backends.machine.block import DISPLACEMENT_BITS
from qgpu.backends.machine.description import MAX_MEMORY_WORDS
from qgpu.toolchain.codegen.arithmetic import extreme, product, total
from qgpu.toolchain.codegen.nodes import Access, Arg, Expression, Node, Operand, Term, signed, word
from qgpu.toolchain.codegen.regions import is_uniform
from qgpu.toolchain.codegen.registers import Register

Make = Callable[[Expression], Arg]
"""Creates the node of an expression, or gives a constant or register that is equal."""

_LIMIT = 1 << 27
"""Offsets from here on are out of every buffer's bounds, and far enough from wrapping."""

_FARTHEST = 1 << DISPLACEMENT_BITS - 1
"""A displacement must be nearer to 0 than this."""


@dataclass(frozen=True)
class Pointer:
    """A pointer value: `descriptor` names the buffer; terms and displacement add up to the byte offset."""

    descriptor: Arg
    space: str
    terms: tuple[Term, ...] = ()
    displacement: int = 0


def moved(pointer: Pointer, index: Arg, scale: int, displacement: int, unsigned: bool) -> Pointer:
    """The pointer moved by index * scale + displacement bytes."""
    offset = pointer.displacement + displacement
    if isinstance(index, int):
        number = index if unsigned else signed(index)
        return Pointer(pointer.descriptor, pointer.space, pointer.terms, offset + number * scale)
    terms = (*pointer.terms, Term(index, scale, unsigned)) if scale else pointer.terms
    return Pointer(pointer.descriptor, pointer.space, terms, offset)


def access(pointer: Pointer, width: int, sign: bool, make: Make) -> Access:
    """The access of a block to `width` bytes at a pointer; makes the sums that the block cannot form."""
    if abs(pointer.displacement) >= _FARTHEST:
        pointer = _brought_near(pointer, make)
    if not _fits(pointer):
        pointer = summed_up(pointer, make)
    return Access(pointer.descriptor, pointer.terms, pointer.displacement, width, sign, pointer.space)


def _fits(pointer: Pointer) -> bool:
    """Whether a block can form the offset: see `routing.offset_routes`."""
    terms, shifted = pointer.terms, pointer.displacement != 0
    if len(terms) == 1:
        return terms[0].scale in (1, 4) or (terms[0].scale == 2 and not shifted and _may_give_j(terms[0]))
    simple = all(term.scale in (1, 4) for term in terms) and any(map(_may_give_j, terms))
    return not terms or (len(terms) == 2 and simple and not shifted)


def _may_give_j(term: Term) -> bool:
    return is_uniform(term.value) and not term.unsigned


def _brought_near(pointer: Pointer, make: Make) -> Pointer:
    """A pointer without a displacement beyond the immediate's reach: it moves into the index.

    Without an index every such offset is out of bounds, and so is the nearest one that can be written.
    """
    if not pointer.terms:
        nearest = 4 - _FARTHEST if pointer.displacement < 0 else _FARTHEST - 4
        return replace(pointer, displacement=nearest)
    unit = 4 if all(n % 4 == 0 for n in (pointer.displacement, *(t.scale for t in pointer.terms))) else 1
    term = Term(offset_in(pointer, unit, make), unit)
    return replace(pointer, terms=(term,), displacement=0)


def summed_up(pointer: Pointer, make: Make) -> Pointer:
    """The same pointer with one term for all of its terms."""
    unit = 4 if all(term.scale % 4 == 0 for term in pointer.terms) else 1
    value = sum_of(pointer.terms, unit, make)
    return Pointer(pointer.descriptor, pointer.space, (Term(value, unit),), pointer.displacement)


def offset_in(pointer: Pointer, unit: int, make: Make) -> Arg:
    """The pointer's offset as a register value or constant, counted in `unit` bytes."""
    terms = sum_of(pointer.terms, unit, make)
    return make(total(terms, word(pointer.displacement // unit)))


def sum_of(terms: tuple[Term, ...], unit: int, make: Make) -> Arg:
    """The sum of terms, counted in `unit` bytes."""
    value: Arg = 0
    for term in terms:
        factor = term.scale // unit
        part = term.value if factor == 1 else make(product(_limited(term, make), word(factor)))
        value = make(total(part, value))
    return value


def _limited(term: Term, make: Make) -> Arg:
    """The index of a term; if it could wrap when scaled, the nearest index that is out of bounds too."""
    if magnitude(term.value) * abs(term.scale) < _LIMIT:
        return term.value
    limit = _LIMIT // abs(term.scale)
    upper = make(extreme("min", term.value, limit, not term.unsigned))
    return upper if term.unsigned else make(extreme("max", upper, word(-limit), True))


def magnitude(value: Operand) -> int:
    """A bound of the absolute value of a word read as signed, from what computes it."""
    if isinstance(value, int):
        return abs(signed(value))
    if isinstance(value, Register):
        return _register_magnitude(value.preload)
    return _node_magnitude(value) if isinstance(value, Node) else 1 << 31


def _register_magnitude(preload: str) -> int:
    """Thread indices and block sizes are bounded by the threads of a thread block, frames by memory."""
    if preload == "frame":
        return MAX_MEMORY_WORDS
    return 1024 if preload.startswith(("tid.", "ntid.", "laneid", "warpid")) else 1 << 31


def _node_magnitude(node: Node) -> int:
    expression = node.expression
    if node.kind == "load" and node.access and node.access.width < 4 and not node.access.sign:
        return 1 << 8 * node.access.width
    if node.kind != "value":
        return 1 << 31
    if expression.op in ("cmp", "lex", "popc", "clz"):
        return 32
    if expression.op == "lop3" and expression.lut == 0xC0:
        return min(
            (y for y in expression.operands[:2] if isinstance(y, int) and y >> 31 == 0), default=1 << 31
        )
    return _sum_magnitude(expression)


def _sum_magnitude(expression: Expression) -> int:
    """The bound of X * Y + Z where it cannot wrap."""
    if expression.op != "mad":
        return 1 << 31
    x, y, z = map(magnitude, expression.operands)
    return min(1 << 31, x * y + z)
