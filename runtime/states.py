"""Compare the recurrent states of two engines on one checkpoint.

They are equal to the bit, but for counters: a head that writes with a strength between 0 and 1 adds small
steps to a row, and the chunked form of the delta rule adds these in another order than the recurrent one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from qgpu.runtime.engine import Engine
from qgpu.runtime.launch import DifferenceError

SATURATION = 32
"""Write strengths of a memory are sigmoids of multiples of this: 0 or 1, exactly."""

COUNTER_TOLERANCE = 2.0**-16
"""How far an entry of a counter's row may be off, relative to the larger of the two."""


class StatefulEngine(Engine, Protocol):
    """An engine whose recurrent states can be looked at."""

    def recurrent_states(self) -> Sequence[np.ndarray]:
        """The recurrent state of each linear-attention layer, float32, a head a first axis or part of one."""
        ...


@dataclass(frozen=True)
class Head:
    """A head by its layer (of the model) and its number."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"layer {self.layer}, head {self.head}"


@dataclass(frozen=True)
class StateDifference:
    """In which heads two final states differ.

    Attributes:
        heads: how many were compared.
        counters: the heads that write with strengths between 0 and 1.
        differing: the largest difference of an entry in each head that has one, relative to the entry.
    """

    heads: int
    counters: tuple[Head, ...]
    differing: dict[Head, float]

    @property
    def largest(self) -> float:
        """The largest relative difference of an entry."""
        return max(self.differing.values(), default=0.0)

    def refuse_beyond_counters(self) -> None:
        """Raise DifferenceError where more differs than counters, or these by more than they may."""
        for head, difference in self.differing.items():
            if head not in self.counters:
                raise DifferenceError(f"the final states differ in {head}, which is no counter")
            if difference > COUNTER_TOLERANCE:
                raise DifferenceError(
                    f"the final states differ in the counter at {head} by {difference:.1e} of an entry; "
                    f"the bound is {COUNTER_TOLERANCE:.1e}"
                )

    def __str__(self) -> str:
        equal = f"final state of {self.heads} heads equal to the engine's"
        if not self.differing:
            return equal
        places = "; ".join(f"{head}: {difference:.1e}" for head, difference in self.differing.items())
        return f"{equal} but for counters, relative to the entry: {places}"


def compare_states(
    directory: str | os.PathLike[str], states: Sequence[np.ndarray], others: Sequence[np.ndarray]
) -> StateDifference:
    """Compare the states of the linear-attention layers of a checkpoint, [head, key, value] or flat.

    Raises:
        OSError, KeyError: the directory is no float32 checkpoint.
    """
    strengths = _strengths(directory)
    heads = [Head(layer, head) for layer, rows in strengths for head in range(len(rows))]
    fractional = [_is_fractional(row) for _, rows in strengths for row in rows]
    counters = tuple(head for head, counts in zip(heads, fractional, strict=True) if counts)
    differing: dict[Head, float] = {}
    for (layer, rows), one, other in zip(strengths, states, others, strict=True):
        pair = (np.asarray(state, np.float32).reshape(len(rows), -1) for state in (one, other))
        for head, difference in enumerate(_differences(*pair)):
            differing |= {Head(layer, head): float(difference)} if difference else {}
    return StateDifference(len(heads), counters, differing)


def _differences(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The largest relative difference of each row."""
    size = np.maximum(np.abs(one), np.abs(other))
    apart = np.abs(one.astype(np.float64) - other)
    return np.divide(apart, size, out=np.zeros_like(apart), where=apart > 0).max(axis=1)


def _is_fractional(row: np.ndarray) -> bool:
    """Whether a head's strength can be other than 0 and 1: its weights are not those of a conjunction."""
    return bool((row % SATURATION).any())


def _strengths(directory: str | os.PathLike[str]) -> list[tuple[int, np.ndarray]]:
    """The weights of the write strengths, [head, channel], of each linear-attention layer, by its number."""
    from safetensors import safe_open

    suffix = ".linear_attn.in_proj_b.weight"
    with safe_open(Path(directory) / "model.safetensors", framework="np") as file:
        names = filter(lambda name: name.endswith(suffix), file.keys())
        layers = [(int(name.removesuffix(suffix).rpartition(".")[2]), name) for name in names]
        return [(layer, file.get_tensor(name)) for layer, name in sorted(layers)]
