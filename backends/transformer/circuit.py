"""Circuits over named channels: the form in which functional units are written before any weight exists.

A channel holds an integer for the length of one token's pass: a bit, or a small count. Three things write
channels, and all add to what is there:

- the embedding of the incoming token;
- a neuron, which adds `coefficient * max(0, gate)` to each of its outputs, the gate being a linear form;
- a head of recurrent memory, which adds columns of the rows that its query selects.

Everything is exact integer arithmetic here; `emit` chooses the weights with which a stock layer computes the
same numbers (see docs/machine.md, "Exactness").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(eq=False)
class Channel:
    """One named integer of a pass.

    Attributes:
        name: unique within the circuit.
        maximum: upper bound of the value. The lower bound is 0, or -maximum where a head subtracts.
        kind: what writes it: "token" (embedding), "neuron", "memory" or "counter". A channel that a memory
            writes
            may be written by neurons too.
        shift: the value stands in the residual stream divided by 2^shift; see `Circuit.shrink_counts`.
    """

    name: str
    maximum: int = 1
    kind: str = "neuron"
    shift: int = 0

    def __repr__(self) -> str:
        return f"Channel({self.name})"

    def form(self) -> Form:
        """The linear form that is this channel."""
        return Form({self: 1}, 0)


@dataclass(frozen=True)
class Form:
    """A linear form over channels with integer coefficients and an integer constant."""

    terms: dict[Channel, int]
    constant: int = 0

    def __add__(self, other: FormLike) -> Form:
        other = as_form(other)
        terms = dict(self.terms)
        for channel, coefficient in other.terms.items():
            terms[channel] = terms.get(channel, 0) + coefficient
        return Form({c: k for c, k in terms.items() if k}, self.constant + other.constant)

    __radd__ = __add__

    def __mul__(self, factor: int) -> Form:
        return Form({c: k * factor for c, k in self.terms.items() if factor}, self.constant * factor)

    __rmul__ = __mul__

    def __neg__(self) -> Form:
        return self * -1

    def __sub__(self, other: FormLike) -> Form:
        return self + -as_form(other)

    def __rsub__(self, other: FormLike) -> Form:
        return as_form(other) + -self

    def __invert__(self) -> Form:
        """The complement of a form whose value is 0 or 1."""
        return 1 - self


FormLike = Form | Channel | int


def as_form(value: FormLike) -> Form:
    """Read a channel or an integer as a linear form."""
    if isinstance(value, Form):
        return value
    return value.form() if isinstance(value, Channel) else Form({}, value)


def total(forms: Iterable[FormLike]) -> Form:
    """The sum of forms."""
    terms: dict[Channel, int] = {}
    constant = 0
    for item in forms:
        form = as_form(item)
        constant += form.constant
        for channel, coefficient in form.terms.items():
            terms[channel] = terms.get(channel, 0) + coefficient
    return Form({c: k for c, k in terms.items() if k}, constant)


def conjunction(*literals: FormLike) -> Form:
    """A form that is 1 where every literal (a form of value 0 or 1) is 1, and at most 0 elsewhere."""
    return total(literals) - (len(literals) - 1)


def number(bits: Sequence[FormLike]) -> Form:
    """The integer whose binary digits are `bits`, least significant first."""
    return total(as_form(bit) * (1 << i) for i, bit in enumerate(bits))


def equals(bits: Sequence[FormLike], value: int) -> list[Form]:
    """Literals that all hold where the binary number `bits` is `value`."""
    return [as_form(bit) if value >> i & 1 else 1 - as_form(bit) for i, bit in enumerate(bits)]


def matches(bits: Sequence[FormLike], values: Iterable[int], *literals: FormLike) -> list[Form]:
    """For each value, the conjunction of `literals` with `equals(bits, value)`; made at once for many values.

    No channel may occur in two of the bits or literals.
    """
    shared, forms = conjunction(*literals), [as_form(bit) for bit in bits]
    entries = [(i, channel, k) for i, form in enumerate(forms) for channel, k in form.terms.items()]
    constants = [form.constant for form in forms]
    found = []
    for value in values:
        terms = dict(shared.terms)
        terms.update((channel, k if value >> i & 1 else -k) for i, channel, k in entries)
        # A bit that has to be 0 gives 1 - bit, and each literal beyond the first takes 1 away.
        given = sum(c if value >> i & 1 else 1 - c for i, c in enumerate(constants))
        found.append(Form(terms, shared.constant + given - len(forms)))
    return found


@dataclass(eq=False)
class Neuron:
    """A SwiGLU neuron: adds coefficient * max(0, gate) to each output channel."""

    gate: Form
    outputs: list[tuple[Channel, int]]
    unit: str


@dataclass(eq=False)
class Column:
    """One value column of a memory head.

    Attributes:
        value: written bit: 1 where the form is 1, 0 where it is at most 0.
        tap: the value is that of the token so many before this one (0 to 3).
        gate: the column is read only where this form is 1; None for always.
        outputs: channels that the column adds to, with coefficients.
    """

    value: Form
    outputs: list[tuple[Channel, int]]
    gate: Form | None = None
    tap: int = 0


@dataclass(eq=False)
class Head:
    """A head of recurrent memory: rows of bits, one write and one read a token; the read sees the write.

    Attributes:
        keys: for each row, a form that is 1 where the row is written (given `write`), at most 0 elsewhere.
        key_tap: the keys are those of the token so many before this one.
        queries: for each row, a form that is 1 where the row is read. Where several rows are read at once the
            columns come out as the sum over the rows; only one of those rows may hold the constant.
        write: a form that is at least 1 where this token writes, at most 0 elsewhere.
        columns: at most as many as the host's heads have beside the constants.
        constant_rows: a form that is 1 on tokens whose several keys initialise rows, with the number of rows.
        constant_where: where the written rows carry the constant (None: always).
        file: heads of one file have the same columns, and of all their rows at most one is written and at
            most one read a token; empty for a head by itself.
    """

    name: str
    unit: str
    keys: list[Form]
    queries: list[Form]
    write: Form
    columns: list[Column]
    key_tap: int = 0
    initial: tuple[Form, int] | None = None
    constant_where: Form | None = None
    rows_read: int = 1
    file: str = ""


@dataclass(eq=False)
class CounterHead:
    """A head that counts tokens.

    Attributes:
        step: 1 on tokens that add one.
        set: 1 on tokens that set the count to `value`.
        value: the number to set, 0 on other tokens.
        output: the channel that gets the count, this token included.
    """

    name: str
    unit: str
    step: Form
    set: Form
    value: Form
    output: Channel


@dataclass
class Readout:
    """The logits: each token's logit is a linear form over channels, by token id."""

    logits: dict[int, Form] = field(default_factory=dict)


