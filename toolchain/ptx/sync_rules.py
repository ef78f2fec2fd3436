"""Barriers and fences (PTX ISA 9.0, section 9.7.13), and instructions that only change when things happen.

A fence orders nothing that is not in order: every access takes effect for all threads where it stands, and so
does an asynchronous copy.
"""

from qgpu.ir import I32, Constant
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import SCOPE, Rule

_BARRIERS = 16
_WARP = 32


def _number(x: Emitter, role: str, what: str) -> int:
    value = x.integer(role, I32)
    if not isinstance(value, Constant):
        raise x.refusal(f"{what} has to be a constant", role)
    return value.value


def _barrier_id(x: Emitter) -> int:
    number = _number(x, "a", "the number of a barrier")
    if number >= _BARRIERS:
        raise x.refusal(f"a thread block has barriers 0 to {_BARRIERS - 1}", "a")
    return number


def _partial(x: Emitter) -> dict[str, int]:
    """Which barrier, and how many threads come to it."""
    count = _number(x, "b", "the number of threads at a barrier")
    if count == 0 or count % _WARP:
        raise x.refusal(f"the number of threads at a barrier is a multiple of {_WARP}", "b")
    return {"id": _barrier_id(x), "count": count}


def _wait(x: Emitter) -> None:
    """bar.sync: a barrier for the whole thread block is the same whatever its number is."""
    if x.has("b"):
        x.builder.emit("barrier", attrs=_partial(x))
    else:
        _barrier_id(x)
        x.builder.barrier()


def _arrive(x: Emitter) -> None:
    x.builder.emit("arrive", attrs=_partial(x))


def _reduce(x: Emitter) -> None:
    _barrier_id(x)
    kind = x.form["kind"] or ""
    result = x.builder.emit("barrier_reduce", x.predicate("c"), attrs={"kind": kind})
    x.define(result if kind == "popc" else x.compare("ne", result, Constant(I32, 0)))


def _nothing(x: Emitter) -> None:
    """What has no effect here."""


_PROXY = r"proxy\.(?:alias|async)"
_RESTRICTION = r"sync_restrict::shared::(?:cta|cluster)"

RULES = [
    *(
        rule
        for opcode, aligned in (("bar", ""), ("barrier", r"(?:\.aligned)?"))
        for rule in (
            Rule(opcode, rf"(?:cta\.)?sync{aligned}", "a", _wait),
            Rule(opcode, rf"(?:cta\.)?sync{aligned}", "a b", _wait),
            Rule(opcode, rf"(?:cta\.)?arrive{aligned}", "a b", _arrive),
            Rule(opcode, rf"(?:cta\.)?red\.(?P<kind>popc){aligned}\.u32", "d a c", _reduce),
            Rule(opcode, rf"(?:cta\.)?red\.(?P<kind>and|or){aligned}\.pred", "d a c", _reduce),
        )
    ),
    Rule("bar", r"sync\.warp", "a", _nothing),
    Rule("membar", rf"(?:cta|gl|sys|{_PROXY})", "", _nothing),
    Rule("fence", rf"(?:(?:sc|acq_rel|acquire|release)\.)?{SCOPE}", "", _nothing),
    Rule("fence", rf"(?:acquire|release)\.cluster\.(?:{_RESTRICTION}|mbarrier_init)", "", _nothing),
    Rule("fence", rf"(?:(?:global|shared::(?:cta|cluster))\.)?{_PROXY}", "", _nothing),
    Rule("cp", r"async\.(?:commit_group|wait_all)", "", _nothing),
    Rule("cp", r"async\.wait_group", "a", _nothing),
    Rule("nanosleep", "u32", "a", _nothing),
    Rule("pmevent", "(?:mask)?", "a", _nothing),
    Rule("griddepcontrol", "launch_dependents|wait", "", _nothing),
    Rule("setmaxnreg", r"sync\.(?:inc|dec)\.aligned\.u32", "a", _nothing),
]
