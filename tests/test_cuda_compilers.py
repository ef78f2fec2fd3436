"""clang and nvcc: command lines, messages, absence; options as nvcc spells them; names of kernels."""

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from qgpu.runtime.run_command import run_command
from qgpu.toolchain import driver
from qgpu.toolchain.cuda import COMPILERS, CudaOptions
from qgpu.toolchain.cuda.clang import parse
from qgpu.toolchain.cuda.names import described, kernel_name, matching, readable
from qgpu.toolchain.diagnostics import DiagnosticError, Source, render

PTX = """\
.version 7.2
.target sm_75
.address_size 64
.visible .entry _Z1kPi(
\t.param .u64 _Z1kPi_param_0
)
{
\tret;
}
"""
KERNELS = """\
namespace ns {
template <typename T, int N> __global__ void scan(T *data, int n) { if (n) data[threadIdx.x] += N; }
}
__global__ void add(const int *a, int *sum) { *sum += a[threadIdx.x]; }
typedef unsigned int word;
int main() { ns::scan<int, 16><<<1, 32>>>(nullptr, 3); }
"""


def qgpuc(*arguments: str | Path) -> Result:
    runner = CliRunner(catch_exceptions=False)
    return runner.invoke(driver.main, list(map(str, arguments)), prog_name="qgpuc")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(KERNELS)
    return Path("k.cu")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Make an executable that keeps its arguments and its source, writes PTX, and says what it is told to."""

    def make(name: str, says: str = "", status: int = 0) -> None:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (tmp_path / "ptx").write_text(PTX)
        (tmp_path / "says").write_text(says)
        program = folder / name
        program.write_text(
            f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path}/arguments\n"
            f'for one; do if [ "$before" = -o ]; then cp {tmp_path}/ptx $one; fi; before=$one; done\n'
            f"cp $before {tmp_path}/seen.cu; cat {tmp_path}/says >&2; exit {status}\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return make


def test_clang_is_asked_for_device_code_without_an_sdk(fake, source: Path, tmp_path: Path) -> None:
    fake("clang++")
    text = "int host() { return 1; }\n__global__ void k(int *out) { *out = 1; }\n"
    options = CudaOptions(("A=1",), (Path("inc"),), "compute_80", "c++20")
    ptx = COMPILERS["clang"].compile(Source("k.cu", text), options)
    assert ".param .u64 _Z1kPi_out" in ptx.text
    arguments = (tmp_path / "arguments").read_text().splitlines()
    for wanted in ("--cuda-device-only", "--cuda-gpu-arch=sm_80", "-nocudainc", "-nocudalib", "-std=c++20",
                   "-nostdlibinc", "-nostdinc++", "-S", "-DA=1", "-I.", "-Iinc"):  # fmt: skip
        assert wanted in arguments
    assert (tmp_path / "seen.cu").read_text().splitlines()[:3] == [
        '#line 1 "k.cu"',
        " " * 24,
        "__global__ void k(int *out) { *out = 1; }",
    ]


def test_nvcc_is_asked_for_ptx_and_instances(fake, source: Path, tmp_path: Path) -> None:
    fake("nvcc")
    options = CudaOptions(kernels=("scan<short, 4>",))
    COMPILERS["nvcc"].compile(Source("k.cu", KERNELS), options)
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[:3] == ["-ptx", "-arch=compute_75", "-lineinfo"]
    assert (tmp_path / "seen.cu").read_text().endswith("qgpu_instance_0 = &ns::scan<short, 4>;\n")


CLANG_LOG = """\
k.cu:2:38: error: use of undeclared identifier 'host'
k.cu:9:1: note: elsewhere
1 error generated when compiling for sm_75.
"""
NVCC_LOG = """\
k.cu(2): error: identifier "host" is undefined
  __global__ void k(int *out) { *out = host(); }
                                       ^

