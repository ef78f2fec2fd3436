"""File tests of passes: `tests/ir/PASS/case.ir` holds a kernel and what the pass makes of it.

A line `; OPTIONS name=value ...` sets the pass's options. The line `; EXPECT` parts input and output.
`python tests/ir_files.py [FILE...]` writes the outputs anew; read the difference before you keep it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from qgpu.ir import parse_function, print_function, verify
from qgpu.ir.passes import PASSES, Pass, parse_pipeline

HERE = Path(__file__).parent / "ir"
MARK = "; EXPECT"


@dataclass(frozen=True)
class Case:
    """A file test: `head` is everything before the mark, `expected` what comes after it."""

    path: Path
    step: Pass
    head: str
    expected: str


def case_files() -> list[Path]:
    return sorted(HERE.glob("*/*.ir"))


def read_case(path: Path) -> Case:
    head, _, expected = path.read_text().partition(f"{MARK}\n")
    words = [
        word
        for line in head.splitlines()
        if line.startswith("; OPTIONS ")
        for word in line.removeprefix("; OPTIONS ").split()
    ]
    (step,) = parse_pipeline(f"{path.parent.name}{{{','.join(words)}}}", PASSES)
    return Case(path, step, head, expected)


def run_case(case: Case) -> str:
    """The output of the pass, verified before and after."""
    function = parse_function(case.head, case.path.name)
    verify(function)
    case.step.run(function)
    verify(function)
    return print_function(function)


def main(arguments: list[str]) -> None:
    """Writes the outputs of some or all file tests anew."""
    for path in map(Path, arguments) if arguments else case_files():
        case = read_case(path)
        path.write_text(f"{case.head.rstrip()}\n{MARK}\n{run_case(case)}")


if __name__ == "__main__":
    main(sys.argv[1:])
