"""docs/llvm.md: every row has an example that the tests run, and the errors are those that the cases get."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from qgpu.toolchain.llvm import bulk_rules, intrinsic_rules, nvvm_rules
from test_llvm_refusals import CASES

HERE = Path(__file__).parent
TEXT = (HERE.parent / "docs" / "llvm.md").read_text(encoding="utf-8")


def rows(title: str) -> Iterator[list[str]]:
    """The rows of the table below a title, without its head."""
    section = TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.split("\n") if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_every_row_has_an_example() -> None:
    found = list(rows("What runs"))
    assert len(found) > 20
    for what, _, example in found:
        assert (HERE / example.strip("`")).is_file(), what


def test_every_file_has_a_row() -> None:
    named = {example.strip("`") for _, _, example in rows("What runs")}
    assert {f"files/{file.name}" for file in (HERE / "files").glob("llvm_*.ll")} <= named


def test_errors_are_those_of_the_cases() -> None:
    found = list(rows("What does not run, and what the error says"))
    assert len(found) >= 20
    for _, error, case in found:
        (message,) = re.findall(r"`(.*)`", error)
        assert message == CASES[case].message


def test_intrinsics_are_those_of_the_tables() -> None:
    patterns = [name for _, names in rows("Intrinsics") for name in re.findall(r"`([^`]*)`", names)]
    known = [
        *(f"llvm.nvvm.{name}" for name in nvvm_rules.RULES),
        *(f"llvm.{name}" for name in (*intrinsic_rules.RULES, *bulk_rules.RULES)),
    ]
    assert [name for name in known if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    assert [pattern for pattern in patterns if not any(fnmatch(name, pattern) for name in known)] == []
