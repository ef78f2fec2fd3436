"""The tables of docs/cuda.md, and the kernel that each row's code is put into."""

from dataclasses import dataclass
from pathlib import Path

DOCUMENT = Path(__file__).parent.parent / "docs" / "cuda.md"
A = [3, -1, 4, 1, -5, 9, 2, 6]
B = [2, 7, 1, 8, 2, 8, 1, 8]
THREADS = 8
SHARED_BYTES = 32
NEW_LINE = " ⏎ "
"""What stands for the end of a line in the code of a row."""


@dataclass(frozen=True)
class Row:
    """A row: what it shows, declarations and statements, and its last cells."""

    what: str
    declarations: str
    statements: str
    cells: tuple[str, ...]

    @property
    def source(self) -> str:
        """A whole CUDA file."""
        return (
            f"{self.declarations}\n__global__ void k(int *out, const int *a, const int *b) {{\n"
            f"  int i = threadIdx.x;\n  {self.statements}\n}}\n"
        )


def rows(cells: int) -> list[Row]:
    """The rows of the tables that have so many cells after the code."""
    found = []
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        parts = [part.strip().replace("\\|", "|") for part in line.replace("\\|", "\0").split("|")[1:-1]]
        parts = [part.replace("\0", "|") for part in parts]
        if len(parts) == 3 + cells and parts[2].startswith("`"):
            found.append(Row(parts[0], _code(parts[1]), _code(parts[2]), tuple(parts[3:])))
    return found


def _code(cell: str) -> str:
    return cell.strip("`").strip().replace(NEW_LINE, "\n")
