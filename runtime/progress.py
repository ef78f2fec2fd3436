"""Progress on a terminal's stderr."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qgpu.backends.machine.follow import Step
from qgpu.runtime.launch import Watch


@contextmanager
def progress(prompt_tokens: int, step: Callable[[Step], None] | None = None) -> Iterator[Watch]:
    """Show the prompt's progress and the generated tokens while the body runs; nothing where no one looks."""
    if not sys.stderr.isatty() or step is not None:
        yield Watch(step=step)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} tokens"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        prompt = bars.add_task("prompt", total=prompt_tokens)
        generated = bars.add_task("launch", total=None)
        yield Watch(
            prompt=lambda count: bars.advance(prompt, count),
            generated=lambda count: bars.advance(generated, count),
        )


SOON = 2.0
"""Seconds after which a terminal is told what takes so long."""


@contextmanager
def explained(reason: str) -> Iterator[None]:
    """Say why it takes so long, on a terminal's stderr, where the body takes longer than a moment."""
    if not sys.stderr.isatty():
        yield
        return
    timer = threading.Timer(SOON, lambda: print(f"qgpu: note: {reason}", file=sys.stderr))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
