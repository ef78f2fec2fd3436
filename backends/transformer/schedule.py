"""The scheduler: places neurons and heads in layers.

A layer offers two slots: its heads read and write first (slot 2 * layer), its neurons after them (2 * layer +
    1). What reads a channel lies in a later slot than everything that writes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from qgpu.backends.machine.description import ModelShape
from qgpu.backends.transformer.circuit import Channel, Circuit, CounterHead, Form, Head, Neuron

Node = Neuron | Head | CounterHead


class ScheduleError(ValueError):
    """The circuit does not fit the host's layers."""


@dataclass
class Schedule:
    """Where everything is.

    Attributes:
        layers: number of layers.
        attention_layer: the layer whose mixer is full attention (it holds no heads).
        heads: heads of each layer.
        neurons: neurons of each layer.
        slot_of: the slot of each node.
        critical_path: slots of the longest dependence chain, a lower bound of 2 * layers.
    """

    layers: int
    attention_layer: int
    heads: list[list[Head | CounterHead]]
    neurons: list[list[Neuron]]
    slot_of: dict[Node, int]
    critical_path: int


def inputs_of(node: Node) -> list[Channel]:
    """Channels that a node reads, each once, in a fixed order."""
    return list(dict.fromkeys(channel for form in forms_of(node) for channel in form.terms))


def forms_of(node: Node) -> list[Form]:
    """Linear forms that a node reads."""
    if isinstance(node, Neuron):
        return [node.gate]
    if isinstance(node, CounterHead):
        return [node.step, node.set, node.value]
    forms = [*node.keys, *node.queries, node.write]
    for column in node.columns:
        forms.append(column.value)
        if column.gate is not None:
            forms.append(column.gate)
    forms += [node.initial[0]] if node.initial else []
    forms += [node.constant_where] if node.constant_where else []
    return forms


def outputs_of(node: Node) -> list[Channel]:
    """Channels that a node writes, each once, in a fixed order."""
    if isinstance(node, Neuron):
        return list(dict.fromkeys(channel for channel, _ in node.outputs))
    if isinstance(node, CounterHead):
        return [node.output]
    return list(dict.fromkeys(channel for column in node.columns for channel, _ in column.outputs))


def schedule(circuit: Circuit, shape: ModelShape) -> Schedule:
    """Place a circuit in as few layers as list scheduling finds, with as narrow a widest layer as keeps them
    few.

    Nodes are taken by slack: those with the longest chain of dependents first.

    Raises:
        ScheduleError: a layer's neurons can't be held within `shape.intermediate`.
    """
    nodes: list[Node] = [*circuit.neurons, *circuit.heads]
    graph = _Dependences(nodes)
    best = _place(graph, shape.heads, shape.intermediate, limit=len(nodes) * 2)
    if best is None:
        raise ScheduleError(f"the circuit does not fit layers of {shape.heads} heads")
    last = max(best.values())
    low, high = 1, shape.intermediate
    while low < high:
        middle = (low + high) // 2
        trial = _place(graph, shape.heads, middle, limit=last)
        best, low, high = (best, middle + 1, high) if trial is None else (trial, low, middle)
    return _layered(circuit, best, graph)


class _Dependences:
    """Who waits for whom: a node waits for every writer of every channel that it reads."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        writers: dict[Channel, list[Node]] = defaultdict(list)
        for node in nodes:
            for channel in outputs_of(node):
                writers[channel].append(node)
        self.before = {node: self._writers(node, writers) for node in nodes}
        self.after: dict[Node, list[Node]] = defaultdict(list)
        for node, sources in self.before.items():
            for source in sources:
                self.after[source].append(node)
        self.order = self._topological()
        self.height = self._heights()

    @staticmethod
    def _writers(node: Node, writers: dict[Channel, list[Node]]) -> list[Node]:
        return list(dict.fromkeys(w for channel in inputs_of(node) for w in writers[channel]))

    def _topological(self) -> list[Node]:
        waiting = {node: len(sources) for node, sources in self.before.items()}
        order = [node for node in self.nodes if not waiting[node]]
        for node in order:
            for follower in self.after[node]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    order.append(follower)
        if len(order) != len(self.nodes):
            raise ScheduleError("the circuit has a cycle")
        return order

    def _heights(self) -> dict[Node, int]:
        """Slots from a node to the end of its longest chain of dependents."""
        height: dict[Node, int] = {}
        for node in reversed(self.order):
            height[node] = max((height[f] + distance(node, f) for f in self.after[node]), default=0)
        return height

    def critical_path(self) -> int:
        """Slots of the longest chain, from slot 0, capacities aside."""
        early: dict[Node, int] = {}
        for node in self.order:
            first = 1 if isinstance(node, Neuron) else 0
            early[node] = max((early[s] + distance(s, node) for s in self.before[node]), default=first)
        return max(early.values()) + 1


def distance(source: Node, follower: Node) -> int:
    """Slots between a node and one that reads what it writes: 1 across kinds, 2 within one."""
    return 2 if isinstance(source, Neuron) == isinstance(follower, Neuron) else 1


def _place(graph: _Dependences, heads: int, neurons: int, limit: int) -> dict[Node, int] | None:
    """List scheduling with so many heads and neurons a layer; None where it needs slots beyond `limit`."""
    waiting = {node: len(sources) for node, sources in graph.before.items()}
    ready: dict[bool, list[Node]] = {True: [], False: []}
    for node in graph.nodes:
        if not waiting[node]:
            ready[isinstance(node, Neuron)].append(node)
    placed: dict[Node, int] = {}
    slot = 0
    while len(placed) < len(graph.nodes):
        if slot > limit:
            return None
        is_mlp = bool(slot % 2)
        candidates = sorted(ready[is_mlp], key=lambda node: -graph.height[node])
        capacity = neurons if is_mlp else heads
        chosen, ready[is_mlp] = candidates[:capacity], candidates[capacity:]
        for node in chosen:
            placed[node] = slot
        for node in _released(chosen, graph, waiting):
            ready[isinstance(node, Neuron)].append(node)
        slot += 1
    return placed


def _released(chosen: Iterable[Node], graph: _Dependences, waiting: dict[Node, int]) -> list[Node]:
    released = []
    for node in chosen:
        for follower in graph.after[node]:
            waiting[follower] -= 1
            if not waiting[follower]:
                released.append(follower)
    return released


def _layered(circuit: Circuit, placed: dict[Node, int], graph: _Dependences) -> Schedule:
    layers = max(placed.values()) // 2 + 1
    used = {slot // 2 for node, slot in placed.items() if not isinstance(node, Neuron)}
    free = [layer for layer in range(layers) if layer not in used]
    if not free:
        free, layers = [layers], layers + 1
    schedule = Schedule(
        layers,
        free[-1],
        [[] for _ in range(layers)],
        [[] for _ in range(layers)],
        placed,
        graph.critical_path(),
    )
    for neuron in circuit.neurons:
        schedule.neurons[placed[neuron] // 2].append(neuron)
    for head in circuit.heads:
        schedule.heads[placed[head] // 2].append(head)
    return schedule
