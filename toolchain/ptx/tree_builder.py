"""The rules of the grammar as nodes of the syntax tree."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from lark import Token, Transformer, v_args

from qgpu.toolchain.ptx import ast, constants

_MOST_LABELS = 1 << 16
_DEEPEST = 100


class InvalidText(Exception):
    """Text of the right form that means nothing, such as a division by zero."""

    def __init__(self, message: str, position: ast.Position) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def _at(token: Token) -> ast.Position:
    return ast.Position(token.line or 0, token.column or 0, len(token))


def _word(token: Token | None) -> str | None:
    """An optional directive without its dot."""
    return None if token is None else token[1:]


def _text(token: Token) -> str:
    """What stands between the quotes."""
    return token[1:-1]


def _number(token: Token) -> int:
    """The value of an integer literal."""
    try:
        return int(constants.integer(token))
    except ValueError as error:
        raise InvalidText(str(error), _at(token)) from None


def _numbers(tokens: Iterable[Token | None]) -> tuple[int, ...]:
    return tuple(_number(token) for token in tokens if token is not None)


@dataclass(frozen=True)
class _Nested:
    """The value of an expression in parentheses, of the type it has in the expression around it."""

    value: constants.Value
    position: ast.Position


_Part = Token | _Nested


def _value(part: _Part) -> constants.Value | str:
    """A part of an expression: an operator as it is, an operand by its value."""
    if isinstance(part, _Nested):
        return part.value
    if part.type == "INT":
        return constants.integer(part)
    if part.type in ("FLOAT", "FLOAT_BITS"):
        return constants.floating(part)
    return constants.WARP_SIZE if part.type == "WARP_SIZE" else str(part)


def _evaluate(parts: tuple[_Part, ...]) -> _Nested:
    position = parts[0].position if isinstance(parts[0], _Nested) else _at(parts[0])
    try:
        return _Nested(constants.evaluate([_value(part) for part in parts]), position)
    except ValueError as error:
        raise InvalidText(str(error), position) from None


def _offset(value: ast.Integer | ast.Float) -> int:
    if isinstance(value, ast.Float):
        raise InvalidText("an offset must be an integer", value.position)
    return value.value


def _present(parts: Iterable) -> tuple:
    """The parts without the gaps where optional ones are left out."""
    return tuple(part for part in parts if part is not None)


def _flat(nodes: Iterable) -> tuple:
    """The nodes in order, with those of a declaration of several variables one by one."""
    return tuple(chain.from_iterable(node if isinstance(node, tuple) else (node,) for node in nodes))


@v_args(inline=True)
class TreeBuilder(Transformer):
    """Builds the nodes of the tree: a method per rule of the grammar, with the rule's parts as arguments.

    Raises InvalidText where a literal has no value of 64 bits and where an expression has no value.
    """

    def __init__(self) -> None:
        super().__init__()
        self._depths: dict[int, int] = {}

    def _nest(self, token: Token, node: ast.Body | ast.Aggregate, parts: Iterable) -> None:
        """Count how deep braces go: whoever walks the tree does so by recursion."""
        nested = (part for part in parts if isinstance(part, type(node)))
        depth = 1 + max((self._depths.pop(id(part)) for part in nested), default=0)
        if depth > _DEEPEST:
            raise InvalidText(f"more than {_DEEPEST} braces in one another", _at(token))
        self._depths[id(node)] = depth

    def module(self, version, targets, address_size, *items) -> ast.Module:
        self._depths.clear()
        return ast.Module(version, targets, address_size or 32, _flat(items))

    def version(self, number) -> str:
        return str(number)

    def target(self, *names) -> tuple[str, ...]:
        return tuple(map(str, names))

    def address_size(self, bits) -> int:
        return _number(bits)

    def file(self, number, path, timestamp, size) -> ast.File:
        stamp = None if timestamp is None else (_number(timestamp), _number(size))
        return ast.File(_number(number), _text(path), stamp)

    def loc(self, file, line, column, inlined) -> ast.SourceLine:
        name, place = inlined or ("", None)
        return ast.SourceLine(_number(file), _number(line), _number(column), place, name)

    def inlined(self, name, offset, file, line, column) -> tuple[str, tuple[int, ...]]:
        text = name.text if offset is None else f"{name.text}+{_number(offset)}"
        return text, _numbers((file, line, column))

    def pragma(self, *texts) -> ast.Pragma:
        return ast.Pragma(tuple(map(_text, texts)))

    def alias(self, name, target) -> ast.Alias:
        return ast.Alias(name.text, target, position=name.position)

    def dwarf(self, token) -> ast.Dwarf:
        return ast.Dwarf(token.rstrip())

    def section(self, name, *lines) -> ast.Section:
        return ast.Section(str(name), lines)

    def debug_data(self, type_, *values) -> ast.DebugData:
        return ast.DebugData(type_[1:], values)

    def debug_label(self, token) -> str:
        return str(token)

    def debug_number(self, minus, number) -> int:
        return -_number(number) if minus else _number(number)

    def debug_symbol(self, name, offset) -> str:
        return str(name) if offset is None else f"{name}+{_number(offset)}"

    def debug_difference(self, end, begin) -> str:
        return f"{end}-{begin}"

    def entry(self, linkage, name, parameters, header, body=None) -> ast.Entry | ast.EntryDeclaration:
        performance, pragmas = header
        signature = name.text, parameters or ()
        rest = performance, _word(linkage), pragmas
        if body is None:
            return ast.EntryDeclaration(*signature, None, *rest, position=name.position)
        return ast.Entry(*signature, body, *rest, position=name.position)

    def function(self, linkage, attributes, results, name, parameters, *rest) -> ast.Function:
        body = rest[-1] if rest and isinstance(rest[-1], ast.Body) else None
        performance = rest if body is None else rest[:-1]
        return ast.Function(
            name.text, parameters or (), body, performance, _word(linkage),
            attributes=attributes or (), results=results or (), position=name.position,
        )  # fmt: skip

    def header(self, *parts) -> tuple[tuple[ast.Directive, ...], tuple[str, ...]]:
        pragmas = [part.texts for part in parts if isinstance(part, ast.Pragma)]
        performance = tuple(part for part in parts if not isinstance(part, ast.Pragma))
        return performance, tuple(chain.from_iterable(pragmas))

    def performance(self, directive, *numbers) -> ast.Directive:
        return directive[1:], _numbers(numbers)

    def parameters(self, *parameters) -> tuple[ast.Parameter, ...]:
        return _present(parameters)

    def parameter(self, space, align, vector, type_, pointee, name, extents) -> ast.Parameter:
        return ast.Parameter(
            type_[1:],
            name.text,
            extents or (),
            align,
            pointee,
            space[1:],
            _word(vector),
            position=name.position,
        )

    def pointee(self, space, align) -> ast.Pointee:
        return ast.Pointee(_word(space), align)

    def variable(self, linkage, space, qualifiers, vector, type_, *declarators) -> tuple[ast.Variable, ...]:
        align, attributes = qualifiers
        return tuple(
            ast.Variable(
                space[1:], type_[1:], name.text, extents, align, _word(vector), _word(linkage), value,
                attributes, position=name.position,
            )
            for name, extents, value in _present(declarators)
        )  # fmt: skip

    def qualifiers(self, *parts) -> tuple[int | None, tuple[ast.Directive, ...]]:
        aligns = [part for part in parts if isinstance(part, int)]
        attributes = (part for part in parts if isinstance(part, tuple))
        return (aligns[-1] if aligns else None), tuple(chain.from_iterable(attributes))

    def attribute(self, *parts) -> tuple[ast.Directive, ...]:
        return parts

    def attribute_part(self, name, *numbers) -> ast.Directive:
        return name[1:], _numbers(numbers)

    def declarator(self, name, extents, value) -> tuple:
        return name, extents or (), value

    def align(self, number) -> int:
        return _number(number)

    def extent(self, *numbers) -> tuple[int | None, ...]:
        return tuple(None if number is None else _number(number) for number in numbers)

    def aggregate(self, brace, *values) -> ast.Aggregate:
        node = ast.Aggregate(_present(values))
        self._nest(brace, node, values)
        return node

    def setting(self, name, value) -> ast.Setting:
        return ast.Setting(name.text, value, position=name.position)

    def generic(self, _, name, offset) -> ast.Generic:
        return ast.Generic(name, 0 if offset is None else _offset(offset), position=name.position)

    def masked(self, mask, address) -> ast.Masked:
        return ast.Masked(_number(mask), address, position=_at(mask))

    def body(self, brace, *statements) -> ast.Body:
        node = ast.Body(_flat(statements))
        self._nest(brace, node, statements)
        return node

    def target_list(self, *names) -> tuple[ast.Name, ...]:
        return _flat(names)

    def label_range(self, name, count) -> tuple[ast.Name, ...]:
        if _number(count) > _MOST_LABELS:
            raise InvalidText(f"more than {_MOST_LABELS} labels", _at(count))
        return tuple(ast.Name(f"{name}{n}", position=name.position) for n in range(_number(count)))

    def branch_targets(self, label, names) -> ast.BranchTargets:
        return ast.BranchTargets(str(label), names, position=_at(label))

    def call_targets(self, label, names) -> ast.CallTargets:
        return ast.CallTargets(str(label), names, position=_at(label))

    def call_prototype(self, label, signature) -> ast.CallPrototype:
        return ast.CallPrototype(str(label), *signature, position=_at(label))

    def prototype(self, results, parameters, *performance) -> tuple:
        return results or (), parameters or (), performance

    def call_parameter(self, align, type_, *declarators) -> tuple[ast.CallParameter, ...]:
        return tuple(
            ast.CallParameter(type_[1:], name.text, extents or (), align, position=name.position)
            for name, extents in _present(declarators)
        )

    def call_declarator(self, name, extents) -> tuple:
        return name, extents

    def registers(self, align, vector, type_, *ranges) -> ast.Registers:
        return ast.Registers(type_[1:], _present(ranges), _word(vector), align, position=_at(type_))

    def register_range(self, name, count) -> ast.RegisterRange:
        return ast.RegisterRange(name.text, None if count is None else _number(count))

    def label(self, token) -> ast.Label:
        return ast.Label(str(token), position=_at(token))

    def instruction(self, guard, opcode, operands) -> ast.Instruction:
        name, *modifiers = "".join(opcode.split()).split(".")
        return ast.Instruction(name, tuple(modifiers), operands or (), guard, position=_at(opcode))

    def call(self, guard, opcode, *operands) -> ast.Instruction:
        return self.instruction(guard, opcode, _present(operands))

    def guard(self, negation, name) -> ast.Guard:
        return ast.Guard(name, negation is not None)

    def operands(self, *operands) -> tuple[ast.Operand, ...]:
        return operands

    def group(self, elements) -> ast.Group:
        return ast.Group(elements or ())

    def pair(self, first, second) -> ast.Pair:
        return ast.Pair(first, second, position=first.position)

    def negated(self, negation, name) -> ast.Negated:
        return ast.Negated(name, position=_at(negation))

    def minus(self, sign, name) -> ast.Minus:
        return ast.Minus(name, position=_at(sign))

    def offset(self, base, offset) -> ast.Offset:
        return ast.Offset(base, _offset(offset), position=base.position)

    def element(self, base, index) -> ast.Element:
        return ast.Element(base, index, position=base.position)

    def memory(self, address, *indices) -> ast.Memory:
        if isinstance(address, ast.Offset):
            return ast.Memory(address.base, address.offset, indices, position=address.position)
        return ast.Memory(address, 0, indices, position=address.position)

    def vector(self, *elements) -> ast.Vector:
        return ast.Vector(elements, position=elements[0].position)

    def integer(self, token) -> ast.Integer:
        return ast.Integer(_number(token), position=_at(token))

    def float(self, token) -> ast.Float:
        bits = token.type == "FLOAT_BITS"
        return ast.Float(str(token) if bits else constants.double_bits(float(token)), position=_at(token))

    def warp_size(self, token) -> ast.Integer:
        return ast.Integer(constants.WARP_SIZE, position=_at(token))

    def nested(self, *parts) -> _Nested:
        return _evaluate(parts)

    def expression(self, *parts) -> ast.Integer | ast.Float:
        found = _evaluate(parts)
        if isinstance(found.value, float):
            return ast.Float(constants.double_bits(found.value), position=found.position)
        return ast.Integer(int(found.value), position=found.position)

    def name(self, token) -> ast.Name:
        return ast.Name(str(token), position=_at(token))
