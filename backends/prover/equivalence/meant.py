"""The circuit that a machine is meant to be, by place: what the tensors have to come out as.

Made from the scheduled and allocated circuit alone; nothing that makes tensors has a part in it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from qgpu.backends.prover.equivalence.form import (
    ALWAYS,
    Column,
    Constant,
    Count,
    Counter,
    Erasure,
    Head,
    Linear,
    Memory,
    Neuron,
    Row,
    Strength,
    terms,
)
from qgpu.backends.prover.equivalence.standing import Standing
from qgpu.backends.transformer import circuit as circuits
from qgpu.backends.transformer.allocate import BEFORE_LAYERS, live_ranges
from qgpu.backends.transformer.emit import Layout
from qgpu.backends.transformer.numerics import NORM_BITS, row_constants, scale_of
from qgpu.backends.transformer.schedule import outputs_of


class Meant:
    """What a machine's circuit is in a model of a dtype.

    Attributes:
        layout: the circuit with its schedule and places.
        heads: for each layer the name and form of each head.
        neurons: for each layer the unit and form of each neuron, and of those that make room for channels.
        logits: the logit of each token that has one.
    """

    def __init__(self, layout: Layout, dtype: str) -> None:
        self.layout, self.dtype = layout, dtype
        self._place = layout.allocation.place
        self._ranges = live_ranges(layout.circuit, layout.schedule)
        self._holders: dict[int, list[circuits.Channel]] = defaultdict(list)
        for channel in sorted(self._place, key=lambda c: self._ranges[c].first):
            self._holders[self._place[channel]].append(channel)
        self._room = {erasure.successor: erasure.slot for erasure in layout.allocation.erasures}
        self._first_read = self._first_reads()
        layers = range(layout.layers)
        self.heads = [
            [(f"{head.unit}, {head.name}", self._head(head)) for head in layout.schedule.heads[layer]]
            for layer in layers
        ]
        self.neurons = [self._neurons(layer) for layer in layers]
        self.logits = {token: self.linear(form) for token, form in layout.circuit.readout.logits.items()}

    def _neurons(self, layer: int) -> list[tuple[str, Neuron | Erasure]]:
        found: list[tuple[str, Neuron | Erasure]] = [
            (n.unit, Neuron(self.linear(n.gate), self._outputs(n.outputs)))
            for n in self.layout.schedule.neurons[layer]
        ]
        offsets = []
        for erasure in self.layout.allocation.erasures:
            if erasure.slot // 2 == layer:
                found.append((f"room for {erasure.successor.name}", Erasure(erasure.place)))
                offsets.append((erasure.place, scale_of(erasure.successor, self.dtype).offset))
        if outputs := terms(offsets):
            found.append(("offsets", Neuron(ALWAYS, outputs)))
        return found

    def embedded(self) -> dict[int, np.ndarray]:
        """What the tokens [token] or all tokens [1] have in each place that is not 0."""
        found = {i: np.array([a * 2.0**NORM_BITS]) for i, a in enumerate(self.layout.amplitudes)}
        for channel in self.layout.allocation.fresh:
            if offset := scale_of(channel, self.dtype).offset:
                found[self._place[channel]] = np.array([offset])
        for channel, values in self.layout.circuit.token_tables.items():
            if channel in self._place:
                found[self._place[channel]] = values.astype(np.float64)
        return found

    def standing(self, slot: int) -> Standing:
        """How values stand after a slot (-1: before the first)."""
        standing = Standing.at_first(self.layout.shape.hidden)
        for place in self._holders:
            channel = self.holder(place, slot + 1)
            if channel is None:
                continue
            scale, is_read = scale_of(channel, self.dtype), self._first_read.get(channel, math.inf) <= slot
            is_fresh = channel in self.layout.allocation.fresh and not is_read
            standing.fresh[place] = is_fresh
            standing.offset[place] = 0.0 if is_fresh else scale.offset
            standing.unit[place] = scale.unit if is_read and channel.kind == "counter" else 1.0
        return standing

    def holder(self, place: int, slot: int) -> circuits.Channel | None:
        """The channel that a place holds for what reads it in a slot."""
        found = None
        for channel in self._holders.get(place, ()):
            if self._room.get(channel, BEFORE_LAYERS) < slot:
                found = channel
        return found

    def name(self, place: int, slot: int) -> str:
        """What a place holds in a slot, in words."""
        if place < len(self.layout.amplitudes):
            return f"the constant {place}"
        channel = self.holder(place, slot)
        return f"the unused channel {place}" if channel is None else channel.name

    def _first_reads(self) -> dict[circuits.Channel, int]:
        """The slot in which a head first reads into each channel."""
        first: dict[circuits.Channel, int] = {}
        for head in self.layout.circuit.heads:
            slot = self.layout.schedule.slot_of[head]
            for channel in outputs_of(head):
                first[channel] = min(slot, first.get(channel, slot))
        return first

    def linear(self, form: circuits.Form) -> Linear:
        """A form over channels as one over places: what a place holds of a channel may be a part of it."""
        constant = form.constant - sum(k * self._embedded_offset(c) for c, k in form.terms.items())
        return Linear(terms((self._place[c], k * 2**c.shift) for c, k in form.terms.items()), constant)

    def _embedded_offset(self, channel: circuits.Channel) -> float:
        """What the embedding gives a channel into which no head ever reads: a part of its value."""
        if channel not in self.layout.allocation.fresh or channel in self._first_read:
            return 0.0
        return scale_of(channel, self.dtype).offset

    def _outputs(self, outputs: Iterable[tuple[circuits.Channel, int]]):
        return terms((self._place[c], k / 2**c.shift) for c, k in outputs if c in self._place)

    def _head(self, head: circuits.Head | circuits.CounterHead) -> Head:
        return self._counter(head) if isinstance(head, circuits.CounterHead) else self._memory(head)

    def _memory(self, head: circuits.Head) -> Memory:
        rows = tuple(
            Row(self.linear(key), head.key_tap, self.linear(query), 0)
            for key, query in zip(head.keys, head.queries, strict=True)
        )
        columns = tuple(
            Column(self.linear(c.value), c.tap, self._gate(c.gate), self._outputs(c.outputs))
            for c in head.columns
        )
        return Memory(self.linear(head.write), rows, columns, self._constants(self._row_constant(head)))

    def _gate(self, gate: circuits.Form | None) -> Linear:
        return ALWAYS if gate is None else self.linear(gate)

    def _row_constant(self, head: circuits.Head) -> Linear:
        """What a written row holds as its constant.

        A key of n rows is normalised to 1 / sqrt(n) in each: what is written has to be sqrt(n) times as much.
        """
        where = ALWAYS if head.constant_where is None else self.linear(head.constant_where)
        if head.initial is None:
            return where
        flag, rows = self.linear(head.initial[0]), head.initial[1]
        more = math.sqrt(rows) - 1
        return Linear(
            terms([*where.terms, *((place, more * k) for place, k in flag.terms)]),
            where.constant + more * flag.constant,
        )

    def _constants(self, value: Linear) -> tuple[Constant, ...]:
        return (Constant(value, 0),) * row_constants(self.layout.shape.head_dim)[0]

    def _counter(self, head: circuits.CounterHead) -> Counter:
        step = self.linear(head.step)
        count = Count(step, self.linear(head.value), 0, ALWAYS, self._outputs([(head.output, 1)]))
        row = Row(ALWAYS, 0, ALWAYS, 0)
        return Counter(Strength(self.linear(head.set), step), (row,), (count,), self._constants(ALWAYS))
