"""The weights of a checkpoint that can matter, and random changes of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

KINDS = ("sign", "double", "zero", "move")
"""Another sign, twice as much, 0, or in another column of its row that had 0."""

LIVE, NORM, UNUSED = "live", "norm vector", "unused"
"""Weights by what they can do: those of norms, and those of rows that hold nothing, are counted apart."""

Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Change:
    """A change of one weight.

    Attributes:
        group: LIVE, NORM or UNUSED.
        target: for a move, where to in the last axis.
    """

    group: str
    tensor: str
    place: tuple[int, ...]
    kind: str
    target: int | None = None

    def of(self, tensor: np.ndarray) -> np.ndarray:
        """The tensor with the change."""
        changed = tensor.copy()
        value = tensor[self.place]
        changed[self.place] = {"sign": -value, "double": 2 * value}.get(self.kind, 0)
        if self.target is not None:
            changed[(*self.place[:-1], self.target)] = value
        return changed

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        target = "" if self.target is None else f" to {self.target}"
        return f"{self.kind}{target} of {self.tensor}{list(self.place)}"


class Weights:
    """The weights of a checkpoint that are not 0, by group and tensor."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._places: dict[str, dict[str, np.ndarray]] = {LIVE: {}, NORM: {}, UNUSED: {}}
        for name, tensor in tensors.items():
            nonzero = tensor != 0
            if name.endswith("norm.weight"):
                self._add(NORM, name, nonzero)
            else:
                used = _used(name, tensors)
                self._add(LIVE, name, nonzero & used)
                self._add(UNUSED, name, nonzero & ~used)

    def _add(self, group: str, name: str, chosen: np.ndarray) -> None:
        places = np.flatnonzero(chosen)
        if len(places):
            self._places[group][name] = places

    def tensors(self, group: str) -> list[str]:
        """The names of the tensors that have weights of a group."""
        return list(self._places[group])

    def draw(self, source: np.random.Generator, group: str = LIVE, name: str | None = None) -> Change:
        """A random change: of a random tensor, if none is given, a random weight, in a random way."""
        while True:
            tensor = name or str(source.choice(self.tensors(group)))
            flat = int(source.choice(self._places[group][tensor]))
            place = tuple(int(i) for i in np.unravel_index(flat, self._tensors[tensor].shape))
            kind = str(source.choice(KINDS))
            if kind != "move":
                return Change(group, tensor, place, kind)
            free = np.flatnonzero(self._tensors[tensor][place[:-1]] == 0)
            if len(free):
                return Change(group, tensor, place, kind, int(source.choice(free)))


def _used(name: str, tensors: Tensors) -> np.ndarray:
    """Which weights of a tensor can matter: those of rows that have what goes in and what comes out."""
    prefix, _, part = name.removesuffix(".weight").rpartition(".")
    tensor = tensors[name]
    if prefix.endswith("mlp"):
        gate, down = tensors[f"{prefix}.gate_proj.weight"], tensors[f"{prefix}.down_proj.weight"]
        live = np.any(gate, axis=1) & np.any(down, axis=0)
        return np.broadcast_to(live if part == "down_proj" else live[:, None], tensor.shape)
    if not prefix.endswith("linear_attn"):
        return np.ones(tensor.shape, bool)
    return _used_of_heads(part, {p: tensors[f"{prefix}.{p}.weight"] for p in HEAD_PARTS}, tensor)


HEAD_PARTS = ("in_proj_qkv", "in_proj_z", "in_proj_b", "out_proj")


def _used_of_heads(part: str, of: Tensors, tensor: np.ndarray) -> np.ndarray:
    """Columns are used that are read into a channel, or that hold the constant and are never read."""
    written = np.any(of["in_proj_qkv"], axis=1)
    width = of["out_proj"].shape[1]
    values, gates, outputs = written[-width:], np.any(of["in_proj_z"], axis=1), np.any(of["out_proj"], axis=0)
    columns = values & (outputs == gates)
    keys = len(written) - width
    rows = np.concatenate([written[:keys], columns])
    heads = columns.reshape(len(of["in_proj_b"]), -1).any(axis=1)
    if part in ("in_proj_qkv", "conv1d"):
        used = rows
    elif part == "in_proj_z":
        used = columns & gates
    elif part == "out_proj":
        return np.broadcast_to(columns & gates, tensor.shape)
    else:
        used = heads
    return np.broadcast_to(used.reshape(-1, *(1,) * (tensor.ndim - 1)), tensor.shape)
