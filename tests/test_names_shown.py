"""Whatever a user reads has a kernel's name as the source has it, with its template arguments."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from qgpu.runtime import ArgumentError, CompiledKernel, LaunchError, compile
from qgpu.runtime.cli import main as qgpu
from qgpu.toolchain.driver import main as qgpuc

SCAN = """namespace ns {
template <typename T, int N> __global__ void __launch_bounds__(8) scan(T *data, int n) {
  for (int i = 0; i < n; i++) if (data[i] > n) data[threadIdx.x] += N;
}
}
"""
NAME = "ns::scan<int, 16>"
SMALL = ("--machine", "small", "--kernel", NAME)


@pytest.fixture(scope="module")
def scan() -> CompiledKernel:
    return compile(SCAN, NAME, machine="small", backend="vector")


def test_of_a_report(scan: CompiledKernel) -> None:
    assert scan.report.kernel == NAME
    assert repr(scan) == f"<kernel '{NAME}' on machine 'small' by vector>"
    assert str(scan.report).startswith(f"{NAME}(void* data, i32 n) on machine 'small'\n")


@pytest.mark.parametrize(
    ("block", "count", "error"), [(4, 1, ArgumentError), (4, 3, ArgumentError), (32, 2, LaunchError)]
)
def test_of_exceptions(scan: CompiledKernel, block: int, count: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"kernel '{NAME}' ") as raised:
        scan[1, block](*[np.zeros(8, np.int32), 1, 1][:count])
    assert "_Z" not in str(raised.value)


def test_of_an_argument_that_does_not_fit(scan: CompiledKernel) -> None:
    with pytest.raises(ArgumentError, match=f"argument 2 of kernel '{NAME}' is i32"):
        scan[1, 4](np.zeros(8, np.int32), np.zeros(8, np.int32))


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("-v",), f"Compiling entry function '{NAME}' for 'small'"),
        (("--machine", "tiny.toml"), f"kernel '{NAME}' needs "),
        (("--emit-weights", "--bake", "--grid", "1", "--block", "32"), f"kernel '{NAME}' runs blocks"),
    ],
)
def test_of_qgpuc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], shown: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SCAN)
    Path("tiny.toml").write_text("rom_blocks = 4\nmemory_words = 128\nlanes = 4\nwarps = 2\n")
    result = CliRunner().invoke(qgpuc, ["k.cu", "-o", "out", *SMALL, *options])
    assert shown in result.stderr
    assert "_Z" not in result.stderr


def test_names_of_overloads_stay_whole(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("__global__ void f(int *a) { *a = 1; }\n__global__ void f(short *a) { *a = 1; }\n")
    result = CliRunner().invoke(qgpuc, [str(source), "-v", "-o", str(tmp_path / "k.qbin")])
    assert "function '_Z1fPi'" in result.stderr and "function '_Z1fPs'" in result.stderr


def test_of_parameters_that_the_source_does_not_tell(tmp_path: Path) -> None:
    source = tmp_path / "k.ptx"
    source.write_text(
        ".version 8.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry _Z1kPi(.param .u64 _Z1kPi_param_0) { ret; }\n"
    )
    shape = ("--grid", "1", "--block", "1", "--backend", "vector")
    for wrong, shown in (("i32:1", "argument 1 of kernel 'k' is i32"), ("bytes:00", "is a structure")):
        result = CliRunner().invoke(qgpu, ["run", str(source), *shape, "--arg", wrong])
        assert shown in result.stderr and "param_0 is wanted" in result.stderr
        assert "_Z" not in result.stderr


def test_of_a_command_that_compiles_for_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that is told makes the program that is wanted."""
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SCAN)
    runner = CliRunner()
    assert runner.invoke(qgpuc, ["k.cu", *SMALL, "-o", "a program"]).exit_code == 0
    run = ("run", "a program", "--machine", "seed", "--backend", "vector", "--grid", "1", "--block", "1")
    arguments = ("--arg", "i32[]:1", "--arg", "i32:0")
    told = runner.invoke(qgpu, [*run, *arguments]).stderr.splitlines()[1]
    program, *words = shlex.split(told.removeprefix("note: compile it for that one: "))
    assert program == "qgpuc" and NAME in words
    assert runner.invoke(qgpuc, words).exit_code == 0
    assert runner.invoke(qgpu, [*run, *arguments]).exit_code == 0
