"""Garbage collection in a process that compiles once and ends."""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def without_collection() -> Iterator[None]:
    """Look for no cyclic garbage meanwhile, and for none when the process ends.

    Modules, syntax trees and graphs live to the end of a compilation: to search them for cycles again and
    again takes a third of its time, most of it at the interpreter's exit, and frees next to nothing.
    """
    _freeze_at_exit()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@cache
def _freeze_at_exit() -> None:
    """Take what there is at exit out of the collector's sight (`gc.freeze`)."""
    atexit.register(gc.freeze)
