"""Extended-precision arithmetic (PTX ISA 9.0, section 9.7.2).

The carry flag is a register of the thread like any other. After a subtraction it holds the borrow.
"""

from collections.abc import Callable
from functools import partial

from qgpu.ir import Value
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import CARRY, Rule

_INT = r"(?P<type>[su](?:32|64))"
_PART = r"(?P<part>lo|hi)"


def _carry_in(x: Emitter) -> Value:
    """The carry flag as a number."""
    return x.resized(x.read_register(CARRY), x.type(), False)


def _carry_out(x: Emitter, *carries: Value) -> None:
    """Write the carry flag where the form does: the carry of the first step or of the second."""
    if not x.form["out"]:
        return
    first, *rest = carries
    for carry in rest:
        first = x.operation("or", first, carry)
    x.write_register(CARRY, first)


def _add(x: Emitter, a: Value, b: Value, carried: bool) -> None:
    """a + b + carry. A sum has overflowed where it is less than an operand."""
    total = x.operation("add", a, b)
    carries = [x.compare("ult", total, a)]
    if carried:
        carry = _carry_in(x)
        total = x.operation("add", total, carry)
        carries.append(x.compare("ult", total, carry))
    x.define(total)
    _carry_out(x, *carries)


def _subtract(x: Emitter, a: Value, b: Value, carried: bool) -> None:
    """a - (b + borrow)."""
    difference = x.operation("sub", a, b)
    borrows = [x.compare("ult", a, b)]
    if carried:
        borrow = _carry_in(x)
        borrows.append(x.compare("ult", difference, borrow))
        difference = x.operation("sub", difference, borrow)
    x.define(difference)
    _carry_out(x, *borrows)


def _of_operands(step: Callable[[Emitter, Value, Value, bool], None], carried: bool) -> Callable:
    return lambda x: step(x, x.integer("a", x.type()), x.integer("b", x.type()), carried)


def _multiply_add(carried: bool) -> Callable[[Emitter], None]:
    """mad.cc, madc: a part of the product, which the third operand is added to."""

    def lower(x: Emitter) -> None:
        a, b, c = (x.integer(role, x.type()) for role in "abc")
        high = "mulhi_s" if x.signed() else "mulhi_u"
        _add(x, x.operation("mul" if x.form["part"] == "lo" else high, a, b), c, carried)

    return lower


_OUT = r"(?P<out>cc)\."
_NO_OUT = "(?P<out>)"


def _rows(first: str, rest: str, form: str, roles: str, lower: Callable[[bool], Callable]) -> list[Rule]:
    """The instruction that starts a chain, the one within it, and the one that ends it."""
    flag = (CARRY,)
    starting, within, ending = (f"{form}{out}{_INT}" for out in (_OUT, _OUT, _NO_OUT))
    return [
        Rule(first, starting, roles, lower(False), writes=flag),
        Rule(rest, within, roles, lower(True), reads=flag, writes=flag),
        Rule(rest, ending, roles, lower(True), reads=flag),
    ]


RULES = [
    *_rows("add", "addc", "", "d a b", partial(_of_operands, _add)),
    *_rows("sub", "subc", "", "d a b", partial(_of_operands, _subtract)),
    *_rows("mad", "madc", rf"{_PART}\.", "d a b c", _multiply_add),
]
