"""Moves, conversions, memory accesses, atomics and the barrier (PTX ISA 9.0, sections 9.7.9 and 9.7.13).

Cache operators and memory orderings are accepted and have no effect: the machine runs the threads of a thread
block in lockstep and every access takes effect where it stands.
"""

from qgpu.ir import I64, Constant, IntType, PtrType, Value, integer
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.rule import MEMORY, RESULT, Rule

_SCALAR = r"(?P<type>[bsuf](?:8|16|32|64))"
_SCOPE = r"(?:cta|cluster|gpu|sys)"
_SPACE = r"(?P<space>global|shared|local)(?:::cta)?"
_CACHE = r"(?:(?:ca|cg|cs|lu|cv|wb|wt|nc|L1::\w+|L2::\w+)\.)*"
_VECTOR = r"(?:v(?P<count>[24])\.)?"


def _ordering(kind: str) -> str:
    return rf"(?:(?P<volatile>volatile)\.|weak\.|(?:relaxed|{kind})\.{_SCOPE}\.)?"


def _move(x: Emitter) -> None:
    """mov: a copy, or the packing or unpacking of a vector of registers (lowest part first)."""
    type_ = x.type()
    if isinstance(x.operand("a"), ast.Vector):
        x.define(_pack(x, type_))
    elif isinstance(x.operand(RESULT), ast.Vector):
        x.define(*_unpack(x, x.integer("a", type_)))
    else:
        x.define(x.value("a", type_))


def _pack(x: Emitter, type_: IntType) -> Value:
    vector = x.operand("a")
    assert isinstance(vector, ast.Vector)
    part = _part_type(x, type_, len(vector.elements))
    packed: Value = Constant(type_, 0)
    for index, value in enumerate(x.elements("a", part)):
        if value.type is not part:
            raise x.refusal(f"the parts have to have {part.width} bits each", "a")
        wide = x.resized(value, type_, False)
        shifted = x.builder.emit("shl", wide, Constant(type_, index * part.width)) if index else wide
        packed = x.builder.emit("or", packed, shifted) if index else shifted
    return packed


def _part_type(x: Emitter, whole: IntType, count: int) -> IntType:
    """The type of each of `count` equal parts."""
    width = whole.width // count
    if count not in (2, 4) or width < 8:
        raise x.refusal(f"{whole.width} bits do not split into {count} parts")
    return integer(width)


def _unpack(x: Emitter, value: Value) -> list[Value]:
    results = list(x.results())
    assert isinstance(value.type, IntType)
    part = _part_type(x, value.type, len(results))
    amounts = (Constant(value.type, index * part.width) for index in range(len(results)))
    shifted = (x.builder.emit("lshr", value, amount) if amount.value else value for amount in amounts)
    return [x.resized(low, part, False) for low in shifted]


def _move_predicate(x: Emitter) -> None:
    x.define(x.predicate("a"))


def _select(x: Emitter) -> None:
    a, b = x.value("a", x.type()), x.value("b", x.type())
    if a.type is not b.type:
        raise x.refusal("a pointer is selected beside an integer or a pointer to other memory", "b")
    x.define(x.builder.select(x.predicate("c"), a, b))


def _convert(x: Emitter) -> None:
    """cvt: the low bits of the source, extended by the source's sign and again to the register by the
    target's. Between 32 and 64 bits a pointer stays what it is."""
    source, target = x.type("from"), x.type("to")
    (value,) = x.elements("a", source)
    if isinstance(value.type, PtrType):
        x.define(x.value("a", source))
        return
    low = x.resized(value, source, False)
    converted = x.resized(low, target, x.signed("from"))
    (result,) = x.results()
    x.define(x.resized(converted, result[1], x.signed("to")) if result else converted)


def _convert_address(x: Emitter) -> None:
    """cvta: a pointer knows its state space, so the generic address is the same pointer."""
    pointer = x.value("a", I64)
    if not isinstance(pointer.type, PtrType):
        raise x.refusal("the address does not come from a pointer parameter or an array", "a")
    if pointer.type.space != x.form["space"]:
        raise x.refusal(
            f"the address points to {pointer.type.space} memory, not to {x.form['space']} memory", "a"
        )
    x.define(pointer)


def _load_parameter(x: Emitter) -> None:
    value, type_ = x.parameter(), x.type()
    (result,) = x.results()
    if not isinstance(value.type, IntType) or result is None:
        x.define(value)
    elif type_.width > value.type.width:
        raise x.refusal(f"the parameter has {value.type.width} bits where {type_.width} are loaded", MEMORY)
    else:
        x.define(x.resized(x.resized(value, type_, False), result[1], x.signed()))


def _load(x: Emitter) -> None:
    """ld: a vector is one load per element; a register wider than the type takes it extended."""
    type_, pointer = x.type(), x.address()
    results = list(x.results())
    _check_count(x, len(results), RESULT)
    loaded: list[Value] = []
    for index, result in enumerate(results):
        wide = result[1] if result else type_
        if wide.width < type_.width:
            raise x.refusal(f"the register has {wide.width} bits where {type_.width} are loaded", RESULT)
        element = x.displaced(pointer, index * type_.bytes)
        extension = "sign" if x.signed() else "zero"
        loaded.append(x.builder.load(element, type_, wide, extension, bool(x.form["volatile"])))
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


def _atomic(x: Emitter) -> None:
    kind = x.form["kind"] or ""
    opcode = _ATOMIC_KINDS.get(kind) or f"{kind}_{'s' if x.signed() else 'u'}"
    old = x.builder.atomicrmw(opcode, x.address(), x.integer("a", x.type()))
    if x.has(RESULT):
        x.define(old)


def _barrier(x: Emitter) -> None:
    if x.immediate("a") != 0:
        raise x.refusal("only barrier 0 is supported", "a")
    x.builder.barrier()


_ATOMIC_KINDS = {"add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg"}
_ATOMIC = (
    rf"(?:(?:relaxed|acquire|release|acq_rel)\.)?(?:{_SCOPE}\.)?(?:{_SPACE}\.)?"
    r"(?=(?:(?:add|min|max)\.[su]|(?:and|or|xor|exch)\.b)32$)(?P<kind>\w+)\.(?P<type>\w+)"
)

RULES = [
    Rule("mov", r"(?P<type>[bsuf](?:16|32|64))", "d a", _move, "a"),
    Rule("mov", "pred", "d a", _move_predicate),
    Rule("selp", r"(?P<type>[bsuf](?:16|32|64))", "d a b c", _select, "ab"),
    Rule("cvt", r"(?P<to>[su](?:8|16|32|64))\.(?P<from>[su](?:8|16|32|64))", "d a", _convert, "a"),
    Rule("cvta", rf"(?:to\.)?{_SPACE}\.u64", "d a", _convert_address, "a"),
    Rule("ld", rf"param\.{_SCALAR}", "d m", _load_parameter),
    Rule("ld", rf"{_ordering('acquire')}(?:{_SPACE}\.)?{_CACHE}{_VECTOR}{_SCALAR}", "d m", _load),
    Rule("st", rf"{_ordering('release')}(?:{_SPACE}\.)?{_CACHE}{_VECTOR}{_SCALAR}", "m a", _store),
    Rule("atom", _ATOMIC, "d m a", _atomic),
    Rule("red", _ATOMIC, "m a", _atomic),
    Rule("bar", r"(?:cta\.)?sync(?:\.aligned)?", "a", _barrier),
    Rule("barrier", r"(?:cta\.)?sync(?:\.aligned)?", "a", _barrier),
]
