"""LLVM IR given to the commands: .ll and .bc, from files and standard input; and the places that IR names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from click.testing import CliRunner, Result

from qgpu.runtime.cli import main as qgpu_main
from qgpu.toolchain import driver
from qgpu.toolchain.compile import CompileOptions, compile_to_ir
from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.llvm.lower import read
from qgpu.toolchain.llvm.places import Places

DOT = Path(__file__).parent / "llvm" / "examples" / "dot.ll"
GOLDEN = Path(__file__).parent / "llvm" / "golden"
LAUNCH = ["--grid", "1", "--block", "3", "--backend", "reference"]
ARGUMENTS = [f"--arg={text}" for text in ("i32[]:1,2,3", "i32[]:4,5,6", "i32[]:7", "i32:3")]


def qgpuc(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(driver.main, arguments, input=stdin, prog_name="qgpuc")


def qgpu(*arguments: str) -> Result:
    return CliRunner(catch_exceptions=False).invoke(qgpu_main, arguments, prog_name="qgpu")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`dot.ll` and the same as `dot.bc`, in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    text = DOT.read_text(encoding="utf-8")
    Path("dot.ll").write_text(text, encoding="utf-8")
    Path("dot.bc").write_bytes(llvm.parse_assembly(text).as_bitcode())
    return tmp_path


@pytest.mark.parametrize("file", ["dot.ll", "dot.bc"])
def test_a_kernel_runs_by_way_of_a_program_and_at_once(folder: Path, file: str) -> None:
    assert qgpuc(file, "-o", "dot.qbin").exit_code == 0
    for source in ("dot.qbin", file):
        result = qgpu("run", source, *LAUNCH, *ARGUMENTS)
        assert result.exit_code == 0, result.stderr
        assert "out = [39]" in result.stdout


def test_standard_input_with_its_language(folder: Path) -> None:
    from_text = qgpuc("-", "-x", "ll", "--emit=ir", stdin=Path("dot.ll").read_bytes())
    from_bits = qgpuc("-", "-x", "bc", "--emit=ir", stdin=Path("dot.bc").read_bytes())
    assert 'loc "<stdin>":9:' in from_text.stdout
    assert 'loc "<LLVM IR of <stdin>>"' in from_bits.stdout
    assert from_text.stdout.count("\n") == from_bits.stdout.count("\n")


def test_bitcode_under_the_suffix_of_text(folder: Path) -> None:
    os.replace("dot.bc", "bits.ll")
    assert qgpuc("bits.ll", "--emit=ir").stdout.startswith("kernel @dot(")


def test_ptx_is_not_made_of_it(folder: Path) -> None:
    result = qgpuc("dot.ll", "--emit=ptx")
    assert result.exit_code == 2
    assert "PTX is made from CUDA alone." in result.stderr


def test_what_is_not_bitcode(folder: Path) -> None:
    Path("no.bc").write_text("no")
    result = qgpuc("no.bc", "-o", "no.qbin")
    assert result.exit_code == 1
    assert result.stderr.startswith("no.bc: error: not LLVM bitcode: ")
    assert not Path("no.qbin").exists()


def test_coverage_counts_kernels(folder: Path) -> None:
    result = qgpu("coverage", ".", "--json", "-j1", "--machine", "default")
    counts = json.loads(result.stdout)["counts"]
    assert counts == {"kernels": 2, "parse": 2, "compile": 2, "fit default": 2}


def test_one_kernel_of_several_is_chosen() -> None:
    kernels = "".join(
        f"define ptx_kernel void @_Z{len(name)}{name}Pi(ptr %p) {{\n  ret void\n}}\n"
        for name in ("one", "two")
    )

    module = compile_to_ir(kernels, "k.ll", "ll", CompileOptions(kernels=("two",)))
    assert [function.name for function in module.functions] == ["_Z3twoPi"]


BREAKING = """target triple = "nvptx64-nvidia-cuda"
define void @k(ptr %p) {
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{ptr @k, !"kernel"}
"""


def test_an_assertion_of_llvm_is_an_error_of_the_file(tmp_path: Path) -> None:
    """LLVM ends its process at such annotations, where it was built with assertions; and takes them else."""
    (tmp_path / "k.ll").write_text(BREAKING)
    command = [sys.executable, "-c", "from qgpu.toolchain.driver import main; main()", "k.ll", "--emit=ir"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode in (0, 1)
    assert result.stderr == "" or result.stderr.startswith("k.ll: error: ")
    assert "Assertion" not in result.stderr


# ------------------------------------------------------------------------ places


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.ll")), ids=lambda file: file.stem)
def test_golden_ir(file: Path) -> None:
    """The IR before any pass; `QGPU_UPDATE_GOLDEN=1` writes it anew, to be read before it is committed."""
    got = str(compile_to_ir(file.read_text(encoding="utf-8"), file.name, "ll"))
    golden = file.with_suffix(".ir")
    if os.environ.get("QGPU_UPDATE_GOLDEN"):
        golden.write_text(got, encoding="utf-8")
    assert got == golden.read_text(encoding="utf-8")


REPLACED = """target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.barrier0.popc(i32)
declare i32 @llvm.nvvm.popc.i(i32)
; a comment before
define void @f(ptr %p,
               i32 %n)
{
first:  ; a label with a comment
  %popc = call i32 @llvm.nvvm.barrier0.popc(i32 %n)

  ; a comment between
  %add = add i32 %popc, 1
  switch i32 %add, label %last [
    i32 1, label %last
  ]
last:
  store i32 %add, ptr %p ; and one after: "}"
  ret void
}
"""


def test_lines_are_found_where_llvm_replaces_instructions() -> None:
    """barrier0.popc becomes two instructions, so that the numbers of those after it are others."""
    source = Source("f.ll", REPLACED)
    module = read(source)
    places = Places(source, module)
    instructions = [i for block in module.function("f").blocks for i in block.instructions]
    lines = {i.opcode: places.place("f", i.ordinal) for i in instructions}
    assert len(instructions) == 6
    found = {
        opcode: (lines[opcode].line, lines[opcode].column) for opcode in ("add", "switch", "store", "ret")
    }
    assert found == {"add": (12, 10), "switch": (13, 3), "store": (17, 3), "ret": (18, 3)}
