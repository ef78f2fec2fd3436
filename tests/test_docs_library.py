"""docs/library.md: its tables are the library's own, and its sizes the largest that fit."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.machine.host import LaunchError, build_launch
from qgpu.runtime.expressions import Launcher, evaluate
from qgpu.runtime.expressions.functions import ALIASES, FUNCTIONS, OPERATORS
from qgpu.runtime.expressions.launcher import compiled
from qgpu.runtime.library import ROUTINES
from qgpu.runtime.library.plans import Array
from qgpu.runtime.library.table import Routine
from qgpu.runtime.vector import run_vector

TEXT = (Path(__file__).parent.parent / "docs" / "library.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^    > (.*)\n((?:    (?!>).*\n)*)", re.MULTILINE)


def rows(heading: str) -> list[list[str]]:
    """The cells of a section's table."""
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[1:]]


def cells(routine: Routine) -> list[str]:
    """A routine's row without its size."""
    takes = ", ".join(kind.replace("|", " or ") for kind in routine.takes)
    summary = routine.summary.removesuffix(".").replace("|", "\\|").replace("*", "\\*")
    gives = routine.gives.replace("|", " or ")
    return [f"`{routine.name}`", f"{takes} → {gives}", summary, "; ".join(routine.refuses)]


def sized(routine: Routine, size: int) -> list[Array]:
    """Operands of a size: vectors of so many elements, square matrices of so many rows."""
    number = size if routine.name in ("histogram", "iota") else 1
    made = {"matrix": np.ones((size, size), np.int32), "number": np.array(number, np.int32)}
    kinds = ["vector" if "vector" in kind else kind for kind in routine.takes]
    return [made.get(kind, np.ones(size, np.int32)) for kind in kinds]


def fits(routine: Routine, size: int) -> bool:
    kernel = compiled(routine, DEFAULT, True)
    plan = routine.plan(sized(routine, size), kernel.warp_stride * DEFAULT.lanes)
    arguments = [one.tobytes() if isinstance(one, np.ndarray) else one for one in plan.arguments]
    try:
        build_launch(DEFAULT, kernel, plan.grid, plan.block, arguments)
    except LaunchError:
        return False
    return True


def test_every_routine_has_its_row() -> None:
    assert [row[:-1] for row in rows("Routines")] == [cells(routine) for routine in ROUTINES.values()]


@pytest.mark.parametrize("row", rows("Routines"), ids=lambda row: row[0])
def test_sizes_are_the_largest(row: list[str]) -> None:
    routine, size = ROUTINES[row[0].strip("`")], int(row[-1].replace(",", ""))
    assert fits(routine, size) and not fits(routine, size + 1)


def test_every_function_and_operator_has_its_row() -> None:
    told = {name: row for row in rows("Functions and operators") for name in re.findall(r"`([^`]+)`", row[0])}
    told["|"] = told.pop("\\|")
    assert set(told) == {*FUNCTIONS, *OPERATORS}
    for name, meanings in (FUNCTIONS | OPERATORS).items():
        assert set(re.findall(r"`(\w+)`", told[name][1])) == {one.routine for one in meanings} | (
            {"subtract"} if name == "range" else set()
        ), name
    for alias in ALIASES:
        assert f"`{alias}`" in TEXT


def test_examples() -> None:
    examples = EXAMPLE.findall(TEXT)
    assert len(examples) >= 5
    for expression, wanted in examples:
        found = evaluate(expression, Launcher(DEFAULT, run_vector)).value.tolist()
        assert str(found) == wanted.strip(), expression
