"""qgpu coverage: how far kernels get, and what stops them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from qgpu.backends.machine.description import DEFAULT, SMALL
from qgpu.runtime.cli import main
from qgpu.runtime.coverage import cover, source_files
from qgpu.toolchain.compile import CompileOptions
from qgpu.toolchain.diagnostics import DiagnosticError

HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n"
KERNEL = ".visible .entry {}(.param .u64 p)\n{{\n  .reg .f32 %f<3>;\n  .reg .b64 %d<3>;\n  {}\n  ret;\n}}\n"
LONG = "kernel @long(%p: ptr<global>) {{\nentry:\n{}  ret\n}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("deep/er").mkdir(parents=True)
    floats = KERNEL.format("floats", "add.f32 %f1, %f2, %f2;\n  ex2.approx.f32 %f1, %f1;")
    both = KERNEL.format("fine", "") + floats
    Path("deep/two.ptx").write_text(HEAD + both)
    Path("deep/er/broken.ir").write_text("kernel @k() {\nentry:\n  frob\n}\n")
    steps = (f"  store i32 %p, i32 {n}\n" for n in range(100))
    Path("deep/long.ir").write_text(LONG.format("".join(steps)))
    Path("deep/notes.txt").write_text("no kernel")
    return tmp_path


def test_files_are_found_below_folders(folder: Path) -> None:
    found = source_files(["deep", "deep/two.ptx"])
    assert [str(file) for file in found] == ["deep/er/broken.ir", "deep/long.ir", "deep/two.ptx"]
    for wrong in (["nowhere"], ["deep/notes.txt"]):
        with pytest.raises(DiagnosticError):
            source_files(wrong)


def test_each_kernel_counts_for_itself(folder: Path) -> None:
    coverage = cover(source_files(["deep"]), [SMALL, DEFAULT], CompileOptions())
    stages = {kernel.kernel: kernel.stop and kernel.stop.stage for kernel in coverage.kernels}
    assert stages == {"": "parse", "long": None, "fine": None, "floats": "compile"}
    assert coverage.counts == {"kernels": 4, "parse": 3, "compile": 2, "fit small": 1, "fit default": 2}
    reasons = dict(coverage.reasons)
    assert reasons["add"] == reasons["ex2"] == 1
    assert "unknown opcode '...'" in reasons


def test_a_kernel_that_fits_no_machine_says_why(folder: Path) -> None:
    (kernel,) = cover([Path("deep/long.ir")], [SMALL], CompileOptions()).kernels
    assert (kernel.compiles, kernel.fits) == (True, ())
    assert kernel.stop is not None and kernel.stop.stage == "fit"
    assert "machine 'small' has 64" in kernel.stop.message


def test_tables_and_json_say_the_same(folder: Path) -> None:
    run = CliRunner().invoke
    plain = run(main, ["coverage", "deep", "--machine=default", "-j2"])
    data = json.loads(run(main, ["coverage", "deep", "--machine=default", "--json"]).stdout)
    assert data["counts"] == {"kernels": 4, "parse": 3, "compile": 2, "fit default": 2}
    assert "floats" in plain.stdout and "deep/two.ptx:" in plain.stdout
    assert run(main, ["coverage", "nowhere"]).exit_code == 1
    assert run(main, ["coverage"]).exit_code == 2
