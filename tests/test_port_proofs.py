"""Ports and guards are their definitions: what a query reads, what its columns hand on, whose turn it is.

Proved by z3 for all inputs, of the machine `seed`. That a row which is read gives what was written to it is
the stock layer's, and shown of the tensors; here stands what the circuit makes of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
import z3

from qgpu.backends.machine.block import BOUNDS, INDEX_BITS, block_fields
from qgpu.backends.machine.description import SEED
from qgpu.backends.transformer.circuit import Channel, Circuit, Form, Head, Neuron
from qgpu.backends.transformer.processor import build_processor
from qgpu.backends.transformer.ranges import in_order
from symbolic import refute

BITS = 11
"""Of the signed numbers that sums are computed in: `Sums` sees to it that they are enough."""

WORD = 32
INDEX_SIGN = INDEX_BITS - 1


def _field_bits() -> dict[str, list[str]]:
    """The channels of each field of a block."""
    found, position = {}, 0
    for field in block_fields(SEED):
        found[field.name] = [f"field.{position + k}" for k in range(field.width)]
        position += field.width
    return found


FIELDS = _field_bits()


class Sums:
    """Channels as signed numbers: free bits, and what neurons and columns add to a channel."""

    def __init__(self) -> None:
        self.free: dict[str, Any] = {}
        self._added: dict[Channel, list[tuple[Any, int]]] = defaultdict(list)

    def bit(self, name: str) -> Any:
        """A free bit."""
        return self.free.setdefault(name, z3.Bool(name))

    def flag(self, name: str) -> Any:
        """A field of one bit."""
        (channel,) = FIELDS[name]
        return self.bit(channel)

    def add(self, channel: Channel, amount: Any, size: int) -> None:
        """Let an amount of at most `size` add to a channel, which is then no free bit."""
        self._added[channel].append((amount, size))

    def channel(self, channel: Channel) -> Any:
        """The number that a channel holds."""
        if channel in self._added:
            return sum((amount for amount, _ in self._added[channel]), z3.BitVecVal(0, BITS))
        assert channel.maximum == 1, channel
        return where(self.bit(channel.name))

    def _largest(self, form: Form) -> int:
        """The largest absolute value of a form, and of its partial sums."""
        return abs(form.constant) + sum(abs(k) * self._size(channel) for channel, k in form.terms.items())

    def _size(self, channel: Channel) -> int:
        return sum(size for _, size in self._added.get(channel, [(None, 1)]))

    def _most(self, form: Form) -> int:
        """An upper bound of a form: free bits are not below 0."""
        held = ((k if c in self._added else max(k, 0), c) for c, k in form.terms.items())
        return max(0, form.constant + sum(abs(k) * self._size(c) for k, c in held))

    def form(self, form: Form) -> Any:
        """The number that a form is."""
        assert self._largest(form) < 1 << BITS - 1, form
        terms = (self.channel(channel) * k for channel, k in form.terms.items())
        return sum(terms, z3.BitVecVal(form.constant, BITS))

    def on(self, form: Form | None) -> Any:
        """Whether a form is at least 1: a key, a query, a gate or a written bit that is on."""
        return z3.BoolVal(True) if form is None else self.form(form) >= 1

    def run(self, neurons: Iterable[Neuron]) -> None:
        """Let neurons add to their outputs, those that others read first."""
        for neuron in in_order(list(neurons)):
            assert isinstance(neuron, Neuron)
            gate, size = self.form(neuron.gate), self._most(neuron.gate)
            output: Any = z3.If(gate > 0, gate, z3.BitVecVal(0, BITS))
            for channel, k in neuron.outputs:
                self.add(channel, output * k, size * abs(k))

    def number(self, names: Sequence[str]) -> Any:
        """Free bits as a number, least significant first."""
        one, zero = z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)
        digits = [z3.If(self.bit(name), one, zero) for name in reversed(names)]
        return z3.Concat(*digits) if len(digits) > 1 else digits[0]


def where(condition: Any, amount: int = 1) -> Any:
    """An amount where a condition holds, else 0."""
    return z3.If(condition, z3.BitVecVal(amount, BITS), z3.BitVecVal(0, BITS))


@pytest.fixture(scope="module")
def processor() -> Circuit:
    return build_processor(SEED)


def heads_of(processor: Circuit, *prefixes: str) -> list[Head]:
    return [h for h in processor.heads if isinstance(h, Head) and h.name.startswith(prefixes)]


def writing(processor: Circuit, prefix: str) -> list[Neuron]:
    """The neurons that write some channels, with these outputs alone."""
    found = [(n, [(c, k) for c, k in n.outputs if c.name.startswith(prefix)]) for n in processor.neurons]
    return [Neuron(neuron.gate, outputs, neuron.unit) for neuron, outputs in found if outputs]


def prove(claim: Any, *facts: Any) -> None:
    assert (found := refute(claim, *facts)) is None, found


# Which row is read and written.


def rows_are(forms: Sequence[Form], sums: Sums, holds: Callable[[int], Any], facts: Sequence[Any]) -> None:
    """Each row's form is 1 where it should be, and at most 0 elsewhere."""
    for number, form in enumerate(forms):
        value = sums.form(form)
        prove(z3.And((value >= 1) == holds(number), value <= 1), *facts)


