"""Progress of a launch on a terminal's stderr."""

from __future__ import annotations

import sys
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
