"""Tables of measurements: on a terminal, in Markdown, and as plain data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


WIDTH = 115
"""Columns of text in a document."""


@dataclass(frozen=True)
class Table:
    """Rows of texts under columns; the first column names the row, the others are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def markdown(self) -> str:
        """The table in Markdown, without its title."""
        rule = ("---", *("---:" for _ in self.columns[1:]))
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (self.columns, rule, *self.rows))


@dataclass(frozen=True)
class Section:
    """One kind of measurement.

    Attributes:
        key: its name in JSON.
        heading: its heading in a document.
        text: what was measured, and how.
        tables: what came out.
        data: the same as plain data.
        findings: what it comes to, a line each.
    """

    key: str
    heading: str
    text: str
    tables: list[Table]
    data: Any
    findings: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """The section's text and tables in Markdown, without its heading."""
        findings = "\n".join(f"- {finding}" for finding in self.findings)
        body = [textwrap.fill(self.text, WIDTH), *([findings] if findings else [])]
        body += [f"{table.title}:\n\n{table.markdown()}" for table in self.tables]
        return "\n\n".join(body)

    def print(self, console: Console) -> None:
        """Print the tables and findings."""
        from rich.table import Table as Printed

        for table in self.tables:
            printed = Printed(table.columns[0], title=table.title, title_justify="left")
            for column in table.columns[1:]:
                printed.add_column(column, justify="right")
            for row in table.rows:
                printed.add_row(*row)
            console.print(printed)
        for finding in self.findings:
            console.print(finding, markup=False, highlight=False)


def transposed(title: str, corner: str, rows: Iterable[str], columns: Sequence[str], cells: Any) -> Table:
    """A table of `cells(row, column)` for every row and column."""
    return Table(
        title, (corner, *columns), [(row, *(cells(row, column) for column in columns)) for row in rows]
    )


def count(number: float | None) -> str:
    """A number without decimals, with commas; `-` for None."""
    return "-" if number is None else f"{number:,.0f}"


def rate(number: float | None) -> str:
    """A number of three significant digits at least."""
    if number is None:
        return "-"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def megabytes(number: float | None) -> str:
    """Bytes in MB (10^6)."""
    return "-" if number is None else f"{number / 1e6:,.1f} MB"
