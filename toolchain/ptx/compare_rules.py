"""Comparisons and selections (PTX ISA 9.0, section 9.7.6)."""

from collections.abc import Callable

from qgpu.ir import I32, Constant, Value
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import Rule

_COMPARE = r"(?P<compare>eq|ne|lt|le|gt|ge|lo|ls|hi|hs)"
_COMBINE = r"(?P<combine>and|or|xor)"
_COMPARED = r"(?P<type>[bsu](?:16|32|64))"
_ANY = r"(?P<type>[bsuf](?:16|32|64))"

_RELATIONS = {
    "b": {"eq": "eq", "ne": "ne"},
    "s": {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"},
    "u": {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}
    | {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"},
}
_TRUE = {"u32": -1, "s32": -1, "f32": 0x3F800000}
"""What set gives where the comparison holds; as a floating-point number, 1.0."""


def _comparison(x: Emitter) -> Value:
    relation, type_name = x.form["compare"] or "", x.form["type"] or ""
    predicate = _RELATIONS[type_name[0]].get(relation)
    if predicate is None:
        raise x.refusal(f"'{relation}' does not compare operands of type {type_name}")
    return x.compare(predicate, x.integer("a", x.type()), x.integer("b", x.type()))


def _combined(x: Emitter, value: Value) -> Value:
    return x.operation(x.form["combine"] or "", value, x.predicate("c")) if x.has("c") else value


def _set_predicates(x: Emitter) -> None:
    """setp: the comparison in the first result, its complement in the second, each combined with c."""
    compared = _comparison(x)
    if len(list(x.results())) == 1:
        x.define(_combined(x, compared))
    else:
        x.define(_combined(x, compared), _combined(x, x.operation("not", compared)))


def _set(x: Emitter) -> None:
    """set: a number that says whether the comparison, combined with c, holds."""
    true = Constant(I32, _TRUE[x.form["result"] or ""])
    x.define(x.builder.select(_combined(x, _comparison(x)), true, Constant(I32, 0)))


def _chosen(condition: Callable[[Emitter], Value]) -> Callable[[Emitter], None]:
    def lower(x: Emitter) -> None:
        x.define(x.builder.select(condition(x), x.integer("a", x.type()), x.integer("b", x.type())))

    return lower


def _is_not_negative(x: Emitter) -> Value:
    return x.compare("sge", x.integer("c", I32), Constant(I32, 0))


RULES = [
    Rule("setp", rf"{_COMPARE}\.{_COMPARED}", "d a b", _set_predicates),
    Rule("setp", rf"{_COMPARE}\.{_COMBINE}\.{_COMPARED}", "d a b c", _set_predicates),
    Rule("set", rf"{_COMPARE}\.(?P<result>[usf]32)\.{_COMPARED}", "d a b", _set),
    Rule("set", rf"{_COMPARE}\.{_COMBINE}\.(?P<result>[usf]32)\.{_COMPARED}", "d a b c", _set),
    Rule("selp", _ANY, "d a b c", _chosen(lambda x: x.predicate("c")), "ab"),
    Rule("slct", rf"{_ANY}\.s32", "d a b c", _chosen(_is_not_negative)),
]
