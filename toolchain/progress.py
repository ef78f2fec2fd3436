"""What long work is at, on a terminal's stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stages(what: str) -> Iterator[Callable[[str], object]]:
    """Show what is made, the stage that it is in and how long it has taken, while the body runs.

    The body gets what it is to call with each stage as it begins. Nothing is shown where no one looks, and
    nothing is left of it at the end.
    """
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4) as bars:
        task = bars.add_task(what, total=None)
        yield lambda stage: bars.update(task, description=f"{what}: {stage}", refresh=True)
