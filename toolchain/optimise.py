"""Which passes run, who watches them, and inputs of several parts: what `opt` and `mlir-opt` are to LLVM."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qgpu.toolchain.diagnostics import Source

if TYPE_CHECKING:
    from qgpu.ir.passes import Observer, Pass, TimePasses

SPLIT_MARK = "// -----"
_SPLIT = re.compile(r"^(?://|;) -----\s*$")


@dataclass(frozen=True)
class PassChoice:
    """What the command line says about passes.

    `pipeline` is the text of `--passes`; `stop_after` is `PASS` or `PASS,N`, N counting
    the runs of that pass from 1.
    """

    pipeline: str | None = None
    stop_after: str | None = None
    print_after: tuple[str, ...] = ()
    print_after_all: bool = False
    print_changed: bool = False
    dump_folder: str | None = None

    @property
    def explicit(self) -> bool:
        """Whether passes were chosen, so that the result is the IR after them."""
        return self.pipeline is not None or self.stop_after is not None

    def steps(self, default: "list[Pass]") -> "list[Pass]":
        """The passes to run, of `default` where the command line names none.

        Raises:
            click.UsageError: a pass or an option does not exist, or the text has another form.
        """
        steps = default if self.pipeline is None else _parsed(self.pipeline)
        for name in self.print_after:
            _check_name(name, steps)
        return steps if self.stop_after is None else _cut(steps, self.stop_after)

    def observers(self, timer: "TimePasses | None") -> "list[Observer]":
        """Those who watch the passes; `timer` is one of them where it is given."""
        wanted = (self.print_after_all, self.print_after, self.print_changed, self.dump_folder)
        if not any(wanted):
            return [] if timer is None else [timer]
        from qgpu.ir.passes import DumpFiles, PrintAfter, PrintChanged

        found: list[Observer] = []
        if self.print_after_all or self.print_after:
            found.append(PrintAfter(None if self.print_after_all else self.print_after))
        if self.print_changed:
            found.append(PrintChanged())
        if self.dump_folder is not None:
            found.append(DumpFiles(Path(self.dump_folder)))
        return found if timer is None else [*found, timer]


def _parsed(pipeline: str) -> "list[Pass]":
    from qgpu.ir.passes import PASSES, PipelineError, parse_pipeline

    try:
        return parse_pipeline(pipeline, PASSES)
    except PipelineError as error:
        raise click.UsageError(f"--passes, column {error.column}: {error}.") from None


def _check_name(name: str, steps: "Sequence[Pass]") -> None:
    known = list(dict.fromkeys(step.name for step in steps))
    if name not in known:
        raise click.UsageError(f"No pass '{name}' runs. There are: {', '.join(known)}.")


def _cut(steps: "list[Pass]", stop_after: str) -> "list[Pass]":
    """The pipeline up to the N-th run of a pass."""
    name, comma, count = stop_after.partition(",")
    if comma and not (count.isdecimal() and int(count)):
        raise click.UsageError(f"--stop-after takes PASS or PASS,N with N from 1, not '{stop_after}'.")
    _check_name(name, steps)
    runs = [index for index, step in enumerate(steps) if step.name == name]
    wanted = int(count or 1)
    if wanted > len(runs):
        raise click.UsageError(f"'{name}' runs {len(runs)} times, not {wanted}.")
    return steps[: runs[wanted - 1] + 1]


def timing_table(timer: "TimePasses") -> str:
    """The table of `--time-passes`, slowest pass first."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Pass execution timing", caption="without verification between the passes")
    for heading in ("pass", "runs", "ms", "share"):
        table.add_column(heading, justify="left" if heading == "pass" else "right")
    total = sum(timer.seconds.values())
    for name, seconds in sorted(timer.seconds.items(), key=lambda item: -item[1]):
        share = seconds / total if total else 0.0
        table.add_row(name, str(timer.runs[name]), f"{1000 * seconds:.1f}", f"{share:.0%}")
    table.add_row("total", "", f"{1000 * total:.1f}", "")
    console = Console(width=80, no_color=True)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def split_source(source: Source) -> list[Source]:
    """The parts of a text between lines of `// -----` (or `; -----`), each with its lines where they were."""
    parts: list[list[str]] = [[]]
    for number, line in enumerate(source.text.split("\n")):
        if _SPLIT.match(line):
            parts.append([""] * (number + 1))
        else:
            parts[-1].append(line)
    return [Source(source.name, "\n".join(lines)) for lines in parts]
