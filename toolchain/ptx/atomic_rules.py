"""Atomic operations on memory (PTX ISA 9.0, section 9.7.13: atom, red).

Orderings and scopes have no effect: an atomic operation is one step for all threads.
"""

from collections.abc import Callable

from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import MEMORY, RESULT, SCOPE, Rule

_PREFIX = (
    rf"(?:(?:relaxed|acquire|release|acq_rel)\.)?(?:{SCOPE}\.)?"
    rf"(?:(?P<space>global|shared)(?:::(?:cta|cluster))?\.)?"
)
_HINT = r"L2::cache_hint\."

_FORMS = {
    "add": r"(?P<type>[su]32|u64)",
    "(?:inc|dec)": "(?P<type>u32)",
    "(?:min|max)": r"(?P<type>[su](?:32|64))",
    "(?:and|or|xor)": r"(?P<type>b(?:32|64))",
}
"""The types that each kind takes."""

_BITS = r"(?P<type>b(?:32|64))"
_OPCODES = {"exch": "xchg"}


def _update(x: Emitter) -> None:
    kind = x.form["kind"] or ""
    if kind in ("min", "max"):
        kind = f"{kind}_{'s' if x.signed() else 'u'}"
    old = x.builder.atomicrmw(_OPCODES.get(kind, kind), x.address(), x.integer("a", x.type()))
    if x.has(RESULT):
        x.define(old)


def _compare_and_swap(x: Emitter) -> None:
    x.define(x.builder.emit("cmpxchg", x.address(), x.integer("a", x.type()), x.integer("b", x.type())))


def _rules(opcode: str, kind: str, type_: str, roles: str, lower: Callable[[Emitter], None]) -> list[Rule]:
    """The rows of a kind: without and with a cache policy."""
    named = rf"(?P<kind>{kind})\."
    return [
        Rule(opcode, f"{_PREFIX}{named}{type_}", roles, lower),
        Rule(opcode, f"{_PREFIX}{named}{_HINT}{type_}", f"{roles} h", lower),
    ]


RULES = [
    *(
        rule
        for kind, type_ in _FORMS.items()
        for opcode, roles in (("atom", f"d {MEMORY} a"), ("red", f"{MEMORY} a"))
        for rule in _rules(opcode, kind, type_, roles, _update)
    ),
    *_rules("atom", "exch", _BITS, f"d {MEMORY} a", _update),
    Rule("atom", rf"{_PREFIX}cas\.{_BITS}", f"d {MEMORY} a b", _compare_and_swap),
]