class Circuit:
    """A circuit under construction: channels, the token table, neurons, heads and the readout.

    `row_tables` has the channels that the current block alone decides, where a program is baked: one value
    for each block that can be the current one. `bake` makes neurons of them. `exclusive` pairs channels of
    which at least one is always 0.
    """

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size
        self.channels: list[Channel] = []
        self.token_tables: dict[Channel, np.ndarray] = {}
        self.row_tables: dict[Channel, np.ndarray] = {}
        self.exclusive: dict[Channel, Channel] = {}
        self.neurons: list[Neuron] = []
        self.heads: list[Head | CounterHead] = []
        self.readout = Readout()
        self._names: set[str] = set()
        self._unit = ""

    def unit(self, name: str) -> None:
        """Name the functional unit that what follows belongs to, for reports."""
        self._unit = name

    @property
    def current_unit(self) -> str:
        """The functional unit that is being built."""
        return self._unit

    def channel(self, name: str, maximum: int = 1, kind: str = "neuron") -> Channel:
        """Make a channel.

        Raises:
            ValueError: the name is taken.
        """
        if name in self._names:
            raise ValueError(f"channel {name} exists")
        self._names.add(name)
        channel = Channel(name, maximum, kind)
        self.channels.append(channel)
        return channel

    def adopt(self, channels: Iterable[Channel]) -> None:
        """Take channels of another circuit, by their names.

        Raises:
            ValueError: a name is taken.
        """
        for channel in channels:
            if channel.name in self._names:
                raise ValueError(f"channel {channel.name} exists")
            self._names.add(channel.name)
            self.channels.append(channel)

    def shrink_counts(self) -> None:
        """Let the counts that memories write stand in the residual stream on the offset of a bit, 2, so that
        they are small beside the constants. No layout of the circuit may have been emitted before.
        """
        for channel in self.channels:
            if channel.kind == "memory":
                channel.shift = (max(1, channel.maximum) - 1).bit_length()

    def bus(self, name: str, width: int, maximum: int = 1, kind: str = "neuron") -> list[Channel]:
        """Make `width` channels `name.0` ... of the same bound and kind."""
        return [self.channel(f"{name}.{i}", maximum, kind) for i in range(width)]

    def token_channel(self, name: str, table: np.ndarray) -> Channel:
        """Make a channel whose value the token gives; `table` has one non-negative integer a token."""
        channel = self.channel(name, int(table.max(initial=0)), "token")
        self.token_tables[channel] = table.astype(np.int64)
        return channel

    def row_channel(self, name: str, table: np.ndarray) -> Channel:
        """Make a channel that the current block decides; `table` has one non-negative integer a block."""
        channel = self.channel(name, max(1, int(table.max(initial=0))))
        self.row_tables[channel] = table.astype(np.int64)
        return channel

    def neuron(self, gate: FormLike, *outputs: tuple[Channel, int]) -> None:
        """Add a neuron."""
        self.neurons.append(Neuron(as_form(gate), list(outputs), self._unit))

    def both(self, name: str, *literals: FormLike) -> Channel:
        """Make a channel that is the AND of literals."""
        channel = self.channel(name)
        self.add_and(channel, *literals)
        return channel

    def add_and(self, output: Channel, *literals: FormLike, coefficient: int = 1) -> None:
        """Add `coefficient` to a channel where all literals hold."""
        self.neuron(conjunction(*literals), (output, coefficient))

    def add_function(
        self,
        argument: FormLike,
        maximum: int,
        outputs: Sequence[tuple[Channel, Callable[[int], int]]],
        enable: FormLike | None = None,
    ) -> None:
        """Add functions of one integer 0 <= v <= maximum to channels, all zero where `enable` is 0.

        A function of an integer is piecewise linear: one neuron a breakpoint, its coefficient the second
        difference; the breakpoint at -1 carries the value at 0.
        """
        base = as_form(argument)
        gated = base if enable is None else base + (as_form(enable) - 1) * (maximum + 2)
        for breakpoint in range(-1, maximum):
            coefficients = [(c, _second_difference(f, breakpoint)) for c, f in outputs]
            used = [(c, k) for c, k in coefficients if k]
            if used:
                self.neuron(gated - breakpoint, *used)


def _second_difference(function: Callable[[int], int], point: int) -> int:
    def value(v: int) -> int:
        return function(v) if v >= 0 else 0

    return value(point + 1) - 2 * value(point) + value(point - 1)


def bit_of(index: int) -> Callable[[int], int]:
    """The function that gives binary digit `index` of its argument."""
    return lambda v: v >> index & 1


def at_least(threshold: int) -> Callable[[int], int]:
    """The function that is 1 from `threshold` on."""
    return lambda v: int(v >= threshold)


def exactly(value: int) -> Callable[[int], int]:
    """The function that is 1 at one value."""
    return lambda v: int(v == value)
