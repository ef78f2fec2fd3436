"""The table: cases by executors, for people, as a document's section, and as plain data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import Any

from qgpu.runtime.bench.report import Section, Table
from qgpu.runtime.conformance.case import Case
from qgpu.runtime.conformance.executors import FAIL, NOT_RUN, PASS, STATES, Cell, Executor, run_case
from qgpu.runtime.conformance.hardware import COLUMN, Run, hardware_cell
from qgpu.toolchain.diagnostics import failure

Cells = Mapping[str, Cell]
"""The cells of a case by column."""

HEAD = """\
# Conformance

What each kernel of this project leaves in memory, on every executor, held to the bit against an oracle that
is written from the definition of what is computed. Each section is written by the command that it names.

- **pass**: every launch leaves what the oracle says; `2 of 3` where the others do not fit the machine, or are
  longer than the executor is given.
- **fail**: a launch leaves something else, or stops with a fault.
- **refused**: the compiler does not take the kernel. **does not fit**: the machine has no room for it.
- **not run**: the executor is too slow for it; in the column `hardware`, no values of a GPU are stored.

`ir` interprets the kernel before any pass; `vector` and `reference` run the machine code of the machine
`large`; `engine` runs the checkpoint of the machine `default` and `engine-seed` that of `seed`, both without
torch; `verify` has the stock model check the reference's tokens, and `weights` has it generate them. The
tokens of all four, and what READ gives back, are compared with the reference's one by one as well.
`hardware` is real CUDA: `python examples/run_on_gpu.py` runs the same launches where there is a GPU, and
keeps the values in `examples/hardware.json`.
"""

TITLES = {
    "examples": "Kernels of examples/",
    "kernels": "Kernels of examples/kernels/",
    "instructions": "PTX instructions",
}
_COUNTED = re.compile(r"\b\d[\d,]*\b")
_QUOTED = re.compile(r"'[^']*'")


def chosen_cases(cases: Iterable[Case], names: Sequence[str]) -> list[Case]:
    """The cases that have one of some names (of a group, row, kernel, or their own); all if there is none.

    Raises:
        DiagnosticError: a name is no case's.
    """
    known = list(cases)
    if not names:
        return known
    for name in names:
        if not any(name in _names(case) for case in known):
            raise failure(
                f"no kernel or instruction '{name}'",
                "the rows of docs/conformance.md are the names there are",
            )
    return [case for case in known if _names(case) & set(names)]


def _names(case: Case) -> set[str]:
    own = {case.group, case.row, case.name, case.id}
    return own if case.language == "ptx" else own | {case.kernel}


def conform(
    cases: Sequence[Case],
    executors: Sequence[Executor],
    runs: Sequence[Run],
    jobs: int = 1,
    done: Callable[[Case], object] = lambda case: None,
) -> dict[str, Cells]:
    """The cells of all cases, by `Case.id`, in `jobs` processes; `done` hears of each case."""
    task = partial(run_case, executors=executors)
    if jobs == 1:
        return _collect(cases, map(task, cases), runs, done)
    with ProcessPoolExecutor(jobs) as pool:
        return _collect(cases, pool.map(task, cases), runs, done)


def _collect(
    cases: Sequence[Case],
    results: Iterable[dict[str, Cell]],
    runs: Sequence[Run],
    done: Callable[[Case], object],
) -> dict[str, Cells]:
    found: dict[str, Cells] = {}
    for case, cells in zip(cases, results, strict=True):
        found[case.id] = {**cells, COLUMN: hardware_cell(case, runs)}
        done(case)
    return found


def section(group: str, cases: Sequence[Case], cells: Mapping[str, Cells], runs: Sequence[Run]) -> Section:
    """The section of a group: its sums, its rows, and the reasons for what does not pass."""
    own = [case for case in cases if case.group == group]
    columns = list(cells[own[0].id])
    reasons = _Reasons()
    rows: list[tuple[str, ...]] = []
    for row in dict.fromkeys(case.row for case in own):
        of_row = [case for case in own if case.row == row]
        label = row if group != "instructions" else f"{row} ({len(of_row)})"
        texts = (_row_text([cells[case.id][name] for case in of_row], reasons, name) for name in columns)
        rows.append((label, *texts))
    sums = [
        (state, *(str(sum(cells[case.id][name].state == state for case in own)) for name in columns))
        for state in STATES
    ]
    launches = sum(len(case.launches) for case in own)
    what = "instructions" if group == "instructions" else "kernels"
    text = f"{len(own):,} cases of {what}, {launches:,} launches. "
    text += f"Hardware: {'; '.join(map(str, runs)) or 'no GPU has been run yet'}."
    tables = [
        Table(f"{TITLES[group]}: cases", ("state", *columns), sums),
        Table(TITLES[group], ("kernel" if what == "kernels" else "opcode (cases)", *columns), rows),
    ]
    if reasons.numbers:
        texts = [(str(number), reason) for reason, number in reasons.numbers.items()]
        tables.append(Table("Reasons, with N for numbers", ("number", "reason"), texts))
    data = {case.id: {name: asdict(cell) for name, cell in cells[case.id].items()} for case in own}
    return Section(group, TITLES[group], text, tables, data, _failures(own, cells))


class _Reasons:
    """Numbers for reasons, without the names and numbers in them."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def mark(self, why: str) -> str:
        """The number of a reason in brackets; nothing for none."""
        if not why:
            return ""
        plain = _COUNTED.sub("N", _QUOTED.sub("'...'", why)).replace("|", "\\|")
        return f" [{self.numbers.setdefault(plain, len(self.numbers) + 1)}]"


def _row_text(cells: Sequence[Cell], reasons: _Reasons, column: str) -> str:
    """What a row's cases came to: of one its state, of several how many have each."""
    if all(cell.state == NOT_RUN for cell in cells) and len({cell.why for cell in cells}) == 1:
        return NOT_RUN + ("" if column == COLUMN else reasons.mark(cells[0].why))
    if len(cells) == 1:
        (cell,) = cells
        part = (
            f" {cell.passed} of {cell.launches}" if cell.state == PASS and cell.passed < cell.launches else ""
        )
        return cell.state + part + reasons.mark(cell.why)
    texts: list[str] = []
    for state in STATES:
        those = [cell for cell in cells if cell.state == state]
        if those:
            marks = dict.fromkeys(reasons.mark(cell.why) for cell in those if cell.why and state != PASS)
            texts.append(f"{state} {len(those)}{''.join(marks)}{_share(those) if state == PASS else ''}")
    return ", ".join(texts)


def _share(cells: Sequence[Cell]) -> str:
    """How many launches have passed, where it is not all."""
    passed, launches = sum(cell.passed for cell in cells), sum(cell.launches for cell in cells)
    return "" if passed == launches else f" ({passed} of {launches} launches)"


def _failures(cases: Sequence[Case], cells: Mapping[str, Cells]) -> list[str]:
    """A line for each cell that fails."""
    return [
        f"{case.id} fails on {name}: {cell.why}"
        for case in cases
        for name, cell in cells[case.id].items()
        if cell.state == FAIL
    ]


def plain_data(sections: Sequence[Section], runs: Sequence[Run]) -> dict[str, Any]:
    """Every cell, by case and column, and the hardware that the values are of."""
    cells = {name: found for one in sections for name, found in one.data.items()}
    return {"hardware": [str(run) for run in runs], "cases": cells}
