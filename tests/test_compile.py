"""The whole pipeline: sources to programs, through the Python API and through qgpuc."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import launches
from qgpu.backends.machine.description import BUILTIN, DEFAULT
from qgpu.backends.machine.qbin import load_program, program_from_bytes
from qgpu.ir.passes import default_pipeline
from qgpu.runtime.api import FaultError, compile
from qgpu.toolchain.compile import CompileOptions, compile_source
from qgpu.toolchain.diagnostics import DiagnosticError
from qgpu.toolchain.driver import main

EXAMPLES = sorted(launches.HERE.glob("*.cu"))
DOT = launches.HERE / "dot.cu"
FLOATS = 'extern "C" __global__ void k(float *a) {\n  a[0] = a[1] * a[2];\n}\n'


def qgpuc(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)), input=stdin, prog_name="qgpuc")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_compiles_for_the_default_machine(path: Path) -> None:
    program = compile_source(path.read_text(), str(path), "cu", DEFAULT)
    assert path.stem in [kernel.name for kernel in program.kernels]
    assert program.machine is DEFAULT
    files = {line.file for kernel in program.kernels for line in kernel.lines if line.line}
    assert files == {str(path)}


def test_the_stages_give_the_same_program(folder: Path) -> None:
    """From CUDA, from its PTX and from its IR."""
    Path("dot.cu").write_text(DOT.read_text())
    for stage in ("ptx", "ir"):
        assert qgpuc("dot.cu", f"--emit={stage}", "-o", f"dot.{stage}").exit_code == 0
    programs = [
        compile_source(Path(name).read_text(), name, name[4:], DEFAULT)
        for name in ("dot.cu", "dot.ptx", "dot.ir")
    ]
    assert programs[0].kernels == programs[1].kernels == programs[2].kernels


def test_a_program_file_is_written_beside_nothing_else(folder: Path) -> None:
    result = qgpuc(DOT)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert os.listdir() == ["dot.qbin"]
    assert load_program("dot.qbin").source == str(DOT)
    assert qgpuc(DOT, "-o", "-").stdout_bytes == Path("dot.qbin").read_bytes()
    assert program_from_bytes(qgpuc("-", "-x", "cu", "-o", "-", stdin=DOT.read_text()).stdout_bytes).kernels


def test_machine_code_as_text(folder: Path) -> None:
    result = qgpuc(DOT, "--emit=machine")
    assert result.exit_code == 0
    assert "kernel dot(" in result.stdout
    assert re.search(r"# .*dot\.cu:7:", result.stdout)
    assert os.listdir() == []


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_machines_by_name(folder: Path, name: str) -> None:
    assert qgpuc(DOT, "--machine", name).exit_code == 0
    assert load_program("dot.qbin").machine == BUILTIN[name]


def test_machines_from_a_file(folder: Path) -> None:
    Path("mine.toml").write_text("memory_words = 512\n")
    assert qgpuc(DOT, "--machine", "mine.toml").exit_code == 0
    assert load_program("dot.qbin").machine.memory_words == 512
    Path("mine.toml").write_text("memory_words = 500\n")
    result = qgpuc(DOT, "--machine", "mine.toml")
    assert result.exit_code == 1
    assert result.stderr.startswith("qgpuc: error: machine 'mine': memory_words = 500 is not a power of two")


def test_the_report_has_the_figures_of_the_program(folder: Path) -> None:
    result = qgpuc(DOT, "-v")
    (kernel,) = load_program("dot.qbin").kernels
    first, second, third = result.stderr.splitlines()
    assert (result.exit_code, result.stdout) == (0, "")
    assert first == "qgpuc info    : Compiling entry function 'dot' for 'default'"
    numbers = [int(number) for number in re.findall(r"\d+", second)]
    assert numbers == [
        kernel.registers, kernel.predicates, DEFAULT.predicates, len(kernel.blocks), DEFAULT.rom_blocks, 0
    ]  # fmt: skip
    assert str(kernel.warp_stride * DEFAULT.lanes) in third


def test_dumps_after_passes_go_to_stderr(folder: Path) -> None:
    names = [step.name for step in default_pipeline()]
    all_dumps = qgpuc(DOT, "--print-after-all")
    assert set(re.findall(r"^\*\*\* IR Dump After (\S+) \*\*\*$", all_dumps.stderr, re.M)) == set(names)
    one = qgpuc(DOT, f"--print-after={names[0]}")
    assert set(re.findall(r"IR Dump After (\S+)", one.stderr)) == {names[0]}
    assert (all_dumps.stdout, one.stdout) == ("", "")
    wrong = qgpuc(DOT, "--print-after=nonsense")
    assert wrong.exit_code == 2
    assert names[-1] in wrong.stderr


def test_what_the_machine_lacks_is_refused_at_the_cuda_line(folder: Path) -> None:
    Path("floats.cu").write_text(FLOATS)
    result = qgpuc("floats.cu")
    assert (result.exit_code, result.stdout) == (1, "")
    first, line, caret, instruction, *_ = result.stderr.splitlines()
    assert first.startswith("floats.cu:2:3: error: unsupported instruction 'mul.f32'")
    assert instruction.startswith("note: compiled to 'mul.f32 ")
    assert (line, caret) == ("  a[0] = a[1] * a[2];", "  ^")
    assert os.listdir() == ["floats.cu"]


def test_the_api_raises_the_same_diagnostics() -> None:
    with pytest.raises(DiagnosticError) as caught:
        compile_source(FLOATS, "floats.cu", "cu", DEFAULT)
    (found,) = caught.value.diagnostics
    assert (found.file, found.line, found.source_line) == ("floats.cu", 2, "  a[0] = a[1] * a[2];")


def test_the_api_compiles_chosen_kernels() -> None:
    text = "__global__ void f(int *a) { *a = 1; }\n__global__ void g(int *a) { *a = *a / 3; }\n"
    program = compile_source(text, "two.cu", "cu", DEFAULT, CompileOptions(kernels=("f",)))
    assert [kernel.name for kernel in program.kernels] == ["_Z1fPi"]


REVERSE = """
extern __shared__ int swap[];
extern "C" __global__ void reverse(int *a) {
    __shared__ int base[3];
    if (threadIdx.x < 3) base[threadIdx.x] = 100 * threadIdx.x;
    swap[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = swap[blockDim.x - 1 - threadIdx.x] + base[1];
}
"""


def test_shared_memory_whose_size_the_launch_gives() -> None:
    kernel = compile(REVERSE, backend="reference")
    values = np.array([1, 2, 3, 4, 5], dtype=np.int32)
    kernel[1, 5, 20](values)
    assert values.tolist() == [105, 104, 103, 102, 101]
    with pytest.raises(FaultError):
        kernel[1, 5, 16](values)


def children_seconds() -> float:
    """Processor time of the child processes that have ended; unlike elapsed time, it knows no neighbours."""
    times = os.times()
    return times.children_user + times.children_system


def test_the_compiler_starts_fast_and_without_torch(folder: Path) -> None:
    code = (
        "import sys\nfrom qgpu.toolchain.driver import main\n"
        f"main([{str(DOT)!r}, '-o', 'dot.qbin'], standalone_mode=False)\n"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    spent = []
    for _ in range(3):
        start = children_seconds()
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        spent.append(children_seconds() - start)
        assert (run.stdout, run.stderr) == ("[]\n", "")
    assert min(spent) < 1.5


@pytest.mark.parametrize("place", ["4294967295:1", "4294967296:1", "1:99999999999999999999"])
def test_places_beyond_what_a_file_can_name_are_unknown(folder: Path, place: str) -> None:
    Path("k.ir").write_text(
        f'kernel @k(%p: ptr<global>) {{\nentry:\n  store i32 %p, i32 1  !loc "a.cu":{place}\n  ret\n}}\n'
    )
    assert qgpuc("k.ir").exit_code == 0
    line, column = (number if number < 2**32 else 0 for number in map(int, place.split(":")))
    found = {(line.line, line.column) for line in load_program("k.qbin").kernels[0].lines}
    assert (line, column) in found
