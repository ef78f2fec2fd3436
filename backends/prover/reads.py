"""What the heads of a half layer read: bits as variables, and the rounding of their sums beside an offset."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from qgpu.backends.prover.facts import Cause, Facts, Literals, Term, bit_set, members
from qgpu.backends.prover.literals import necessary
from qgpu.backends.prover.program import Condition, Place
from qgpu.backends.prover.roundoff import Error, rounded_error, sum_errors, vanishes
from qgpu.backends.prover.stream import Stream
from qgpu.backends.prover.sums import largest
from qgpu.backends.prover.writes import Writes

if TYPE_CHECKING:
    from qgpu.backends.prover.heads import Head, Layer

BIT = 32.0
"""A written bit, and an open read gate."""

NOMINAL = 2.0**12
"""What a head adds is meant to be a multiple of 1 over this, a counter's steps apart."""


@dataclass
class Conditions:
    """What is taken for granted of bits that heads read."""

    rules: Sequence[Condition] = ()

    def read(self, facts: Facts, layer: int, bits: dict[int, list[int]]) -> set[int]:
        """Note what a layer reads into each channel, and what follows; return bits that are never 1."""
        new = {Place(channel, layer): variables for channel, variables in bits.items()}
        facts.read |= {(p.channel, p.layer): bits for p, bits in new.items()}
        never: set[int] = set()
        for rule in self.rules:
            for places in rule.forbidden:
                known = [facts.read.get((p.channel, p.layer)) for p in places]
                if None in known or not any(p in new for p in places):
                    continue
                found = [bits for bits in known if bits is not None]
                if len(found) == 1:
                    never |= set(found[0])
                    continue
                for chosen in product(*found):
                    facts.forbid(chosen)
        return never


@dataclass(frozen=True)
class _Pending:
    """A column that is added to a channel: a bit, gated, of a size that is known up to an error."""

    channel: int
    bit: int
    gate: int
    ways: np.ndarray


class Reads:
    """The bits that the heads of a layer read, and where they go."""

    def __init__(self, layer: Layer) -> None:
        self.layer, self.facts = layer, layer.stream.facts
        self.pending: list[_Pending] = []
        self.counters: list[tuple[int, Term, float]] = []
        self.made: list[tuple[Literals, int]] = []
        self.before = self.facts.live

    def bits(self, head: Head, columns: list[int], literals: Literals, one_row: bool) -> dict[int, int]:
        """Make a variable for each distinct bit of the columns; return it by column.

        Args:
            literals: what holds where a row is read.
            one_row: of one row alone, so bits that are never written together are never read together.
        """
        rows, taps = self.layer.rows["qkv"], self.layer.taps
        distinct: dict[tuple[bytes, float, int], tuple[int, int]] = {}
        made: dict[int, list[tuple[int, int]]] = defaultdict(list)
        places = {}
        for column in columns:
            row = head.value.start + column
            key = (rows.weights[row].tobytes(), float(rows.base[row]), int(taps[row]))
            if key not in distinct:
                bit = self.facts.new(1, literals)
                distinct[key] = bit, row
                made[int(taps[row])].append((bit, row))
            places[column] = distinct[key][0]
        if one_row:
            for found in made.values():
                self._separate(found)
        self._separate_heads(literals, bit_set(bit for bit, _ in distinct.values()))
        return places

    def _separate_heads(self, literals: Literals, bits: int) -> None:
        """Note that bits are 0 where those of other heads, or what channels hold, come from other rows."""
        apart = reduce(int.__or__, (others for known, others in self.made if known.apart(literals)), 0)
        for variable in members(self.before):
            causes = self.facts.raising[variable]
            if causes and all(cause.apart(literals) for cause in causes):
                apart |= 1 << variable
        for bit in members(bits) if apart else ():
            self.facts.exclude(bit, apart)
        self.made.append((literals, bits))

    def _separate(self, made: list[tuple[int, int]]) -> None:
        known = [(bit, self.layer.literals("qkv", row)) for bit, row in made]
        for i, (bit, literals) in enumerate(known):
            apart = bit_set(other for other, found in known[:i] if literals.apart(found))
            if apart:
                self.facts.exclude(bit, apart)

    def add(self, channel: int, bit: int, gate: int, ways: np.ndarray) -> None:
        """Add what a column gives to a channel: `ways` are the values that the layer may compute."""
        self.pending.append(_Pending(channel, bit, gate, ways))

    def count(self, channel: int, unit: float, limit: int, error: float) -> None:
        """Add a counter's count, 0 to `limit` times `unit`, read with an error of at most `error` units."""
        variable = self.facts.new(limit, Literals())
        table = unit * np.arange(limit + 1, dtype=np.float64)
        self.counters.append((channel, Term((variable,), (1,), 0, table), error * unit))

    def applied(self, conditions: Conditions) -> Stream:
        """The stream after the layer's heads."""
        layer, facts, old = self.layer, self.facts, self.layer.stream
        read: dict[int, dict[int, None]] = defaultdict(dict)
        for one in self.pending:
            read[one.channel][one.bit] = None
        never = conditions.read(facts, layer.number, {c: list(bits) for c, bits in read.items()})
        writes, errors = Writes(old), _Errors()
        for number, one in enumerate(self.pending):
            if one.bit in never:
                writes.idle.add(one.channel)
                continue
            nominal = float(np.round(one.ways.mean() * NOMINAL) / NOMINAL)
            cause = self._gated(one, nominal, number)
            errors.add(one.channel, cause, one.ways - nominal)
            writes.add(one.channel, cause)
        for channel, term, error in self.counters:
            errors.counted[channel] = error
            writes.add(channel, Cause(term, facts.closed(1 << term.variables[0], 0), (-2, channel)))
        after = writes.applied(layer.dtype, layer.name("out_proj"), layer.fail)
        facts.counts += tuple(int(after.at[channel]) for channel, _, _ in self.counters)
        self._round(writes, after, errors)
        facts.live &= bit_set(after.at.tolist())
        return dataclasses.replace(after)

    def _gated(self, one: _Pending, size: float, number: int) -> Cause:
        """The term size * (gate is on) * bit."""
        rows = self.layer.rows["z"]
        low, high = int(rows.low[one.gate]), int(rows.high[one.gate])
        first = int(np.ceil((BIT - rows.base[one.gate]) / rows.step[one.gate]))
        span = max(1, high - first + 1)
        variables, weights = rows.form(one.gate)
        table = np.zeros(high - low + span + 1)
        table[first + span - low :] = size
        term = Term((*variables, one.bit), (*weights, span), low, table)
        literals = necessary(self.facts, term.variables, term.weights, first + span, np.inf)
        return Cause(term, literals, (number,))

    def _round(self, writes: Writes, after: Stream, errors: _Errors) -> None:
        """Check that the addition to the residual stream rounds what is read to what is meant."""
        layer, old = self.layer, self.layer.stream
        for channel in writes.by_channel:
            for added, error in errors.of(channel, self.facts, layer.dtype):
                layer.error = max(layer.error, error.below, error.above)
                first = max(after.low[channel], old.low[channel] + added)
                if first > 0 and vanishes(error, float(first), layer.dtype):
                    continue
                largest = max(error.below, error.above)
                reason = f"an error of {largest:.3g} beside {first:g} is not taken away by rounding"
                layer.fail(layer.name("out_proj"), channel, reason)
                break


