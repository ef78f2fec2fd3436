"""memcpy, memmove and memset of a constant number of bytes (LangRef: standard C/C++ library intrinsics)."""

from collections.abc import Iterator
from dataclasses import dataclass

from qgpu.ir import I32, Constant, Value, integer
from qgpu.ir.core.instruction import Instruction
from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.emitter import Emitter, Item
from qgpu.toolchain.llvm.intrinsic_rules import Rule
from qgpu.toolchain.llvm.memory_rules import load, store

_UNROLLED = 64
"""Accesses that are written out; more become a loop."""

_WIDEST = 8


@dataclass(frozen=True)
class _Bulk:
    """What a call writes: bytes from `target` on, `size` of them, in accesses of `step` bytes."""

    target: Value
    size: int
    step: int


def _align(operand: ast.Typed) -> int:
    return next((int(str(a.value)) for a in operand.attributes if a.name == "align"), 1)


def _size(x: Emitter) -> int:
    size = x.operand(2)
    if not isinstance(size, Constant):
        raise x.refusal("the number of bytes has to be a constant", "write a loop over the elements")
    return size.value


def _step(size: int, *aligns: int) -> int:
    """The widest accesses that every address and the size allow."""
    step = min(_WIDEST, *aligns)
    while step > 1 and size % step:
        step //= 2
    return step


def _fill(x: Emitter, i: ast.Instruction) -> Item:
    """memset: the byte in every place of a number."""
    target, byte, size = x.pointer(i.operands[0]), x.number(1), _size(x)
    typed = _object_type(x, target, size)
    if typed is not None and isinstance(byte, Constant) and byte.value == 0:
        for offset, leaf in x.layout.leaves(typed):
            zero = x.constant(leaf, ast.Zero())
            store(x, x.displaced(target, offset), zero, leaf)
        return ()
    step = _step(size, _align(i.operands[0]))
    type_ = integer(8 * step)
    repeated = Constant(type_, int.from_bytes(b"\1" * step))
    number = x.operation("mul", x.resized(byte, type_), repeated)
    bulk = _Bulk(target, size, step)
    for offset in _offsets(x, bulk):
        x.builder.store(_at(x, target, offset), number)
    return ()


def _copy(x: Emitter, i: ast.Instruction) -> Item:
    """memcpy and memmove: where it is an object with pointers member by member, else number by number."""
    target, source, size = x.pointer(i.operands[0]), x.pointer(i.operands[1]), _size(x)
    typed = _object_type(x, source, size) or _object_type(x, target, size)
    if typed is not None:
        copy_object(x, target, source, typed)
        return ()
    step = _step(size, _align(i.operands[0]), _align(i.operands[1]))
    if size // step <= _UNROLLED:
        type_ = integer(8 * step)
        places = range(0, size, step)
        loaded = [x.builder.load(x.displaced(source, offset), type_) for offset in places]
        for offset, value in zip(places, loaded, strict=True):
            x.builder.store(x.displaced(target, offset), value)
        return ()
    if "memmove" in str(getattr(i.callee, "name", "")):
        raise x.refusal(f"memmove of {size} bytes", "write a loop in the direction that keeps the source")
    for offset in _offsets(x, _Bulk(target, size, step)):
        x.builder.store(_at(x, target, offset), x.builder.load(_at(x, source, offset), integer(8 * step)))
    return ()


def copy_object(x: Emitter, target: Value, source: Value, type_: ast.Type) -> None:
    """Copy an object of a type, member by member."""
    items = [
        (offset, leaf, load(x, x.displaced(source, offset), leaf)) for offset, leaf in x.layout.leaves(type_)
    ]
    for offset, leaf, item in items:
        store(x, x.displaced(target, offset), item, leaf)


def _object_type(x: Emitter, pointer: Value, size: int) -> ast.Type | None:
    """The type of the whole local object that a pointer points to, where it holds pointers."""
    if not isinstance(pointer, Instruction) or pointer.op != "addrof":
        return None
    type_ = x.local_types.get(pointer.attrs["name"])
    if type_ is None or x.size(type_) != size:
        return None
    return type_ if any(map(x.is_pointer, (leaf for _, leaf in x.layout.leaves(type_)))) else None


def _at(x: Emitter, pointer: Value, offset: Value) -> Value:
    if isinstance(offset, Constant):
        return x.displaced(pointer, offset.signed)
    return x.builder.ptradd(pointer, offset)


def _offsets(x: Emitter, bulk: _Bulk) -> Iterator[Value]:
    """Where accesses go: each place in turn, or the counter of a loop around what is emitted meanwhile."""
    if bulk.size // bulk.step <= _UNROLLED:
        yield from (Constant(I32, offset) for offset in range(0, bulk.size, bulk.step))
        return
    before = x.builder.block
    body, after = x.function.add_block("bulk"), x.function.add_block("bulk.end")
    x.builder.br(body)
    x.builder.at_end(body)
    counter = x.builder.phi(I32)
    yield counter
    following = x.operation("add", counter, Constant(I32, bulk.step))
    x.builder.condbr(x.compare("ult", following, Constant(I32, bulk.size)), body, after)
    counter.add_incoming(Constant(I32, 0), before)
    counter.add_incoming(following, body)
    x.builder.at_end(after)


RULES: dict[str, Rule] = {
    "memset": _fill,
    "memset.inline": _fill,
    "memcpy": _copy,
    "memcpy.inline": _copy,
    "memmove": _copy,
}
