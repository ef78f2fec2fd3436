"""A checkpoint run by its non-zeros alone, one token at a time, in float32.

This engine reads config.json and model.safetensors and knows the layers of Qwen3.5 (transformers,
models/qwen3_5/modeling_qwen3_5.py), not what they were compiled from. It skips only what is exactly zero:
weights, and the rows of the recurrent state whose key or query entries are. Its sums run over the terms of
the dense ones in another order, which changes nothing where every sum is exact, as in a compiled checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.runtime.engine import EngineError, Progress

Array = np.ndarray
_L2_EPSILON = np.float32(1e-6)
"""As in `l2norm` of modeling_qwen3_5.py."""

_CONFIG = {"model_type": "qwen3_5_text", "hidden_act": "silu", "attention_bias": False, "dtype": "float32"}
"""What a config has to say for this engine to compute what the model does."""


class SparseMatrix:
    """The non-zeros of a matrix of shape [rows, columns], row after row (CSR without empty rows).

    Attributes:
        used: the rows that have non-zeros, ascending.
    """

    def __init__(self, dense: Array) -> None:
        rows, self._columns = np.nonzero(dense)
        self._values = dense[rows, self._columns]
        self.used, self._starts = np.unique(rows, return_index=True)
        self._products = np.empty_like(self._values)

    def times(self, vector: Array) -> Array:
        """The product with a vector, at the rows `used`."""
        products = self._products
        if not len(products):
            return products
        # Columns are in range by construction; "clip" spares numpy a copy that its check would need.
        vector.take(self._columns, out=products, mode="clip")
        np.multiply(products, self._values, out=products)
        return np.add.reduceat(products, self._starts)


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


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


class _Norm:
    """RMSNorm over the residual stream, with the zero-centred weight."""

    def __init__(self, weight: Array, epsilon: float) -> None:
        self._scale = 1 + weight.astype(np.float32)
        self._epsilon = np.float32(epsilon)

    def __call__(self, x: Array) -> Array:
        mean = np.dot(x, x) / np.float32(len(x))
        return x * (1 / np.sqrt(mean + self._epsilon)) * self._scale


class _FeedForward:
    """down(silu(gate(x)) * up(x)) over the neurons that have both a gate and an input."""

    def __init__(self, gate: Array, up: Array, down: Array) -> None:
        neurons = np.flatnonzero(gate.any(axis=1) & up.any(axis=1) & down.any(axis=0))
        self._count = len(neurons)
        self._into = SparseMatrix(np.concatenate((gate[neurons], up[neurons])))
        self._out = SparseMatrix(down[:, neurons])

    def add_to(self, stream: Array, x: Array) -> None:
        """Add the layer's output for the normalised `x` to the residual stream."""
        if self._count:
            both = self._into.times(x)
            hidden = _silu(both[: self._count]) * both[self._count :]
            stream[self._out.used] += self._out.times(hidden)


@dataclass(frozen=True)
class _Heads:
    """Sizes of the linear-attention heads; keys and values have as many."""

    count: int
    key: int
    value: int


class _Segments:
    """Entries of flat [head, key] positions, ascending, in one run a head.

    Attributes:
        heads: the head of each run.
    """

    def __init__(self, positions: Array, size: int) -> None:
        owner = positions // size
        changes = np.empty(len(owner), bool)
        changes[:1] = True
        np.not_equal(owner[1:], owner[:-1], out=changes[1:])
        self._starts = np.flatnonzero(changes)
        self._run = np.cumsum(changes) - 1
        self.heads = owner[self._starts]

    def sums(self, entries: Array) -> Array:
        """The sum of each run, over the first axis."""
        return np.add.reduceat(entries, self._starts, axis=0)

    def spread(self, of_runs: Array) -> Array:
        """For each entry, what its run has."""
        return of_runs[self._run]

    def normalised(self, entries: Array) -> Array:
        """Entries over the Euclidean norm of their run, as `l2norm` has it."""
        inverse = 1 / np.sqrt(self.sums(entries * entries) + _L2_EPSILON)
        return entries * self.spread(inverse)


class _Convolution:
    """The causal convolution of four taps over channels, most of which have only the last tap."""

    def __init__(self, weight: Array) -> None:
        self._last = weight[:, -1].copy()
        channels = [np.flatnonzero(weight[:, tap]) for tap in range(weight.shape[1] - 1)]
        self._earlier = [(found, weight[found, tap]) for tap, found in enumerate(channels)]
        self.begin()

    def begin(self) -> None:
        self._history = [np.zeros_like(self._last)] * len(self._earlier)

    def __call__(self, x: Array) -> Array:
        result = x * self._last
        for (channels, weights), before in zip(self._earlier, self._history, strict=True):
            result[channels] += weights * before[channels]
        self._history = [*self._history[1:], x]
        return result


