"""What came of changes, as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from changes.weights import LIVE, Change


@dataclass(frozen=True)
class Result:
    """What came of a change.

    Attributes:
        wrong: the sequence and number of the first wrong token, None if all are right.
        error: why the engine stopped, empty if it did not.
        differences: the first differences from the circuit.
        unproved: the first rows that are not proved any more; None where no proof was tried.
    """

    change: Change
    wrong: tuple[str, int] | None
    error: str
    differences: list[str]
    unproved: list[str] | None = None

    @property
    def shows(self) -> bool:
        """Whether a token is not the reference's, or none came."""
        return self.wrong is not None or bool(self.error)

    @property
    def found(self) -> bool:
        """Whether the proof or the comparison finds it."""
        return bool(self.differences or self.unproved)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: dict[str, Any]) -> Result:
        """The result that `to_json` gave."""
        change = content["change"]
        wrong = content["wrong"]
        return Result(
            Change(**{**change, "place": tuple(change["place"])}),
            None if wrong is None else tuple(wrong),
            content["error"],
            content["differences"],
            content["unproved"],
        )


def print_report(console: Console, results: list[Result]) -> None:
    """Print tables by group, by kind and by tensor, and the survivors."""
    live = [result for result in results if result.change.group == LIVE]
    console.print(_table("All changes", "weights", results, lambda r: r.change.group))
    console.print(_table("Changes of live weights by kind", "kind", live, lambda r: r.change.kind))
    console.print(_table("Changes of live weights by tensor", "tensor", live, lambda r: _tensor(r.change)))
    for title, missed in (
        ("Show in a token, and neither is unproved nor differs from the circuit", _survivors(live)),
        ("Show in a token, and are proved", [r for r in live if r.shows and r.unproved == []]),
    ):
        console.print(f"\n{title}: {len(missed)}", style="bold")
        for result in missed:
            console.print(f"  {result.change}: token {result.wrong or result.error}", markup=False)


def _survivors(results: Iterable[Result]) -> list[Result]:
    return [result for result in results if result.shows and not result.found]


def _tensor(change: Change) -> str:
    """The name of a tensor without its layer."""
    return change.tensor.removesuffix(".weight").rsplit(".", 1)[-1]


def _table(title: str, head: str, results: list[Result], key: Callable[[Result], str]) -> Table:
    columns = (head, "changes", "differ", "show", "of which differ", "proof tried", "of which unproved")
    table = Table(*columns, title=title)
    for name in sorted({key(result) for result in results}):
        table.add_row(name, *_counts([result for result in results if key(result) == name]))
    table.add_row("all", *_counts(results), style="bold")
    return table


def _counts(results: list[Result]) -> tuple[str, ...]:
    shown = [result for result in results if result.shows]
    tried = [result for result in shown if result.unproved is not None]
    return (
        str(len(results)),
        _share(sum(bool(result.differences) for result in results), len(results)),
        str(len(shown)),
        _share(sum(bool(result.differences) for result in shown), len(shown)),
        str(len(tried)),
        _share(sum(bool(result.unproved) for result in tried), len(tried)),
    )


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f}%)" if whole else "0"
