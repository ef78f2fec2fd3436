"""A head of which several rows are read at once: one of them holds the constant, each column at most one bit.

The rows of one query are told apart by their columns: a column's bit is only ever written to one row of
those that are read together. Keys are one-hot but after one token, the first of every sequence, which gives
the rows that are to hold the constant theirs, all at once. Keys are those of the token before: what the pass
before was is put together with what this one says of it (bits that every token writes and reads, `delayed`).
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from qgpu.backends.prover.arithmetic import unit_key
from qgpu.backends.prover.counter import WRITES
from qgpu.backends.prover.facts import Term, members
from qgpu.backends.prover.search import Domain, Search

if TYPE_CHECKING:
    from qgpu.backends.prover.heads import Head, Layer
    from qgpu.backends.prover.reads import Reads

DEPTH = 3
"""How deep definitions are looked at."""


class _Unproved(Exception):
    """What is not shown, and of which row."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row, self.reason = row, reason


def prove_gather(
    layer: Layer, reads: Reads, head: Head, columns: np.ndarray, keys: list[int], queries: list[int]
) -> None:
    """Prove a head whose rows are read several at once, and note what it reads."""
    from qgpu.backends.prover.memory import add_columns, read_bits

    gather = _Gather(layer, head, keys, queries)
    try:
        constants, rows = gather.prove()
    except _Unproved as unproved:
        layer.fail(layer.name("in_proj_qkv"), unproved.row, unproved.reason)
        return
    layer.kinds["gather"] += 1
    layer.conditions += gather.conditions
    found = read_bits(layer, head, columns, queries, constants)
    if found is not None:
        places = reads.bits(head, found[0], found[1], one_row=False)
        add_columns(layer, reads, head, places, constants, rows)


