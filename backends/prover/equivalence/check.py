"""Compare a checkpoint with the circuit of a machine, half layer by half layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from qgpu.backends.prover.checkpoint import Checkpoint, Readable
from qgpu.backends.prover.equivalence.describe import HeadDifferences, logit_differences, neuron_differences
from qgpu.backends.prover.equivalence.difference import Difference, amount
from qgpu.backends.prover.equivalence.meant import Meant
from qgpu.backends.prover.equivalence.recover import (
    check_norm,
    check_silent,
    constant_places,
    constants_seen,
    logits,
)
from qgpu.backends.prover.equivalence.recover_heads import HeadReader, HeadShape, Mixer
from qgpu.backends.prover.equivalence.recover_neurons import Mlp, recover_neurons
from qgpu.backends.prover.equivalence.standing import Standing
from qgpu.backends.transformer.emit import Layout

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
MIXER = ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "conv1d", "norm", "out_proj")
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")
MLP = ("gate", "up", "down")


class Tensors(Protocol):
    """Named tensors as float64."""

    def __getitem__(self, name: str, /) -> np.ndarray: ...


def check(
    directory: str | Path, layout: Layout, watch: Callable[[str], None] | None = None
) -> list[Difference]:
    """Return where a checkpoint's tensors are not the circuit of a layout; nothing where they are.

    Args:
        watch: called with each part before it is compared.

    Raises:
        ProofError: there is no checkpoint of the kind.
    """
    return check_tensors(Checkpoint(directory), layout, watch)


def check_tensors(
    checkpoint: Readable, layout: Layout, watch: Callable[[str], None] | None = None
) -> list[Difference]:
    """Return where tensors are not the circuit of a layout; see `check`."""
    found = list(_other_sizes(checkpoint.config, layout)) + list(_other_tensors(checkpoint.names, layout))
    if found:
        return found
    equivalence = Equivalence(Meant(layout, checkpoint.dtype), checkpoint)
    for part in equivalence.parts:
        if watch is not None:
            watch(part)
        found += equivalence.differences(part, checkpoint)
    return found


class Equivalence:
    """Compares the parts of a checkpoint, each by itself.

    A part is compared given that values stand in the residual stream as is meant before it; whether they do
    after it is compared as well. So all parts together show it of all.

    Attributes:
        parts: the embedding, the mixer and the MLP of each layer, and the head, by the beginnings of their
            tensors' names.
    """

    def __init__(self, meant: Meant, tensors: Tensors) -> None:
        """Read what is common to all parts: the constants, by what most tokens and most norms have."""
        self.meant, self.layout, self.dtype = meant, meant.layout, meant.dtype
        layers = range(self.layout.layers)
        halves = [f"model.layers.{layer}.{half}" for layer in layers for half in (self._mixer(layer), "mlp")]
        self.parts = [EMBEDDING, *halves, HEAD]
        shape = self.layout.shape
        self._shape = HeadShape(shape.heads, shape.key_dim, shape.head_dim, self.dtype)
        embedding = tensors[EMBEDDING]
        self._usual = np.median(embedding, axis=0)
        self._sums: list[Difference] = []
        places = constant_places(embedding, _reporter(self._sums))
        norms = [tensors[self._norm(part)] for part in self.parts[1:]]
        self._constants = constants_seen(embedding, places, norms)

    def tensors_of(self, part: str) -> list[str]:
        """The names of a part's tensors."""
        names = {EMBEDDING: [EMBEDDING], HEAD: [HEAD]}.get(part)
        if names is None:
            names = _half_names(part)
        return names if part == EMBEDDING else [self._norm(part), *names]

    def differences(self, part: str, tensors: Tensors) -> list[Difference]:
        """Return where a part's tensors are not what was meant."""
        found: list[Difference] = []
        report = _reporter(found)
        if part == EMBEDDING:
            return self._sums + list(self._embedding(tensors[EMBEDDING]))
        norm = self._norm(part)
        check_norm(tensors[norm], norm, self._usual, self._constants, self.dtype, report)
        if part == HEAD:
            found += self._head(tensors[HEAD], report)
            return found
        layer = int(part.split(".")[2])
        if part.endswith(".mlp"):
            found += self._neurons(layer, part, tensors, report)
        elif part.endswith(".self_attn"):
            _check_attention(part, tensors, report)
        else:
            found += self._heads(layer, part, tensors, report)
        return found

    def _mixer(self, layer: int) -> str:
        return "self_attn" if layer == self.layout.schedule.attention_layer else "linear_attn"

    def _norm(self, part: str) -> str:
        if part == HEAD:
            return "model.norm.weight"
        layer, half = part.rsplit(".", 1)
        return f"{layer}.{'post_attention' if half == 'mlp' else 'input'}_layernorm.weight"

    def _embedding(self, table: np.ndarray) -> Iterator[Difference]:
        meant = self.meant.embedded()
        for place in range(table.shape[1]):
            wanted = np.broadcast_to(meant.get(place, np.zeros(1)), len(table))
            for token in np.flatnonzero(table[:, place] != wanted):
                got, channel = table[token, place], self.meant.name(place, 0)
                reason = f"{channel} is {amount(got)}, not {amount(wanted[token])}"
                yield Difference(EMBEDDING, int(token), place, "incoming token", reason)

    def _head(self, head: np.ndarray, report) -> Iterator[Difference]:
        check_silent(head, HEAD, self._constants, report)
        slot = 2 * self.layout.layers
        found = logits(head, self._constants, self.meant.standing(slot - 1))
        return logit_differences(found, self.meant.logits, self.meant.name, slot)

    def _neurons(self, layer: int, part: str, tensors: Tensors, report) -> list[Difference]:
        gate, up, down = (tensors[name] for name in _half_names(part))
        mlp, slot = Mlp(gate, up, down, part), 2 * layer + 1
        found, after = recover_neurons(mlp, self._constants, self.meant.standing(slot - 1), report)
        differences = list(neuron_differences(found, self.meant.neurons[layer], mlp, self.meant.name, slot))
        return differences or list(self._stands(after, slot, mlp.name("down")))

    def _heads(self, layer: int, part: str, tensors: Tensors, report) -> list[Difference]:
        content = {name: tensors[f"{part}.{name}.weight"] for name in MIXER}
        content |= {name: tensors[f"{part}.{name}"] for name in ("A_log", "dt_bias")}
        mixer, slot = Mixer(content, part), 2 * layer
        standing = self.meant.standing(slot - 1)
        reader = HeadReader(mixer, self._shape, self._constants, standing, self._usual, report)
        found = reader.read()
        describe = HeadDifferences(reader, mixer, self._shape, self.meant.name, slot)
        differences = list(describe.all(found, self.meant.heads[layer]))
        return differences or list(self._stands(reader.standing, slot, mixer.name("out_proj")))

    def _stands(self, got: Standing, slot: int, tensor: str) -> Iterator[Difference]:
        wanted = self.meant.standing(slot)
        for what, first, second in (("offset", got.offset, wanted.offset), ("unit", got.unit, wanted.unit)):
            for place in np.flatnonzero(first != second):
                name = self.meant.name(int(place), slot + 1)
                reason = f"{name} has the {what} {amount(first[place])}, not {amount(second[place])}"
                yield Difference(tensor, int(place), None, "", reason)


