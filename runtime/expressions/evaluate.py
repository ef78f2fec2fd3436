"""Evaluate an expression: every step of it is a launch of a library kernel.

Here is what needs no arithmetic: names, shapes, literals, and numbers that become vectors. The elements of a
range are counted by a launch, as those of a slice are.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.runtime.expressions.functions import (
    ALIASES,
    COMBINATIONS,
    COMPARISONS,
    FUNCTIONS,
    INSTEAD,
    OPERATORS,
    SAME,
    Function,
    allows,
)
from qgpu.runtime.expressions.launcher import Launcher, LaunchRecord, RefusedError
from qgpu.runtime.expressions.parse import parse
from qgpu.runtime.expressions.records import total_layer_passes, total_tokens
from qgpu.runtime.expressions.syntax import Array as ArrayNode
from qgpu.runtime.expressions.syntax import Call, Index, Name, Node, Number, Slice, Statement
from qgpu.runtime.library import ROUTINES
from qgpu.runtime.library.plans import Array
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source, note

MAX_ELEMENTS = 1 << 16
"""Elements of the largest value: no machine has memory for more."""

_KINDS = {0: "a number", 1: "a vector of {0}", 2: "a matrix of {0} rows and {1} columns"}
_WORDS = {
    "number": "a number",
    "vector": "a vector",
    "matrix": "a matrix",
    "any": "a number, vector or matrix",
}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The value of an expression, and the launches that made it.

    Attributes:
        value: int32, of no, one or two dimensions.
        launches: in their order.
    """

    value: Array
    launches: tuple[LaunchRecord, ...]

    @property
    def tokens(self) -> int:
        """Generated tokens of all launches."""
        return total_tokens(self.launches)

    @property
    def layer_passes(self) -> int | None:
        """Generated tokens times layers; None where there are no layers."""
        return total_layer_passes(self.launches)


def evaluate(text: str, launcher: Launcher, name: str = "<expression>") -> Evaluation:
    """Evaluate a text; the value is that of its last line.

    Raises:
        DiagnosticError: it is no expression, or shapes do not fit, or a launch was stopped; with the place.
        EngineError, DifferenceError: as `run` raises them.
    """
    before = len(launcher.records)
    statements = parse(text, name)
    value = _Evaluator(Source(name, text), launcher).run(statements)
    return Evaluation(value, tuple(launcher.records[before:]))