class _Gather:
    def __init__(self, layer: Layer, head: Head, keys: list[int], queries: list[int]) -> None:
        from qgpu.backends.prover.memory import large_columns

        self.layer, self.head, self.keys, self.queries = layer, head, keys, queries
        self.table, self.facts = layer.rows["qkv"], layer.stream.facts
        self.conditions: list[str] = []
        large = large_columns(layer, head)
        self.constant = [head.value.start + int(c) for c in np.flatnonzero(large)]
        rows = range(head.value.start, head.value.stop)
        self.values = [r for r in rows if not large[r - head.value.start] and self.table.most[r] > 0]
        self.amplitude: dict[int, float] = {}
        self.holds_constant: dict[int, bool] = {}
        self.written: dict[int, set[int]] = {}

    def prove(self) -> tuple[np.ndarray, int]:
        """The constants of a read, and how many rows it is of."""
        layer, head = self.layer, self.head
        if any(layer.taps[k] != 1 for k in self.keys) or any(layer.taps[q] for q in self.queries):
            raise _Unproved(self.keys[0], "several keys at once, that are not those of the token before")
        if not self.constant or any(layer.taps[r] for r in self.constant):
            raise _Unproved(head.value.start, "no constant column of this token")
        token = self._first_token()
        self._write_all(token)
        initial = self._initial_rows(token)
        self._check_first(token, initial)
        return self._read(initial)

    def _row(self, row: int) -> Term:
        """1 where a row of keys or values is on."""
        return self.layer.is_on("qkv", row)

    def _first_token(self) -> int:
        """The variable of the only token after which several keys are on."""
        known = [self.layer.literals("qkv", row) for row in self.keys]
        pairs = [
            (self.keys[j], self.keys[i])
            for i, one in enumerate(known)
            for j in range(i)
            if not one.apart(known[j])
        ]
        if not pairs:
            raise _Unproved(self.queries[0], "queries may be on at once whose keys never are")
        scope = Search(self.facts, [([self._row(k) for k in pairs[0]], 2, 2)], DEPTH).variables
        candidates = [v for v in scope if len(self.facts.tokens.get(v, ())) == 1]
        worst = pairs[0]
        for token in candidates:
            for pair in pairs:
                search = Search(self.facts, [([self._row(k)], 1, 1) for k in pair], DEPTH)
                if not search.refuted(search.start(high={token: 0})):
                    worst = pair
                    break
            else:
                return token
        raise _Unproved(worst[0], f"keys {worst[0]} and {worst[1]} may be on at once")

    def _initial_rows(self, token: int) -> set[int]:
        """The rows whose keys are on after the first token."""
        search = Search(self.facts, [], DEPTH, {v for k in self.keys for v in self._row(k).variables})
        domain = search.start(low={token: 1})
        if domain is None:
            raise _Unproved(self.keys[0], "the first token cannot be")
        domain = search.fixed(domain, (v for k in self.keys for v in self._row(k).variables))
        found = set()
        for key in self.keys:
            low, high = search.bounds(self._row(key), domain)
            if low != high:
                raise _Unproved(key, "the key of this row after the first token is not known")
            if low:
                found.add(key)
        sizes = {float(x) for key in found for x in self.table.values(key) if x > 0}
        if not found or {unit_key(x, len(found), self.layer.dtype) for x in sizes} != {
            np.float32(len(found) ** -0.5)
        }:
            raise _Unproved(self.keys[0], f"{len(found)} keys at once have no exact length")
        return found

    def _delayed(self, search: Search, domain: Domain) -> dict[int, int]:
        """What a pass says of the bits that the next one reads of it."""
        found = {}
        for bit, term in self.facts.delayed.items():
            if all(v in search.index for v in term.variables):
                low, high = search.bounds(term, domain)
                if low == high:
                    found[bit] = low
        return found

    def _roots(self) -> set[int]:
        return {v for term in self.facts.delayed.values() for v in term.variables}

    def _after(self) -> Search:
        """The pass that writes the values."""
        rows = [*self.constant, *self.values]
        roots = {v for r in rows for v in self.table.form(r)[0]} | set(
            self.layer.rows["b"].form(self.head.index)[0]
        )
        return Search(self.facts, [], DEPTH, roots)

    def _write_all(self, token: int) -> None:
        """What a write, but that of the first token, gives each row: the constant or none, and which bits."""
        after = self._after()
        for key in self.keys:
            before = Search(self.facts, [([self._row(key)], 1, 1)], DEPTH, self._roots())
            domain = before.start(high={token: 0})
            if domain is None:
                continue
            found = self._next(after, self._delayed(before, domain))
            given = {row: self._value(after, found, row) for row in self.constant}
            self.holds_constant[key] = any(given.values())
            for row, value in given.items():
                if value is None or bool(value) != self.holds_constant[key]:
                    raise _Unproved(row, f"whether key {key} writes the constant is not known")
                if value and self.amplitude.setdefault(row, value) != value:
                    raise _Unproved(row, "a row's constant varies")
            self.written[key] = {r for r in self.values if after.bounds(self._row(r), found)[1]}

    def _check_first(self, token: int, initial: set[int]) -> None:
        """After the first token each initial row gets the constant, and no bit."""
        before = Search(self.facts, [], DEPTH, self._roots())
        domain = before.start(low={token: 1})
        after = self._after()
        known = {} if domain is None else self._delayed(before, domain)
        spoken = self._silent()
        found = self._next(after, known, {spoken: 0})
        scale = len(initial) ** 0.5
        for row in self.constant:
            if self._value(after, found, row) != self.amplitude.get(row, 0.0) * scale:
                raise _Unproved(row, "the first token's rows get another constant than those of a write")
        for row in self.values:
            if after.bounds(self._row(row), found)[1]:
                raise _Unproved(row, "a bit may be written after the first token")
        strength, index = self.layer.rows["b"], self.head.index
        writes = (strength.values(index) >= WRITES).astype(np.float64)
        if not after.bounds(Term(*strength.form(index), int(strength.low[index]), writes), found)[0]:
            raise _Unproved(self.keys[0], "the first token's rows may not be written")
        first = f"token {int(self.facts.tokens[token][0])}"
        self.conditions.append(f"{first} begins every sequence and is nowhere else in it")
        self.conditions.append(f"it is followed by none of the tokens {_ranges(self.facts.tokens[spoken])}")

    def _silent(self) -> int:
        """What a token must not say after the first: a variable of its own that every bit needs."""
        needs = [self.layer.literals("qkv", row).needs for row in self.values]
        common = reduce(int.__and__, needs, -1) if needs else 0
        candidates = [v for v in members(common) if v in self.facts.tokens]
        if not candidates:
            raise _Unproved(self.head.value.start, "what is written after the first token is not known")
        return min(candidates, key=lambda v: len(self.facts.tokens[v]))

    def _next(self, after: Search, known: dict[int, int], high: dict[int, int] | None = None) -> Domain:
        """A pass of which is known what the one before says of it."""
        found = after.start(known, known | (high or {}))
        if found is None:
            raise _Unproved(self.keys[0], "the pass after one that gives a key cannot be")
        rows = [*self.constant, *self.values]
        return after.fixed(found, dict.fromkeys(v for r in rows for v in self.table.form(r)[0]))

    def _value(self, search: Search, domain: Domain, row: int) -> float | None:
        """What a value row is in a case; None where it is not certain."""
        table = self.table
        numbers = np.arange(table.low[row], table.high[row] + 1, dtype=np.float64)
        low, high = search.bounds(Term(*table.form(row), int(table.low[row]), numbers), domain)
        return float(table.base[row] + table.step[row] * low) if low == high else None

    def _read(self, initial: set[int]) -> tuple[np.ndarray, int]:
        """Each query reads one row with the constant, and each bit from one row at most."""
        groups: dict[tuple[bytes, float], list[int]] = defaultdict(list)
        for query in self.queries:
            groups[self.table.weights[query].tobytes(), self.table.base[query]].append(query)
        known = [self.layer.literals("qkv", members[0]) for members in groups.values()]
        for i, one in enumerate(known):
            if any(not one.apart(other) for other in known[:i]):
                raise _Unproved(self.queries[0], "rows of two queries may be read at once")
        for found in groups.values():
            self._check_group(found, initial)
        sizes = {len(found) for found in groups.values()}
        if len(sizes) != 1:
            raise _Unproved(self.queries[0], "queries are of different numbers of rows")
        (size,) = sizes
        first = self.head.value.start
        constants = np.zeros(self.head.value.stop - first)
        for row in self.constant:
            constants[row - first] = self.amplitude[row]
        return constants, size

    def _check_group(self, queries: list[int], initial: set[int]) -> None:
        """Rows that are read together: one of them holds the constant, and each bit is of one at most."""
        rows = [query + self.head.key.start - self.head.query.start for query in queries]
        with_constant = sum(r in initial for r in rows)
        if with_constant != 1:
            raise _Unproved(queries[0], f"{with_constant} of the rows read hold the constant")
        for r in rows:
            if self.holds_constant.get(r, r in initial) != (r in initial):
                raise _Unproved(r, "a write changes whether this row holds the constant")
        for value in self.values:
            if sum(value in self.written.get(r, ()) for r in rows) > 1:
                raise _Unproved(value, "a bit may be read of several rows at once")


def _ranges(numbers: np.ndarray) -> str:
    """Ascending numbers as ranges."""
    breaks = np.flatnonzero(np.diff(numbers) != 1)
    starts, ends = [0, *(breaks + 1)], [*breaks, len(numbers) - 1]
    pairs = ((int(numbers[a]), int(numbers[b])) for a, b in zip(starts, ends, strict=True))
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in pairs)
