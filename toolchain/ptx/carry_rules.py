"""Extended-precision arithmetic (PTX ISA 9.0, section 9.7.2).

The carry flag is a register of the thread like any other. After a subtraction it holds the borrow.
"""

from collections.abc import Callable

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
_ONLY_OUT = {"writes": (CARRY,)}
_BOTH = {"reads": (CARRY,), "writes": (CARRY,)}
_ONLY_IN = {"reads": (CARRY,)}

RULES = [
    Rule("add", _OUT + _INT, "d a b", _of_operands(_add, False), **_ONLY_OUT),
    Rule("addc", _OUT + _INT, "d a b", _of_operands(_add, True), **_BOTH),
    Rule("addc", rf"(?P<out>){_INT}", "d a b", _of_operands(_add, True), **_ONLY_IN),
    Rule("sub", _OUT + _INT, "d a b", _of_operands(_subtract, False), **_ONLY_OUT),
    Rule("subc", _OUT + _INT, "d a b", _of_operands(_subtract, True), **_BOTH),
    Rule("subc", rf"(?P<out>){_INT}", "d a b", _of_operands(_subtract, True), **_ONLY_IN),
    Rule("mad", rf"{_PART}\.{_OUT}{_INT}", "d a b c", _multiply_add(False), **_ONLY_OUT),
    Rule("madc", rf"{_PART}\.{_OUT}{_INT}", "d a b c", _multiply_add(True), **_BOTH),
    Rule("madc", rf"{_PART}\.(?P<out>){_INT}", "d a b c", _multiply_add(True), **_ONLY_IN),
]
