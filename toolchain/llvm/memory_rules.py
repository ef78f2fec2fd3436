"""Addresses, loads, stores, local arrays and atomic operations (LangRef: memory access operations)."""

from collections.abc import Callable

from qgpu.ir import I1, I8, Constant, IntType, PtrType, Value, ptr
from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.address_rules import moved
from qgpu.toolchain.llvm.emitter import GENERIC, Emitter, Item
from qgpu.toolchain.llvm.integer_rules import FLOAT_HINT

_WORD_WIDTHS = (32, 64)
_KINDS = {
    "add": "add",
    "sub": "add",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "xchg": "xchg",
    "max": "max_s",
    "min": "min_s",
    "umax": "max_u",
    "umin": "min_u",
    "uinc_wrap": "inc",
    "udec_wrap": "dec",
}
"""atomicrmw's operations by those of the IR; `sub` adds the negated operand."""

_POINTER_LOADED = "a pointer is loaded from a buffer, where only numbers lie"
_POINTER_STORED = "a pointer is stored to a buffer, where nothing can load it from again"
_POINTER_HINT = "pass each buffer as a parameter of its own, or keep indices"


# ------------------------------------------------------------------- addresses


def _element_address(x: Emitter, i: ast.Instruction) -> Item:
    """getelementptr: constant steps are added up, each other index is a step of its own."""
    assert i.type is not None
    pointer = x.pointer(i.operands[0])
    type_, constant = i.type, 0
    for position, operand in enumerate(i.operands[1:]):
        if position:
            offset, type_ = _member(x, type_, operand)
            if offset is not None:
                constant += offset
                continue
        index, size = x.scalar(operand), x.size(type_)
        if isinstance(index.type, PtrType):
            raise x.refusal("an address is used as an index")
        if isinstance(index, Constant):
            constant += _signed(x, operand, index) * size
        else:
            pointer = moved(x, pointer, _index(x, operand, index), size)
    return x.displaced(pointer, constant)


def _member(x: Emitter, type_: ast.Type, operand: ast.Typed) -> tuple[int | None, ast.Type]:
    """The offset of a structure's field, and its type; of an array the type of its elements."""
    resolved = x.layout.resolved(type_)
    if isinstance(resolved, ast.Array):
        return None, resolved.element
    index = x.item(operand)
    assert isinstance(index, Constant)
    return x.layout.members(resolved)[index.value]


def _signed(x: Emitter, operand: ast.Typed, index: Constant) -> int:
    width = x.width(operand.type)
    return index.value - (1 << width) if index.value >> (width - 1) else index.value


def _index(x: Emitter, operand: ast.Typed, index: Value) -> Value:
    return x.signed(index, x.width(operand.type))


def _allocate(x: Emitter, i: ast.Instruction) -> Item:
    """alloca: an array of the thread's own."""
    assert i.type is not None
    count = 1
    if i.operands:
        count = x.literal(0, "the length of a local array")
    align = i.align or x.layout.align(i.type)
    array = x.arrays.local(i.result or "local", x.size(i.type) * count, align)
    x.local_types[array.name] = i.type
    return x.builder.addrof(array.name, "local")


# --------------------------------------------------------------- loads, stores


def _load(x: Emitter, i: ast.Instruction) -> Item:
    assert i.type is not None
    return load(x, x.pointer(i.operands[0]), i.type, _is_ordered(i))


def load(x: Emitter, pointer: Value, type_: ast.Type, volatile: bool = False) -> Item:
    """What lies at a pointer, member by member."""
    if x.layout.is_aggregate(type_):
        members = _members(x, type_)
        return tuple(load(x, x.displaced(pointer, offset), member, volatile) for offset, member in members)
    if x.is_pointer(type_):
        loaded = x.builder.load(pointer, ptr(GENERIC), volatile=volatile)
        x.pointer_accesses.append((loaded, x.refusal_later(_POINTER_LOADED, _POINTER_HINT)))
        return loaded
    memory = _memory_type(x, type_)
    return x.resized(x.builder.load(pointer, memory, volatile=volatile), x.held(type_))