def bus(name: str, bits: int) -> list[str]:
    return [f"{name}.{k}" for k in range(bits)]


UNIFORM_BITS = (SEED.uniform_registers - 1).bit_length()
ROW_BITS = (SEED.register_rows - 1).bit_length()
LANE_BITS, WARP_BITS = ((n - 1).bit_length() for n in (SEED.lanes, SEED.warps))


@pytest.mark.parametrize("port", ["a", "b", "c", "e"])
def test_uniform_ports_read_the_register(processor: Circuit, port: str) -> None:
    (head,) = heads_of(processor, f"uniform.{port}")
    sums = Sums()
    number = sums.number(FIELDS[port][:UNIFORM_BITS])
    enabled = sums.flag(f"{port}_uniform") if port in "ab" else z3.BoolVal(True)
    rows_are(head.queries, sums, lambda row: z3.And(enabled, number == row), [])


def test_a_literal_of_another_sign_is_refuted(processor: Circuit) -> None:
    (head,) = heads_of(processor, "uniform.c")
    sums = Sums()
    number = sums.number(FIELDS["c"][:UNIFORM_BITS])
    channel, k = next(iter(head.queries[5].terms.items()))
    wrong = Form(head.queries[5].terms | {channel: -k}, head.queries[5].constant)
    with pytest.raises(AssertionError, match="field"):
        rows_are([*head.queries[:5], wrong], sums, lambda row: number == row, [])


@pytest.mark.parametrize("port", ["a", "b", "c", "e"])
def test_uniform_registers_are_written_where_they_are_named(processor: Circuit, port: str) -> None:
    """The register that `dest` numbers, plus the lane for a block that asks for it: their bits never meet."""
    (head,) = heads_of(processor, f"uniform.{port}")
    sums = Sums()
    number = sums.number(FIELDS["dest"][:UNIFORM_BITS])
    lane = z3.ZeroExt(UNIFORM_BITS - LANE_BITS, sums.number(bus("dest_lane", LANE_BITS)))
    written = sums.flag("wr_uni")
    rows_are(head.keys, sums, lambda row: z3.And(written, (number | lane) == row), [(number & lane) == 0])


def test_data_memory_reads_and_writes_the_addressed_word(processor: Circuit) -> None:
    bits = (SEED.memory_words - 1).bit_length()
    for name, read in (("memory.", "byte_address"), ("memory2.", "second_address")):
        heads, sums = heads_of(processor, name), Sums()
        queries, keys = ([form for h in heads for form in getattr(h, side)] for side in ("queries", "keys"))
        assert len(queries) == len(keys) == SEED.memory_words
        number, stored = (
            sums.number([f"{b}.{k + 2}" for k in range(bits)]) for b in (read, "stored_address")
        )
        stores = sums.flag("wr_mem"), sums.flag("wr_mem2")
        rows_are(queries, sums, lambda row, number=number: number == row, [])
        # A program rule: a block stores once at most.
        one = [z3.Not(z3.And(*stores))]
        rows_are(keys, sums, lambda row, at=stored, stores=stores: z3.And(z3.Or(*stores), at == row), one)


