"""What instructions do with operands that are pointers, in place of what they do with numbers.

A pointer is a buffer and an offset. Numbers can be added to it; two pointers into one buffer can be
subtracted and compared; and what depends on the address modulo 2^LOW_BITS alone can be computed, as
alignment checks do.
"""

from collections.abc import Callable

from qgpu.ir import I1, I64, Constant, IntType, PtrType, Value, ptr
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.alignment import alignment
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.pointer_flow import LOW_BITS, constant_operand
from qgpu.toolchain.ptx.pointer_targets import GENERIC
from qgpu.toolchain.ptx.rule import MEMORY, RESULT
from qgpu.toolchain.ptx.ssa import Node

_UNSIGNED = {
    "lt": "ult",
    "lo": "ult",
    "le": "ule",
    "ls": "ule",
    "gt": "ugt",
    "hi": "ugt",
    "ge": "uge",
    "hs": "uge",
}
_EQUAL = ("eq", "ne")


def pointer_lowering(x: Emitter) -> Callable[[Emitter], None] | None:
    """How the current instruction is lowered if it has to do with pointers; None where numbers alone are."""
    lower = _LOWERINGS.get(x.site.instruction.opcode)
    if lower is None or (lower in (_load, _store) and not _moves_pointers(x)):
        return None
    return lower if _has_pointers(x) else None


def _moves_pointers(x: Emitter) -> bool:
    return x.has(MEMORY) and (x.form.get("type") or "").endswith("64")


def _has_pointers(x: Emitter) -> bool:
    operands = (part for role in x.sources() for part in _parts(x.operand(role)))
    return any(x.result_types()) or any(map(x.is_pointer, operands)) or bool(x.pointers.nulls_stored(x.site))


def _parts(operand: ast.Operand) -> tuple[ast.Operand, ...]:
    return operand.elements if isinstance(operand, ast.Vector) else (operand,)


def _values(x: Emitter, *roles: str) -> list[Value]:
    return [x.read(role, x.operand(role), x.type()) for role in roles]


def _result(x: Emitter) -> PtrType | None:
    return next(iter(x.result_types()), None)


def _merged(x: Emitter, role: str) -> Value:
    """An operand of a merge as a pointer of the result's type; 0 is the null pointer."""
    wanted = _result(x)
    assert wanted is not None
    value = x.read(role, x.operand(role), x.type())
    if isinstance(value.type, PtrType):
        return x.as_type(value, wanted)
    (node,) = (x.pointers.nulls.get(node) for node in x.written())
    if isinstance(value, Constant) and value.value == 0 and node is not None:
        return x.null(node, wanted)
    raise x.number_refusal(role, "a pointer is selected beside a number")


# ------------------------------------------------------------------ arithmetic


def _move(x: Emitter) -> None:
    if isinstance(x.operand("a"), ast.Vector) or isinstance(x.operand(RESULT), ast.Vector):
        raise x.refusal("a pointer is taken apart or put together: pass it on as a whole", "a")
    x.define(x.value("a", x.type()))


def _add(x: Emitter) -> None:
    a, b = _values(x, "a", "b")
    if isinstance(a.type, PtrType):
        x.define(x.moved(a, b, "b"))
    else:
        x.define(x.moved(b, a, "b"))


def _subtract(x: Emitter) -> None:
    a, b = _values(x, "a", "b")
    if isinstance(b.type, PtrType):
        if not isinstance(a.type, PtrType):
            raise x.number_refusal("a", "a pointer is subtracted from a number")
        x.define(x.resized(x.builder.emit("ptrdiff", *_alike(x, a, b)), x.type(), True))
    elif isinstance(b, Constant):
        x.define(x.displaced(a, -b.signed))
    else:
        x.define(x.moved(a, x.operation("sub", Constant(x.type(), 0), b), "b"))


def _alike(x: Emitter, a: Value, b: Value) -> tuple[Value, Value]:
    """Two pointers as of one type."""
    if a.type is b.type:
        return a, b
    return x.as_type(a, ptr(GENERIC)), x.as_type(b, ptr(GENERIC))


