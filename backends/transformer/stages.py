"""Stages of long work, told to whoever shows them."""

from __future__ import annotations

from collections.abc import Callable

Tell = Callable[[str], object]
"""Takes what begins now, as a noun phrase."""


def untold(_stage: str) -> None:
    """Tell nobody."""
