"""The logits: for every token that can be chosen, its logit is alone the largest, by a stated margin.

Rows of lm_head are sorted into kinds: tokens whose rows are alike but for codes. Within a kind every code of
some bits occurs; a code gains w/2 for each of its ones that is there and loses as much for each that is not,
so the code that equals the bits is alone the largest. Tokens that have 1 where a bit of the code is never on
stay below those that have 0 there. Flags choose a kind: in every case those of one are on.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from qgpu.backends.prover.facts import Term
from qgpu.backends.prover.projection import Fail, Rows
from qgpu.backends.prover.search import Search

NAME = "lm_head.weight"

FLAG = 16.0
"""Weights from this size on are of flags, smaller ones of codes."""

DEPTH = 3
"""How deep definitions are looked at."""

CASES = 20000
"""Cases after which nothing is claimed."""


@dataclass(frozen=True)
class Kind:
    """Tokens whose logits differ by their codes alone.

    Attributes:
        tokens: their ids.
        flags: weights by channel, the same in each of the tokens.
        constant: of every logit, the code aside.
        most: what the best code adds at most; at least it adds 0.
        margin: by how much the best code is above every other.
    """

    tokens: np.ndarray
    flags: tuple[tuple[int, float], ...]
    constant: float
    most: float
    margin: float

    def term(self, at: np.ndarray, scale: float) -> Term:
        """1 where the flags choose the kind, that is add at least `scale`."""
        weights = tuple(round(weight / scale) for _, weight in self.flags)
        low = sum(min(w, 0) for w in weights)
        high = sum(max(w, 0) for w in weights)
        chosen = (np.arange(low, high + 1) >= 1).astype(np.float64)
        return Term(tuple(int(at[c]) for c, _ in self.flags), weights, low, chosen)


def prove_logits(rows: Rows, table: np.ndarray, fail: Fail, report: dict) -> None:
    """Prove that the largest logit is alone, and report by how much.

    Args:
        rows: the logits of each token.
        table: lm_head's weight [vocabulary, hidden] for the channels' values as the norm hands them on.
    """
    weights = table * np.where(rows.stream.count > 0, rows.stream.unit, 0.0)
    kinds = []
    for tokens in _alike(weights):
        kind = _kind(rows, weights, tokens, fail)
        if kind is not None:
            kinds.append(kind)
    chosen = [kind for kind in kinds if kind.flags]
    if not chosen:
        fail(NAME, None, "no token has a logit above the others")
        return
    scale = min(abs(w) for kind in chosen for _, w in kind.flags)
    rest = max((kind.constant + kind.most for kind in kinds), default=0.0)
    least = min(kind.constant for kind in chosen) + scale
    report["kinds"], report["kind_margin"] = len(chosen), least - rest
    report["least_chosen"] = least
    report["code_margin"] = min(kind.margin for kind in chosen)
    if least <= rest:
        fail(NAME, None, f"a chosen kind has a logit of {least:g}, another one of up to {rest:g}")
    _check_flags(rows, chosen, scale, fail)


def _alike(weights: np.ndarray) -> list[np.ndarray]:
    """Tokens by the weights of their flags."""
    flags = np.where(np.abs(weights) >= FLAG, weights, 0.0)
    found: dict[bytes, list[int]] = defaultdict(list)
    for token in range(len(weights)):
        found[flags[token].tobytes()].append(token)
    return [np.array(tokens) for tokens in found.values()]


def _kind(rows: Rows, weights: np.ndarray, tokens: np.ndarray, fail: Fail) -> Kind | None:
    """The kind of some tokens, where their codes are all those of some bits."""
    own = weights[tokens]
    flags = np.flatnonzero(np.abs(own[0]) >= FLAG)
    codes = np.where(np.abs(own) < FLAG, own, 0.0)
    bits = np.flatnonzero(codes.any(axis=0))
    size = codes[:, bits].max(axis=0)
    uniform = np.isin(codes[:, bits], (0.0,)) | (codes[:, bits] == size)
    first = int(tokens[0])
    if not (uniform.all() and (size > 0).all()):
        fail(NAME, first, "the logits of tokens of one kind differ by more than codes of bits")
        return None
    if any(rows.stream.count[c] != 1 for c in (*bits, *flags)):
        fail(NAME, first, "a channel of the logits is not shown to be 0 or 1")
        return None
    constants = rows.base[tokens] + codes[:, bits].sum(axis=1) / 2
    highest = constants == constants.max()
    code = (codes[highest][:, bits] > 0) @ (1 << np.arange(len(bits)))
    if len(flags) and (len(code) != 1 << len(bits) or len(np.unique(code)) != len(code)):
        fail(NAME, first, f"{len(code)} tokens are not all codes of {len(bits)} bits")
        return None
    weighed = tuple((int(c), float(own[0, c])) for c in flags)
    below = constants.max() - constants[~highest].max(initial=-np.inf)
    margin = min(float(size.min(initial=np.inf)) / 2, float(below))
    return Kind(tokens, weighed, float(constants.max()), float(size.sum() / 2), margin)


def _check_flags(rows: Rows, kinds: list[Kind], scale: float, fail: Fail) -> None:
    """In every case the flags choose one kind, and no other has any."""
    facts, at = rows.stream.facts, rows.stream.at
    if any(w % scale for kind in kinds for _, w in kind.flags):
        fail(NAME, int(kinds[0].tokens[0]), f"the weights of flags are no multiples of {scale:g}")
        return
    terms = [kind.term(at, scale) for kind in kinds]
    for low, high, reason in (
        (-np.inf, 0, "no kind of token is chosen"),
        (2, np.inf, "two kinds are chosen"),
    ):
        search = Search(facts, [(terms, low, high)], DEPTH)
        if not search.refuted(search.start(), CASES):
            fail(NAME, None, f"it is not shown that never {reason}")
