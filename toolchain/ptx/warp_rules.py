"""Instructions that exchange values among the lanes of a warp (PTX ISA 9.0, sections 9.7.9 shfl and 9.7.13).

The forms without `.sync`, and activemask, wait for nobody: whatever lanes run them together take part.
"""

from collections.abc import Callable

from qgpu.ir import I1, I32, Constant, Value
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import Rule

_MASK = "k"
_WHOEVER = Constant(I32, 0)
"""The mask of an exchange that waits for nobody."""
_ZERO = Constant(I32, 0)
_LAST = Constant(I32, 31)


def _members(x: Emitter) -> Value:
    """The lanes that have to come to the instruction."""
    return x.integer(_MASK, I32) if x.has(_MASK) else _WHOEVER


def _ballot(x: Emitter, condition: Value) -> Value:
    return x.builder.emit("ballot", condition, _members(x))


def _present(x: Emitter) -> Value:
    """The lanes that take part."""
    return _ballot(x, Constant(I1, 1))


def _vote_ballot(x: Emitter) -> None:
    x.define(_ballot(x, x.predicate("a")))


def _none(x: Emitter, condition: Value) -> Value:
    """Whether the condition holds in no lane."""
    return x.compare("eq", _ballot(x, condition), _ZERO)


def _vote_all(x: Emitter) -> None:
    x.define(_none(x, x.operation("not", x.predicate("a"))))


def _vote_any(x: Emitter) -> None:
    x.define(x.compare("ne", _ballot(x, x.predicate("a")), _ZERO))


def _vote_uniform(x: Emitter) -> None:
    condition = x.predicate("a")
    x.define(x.operation("or", _none(x, condition), _none(x, x.operation("not", condition))))


def _match_any(x: Emitter) -> None:
    x.define(x.builder.emit("match", x.integer("a", x.type()), _members(x)))


def _match_all(x: Emitter) -> None:
    """The lanes that take part, where all of them have the same value; else none."""
    same, present = x.builder.emit("match", x.integer("a", x.type()), _members(x)), _present(x)
    agreed = x.compare("eq", same, present)
    x.define_first(x.builder.select(agreed, present, _ZERO), agreed)


def _active_mask(x: Emitter) -> None:
    x.define(_present(x))


def _reduce(x: Emitter) -> None:
    kind = x.form["kind"] or ""
    if kind in ("min", "max"):
        kind = f"{kind}_{'s' if x.signed() else 'u'}"
    x.define(x.builder.emit("redux", x.integer("a", I32), _members(x), attrs={"kind": kind}))


def _elect(x: Emitter) -> None:
    """elect: the lowest lane that takes part leads."""
    present = _present(x)
    lowest = x.operation("and", present, x.operation("sub", _ZERO, present))
    leader = x.operation("sub", _LAST, x.operation("clz", lowest))
    x.define_first(leader, x.compare("eq", leader, x.builder.sreg("laneid")))


def _shuffle(x: Emitter) -> None:
    """shfl: the source lane by the manual's formulas; one that is out of bounds is the lane itself."""
    value, distance, bounds = x.integer("a", I32), x.integer("b", I32), x.integer("c", I32)
    distance = x.operation("and", distance, _LAST)
    lane = x.builder.sreg("laneid")
    segment = x.operation("and", x.operation("lshr", bounds, Constant(I32, 8)), _LAST)
    within = x.operation("xor", segment, _LAST)
    lowest = x.operation("and", lane, segment)
    limit = x.operation("or", lowest, x.operation("and", bounds, within))
    source = {
        "up": lambda: x.operation("sub", lane, distance),
        "down": lambda: x.operation("add", lane, distance),
        "bfly": lambda: x.operation("xor", lane, distance),
        "idx": lambda: x.operation("or", lowest, x.operation("and", distance, within)),
    }[x.form["mode"] or ""]()
    inside = x.compare("sge" if x.form["mode"] == "up" else "sle", source, limit)
    chosen = x.builder.select(inside, source, lane)
    x.define_first(x.builder.emit("shuffle", value, chosen, _members(x)), inside)


def _with_and_without_mask(
    opcode: str, form: str, roles: str, lower: Callable[[Emitter], None]
) -> list[Rule]:
    return [Rule(opcode, rf"sync\.{form}", f"{roles} {_MASK}", lower), Rule(opcode, form, roles, lower)]


RULES = [
    *_with_and_without_mask("vote", r"all\.pred", "d a", _vote_all),
    *_with_and_without_mask("vote", r"any\.pred", "d a", _vote_any),
    *_with_and_without_mask("vote", r"uni\.pred", "d a", _vote_uniform),
    *_with_and_without_mask("vote", r"ballot\.b32", "d a", _vote_ballot),
    *_with_and_without_mask("shfl", r"(?P<mode>up|down|bfly|idx)\.b32", "d a b c", _shuffle),
    Rule("match", r"sync\.any\.(?P<type>b(?:32|64))", f"d a {_MASK}", _match_any),
    Rule("match", r"sync\.all\.(?P<type>b(?:32|64))", f"d a {_MASK}", _match_all),
    Rule("activemask", "b32", "d", _active_mask),
    Rule("redux", r"sync\.(?P<kind>add|min|max)\.(?P<type>[su]32)", f"d a {_MASK}", _reduce),
    Rule("redux", r"sync\.(?P<kind>and|or|xor)\.(?P<type>b32)", f"d a {_MASK}", _reduce),
    Rule("elect", "sync", f"d {_MASK}", _elect),
]
