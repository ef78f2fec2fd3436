"""Make the sparse form of a checkpoint: its non-zeros, sorted by what the loop asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from qgpu.backends.engine.layout import (
    FEED_FORWARD,
    GATE,
    HEAD,
    INPUT,
    KEY,
    LAST_WATCH,
    MIXER,
    NEURON,
    QUERY,
    RING,
    Form,
)
from qgpu.backends.engine.tensors import Arrays, ModelError
from qgpu.backends.engine.tree import Tree, build_tree

Array = np.ndarray


@dataclass
class _Ranges:
    """Lists of entries, one after another: `start[i]` to `start[i + 1]` is the i-th."""

    starts: list[int] = field(default_factory=lambda: [0])
    parts: list[list[Array]] = field(default_factory=list)

    def add(self, *columns: Iterable[Any]) -> None:
        """Add one list, given by its columns."""
        arrays = [np.asarray(column) for column in columns]
        self.parts.append(arrays)
        self.starts.append(self.starts[-1] + len(arrays[0]))

    def start(self) -> Array:
        return np.array(self.starts, np.int64)

    def column(self, number: int, dtype: Any) -> Array:
        parts = [part[number] for part in self.parts]
        return np.concatenate(parts).astype(dtype) if parts else np.empty(0, dtype)


@dataclass
class _Heads:
    """Sizes of the linear-attention heads of a layer."""

    count: int
    key: int
    value: int


def build_form(tensors: Arrays, config: dict[str, Any]) -> Form:
    """Make the form of a checkpoint.

    Raises:
        ModelError: a layer attends, and its attention puts something out.
        KeyError, TypeError, ValueError: the config or the tensors are not those of a Qwen3.5 text model.
    """
    heads = _Heads(
        config["linear_num_value_heads"], config["linear_key_head_dim"], config["linear_value_head_dim"]
    )
    builder = _Builder(heads, tensors["model.embed_tokens.weight"])
    for number, kind in enumerate(config["layer_types"]):
        prefix = f"model.layers.{number}."
        if kind == "linear_attention":
            builder.mixer(tensors, prefix)
        elif tensors[f"{prefix}self_attn.o_proj.weight"].any():
            raise ModelError(
                f"{prefix}self_attn attends; the engine computes layers whose attention puts out 0"
            )
        builder.feed_forward(tensors, prefix)
    tied = config.get("tie_word_embeddings")
    head = builder.embedding if tied else tensors["lm_head.weight"]
    builder.head(tensors["model.norm.weight"], head)
    return builder.form(len(config["layer_types"]), config["rms_norm_eps"])


class _Builder:
    """Collects stages in the order in which a token passes them."""

    def __init__(self, heads: _Heads, embedding: Array) -> None:
        self.embedding = embedding
        self._heads = heads
        self._hidden = embedding.shape[1]
        # Channels that are the same for every token and that nothing writes (yet) tell rows apart last.
        self._constant = (embedding == embedding[0]).all(axis=0)
        self._forms = 0
        self._kind: list[int] = []
        self._gain: list[Array] = []
        self._columns = _Ranges()
        self._first_form: list[int] = []
        self._first_neuron: list[int] = []
        self._down = _Ranges()
        self._mixer: list[int] = []
        self._layer_mixer: list[int] = []
        self._mixers = 0
        self._head: dict[str, list[Any]] = {
            name: [] for name in ("strength", "decay", "rate", "bias", "norm")
        }
        self._values = _Ranges()
        self._gates = _Ranges()
        self._members = _Ranges()
        self._outputs = _Ranges()
        self._rows: list[tuple[int, Array]] = []
        self._kept = _Ranges()
        self._loose = _Ranges()
        self._tree_start = [0]
        self._trees: list[tuple[int, int, Tree]] = []
        self._group_start = [0]
        self._group_tree = [0]
        self._group_place = [0]

    def _stage(self, kind: int, norm: Array, forms: Array) -> int:
        """Begin a stage with all the forms that read its norm [form, hidden]; return the first's number."""
        self._kind.append(kind)
        self._gain.append((1 + norm).astype(np.float32))
        # Row by row it is found faster, above all in a mask, and sorted by column then.
        rows, by_column = np.divmod(np.flatnonzero(forms != 0), self._hidden)
        order = np.argsort(by_column, kind="stable")
        rows, by_column = rows[order], by_column[order]
        weights = forms[rows, by_column]
        counts = np.bincount(by_column, minlength=self._hidden)
        ends = np.cumsum(counts)
        for channel in range(self._hidden):
            part = slice(ends[channel] - counts[channel], ends[channel])
            self._columns.add(rows[part] + self._forms, weights[part])
        first = self._forms
        self._forms += len(forms) + -len(forms) % NEURON
        self._first_form.append(first)
        self._mixer.append(-1)
        self._first_neuron.append(len(self._down.parts))
        return first

    def feed_forward(self, tensors: Arrays, prefix: str) -> None:
        """Add the neurons that have both a gate and an input, and put something out."""
        gate, up, down = (tensors[f"{prefix}mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
        neurons = np.flatnonzero(gate.any(axis=1) & up.any(axis=1) & down.any(axis=0))
        if not len(neurons):
            return
        norm = tensors[f"{prefix}post_attention_layernorm.weight"]
        forms = np.zeros((len(neurons), NEURON, self._hidden), np.float32)
        forms[:, GATE], forms[:, INPUT] = gate[neurons], up[neurons]
        self._stage(FEED_FORWARD, norm, forms.reshape(-1, self._hidden))
        for neuron in neurons:
            self._down.add(*_nonzeros(down[:, neuron]))
        self._constant &= ~down.any(axis=1)

    def head(self, norm: Array, head: Array) -> None:
        """Add the final norm and the logits."""
        self._stage(HEAD, norm, np.zeros((0, self._hidden), np.float32))
        self._tree(0, np.arange(len(head)), head)

    def _tree(self, tap: int, numbers: Array, rows: Array) -> None:
        if not len(numbers):
            return
        at, channel = np.nonzero(rows)
        start = np.concatenate(([0], np.cumsum(np.bincount(at, minlength=len(rows))))).astype(np.int64)
        tree = build_tree(numbers.astype(np.int32), start, channel, rows[at, channel], self._constant)
        self._trees.append((len(self._kind) - 1, tap, tree))

    def mixer(self, tensors: Arrays, prefix: str) -> None:
        """Add a Gated DeltaNet, unless no key can ever be other than 0: its state and output stay 0 then."""
        names = ("in_proj_qkv", "conv1d", "in_proj_z", "in_proj_b", "in_proj_a", "out_proj")
        weights = {name: tensors[f"{prefix}linear_attn.{name}.weight"] for name in names}
        qkv, taps = weights["in_proj_qkv"], _taps(weights["conv1d"])
        live = np.any(qkv, axis=1) & np.any(taps, axis=1)
        keys = self._heads.count * self._heads.key
        writes = live[keys : 2 * keys].reshape(self._heads.count, -1).any(axis=1)
        self._layer_mixer.append(self._mixers if writes.any() else -1)
        if not writes.any():
            return
        mixer = _Mixer(self._heads, weights, taps, live, writes)
        rate = np.exp(tensors[f"{prefix}linear_attn.A_log"])
        first = self._stage(MIXER, tensors[f"{prefix}input_layernorm.weight"], mixer.forms(rate))
        self._mixer[-1] = self._mixers
        self._mixers += 1
        self._add_heads(mixer, first, tensors[f"{prefix}linear_attn.norm.weight"])
        self._head["rate"] += rate.tolist()
        self._head["bias"] += tensors[f"{prefix}linear_attn.dt_bias"].tolist()
        self._head["decay"] += [first + n if n >= 0 else -1 for n in mixer.decays]
        for side, rows in ((KEY, slice(keys, 2 * keys)), (QUERY, slice(keys))):
            self._add_groups(qkv[rows], taps[rows], live[rows] & mixer.single[rows], mixer.loose[side])
        self._tree_start.append(len(self._trees))
        self._constant &= ~weights["out_proj"].any(axis=1)

    def _add_groups(self, rows: Array, taps: Array, alone: Array, loose: list[tuple[int, int]]) -> None:
        """Group the heads whose keys (or queries) read the same channels through the same taps.

        Args:
            rows, taps: of in_proj_qkv and the convolution, of all heads.
            alone: which rows have one tap of weight 1.
            loose: entry and convolved row of those that have not.
        """
        size = self._heads.key
        members: dict[bytes, list[int]] = {}
        loose_heads = {entry // size for entry, _ in loose}
        for head in range(self._heads.count):
            mine = slice(head * size, (head + 1) * size)
            read = [rows[mine][alone[mine] & (taps[mine, tap] == 1)].any(axis=0) for tap in range(RING)]
            if head in loose_heads or np.any(read):
                key = np.array([channels & ~self._constant for channels in read]).tobytes()
                members.setdefault(key, []).append(head)
        for heads in members.values():
            inside = np.zeros(self._heads.count, bool)
            inside[heads] = True
            chosen = alone & np.repeat(inside, size)
            for tap in range(RING):
                entries = np.flatnonzero(chosen & (taps[:, tap] == 1))
                self._tree(tap, entries, rows[entries])
            mine = np.array([pair for pair in loose if inside[pair[0] // size]], np.int64).reshape(-1, 2)
            self._loose.add(mine[:, 0], mine[:, 1])
            self._group_tree.append(len(self._trees))
            self._group_place.append(self._group_place[-1] + len(heads))
        self._group_start.append(len(self._group_place) - 1)

    def _add_heads(self, mixer: _Mixer, first: int, norm: Array) -> None:
        rows = len(self._rows)
        self._rows += [(first + form, taps) for form, taps in mixer.rows]
        kept = [rows + n for n, (_, taps) in enumerate(mixer.rows) if not _recent(taps)]
        self._kept.add(kept)
        for side in (KEY, QUERY):
            mixer.loose[side] = [(entry, row + rows) for entry, row in mixer.loose[side]]
        self._head["strength"] += [first + n if n >= 0 else -1 for n in mixer.strengths]
        self._head["norm"].append(norm)
        for head in range(self._heads.count):
            columns, sources = mixer.values[head]
            self._values.add(columns, np.asarray(sources, np.int64) + rows)
            gates = mixer.gates[head]
            self._gates.add(np.array([form + first for form, _ in gates], np.int64))
            for _, members in gates:
                self._members.add(members)
                for column in members:
                    self._outputs.add(*_nonzeros(mixer.output[:, head * self._heads.value + column]))

    def form(self, layers: int, epsilon: float) -> Form:
        """Put all of it together."""
        differs = self.embedding != (base := _usual(self.embedding))
        token, channel = np.nonzero(differs)
        token_start = np.concatenate(([0], np.cumsum(np.bincount(token, minlength=len(differs)))))
        trees = [tree for *_, tree in self._trees]
        nodes = np.concatenate(([0], np.cumsum([len(tree.lowest_row) for tree in trees])))
        lists = [len(tree.leaf_row) for tree in trees[:-1]]
        sizes = (
            len(self.embedding),
            layers,
            self._mixers,
            self._heads.count,
            self._heads.key,
            self._heads.value,
            sum(lists),
            self._forms,
        )
        taps = np.array([t for _, t in self._rows], np.float32).reshape(-1, RING)
        hidden = self._hidden
        starts = self._columns.start()
        return Form(
            base=base,
            token_start=token_start.astype(np.int64),
            token_channel=channel.astype(np.int32),
            token_value=self.embedding[token, channel],
            kind=np.array(self._kind, np.int64),
            gain=np.array(self._gain, np.float32),
            column_start=np.array(
                [starts[stage * hidden : (stage + 1) * hidden + 1] for stage in range(len(self._kind))]
            ),
            column_form=self._columns.column(0, np.int32),
            column_weight=self._columns.column(1, np.float32),
            first_form=np.array(self._first_form, np.int64),
            first_neuron=np.array(self._first_neuron, np.int64),
            down_start=self._down.start(),
            down_channel=self._down.column(0, np.int32),
            down_weight=self._down.column(1, np.float32),
            mixer=np.array(self._mixer, np.int64),
            strength_form=np.array(self._head["strength"], np.int64),
            decay_form=np.array(self._head["decay"], np.int64),
            decay_rate=np.array(self._head["rate"], np.float32),
            decay_bias=np.array(self._head["bias"], np.float32),
            head_norm=np.array(self._head["norm"], np.float32).reshape(-1, self._heads.value),
            value_start=self._values.start(),
            value_column=self._values.column(0, np.int32),
            value_source=self._values.column(1, np.int32),
            gate_start=self._gates.start(),
            gate_form=self._gates.column(0, np.int32),
            member_start=self._members.start(),
            member_column=self._members.column(0, np.int32),
            output_start=self._outputs.start(),
            output_channel=self._outputs.column(0, np.int32),
            output_weight=self._outputs.column(1, np.float32),
            row_form=np.array([form for form, _ in self._rows], np.int64),
            row_taps=taps,
            row_recent=np.array([_recent(t) for t in taps], np.int8),
            kept_start=self._kept.start(),
            kept_row=self._kept.column(0, np.int32),
            loose_entry=self._loose.column(0, np.int64),
            loose_row=self._loose.column(1, np.int64),
            group_start=np.array(self._group_start, np.int64),
            group_tree=np.array(self._group_tree, np.int64),
            group_loose=self._loose.start(),
            group_place=np.array(self._group_place, np.int64),
            tree_start=np.array(self._tree_start, np.int64),
            tree_stage=np.array([stage for stage, *_ in self._trees], np.int64),
            tree_tap=np.array([tap for _, tap, _ in self._trees], np.int64),
            watch=self._watch(),
            tree_node=nodes.astype(np.int64),
            tree_list=np.concatenate(([0], np.cumsum(lists))).astype(np.int64),
            term_start=_joined([tree.term_start for tree in trees]),
            term_channel=np.concatenate([tree.term_channel for tree in trees]),
            term_weight=np.concatenate([tree.term_weight for tree in trees]),
            child_start=_joined([tree.child_start for tree in trees]),
            child=np.concatenate(
                [tree.child + np.int32(n) for tree, n in zip(trees, nodes, strict=False)]
            ).astype(np.int32),
            leaf_start=_joined([tree.leaf_start for tree in trees]),
            leaf_row=np.concatenate([tree.leaf_row for tree in trees]),
            lowest_row=np.concatenate([tree.lowest_row for tree in trees]),
            shape=np.concatenate(
                [*(np.full(len(tree.shape), -1, np.int32) for tree in trees[:-1]), trees[-1].shape]
            ),
            shape_node=trees[-1].shape_node + np.int32(nodes[-2]),
            shape_rest=trees[-1].shape_rest,
            sizes=np.array(sizes, np.int64),
            epsilon=np.array([epsilon], np.float32),
            layer_mixer=np.array(self._layer_mixer, np.int64),
        )

    def _watch(self) -> Array:
        """For each stage and channel, which of the stage's trees read it, as bits."""
        watch = np.zeros((len(self._kind), self._hidden), np.int64)
        for first, last in pairwise(self._tree_start):
            for tree in range(first, last):
                stage, _, nodes = self._trees[tree]
                watch[stage, np.unique(nodes.term_channel)] |= 1 << min(tree - first, LAST_WATCH)
        return watch


class _Mixer:
    """The forms of a Gated DeltaNet, numbered from 0, and who reads them.

    Attributes:
        single: bool [row of in_proj_qkv], whose convolution has one tap of weight 1.
        rows: form and taps of each convolved row that is no row of a tree.
        loose: for each side, (entry, row) of the keys or queries among them.
        values: for each head, columns and rows. gates: for each head, (form, columns).
        strengths, decays: forms, -1 where there is none.
    """

    def __init__(
        self, heads: _Heads, weights: dict[str, Array], taps: Array, live: Array, writes: Array
    ) -> None:
        self._heads = heads
        self._parts: list[Array] = []
        self._count = 0
        self._decay_weights = weights["in_proj_a"]
        self.output = weights["out_proj"]
        self.single = ((taps != 0).sum(axis=1) == 1) & (taps.sum(axis=1) == 1)
        self.decays = [-1] * heads.count
        self._writes = writes
        first = self._add(weights["in_proj_b"])
        self.strengths = [first + head if writes[head] else -1 for head in range(heads.count)]
        self._add_rows(weights["in_proj_qkv"], taps, live)
        self._add_gates(weights["in_proj_z"])

    def _add(self, forms: Array) -> int:
        first = self._count
        self._parts.append(forms)
        self._count += len(forms)
        return first

    def forms(self, rate: Array) -> Array:
        """All forms [form, hidden], with those of the decays where something fades."""
        fading = np.flatnonzero((rate != 0) & self._writes)
        first = self._add(self._decay_weights[fading])
        for number, head in enumerate(fading):
            self.decays[head] = first + number
        return np.concatenate(self._parts)

    def _add_rows(self, qkv: Array, taps: Array, live: Array) -> None:
        heads = self._heads
        keys = heads.count * heads.key
        values = np.flatnonzero(live[2 * keys :] & np.repeat(self._writes, heads.value))
        loose = np.flatnonzero(live[: 2 * keys] & ~self.single[: 2 * keys])
        chosen = np.concatenate((values + 2 * keys, loose))
        kinds, copies = _distinct_rows(qkv[chosen], taps[chosen])
        first = self._add(qkv[chosen[kinds]])
        self.rows = [(first + n, taps[chosen[kind]]) for n, kind in enumerate(kinds)]
        self.values: list[tuple[Array, Array]] = []
        for head in range(heads.count):
            mine = np.flatnonzero(values // heads.value == head)
            self.values.append((values[mine] % heads.value, copies[mine]))
        self.loose: dict[int, list[tuple[int, int]]] = {KEY: [], QUERY: []}
        for row, copy in zip(loose.tolist(), copies[len(values) :].tolist(), strict=True):
            self.loose[QUERY if row < keys else KEY].append((row % keys, copy))

    def _add_gates(self, z: Array) -> None:
        heads = self._heads
        columns = np.flatnonzero(
            z.any(axis=1) & self.output.any(axis=0) & np.repeat(self._writes, heads.value)
        )
        kinds, copies = _distinct_rows(z[columns])
        first = self._add(z[columns[kinds]])
        self.gates: list[list[tuple[int, Array]]] = []
        for head in range(heads.count):
            mine = columns // heads.value == head
            self.gates.append(
                [
                    (first + kind, columns[mine & (copies == kind)] % heads.value)
                    for kind in np.unique(copies[mine])
                ]
            )


def _taps(conv: Array) -> Array:
    """Weights of a convolution [row, 1, taps] as [row, RING]: those of the token itself come first."""
    taps = np.zeros((len(conv), RING), np.float32)
    taps[:, : conv.shape[2]] = conv[:, 0, ::-1]
    return taps


def _recent(taps: Array) -> bool:
    return bool(taps[0] == 1 and not taps[1:].any())


def _nonzeros(vector: Array) -> tuple[Array, Array]:
    places = np.flatnonzero(vector)
    return places, vector[places]


def _joined(starts: list[Array]) -> Array:
    """Starts of lists that follow one another."""
    ends = np.cumsum([start[-1] for start in starts])
    return np.concatenate(
        [[0], *(start[1:] + end - start[-1] for start, end in zip(starts, ends, strict=True))]
    )


def _usual(table: Array) -> Array:
    """The value of each column [rows, columns] that most of its first, middle and last rows have."""
    first, middle, last = table[0], table[len(table) // 2], table[-1]
    return np.where(middle == last, middle, first).astype(np.float32)


def _distinct_rows(*matrices: Array) -> tuple[Array, Array]:
    """Number the distinct rows of matrices side by side.

    Returns:
        The first row of each kind, and the kind of each row, so that kinds[copies] are the rows.
    """
    numbers: dict[bytes, int] = {}
    kept: list[int] = []
    copies = np.empty(len(matrices[0]), np.intp)
    for row, parts in enumerate(zip(*matrices, strict=True)):
        number = numbers.setdefault(b"".join(part.tobytes() for part in parts), len(kept))
        if number == len(kept):
            kept.append(row)
        copies[row] = number
    return np.array(kept, np.intp), copies
