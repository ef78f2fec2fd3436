"""What can watch a pipeline: dumps of the IR, to a stream or to files, and the time that passes take."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from qgpu.ir.core.printer import print_function
from qgpu.ir.passes.manager import PassRun


def print_to_stderr(text: str) -> None:
    sys.stderr.write(text)


@dataclass(frozen=True)
class PrintAfter:
    """Prints the function after the passes called `names`, or after all where that is None."""

    names: Collection[str] | None = None
    on_print: Callable[[str], None] = print_to_stderr

    def __call__(self, run: PassRun) -> None:
        if run.number and (self.names is None or run.name in self.names):
            self.on_print(f"*** IR Dump After {run.name} ***\n{print_function(run.function)}")


@dataclass(frozen=True)
class PrintChanged:
    """Prints the function as it comes in, and after each pass that changed its text; names the others."""

    on_print: Callable[[str], None] = print_to_stderr
    before: dict[str, str] = field(default_factory=dict)

    def __call__(self, run: PassRun) -> None:
        name, text = run.function.name, print_function(run.function)
        changed = self.before.get(name) != text
        self.before[name] = text
        title = f"After {run.name}" if run.number else "At Start"
        self.on_print(
            f"*** IR Dump {title} ***\n{text}"
            if changed
            else f"*** IR Dump {title} on {name} omitted because no change ***\n"
        )


@dataclass(frozen=True)
class DumpFiles:
    """Writes the function after each pass to `FOLDER/KERNEL/NN-PASS.ir`; 00 is the function as it came in.

    Raises OSError where a file cannot be written.
    """

    folder: Path

    def __call__(self, run: PassRun) -> None:
        folder = self.folder / run.function.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{run.number:02}-{run.name}.ir").write_text(print_function(run.function))


@dataclass(frozen=True)
class TimePasses:
    """Adds up the seconds that each pass takes, and how often it runs."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    runs: Counter[str] = field(default_factory=Counter)

    def __call__(self, run: PassRun) -> None:
        if run.number:
            self.seconds[run.name] += run.seconds
            self.runs[run.name] += 1
