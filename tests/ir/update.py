"""Writes the expected output of the file tests anew: `python tests/ir/update.py [FILE...]`. Read the difference."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from ir.files import MARK, case_files, read_case, run_case

if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else case_files():
        case = read_case(path)
        path.write_text(f"{case.head.rstrip()}\n{MARK}\n{run_case(case)}")