1 error detected in the compilation of "k.cu".
"""


@pytest.mark.parametrize(
    ("name", "program", "log"), [("clang", "clang++", CLANG_LOG), ("nvcc", "nvcc", NVCC_LOG)]
)
def test_messages_have_one_form(fake, source: Path, name: str, program: str, log: str) -> None:
    fake(program, log, 1)
    text = "int host() { return 1; }\n__global__ void k(int *out) { *out = host(); }\n"
    with pytest.raises(DiagnosticError) as caught:
        COMPILERS[name].compile(Source("k.cu", text), CudaOptions())
    first, line, caret, second, *_ = render(caught.value.diagnostics).splitlines()
    assert first == "k.cu:2:38: error: 'host' is a host function: device code cannot call it"
    assert line == "__global__ void k(int *out) { *out = host(); }"
    assert caret.strip() == "^~~~"
    assert second == "k.cu:1:5: note: 'host' is declared here, without an annotation for the device"


def test_notes_of_clang_belong_to_the_message_before() -> None:
    (found,) = parse(CLANG_LOG)
    assert [(one.message, one.line) for one in found.notes] == [("elsewhere", 9)]


@pytest.mark.parametrize(("name", "program"), [("clang", "clang++"), ("nvcc", "nvcc")])
def test_a_compiler_that_is_missing(source: Path, monkeypatch, name: str, program: str) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    result = qgpuc(source, f"--cuda-compiler={name}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"qgpuc: error: the CUDA compiler '{program}' is not installed\n"
        "note: --cuda-compiler=nvrtc needs no installation\n1 error generated.\n"
    )


def test_a_compiler_that_fails_without_a_message(fake, source: Path) -> None:
    fake("nvcc", "nvcc fatal   : Unsupported gpu architecture\n", 1)
    result = qgpuc(source, "--cuda-compiler=nvcc")
    assert result.exit_code == 1
    assert result.stderr.startswith("k.cu: error: nvcc failed: nvcc fatal   : Unsupported gpu architecture\n")


def test_kernels_are_listed_with_templates(source: Path) -> None:
    result = qgpuc(source, "--list-kernels")
    assert result.stdout.splitlines() == [
        "add  _Z3addPKiPi",
        "ns::scan<int, 16>  _ZN2ns4scanIiLi16EEEvPT_i",
        "ns::scan<typename T, int N>  template",
    ]


def test_the_default_architecture_is_the_one_that_help_and_documents_name(source: Path) -> None:
    default = CudaOptions().architecture
    document = Path(__file__).parent.parent / "docs" / "cuda.md"
    assert f"(also `--gpu-architecture`; `{default}` unless it is given" in document.read_text(
        encoding="utf-8"
    )
    for command in (driver.main, run_command):
        shown = " ".join(CliRunner().invoke(command, ["--help"]).stdout.split())
        assert f"sm_NN means compute_NN. [default: {default}]" in shown
    asked = [
        CliRunner().invoke(driver.main, [str(source), "--dryrun", *more]).stderr
        for more in ((), (f"-arch={default}",), (f"-arch={default.replace('compute', 'sm')}",))
    ]
    assert len(set(asked)) == 1 and f"={default} " in asked[0]


def test_a_dry_run_compiles_nothing(source: Path) -> None:
    for compiler, words in (
        ("nvrtc", "#$ nvrtc "),
        ("clang", "#$ clang++ -x cuda "),
        ("nvcc", "#$ nvcc -ptx "),
    ):
        result = qgpuc(source, "--dryrun", f"--cuda-compiler={compiler}", "-arch=sm_80")
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.startswith(words) and "80" in result.stderr
    assert os.listdir() == ["k.cu"]


def test_options_as_nvcc_spells_them(source: Path) -> None:
    result = qgpuc(source, "-ptx", "-arch=sm_80", "-std=c++17", "-lineinfo", "-DX=1", "-I.")
    assert (result.exit_code, result.stdout) == (0, "")
    assert ".target sm_80" in Path("k.ptx").read_text()
    assert ".param .u64 _Z3addPKiPi_sum" in Path("k.ptx").read_text()


@pytest.mark.parametrize(
    ("wanted", "mangled"),
    [
        ("add", "_Z3addPKiPi"),
        ("_Z3addPKiPi", "_Z3addPKiPi"),
        ("scan", "_ZN2ns4scanIiLi16EEEvPT_i"),
        ("ns::scan", "_ZN2ns4scanIiLi16EEEvPT_i"),
        ("scan<int,16>", "_ZN2ns4scanIiLi16EEEvPT_i"),
        ("::ns::scan< unsigned short , 3 >", "_ZN2ns4scanItLi3EEEvPT_i"),
        ("scan<word, 2 + 2>", "_ZN2ns4scanIjLi4EEEvPT_i"),
    ],
)
def test_names_of_kernels(source: Path, wanted: str, mangled: str) -> None:
    result = qgpuc(source, "--emit=ir", "--kernel", wanted)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("kernel @") == 1
    assert f"kernel @{mangled}(%" in result.stdout


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("add", "add"),
        ("_Z3addPKiPi", "add"),
        ("_ZN2ns4scanIiLi16EEEvPT_i", "ns::scan<int, 16>"),
        ("_Z1kILb1ELj3E4PairIiLi3EEEvPi", "k<true, 3, Pair<int, 3>>"),
        ("_ZN1x1y12_GLOBAL__N_11kEPi", "x::y::k"),
        ("_Znonsense", "_Znonsense"),
    ],
)
def test_mangled_names(mangled: str, name: str) -> None:
    assert str(kernel_name(mangled)) == name
    assert matching(name, [mangled]) == [mangled]


def test_names_in_messages() -> None:
    assert described(["_Z1fPi", "_Z1fPx", "_Z1gv"]) == "_Z1fPi, _Z1fPx, g"
    assert readable("'_Z1fi' reads '_ZZ1fiE1s'") == "'f' reads 's'"
