"""Virtual registers: the places of values before register allocation gives them numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["thread", "uniform", "predicate"]


@dataclass(eq=False)
class Register:
    """A register of one kind; two are the same only if they are one object.

    Attributes:
        kind: `thread` (a word a thread), `uniform` (a word a thread block), `predicate` (a bit a thread).
        name: what it holds, for reports.
        pinned: its value lives from before the launch to its end, so that it shares its number with no other.
        preload: the name of the value that the host writes into it (see `Preload`), or nothing.
        partner: the register of the other word, if this is one of a 64-bit parameter's two.
    """

    kind: Kind
    name: str
    pinned: bool = False
    preload: str = ""
    partner: Register | None = None

    def __repr__(self) -> str:
        return f"{self.kind[0]}:{self.name}"


@dataclass(frozen=True)
class GuardLiteral:
    """A member of a guard: lanes take part where the predicate has this value."""

    register: Register
    polarity: bool

    def __invert__(self) -> GuardLiteral:
        return GuardLiteral(self.register, not self.polarity)


Guard = tuple[GuardLiteral, ...]
