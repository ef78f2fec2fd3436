"""Ranges of channels in a circuit whose program is known: what each can be in each of the program's blocks.

An abstract interpretation in one pass over the circuit, which has no cycle: what a token leaves behind comes
back as a later token, or out of a memory. A pass is in one block, so a channel has an interval for each
block, and what the block alone decides is a point in each. Of the channels that the token gives, a form's
part is taken over all tokens that occur, so how they depend on each other is kept.
"""

from __future__ import annotations

import graphlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from qgpu.backends.transformer.circuit import Channel, Circuit, Column, CounterHead, Form, Head, Neuron
from qgpu.backends.transformer.schedule import Node, inputs_of, outputs_of


class Ranges:
    """The ranges of a circuit's channels and forms, [lowest, highest] a block.

    Attributes:
        blocks: number of blocks that can be the current one, the length of each of `row_tables`.
        order: the nodes, each after those that write what it reads.
    """

    def __init__(self, circuit: Circuit, tokens: Sequence[int]) -> None:
        """Follow the ranges through a circuit.

        Args:
            tokens: ids of the tokens that occur.
        """
        self.blocks = len(next(iter(circuit.row_tables.values())))
        self._tokens = {channel: table[tokens] for channel, table in circuit.token_tables.items()}
        self._over_tokens: dict[frozenset[tuple[Channel, int]], tuple[int, int]] = {}
        self._index = {channel: i for i, channel in enumerate(circuit.channels)}
        self._low = np.zeros((len(circuit.channels), self.blocks), np.int64)
        self._high = np.zeros_like(self._low)
        for channel, table in self._tokens.items():
            self._low[self._index[channel]] = table.min()
            self._high[self._index[channel]] = table.max()
        for channel, table in circuit.row_tables.items():
            self._low[self._index[channel]] = self._high[self._index[channel]] = table
        self.order = in_order([*circuit.neurons, *circuit.heads])
        self._falling = set(_falling(self.order))
        self._exclusive = circuit.exclusive
        self._gates: dict[Neuron, tuple[np.ndarray, np.ndarray]] = {}
        waiting = Counter(channel for node in self.order for channel in outputs_of(node))
        for node in self.order:
            self._follow(node)
            for channel in outputs_of(node):
                waiting[channel] -= 1
                if not waiting[channel]:
                    self._clip(channel)

    def channel(self, channel: Channel) -> tuple[np.ndarray, np.ndarray]:
        """The least and largest value of a channel in each block."""
        place = self._index[channel]
        return self._low[place], self._high[place]

    def gate(self, neuron: Neuron) -> tuple[np.ndarray, np.ndarray]:
        """The least and largest value of a neuron's gate in each block."""
        return self._gates[neuron]

    def of(self, forms: Sequence[Form]) -> tuple[np.ndarray, np.ndarray]:
        """The least and largest value of each form in each block, [form, block]."""
        mine = list(dict.fromkeys(c for form in forms for c in form.terms if c not in self._tokens))
        place = {channel: i for i, channel in enumerate(mine)}
        weights = np.zeros((len(forms), len(mine)), np.int64)
        low = np.array([[form.constant] for form in forms]).repeat(self.blocks, axis=1)
        high = low.copy()
        for row, form in enumerate(forms):
            given = frozenset((c, k) for c, k in form.terms.items() if c in self._tokens)
            for channel, weight in form.terms.items():
                if channel in place:
                    weights[row, place[channel]] = weight
            if given:
                least, most = self._of_token(given)
                low[row] += least
                high[row] += most
        places = np.array([self._index[channel] for channel in mine], np.int64)
        lowest, highest = self._low[places], self._high[places]
        up, down = np.maximum(weights, 0), np.minimum(weights, 0)
        return low + up @ lowest + down @ highest, high + up @ highest + down @ lowest

    def rows(self, head: Head) -> tuple[np.ndarray, np.ndarray]:
        """Which rows of a head can be written, [row], and which can be read in each block, [row, block]."""
        written = self.of(head.keys)[1].max(axis=1) >= 1
        return written, self.of(head.queries)[1] >= 1

    def is_written(self, head: Head, column: Column) -> bool:
        """Whether a column can be written with a 1."""
        forms = (column.value, head.write)
        if not column.tap and all(c in self._tokens for form in forms for c in form.terms):
            value, write = map(self._by_token, forms)
            return bool((value[write >= 1] >= 1).any())
        return bool(self.of([column.value])[1].max() >= 1)

    def _clip(self, channel: Channel) -> None:
        """Hold a channel, now that all its writers are known, to what its circuit says of it."""
        place = self._index[channel]
        floor = -channel.maximum if channel in self._falling else 0
        for bounds in (self._low, self._high):
            bounds[place] = bounds[place].clip(floor, channel.maximum)

    def _follow_gate(self, form: Form) -> tuple[np.ndarray, np.ndarray]:
        """As `of`, for one form."""
        low = high = np.full(self.blocks, form.constant)
        given = frozenset((c, k) for c, k in form.terms.items() if c in self._tokens)
        if given:
            least, most = self._of_token(given)
            low, high = low + least, high + most
        pairs = [(self._index[c], k) for c, k in form.terms.items() if c not in self._tokens]
        if pairs:
            places, weights = np.array(pairs).T
            one, other = self._low[places].T * weights, self._high[places].T * weights
            low, high = low + np.minimum(one, other).sum(axis=1), high + np.maximum(one, other).sum(axis=1)
        return low, high - self._not_both(form)

    def _not_both(self, form: Form) -> np.ndarray | int:
        """What the highest value of a form counts too much, of channels that exclude each other."""
        too_much: np.ndarray | int = 0
        for channel, weight in form.terms.items():
            other = self._exclusive.get(channel)
            beside = 0 if other is None else form.terms.get(other, 0)
            if other is not None and weight > 0 and beside > 0:
                highest = weight * self.channel(channel)[1], beside * self.channel(other)[1]
                too_much = too_much + np.minimum(*highest)
        return too_much

    def _of_token(self, given: frozenset[tuple[Channel, int]]) -> tuple[int, int]:
        if given not in self._over_tokens:
            values = self._by_token(Form(dict(given)))
            self._over_tokens[given] = int(values.min()), int(values.max())
        return self._over_tokens[given]

    def _by_token(self, form: Form) -> np.ndarray:
        """The value of a form over channels that the token gives, for each token."""
        start = np.full(len(next(iter(self._tokens.values()))), form.constant)
        return sum((k * self._tokens[c] for c, k in form.terms.items()), start)

    def _follow(self, node: Node) -> None:
        if isinstance(node, CounterHead):
            self._high[self._index[node.output]] = node.output.maximum
        elif isinstance(node, Neuron):
            low, high = self._gates[node] = self._follow_gate(node.gate)
            active = np.maximum(low, 0), np.maximum(high, 0)
            for channel, coefficient in node.outputs:
                self._add(channel, coefficient, active)
        else:
            self._follow_memory(node)

    def _follow_memory(self, head: Head) -> None:
        written, read = self.rows(head)
        seen = (read & written[:, None]).any(axis=0)
        if not seen.any() or self.of([head.write])[1].max() < 1:
            return
        gates = [column.gate or Form({}, 1) for column in head.columns]
        on = (self.of(gates)[1] >= 1) & seen
        for column, reads in zip(head.columns, on, strict=True):
            if not reads.any() or not self.is_written(head, column):
                continue
            for channel, coefficient in column.outputs:
                self._add(channel, coefficient, (np.zeros_like(self._low[0]), reads * head.rows_read))

    def _add(self, channel: Channel, coefficient: int, added: tuple[np.ndarray, np.ndarray]) -> None:
        low, high = added if coefficient > 0 else added[::-1]
        self._low[self._index[channel]] += coefficient * low
        self._high[self._index[channel]] += coefficient * high


def _falling(nodes: Sequence[Node]) -> Iterator[Channel]:
    """Channels that may be negative: those of memories (see `Channel`) from which something is taken away."""
    for node in nodes:
        writes = [] if isinstance(node, CounterHead) else [node] if isinstance(node, Neuron) else node.columns
        for channel, coefficient in chain.from_iterable(write.outputs for write in writes):
            if coefficient < 0 and channel.kind == "memory":
                yield channel


def in_order(nodes: Sequence[Node]) -> list[Node]:
    """Nodes in an order in which each comes after those that write what it reads.

    Raises:
        graphlib.CycleError: there is none.
    """
    writers: dict[Channel, list[int]] = defaultdict(list)
    for number, node in enumerate(nodes):
        for channel in outputs_of(node):
            writers[channel].append(number)
    # A channel stands for all its writers, which keeps the graph small.
    graph: graphlib.TopologicalSorter[int | Channel] = graphlib.TopologicalSorter()
    for channel, numbers in writers.items():
        graph.add(channel, *numbers)
    for number, node in enumerate(nodes):
        graph.add(number, *inputs_of(node))
    return [nodes[n] for n in graph.static_order() if isinstance(n, int)]
