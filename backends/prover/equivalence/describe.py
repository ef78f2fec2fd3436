"""Say of neurons, heads and logits that have no equal what is different, by tensor, row and column."""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from qgpu.backends.prover.equivalence.compare import matched, parts_of, term_differences
from qgpu.backends.prover.equivalence.difference import Difference, amount
from qgpu.backends.prover.equivalence.form import (
    Column,
    Constant,
    Count,
    Erasure,
    Head,
    Linear,
    Memory,
    Neuron,
    Row,
    Strength,
    Terms,
)
from qgpu.backends.prover.equivalence.recover_heads import HeadReader, HeadShape, Mixer
from qgpu.backends.prover.equivalence.recover_neurons import Mlp

T = TypeVar("T", bound=Hashable)
Name = Callable[[int, int], str]
"""The name of what a place holds for what reads it in a slot."""


@dataclass(frozen=True)
class _Where:
    """A row of a tensor whose forms are read in a slot."""

    tensor: str
    row: int
    unit: str
    name: Name
    slot: int

    def form(self, got: Linear, wanted: Linear, what: str) -> Iterator[Difference]:
        """The differences of two forms."""
        for place, first, second in term_differences(got.terms, wanted.terms):
            channel = self.name(place, self.slot)
            reason = f"{what} counts {channel} {amount(first)} times, not {amount(second)} times"
            yield Difference(self.tensor, self.row, place, self.unit, reason)
        if got.constant != wanted.constant:
            reason = f"{what} adds the constant {amount(got.constant)}, not {amount(wanted.constant)}"
            yield Difference(self.tensor, self.row, None, self.unit, reason)

    def outputs(self, got: Terms, wanted: Terms) -> Iterator[Difference]:
        """The differences of what is added, this row being a column of the tensor."""
        for place, first, second in term_differences(got, wanted):
            channel = self.name(place, self.slot + 1)
            reason = f"{channel} gets {amount(first)} times what comes out, not {amount(second)} times"
            yield Difference(self.tensor, place, self.row, self.unit, reason)


def neuron_differences(
    found: Mapping[int, Neuron | Erasure],
    meant: Sequence[tuple[str, Neuron | Erasure]],
    mlp: Mlp,
    name: Name,
    slot: int,
) -> Iterator[Difference]:
    """What differs in the neurons of a layer."""
    for number, got, unit, wanted in matched(found, meant, lambda neuron: neuron, _neuron_parts):
        if number is None or got is None:
            assert wanted is not None
            reason = f"no neuron {_does(wanted, name, slot)}"
            yield Difference(mlp.name("gate"), None, None, unit, reason)
        elif wanted is None:
            reason = f"a neuron {_does(got, name, slot)}, which none was meant to"
            yield Difference(mlp.name("gate"), number, None, "", reason)
        else:
            first, second = _plain(got), _plain(wanted)
            yield from _Where(mlp.name("gate"), number, unit, name, slot).form(
                first.gate, second.gate, "the gate"
            )
            yield from _Where(mlp.name("down"), number, unit, name, slot).outputs(
                first.outputs, second.outputs
            )


def _plain(neuron: Neuron | Erasure) -> Neuron:
    """An erasure as a neuron, offset and unit aside."""
    if isinstance(neuron, Neuron):
        return neuron
    return Neuron(Linear(frozenset({(neuron.place, 1)}), 0), frozenset({(neuron.place, -1)}))


def _does(neuron: Neuron | Erasure, name: Name, slot: int) -> str:
    if isinstance(neuron, Erasure):
        return f"takes away {name(neuron.place, slot)}"
    if not neuron.outputs:
        return "puts out nothing"
    place, coefficient = min(neuron.outputs)
    rest = len(neuron.outputs) - 1
    more = f" and to {rest} more" if rest else ""
    return f"of {len(neuron.gate.terms)} literals adds {amount(coefficient)} to {name(place, slot + 1)}{more}"


def _neuron_parts(neuron: Neuron | Erasure) -> set:
    plain = _plain(neuron)
    return parts_of([("gate", plain.gate), ("outputs", plain.outputs)])


