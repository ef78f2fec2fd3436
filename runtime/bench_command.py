"""`qgpu bench`: measurements."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import click

from qgpu.toolchain.diagnostics import reporting

if TYPE_CHECKING:
    from qgpu.runtime.bench.interpreters import Comparison


@click.command("bench")
@click.option(
    "--interpreters", is_flag=True, help="The IR interpreter beside numba's CUDA simulator (extra: bench)."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def bench_command(interpreters: bool, as_json: bool) -> None:
    """Measure how fast things are here, side by side with something known."""
    if not interpreters:
        raise click.UsageError("say what to measure: --interpreters.")
    from qgpu.runtime.bench.interpreters import compare_interpreters

    with reporting("qgpu"):
        comparisons = compare_interpreters()
    if as_json:
        rows = [dataclasses.asdict(row) | {"ratio": row.ratio} for row in comparisons]
        click.echo(json.dumps({"interpreters": rows}))
    else:
        _print(comparisons)


def _print(comparisons: list[Comparison]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("launch", title="Interpreters, median time of a launch")
    for column in ("IR interpreter", "numba's CUDA simulator", "times as fast"):
        table.add_column(column, justify="right")
    for row in comparisons:
        milliseconds = (f"{1000 * seconds:,.1f} ms" for seconds in (row.interpreter, row.simulator))
        table.add_row(row.workload, *milliseconds, f"{row.ratio:,.0f}")
    Console().print(table)