def _store(x: Emitter, i: ast.Instruction) -> Item:
    store(x, x.pointer(i.operands[1]), x.operand(0), i.operands[0].type, _is_ordered(i))
    return ()


def store(x: Emitter, pointer: Value, item: Item, type_: ast.Type, volatile: bool = False) -> None:
    """Write a value, member by member."""
    if isinstance(item, tuple):
        for (offset, member), value in zip(_members(x, type_), item, strict=True):
            store(x, x.displaced(pointer, offset), value, member, volatile)
    elif x.is_pointer(type_):
        stored = x.builder.store(pointer, x.as_generic(item), volatile=volatile)
        x.pointer_accesses.append((stored, x.refusal_later(_POINTER_STORED, _POINTER_HINT)))
    elif isinstance(item.type, PtrType):
        raise x.refusal("an address is stored as a number")
    else:
        memory = _memory_type(x, type_)
        x.builder.store(pointer, x.resized(item, memory), memory, volatile)


def _members(x: Emitter, type_: ast.Type) -> list[tuple[int, ast.Type]]:
    """The members of what lies in memory, of which each begins at a byte."""
    resolved = x.layout.resolved(type_)
    element = resolved.element if isinstance(resolved, ast.Array) and resolved.vector else None
    if element is not None and not x.is_pointer(element) and x.width(element) % 8:
        raise x.unsupported(f"vectors of {element} in memory", "extend the elements to bytes")
    return x.layout.members(resolved)


def _memory_type(x: Emitter, type_: ast.Type) -> IntType:
    """The type of a number in memory, where an i1 takes a byte."""
    held, width = x.held(type_), x.width(type_)
    if held is I1:
        return I8
    if held.width != width:
        raise x.unsupported(f"numbers of {width} bits in memory", "use 8, 16, 32 or 64 bits there")
    return held


def _is_ordered(i: ast.Instruction) -> bool:
    """Whether an access may not be left out."""
    return "volatile" in i.flags or "atomic" in i.flags


# ------------------------------------------------------------ atomic operations


def _atomic(x: Emitter, i: ast.Instruction) -> Item:
    operation, type_ = i.flags[-1], i.operands[1].type
    kind = _KINDS.get(operation)
    if kind is None:
        hint = FLOAT_HINT if operation.startswith("f") else "write it as a loop of cmpxchg"
        raise x.refusal(f"unsupported instruction 'atomicrmw {operation}'", hint)
    _check_word(x, type_)
    value = x.number(1)
    if operation == "sub":
        assert isinstance(value.type, IntType)
        value = x.operation("sub", Constant(value.type, 0), value)
    return x.builder.atomicrmw(kind, x.pointer(i.operands[0]), value)


def _exchange(x: Emitter, i: ast.Instruction) -> Item:
    """cmpxchg: the old value, and whether it was the expected one."""
    _check_word(x, i.operands[1].type)
    expected = x.number(1)
    old = x.builder.emit("cmpxchg", x.pointer(i.operands[0]), expected, x.number(2))
    return old, x.compare("eq", old, expected)


def _check_word(x: Emitter, type_: ast.Type) -> None:
    if x.is_pointer(type_):
        raise x.unsupported("atomic operations on pointers", "exchange indices instead")
    if x.width(type_) not in _WORD_WIDTHS:
        raise x.unsupported(f"atomic operations on {x.width(type_)} bits", "use 32 or 64 bits")


def _nothing(x: Emitter, i: ast.Instruction) -> Item:
    """fence: every access takes effect for all threads where it stands."""
    return ()


RULES: dict[str, Callable[[Emitter, ast.Instruction], Item]] = {
    "getelementptr": _element_address,
    "alloca": _allocate,
    "load": _load,
    "store": _store,
    "atomicrmw": _atomic,
    "cmpxchg": _exchange,
    "fence": _nothing,
}
