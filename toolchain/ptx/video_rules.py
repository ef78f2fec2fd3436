"""SIMD video instructions: operations on all halves or bytes of words (PTX ISA 9.0, section 9.7.18).

They are here in the form that compilers use, without masks and selectors on the operands: every field of the
result comes from the same fields of the sources.
"""

from collections.abc import Callable
from functools import partial

from qgpu.ir import I32, Constant, Value
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.packed_rules import fields
from qgpu.toolchain.ptx.rule import RESULT, Rule

_SOURCES = r"(?P<left>[su]32)\.(?P<right>[su]32)"
_TYPES = rf"(?P<type>[su]32)\.{_SOURCES}"
_COMPARE = "(?P<compare>eq|ne|lt|le|gt|ge)"
_SIGNED_RELATIONS = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}

Step = Callable[[Emitter, Value, Value], Value]


def _plain(opcode: str) -> Step:
    return lambda x, a, b: x.operation(opcode, a, b)


def _average(x: Emitter, a: Value, b: Value) -> Value:
    """Half the sum, rounded away from zero."""
    total = x.operation("add", a, b)
    negative = x.operation("lshr", total, Constant(I32, 31))
    rounded = x.operation("add", total, x.operation("xor", negative, Constant(I32, 1)))
    return x.operation("ashr", rounded, Constant(I32, 1))


def _absolute_difference(x: Emitter, a: Value, b: Value) -> Value:
    return x.operation("sub", x.operation("smax", a, b), x.operation("smin", a, b))


def _compared(x: Emitter, a: Value, b: Value) -> Value:
    return x.resized(x.compare(_SIGNED_RELATIONS[x.form["compare"] or ""], a, b), I32, False)


def _lower(count: int, step: Step, x: Emitter) -> None:
    """The step on each pair of fields, whose numbers are small enough to be signed words."""
    _check_selectors(x)
    pairs = zip(
        fields(x, x.integer("a", I32), count, x.signed("left")),
        fields(x, x.integer("b", I32), count, x.signed("right")),
        strict=True,
    )
    results = [step(x, a, b) for a, b in pairs]
    if x.form["add"]:
        x.define(_sum(x, x.integer("c", I32), results))
        return
    width = 32 // count
    if x.form.get("saturate"):
        results = [_clamped(x, result, width) for result in results]
    x.define(_joined(x, results, width))


def _check_selectors(x: Emitter) -> None:
    """Refuse `r.h10` and the like, which choose fields of both sources or of the result."""
    for role in (RESULT, "a", "b"):
        operand = x.operand(role)
        if isinstance(operand, ast.Name) and "." in operand.text:
            raise x.refusal("selectors and masks of fields are not supported: permute with prmt first", role)


def _sum(x: Emitter, total: Value, results: list[Value]) -> Value:
    for result in results:
        total = x.operation("add", total, result)
    return total


def _clamped(x: Emitter, value: Value, width: int) -> Value:
    """Limited to the numbers of a field of the result's type."""
    least, most = (-1 << (width - 1), (1 << (width - 1)) - 1) if x.signed() else (0, (1 << width) - 1)
    return x.operation("smin", x.operation("smax", value, Constant(I32, least)), Constant(I32, most))


def _joined(x: Emitter, results: list[Value], width: int) -> Value:
    """The low bits of the results as the fields of a word."""
    word: Value = Constant(I32, 0)
    for index, result in enumerate(results):
        field = x.operation("and", result, Constant(I32, (1 << width) - 1))
        word = x.operation("or", word, x.operation("shl", field, Constant(I32, index * width)))
    return word


_STEPS: dict[str, Step] = {
    "vadd": _plain("add"),
    "vsub": _plain("sub"),
    "vavrg": _average,
    "vabsdiff": _absolute_difference,
    "vmin": _plain("smin"),
    "vmax": _plain("smax"),
}

RULES = [
    *(
        Rule(
            f"{name}{count}",
            rf"(?:(?P<saturate>sat)\.|(?P<add>add)\.)?{_TYPES}",
            "d a b c",
            partial(_lower, count, step),
        )
        for name, step in _STEPS.items()
        for count in (2, 4)
    ),
    *(
        Rule(
            f"vset{count}",
            rf"{_COMPARE}\.(?:(?P<add>add)\.)?{_SOURCES}",
            "d a b c",
            partial(_lower, count, _compared),
        )
        for count in (2, 4)
    ),
]
