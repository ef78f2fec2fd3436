"""Constant folding and dead code elimination for a circuit whose program is known.

What the program's blocks leave open is all that stays: a neuron whose gate is at most 0 in every block is
none, nor is a row of memory that is never written or never read. A channel that the block alone decides is no
circuit but another bit of the program's rows, and one that is a constant, or the same as another, is no
channel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from qgpu.backends.transformer.circuit import Channel, Circuit, Column, CounterHead, Form, Head, Neuron, total
from qgpu.backends.transformer.ranges import Ranges
from qgpu.backends.transformer.schedule import Node, inputs_of, outputs_of

OFF = Form({}, 0)
"""The key of a row that is never written, and the query of one that is never read."""

ROUNDS = 12
"""Rounds of folding at most: what one finds may show the next one more."""


def fold(circuit: Circuit, tokens: Sequence[int], keep: Collection[str] = ()) -> Circuit:
    """Return the circuit that gives the same tokens in the blocks of its `row_tables`.

    Args:
        tokens: ids of the tokens that occur.
        keep: names of channels that something else is to read.
    """
    size = None
    for _ in range(ROUNDS):
        circuit = _Round(circuit, tokens, keep).folded()
        before, size = size, _size(circuit)
        if size == before:
            break
    return circuit


def _size(circuit: Circuit) -> tuple[int, ...]:
    heads = [head for head in circuit.heads if isinstance(head, Head)]
    gates = sum(len(neuron.gate.terms) for neuron in circuit.neurons)
    return (len(circuit.channels), len(circuit.neurons), gates, sum(len(head.keys) for head in heads))


class _Round:
    """One forward pass, which replaces channels and drops what is off, and one backward, which drops what
    nothing reads.
    """

    def __init__(self, circuit: Circuit, tokens: Sequence[int], keep: Collection[str]) -> None:
        self.circuit, self.tokens = circuit, tokens
        self.ranges = Ranges(circuit, tokens)
        self.keep = {channel for channel in circuit.channels if channel.name in keep}
        self.known: dict[Channel, Form] = {}
        self.tables: dict[Channel, np.ndarray] = {}
        self._by_table: dict[bytes, Channel] = {}
        self._by_writers: dict[frozenset[tuple[Neuron, int]], Channel] = {}
        self._by_gate: dict[tuple[frozenset[tuple[Channel, int]], int], Neuron] = {}
        self._columns: dict[tuple[int, tuple[bool, ...]], list[Column]] = {}
        self._writers: dict[Channel, list[tuple[Node, int]]] = defaultdict(list)
        self._nodes: list[Node] = []

    def folded(self) -> Circuit:
        """The circuit after this round."""
        self._replace_inputs()
        waiting: dict[Channel, int] = defaultdict(int)
        for node in self.ranges.order:
            for channel in outputs_of(node):
                waiting[channel] += 1
        for node in self.ranges.order:
            self._rewrite(node)
            for channel in outputs_of(node):
                waiting[channel] -= 1
                if not waiting[channel]:
                    self._replace(channel)
        return self._live()

    # Forward.

    def _replace_inputs(self) -> None:
        """Replace channels of the token and of the block, and those that nothing writes."""
        given = self.circuit.token_tables
        seen: dict[bytes, Channel] = {}
        for channel, table in given.items():
            values = table[self.tokens]
            same = seen.setdefault(values.tobytes(), channel)
            if values.min() == values.max():
                self.known[channel] = Form({}, int(values[0]))
            elif same is not channel:
                self.known[channel] = same.form()
        for channel, table in self.circuit.row_tables.items():
            self._of_block(channel, table)
        written = {channel for node in self.ranges.order for channel in outputs_of(node)}
        for channel in self.circuit.channels:
            if channel not in written and channel not in given and channel not in self.circuit.row_tables:
                self.known[channel] = Form({}, 0)

    def _of_block(self, channel: Channel, table: np.ndarray) -> None:
        """Replace a channel that the block decides: by a constant, another of its kind, or the complement."""
        same, opposite = self._by_table.get(table.tobytes()), self._by_table.get((1 - table).tobytes())
        if table.min() == table.max():
            self.known[channel] = Form({}, int(table[0]))
        elif same is not None:
            self.known[channel] = same.form()
        elif opposite is not None:
            self.known[channel] = 1 - opposite.form()
        else:
            self._by_table[table.tobytes()] = channel
            self.tables[channel] = table

    def _replace(self, channel: Channel) -> None:
        """Replace a channel by what it is equal to, if anything simpler."""
        low, high = self.ranges.channel(channel)
        writers = self._writers[channel]
        if (low == high).all() and low.min() >= 0:
            self._of_block(channel, low)
            return
        neurons = [(node, k) for node, k in writers if isinstance(node, Neuron)]
        if channel in self.keep or len(neurons) < len(writers):
            return
        if len(neurons) == 1 and self._is_linear(neurons[0][0].gate):
            self.known[channel] = neurons[0][0].gate * neurons[0][1]
            return
        same = self._by_writers.setdefault(frozenset(neurons), channel)
        if same is not channel:
            self.known[channel] = same.form()

    def _is_linear(self, gate: Form) -> bool:
        """Whether a neuron of a gate hands on one channel or its complement: the gate is never below 0."""
        return len(gate.terms) <= 1 and bool((self.ranges.of([gate])[0] >= 0).all())

    def _form(self, form: Form) -> Form:
        """A form with what is known in place of channels."""
        if not any(channel in self.known for channel in form.terms):
            return form
        parts = (self.known.get(channel, channel.form()) * k for channel, k in form.terms.items())
        return total([form.constant, *parts])

    def _rewrite(self, node: Node) -> None:
        if isinstance(node, Neuron):
            self._rewrite_neuron(node)
        elif isinstance(node, Head):
            self._rewrite_head(node)
        else:
            form = self._form
            self._add(replace(node, step=form(node.step), set=form(node.set), value=form(node.value)))

    def _rewrite_neuron(self, neuron: Neuron) -> None:
        """Neurons of one gate become one."""
        if self.ranges.gate(neuron)[1].max() < 1:
            return
        gate = self._form(neuron.gate)
        key = frozenset(gate.terms.items()), gate.constant
        mine = self._by_gate.get(key)
        if mine is None:
            self._by_gate[key] = mine = Neuron(gate, [], neuron.unit)
            self._nodes.append(mine)
        for channel, coefficient in neuron.outputs:
            before = dict(mine.outputs).get(channel, 0)
            mine.outputs = [(c, k) for c, k in mine.outputs if c is not channel]
            mine.outputs += [(channel, before + coefficient)] if before + coefficient else []
            writers = self._writers[channel]
            writers[:] = [(node, k) for node, k in writers if node is not mine]
            writers += [(mine, before + coefficient)] if before + coefficient else []

    def _rewrite_head(self, head: Head) -> None:
        written, read = self.ranges.rows(head)
        used = written & read.any(axis=1)
        if not used.any():
            return
        # Rows that one token writes together stay together: their number is in the key's length.
        rows = [row for row in range(len(used)) if used[row] or head.initial]
        seen = (read & written[:, None]).any(axis=0)
        gates = [column.gate or Form({}, 1) for column in head.columns]
        on = np.any((self.ranges.of(gates)[1] >= 1) & seen, axis=1).tolist()
        live = tuple(
            bool(o) and self.ranges.is_written(head, c) for o, c in zip(on, head.columns, strict=True)
        )
        if not any(live) or self.ranges.of([head.write])[1].max() < 1:
            return
        key = id(head.columns), live
        if key not in self._columns:
            chosen = (column for column, alive in zip(head.columns, live, strict=True) if alive)
            self._columns[key] = [self._column(column) for column in chosen]
        self._add(
            replace(
                head,
                keys=[self._form(head.keys[row]) if written[row] else OFF for row in rows],
                queries=[self._form(head.queries[row]) if read[row].any() else OFF for row in rows],
                write=self._form(head.write),
                columns=self._columns[key],
                initial=head.initial and (self._form(head.initial[0]), head.initial[1]),
                constant_where=head.constant_where and self._form(head.constant_where),
            )
        )

    def _column(self, column: Column) -> Column:
        gate = None if column.gate is None else self._form(column.gate)
        if gate is not None and not gate.terms:
            gate = None
        return Column(self._form(column.value), column.outputs, gate, column.tap)

    def _add(self, node: Node) -> None:
        self._nodes.append(node)
        for channel in outputs_of(node):
            self._writers[channel].append((node, 1))

    # Backward.

    def _live(self) -> Circuit:
        """The circuit of what a logit depends on."""
        logits = {token: self._form(form) for token, form in self.circuit.readout.logits.items()}
        logits = {token: form for token, form in logits.items() if form.terms or form.constant > 0}
        needed = set(self.keep).union(*(form.terms for form in logits.values()))
        trimmed: dict[int, list[Column]] = {}
        nodes: list[Node] = []
        for node in reversed(self._nodes):
            kept = self._trimmed(node, needed, trimmed)
            if kept is not None:
                nodes.append(kept)
                needed.update(inputs_of(kept))
        folded = Circuit(self.circuit.vocabulary_size)
        folded.neurons = [node for node in reversed(nodes) if isinstance(node, Neuron)]
        folded.heads = [node for node in reversed(nodes) if not isinstance(node, Neuron)]
        folded.readout.logits = logits
        folded.row_tables = {c: table for c, table in self.tables.items() if c in needed}
        folded.token_tables = {c: table for c, table in self.circuit.token_tables.items() if c in needed}
        pairs = self.circuit.exclusive.items()
        folded.exclusive = {one: other for one, other in pairs if {one, other} <= needed}
        folded.adopt(channel for channel in self.circuit.channels if channel in needed)
        return folded

    def _trimmed(self, node: Node, needed: set[Channel], trimmed: dict[int, list[Column]]) -> Node | None:
        """A node without outputs that nothing needs, None where it has no other."""

        def wanted(outputs: list[tuple[Channel, int]]) -> list[tuple[Channel, int]]:
            return [
                (c, k) for c, k in outputs if c in needed and c not in self.known and c not in self.tables
            ]

        if isinstance(node, Neuron):
            outputs = wanted(node.outputs)
            return Neuron(node.gate, outputs, node.unit) if outputs else None
        if isinstance(node, CounterHead):
            return node if node.output in needed else None
        if id(node.columns) not in trimmed:
            columns = (replace(column, outputs=wanted(column.outputs)) for column in node.columns)
            trimmed[id(node.columns)] = [column for column in columns if column.outputs]
        columns = trimmed[id(node.columns)]
        return replace(node, columns=columns) if columns else None
