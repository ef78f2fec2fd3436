"""What the LLVM IR front end refuses: the line with a caret, and a note that says what to do."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from qgpu.toolchain.compile import compile_to_ir
from qgpu.toolchain.diagnostics import DiagnosticError
from qgpu.toolchain.llvm.reader import disassemble

_TARGET = 'target triple = "nvptx64-nvidia-cuda"\n'
_KERNEL = "define ptx_kernel void @k(ptr %p, i32 %n, i64 %m) {{\n{body}\n  ret void\n}}\n"
_HERE = " ; here"


@dataclass(frozen=True)
class Case:
    """A body, `; here` at the line at fault, what the caret is `under`, and what comes `after` the kernel."""

    body: str
    under: str
    message: str
    note: str = ""
    after: str = ""

    @property
    def text(self) -> str:
        return _TARGET + _KERNEL.format(body=self.body) + self.after


CASES = {
    "float arithmetic": Case(
        "  %f = bitcast i32 %n to float\n  %fmul = fmul float %f, 2.0 ; here",
        "fmul float",
        "unsupported instruction 'fmul': it needs floating-point arithmetic",
        "use fixed point",
    ),
    "float conversion": Case(
        "  %f = uitofp i32 %n to float ; here",
        "uitofp",
        "unsupported instruction 'uitofp': it needs floating-point arithmetic",
        "use fixed point",
    ),
    "float comparison": Case(
        "  %f = bitcast i32 %n to float\n  %c = fcmp olt float %f, 1.0 ; here",
        "fcmp",
        "unsupported instruction 'fcmp': it needs floating-point arithmetic",
        "use fixed point",
    ),
    "float intrinsic": Case(
        "  %f = bitcast i32 %n to float\n  %g = call float @llvm.sqrt.f32(float %f) ; here",
        "call",
        "unsupported intrinsic 'llvm.sqrt.f32': it needs floating-point arithmetic",
        "use fixed point",
        "declare float @llvm.sqrt.f32(float)",
    ),
    "float atomic": Case(
        "  %f = atomicrmw fadd ptr %p, float 1.0 seq_cst ; here",
        "atomicrmw",
        "unsupported instruction 'atomicrmw fadd'",
        "use fixed point",
    ),
    "atomic nand": Case(
        "  %f = atomicrmw nand ptr %p, i32 1 seq_cst ; here",
        "atomicrmw",
        "unsupported instruction 'atomicrmw nand'",
        "a loop of cmpxchg",
    ),
    "narrow atomic": Case(
        "  %f = atomicrmw add ptr %p, i8 1 seq_cst ; here",
        "atomicrmw",
        "unsupported instruction 'atomicrmw': atomic operations on 8 bits",
        "use 32 or 64 bits",
    ),
    "wide number": Case(
        "  %w = zext i64 %m to i128 ; here\n  %x = mul i128 %w, %w",
        "zext",
        "unsupported instruction 'zext': numbers of 128 bits",
        "the widest have 64",
    ),
    "odd width in memory": Case(
        "  %w = load i24, ptr %p ; here",
        "load",
        "unsupported instruction 'load': numbers of 24 bits in memory",
        "use 8, 16, 32 or 64 bits",
    ),
    "vector of bits in memory": Case(
        "  %w = load <8 x i1>, ptr %p ; here",
        "load",
        "unsupported instruction 'load': vectors of i1 in memory",
        "extend the elements to bytes",
    ),
    "pointer in a buffer": Case(
        "  %q = load ptr, ptr %p ; here\n  store i32 1, ptr %q",
        "load",
        "a pointer is loaded from a buffer, where only numbers lie",
        "pass each buffer as a parameter of its own",
    ),
    "pointer to a buffer": Case(
        "  store ptr %p, ptr %p ; here",
        "store",
        "a pointer is stored to a buffer, where nothing can load it from again",
        "pass each buffer as a parameter of its own",
    ),
    "number as pointer": Case(
        "  %q = inttoptr i64 %m to ptr ; here\n  store i32 1, ptr %q",
        "inttoptr",
        "a number becomes a pointer",
        "addresses come from parameters",
    ),
    "address as number": Case(
        "  %a = ptrtoint ptr %p to i64\n  %b = mul i64 %a, 3 ; here\n  store i64 %b, ptr %p",
        "mul",
        "an address is used as a number",
        "compute with indices",
    ),
    "recursion": Case(
        "  call void @f(i32 %n)",
        "call",
        "'@f' calls itself",
        "write the recursion as a loop",
        "define void @f(i32 %n) {\n  call void @f(i32 %n) ; here\n  ret void\n}",
    ),
    "undefined function": Case(
        "  call void @elsewhere(i32 %n) ; here",
        "call",
        "'@elsewhere' is called, which is declared here and defined elsewhere",
        "link it into the module",
        "declare void @elsewhere(i32)",
    ),
    "malloc": Case(
        "  %q = call ptr @malloc(i64 8) ; here",
        "call",
        "'@malloc' cannot be called: it needs a heap; pass a buffer to the kernel, or use an "
        "array of fixed size",
        after="declare ptr @malloc(i64)",
    ),
    "function pointer": Case(
        "  call void %p(i32 %n) ; here",
        "call",
        "unsupported instruction 'call': the function that is called is not known",
        "call it by name",
    ),
    "unknown intrinsic": Case(
        "  call void @llvm.nvvm.cp.async.mbarrier.arrive(ptr %p) ; here",
        "call",
        "unsupported intrinsic 'llvm.nvvm.cp.async.mbarrier.arrive'",
        "docs/llvm.md",
        "declare void @llvm.nvvm.cp.async.mbarrier.arrive(ptr)",
    ),
    "absent special register": Case(
        "  %r = call i32 @llvm.nvvm.read.ptx.sreg.envreg1() ; here",
        "call",
        "unsupported intrinsic 'llvm.nvvm.read.ptx.sreg.envreg1': grid groups (cooperative launch) read it, "
        "but thread blocks run one after another",
        "see docs/llvm.md for those that run",
        "declare i32 @llvm.nvvm.read.ptx.sreg.envreg1()",
    ),
    "inline assembly": Case(
        '  %r = call i32 asm "bfind.u32 $0, %laneid;", "=r"() ; here',
        "call",
        "inline PTX 'bfind.u32 $0, %laneid;'",
        "compile to PTX instead",
    ),
    "length of a copy": Case(
        "  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %m, i1 false) ; here",
        "call",
        "the number of bytes has to be a constant",
        "write a loop",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    ),
    "length of an array": Case(
        "  %a = alloca i32, i32 %n ; here\n  store i32 0, ptr %a",
        "alloca",
        "the length of a local array has to be a constant",
    ),
    "barrier of some threads": Case(
        "  call void @llvm.nvvm.barrier(i32 1, i32 %n) ; here",
        "call",
        "the number of threads at a barrier has to be a constant",
        after="declare void @llvm.nvvm.barrier(i32, i32)",
    ),
    "external variable": Case(
        "  %v = load i32, ptr addrspace(1) @g\n  store i32 %v, ptr %p",
        "@g",
        "variable '@g' cannot be used: it is declared here and defined elsewhere",
        "pass a pointer to it instead",
        "@g = external addrspace(1) global i32 ; here",
    ),
    "address in a variable": Case(
        "  %q = load ptr, ptr addrspace(1) @g\n  store i32 1, ptr %q",
        "@g",
        "variable '@g' cannot be used: its initial value holds an address, which is known at launch alone",
        "pass a pointer to it instead",
        "@v = addrspace(1) global i32 0\n"
        "@g = addrspace(1) global ptr addrspacecast (ptr addrspace(1) @v to ptr) ; here",
    ),
    "undefined value": Case("  %a = add i32 %b, 1 ; here", "%b", "use of undefined value '%b'"),
    "wrong type": Case(
        "  %a = add i32 %m, 1 ; here", "%m", "'%m' defined with type 'i64' but expected 'i32'"
    ),
    "unknown opcode": Case("  %a = addd i32 %n, 1 ; here", "addd", "expected instruction opcode"),
}


def diagnostics(text: str, name: str = "k.ll") -> list[str]:
    with pytest.raises(DiagnosticError) as raised:
        compile_to_ir(text, name, "ll")
    return str(raised.value).split("\n")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_line_and_caret(case: Case) -> None:
    number, line = next((n, line) for n, line in enumerate(case.text.split("\n"), 1) if line.endswith(_HERE))
    column = line.index(case.under)
    first, shown, caret, *notes = diagnostics(case.text)
    assert first == f"k.ll:{number}:{column + 1}: error: {case.message}"
    assert shown == line
    assert caret.index("^") == column
    assert case.note in "\n".join(notes)
    assert not case.note or notes[0].startswith("note: ")


def test_what_breaks_llvms_rules_is_refused_at_its_line() -> None:
    body = "  br label %a\na:\n  %x = phi i32 [ 0, %a ] ; here"
    text = _TARGET + _KERNEL.format(body=body)
    first, shown, *_ = diagnostics(text)
    assert first.startswith("k.ll:5:3: error: PHI node entries do not match predecessors!")
    assert shown.endswith(_HERE)


def test_broken_debug_information_is_an_error_and_not_the_end() -> None:
    text = (
        _TARGET
        + _KERNEL.format(body="  store i32 1, ptr %p, !tbaa !1")
        + '!llvm.module.flags = !{!0}\n!0 = !{i32 2, !"Debug Info Version", i32 3}\n!1 = !{!1}\n'
    )
    assert diagnostics(text)[0].startswith("k.ll:3:3: error: ")


def test_another_target() -> None:
    text = 'target triple = "x86_64-unknown-linux-gnu"\n' + _KERNEL.format(body="")
    first, hint = diagnostics(text)
    assert first == "k.ll: error: the module is for 'x86_64-unknown-linux-gnu', not for nvptx64"
    assert "--cuda-device-only" in hint


def test_no_kernel() -> None:
    assert (
        diagnostics(_TARGET + "define void @f() {\n  ret void\n}")[0] == "k.ll: error: no kernel to compile"
    )


def test_source_line_is_named() -> None:
    text = (
        _TARGET
        + """define ptx_kernel void @k(float %f) !dbg !3 {
  %g = fadd float %f, 1.0, !dbg !5
  ret void
}
!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !2, emissionKind: LineTablesOnly)
!2 = !DIFile(filename: "none.cu", directory: "/")
!3 = distinct !DISubprogram(name: "k", file: !2, line: 1, type: !4, unit: !1, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !6)
!5 = !DILocation(line: 7, column: 5, scope: !3)
!6 = !{null}
"""
    )
    assert any(line.startswith("none.cu:7:5: note: compiled from here") for line in diagnostics(text))


def test_bytes_that_are_no_bitcode() -> None:
    with pytest.raises(DiagnosticError) as raised:
        disassemble(b"text", "k.bc")
    assert str(raised.value).startswith("k.bc: error: not LLVM bitcode: ")