@dataclass(frozen=True)
class HeadDifferences:
    """What differs in the heads of a layer."""

    reader: HeadReader
    mixer: Mixer
    shape: HeadShape
    name: Name
    slot: int

    def all(self, found: Mapping[int, Head], meant: Sequence[tuple[str, Head]]) -> Iterator[Difference]:
        for number, got, unit, wanted in matched(found, meant, _unordered, _head_parts):
            tensor = self.mixer.name("in_proj_qkv")
            if number is None or got is None:
                yield Difference(tensor, None, None, unit, "no head is this one")
            elif wanted is None:
                row = self._query(number, 0)
                yield Difference(tensor, row, None, "", f"head {number} is none that was meant")
            elif type(got) is not type(wanted):
                reason = f"head {number} is a {_kind(got)}, not a {_kind(wanted)}"
                yield Difference(tensor, self._query(number, 0), None, unit, reason)
            else:
                yield from self._head(number, got, wanted, unit)

    def _head(self, number: int, got: Head, wanted: Head, unit: str) -> Iterator[Difference]:
        where = _Where(self.mixer.name("in_proj_b"), number, unit, self.name, self.slot)
        for what, first, second in zip(STRENGTHS, _strengths(got), _strengths(wanted), strict=False):
            yield from where.form(first, second, what)
        numbers = [n for n, _ in self.reader.rows(number)]
        rows = dict(zip(numbers, got.rows, strict=True))
        for n, row, other in _unlike(rows, wanted.rows, _row_parts):
            yield from self._row(number, n, row, other, unit)
        read, held = self.reader.columns(number)
        columns = dict(zip(read, got.columns, strict=True))
        for n, column, other in _unlike(columns, wanted.columns, _column_parts):
            yield from self._column(number, n, column, other, unit)
        constants = dict(zip(held, got.constants, strict=True))
        for n, constant, other in _unlike(constants, wanted.constants, _constant_parts):
            yield from self._constant(number, n, constant, other, unit)

    def _row(
        self, head: int, number: int | None, got: Row | None, wanted: Row | None, unit: str
    ) -> Iterator[Difference]:
        tensor = self.mixer.name("in_proj_qkv")
        if number is None or got is None or wanted is None:
            row = None if number is None else self._key(head, number)
            yield Difference(tensor, row, None, unit, _alone("row", head, number))
            return
        key, query = self._key(head, number), self._query(head, number)
        yield from self._at(tensor, key, unit).form(got.key, wanted.key, "the key")
        yield from self._at(tensor, query, unit).form(got.query, wanted.query, "the query")
        yield from self._tap(key, got.key_tap, wanted.key_tap, unit)
        yield from self._tap(query, got.query_tap, wanted.query_tap, unit)

    def _column(
        self,
        head: int,
        number: int | None,
        got: Column | Count | None,
        wanted: Column | Count | None,
        unit: str,
    ) -> Iterator[Difference]:
        tensor = self.mixer.name("in_proj_qkv")
        if number is None or got is None or wanted is None:
            row = None if number is None else self._value(head, number)
            yield Difference(tensor, row, None, unit, _alone("column", head, number))
            return
        value, column = self._value(head, number), head * self.shape.head_dim + number
        at = self._at(tensor, value, unit)
        if isinstance(got, Count) and isinstance(wanted, Count):
            yield from at.form(got.step, wanted.step, "the step")
        yield from at.form(got.value, wanted.value, "what is written")
        yield from self._at(self.mixer.name("in_proj_z"), column, unit).form(
            got.gate, wanted.gate, "the gate"
        )
        yield from self._at(self.mixer.name("out_proj"), column, unit).outputs(got.outputs, wanted.outputs)
        yield from self._tap(value, got.tap, wanted.tap, unit)

    def _constant(
        self, head: int, number: int | None, got: Constant | None, wanted: Constant | None, unit: str
    ) -> Iterator[Difference]:
        tensor = self.mixer.name("in_proj_qkv")
        if number is None or got is None or wanted is None:
            row = None if number is None else self._value(head, number)
            yield Difference(tensor, row, None, unit, _alone("column of the constant", head, number))
            return
        row = self._value(head, number)
        yield from self._at(tensor, row, unit).form(got.value, wanted.value, "the row's constant")
        yield from self._tap(row, got.tap, wanted.tap, unit)

    def _tap(self, row: int, got: int, wanted: int, unit: str) -> Iterator[Difference]:
        if got != wanted and got >= 0:
            reason = f"looks {got} tokens back, not {wanted}"
            yield Difference(self.mixer.name("conv1d"), row, None, unit, reason)

    def _at(self, tensor: str, row: int, unit: str) -> _Where:
        return _Where(tensor, row, unit, self.name, self.slot)

    def _query(self, head: int, number: int) -> int:
        return head * self.shape.key_dim + number

    def _key(self, head: int, number: int) -> int:
        return (self.shape.heads + head) * self.shape.key_dim + number

    def _value(self, head: int, number: int) -> int:
        return 2 * self.shape.heads * self.shape.key_dim + head * self.shape.head_dim + number


STRENGTHS = ("the write strength", "the strength of a step")


def _strengths(head: Head) -> tuple[Linear, ...]:
    return tuple(head.write) if isinstance(head.write, Strength) else (head.write,)


def _kind(head: Head) -> str:
    return "memory" if isinstance(head, Memory) else "counter"


def _alone(what: str, head: int, number: int | None) -> str:
    if number is None:
        return f"a {what} of head {head} is missing"
    return f"{what} {number} of head {head} is none that was meant"


def _unlike(
    found: Mapping[int, T], meant: Sequence[T], parts: Callable[[T], set]
) -> Iterator[tuple[int | None, T | None, T | None]]:
    """What of a head has no equal, in pairs."""
    for number, got, _, wanted in matched(found, [("", form) for form in meant], lambda form: form, parts):
        yield number, got, wanted


def _unordered(head: Head) -> tuple:
    parts = (frozenset(Multiset(part).items()) for part in (head.rows, head.columns, head.constants))
    return (_kind(head), head.write, *parts)


def _head_parts(head: Head) -> set:
    return {*head.rows, *head.columns, *head.constants}


def _row_parts(row: Row) -> set:
    return parts_of([("key", row.key), ("query", row.query)])


def _column_parts(column: Column | Count) -> set:
    return parts_of([("value", column.value), ("gate", column.gate), ("outputs", column.outputs)])


def _constant_parts(constant: Constant) -> set:
    return parts_of([("value", constant.value), ("tap", constant.tap)])


def logit_differences(
    found: Mapping[int, Linear], meant: Mapping[int, Linear], name: Name, slot: int
) -> Iterator[Difference]:
    """What differs in the logits of tokens."""
    nothing = Linear(frozenset(), 0)
    for token in sorted(found.keys() | meant.keys()):
        got, wanted = found.get(token, nothing), meant.get(token, nothing)
        if got != wanted:
            where = _Where("lm_head.weight", token, "emission", name, slot)
            yield from where.form(got, wanted, "the logit")