@pytest.mark.parametrize("port", ["a", "b", "dest"])
@pytest.mark.parametrize("side", ["keys", "queries"])
def test_thread_registers_are_where_their_thread_is(processor: Circuit, port: str, side: str) -> None:
    """The word is lane + lanes * (register + warp), whose bits never meet.

    A uniform register's number may meet the warp's: it is not enabled then, and nothing is read or written.
    """
    forms = [form for head in heads_of(processor, f"register.{port}.") for form in getattr(head, side)]
    assert len(forms) == SEED.lanes * (SEED.accumulator_rows if port == "dest" else SEED.register_rows)
    sums = Sums()
    field, enable = ("dest", "wr_reg") if side == "keys" else (port, FLAGS[port])
    register, warp = sums.number(FIELDS[field][:ROW_BITS]), sums.number(bus("warp", WARP_BITS))
    lane, warp = sums.number(bus("lane", LANE_BITS)), z3.ZeroExt(ROW_BITS - WARP_BITS, warp)
    enabled = sums.flag(enable)
    apart = z3.Implies(enabled, (register & warp) == 0)

    def here(word: int) -> Any:
        return z3.And(enabled, lane == word % SEED.lanes, (register | warp) == word // SEED.lanes)

    rows_are(forms, sums, here, [apart])


FLAGS = {"a": "a_thread", "b": "b_thread", "dest": "dest_to_z"}
"""What has a thread port read."""


def test_predicates_are_kept_by_thread(processor: Circuit) -> None:
    (head,) = heads_of(processor, "own.")
    sums = Sums()
    thread = sums.number([*bus("lane", LANE_BITS), *bus("warp", WARP_BITS)])
    writes = sums.flag("wr_pred")
    for forms in (head.keys, head.queries):
        rows_are(forms, sums, lambda row: z3.And(writes, thread == row), [])


# What a row that is read hands on.


def handed_on(heads: Sequence[Head], sums: Sums) -> dict[str, dict[int, Any]]:
    """What columns add to each bus, by bit; a written bit stands in the row as `stored.K`."""
    columns = heads[0].columns
    for column in columns:
        (written,) = column.value.terms
        stored = sums.bit(f"stored.{written.name.rsplit('.', 1)[1]}")
        for channel, k in column.outputs:
            sums.add(channel, where(z3.And(sums.on(column.gate), stored), k), abs(k))
    found: dict[str, dict[int, Any]] = defaultdict(dict)
    for channel in {channel for column in columns for channel, _ in column.outputs}:
        name, _, bit = channel.name.rpartition(".")
        found[name or bit][int(bit) if name else 0] = sums.channel(channel)
    return found


def word_is(bits: dict[int, Any], wanted: Any, facts: Sequence[Any]) -> None:
    """What is added to a bus of 32 bits is a word."""
    assert sorted(bits) == list(range(WORD))
    for k, value in bits.items():
        prove(value == where(z3.Extract(k, k, wanted) == 1), *facts)


def test_loads_of_words_halves_and_bytes(processor: Circuit) -> None:
    """A word, or the half or byte at the address, with the sign's copies above it where that is asked for."""
    sums = Sums()
    heads = heads_of(processor, "memory.")
    found = handed_on(heads, sums)
    stored, zero = sums.number(bus("stored", WORD)), z3.BitVecVal(0, WORD)
    flag = {n: sums.flag(n) for n in ("m_to_x", "m_to_y", "m_sub_to_x", "m_signed", "width8", "width16")}
    low, high = bus("byte_address", 2)
    at = z3.ZeroExt(WORD - 2, sums.number([low, high]))
    # Program rules: one width at most, a part has one, its half's address is even, and X has one source.
    facts = [
        z3.Not(z3.And(flag["width8"], flag["width16"])),
        z3.Implies(flag["m_sub_to_x"], z3.Or(flag["width8"], flag["width16"])),
        z3.Implies(flag["width16"], z3.Not(sums.bit(low))),
        z3.Not(z3.And(flag["m_to_x"], flag["m_sub_to_x"])),
    ]
    shifted = z3.LShR(stored, 8 * at)

    def extended(width: int) -> Any:
        part = z3.Extract(width - 1, 0, shifted)
        return z3.If(flag["m_signed"], z3.SignExt(WORD - width, part), z3.ZeroExt(WORD - width, part))

    part = z3.If(flag["width8"], extended(8), extended(16))
    word_is(found["x"], z3.If(flag["m_to_x"], stored, z3.If(flag["m_sub_to_x"], part, zero)), facts)
    word_is(found["y"], z3.If(flag["m_to_y"], stored, zero), facts)


INDEX = {"a": ("i", "a_to_i", "a_to_i4"), "e": ("j", "e_to_j", "e_to_j4")}
ROUTES = {
    "a": {"x": "a_to_x", "descriptor": "a_to_d"},
    "b": {"y": "b_to_y", "z": "b_to_z"},
    "c": {"descriptor": "c_to_d", "y": "c_to_y", "z": "c_to_z"},
    "dest": {"z": "dest_to_z"},
    "e": {"descriptor2": "e_to_d2"},
}
"""What each port hands on a whole word to, and the flags that ask for it."""


@pytest.mark.parametrize("port", ROUTES)
def test_words_go_where_they_are_asked_for(processor: Circuit, port: str) -> None:
    for kind in ("uniform", "register"):
        heads = heads_of(processor, f"{kind}.{port}")
        if not heads:
            continue
        sums = Sums()
        found = handed_on(heads, sums)
        stored = sums.number(bus("stored", WORD))
        for name, flag in ROUTES[port].items():
            word_is(found.pop(name), z3.If(sums.flag(flag), stored, z3.BitVecVal(0, WORD)), [])
        if port not in INDEX:
            assert not found
            continue
        index, plain, scaled = INDEX[port]
        _index_is(found.pop(index), found.pop(f"{index}_high"), stored, sums.flag(plain), sums.flag(scaled))
        assert not found


def _index_is(bits: dict[int, Any], high: dict[int, Any], stored: Any, plain: Any, scaled: Any) -> None:
    """A signed index, or four times it, and how many of the word's bits from the sign's place on are 1."""
    width = len(bits)
    once = z3.Not(z3.And(plain, scaled))
    used = z3.Or(plain, scaled)
    count = sum(
        (z3.ZeroExt(BITS - 1, z3.Extract(k, k, stored)) for k in range(INDEX_SIGN, WORD)),
        z3.BitVecVal(0, BITS),
    )
    prove(high[0] == z3.If(used, count, where(used, 0)), once)
    # Of an index that is none, because its upper bits are mixed, the count alone is used.
    fits = z3.Or(count == 0, count == WORD - INDEX_SIGN)
    value = z3.Extract(width - 1, 0, z3.If(scaled, stored << 2, stored))
    for k, found in bits.items():
        wanted = z3.And(used, z3.Extract(k, k, value) == 1)
        prove(found == where(wanted), once, fits)


# Which lanes are left.


def test_a_lane_is_left_where_its_guard_holds(processor: Circuit) -> None:
    """Each predicate of the guard holds in the lane, or does not, as the guard has it.

    A predicate holds where its bound makes it (`held`, which test_bounds_of_predicates has proved), or else
    the stored bit does. The lane must not have been passed, and of a block that is run once a warp only the
    first lane is.
    """
    sums = Sums()
    for predicate in range(BOUNDS):
        for part in ("guard_true", "guard_false", "held"):
            sums.run(writing(processor, f"bound.{predicate}.{part}"))
    for head in heads_of(processor, "guards."):
        _add_stored_predicates(head, sums)
    sums.run(writing(processor, "guards_met."))
    sums.run(writing(processor, "lane_left."))
    named = {channel.name: channel for channel in processor.channels}
    # A program rule: no predicate has to be both 1 and 0.
    pairs = list(zip(FIELDS["guard_true"], FIELDS["guard_false"], strict=True))
    pairs += [(f"bound.{predicate}.over", f"bound.{predicate}.there") for predicate in range(BOUNDS)]
    facts = [z3.Not(z3.And(sums.bit(one), sums.bit(zero))) for one, zero in pairs]
    for lane in range(SEED.lanes):
        holds = [_holds(sums, named, lane, predicate) for predicate in range(SEED.predicates)]
        guard = [
            z3.And(z3.Implies(sums.bit(one), held), z3.Implies(sums.bit(zero), z3.Not(held)))
            for one, zero, held in zip(FIELDS["guard_true"], FIELDS["guard_false"], holds, strict=True)
        ]
        once = [z3.Not(sums.flag("scalar"))] if lane else []
        wanted = z3.And(sums.flag("visit"), z3.Not(sums.bit(f"passed.{lane}")), *once, *guard)
        found = sums.channel(named[f"lane_left.{lane}"])
        prove(found == where(wanted), *facts)


def _add_stored_predicates(head: Head, sums: Sums) -> None:
    """A column is of a lane and a predicate, and 1 in that lane's row alone, if the predicate is."""
    for column in head.columns:
        names = {channel.name for channel in column.value.terms}
        (predicate,) = (n.rsplit(".", 1)[1] for n in names if n.startswith("token.argument."))
        (lane,) = (n.rsplit(".", 1)[1] for n in names if n.startswith("lane_before."))
        ((channel, k),) = column.outputs
        assert channel.name == f"guards_met.{lane}"
        stored = sums.bit(f"stored.{predicate}.{lane}")
        sums.add(channel, where(z3.And(sums.on(column.gate), stored), k), abs(k))


def _holds(sums: Sums, named: dict[str, Channel], lane: int, predicate: int) -> Any:
    """Whether a predicate holds in a lane of the current warp; predicate 0 is not stored."""
    stored = sums.bit(f"stored.{predicate}.{lane}") if predicate else z3.BoolVal(False)
    if predicate >= BOUNDS:
        return stored
    return z3.Or(sums.channel(named[f"bound.{predicate}.held.{lane}"]) == 1, stored)


def test_a_bound_is_in_one_warp(processor: Circuit) -> None:
    """Its warp is not both above the current one and the current one."""
    named = {channel.name: channel for channel in processor.channels}
    for predicate in range(BOUNDS):
        sums = Sums()
        over, there = (f"bound.{predicate}.{part}" for part in ("over", "there"))
        for name in (over, there):
            sums.run(writing(processor, name))
        prove(sums.channel(named[over]) + sums.channel(named[there]) <= 1)
