"""Read what is no layer's alone: the constants, the norms, the embedding, the logits."""

from __future__ import annotations

import numpy as np

from qgpu.backends.prover.equivalence.difference import Report, amount
from qgpu.backends.prover.equivalence.form import Linear
from qgpu.backends.prover.equivalence.lift import lifted
from qgpu.backends.prover.equivalence.standing import Constants, Standing
from qgpu.backends.transformer.numerics import NORM_BITS

ROOT = 2.0**NORM_BITS
"""The root mean square of what a norm sees."""

LOOSE = {"float32": 0.0, "bfloat16": 2.0**-9}
"""How far a norm's factor may be from 1: the rounding of the dtype takes it off again."""


def constant_places(embedding: np.ndarray, report: Report) -> np.ndarray:
    """Which channels hold a constant that dominates the norms; report those whose squares have another sum.

    Args:
        embedding: [token, hidden].
    """
    usual = np.median(embedding, axis=0)
    found = np.abs(usual) >= ROOT
    squares, wanted = float((usual[found] ** 2).sum()), embedding.shape[1] * ROOT**2
    if squares != wanted:
        reason = f"the constants' squares sum to {squares:g}, which gives no norm of {ROOT:g}"
        report("model.embed_tokens.weight", None, None, reason)
    return found


def constants_seen(embedding: np.ndarray, is_constant: np.ndarray, norms: list[np.ndarray]) -> Constants:
    """What most norms hand on of the constants; `check_norm` reports one that does otherwise."""
    usual = np.median(embedding[:, is_constant], axis=0)
    seen = np.zeros(len(is_constant))
    weights = np.array([weight[is_constant] for weight in norms])
    seen[is_constant] = np.round(np.median(usual * (1 + weights) / ROOT, axis=0))
    return Constants(is_constant, seen)


def check_norm(
    weight: np.ndarray,
    name: str,
    embedding_row: np.ndarray,
    constants: Constants,
    dtype: str,
    report: Report,
) -> None:
    """Report the channels that a norm does not hand on as they are, and constants that it makes no bias of.

    Args:
        embedding_row: what most tokens have in each channel.
    """
    factor = (1 + weight) / ROOT
    wrong = ~constants.is_constant & (np.abs(factor - 1) > LOOSE[dtype])
    for place in np.flatnonzero(wrong):
        report(name, int(place), None, f"the channel is multiplied by {amount(factor[place])}, not by 1")
    for place in np.flatnonzero(constants.is_constant):
        given = embedding_row[place] * factor[place]
        if given != constants.seen[place]:
            reason = f"the constant comes out as {amount(given)}, not as {amount(constants.seen[place])}"
            report(name, int(place), None, reason)


def logits(head: np.ndarray, constants: Constants, standing: Standing) -> dict[int, Linear]:
    """The logit of each token that has one."""
    return lifted(head, constants, standing)


def check_silent(matrix: np.ndarray, name: str, constants: Constants, report: Report) -> None:
    """Report weights of constants that no norm hands on: they do nothing."""
    silent = np.flatnonzero(constants.is_constant & (constants.seen == 0))
    for row, column in np.argwhere(matrix[:, silent]):
        report(name, int(row), int(silent[column]), "a weight of a constant that the norm takes away")
