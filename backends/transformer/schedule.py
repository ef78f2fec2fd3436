"""The scheduler: places neurons and heads in layers.

A layer offers two slots: its heads read and write first (slot 2 * layer), its neurons after them (2 * layer +
    1). What reads a channel lies in a later slot than everything that writes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from qgpu.backends.machine.description import ModelShape
from qgpu.backends.transformer.circuit import Channel, Circuit, CounterHead, Form, Head, Neuron

Node = Neuron | Head | CounterHead

JUSTIFICATIONS = 6
"""Placements that the scheduler tries, each in the order of the one before."""


class ScheduleError(ValueError):
    """The circuit does not fit the host's layers."""


@dataclass
class Schedule:
    """Where everything is.

    Attributes:
        layers: number of layers.
        attention_layer: the layer whose mixer is full attention (it holds no heads); None: no layer is.
        heads: heads of each layer.
        neurons: neurons of each layer.
        slot_of: the slot of each node.
        critical_path: slots of the longest dependence chain, a lower bound of 2 * layers.
    """

    layers: int
    attention_layer: int | None
    heads: list[list[Head | CounterHead]]
    neurons: list[list[Neuron]]
    slot_of: dict[Node, int]
    critical_path: int


def inputs_of(node: Node) -> list[Channel]:
    """Channels that a node reads, each once, in a fixed order."""
    return list(dict.fromkeys(chain.from_iterable(form.terms for form in forms_of(node))))


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


def schedule(circuit: Circuit, shape: ModelShape, attention: bool = True, narrow: bool = True) -> Schedule:
    """Place a circuit in as few layers as list scheduling finds, with as narrow a widest layer as keeps them
    few.

    With `attention`, one layer is kept free of heads for full attention, which transformers' cache asks for.
    Without `narrow`, the widest layer may have as many neurons as the shape allows: the host's layers are as
    wide anyway.

    Nodes are taken by slack: at first those with the longest chain of dependents, then in the order of a
    placement from the end, so that what can wait leaves room in its layer for what cannot.

    Raises:
        ScheduleError: a layer's neurons can't be held within `shape.intermediate`.
    """
    nodes: list[Node] = [*circuit.neurons, *circuit.heads]
    graph = _Dependences(nodes)
    best = _fewest_layers(graph, shape)
    if best is None:
        raise ScheduleError(f"the circuit does not fit layers of {shape.heads} heads")
    if not narrow:
        return _layered(circuit, best, graph, attention)
    last = max(best.values())
    low, high = 1, shape.intermediate
    latest = _place_backwards(graph, _Capacity(shape.heads, shape.intermediate), best)
    while low < high:
        middle = (low + high) // 2
        trial = _place(graph, _Capacity(shape.heads, middle), last, latest)
        best, low, high = (best, middle + 1, high) if trial is None else (trial, low, middle)
    return _layered(circuit, best, graph, attention)


def _fewest_layers(graph: _Dependences, shape: ModelShape) -> dict[Node, int] | None:
    """Place forwards and backwards in turn, each time in the order of the last placement, as long as it
    helps (justification: Wiest 1964; Valls, Ballestin, Quintanilla, EJOR 165, 2005).
    """
    capacity = _Capacity(shape.heads, shape.intermediate)
    rank = {node: -height for node, height in graph.height.items()}
    best: dict[Node, int] | None = None
    for _ in range(JUSTIFICATIONS):
        placed = _place(graph, capacity, 2 * len(graph.nodes), rank)
        if placed is None:
            return best
        if best is None or max(placed.values()) < max(best.values()):
            best = placed
        rank = _place_backwards(graph, capacity, placed)
    return best


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


@dataclass(frozen=True)
class _Capacity:
    """Heads and neurons of a layer."""

    heads: int
    neurons: int


def _place(
    graph: _Dependences, capacity: _Capacity, limit: int, rank: Mapping[Node, int]
) -> dict[Node, int] | None:
    """List scheduling, the lowest ranks first; None where it needs slots beyond `limit`."""
    return _fill(graph.nodes, graph.before, graph.after, capacity, limit, rank, lambda slot: bool(slot % 2))


def _place_backwards(graph: _Dependences, capacity: _Capacity, placed: Mapping[Node, int]) -> dict[Node, int]:
    """The slots, counted from the same beginning, of the same placement from the last slot on."""
    last = max(placed.values())
    rank = {node: -slot for node, slot in placed.items()}
    is_mlp = lambda slot: bool((last - slot) % 2)  # noqa: E731
    found = _fill(graph.nodes, graph.after, graph.before, capacity, 2 * len(graph.nodes), rank, is_mlp)
    return {node: last - slot for node, slot in (found or {}).items()}


def _fill(
    nodes: Sequence[Node],
    before: Mapping[Node, Sequence[Node]],
    after: Mapping[Node, Sequence[Node]],
    capacity: _Capacity,
    limit: int,
    rank: Mapping[Node, int],
    is_mlp: Callable[[int], bool],
) -> dict[Node, int] | None:
    waiting = {node: len(before.get(node, ())) for node in nodes}
    ready: dict[bool, list[Node]] = {True: [], False: []}
    for node in nodes:
        if not waiting[node]:
            ready[isinstance(node, Neuron)].append(node)
    placed: dict[Node, int] = {}
    slot = 0
    while len(placed) < len(nodes):
        if slot > limit:
            return None
        kind = is_mlp(slot)
        room = capacity.neurons if kind else capacity.heads
        candidates = sorted(ready[kind], key=lambda node: rank[node])
        chosen, ready[kind] = candidates[:room], candidates[room:]
        placed |= dict.fromkeys(chosen, slot)
        for node in _released(chosen, after, waiting):
            ready[isinstance(node, Neuron)].append(node)
        slot += 1
    return placed


def _released(
    chosen: Iterable[Node], after: Mapping[Node, Sequence[Node]], waiting: dict[Node, int]
) -> list[Node]:
    released = []
    for node in chosen:
        for follower in after.get(node, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                released.append(follower)
    return released


def _layered(circuit: Circuit, placed: dict[Node, int], graph: _Dependences, attention: bool) -> Schedule:
    layers = max(placed.values()) // 2 + 1
    used = {slot // 2 for node, slot in placed.items() if not isinstance(node, Neuron)}
    free = [layer for layer in range(layers) if layer not in used]
    if attention and not free:
        free, layers = [layers], layers + 1
    schedule = Schedule(
        layers,
        free[-1] if attention else None,
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
