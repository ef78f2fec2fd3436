"""qgpuc: inputs, outputs, exit statuses, and what goes to which stream."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from qgpu.backends import transformer
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.transformer.schedule import ScheduleError
from qgpu.backends.transformer.stages import Tell
from qgpu.toolchain import driver
from qgpu.toolchain.cuda.names import plain_name

KERNEL = 'extern "C" __global__ void k(int *a) { a[threadIdx.x] = VALUE; }\n'
TWO = (
    "namespace n { __global__ void first(int *a) { *a = 1; } }\n__global__ void second(int *a) { *a = 2; }\n"
)


def qgpuc(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(driver.main, list(map(str, arguments)), input=stdin, prog_name="qgpuc")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source file `k.cu` in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    path = Path("k.cu")
    path.write_text(KERNEL)
    return path


def without_places(ir: str) -> str:
    return re.sub(r"  !loc .*", "", ir)


# ---------------------------------------------------------------------- stages


def test_ptx_goes_to_stdout(kernel: Path) -> None:
    result = qgpuc(kernel, "-DVALUE=7", "--emit=ptx")
    assert (result.exit_code, result.stderr) == (0, "")
    assert ".entry k(" in result.stdout
    assert os.listdir() == ["k.cu"]


def test_every_stage_continues_from_the_one_before(kernel: Path) -> None:
    assert qgpuc(kernel, "-D", "VALUE=7", "--emit=ptx", "-o", "k.ptx").exit_code == 0
    assert qgpuc(kernel, "-D", "VALUE=7", "--emit=ir", "-o", "k.ir").exit_code == 0
    from_cuda = Path("k.ir").read_text()
    assert '!loc "k.cu":1:' in from_cuda
    assert qgpuc("k.ptx", "--emit=ir").stdout == from_cuda
    assert qgpuc("k.ir", "--emit=ir").stdout == from_cuda
    assert qgpuc("k.ptx", "--emit=ptx").stdout == Path("k.ptx").read_text()


@pytest.mark.parametrize("language", ["cu", "ptx", "ir"])
def test_standard_input(kernel: Path, language: str) -> None:
    text = {language: qgpuc(kernel, "-DVALUE=7", f"--emit={language}").stdout for language in ("ptx", "ir")}
    text["cu"] = KERNEL
    result = qgpuc("-", "-x", language, "-DVALUE=7", "--emit=ir", stdin=text[language])
    assert result.exit_code == 0
    assert without_places(result.stdout) == without_places(text["ir"])


def test_headers_beside_the_source_and_in_include_folders(kernel: Path) -> None:
    for folder, name in [("src", "near.h"), ("include", "far.h")]:
        Path(folder).mkdir()
        Path(folder, name).write_text(f"#define {name[:-2].upper()} 1000\n")
    Path("src/h.cu").write_text('#include "near.h"\n#include <far.h>\n' + KERNEL)
    result = qgpuc("src/h.cu", "-Iinclude", "-DVALUE=NEAR+FAR", "--emit=ir")
    assert "store i32" in result.stdout and "i32 2000" in result.stdout
    assert '"src/h.cu":3:' in result.stdout


def test_kernels_are_chosen_by_plain_or_full_name(kernel: Path) -> None:
    kernel.write_text(TWO)
    names = re.compile(r"kernel @(\w+)")
    both = names.findall(qgpuc(kernel, "--emit=ir").stdout)
    assert sorted(both) == ["_Z6secondPi", "_ZN1n5firstEPi"]
    for wanted in ("first", "_ZN1n5firstEPi"):
        assert names.findall(qgpuc(kernel, "--emit=ir", "--kernel", wanted).stdout) == ["_ZN1n5firstEPi"]
    result = qgpuc(kernel, "--emit=ir", "--kernel", "third")
    assert result.exit_code == 1
    assert result.stderr.startswith("k.cu: error: no kernel 'third'\nnote: there are: ")


def test_an_unsupported_kernel_does_not_keep_another_from_compiling(kernel: Path) -> None:
    kernel.write_text('extern "C" __global__ void f(float *a) {\n  *a *= 3.0f;\n}\n' + KERNEL)
    assert qgpuc(kernel, "-DVALUE=1", "--emit=ir", "--kernel", "k").exit_code == 0
    result = qgpuc(kernel, "-DVALUE=1", "--emit=ir")
    assert result.exit_code == 1
    assert result.stderr.startswith("k.cu:2:4: error: unsupported instruction 'mul.f32'")
    assert "\n  *a *= 3.0f;\n   ^\nnote: compiled to 'mul.f32 " in result.stderr


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("bad.cu", "__global__ void k(int *a) { *a = b; }\n",
         "bad.cu:1:34: error: 'b' is not declared\n"
         "__global__ void k(int *a) { *a = b; }\n                                 ^\n1 error generated.\n"),
        ("bad.ptx", ".version 9.0\n.target sm_75\n.adress_size 64\n",
         "bad.ptx:3:1: error: unexpected '.adress_size'; expected ',' or '.address_size' or a declaration\n"
         ".adress_size 64\n^~~~~~~~~~~~\nnote: did you mean '.address_size'?\n1 error generated.\n"),
        ("bad.ir", "kernel @k() {\nentry:\n  frob\n}\n", None),
        ("ill.ir", "kernel @k() {\nentry:\n  br entry\n}\n", None),
        ("empty.cu", "__device__ int x;\n",
         "empty.cu: error: no kernel to compile\n"
         "note: a kernel is a __global__ function\n1 error generated.\n"),
    ],
)  # fmt: skip
def test_bad_input_gets_a_diagnostic(kernel: Path, name: str, text: str, error: str | None) -> None:
    Path(name).write_text(text)
    result = qgpuc(name, "--emit=ir")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == error if error else result.stderr.startswith(f"{name}:")
    assert "Traceback" not in result.stderr


def test_files_that_cannot_be_read(kernel: Path) -> None:
    Path("binary.cu").write_bytes(b"int\xff")
    assert qgpuc("gone.cu").stderr.startswith("qgpuc: error: cannot read 'gone.cu': No such file")
    assert qgpuc("binary.cu").stderr.startswith("binary.cu: error: not a text file: byte 3 is not UTF-8")
    Path("folder.cu").mkdir()
    result = qgpuc("folder.cu")
    assert (result.exit_code, result.stderr.split(":")[1]) == (1, " error")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "No input file."),
        (["k.txt"], "The suffix of 'k.txt' is none of .cu, .ptx, .ll, .bc and .ir"),
        (["-"], "Standard input needs its language"),
        (["-", "-x", "cu"], "A program from standard input needs an output file"),
        (["k.cu", "-o", "./k.cu"], "The output file './k.cu' is the input file."),
        (["k.cu", "--emit=exe"], "'exe' is not one of"),
        (["k.cu", "--nonsense"], "No such option"),
        (["k.cu", "--emit-weights", "-o", "d"], "--emit-weights takes no input file"),
        (["--emit-weights"], "--emit-weights needs a folder"),
    ],
)
def test_wrong_usage_ends_with_status_2(kernel: Path, arguments: list[str], message: str) -> None:
    result = qgpuc(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert kernel.read_text() == KERNEL


def test_a_link_to_the_input_is_not_written(kernel: Path) -> None:
    Path("link.qbin").symlink_to("k.cu")
    assert qgpuc(kernel, "-DVALUE=1", "--emit=ptx", "-o", "link.qbin").exit_code == 2
    assert kernel.read_text() == KERNEL


def test_an_error_leaves_the_output_as_it_was(kernel: Path) -> None:
    Path("out.ir").write_text("precious")
    assert qgpuc(kernel, "--emit=ir", "-o", "out.ir").exit_code == 1
    assert Path("out.ir").read_text() == "precious"
    result = qgpuc(kernel, "-DVALUE=1", "--emit=ir", "-o", "no/such/folder.ir")
    assert (result.exit_code, result.stderr.split("\n")[0]) == (
        1,
        "qgpuc: error: cannot write 'no/such/folder.ir': No such file or directory",
    )


def test_output_to_what_is_no_plain_file(kernel: Path) -> None:
    assert qgpuc(kernel, "-DVALUE=1", "--emit=ir", "-o", os.devnull).exit_code == 0
    assert not Path(os.devnull).is_file()


def test_warnings_go_to_stderr(kernel: Path) -> None:
    result = qgpuc(kernel, "-DVALUE=1; int unused", "--emit=ir")
    assert result.exit_code == 0
    assert "warning: variable" in result.stderr and "1 warning generated." in result.stderr
    assert "warning" not in result.stdout


# --------------------------------------------------------------------- weights


def fake_emitter(error: Exception | None = None):
    def emit_checkpoint(machine: MachineDescription, directory: str, dtype: str, tell: Tell) -> None:
        tell("weights")
        Path(directory, "config.json").write_text(f"{machine.name} {dtype}")
        if error is not None:
            raise error

    return emit_checkpoint


def test_weights_replace_files_of_their_names(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "emit_checkpoint", fake_emitter())
    Path("out").mkdir()
    for name in ("notes.txt", "config.json", "qgpu.json"):
        Path("out", name).write_text("old")
    result = qgpuc("--emit-weights", "-o", "out", "--machine", "small", "--dtype", "bfloat16")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert sorted(os.listdir("out")) == ["config.json", "notes.txt", "qgpu.json"]
    assert Path("out/notes.txt").read_text() == "old"
    assert Path("out/config.json").read_text() == "small bfloat16"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ScheduleError("too wide"), "qgpuc: error: the machine does not fit its model: too wide"),
        (OSError(28, "No space left on device"), "qgpuc: error: cannot write 'out': No space left on device"),
    ],
)
def test_weights_that_fail_leave_the_folder_as_it_was(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    monkeypatch.setattr(transformer, "emit_checkpoint", fake_emitter(error))
    Path("out").mkdir()
    for name in ("config.json", "qgpu.json"):
        Path("out", name).write_text("old")
    result = qgpuc("--emit-weights", "-o", "out")
    assert (result.exit_code, result.stderr.split("\n")[0]) == (1, message)
    assert sorted(os.listdir("out")) == ["config.json", "qgpu.json"]
    assert Path("out/config.json").read_text() == "old"


# ------------------------------------------------------------------------ rest


@pytest.mark.parametrize(
    ("mangled", "plain"),
    [
        ("dot", "dot"),
        ("_Z3dotPKiS0_Pii", "dot"),
        ("_ZN2ns5inner3dotEPi", "dot"),
        ("_Z4fillIiEvPT_", "fill"),
        ("_Zodd", "_Zodd"),
        ("_Z11k1234567890Pi", "k1234567890"),
    ],
)
def test_plain_names(mangled: str, plain: str) -> None:
    assert plain_name(mangled) == plain


def test_version() -> None:
    result = qgpuc("--version")
    assert result.exit_code == 0
    assert re.fullmatch(r"qgpuc (\d+\.\d+\.\d+|\(not installed\))\n", result.stdout)


def test_neither_torch_nor_networkx_is_imported_for_ptx(kernel: Path) -> None:
    code = (
        "import sys\nfrom qgpu.toolchain.driver import main\n"
        "main(['k.cu', '-DVALUE=1', '--emit=ir', '-o', 'k.ir'], standalone_mode=False)\n"
        "print([name for name in ('torch', 'transformers', 'numpy', 'networkx') if name in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (run.stdout, run.stderr) == ("[]\n", "")
