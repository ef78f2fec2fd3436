"""What a half layer adds to the residual stream: terms by channel, and the stream after it."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from qgpu.backends.prover.facts import Cause, Facts, Literals, Term, bit_set, common
from qgpu.backends.prover.projection import Fail
from qgpu.backends.prover.relations import Made, lift, relate
from qgpu.backends.prover.stream import Stream
from qgpu.backends.prover.sums import Sum, check_exact


@dataclass
class Writes:
    """All terms of a half layer.

    Attributes:
        idle: channels that something is written into which is always 0.
    """

    stream: Stream
    by_channel: dict[int, list[Cause]] = field(default_factory=lambda: defaultdict(list))
    idle: set[int] = field(default_factory=set)

    def add(self, channel: int, cause: Cause) -> None:
        """Add a term, in the channel's own unit of 1."""
        self.by_channel[channel].append(cause)

    def applied(self, dtype: str, name: str, fail: Fail) -> Stream:
        """The stream with the terms added, its ranges bounded by cases."""
        old, facts = self.stream, self.stream.facts
        low, unit, count = old.low.copy(), old.unit.copy(), old.count.copy()
        at, held = old.at.copy(), old.held.copy()
        sums: dict[int, Sum] = {}
        for channel, causes in self.by_channel.items():
            found = Sum.of(old, channel, causes)
            low[channel], unit[channel], count[channel] = found.low, found.unit, found.count
            check_exact(found, old, channel, dtype, name, fail)
            sums[channel], held[channel] = found, bool(found.terms)
        held[list(self.idle)] = True
        gone = bit_set(int(old.at[channel]) for channel in sums)
        facts.live &= ~gone
        made: list[Made] = []
        for channel, found in sums.items():
            at[channel] = _variable(facts, found, made)
        return dataclasses.replace(old, at=at, low=low, unit=unit, count=count, held=held)


def _variable(facts: Facts, found: Sum, made: list[Made]) -> int:
    """Make a channel's variable and relate it to all others."""
    terms = [dataclasses.replace(t, table=np.rint(t.table / found.unit)) for t in found.terms]
    if found.base:
        terms.append(Term((), (), 0, np.array([np.rint(found.base / found.unit)])))
    if not found.raising:
        return facts.new(found.count, Literals(), terms)
    literals = [case for cause in found.raising for case in cause.split()]
    variable = facts.new(found.count, common(literals), terms, literals)
    new = Made(variable, found.raising, not any(t.lowers for t in terms))
    relate(facts, new, made)
    lift(facts, variable, literals)
    made.append(new)
    return variable
