"""What a head gives back for a row of its memory, computed as the stock layer computes it.

Source: transformers, models/qwen3_5/modeling_qwen3_5.py: l2norm of keys and queries, the query's scale, the
gated RMSNorm and out_proj, in the order and the dtypes in which decode and chunked prefill compute them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

F = np.float32


def rounded(value: np.ndarray | np.float32, dtype: str) -> np.ndarray:
    """Round float32 to a dtype, ties to even, as float32."""
    wide = np.asarray(value, dtype=F)
    if dtype == "float32":
        return wide
    bits = wide.view(np.uint32).astype(np.uint64)
    bits = bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000
    return bits.astype(np.uint32).view(F)


def unit_key(amplitude: float, rows: int, dtype: str) -> np.float32:
    """What l2norm makes of one of `rows` equal entries."""
    size = F(amplitude)
    total = rounded(F(rows) * size * size + F(1e-6), dtype)
    root = rounded(F(1) / np.sqrt(total, dtype=F), dtype)
    return F(rounded(size * root, dtype))


def read_column(
    dtype: str,
    key_dim: int,
    constants: np.ndarray,
    amplitude: float,
    query: float,
    rows: int,
    counts: Iterable[float],
    gate: float,
    weight: float,
    eps: float,
) -> dict[float, list[float]]:
    """For each count of bits that the rows read hold: what reaches out_proj, in each way to compute it.

    Args:
        constants: the constant of each constant column, in the row of those read that holds it.
        amplitude: a bit as it is written.
        query: what one entry of a query is before l2norm; `rows` of them are on.
    """
    found: dict[float, list[float]] = {}
    head = len(constants)
    q = unit_key(query, rows, dtype)
    root = np.sqrt(F(key_dim), dtype=F)
    scales = {F(q * F(key_dim**-0.5)), F(q / root), F(q * (F(1) / root))}
    for count, scale in product(counts, scales):
        read = rounded(constants.astype(F) * scale, dtype)
        bit = rounded(F(count * amplitude) * scale, dtype)
        mean = F(F((read.astype(F) ** 2).sum(dtype=F)) / F(head)) + F(eps)
        root_mean = np.sqrt(mean, dtype=F)
        for inverse in (F(1) / root_mean, F(1.0 / np.sqrt(np.float64(mean)))):
            normed = rounded(F(weight) * rounded(bit * inverse, dtype), dtype)
            found.setdefault(count, []).append(float(rounded(normed * F(gate), dtype)))
    return found
