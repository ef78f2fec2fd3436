"""What a half layer adds to the residual stream: terms by channel, and the stream after it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from qgpu.backends.prover.cone import Cone, Term
from qgpu.backends.prover.projection import Fail
from qgpu.backends.prover.stream import Stream, low_bit


@dataclass(eq=False)
class Write:
    """A term that is added to a channel.

    Attributes:
        channel: where it goes.
        term: what it is, a function of the stream before.
        needs, lacks: bool [hidden]: where the term is not 0, n > 0 (n = 0) in these channels.
        source: which neuron group or head column it is of, for what two terms of one source share.
    """

    channel: int
    term: Term
    needs: np.ndarray
    lacks: np.ndarray
    source: tuple[int, ...] = ()


def necessary(
    stream: Stream, places: np.ndarray, weights: np.ndarray, first: float, last: float
) -> tuple[np.ndarray, np.ndarray]:
    """The channels that are above their lowest (at their lowest) wherever first <= v <= last."""
    count = stream.count[places]
    high, low = np.maximum(weights, 0) @ count, np.minimum(weights, 0) @ count
    size = np.abs(weights)
    up = (weights > 0) & (high - weights * count < first) | (weights < 0) & (low + size * count > last)
    down = (weights < 0) & (high - size < first) | (weights > 0) & (low + size > last)
    return close(stream, places[up], places[down])


def close(stream: Stream, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What follows from channels being above, and at, their lowest, by exclusions and implications."""
    needs, lacks = np.zeros(len(stream.low), bool), np.zeros(len(stream.low), bool)
    needs[up], lacks[down] = True, True
    needs |= stream.implies[needs].any(axis=0)
    lacks |= stream.excludes[needs].any(axis=0)
    lacks |= stream.implies[:, lacks].any(axis=1) & (stream.count > 0)
    return needs, lacks


