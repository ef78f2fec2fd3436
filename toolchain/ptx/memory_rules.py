"""Loads, stores and cache control (PTX ISA 9.0, section 9.7.9).

Cache operators and hints have no effect. Every access takes effect for all threads where it stands, so that
memory orderings only keep an access from being left out.
"""

from qgpu.ir import I64, Constant, Value
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import MEMORY, RESULT, SCOPE, Rule

_TYPE = r"[bsuf](?:8|16|32|64)"
_VECTOR = rf"(?:v(?P<count>[24]|8(?=\.[bsuf]32))\.)?(?P<type>{_TYPE})"
_HINT = r"L2::cache_hint\."
_PRIORITY = r"(?:L1::(?:evict_\w+|no_allocate)\.)?(?:L2::evict_\w+\.)?"
_PREFETCH = r"(?:L2::(?:64|128|256)B\.)?"
_POLICY = "L2::evict_(?:last|normal|first|unchanged)"


def _ordering(kind: str) -> str:
    """`volatile` in the form stands for every access that may not be left out."""
    return rf"(?:(?P<volatile>volatile|mmio\.relaxed\.sys|(?:relaxed|{kind})\.{SCOPE})\.|weak\.)?"


def _access(kind: str, spaces: str, operators: str, hint: str = "") -> str:
    """The form of a load or store: order, space, cache operator or priority, hint, vector, type."""
    return (
        rf"{_ordering(kind)}(?:(?P<space>{spaces}|shared)(?:::(?:cta|cluster))?\.)?"
        rf"(?:{operators}|{_PRIORITY}){hint}{_PREFETCH}{_VECTOR}"
    )


def _load(x: Emitter) -> None:
    """ld: a vector is one load per element; a register wider than the type takes it extended."""
    type_, pointer = x.type(), x.address()
    results = list(x.results())
    _check_count(x, len(results), RESULT)
    loaded: list[Value] = []
    for index, result in enumerate(results):
        if result is None:
            loaded.append(Constant(type_, 0))
            continue
        if result[1].width < type_.width:
            message = f"the register has {result[1].width} bits where {type_.width} are loaded"
            raise x.refusal(message, RESULT)
        element = x.displaced(pointer, index * type_.bytes)
        extension = "sign" if x.signed() else "zero"
        loaded.append(x.builder.load(element, type_, result[1], extension, bool(x.form.get("volatile"))))
    x.define(*loaded)


def _store(x: Emitter) -> None:
    type_, pointer = x.type(), x.address()
    values = x.elements("a", type_)
    _check_count(x, len(values), "a")
    for index, value in enumerate(values):
        element = x.displaced(pointer, index * type_.bytes)
        x.builder.store(element, value, type_, bool(x.form["volatile"]))


def _check_count(x: Emitter, count: int, role: str) -> None:
    if count != int(x.form["count"] or 1):
        raise x.refusal(f"the vector has {count} elements", role)


def _hint(x: Emitter) -> None:
    """What only the caches of a GPU heed."""


def _policy(x: Emitter) -> None:
    """createpolicy: nothing looks at a policy."""
    x.define(Constant(I64, 0))


_LOAD = (
    "acquire",
    "global|local|const",
    r"(?:(?:ca|cg|cs|lu|cv)\.)?(?:nc\.)?(?:L1::\w+\.)?(?:L2::evict_\w+\.)?",
)
_STORE = ("release", "global|local", r"(?:(?:wb|cg|cs|wt)\.)?")
_FRACTION = rf"fractional\.{_POLICY}(?:\.{_POLICY})?\.b64"

RULES = [
    Rule("ld", _access(*_LOAD), f"d {MEMORY}", _load),
    Rule("ld", _access(*_LOAD, _HINT), f"d {MEMORY} h", _load),
    Rule("ldu", rf"(?:(?P<space>global)\.)?{_VECTOR}", f"d {MEMORY}", _load),
    Rule("st", _access(*_STORE), f"{MEMORY} a", _store),
    Rule("st", _access(*_STORE, _HINT), f"{MEMORY} a h", _store),
    Rule("prefetch", r"(?:(?:global|local)\.)?(?:L1|L2(?:::evict_(?:last|normal))?)", MEMORY, _hint),
    Rule("prefetchu", "L1", MEMORY, _hint),
    Rule("discard", r"(?:global\.)?L2", f"{MEMORY} a", _hint),
    Rule("applypriority", r"(?:global\.)?L2::evict_normal", f"{MEMORY} a", _hint),
    Rule("createpolicy", _FRACTION, "d", _policy),
    Rule("createpolicy", _FRACTION, "d a", _policy),
    Rule("createpolicy", r"cvt\.L2\.b64", "d a", _policy),
    Rule("createpolicy", rf"(?:global\.)?range\.{_POLICY}(?:\.{_POLICY})?\.b64", f"d {MEMORY} a b", _policy),
]
