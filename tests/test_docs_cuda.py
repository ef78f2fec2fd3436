"""docs/cuda.md: every row of its tables is compiled, and run where it says that it runs."""

import json

import numpy as np
import pytest

from cuda_table import SHARED_BYTES, THREADS, A, B, Row, rows
from qgpu.backends.machine.description import load_description
from qgpu.runtime import compile
from qgpu.toolchain.compile import compile_source
from qgpu.toolchain.diagnostics import DiagnosticError

RUNS, REFUSED = rows(2), rows(1)


def named(row: Row) -> str:
    return row.what


@pytest.mark.parametrize("row", RUNS, ids=named)
def test_what_runs(row: Row) -> None:
    machine, values = row.cells
    kernel = compile(row.source, machine=machine, backend="vector")
    out = np.zeros(THREADS, np.int32)
    kernel[1, THREADS, SHARED_BYTES](out, np.array(A, np.int32), np.array(B, np.int32))
    assert out.tolist() == json.loads(values.strip("`"))


@pytest.mark.parametrize("row", REFUSED, ids=named)
def test_what_is_refused(row: Row) -> None:
    """The error's text is that of the table, at a place in the source."""
    with pytest.raises(DiagnosticError) as caught:
        compile_source(row.source, "k.cu", "cu", load_description("large"))
    first = caught.value.diagnostics[0]
    assert first.message == row.cells[0].strip("`").strip()
    assert (first.file, first.line > 0) == ("k.cu", True)


def test_the_tables_are_read() -> None:
    assert len(RUNS) >= 75
    assert len(REFUSED) >= 18
    assert len({row.what for row in RUNS + REFUSED}) == len(RUNS) + len(REFUSED)
