"""PTX text to syntax tree and back."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from qgpu.toolchain.diagnostics import DiagnosticError, Source
from qgpu.toolchain.ptx import ast, parser
from qgpu.toolchain.ptx.parser import parse
from qgpu.toolchain.ptx.printer import print_module

FILES = sorted((Path(__file__).parent / "ptx").glob("*.ptx"))
HEAD = ".version 9.0\n.target sm_75\n.address_size 64\n"


def parse_text(text: str) -> ast.Module:
    return parse(Source("k.ptx", text))


def statements(body: str) -> tuple[Any, ...]:
    (entry,) = parse_text(f"{HEAD}.visible .entry k()\n{{\n{body}\n}}\n").entries
    return entry.body.statements


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_printing_and_parsing_keeps_the_tree(path: Path) -> None:
    module = parse_text(path.read_text())
    assert module.entries
    assert parse_text(print_module(module)) == module


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas judges whether the PTX is valid")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_ptxas_accepts_what_the_printer_prints(path: Path, tmp_path: Path) -> None:
    printed = tmp_path / "printed.ptx"
    printed.write_text(print_module(parse_text(path.read_text())))
    command = ["ptxas", "-arch=sm_75", "-o", str(tmp_path / "out"), str(printed)]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""


def test_module_header_files_and_entries() -> None:
    module = parse_text((Path(__file__).parent / "ptx" / "dot.ptx").read_text())
    assert (module.version, module.targets, module.address_size) == ("9.0", ("sm_75",), 64)
    assert module.files == {1: "dot.cu"}
    (entry,) = module.entries
    assert (entry.name, entry.linkage) == ("dot", "visible")
    assert [(parameter.type, parameter.name) for parameter in entry.parameters] == [
        ("u64", "dot_param_0"),
        ("u64", "dot_param_1"),
        ("u64", "dot_param_2"),
        ("u32", "dot_param_3"),
    ]


def test_parameters_and_performance_directives() -> None:
    parameters = ".param .u64 .ptr .global .align 4 a, .param .align 8 .b8 p[16], .param .u64 .ptr .align 1 b"
    (entry,) = parse_text(
        f"{HEAD}.entry k({parameters})\n.maxntid 128, 1, 1\n.minnctapersm 2\n{{ret;}}"
    ).entries
    assert [(p.pointee, p.align, p.extents) for p in entry.parameters] == [
        (ast.Pointee("global", 4), None, ()),
        (None, 8, (16,)),
        (ast.Pointee(None, 1), None, ()),
    ]
    assert entry.performance == (("maxntid", (128, 1, 1)), ("minnctapersm", (2,)))


@pytest.mark.parametrize(
    ("text", "opcode", "modifiers", "operands"),
    [
        ("ret;", "ret", "", ""),
        ("mad.lo.s32 %r1, %r2, -4, 0x1F;", "mad", "lo s32", "%r1 %r2 -4 31"),
        ("mov.u32 %r1, %tid.x;", "mov", "u32", "%r1 %tid.x"),
        ("ld.global.nc.L1::evict_last.v2.u32 {%r1, %r2}, [%rd1+-8];",
         "ld", "global nc L1::evict_last v2 u32", "{%r1, %r2} [%rd1+-8]"),
        ("ld.param.u32 %r1, [k_param_0];", "ld", "param u32", "%r1 [k_param_0]"),
        ("st.shared.u32 [16], 017;", "st", "shared u32", "[16] 15"),
        ("setp.lt.and.s32 %p1|%p2, %r1, 0b101, !%p3;", "setp", "lt and s32", "%p1|%p2 %r1 5 !%p3"),
        ("mov.f32 %f1, 0fBF800000;", "mov", "f32", "%f1 0fBF800000"),
        ("mov.u64 %rd1, array+8;", "mov", "u64", "%rd1 array+8"),
        ("call.uni (%r1), f, (%r2, 3);", "call", "uni", "(%r1) f (%r2, 3)"),
        ("add.u64 $a, _b, 4294967295U;", "add", "u64", "$a _b 4294967295"),
    ],
)  # fmt: skip
def test_instructions(text: str, opcode: str, modifiers: str, operands: str) -> None:
    (found,) = statements(text)
    assert isinstance(found, ast.Instruction)
    assert (found.opcode, " ".join(found.modifiers)) == (opcode, modifiers)
    assert " ".join(map(str, found.operands)) == operands


def test_guards_labels_and_scopes() -> None:
    label, taken, scope = statements("$L_1: @!%p1 bra $L_1; { .reg .pred %q; @%q exit; }")
    assert label == ast.Label("$L_1", position=ast.Position(0, 0))
    assert (str(taken.guard.predicate), taken.guard.negated) == ("%p1", True)
    registers, inner = scope.statements
    assert registers.ranges == (ast.RegisterRange("%q"),)
    assert (inner.guard.negated, inner.position) == (False, ast.Position(6, 44, 4))


def test_variables() -> None:
    text = ".shared .align 4 .b8 s[128]; .local .v4 .f32 d[2][3]; .reg .b32 %r<3>, x;"
    shared, local, registers = statements(text)
    assert (shared.space, shared.align, shared.type, shared.extents) == ("shared", 4, "b8", (128,))
    assert (local.vector, local.type, local.extents) == ("v4", "f32", (2, 3))
    assert registers.ranges == (ast.RegisterRange("%r", 3), ast.RegisterRange("x"))
    (table, other) = parse_text(HEAD + ".const .u32 t[2] = {1, 2}, o;").variables
    assert (str(table.initializer), table.name, other.name) == ("{1, 2}", "t", "o")


def test_locations_with_inlining() -> None:
    plain, inlined = statements(".loc 1 2 3 .loc 2 4 5, function_name $L_s+16, inlined_at 1 9 7")
    assert plain == ast.SourceLine(1, 2, 3)
    assert inlined == ast.SourceLine(2, 4, 5, (1, 9, 7), "$L_s+16")


@pytest.mark.parametrize(
    ("body", "line", "column", "message"),
    [
        ("add.s32 %r1 %r2;", 6, 13, "unexpected '%r2'; expected ',' or ';'"),
        ("ld.global.u32 %r1, [%rd1;", 6, 25, "unexpected ';'; expected ',' or ']'"),
        ("@%p1 $L;", 6, 6, "unexpected '$L'; expected an instruction"),
        ("@#p1 ret;", 6, 2, "unexpected character '#'; expected '!' or a name"),
        ("add.s32 %r1, %r2\n\n ret;", 6, 17, "expected ';'"),
        ("ret", 6, 4, "expected ';'"),
        (".reg .b33 %r;", 6, 6, "unexpected '.b33'; expected '.align' or a type or a vector length"),
    ],
)
def test_syntax_errors(body: str, line: int, column: int, message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        statements(body)
    (found,) = caught.value.diagnostics
    assert (found.file, found.line, found.column, found.message) == ("k.ptx", line, column, message)


@pytest.mark.parametrize("text", ["", HEAD + ".entry k() {", HEAD + ".entry k() { ret; "])
def test_files_that_end_early(text: str) -> None:
    with pytest.raises(DiagnosticError, match="unexpected end of the file"):
        parse_text(text)


def test_a_hundred_lines_parse_fast() -> None:
    body = "\n".join(f"add.s32 %r{n}, %r{n + 1}, {n};" for n in range(100))
    times = []
    for _ in range(3):
        start = time.process_time()
        statements(body)
        times.append(time.process_time() - start)
    assert min(times) < 0.1


def test_tables_are_kept_in_a_private_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = (Path(__file__).parent / "ptx" / "dot.ptx").read_text()
    expected = parse_text(text)
    folder = tmp_path / "qgpu" / "tables"
    for damage in (None, b"", b"damaged"):
        parser._parser.cache_clear()
        assert parse_text(text) == expected
        (tables,) = folder.iterdir()
        assert tables.stat().st_size > 1000
        if damage is not None:
            tables.write_bytes(damage)
    folder.chmod(0o777)
    assert parser._cache_file() is None
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    assert parser._cache_file() is None