def _select(x: Emitter) -> None:
    x.define(x.builder.select(x.predicate("c"), _merged(x, "a"), _merged(x, "b")))


def _extreme(x: Emitter) -> None:
    """min and max: of two pointers into one buffer the one of smaller or larger offset."""
    a, b = _merged(x, "a"), _merged(x, "b")
    relation = "ult" if x.site.instruction.opcode == "min" else "ugt"
    x.define(x.builder.select(x.builder.icmp(relation, a, b), a, b))


def _convert(x: Emitter) -> None:
    """cvt: addresses of 32 and of 64 bits are the same pointer; fewer bits are those of the offset."""
    value = x.read("a", x.operand("a"), x.type("from"))
    if _result(x) is not None:
        x.define(value)
        return
    ((result, type_),) = (found for found in x.results() if found is not None)
    low = _low_bits(x, value, x.type("to"), "a")
    assert result is not None
    x.define(x.resized(low, type_, x.signed("to")))


def convert_address(x: Emitter) -> None:
    """cvta: the generic address of a pointer is the same pointer, as is that in its own space."""
    value = x.read("a", x.operand("a"), I64)
    if isinstance(value, Constant) and value.value == 0:
        x.define(value)
        return
    if not isinstance(value.type, PtrType):
        raise x.no_address("a")
    space, known = x.form["space"] or "", value.type.space
    if known not in (space, GENERIC):
        raise x.refusal(f"the address points to {known} memory, not to {space} memory", "a")
    x.define(x.as_type(value, ptr(space)) if "to" in x.site.instruction.modifiers else value)


# ------------------------------------------------------------------- low bits


def _low_bits(x: Emitter, pointer: Value, type_: IntType, role: str) -> Value:
    """The low bits of an address, where nothing else of the result matters."""
    if type_.width > LOW_BITS and not all(map(x.pointers.flow.low_bits_only, x.written())):
        raise x.refusal(
            f"an address is used as a number of which more than the low {LOW_BITS} bits count", role
        )
    if not isinstance(pointer.type, PtrType):
        return x.resized(pointer, type_, False)
    return x.resized(x.builder.emit("ptrtoint", pointer), type_, False)


def _masked(x: Emitter, pointer: Value, mask: int) -> Value:
    """The low bits of an address under a mask of at most LOW_BITS bits."""
    low = x.builder.emit("ptrtoint", pointer)
    return x.operation("and", low, Constant(I64, mask))


def _and(x: Emitter) -> None:
    """and: with a small mask the low bits of the address; with one of high bits a pointer that is aligned."""
    a, b = _values(x, "a", "b")
    pointer = a if isinstance(a.type, PtrType) else b
    mask = constant_operand(x.site.instruction)
    if mask is None and isinstance(a if pointer is b else b, Constant):
        (mask,) = (value.signed for value in (a, b) if isinstance(value, Constant))
    if mask is not None and 0 <= mask < 1 << LOW_BITS:
        x.define(x.resized(_masked(x, pointer, mask), x.type(), False))
    elif mask is not None and _result(x) is not None:
        below = _masked(x, pointer, -mask - 1)
        x.define(x.builder.ptradd(pointer, x.operation("sub", Constant(I64, 0), below)))
    else:
        _bitwise(x)


def _or(x: Emitter) -> None:
    """or: with bits below the pointer's alignment a sum."""
    mask = constant_operand(x.site.instruction)
    if mask is None or _result(x) is None:
        _bitwise(x)
        return
    a, b = _values(x, "a", "b")
    pointer = a if isinstance(a.type, PtrType) else b
    if mask >= alignment(pointer, x.function):
        raise x.refusal("bits of an address are set that are not known to be clear", "a")
    x.define(x.displaced(pointer, mask))


def _bitwise(x: Emitter) -> None:
    parts = [
        _low_bits(x, value, x.type(), role) for role, value in zip("ab", _values(x, "a", "b"), strict=True)
    ]
    x.define(x.operation(x.site.instruction.opcode, *parts))


