"""Read the heads of a layer from its tensors: which rows a memory has, what is written and read where."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from qgpu.backends.prover.equivalence.difference import Report, amount
from qgpu.backends.prover.equivalence.form import (
    Column,
    Constant,
    Count,
    Counter,
    Head,
    Linear,
    Memory,
    Row,
    Strength,
    Terms,
    terms,
)
from qgpu.backends.prover.equivalence.lift import grouped, lifted
from qgpu.backends.prover.equivalence.recover import check_silent
from qgpu.backends.prover.equivalence.standing import Constants, Standing
from qgpu.backends.transformer.numerics import (
    AND_BIAS,
    AND_SLOPE,
    ON,
    ROW_CONSTANT_BITS,
    STEP_LOGIT,
    STEP_VALUE_BITS,
    row_constants,
)

LARGE = 2.0**20
"""Values from this size on are constants and steps; a bit's are smaller."""

NO_DECAY = -110.0
"""exp(A_log) is exactly 0 in float32 up to this."""

OFF = Linear(frozenset(), -AND_BIAS / AND_SLOPE)
"""What a conjunction's row of zeros is: neither off nor on."""

STEP = 2.0**STEP_VALUE_BITS / (1 + math.exp(-STEP_LOGIT))
"""What a step adds to the state of a counter, and the nearest whole number, by which a count is set."""
SET = float(round(STEP))

NEAR = 2.0**-8
"""How far, in parts of it, a weight that reads a counter may be from its nominal size: counts are rounded."""

MOST_STEPS = 64


@dataclass(frozen=True)
class HeadShape:
    """Sizes of a Gated DeltaNet."""

    heads: int
    key_dim: int
    head_dim: int
    dtype: str


@dataclass(frozen=True)
class Mixer:
    """The tensors of a Gated DeltaNet by their names without `.weight`."""

    tensors: dict[str, np.ndarray]
    prefix: str

    def __getitem__(self, part: str) -> np.ndarray:
        return self.tensors[part]

    def name(self, part: str) -> str:
        return f"{self.prefix}.{part}" + ("" if part in ("A_log", "dt_bias") else ".weight")


class HeadReader:
    """Reads the heads of one layer.

    Attributes:
        standing: how values stand once these heads have read.
    """

    def __init__(
        self,
        mixer: Mixer,
        shape: HeadShape,
        constants: Constants,
        standing: Standing,
        embedded: np.ndarray,
        report: Report,
    ) -> None:
        """Prepare to read.

        Args:
            standing: how values stand before.
            embedded: what most tokens have in each channel.
            report: takes what is no head's.
        """
        self.mixer, self.shape, self.constants, self.report = mixer, shape, constants, report
        self.standing = standing.copy()
        self._read_into(embedded)
        qkv = mixer["in_proj_qkv"]
        count = shape.heads * shape.key_dim
        self._bits = lifted(qkv, constants, standing, AND_SLOPE, AND_BIAS)
        self._numbers = lifted(qkv[2 * count :], constants, standing)
        self._gates = lifted(mixer["in_proj_z"], constants, standing, AND_SLOPE, AND_BIAS)
        self._strengths = lifted(mixer["in_proj_b"], constants, standing)
        self._taps = _taps(mixer["conv1d"][:, 0, :]).tolist()
        self._outputs = self._out_columns()
        self._large = {column for column, form in self._numbers.items() if _size(form) >= LARGE}

    def read(self) -> dict[int, Head]:
        """The heads by number; those that have nothing are left out."""
        self._check_unused()
        found = {}
        for index in range(self.shape.heads):
            if (head := self._head(index)) is not None:
                found[index] = head
        return found

    def _read_into(self, embedded: np.ndarray) -> None:
        for place in np.flatnonzero(self.mixer["out_proj"].any(axis=1)).tolist():
            self.standing.read_into(place, float(embedded[place]))

    def _out_columns(self) -> dict[int, Terms]:
        """For each column of all heads what a written bit adds, with an open gate, beside the constant."""
        columns, places = np.nonzero(self.mixer["out_proj"].T)
        shift = ROW_CONSTANT_BITS - row_constants(self.shape.head_dim)[1]
        gain = 2.0**shift / (ON * ON)
        return grouped(columns, places, self.mixer["out_proj"][places, columns] / gain)

    def _head(self, index: int) -> Head | None:
        rows = tuple(row for _, row in self.rows(index))
        columns = range(index * self.shape.head_dim, (index + 1) * self.shape.head_dim)
        constants = tuple(self._constant(j) for j in columns if self._is_constant(j))
        used = [j for j in columns if self._is_used(j) and not self._is_constant(j)]
        raw = self._strengths.get(index)
        if not (rows or constants or used or raw):
            return None
        strength = raw or Linear(frozenset(), 0)
        if any(j in self._large for j in used):
            counts = tuple(self._count(j) for j in used)
            return Counter(_counter_strength(strength), rows, counts, constants)
        write = _scaled(strength, AND_SLOPE, AND_BIAS)
        return Memory(write, rows, tuple(self._column(j) for j in used), constants)

    def rows(self, index: int) -> list[tuple[int, Row]]:
        """The rows of a head that have a key or a query, by number."""
        size, keys = self.shape.key_dim, self.shape.heads * self.shape.key_dim
        found = []
        for number in range(index * size, (index + 1) * size):
            key, query = self._bits.get(keys + number), self._bits.get(number)
            if key or query:
                taps = self._taps[keys + number], self._taps[number]
                found.append((number - index * size, Row(key or OFF, taps[0], query or OFF, taps[1])))
        return found

    def columns(self, index: int) -> tuple[list[int], list[int]]:
        """The columns of a head that are read, and those that hold the constant, by number."""
        size = self.shape.head_dim
        numbers = range(index * size, (index + 1) * size)
        read = [j - index * size for j in numbers if self._is_used(j) and not self._is_constant(j)]
        return read, [j - index * size for j in numbers if self._is_constant(j)]

    def _value_row(self, column: int) -> int:
        return 2 * self.shape.heads * self.shape.key_dim + column

    def _is_used(self, column: int) -> bool:
        return column in self._numbers or column in self._gates or column in self._outputs

    def _is_constant(self, column: int) -> bool:
        return column in self._large and column not in self._gates and column not in self._outputs

    def _constant(self, column: int) -> Constant:
        value = _scaled(self._numbers[column], 2.0**ROW_CONSTANT_BITS, 0.0)
        return Constant(value, self._taps[self._value_row(column)])

    def _column(self, column: int) -> Column:
        row = self._value_row(column)
        gate = self._gates.get(column, OFF)
        return Column(self._bits.get(row, OFF), self._taps[row], gate, self._outputs.get(column, frozenset()))

    def _count(self, column: int) -> Count:
        step, value = _split(
            self._numbers.get(column, Linear(frozenset(), 0)), 2.0**STEP_VALUE_BITS, SET, None
        )
        outputs = []
        for place, weight in self._outputs.get(column, frozenset()):
            self.standing.counted_into(place, self.shape.dtype)
            outputs.append((place, _near(weight * STEP / ON / self.standing.unit[place])))
        tap = self._taps[self._value_row(column)]
        return Count(step, value, tap, self._gates.get(column, OFF), terms(outputs))

    def _check_unused(self) -> None:
        """Report what heads of rows of bits have no use for."""
        mixer, report = self.mixer, self.report
        for part in ("in_proj_qkv", "in_proj_z", "in_proj_b"):
            check_silent(mixer[part], mixer.name(part), self.constants, report)
        for row, column in np.argwhere(mixer["in_proj_a"]):
            report(mixer.name("in_proj_a"), int(row), int(column), "a decay that depends on a channel")
        for row in np.flatnonzero(mixer["dt_bias"]):
            report(mixer.name("dt_bias"), int(row), None, "the bias of a decay")
        for row in np.flatnonzero(mixer["A_log"] > NO_DECAY):
            report(mixer.name("A_log"), int(row), None, "exp(A_log) is not 0: the state fades")
        for column in np.flatnonzero(mixer["norm"] != 1):
            factor = amount(float(mixer["norm"][column]))
            report(mixer.name("norm"), int(column), None, f"the column is multiplied by {factor}, not by 1")
        used = np.any(mixer["in_proj_qkv"], axis=1)
        for row, tap in enumerate(self._taps):
            if tap < 0 and (used[row] or mixer["conv1d"][row].any()):
                report(mixer.name("conv1d"), row, None, "the convolution is not a single tap of 1")