class _DeltaNet:
    """A Gated DeltaNet layer.

    Attributes:
        writes: whether any key can be other than 0; if none can, the state and the output stay 0.
        state: the recurrent state, [head * key, value].
    """

    def __init__(self, weights: dict[str, Array], heads: _Heads, epsilon: float) -> None:
        self._heads = heads
        self._epsilon = np.float32(epsilon)
        self._norm = weights["norm.weight"]
        self._scale = np.float32(heads.key**0.5)
        self._rate = np.exp(weights["A_log"])
        self._time_bias = weights["dt_bias"]
        self._fades = bool(self._rate.any())
        qkv, conv = weights["in_proj_qkv.weight"], weights["conv1d.weight"][:, 0]
        channels = np.flatnonzero(qkv.any(axis=1) & conv.any(axis=1))
        keys = heads.count * heads.key
        self._query, self._key, self._value = (
            channels[(channels >= low) & (channels < high)] - low
            for low, high in ((0, keys), (keys, 2 * keys), (2 * keys, len(qkv)))
        )
        self.writes = len(self._key) > 0
        kinds, self._channel_kinds = _distinct_rows(qkv[channels], conv[channels])
        self._convolution = _Convolution(conv[channels[kinds]])
        z, out = weights["in_proj_z.weight"], weights["out_proj.weight"]
        self._gates = np.flatnonzero(z.any(axis=1) & out.any(axis=0))
        self._out = SparseMatrix(out[:, self._gates])
        gate_kinds, self._gate_kinds = _distinct_rows(z[self._gates])
        parts = (
            qkv[channels[kinds]],
            z[self._gates[gate_kinds]],
            weights["in_proj_b.weight"],
            weights["in_proj_a.weight"],
        )
        self._into = SparseMatrix(np.concatenate(parts))
        self._ends = np.cumsum([len(part) for part in parts]).tolist()
        self.begin()

    def begin(self) -> None:
        heads = self._heads
        self._convolution.begin()
        self.state = np.zeros((heads.count * heads.key, heads.value), np.float32)

    def add_to(self, stream: Array, x: Array) -> None:
        """Take in the normalised `x`, and add the layer's output to the residual stream."""
        channels, gates, strengths, end = self._ends
        projected = np.zeros(end, np.float32)
        projected[self._into.used] = self._into.times(x)
        mixed = _silu(self._convolution(projected[:channels]))[self._channel_kinds]
        queries, keys = len(self._query), len(self._query) + len(self._key)
        if self._fades:
            self._fade(projected[strengths:])
        self._write(mixed[queries:keys], mixed[keys:], projected[gates:strengths])
        read = self._read(mixed[:queries])
        if read is not None:
            gate = _silu(projected[channels:gates])[self._gate_kinds]
            stream[self._out.used] += self._out.times(read.reshape(-1)[self._gates] * gate)

    def _fade(self, time: Array) -> None:
        softplus = np.logaddexp(np.float32(0), time + self._time_bias)
        decay = np.exp(-self._rate * softplus)
        self.state *= np.repeat(decay, self._heads.key)[:, None]

    def _write(self, key: Array, value: Array, beta: Array) -> None:
        """S += k (beta (v - k^T S)), over the rows whose key is not 0."""
        strength = 1 / (1 + np.exp(-beta))
        entries = np.flatnonzero(key)
        rows = self._key[entries]
        written = strength[rows // self._heads.key] != 0
        entries, rows = entries[written], rows[written]
        if not len(rows):
            return
        runs = _Segments(rows, self._heads.key)
        k = runs.normalised(key[entries])[:, None]
        v = np.zeros((self._heads.count, self._heads.value), np.float32)
        v.reshape(-1)[self._value] = value
        held = self.state[rows]
        delta = (v[runs.heads] - runs.sums(held * k)) * strength[runs.heads, None]
        self.state[rows] = held + k * runs.spread(delta)

    def _read(self, query: Array) -> Array | None:
        """q^T S of each head, RMS-normalised, [head, value]; None where every query is 0."""
        heads = self._heads
        entries = np.flatnonzero(query)
        if not len(entries):
            return None
        rows = self._query[entries]
        runs = _Segments(rows, heads.key)
        q = runs.normalised(query[entries]) / self._scale
        read = runs.sums(self.state[rows] * q[:, None])
        mean = np.add.reduce(read * read, axis=1, keepdims=True) / np.float32(heads.value)
        result = np.zeros((heads.count, heads.value), np.float32)
        result[runs.heads] = read * (1 / np.sqrt(mean + self._epsilon)) * self._norm
        return result


@dataclass(frozen=True)
class _Layer:
    """A decoder layer; `mixer` is None where the layer attends and its attention's output is 0."""

    mixer: _DeltaNet | None
    mixer_norm: _Norm
    feed_forward: _FeedForward
    feed_forward_norm: _Norm

    def add_to(self, stream: Array) -> None:
        if self.mixer is not None and self.mixer.writes:
            self.mixer.add_to(stream, self.mixer_norm(stream))
        self.feed_forward.add_to(stream, self.feed_forward_norm(stream))


class SparseEngine:
    """A checkpoint as its non-zeros."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """Load a float32 checkpoint of a Qwen3.5 text model.

        Raises:
            EngineError: it cannot be loaded, or is of a kind that this engine does not compute exactly.
        """
        from safetensors import SafetensorError

        try:
            config = json.loads((Path(directory) / "config.json").read_text(encoding="utf-8"))
            _check_config(config)
            self._load(Path(directory) / "model.safetensors", config)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
            raise EngineError(f"cannot load '{directory}': {error}") from error
        self.layers = len(self._layers)

    def _load(self, path: Path, config: dict[str, Any]) -> None:
        from safetensors import safe_open

        epsilon = config["rms_norm_eps"]
        heads = _Heads(
            config["linear_num_value_heads"], config["linear_key_head_dim"], config["linear_value_head_dim"]
        )
        with safe_open(path, framework="np") as file:
            tensors = _Tensors(file)
            self._embedding = tensors["model.embed_tokens.weight"]
            self._layers = [
                _read_layer(tensors, f"model.layers.{number}.", kind, heads, epsilon)
                for number, kind in enumerate(config["layer_types"])
            ]
            self._norm = _Norm(tensors["model.norm.weight"], epsilon)
            head = self._embedding if config.get("tie_word_embeddings") else tensors["lm_head.weight"]
        self._head_columns = np.flatnonzero(head.any(axis=0))
        self._head = np.ascontiguousarray(head[:, self._head_columns])

    def begin(self) -> None:
        """Start a new sequence."""
        for layer in self._layers:
            if layer.mixer is not None:
                layer.mixer.begin()

    def feed(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        """Append tokens to the sequence; return the argmax of the logits after the last of them."""
        return int(self.logits(tokens, progress).argmax())

    def logits(self, tokens: Sequence[int], progress: Progress | None = None) -> Array:
        """Append tokens to the sequence; return the logits after the last of them, float32 [vocabulary]."""
        stream = np.zeros(self._embedding.shape[1], np.float32)
        # exp overflows to infinity where silu is 0, as it does in torch.
        with np.errstate(over="ignore"):
            for token in tokens:
                stream = self._embedding[token].copy()
                for layer in self._layers:
                    layer.add_to(stream)
                if progress is not None:
                    progress(1)
            return self._head @ self._norm(stream)[self._head_columns]

    def recurrent_states(self) -> list[Array]:
        """The recurrent state of each linear-attention layer, float32 [head * key, value]."""
        return [layer.mixer.state for layer in self._layers if layer.mixer is not None]


class _Tensors:
    """The tensors of a file by name, float32."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getitem__(self, name: str) -> Array:
        tensor = self._file.get_tensor(name)
        if tensor.dtype != np.float32:
            raise ValueError(f"tensor '{name}' is {tensor.dtype}, not float32")
        return tensor


def _check_config(config: dict[str, Any]) -> None:
    for name, value in _CONFIG.items():
        if config.get(name) != value:
            raise ValueError(f"config.json has {name} = {config.get(name)!r}; this engine computes {value!r}")
    if config["linear_num_key_heads"] != config["linear_num_value_heads"]:
        raise ValueError("key and value heads differ in number")


def _read_layer(tensors: _Tensors, prefix: str, kind: str, heads: _Heads, epsilon: float) -> _Layer:
    return _Layer(
        mixer=_read_mixer(tensors, prefix, kind, heads, epsilon),
        mixer_norm=_Norm(tensors[f"{prefix}input_layernorm.weight"], epsilon),
        feed_forward=_FeedForward(
            *(tensors[f"{prefix}mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
        ),
        feed_forward_norm=_Norm(tensors[f"{prefix}post_attention_layernorm.weight"], epsilon),
    )


_DELTA_NET = (
    "norm.weight",
    "conv1d.weight",
    "in_proj_qkv.weight",
    "in_proj_z.weight",
    "in_proj_b.weight",
    "in_proj_a.weight",
    "out_proj.weight",
    "A_log",
    "dt_bias",
)


def _read_mixer(tensors: _Tensors, prefix: str, kind: str, heads: _Heads, epsilon: float) -> _DeltaNet | None:
    if kind == "linear_attention":
        weights = {name: tensors[f"{prefix}linear_attn.{name}"] for name in _DELTA_NET}
        return _DeltaNet(weights, heads, epsilon)
    if tensors[f"{prefix}self_attn.o_proj.weight"].any():
        raise ValueError(f"{prefix}self_attn attends; this engine computes layers whose attention puts out 0")
    return None
