"""A kernel of a source by any of its names, run and as IR: with types that the source defines, or mangled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from qgpu.runtime import compile
from qgpu.runtime.cli import main
from qgpu.toolchain.driver import main as qgpuc

SOURCE = """typedef unsigned int word;
namespace ns { using half_word = unsigned short; }
template <typename T, int N = 16> __global__ void add(T *data) { data[threadIdx.x] += N; }
"""
RUN = ("--grid", "1", "--block", "2")
NAMES = {
    "add<word>": "u32",
    "add<word, 16>": "u32",
    "add< ns::half_word >": "u16",
    "_Z3addIjLi16EEvPT_": "u32",
    "_Z3addItLi16EEvPT_": "u16",
}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SOURCE)
    return Path("k.cu")


@pytest.mark.parametrize(("name", "type_"), NAMES.items())
@pytest.mark.parametrize("backend", ["vector", "ir"])
def test_qgpu_runs_it(source: Path, name: str, type_: str, backend: str) -> None:
    wanted = ("--kernel", name, "--arg", f"{type_}[]:1,2", "--backend", backend)
    result = CliRunner(catch_exceptions=False).invoke(main, ["run", str(source), *RUN, *wanted])
    assert result.stdout == "data = [17, 18]\n", result.stderr


def test_python_has_it_and_its_ir(source: Path) -> None:
    for given in (SOURCE, source):
        kernel = compile(given, "add<word>", backend="vector")
        data = np.array([1, 2], np.uint32)
        kernel[1, 2](data)
        assert data.tolist() == [17, 18]
        assert kernel.report.kernel == "add<unsigned, 16>"
        assert kernel.ir.name == kernel.kernel.name == "_Z3addIjLi16EEvPT_"


def test_a_program_lists_what_it_has(source: Path) -> None:
    """Machine code has no types by which the name could be told."""
    runner = CliRunner()
    assert runner.invoke(qgpuc, [str(source), "--kernel", "add<word>"]).exit_code == 0
    result = runner.invoke(main, ["run", "k.qbin", *RUN, "--kernel", "add<word>"])
    assert result.stderr.splitlines()[:2] == [
        "qgpu: error: no kernel 'add<word>'",
        "note: there are: add<unsigned, 16>",
    ]
    data = ("--kernel", "add<unsigned, 16>", "--arg", "u32[]:1,2", "--backend", "vector")
    assert runner.invoke(main, ["run", "k.qbin", *RUN, *data]).stdout == "data = [17, 18]\n"
