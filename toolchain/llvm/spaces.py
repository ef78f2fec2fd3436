"""Memories that pointers turn out to point to: generic pointers into one memory become pointers of that.

In LLVM most pointers are generic. A merge of pointers into one memory is a pointer into that memory; the
merges of loops make this a search for the greatest solution, which starts from knowing nothing (M. N. Wegman
and F. K. Zadeck, Constant Propagation with Conditional Branches, TOPLAS 13(2), 1991, has the scheme).
"""

from qgpu.ir import Builder, Function, PtrType, Value, ptr
from qgpu.ir.core.instruction import Instruction

_GENERIC = "generic"
_MERGES = {"phi": 0, "select": 1, "ptradd": 0}
"""The opcodes whose result is of the memory of their operands, and the first operand that is a pointer."""
_ADDRESSES = ("load", "store", "atomicrmw", "cmpxchg", "ptrtoint", "ptrdiff")


def settle_spaces(function: Function) -> None:
    """Give generic pointers the type of the memory they point to, where it is one; in place."""
    merges = [i for i in function.instructions if i.op in _MERGES and i.type is ptr(_GENERIC)]
    known: dict[Value, str] = {}
    changed = True
    while changed:
        changed = False
        for merge in merges:
            found = _merged(merge, known)
            if found is not None and known.get(merge) != found:
                known[merge] = found
                changed = True
    for merge in merges:
        merge.type = ptr(known.get(merge, _GENERIC))
    for instruction in function.instructions:
        _adapt(instruction)
    _remove_unused_casts(function)


def _sources(merge: Instruction) -> list[Value]:
    first = _MERGES[merge.op]
    last = first + 1 if merge.op == "ptradd" else len(merge.operands)
    return list(merge.operands[first:last])


def _merged(merge: Instruction, known: dict[Value, str]) -> str | None:
    """The memory of a merge, given that of others; None where nothing is known yet."""
    found = {space for source in _sources(merge) for space in [_space(source, merge, known)] if space}
    if not found:
        return None
    return found.pop() if len(found) == 1 else _GENERIC


def _space(source: Value, merge: Instruction, known: dict[Value, str]) -> str | None:
    source = _bare(source)
    assert isinstance(source.type, PtrType)
    if source.type.space != _GENERIC:
        return source.type.space
    is_merge = isinstance(source, Instruction) and source.op in _MERGES
    return known.get(source) if is_merge else _GENERIC


def _bare(value: Value) -> Value:
    """A pointer before it was made a generic one."""
    while isinstance(value, Instruction) and value.op == "ptrcast" and value.type is ptr(_GENERIC):
        value = value.operands[0]
    return value


def _adapt(instruction: Instruction) -> None:
    """Make the pointers that an instruction reads be of types that it takes."""
    if instruction.op in _ADDRESSES:
        count = 2 if instruction.op == "ptrdiff" else 1
        for index in range(count):
            instruction.replace_operand(index, _bare(instruction.operands[index]))
    if instruction.op in _MERGES:
        _adapt_merge(instruction)
    elif instruction.op == "icmp" and isinstance(instruction.operands[0].type, PtrType):
        _adapt_comparison(instruction)
    elif instruction.op == "store" and isinstance(instruction.operands[1].type, PtrType):
        instruction.replace_operand(
            1, _typed(instruction, instruction.operands[1], instruction.attrs["type"])
        )
    elif instruction.op == "ptrcast":
        _adapt_cast(instruction)


def _adapt_merge(merge: Instruction) -> None:
    for index, operand in enumerate(merge.operands):
        if not isinstance(operand.type, PtrType) or operand.type is merge.type:
            continue
        place = merge if merge.op != "phi" else merge.attrs["blocks"][index].terminator
        merge.replace_operand(index, _typed(place, operand, merge.type))


def _adapt_comparison(comparison: Instruction) -> None:
    a, b = map(_bare, comparison.operands)
    if a.type is not b.type:
        a, b = (_typed(comparison, value, ptr(_GENERIC)) for value in (a, b))
    comparison.operands = (a, b)


def _adapt_cast(cast: Instruction) -> None:
    operand = cast.operands[0]
    if operand.type is cast.type:
        cast.replace_all_uses_with(operand)
    elif cast.type is not ptr(_GENERIC) and _bare(operand).type is cast.type:
        cast.replace_all_uses_with(_bare(operand))
    elif _GENERIC not in (operand.type.space, cast.type.space):  # type: ignore[union-attr]
        cast.replace_operand(0, _typed(cast, operand, ptr(_GENERIC)))


def _typed(place: Instruction, value: Value, type_: object) -> Value:
    """A pointer as of a type that is its own, its memory's or generic, before an instruction."""
    if value.type is type_:
        return value
    bare = _bare(value)
    if bare.type is type_:
        return bare
    assert isinstance(type_, PtrType)
    return Builder().before(place).emit("ptrcast", bare, type=type_)


def _remove_unused_casts(function: Function) -> None:
    again = True
    while again:
        unused = [i for i in function.instructions if i.op in ("ptrcast", "ptradd", "addrof") and not i.uses]
        for instruction in unused:
            instruction.erase()
        again = bool(unused)