def _remainder(x: Emitter) -> None:
    """rem: by a power of two, the low bits."""
    a, b = _values(x, "a", "b")
    divisor = b.value if isinstance(b, Constant) and not x.signed() else 0
    if not 0 < divisor <= 1 << LOW_BITS or divisor & (divisor - 1):
        raise x.refusal("an address is divided: only the remainder by a small power of two is known", "a")
    x.define(x.resized(_masked(x, a, divisor - 1), x.type(), False))


# ----------------------------------------------------------------- comparisons


def _compare(x: Emitter) -> None:
    compared = _comparison(x)
    if x.has("c"):
        combine, c = x.form["combine"] or "", x.predicate("c")
        both = [x.operation(combine, compared, c), x.operation(combine, x.operation("not", compared), c)]
    else:
        both = [compared, x.operation("not", compared)] if len(list(x.results())) > 1 else [compared]
    x.define(*both[: len(list(x.results()))])


def _comparison(x: Emitter) -> Value:
    relation = x.form["compare"] or ""
    a, b = _values(x, "a", "b")
    if isinstance(a.type, PtrType) and isinstance(b.type, PtrType):
        return x.builder.icmp(relation if relation in _EQUAL else _UNSIGNED[relation], *_alike(x, a, b))
    pointer, number, role = (a, b, "a") if isinstance(a.type, PtrType) else (b, a, "b")
    if relation not in _EQUAL or not isinstance(number, Constant) or number.value:
        raise x.number_refusal("b" if role == "a" else "a", "a pointer is compared with a number")
    node = x.node(x.operand(role))
    shared = x.pointers.nulls.get(node) if node is not None else None
    if shared is None:
        return Constant(I1, int(relation == "ne"))
    assert isinstance(pointer.type, PtrType)
    return x.builder.icmp(relation, pointer, x.null(shared, pointer.type))


# ---------------------------------------------------------------------- memory


def _load(x: Emitter) -> None:
    """ld: of 64 bits each, some of which are pointers."""
    base = x.address()
    loaded: list[Value] = []
    for index, result in enumerate(x.results()):
        node = x.written_by(result[0]) if result else None
        kind = x.pointers.type(node) if node is not None else None
        if kind is not None and node is not None:
            _check_memory(x, node)
        element = x.displaced(base, index * I64.bytes)
        memory = x.pointers.kept_type if kind is not None else x.type()
        loaded.append(x.builder.load(element, memory, volatile=bool(x.form.get("volatile"))))
    x.define(*loaded)


def _check_memory(x: Emitter, node: Node) -> None:
    places = list(x.pointers.places(x.pointers.flow.loads[node]))
    if not places or any(not target.holds_pointers for target, _ in places):
        raise x.no_address(MEMORY, node)


def _store(x: Emitter) -> None:
    """st: of 64 bits each, some of which are pointers."""
    base, accesses = x.address(), x.pointers.flow.stores_of(x.site)
    for index, part in enumerate(_parts(x.operand("a"))):
        value = x.read("a", part, x.type())
        access = accesses[index]
        if isinstance(value.type, PtrType):
            if any(not target.holds_pointers for target, _ in x.pointers.places(access)):
                raise x.refusal("a pointer is stored to a buffer, where nothing can load it from again", "a")
        elif access in x.pointers.null_stores and isinstance(value, Constant):
            value = x.null(x.pointers.null_stores[access], x.pointers.kept_type)
        element = x.displaced(base, index * I64.bytes)
        x.builder.store(
            element, x.as_type(value, x.pointers.kept_type), volatile=bool(x.form.get("volatile"))
        )


_LOWERINGS: dict[str, Callable[[Emitter], None]] = {
    "mov": _move,
    "add": _add,
    "sub": _subtract,
    "selp": _select,
    "min": _extreme,
    "max": _extreme,
    "cvt": _convert,
    "and": _and,
    "or": _or,
    "xor": _bitwise,
    "rem": _remainder,
    "setp": _compare,
    "ld": _load,
    "st": _store,
}