def _half_names(part: str) -> list[str]:
    half = part.rsplit(".", 1)[1]
    if half == "mlp":
        return [f"{part}.{name}_proj.weight" for name in MLP]
    if half == "self_attn":
        return [f"{part}.{name}.weight" for name in ATTENTION]
    return [*(f"{part}.{name}.weight" for name in MIXER), f"{part}.A_log", f"{part}.dt_bias"]


def _reporter(found: list[Difference]) -> Callable[[str, int | None, int | None, str], None]:
    return lambda tensor, row, column, reason: found.append(Difference(tensor, row, column, "", reason))


def _check_attention(part: str, tensors: Tensors, report) -> None:
    for name in _half_names(part):
        for place in np.argwhere(tensors[name]):
            column = int(place[1]) if len(place) > 1 else None
            report(
                name, int(place[0]), column, "a weight of full attention, which has no part in the circuit"
            )


def _other_sizes(config: Mapping[str, Any], layout: Layout) -> Iterator[Difference]:
    """Where the configuration is not that of a model of the machine."""
    shape = layout.shape
    attention = layout.schedule.attention_layer
    kinds = [f"{'full' if layer == attention else 'linear'}_attention" for layer in range(layout.layers)]
    wanted = {
        "vocab_size": layout.vocabulary,
        "hidden_size": shape.hidden,
        "num_hidden_layers": layout.layers,
        "layer_types": kinds,
        "linear_num_key_heads": shape.heads,
        "linear_key_head_dim": shape.key_dim,
        "linear_value_head_dim": shape.head_dim,
        "tie_word_embeddings": False,
    }
    for name, value in wanted.items():
        if config.get(name) != value:
            reason = f"{name} is {config.get(name)!r}, not {value!r}"
            yield Difference("config.json", None, None, "", reason)


def _other_tensors(names: list[str], layout: Layout) -> Iterator[Difference]:
    """Tensors that no layer has."""
    known = {EMBEDDING, HEAD, "model.norm.weight"}
    for layer in range(layout.layers):
        prefix = f"model.layers.{layer}"
        known |= {f"{prefix}.input_layernorm.weight", f"{prefix}.post_attention_layernorm.weight"}
        mixer = "self_attn" if layer == layout.schedule.attention_layer else "linear_attn"
        known |= {*_half_names(f"{prefix}.{mixer}"), *_half_names(f"{prefix}.mlp")}
    for name in names:
        if name not in known:
            yield Difference(name, None, None, "", "no layer has a tensor of this name")
