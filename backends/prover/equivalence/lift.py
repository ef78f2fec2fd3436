"""Rows of a projection as linear forms."""

from __future__ import annotations

import numpy as np

from qgpu.backends.prover.equivalence.form import Linear, Terms
from qgpu.backends.prover.equivalence.standing import Constants, Standing


def lifted(
    matrix: np.ndarray,
    constants: Constants,
    standing: Standing,
    slope: float = 1.0,
    bias: float = 0.0,
) -> dict[int, Linear]:
    """The forms f of the rows that are not 0: a row computes slope * f + bias.

    Args:
        matrix: [row, hidden], over what the norm hands on.
    """
    rows, columns = np.nonzero(matrix)
    entries = matrix[rows, columns]
    given = np.where(constants.is_constant, constants.seen, standing.offset)
    sums = np.bincount(rows, weights=entries * given[columns], minlength=len(matrix))
    read = ~constants.is_constant[columns]
    places = columns[read]
    found = grouped(rows[read], places, entries[read] * standing.unit[places] / slope)
    nothing: Terms = frozenset()
    return {
        row: Linear(found.get(row, nothing), (float(sums[row]) - bias) / slope)
        for row in np.unique(rows).tolist()
    }


def grouped(rows: np.ndarray, places: np.ndarray, coefficients: np.ndarray) -> dict[int, Terms]:
    """Terms by row, the rows being in order."""
    if not len(rows):
        return {}
    pairs = list(zip(places.tolist(), coefficients.tolist(), strict=True))
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    ends = np.append(starts[1:], len(rows)).tolist()
    bounds = zip(rows[starts].tolist(), starts.tolist(), ends, strict=True)
    return {row: frozenset(pairs[start:end]) for row, start, end in bounds}
