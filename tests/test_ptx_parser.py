"""PTX text to syntax tree and back."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from qgpu.toolchain.diagnostics import DiagnosticError, Source
from qgpu.toolchain.ptx import ast, parser
from qgpu.toolchain.ptx.parser import parse
from qgpu.toolchain.ptx.printer import print_module
from qgpu.toolchain.tables import tables_file

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


def test_declarations_of_nothing() -> None:
    (registers,) = statements(".reg .b32 ; .param .b32 ; .local .b32 ;")
    assert registers.ranges == ()
    assert parse_text(HEAD + ".global .align 4 .b32 ;").variables == ()


def test_initial_values() -> None:
    text = ".global .u64 v[] = {{1, -2}, x+4, generic(x)+8, 0xFF00(generic(x)), 1.5, a = b};"
    (variable,) = parse_text(HEAD + text).variables
    assert isinstance(variable.initializer, ast.Aggregate)
    values: tuple[Any, ...] = variable.initializer.values
    pair, offset, generic, masked, number, setting = values
    assert str(pair) == "{1, -2}"
    assert (str(offset), offset.offset) == ("x+4", 4)
    assert (str(generic.base), generic.offset) == ("x", 8)
    assert (masked.mask, str(masked.address)) == (0xFF00, "generic(x)")
    assert number.bits == 0x3FF8000000000000
    assert (setting.name, str(setting.value)) == ("a", "b")


def test_attributes_and_qualifiers_in_any_order() -> None:
    variable = ".global .attribute(.managed, .unified(1, 0xF)) .align 8 .v2 .f32 v;"
    module = parse_text(f"{HEAD}{variable} .weak .func .attribute(.managed) f();")
    assert module.variables[0].attributes == (("managed", ()), ("unified", (1, 15)))
    assert (module.variables[0].align, module.variables[0].vector) == (8, "v2")
    assert module.functions[0].attributes == (("managed", ()),)


def test_functions_and_their_declarations() -> None:
    text = (
        ".extern .func (.param .b32 r) f(.param .align 8 .b8 a[16], .reg .f64 b);"
        ".func g() .noreturn .abi_preserve 3 { ret; } .alias h, g;"
        ".entry e(.param .u32 a); .entry k() { ret; }"
    )
    module = parse_text(HEAD + text)
    declared, defined = module.functions
    assert (declared.name, declared.linkage, declared.body) == ("f", "extern", None)
    assert [(p.space, p.type, p.name, p.extents) for p in (*declared.results, *declared.parameters)] == [
        ("param", "b32", "r", ()),
        ("param", "b8", "a", (16,)),
        ("reg", "f64", "b", ()),
    ]
    assert defined.performance == (("noreturn", ()), ("abi_preserve", (3,)))
    assert [(alias.name, str(alias.target)) for alias in module.aliases] == [("h", "g")]
    assert [entry.name for entry in module.entries] == ["k"]


@pytest.mark.parametrize(
    ("text", "results", "callee", "arguments", "targets"),
    [
        ("call f;", "", "f", "", None),
        ("call f, ();", "", "f", "", None),
        ("call f, (%r1, 3);", "", "f", "%r1 3", None),
        ("call.uni (%r1), f;", "%r1", "f", "", None),
        ("@p call (%r1), f, (a);", "%r1", "f", "a", None),
        ("call %rd1, table;", "", "%rd1", "", "table"),
        ("call (r), %rd1, (a, b), shape;", "r", "%rd1", "a b", "shape"),
    ],
)
def test_parts_of_calls(text: str, results: str, callee: str, arguments: str, targets: str | None) -> None:
    (found,) = statements(text)
    assert found.opcode == "call"
    assert " ".join(map(str, found.call.results)) == results
    assert str(found.call.callee) == callee
    assert " ".join(map(str, found.call.arguments)) == arguments
    assert (found.call.targets and found.call.targets.text) == targets


def test_only_calls_have_the_parts_of_a_call() -> None:
    (found,) = statements("mov.u32 %r1, %r2;")
    with pytest.raises(ValueError, match="calls nothing"):
        _ = found.call


def test_targets_of_branches_and_calls() -> None:
    branch, call, shape = statements(
        "b: .branchtargets x, y<3>; c: .calltargets f, g;"
        "p: .callprototype (.param .b32 _) _ (.reg .b64 _) .noreturn;"
    )
    assert (branch.name, [str(label) for label in branch.labels]) == ("b", ["x", "y0", "y1", "y2"])
    assert (call.name, [str(function) for function in call.functions]) == ("c", ["f", "g"])
    assert (shape.name, shape.performance) == ("p", (("noreturn", ()),))
    assert [(p.space, p.type, p.name) for p in (*shape.results, *shape.parameters)] == [
        ("param", "b32", "_"),
        ("reg", "b64", "_"),
    ]


def test_ranges_of_labels_have_an_end() -> None:
    with pytest.raises(DiagnosticError, match="more than 65536 labels"):
        statements("b: .branchtargets y<999999999>;")


def test_debug_sections() -> None:
    (section,) = parse_text(
        HEAD + ".section .debug_str { a: .b8 1, -2 .b32 a+4 .b64 a-a .b32 .debug_line b: }"
    ).items
    assert section == ast.Section(
        ".debug_str",
        (
            "a",
            ast.DebugData("b8", (1, -2)),
            ast.DebugData("b32", ("a+4",)),
            ast.DebugData("b64", ("a-a",)),
            ast.DebugData("b32", (".debug_line",)),
            "b",
        ),
    )


def test_old_debug_lines_and_line_markers() -> None:
    module = parse_text(f'{HEAD}@@DWARF .byte 1\n# 7 "a.cu"\n.entry k() {{ @@DWARF .byte 2\n ret; }}')
    assert module.items[0] == ast.Dwarf("@@DWARF .byte 1")
    assert module.entries[0].body.statements[0] == ast.Dwarf("@@DWARF .byte 2")


def test_addresses_have_32_bits_where_no_size_is_given() -> None:
    assert parse_text(".version 6.0 .target sm_70 .entry k() { ret; }").address_size == 32


def test_modifiers_may_stand_apart_and_names_may_be_opcodes() -> None:
    add, jump = statements("ret: add .s32\n.sat add, mov, ret; bra ret;")[1:]
    assert (add.name, [str(operand) for operand in add.operands]) == ("add.s32.sat", ["add", "mov", "ret"])
    assert str(jump.operands[0]) == "ret"


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


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (".entry k() {}", "a PTX file starts with '.version 9.0', '.target sm_75' and '.address_size 64'"),
        (HEAD + ".entri k() {}", "did you mean '.entry'?"),
        (HEAD + ".entry k() .maxntd 3 {}", "did you mean '.maxntid'?"),
        (HEAD + ".global u32 x;", "did you mean '.u32'?"),
        (HEAD + ".entry k() { .reg .b33 %r; }", "did you mean '.b32'?"),
        (HEAD + ".entry k() { ;ret; }", "there is no empty statement; leave out the ';'"),
        (
            HEAD + ".entry k() { @p { ret; } }",
            "a guard holds for one instruction; to guard several, branch around",
        ),
        (HEAD + ".entry k() { call f (a); }", "a call is written 'call (results), function, (arguments);'"),
        (HEAD + ".entry k() { .branchtargets a; }", "give the list a label: 'name: .branchtargets ...;'"),
        (HEAD + ".entry k() { mov.u32 r, 5u; }", "a number may end in 'U' and in no other suffix"),
        (HEAD + ".entry k() { ld.u32 r, [a-4]; }", "write a negative offset as 'name+-4'"),
        (HEAD + ".entry k() { MOV.u32 a, b; }", "instructions are written in lower case"),
        (HEAD + ".entry k() { /* ret; }", "a comment that starts with '/*' ends with '*/'"),
        (HEAD + '.pragma "nounroll;\n', "a string ends on the line it starts on"),
        (HEAD + ".entry k() { ret\n}", "every declaration and instruction ends with ';'"),
        (HEAD + ".entry k() { { ret; }", "to match this '{'"),
    ],
)
def test_notes_say_what_to_write(text: str, note: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse_text(text)
    (found,) = caught.value.diagnostics
    assert found.line and found.column
    assert note in found.notes[0].message


def test_the_note_on_an_open_brace_shows_its_place() -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse_text(f"{HEAD}.entry k()\n{{ // {{\n {{ ret; }}\n ret;\n")
    (note,) = caught.value.diagnostics[0].notes
    assert (note.line, note.column) == (5, 1)


@pytest.mark.parametrize(
    "text", [".entry k() " + "{" * 5000, ".global .u32 x = " + "{" * 5000 + "}" * 5000 + ";"]
)
def test_deep_braces_are_refused(text: str) -> None:
    with pytest.raises(DiagnosticError):
        parse_text(HEAD + text)
    with pytest.raises(DiagnosticError, match="more than 100 braces in one another"):
        parse_text(f"{HEAD}.entry k() {'{' * 101}{'}' * 101}")


@pytest.mark.parametrize("text", ["", HEAD + ".entry k() {", HEAD + ".entry k() { ret; "])
def test_files_that_end_early(text: str) -> None:
    with pytest.raises(DiagnosticError, match="unexpected end of the file"):
        parse_text(text)


def test_two_thousand_lines_parse_in_a_second() -> None:
    text = (FILES[0].parent / "nvcc_directives.ptx").read_text()
    head, kernel = text[: text.index(".visible .entry")], text[text.index(".visible .entry") :]
    copies = 2000 // kernel.count("\n") + 1
    text = head + "\n".join(kernel.replace("shared_sum", f"kernel_{number}") for number in range(copies))
    assert text.count("\n") >= 2000
    parse_text(head)
    times = []
    for _ in range(3):
        start = time.process_time()
        parse_text(text)
        times.append(time.process_time() - start)
    assert min(times) < 1


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
    assert tables_file("ptx") is None
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    assert tables_file("ptx") is None