class _Evaluator:
    """The names that have been bound, and what launches."""

    def __init__(self, source: Source, launcher: Launcher) -> None:
        self._source = source
        self._launch = launcher
        self._names: dict[str, Array] = {}
        self._masks: set[str] = set()

    def run(self, statements: Sequence[Statement]) -> Array:
        value = _number(0)
        for statement in statements:
            value = self._value(statement.value)
            if statement.name is not None:
                self._bind(statement.name, statement.value, value)
        return value

    def _bind(self, name: str, node: Node, value: Array) -> None:
        mask = self._is_mask(node)
        self._names[name] = value
        (self._masks.add if mask else self._masks.discard)(name)

    def _is_mask(self, node: Node) -> bool:
        """Whether something says of each element whether it is meant, as a comparison does."""
        if isinstance(node, Name):
            return node.name in self._masks
        if not isinstance(node, Call):
            return False
        return node.name in COMPARISONS or (
            node.name in COMBINATIONS and all(map(self._is_mask, node.arguments))
        )

    def _value(self, node: Node) -> Array:
        match node:
            case Number():
                return self._literal(node)
            case Name():
                return self._named(node)
            case ArrayNode():
                return self._array(node)
            case Call():
                return self._call(node)
            case Index():
                return self._indexed(node)
            case Slice():
                return self._slice(node)
        raise TypeError(node)

    def _literal(self, node: Number) -> Array:
        if node.value > np.iinfo(np.int32).max:
            raise self._error(node, f"{node.value} does not fit 32 bits", "numbers are signed, of 32 bits")
        return _number(node.value)

    def _named(self, node: Name) -> Array:
        if node.name in self._names:
            return self._names[node.name]
        if _meaning(node.name) is not None:
            raise self._error(node, f"'{node.name}' is a function", f"call it: {node.name}(...)")
        known = difflib.get_close_matches(node.name, self._names, 1)
        hint = f"did you mean '{known[0]}'?" if known else "give it a value before: x = [1, 2, 3]; sum(x)"
        raise self._error(node, f"'{node.name}' has no value", hint)

    def _array(self, node: ArrayNode) -> Array:
        items = [self._value(item) for item in node.items]
        for item, written in zip(items, node.items, strict=True):
            if item.shape != items[0].shape:
                raise self._error(
                    written,
                    f"{shape_text(item.shape)} beside {shape_text(items[0].shape)}",
                    "the elements of a vector are numbers, the rows of a matrix vectors of one length",
                )
        if items[0].ndim > 1:
            raise self._error(node, "a vector of matrices", "a matrix is the most that there is")
        return self._small(node, np.stack(items))

    # Functions and operators.

    def _call(self, node: Call) -> Array:
        name = ALIASES.get(node.name, node.name)
        if name == "len" or name == "range":
            return self._sized(node, name)
        meanings = _meaning(name)
        if name in SAME and len(node.parts()) == 1:
            return self._value(node.arguments[0])
        if meanings is None:
            raise self._unknown(node)
        if name == "unary ~" and self._is_mask(node.arguments[0]):
            raise self._error(node, "'~' changes every bit of a mask", "its opposite is: (mask) == 0")
        operands = [self._value(argument) for argument in node.arguments]
        axis = self._axis(node, meanings, operands)
        function = self._chosen(node, [one for one in meanings if one.axis == axis], operands)
        if function.sorted:
            operands = [self._launched(node, "sort", [self._flat(operand)]) for operand in operands]
        arranged = [operand for operand in function.arranged(operands) if isinstance(operand, np.ndarray)]
        self._check_shapes(node, function, arranged)
        return self._launched(node, function.routine, arranged)

    def _axis(self, node: Call, meanings: Sequence[Function], operands: list[Array]) -> int | None:
        """The number of an argument `axis`, which is taken from the operands where it is one."""
        numbers = sorted(one.axis for one in meanings if one.axis is not None)
        for keyword, value in node.keywords:
            if keyword != "axis" or not numbers:
                hints = ["reverse(sort(x)) has the largest first"] if keyword == "reverse" else []
                raise self._error(value, f"'{node.name}' has no argument '{keyword}'", *hints)
        given = [(value, self._value(value)) for _, value in node.keywords]
        if numbers and len(operands) == 2:
            given.append((node.arguments[1], operands.pop()))
        if not given:
            return None
        written, axis = given[0]
        if axis.ndim or int(axis) not in numbers or len(given) > 1:
            raise self._error(written, "axis is 0, down the columns, or 1, along the rows")
        return int(axis)

    def _chosen(self, node: Call, meanings: Sequence[Function], operands: Sequence[Array]) -> Function:
        """The meaning whose operands have the shapes that are given."""
        fitting = [one for one in meanings if len(one.takes) == len(operands)]
        if not fitting:
            counts = sorted({len(one.takes) for one in meanings})
            wanted = " or ".join(map(str, counts))
            raise self._error(node, f"'{node.name}' takes {wanted} arguments, not {len(operands)}")
        for one in fitting:
            if all(allows(kind, value.ndim) for kind, value in zip(one.takes, operands, strict=True)):
                return one
        shapes = " and ".join(shape_text(operand.shape) for operand in operands)
        wanted = "; or ".join(
            ", ".join(" or ".join(_WORDS[word] for word in kind.split("|")) for kind in one.takes)
            for one in fitting
        )
        raise self._error(node, f"{_title(node)} takes no {shapes.removeprefix('a ')}", f"it takes {wanted}")

    def _check_shapes(self, node: Call, function: Function, operands: Sequence[Array]) -> None:
        """Check what the shapes of several operands have to do with each other."""
        shapes = [operand.shape for operand in operands]
        takes = ROUTINES[function.routine].takes
        if len(shapes) > 1 and set(takes) == {"any"} and len({shape for shape in shapes if shape}) > 1:
            raise self._mismatch(node, shapes, "shapes are equal, or one is a number")
        inner = {"dot", "matvec", "vecmat", "matmul"}
        if function.routine in inner and shapes[0][-1] != shapes[1][0]:
            raise self._mismatch(node, shapes, f"{shapes[0][-1]} columns meet {shapes[1][0]} rows")
        if function.routine == "compress" and shapes[0] != shapes[1]:
            raise self._mismatch(node, shapes, "the mask has an element for each of the vector")
        if function.routine == "concatenate" and shapes[0][1:] != shapes[1][1:]:
            raise self._mismatch(node, shapes, "two vectors, or two matrices of the same width")
        if function.routine == "diff" and shapes[0][0] < 2:
            raise self._error(node, "a vector of 1 has no neighbours")
        if function.routine == "histogram":
            self._check_count(node, int(operands[1]))

    def _sized(self, node: Call, name: str) -> Array:
        """`len(x)` is known from the shape; `range` counts its elements by a subtraction."""
        operands = [self._value(argument) for argument in node.arguments]
        if node.keywords or (name == "len" and len(operands) != 1) or not 1 <= len(operands) <= 2:
            raise self._error(node, f"'{name}' takes {'1 argument' if name == 'len' else '1 or 2 arguments'}")
        if name == "len":
            if not operands[0].ndim:
                raise self._error(node, "a number has no length")
            return _number(len(operands[0]))
        if any(operand.ndim for operand in operands):
            raise self._error(node, "the bounds of a range are numbers")
        start, stop = [_number(0), *operands][-2:]
        return self._range(node, start, stop)

    def _range(self, node: Node, start: Array, stop: Array) -> Array:
        count = stop if int(start) == 0 else self._launched(node, "subtract", [stop, start])
        self._check_count(node, int(count))
        return self._launched(node, "iota", [start, count])

    def _check_count(self, node: Node, count: int) -> None:
        if not 1 <= count <= MAX_ELEMENTS:
            raise self._error(node, f"{count} elements", f"a vector has 1 to {MAX_ELEMENTS} of them")

    # Places.

    def _indexed(self, node: Index) -> Array:
        """Elements by their places, or by a mask of them."""
        base, place = self._value(node.base), self._value(node.place)
        if not place.ndim or not self._is_mask(node.place):
            return self._index(node, base, place)
        if base.ndim != 1 or base.shape != place.shape:
            both = f"a mask of {shape_text(place.shape)} for {shape_text(base.shape)}"
            raise self._error(node, both, "a mask has a number for each element of a vector")
        return self._launched(node, "compress", [base, place])

    def _index(self, node: Node, base: Array, place: Array) -> Array:
        if not base.ndim:
            raise self._error(node, "a number has no elements")
        if place.ndim > 1:
            raise self._error(node, "a matrix of places", "give a number, or a vector of numbers")
        return self._launched(node, "gather", [base, place])

    def _slice(self, node: Slice) -> Array:
        base = self._value(node.base)
        if not base.ndim:
            raise self._error(node, "a number has no elements")
        start = _number(0) if node.start is None else self._bound(node.start, base)
        stop = _number(len(base)) if node.stop is None else self._bound(node.stop, base)
        return self._index(node, base, self._range(node, start, stop))

    def _bound(self, node: Node, base: Array) -> Array:
        """A bound of a slice, from the beginning: a negative one counts from the end."""
        bound = self._value(node)
        if bound.ndim:
            raise self._error(node, "the bounds of a slice are numbers")
        return self._launched(node, "add", [bound, _number(len(base))]) if int(bound) < 0 else bound

    # Launches, and what goes wrong.

    def _launched(self, node: Node, routine: str, operands: Sequence[Array]) -> Array:
        try:
            value = self._launch(routine, operands)
        except RefusedError as error:
            raise self._error(node, str(error)) from None
        if not value.size:
            raise self._error(node, "no element is left", "a vector has one element or more")
        return value

    def _flat(self, value: Array) -> Array:
        return value.reshape(-1)

    def _small(self, node: Node, value: Array) -> Array:
        self._check_count(node, value.size)
        return value

    def _unknown(self, node: Call) -> DiagnosticError:
        if node.name in INSTEAD:
            return self._error(node, f"there is no function '{node.name}'", INSTEAD[node.name])
        near = difflib.get_close_matches(node.name, [*FUNCTIONS, *ALIASES], 1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(sorted(FUNCTIONS))}"
        return self._error(node, f"there is no function '{node.name}'", hint)

    def _mismatch(self, node: Call, shapes: Sequence[tuple[int, ...]], rule: str) -> DiagnosticError:
        both = " and ".join(shape_text(shape) for shape in shapes)
        return self._error(node, f"{_title(node)} of {both} do not fit", rule)

    def _error(self, node: Node, message: str, *hints: str) -> DiagnosticError:
        return DiagnosticError(self._diagnostic(node, message, hints))

    def _diagnostic(self, node: Node, message: str, hints: Sequence[str]) -> Diagnostic:
        span = node.span
        return self._source.diagnostic(
            message, span.line, span.column, length=span.length, notes=tuple(map(note, hints))
        )


def _meaning(name: str) -> tuple[Function, ...] | None:
    name = ALIASES.get(name, name)
    return OPERATORS.get(name) or FUNCTIONS.get(name)


def _title(node: Call) -> str:
    return f"'{node.name.removeprefix('unary ')}'"


def _number(value: int) -> Array:
    return np.array(value, np.int32)


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape in words: a number, a vector of 3, a matrix of 2 rows and 3 columns."""
    return _KINDS[len(shape)].format(*shape)
