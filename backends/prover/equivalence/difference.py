"""What differs, and where in the tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """A place where the tensors are not the circuit that was meant.

    Attributes:
        tensor: its name, or "config.json".
        row, column: None for all of it.
        unit: the functional unit of the circuit; empty where the tensors have something that no unit has.
        reason: what is there, and what should be, by the names of channels.
    """

    tensor: str
    row: int | None
    column: int | None
    unit: str
    reason: str

    def __str__(self) -> str:
        row = "" if self.row is None else f" row {self.row}"
        column = "" if self.column is None else f" column {self.column}"
        unit = f" ({self.unit})" if self.unit else ""
        return f"{self.tensor}{row}{column}{unit}: {self.reason}"


Report = Callable[[str, int | None, int | None, str], None]
"""Takes tensor, row, column and reason of what belongs to no circuit."""


def amount(value: float) -> str:
    """A number of a circuit as text."""
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:g}"
