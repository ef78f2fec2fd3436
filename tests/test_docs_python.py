"""docs/python.md and its example: what they show is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from qgpu.runtime import ArgumentError, DiagnosticError, FaultError, compile

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
MISTAKES = re.findall(r"^\| `(k\[.*)` \| (.+) \|$", TEXT, re.MULTILINE)
ADD = """
extern "C" __global__ void add(const int *a, const int *b, int *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""


def test_the_example_runs() -> None:
    """Each cell: two launches, what a kernel tells, and three kinds of exceptions."""
    command = [sys.executable, ROOT / "examples" / "python_api.py", "vector"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0] == "[100 103 106 109 112 115]"
    assert lines[2] == "[ 6 22 38] numpy: [ 6 22 38]"
    report = re.findall(r"^ {6}(.*)$", TEXT, re.MULTILINE)
    assert lines[3:8] == report and len(report) == 5
    assert lines[8].startswith("kernel @saxpy(")
    assert lines[9].startswith("argument 2 is an array of float64")
    assert lines[10] == "4 out-of-bounds: access outside its buffer"
    assert any('error: expected a ";"' in line for line in lines[11:])


@pytest.mark.parametrize(("code", "message"), MISTAKES)
def test_mistakes_of_the_table(code: str, message: str) -> None:
    k = compile(ADD, backend="vector")
    a, b, c = (np.zeros(5, np.int32) for _ in range(3))
    with pytest.raises(ArgumentError) as caught:
        eval(code, {"k": k, "a": a, "b": b, "c": c})
    assert str(caught.value) == message


def test_the_table_has_mistakes() -> None:
    assert len(MISTAKES) == 5


def test_a_read_only_array_that_is_written_to_leaves_all_as_they_were() -> None:
    text = ADD.replace("c[i] = a[i] + b[i]", "c[i] = 1, ((int *)a)[i] = 2")
    c, b, a = (np.zeros(2, np.int32) for _ in range(3))
    c.flags.writeable = False
    with pytest.raises(ArgumentError, match=r"argument 3 is read-only.*give \.copy\(\)"):
        compile(text, backend="vector")[1, 2](a, b, c, 2)
    assert a.tolist() == [0, 0]


def test_exceptions_carry_their_diagnostics() -> None:
    with pytest.raises(DiagnosticError) as refused:
        compile(ADD.replace("c[i] =", "c[j] ="))
    (found,) = [one for one in refused.value.diagnostics if one.severity == "error"]
    assert (found.line, found.source_line) == (4, "    if (i < n) c[j] = a[i] + b[i];")
    a = np.zeros(2, np.int32)
    with pytest.raises(FaultError) as fault:
        compile(ADD, backend="vector")[1, 4](a, a, a, 4)
    assert fault.value.fault.thread == (2, 0, 0)
    assert fault.value.diagnostic.line == 4
    assert fault.value.diagnostic.source_line == "    if (i < n) c[i] = a[i] + b[i];"


def test_the_ir_is_of_the_kernel_that_was_chosen(tmp_path: Path) -> None:
    file = tmp_path / "two.cu"
    file.write_text(ADD + ADD.replace("add", "other"))
    kernel = compile(file, kernel="other", backend="vector")
    assert kernel.ir.name == kernel.report.kernel == "other"
    of_text = compile(file.read_text(), kernel="other", backend="vector").ir
    assert str(kernel.ir).replace(str(file), "<cu>") == str(of_text)


def test_an_unknown_back_end_is_refused_at_once() -> None:
    with pytest.raises(RuntimeError, match="no back end 'gpu': write reference, weights, engine"):
        compile(ADD, backend="gpu")
