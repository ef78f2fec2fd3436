"""NVIDIA's assembler as the judge of which text is PTX; skipped where there is none."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from qgpu.toolchain.diagnostics import DiagnosticError, Source
from qgpu.toolchain.ptx.parser import parse
from qgpu.toolchain.ptx.printer import print_module

pytestmark = pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas judges whether the PTX is valid")

FOLDER = Path(__file__).parent / "ptx"
FILES = sorted(FOLDER.rglob("*.ptx"))
HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
_ARCHITECTURE = re.compile(r"sm_\w+")
_TOKEN = re.compile(r'\s+|//[^\n]*|"[^"]*"|[.\w$%:]+|.')


def assemble(text: str, folder: Path) -> str:
    """What ptxas says about a text, empty where it takes it."""
    file = folder / "k.ptx"
    file.write_text(text)
    found = _ARCHITECTURE.search(text)
    assert found
    command = ["ptxas", "-c", f"-arch={found.group()}", "-o", str(folder / "out"), str(file)]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.stderr if result.returncode else ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_printed_form_is_as_valid_as_the_file(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    printed = print_module(parse(Source(path.name, text)))
    verdict = assemble(text, tmp_path)
    if "Unsupported .version" in verdict:
        pytest.skip("this ptxas is older than the file")
    assert verdict == ""
    assert assemble(printed, tmp_path) == ""


@pytest.mark.parametrize(
    "body",
    [
        "add.s32 %r1 %r2, 3;", "add.s32 %r1, %r2, 3", "add.s32 %r1, , %r2;", "ret;;", "@%p1 { ret; }",
        "ld.global.u32 %r1, [%rd1;", "ld.global.u32 %r1, [%rd1-4];", "ld.global.u32 %r1, [%rd1+%r2];",
        "ld.global.u32 %r1, [%rd1]+4;", "mov.u32 %r1, 5u;", "mov.u32 %r1, 08;", "mov.u32 %r1, 1/0;",
        "mov.u32 %r1, 0x;", "mov.u32 %r1, (1;", "mov.u32 %r1, {%r1, {%r2}};", "call (f);", "call;",
        "call f (%r1);", ".branchtargets a;", "p: .callprototype f ();", ".reg .b33 %x;",
        ".reg .b32 %x<3;", ".reg .b32 %x<1+1>;",
        ".loc 1 2;", ".pragma nounroll;", ".param .b32 a", "5: ret;", "mov.u32 %r1, %tid . x;",
        'mov.u32 %r1, "a";', "/* ret;", ".visible .global .u32 %g; {", "}", ".maxntid 1;",
        "mov.u32 %r1, 1 2;",
        '.file 1 "a"', "L: .calltargets ;", "brx.idx %r1, a b;", "mov.f32 %f1, 0f3F80;",
    ],
)  # fmt: skip
def test_what_the_parser_rejects_ptxas_rejects(body: str, tmp_path: Path) -> None:
    registers = ".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<2>;"
    text = f"{HEAD}.func f() {{ ret; }}\n.visible .entry k()\n{{\n{registers}\n{body}\nret;\n}}\n"
    with pytest.raises(DiagnosticError):
        parse(Source("k.ptx", text))
    assert assemble(text, tmp_path) != ""


def mutate(text: str, generator: random.Random) -> str:
    """The text with one of its words dropped, doubled or replaced by another."""
    words = _TOKEN.findall(text)
    places = [number for number, word in enumerate(words) if word.strip() and not word.startswith("//")]
    place, other = generator.choice(places), generator.choice(places)
    words[place] = generator.choice(["", f"{words[place]} {words[place]}", words[other]])
    return "".join(words)


def is_rejected(text: str) -> bool:
    try:
        parse(Source("k.ptx", text))
    except DiagnosticError:
        return True
    return False


def test_what_the_parser_rejects_of_damaged_files_ptxas_rejects(tmp_path: Path) -> None:
    generator = random.Random(1)
    texts = [(FOLDER / name).read_text() for name in ("clang.ptx", "directives.ptx", "triton.ptx")]
    damaged = [mutate(generator.choice(texts), generator) for _ in range(40)]
    rejected = [text for text in damaged if is_rejected(text)]
    assert len(rejected) > 20
    assert [text for text in rejected if not assemble(text, tmp_path)] == []