@dataclass
class Writes:
    """All terms of a half layer."""

    stream: Stream
    by_channel: dict[int, list[Write]] = field(default_factory=lambda: defaultdict(list))

    def add(self, write: Write) -> None:
        """Add a term."""
        self.by_channel[write.channel].append(write)

    def applied(self, dtype: str, name: str, fail: Fail) -> Stream:
        """The stream with the terms added, its ranges bounded by cases."""
        old = self.stream
        low, unit, count = old.low.copy(), old.unit.copy(), old.count.copy()
        for channel, writes in self.by_channel.items():
            terms = [w.term for w in writes]
            if old.count[channel] and not any(_reads_only(t, channel) for t in terms):
                identity = np.arange(old.count[channel] + 1, dtype=np.float64) * old.unit[channel]
                terms = [*terms, Term(np.array([channel]), np.array([1]), 0, identity)]
            elif old.count[channel]:
                own = next(i for i, t in enumerate(terms) if _reads_only(t, channel))
                terms[own] = _with_identity(terms[own], channel, old)
            cone = Cone(terms, old.count, old.excludes, old.implies)
            top, bottom = cone.maximum(), -cone.maximum(-1)
            step = min(float(low_bit(t.table).min()) for t in terms)
            # A channel is named by its lowest value, which has to be on the grid of its values.
            low[channel] = old.low[channel] + bottom
            unit[channel] = 1.0 if np.isinf(step) else step
            count[channel] = round((top - bottom) / unit[channel])
            grid = min(unit[channel], float(low_bit(np.array(low[channel]))))
            largest = max(abs(low[channel]), abs(old.low[channel] + top))
            limit = 2.0**24 if dtype == "float32" else 256.0
            if largest > limit * grid:
                fail(
                    name,
                    channel,
                    f"the channel reaches {largest:g} in steps of {grid:g}: not exact in {dtype}",
                )
                count[channel] = min(count[channel], 1 << 20)
        stream = Stream(low, unit, count, old.excludes.copy(), old.implies.copy())
        self._relate(stream)
        return stream

    def _relate(self, stream: Stream) -> None:
        """Renew what is known of the channels that are written."""
        hidden = len(stream.low)
        changed = np.array(sorted(self.by_channel), dtype=np.int64)
        if not len(changed):
            return
        is_changed = np.zeros(hidden, bool)
        is_changed[changed] = True
        excludes, implies = stream.excludes, stream.implies
        for matrix in (excludes, implies):
            matrix[changed] = False
            matrix[:, changed] = False
        sources: dict[int, list[Write]] = {}
        for channel in changed.tolist():
            writes = self._raising(channel, stream)
            if writes is None:
                continue
            sources[channel] = writes
            needs = np.logical_and.reduce([w.needs for w in writes]) if writes else np.ones(hidden, bool)
            lacks = np.logical_and.reduce([w.lacks for w in writes]) if writes else np.ones(hidden, bool)
            excludes[channel, ~is_changed] = lacks[~is_changed]
            excludes[~is_changed, channel] = lacks[~is_changed]
            implies[channel, ~is_changed] = needs[~is_changed]
        self._relate_changed(stream, sources)

    def _raising(self, channel: int, stream: Stream) -> list[Write] | None:
        """The terms of which one is not 0 where a channel is above its lowest; None where that is not so."""
        old = self.stream
        if stream.low[channel] != old.low[channel]:
            zeroed = [w for w in self.by_channel[channel] if len(w.term.places)]
            constant = sum(w.term.table[0] for w in self.by_channel[channel] if not len(w.term.places))
            if stream.low[channel] != old.low[channel] + constant:
                return None
        else:
            zeroed = self.by_channel[channel]
        kept, own = [], [w for w in zeroed if _reads_only(w.term, channel)]
        if len(own) > 1 or (own and (_with_identity(own[0].term, channel, old).table != 0).any()):
            return None
        for write in zeroed:
            if write in own:
                continue
            if (write.term.table > 0).any():
                kept.append(write)
        if old.count[channel] and not own:
            needs, lacks = close(old, np.array([channel]), np.zeros(0, np.int64))
            identity = Term(np.array([channel]), np.array([1]), 0, np.arange(old.count[channel] + 1.0))
            kept.append(Write(channel, identity, needs, lacks, (-1, channel)))
        return kept

    def _relate_changed(self, stream: Stream, sources: dict[int, list[Write]]) -> None:
        flat = [(channel, write) for channel, writes in sources.items() for write in writes]
        if not flat:
            return
        old = self.stream
        needs = np.array([w.needs for _, w in flat], dtype=np.float32)
        lacks = np.array([w.lacks for _, w in flat], dtype=np.float32)
        apart = needs @ lacks.T > 0
        apart |= apart.T
        apart |= (needs @ old.excludes.astype(np.float32)) @ needs.T > 0
        ids: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for index, (_, write) in enumerate(flat):
            ids[write.source].append(index)
        same = np.zeros_like(apart)
        for members in ids.values():
            for i in members:
                for j in members:
                    a, b = flat[i][1].term.table > 0, flat[j][1].term.table > 0
                    if len(a) == len(b):
                        apart[i, j] |= not (a & b).any()
                        same[i, j] = not (a & ~b).any()
        channels = np.array([channel for channel, _ in flat])
        order = np.argsort(channels, kind="stable")
        names, starts = np.unique(channels[order], return_index=True)
        by_rows = np.logical_and.reduceat(apart[np.ix_(order, order)], starts, axis=0)
        pairs = np.logical_and.reduceat(by_rows, starts, axis=1)
        stream.excludes[np.ix_(names, names)] = pairs
        some = np.logical_or.reduceat(same[np.ix_(order, order)], starts, axis=1)
        implied = np.logical_and.reduceat(some, starts, axis=0)
        only_positive = np.array(
            [all((w.term.table >= 0).all() for w in self.by_channel[c]) for c in names.tolist()]
        )
        implied &= only_positive[None, :]
        np.fill_diagonal(implied, False)
        stream.implies[np.ix_(names, names)] = implied
        np.fill_diagonal(stream.excludes, False)


def _reads_only(term: Term, channel: int) -> bool:
    return len(term.places) == 1 and int(term.places[0]) == channel


def _with_identity(term: Term, channel: int, stream: Stream) -> Term:
    """The term plus the channel's own content; the channel is erased where that is 0."""
    if not _reads_only(term, channel):
        return term
    weight = int(term.weights[0])
    n = (np.arange(len(term.table)) + term.first) / weight
    return Term(term.places, term.weights, term.first, term.table + stream.unit[channel] * n)