class _Errors:
    """By how much what is read into a channel may be off."""

    def __init__(self) -> None:
        self.single: dict[int, Error] = {}
        self.causes: dict[int, list[Cause]] = defaultdict(list)
        self.counted: dict[int, float] = {}

    def add(self, channel: int, cause: Cause, off: np.ndarray) -> None:
        """Note a column, and what its bit's values are above what is meant (all its ways)."""
        before = self.single.get(channel, Error(0.0, 0.0))
        sign = -1 if (cause.term.table < 0).any() else 1
        below, above = max(0.0, float((-sign * off).max())), max(0.0, float((sign * off).max()))
        self.single[channel] = Error(max(before.below, below), max(before.above, above))
        self.causes[channel].append(cause)

    def of(self, channel: int, facts: Facts, dtype: str) -> Iterator[tuple[float, Error]]:
        """What may be added to a channel, at least, and by how much it may be off."""
        if channel in self.counted:
            yield 0.0, Error(self.counted[channel], self.counted[channel])
            return
        single, causes = self.single[channel], self.causes[channel]
        if single == Error(0.0, 0.0):
            return
        sizes = {float(x) for c in causes for x in c.term.table if x}
        plus, minus, several = (
            round(largest([_mark(c, signs) for c in causes], facts)) for signs in ((1,), (-1,), (1, -1))
        )
        if several <= 1:
            for size in sizes:
                yield size, single if size > 0 else Error(single.above, single.below)
            return
        units = set(map(abs, sizes))
        unit = min(units)
        if len(units) > 1 or np.frexp(unit)[0] != 0.5:
            yield unit * several, Error(np.inf, np.inf)
            return
        # Rounding takes no notice of a power of two.
        each = Error(single.below / unit, single.above / unit)
        for (ups, downs), error in sum_errors(each, plus, minus, several).items():
            off = rounded_error(error, ups - downs, dtype)
            yield unit * (ups - downs), Error(unit * off.below, unit * off.above)


def _mark(cause: Cause, signs: tuple[int, ...]) -> Cause:
    """1 where a term is not 0 and has one of some signs."""
    marked = np.isin(np.sign(cause.term.table), signs) & (cause.term.table != 0)
    return dataclasses.replace(cause, term=dataclasses.replace(cause.term, table=marked.astype(np.float64)))
