"""The values of literals and constant expressions (PTX ISA 4.5)."""

import operator
import struct
from collections.abc import Callable, Sequence

Value = int | float

WARP_SIZE = 32
_BITS = 64
_MODULUS = 1 << _BITS
_SIGNED_LIMIT = 1 << (_BITS - 1)
_LONGEST_LITERAL = _BITS + len("0bU")


class Unsigned(int):
    """An integer of type .u64; a plain int is of type .s64."""


def integer(text: str) -> int:
    """The value of an integer literal; ValueError, with the reason, where it has none of 64 bits."""
    digits = text.removesuffix("U")
    octal = digits.startswith("0") and digits.isdigit()
    if octal and not set(digits) <= set("01234567"):
        raise ValueError("a number that starts with 0 is octal, and 8 and 9 are no octal digits")
    value = int(digits, 8 if octal else 0) if len(digits) <= _LONGEST_LITERAL else _MODULUS
    if value >= _MODULUS:
        raise ValueError("the number does not fit in 64 bits")
    return Unsigned(value) if value >= _SIGNED_LIMIT or digits != text else value


def floating(text: str) -> float:
    """The value of a floating-point literal: decimal, or the bits of a float or a double."""
    if text[:2] in ("0f", "0F"):
        return struct.unpack(">f", bytes.fromhex(text[2:]))[0]
    if text[:2] in ("0d", "0D"):
        return struct.unpack(">d", bytes.fromhex(text[2:]))[0]
    return float(text)


def double_bits(value: float) -> str:
    """A double in the form that keeps every bit: `0d` and 16 hexadecimal digits."""
    return f"0d{struct.pack('>d', value).hex().upper()}"


def evaluate(parts: Sequence[Value | str]) -> Value:
    """The value of an expression: operands, and operators as written, in the order of the text.

    An operator after an operand is an infix one (`?` and `:` among them), any other a prefix. They are read
    by E. W. Dijkstra's shunting yard (Mathematisch Centrum MR 35, 1961). Raises ValueError, with the reason,
    where the expression has no value.
    """
    values: list[Value] = []
    waiting: list[str] = []
    after_operand = False
    for part in parts:
        if not isinstance(part, str):
            values.append(part)
            after_operand = True
        elif after_operand:
            _push_infix(part, values, waiting)
            after_operand = False
        else:
            waiting.append(f"prefix {''.join(part.split())}")
    while waiting:
        _apply(waiting.pop(), values)
    return values.pop()


def _push_infix(part: str, values: list[Value], waiting: list[str]) -> None:
    """Work out what binds more tightly than the operator, then let it wait for its right operand."""
    precedence = _PRECEDENCE[part]
    while waiting and _binds_before(waiting[-1], part, precedence):
        _apply(waiting.pop(), values)
    if part != ":":
        waiting.append(part)
    elif waiting and waiting[-1] == "?":
        waiting[-1] = "?:"
    else:
        raise ValueError("':' without '?'")


def _binds_before(waiting: str, part: str, precedence: int) -> bool:
    if waiting == "?":
        return False
    found = _PRECEDENCE.get(waiting, _PREFIX_PRECEDENCE)
    return found > precedence or (found == precedence and part != "?")


def _apply(name: str, values: list[Value]) -> None:
    right = values.pop()
    if name == "?":
        raise ValueError("'?' without ':'")
    if name == "?:":
        left, condition = values.pop(), values.pop()
        values.append(_choose(condition, left, right))
    elif name in _PREFIX:
        values.append(_PREFIX[name](right))
    else:
        values.append(_combine(name, values.pop(), right))


def _choose(condition: Value, left: Value, right: Value) -> Value:
    if isinstance(condition, float):
        raise ValueError("the condition before '?' must be an integer")
    if isinstance(left, float) or isinstance(right, float):
        return left if condition else right
    unsigned = isinstance(left, Unsigned) or isinstance(right, Unsigned)
    return _wrap(left if condition else right, unsigned)


def _combine(name: str, left: Value, right: Value) -> Value:
    if isinstance(left, float) != isinstance(right, float):
        raise ValueError(f"an integer and a floating-point number on the two sides of '{name}'")
    if isinstance(left, float):
        return _combine_floats(name, left, right)
    assert isinstance(right, int)
    unsigned = isinstance(left, Unsigned)
    if name in _COMPARISONS:
        unsigned = unsigned or isinstance(right, Unsigned)
        return int(_COMPARISONS[name](_wrap(left, unsigned), _wrap(right, unsigned)))
    if name in _SHIFTS:
        count = min(int(_wrap(right, True)), _BITS)
        return _wrap(_SHIFTS[name](int(left), count), unsigned)
    if name in _LOGIC:
        return int(_LOGIC[name](bool(left), bool(right)))
    unsigned = unsigned or isinstance(right, Unsigned)
    return _wrap(_ARITHMETIC[name](int(_wrap(left, unsigned)), int(_wrap(right, unsigned))), unsigned)


def _combine_floats(name: str, left: float, right: Value) -> Value:
    if name in _COMPARISONS:
        return int(_COMPARISONS[name](left, right))
    if name not in _FLOAT_ARITHMETIC:
        raise ValueError(f"'{name}' of floating-point numbers")
    if name == "/" and right == 0:
        raise ValueError("division by zero")
    return _FLOAT_ARITHMETIC[name](left, right)


def _wrap(value: int, unsigned: bool) -> int:
    """The value modulo 2^64, as a number of type .u64 or .s64."""
    if unsigned:
        return Unsigned(value % _MODULUS)
    return (int(value) + _SIGNED_LIMIT) % _MODULUS - _SIGNED_LIMIT


def _divide(left: int, right: int) -> int:
    """The quotient, rounded toward zero as in C."""
    if right == 0:
        raise ValueError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _divide(left, right)


def _negate(value: Value) -> Value:
    if isinstance(value, float) or value == _SIGNED_LIMIT:
        return -value  # 2^63 has type .u64, but who writes -2^63 means the smallest .s64, of the same bits
    return _wrap(-value, isinstance(value, Unsigned))


def _of_integer(name: str, function: Callable[[int], int]) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        if isinstance(value, float):
            raise ValueError(f"'{name}' of a floating-point number")
        return function(value)

    return apply


# PTX ISA 4.5.3, table of operator precedence: as in C.
_LEVELS = (":", "? ?:", "||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")
_PRECEDENCE = {name: level for level, names in enumerate(_LEVELS) for name in names.split()}
_PREFIX_PRECEDENCE = len(_LEVELS)
_PREFIX: dict[str, Callable[[Value], Value]] = {
    "prefix +": lambda value: value,
    "prefix -": _negate,
    "prefix !": _of_integer("!", lambda value: int(not value)),
    "prefix ~": _of_integer("~", lambda value: _wrap(~int(value), isinstance(value, Unsigned))),
    "prefix (.s64)": _of_integer("(.s64)", lambda value: _wrap(value, False)),
    "prefix (.u64)": _of_integer("(.u64)", lambda value: _wrap(value, True)),
}
_COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SHIFTS: dict[str, Callable[[int, int], int]] = {"<<": operator.lshift, ">>": operator.rshift}
_LOGIC: dict[str, Callable[[bool, bool], bool]] = {"&&": operator.and_, "||": operator.or_}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _remainder,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_FLOAT_ARITHMETIC: dict[str, Callable[[float, Value], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
