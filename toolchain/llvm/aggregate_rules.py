"""Structures, arrays and vectors as tuples of values (LangRef: vector and aggregate operations)."""

from collections.abc import Callable

from qgpu.ir import Constant, IntType, Value
from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.emitter import Emitter, Item, mapped


def _extract_value(x: Emitter, i: ast.Instruction) -> Item:
    item = x.operand(0)
    for index in i.indices:
        assert isinstance(item, tuple)
        item = item[index]
    return item


def _insert_value(x: Emitter, i: ast.Instruction) -> Item:
    return _with_member(x.operand(0), i.indices, x.operand(1))


def _with_member(item: Item, path: tuple[int, ...], member: Item) -> Item:
    if not path:
        return member
    assert isinstance(item, tuple)
    inner = _with_member(item[path[0]], path[1:], member)
    return (*item[: path[0]], inner, *item[path[0] + 1 :])


def _extract_element(x: Emitter, i: ast.Instruction) -> Item:
    vector, index = x.operand(0), x.number(1)
    assert isinstance(vector, tuple)
    if isinstance(index, Constant):
        return vector[min(index.value, len(vector) - 1)]
    result = vector[0]
    for position in range(1, len(vector)):
        chosen = x.compare("eq", index, _position(index, position))
        result = mapped(lambda a, b, c=chosen: x.choose(c, a, b), vector[position], result)
    return result


def _insert_element(x: Emitter, i: ast.Instruction) -> Item:
    vector, element, index = x.operand(0), x.operand(1), x.number(2)
    assert isinstance(vector, tuple)
    if isinstance(index, Constant):
        return _with_member(vector, (min(index.value, len(vector) - 1),), element)
    members: list[Item] = []
    for position, member in enumerate(vector):
        chosen = x.compare("eq", index, _position(index, position))
        members.append(mapped(lambda a, b, c=chosen: x.choose(c, a, b), element, member))
    return tuple(members)


def _position(index: Value, position: int) -> Constant:
    assert isinstance(index.type, IntType)
    return Constant(index.type, position)


def _shuffle(x: Emitter, i: ast.Instruction) -> Item:
    """shufflevector: elements of two vectors by a constant mask; an undefined place takes the first."""
    a, b, mask = (x.item(operand) for operand in i.operands)
    assert isinstance(a, tuple) and isinstance(b, tuple) and isinstance(mask, tuple)
    joined = (*a, *b)
    positions = [place.value if isinstance(place, Constant) else 0 for place in mask]
    return tuple(joined[min(position, len(joined) - 1)] for position in positions)


RULES: dict[str, Callable[[Emitter, ast.Instruction], Item]] = {
    "extractvalue": _extract_value,
    "insertvalue": _insert_value,
    "extractelement": _extract_element,
    "insertelement": _insert_element,
    "shufflevector": _shuffle,
}
