"""The place in a statement at which floating-point numbers are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from qgpu.toolchain.cuda.float_places import float_place
from qgpu.toolchain.cuda.unit import SourceFile
from qgpu.toolchain.driver import main as qgpuc

BEFORE = "#define HALF 0.5f\n#define WHOLE 2\nstruct S { float w; int n; };\nvoid k(int *a, float *f, S s) { "
STATEMENTS = {
    "y[i] = a[0] * 0.5f;": "0.5f",
    "a[0] = a[1] * 1e3 + a[2];": "1e3",
    "a[0] = a[1] * 2.;": "2.",
    "a[0] = 0x1f + 0xe + 1u + .5;": ".5",
    "a[0] = a[1] * HALF;": "HALF",
    "float x = a[0];": "float",
    "a[0] = f[1] > 2;": "f",
    "a[0] = s.n + s.w;": "w",
    "a[1] = a[2] + (int)(sqrtf((float)a[3]));": "sqrtf",
    "a[1] = __float2int_rn(__int_as_float(a[0]));": "__float2int_rn",
    "if (a[0] > 1.5) a[1] = 2.5;": "1.5",
    "for (int i = 0; i < s.w; i++) a[1] = 2.5;": "w",
    "if (a[0]) a[1] = 2.5;": "2.5",
    "a[0] = a[1]; a[2] = a[3] / 3.f;": "3.f",
    "a[0] = a[1]\n  + 4.0;": "4.0",
    "int f = 1; a[0] = f + 1.0;": "1.0",
}
"""Statements, and the first of them that is of floating-point numbers."""


@pytest.mark.parametrize(("statement", "found"), STATEMENTS.items())
def test_the_first_of_a_statement_is_found(statement: str, found: str) -> None:
    last = statement.rfind("int f = 1; ") + len("int f = 1; ") if statement.startswith("int f") else 0
    file = SourceFile("k.cu", f"{BEFORE}{statement} a[9] = 9.5; }}\n", ())
    column = len(BEFORE.rpartition("\n")[2]) + 1 + last
    token = float_place(file, 4, column)
    assert token is not None
    assert (token.text, token.start) == (found, len(BEFORE) + statement.index(found, last))


@pytest.mark.parametrize(
    ("statement", "ahead"),
    [
        ("a[0] = T(1) + WHOLE;\n", 0),  # nothing tells
        ("if (a[0])\n", 0),  # the condition has none
        ("a[0] = a[1] * 0.5f;", 12),  # the place is the multiplication itself
        ("{ int f = 1; a[0] = f; }\n", 13),  # another f
    ],
)
def test_a_place_stays_where_nothing_tells(statement: str, ahead: int) -> None:
    file = SourceFile("k.cu", f"{BEFORE}{statement} a[9] = 9.5; }}\n", ())
    assert float_place(file, 4, len(BEFORE.rpartition("\n")[2]) + 1 + ahead) is None


def test_an_error_stands_there_once_a_statement_in_headers_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scale.h").write_text(
        "__global__ void scale(int *y, int a, int n) {\n  int i = threadIdx.x;\n"
        "  if (i < n) y[i] = a * 0.5f * y[i] + y[i];\n}\n"
    )
    Path("k.cu").write_text('#include "scale.h"\n')
    lines = CliRunner().invoke(qgpuc, ["k.cu", "-o", "k.qbin"]).stderr.splitlines()
    places = [line.partition(" error:")[0] for line in lines if " error:" in line]
    assert places == ["scale.h:3:25:"]
    carets = [line for line in lines if line.strip().startswith("^")]
    assert carets == [f"{24 * ' '}^~~~"]