def _taps(conv: np.ndarray) -> np.ndarray:
    """How many tokens back each row of a convolution looks; -1 where it is not a single tap of 1."""
    single = ((conv != 0).sum(axis=1) == 1) & (conv.sum(axis=1) == 1)
    return np.where(single, conv.shape[1] - 1 - np.argmax(conv != 0, axis=1), -1)


def _size(form: Linear) -> float:
    return max([abs(form.constant), *(abs(k) for _, k in form.terms)])


def _scaled(form: Linear, slope: float, bias: float) -> Linear:
    return Linear(frozenset((p, k / slope) for p, k in form.terms), (form.constant - bias) / slope)


def _counter_strength(strength: Linear) -> Strength:
    """What sets, at AND_SLOPE, and what adds a step: it lifts the logit from AND_BIAS to STEP_LOGIT."""
    shifted = Linear(strength.terms, strength.constant - AND_BIAS)
    return Strength(*_split(shifted, AND_SLOPE, STEP_LOGIT - AND_BIAS, MOST_STEPS))


def _split(form: Linear, large: float, small: float, most: int | None) -> tuple[Linear, Linear]:
    """Two forms f and g such that a form is large * f + small * g."""
    parts = {place: _parts(k, large, small, most) for place, k in form.terms}
    constants = _parts(form.constant, large, small, most)
    first, second = (_form(((p, k[n]) for p, k in parts.items()), constants[n]) for n in (0, 1))
    return first, second


def _form(pairs: Iterable[tuple[int, float]], constant: float) -> Linear:
    return Linear(terms(pairs), constant)


def _parts(number: float, large: float, small: float, most: int | None) -> tuple[float, float]:
    """m and n such that a number is large * m + small * n; n is at most `most`, or as small as m is near."""
    if most is None:
        whole = round(number / large)
        return float(whole), (number - large * whole) / small
    for count in sorted(range(-most, most + 1), key=abs):
        rest = (number - small * count) / large
        if rest == round(rest):
            return rest, float(count)
    return number / large, 0.0


def _near(number: float) -> float:
    """The whole number that a number is near to, or the number."""
    whole = round(number)
    return float(whole) if abs(number - whole) <= NEAR * abs(whole) else number
