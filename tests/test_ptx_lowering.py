"""PTX kernels to IR: control flow, pointers, memory, source lines, and what is refused."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import launches
from ptx_texts import HEAD, LOADS, kernel, launch, lower, messages, printed, refusal
from qgpu.ir import Function
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.verifier import verify
from qgpu.toolchain.cuda import COMPILERS, CudaOptions
from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.ptx.lower import lower_module
from qgpu.toolchain.ptx.parser import parse

# ---------------------------------------------------------------- control flow


def test_a_guarded_instruction_acts_where_its_guard_holds() -> None:
    body = """
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %l3, %r2, 4;
    add.s64 %l3, %l2, %l3;
    setp.lt.u32 %p1, %r2, 2;
    mov.u32 %r3, 100;
    @%p1 mov.u32 %r3, 200;
    @!%p1 st.global.u32 [%l3+8], %r3;
    @%p1 st.global.u32 [%l3], %r3;
    """
    assert launch(body, threads=4) == [200, 200, 3, 4, 100, 100, 7, 8]


@pytest.mark.parametrize(("end", "expected"), [("ret", [1, 2, 9, 9]), ("exit", [1, 2, 9, 9])])
def test_a_guarded_return_ends_its_threads_alone(end: str, expected: list[int]) -> None:
    body = f"""
    mov.u32 %r2, %tid.x;
    mad.wide.u32 %l3, %r2, 4, %l2;
    setp.lt.u32 %p1, %r2, 2;
    @%p1 {end};
    st.global.u32 [%l3], 9;
    """
    assert launch(body, threads=4, words=4) == expected


def test_a_trap_is_a_fault() -> None:
    with pytest.raises(Fault, match="trap"):
        launch("trap;")


def test_a_loop_swaps_registers() -> None:
    """Two phis that read each other: the order of the moves must not matter."""
    body = """
    mov.u32 %r2, 10;
    mov.u32 %r3, 20;
    LOOP:
    mov.u32 %r4, %r2;
    mov.u32 %r2, %r3;
    mov.u32 %r3, %r4;
    sub.s32 %r1, %r1, 1;
    setp.ne.s32 %p1, %r1, 0;
    @%p1 bra LOOP;
    st.global.v2.u32 [%l2], {%r2, %r3};
    """
    assert launch(body, n=3)[:2] == [20, 10]
    assert launch(body, n=4)[:2] == [10, 20]


def test_a_loop_that_starts_at_the_entry() -> None:
    (function,) = [lower(kernel("L: ld.param.u32 %r1, [n]; setp.eq.s32 %p1, %r1, 0; @%p1 bra L;"))]
    assert function.predecessors()[function.entry] == []


def test_code_that_nothing_reaches_is_left_out() -> None:
    assert printed("bra.uni END; brev.b32 %r1, %r1; END:") == ["entry:", "br END", "END:", "ret"]


def test_a_branch_to_the_next_instruction() -> None:
    body = "ld.param.u32 %r1, [n]; setp.eq.s32 %p1, %r1, 0; @%p1 bra next; next:"
    lines = ["%0 = icmp eq %n, i32 0 : i1", "condbr %0, next.1, next", "next:", "br next.1", "next.1:", "ret"]
    assert printed(body) == ["entry:", *lines]


def test_scopes_keep_registers_apart() -> None:
    body = """
    { .reg .u32 %x; mov.u32 %x, 3; st.global.u32 [%l2], %x; { .reg .u32 %x; mov.u32 %x, 4;
      st.global.u32 [%l2+4], %x; } st.global.u32 [%l2+8], %x; }
    """
    assert launch(body)[:3] == [3, 4, 3]


def test_an_undefined_register_is_undefined_on_its_path_alone() -> None:
    lines = printed(
        "ld.param.u32 %r1, [n]; setp.eq.s32 %p1, %r1, 0; @%p1 mov.u32 %r2, 7; ld.param.u64 %l1, [a];"
        "st.global.u32 [%l1], %r2;"
    )
    assert "%1 = undef : i32" in lines
    assert "%2 = phi [%1, entry], [i32 7, guarded] : i32" in lines


def switch(count: int, targets: str, guard: str = "") -> str:
    """A kernel that goes to the label that n chooses; each case stores its number."""
    cases = "".join(f"C{i}: mov.u32 %r3, {i}; bra END;" for i in range(count))
    return f"""
    mov.u32 %r3, 99;
    ts: .branchtargets {targets};
    {guard} brx.idx %r1, ts;
    bra END;
    {cases}
    END: st.global.u32 [%l2], %r3;
    """


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
def test_an_indexed_branch(count: int) -> None:
    body = switch(count, ", ".join(f"C{i}" for i in range(count)))
    assert [launch(body, n=n)[0] for n in range(count)] == list(range(count))


def test_an_indexed_branch_to_few_labels() -> None:
    body = switch(2, "C0, C0, C1, C0, C1, C1, C1, C0")
    assert [launch(body, n=n)[0] for n in range(8)] == [0, 0, 1, 0, 1, 1, 1, 0]
    assert sum(line.startswith("condbr") for line in printed(LOADS + switch(2, "C0, C0, C0, C1"))) == 2


def test_a_guarded_indexed_branch() -> None:
    body = "setp.lt.u32 %p1, %r1, 2;" + switch(2, "C1, C0", "@%p1")
    assert [launch(body, n=n)[0] for n in range(3)] == [1, 0, 99]


@pytest.mark.parametrize("body", ["brx.idx %r1, nowhere;", "brx.idx %r1;", "L: brx.idx %r1, L;"])
def test_indexed_branches_that_are_refused(body: str) -> None:
    assert messages(body) == ["brx.idx takes an index and the name of a .branchtargets list"]


def test_labels_belong_to_their_scope() -> None:
    """Inlined assembly repeats labels in braces of its own, and goes to those around it."""
    body = """
    mov.u32 %r2, 0;
    { AGAIN: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 3; @%p1 bra AGAIN; }
    { AGAIN: add.u32 %r2, %r2, 10; setp.lt.u32 %p1, %r2, 30; @%p1 bra AGAIN; bra OUT; }
    mov.u32 %r2, 0;
    OUT: st.global.u32 [%l2], %r2;
    """
    assert launch(body)[0] == 33


def test_a_label_of_an_inner_scope_is_not_seen() -> None:
    assert messages("bra IN; { IN: }") == ["the branch target is not a label of this kernel"]


def test_flow_that_enters_a_loop_in_two_places() -> None:
    body = """
    mov.u32 %r2, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra SECOND;
    FIRST: add.u32 %r2, %r2, 1;
    SECOND: add.u32 %r2, %r2, 10; setp.lt.u32 %p2, %r2, 25; @%p2 bra FIRST;
    st.global.u32 [%l2], %r2;
    """
    assert launch(body, n=0)[0] == 32
    assert launch(body, n=1)[0] == 33


def test_vector_registers() -> None:
    body = ".reg .v2 .u32 v; mov.u32 v.x, 5; add.u32 v.y, v.x, 1; st.global.v2.u32 [%l2], {v.y, v.x};"
    assert launch(body)[:2] == [6, 5]


# ---------------------------------------------------------------------- memory


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ("ld.global.u8 %h1, [%l2]; cvt.u32.u16 %r1, %h1;", 0xFE),
        ("ld.global.s8 %h1, [%l2]; cvt.u32.u16 %r1, %h1;", 0xFFFE),
        ("ld.global.s8 %r1, [%l2];", 0xFFFFFFFE),
        ("ld.global.b8 %r1, [%l2];", 0xFE),
        ("ld.global.u16 %r1, [%l2];", 0xCDFE),
        ("ld.global.s16 %r1, [%l2];", 0xFFFFCDFE),
        ("ld.global.nc.u32 %r1, [%l2];", 0x89ABCDFE),
        ("ld.volatile.global.f32 %f1, [%l2]; mov.b32 %r1, %f1;", 0x89ABCDFE),
        ("ld.global.s32 %l3, [%l2]; shr.u64 %l3, %l3, 16; cvt.u32.u64 %r1, %l3;", 0xFFFF89AB),
        ("ld.global.L1::evict_last.v2.u16 {%h1, %h2}, [%l2]; cvt.u32.u16 %r1, %h2;", 0x89AB),
        ("ld.relaxed.gpu.global.v4.u8 {_, _, %r1, _}, [%l2];", 0xAB),
        ("ld.u8 %r1, [%l2+1];", 0xCD),
    ],
)
def test_loads_extend_to_their_register(load: str, expected: int) -> None:
    body = f"mov.u32 %r5, {0x89ABCDFE}; st.global.u32 [%l2], %r5; {load} st.global.u32 [%l2+4], %r1;"
    assert launch(body)[1] == expected


def test_stores_write_their_type_alone() -> None:
    body = """
    mov.u32 %r2, 0xAABBCCDD; mov.b64 %l3, {%r2, %r2}; cvt.u16.u32 %h1, %r2;
    st.global.u8 [%l2+1], %r2;
    st.global.u16 [%l2+4], %l3;
    st.global.v2.u8 [%l2+8], {%h1, 5};
    st.global.f32 [%l2+12], 0f3F800000;
    st.global.u64 [%l2+16], %l3;
    """
    assert launch(body)[:6] == [0xDD01, 0xCCDD, 0x05DD, 0x3F800000, 0xAABBCCDD, 0xAABBCCDD]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("add.u32", 0), ("add.s32", 0), ("min.s32", 0xFFFFFFFF), ("max.s32", 1), ("min.u32", 1),
     ("max.u32", 0xFFFFFFFF), ("and.b32", 1), ("or.b32", 0xFFFFFFFF), ("xor.b32", 0xFFFFFFFE),
     ("exch.b32", 0xFFFFFFFF)],
)  # fmt: skip
@pytest.mark.parametrize("qualifiers", ["global", "relaxed.gpu.global", "acq_rel.sys.global"])
def test_atomics(operation: str, expected: int, qualifiers: str) -> None:
    body = f"atom.{qualifiers}.{operation} %r2, [%l2], -1; st.global.u32 [%l2+4], %r2;"
    assert launch(body)[:2] == [expected, 1]
    if "exch" not in operation:
        assert launch(f"red.{qualifiers}.{operation} [%l2], -1;")[:2] == [expected, 2]


def test_shared_arrays_are_addressed_in_32_or_64_bits() -> None:
    """Thread t reads what thread 3 - t wrote before the barrier."""
    body = """
    .shared .align 4 .b8 s[16];
    mov.u32 %r2, %tid.x;
    shl.b32 %r3, %r2, 2;
    mov.u32 %r4, s;
    add.s32 %r5, %r4, %r3;
    st.shared.u32 [%r5], %r2;
    bar.sync 0;
    mov.u64 %l3, s;
    cvta.shared.u64 %l4, %l3;
    mul.wide.u32 %l5, %r2, 4;
    sub.s64 %l6, %l4, %l5;
    ld.u32 %r6, [%l6+12];
    add.s64 %l7, %l2, %l5;
    st.global.u32 [%l7], %r6;
    ld.shared.u32 %r7, [s+4];
    st.global.u32 [%l7+16], %r7;
    """
    assert launch(body, threads=4) == [3, 2, 1, 0, 1, 1, 1, 1]


def test_arrays_become_arrays_of_the_function() -> None:
    body = (
        ".shared .align 8 .v2 .u16 s[3][5]; .local .b8 l[7]; mov.u64 %l1, s; mov.u64 %l2, l; mov.u64 %l3, s;"
    )
    arrays = lower(kernel(body)).shared
    assert [(a.name, a.space, a.size, a.align) for a in arrays] == [
        ("s", "shared", 60, 8),
        ("l", "local", 7, 1),
    ]


def test_arrays_of_open_size_lie_behind_the_others() -> None:
    source = kernel(".shared .b8 s[5]; mov.u64 %l1, d; mov.u64 %l2, s; mov.u64 %l3, e;")
    declared = ".extern .shared .align 4 .b8 d[];\n.extern .shared .align 8 .b8 e[];\n.visible"
    arrays = lower(source.replace(".visible", declared)).shared
    assert [(a.name, a.size, a.align) for a in arrays] == [("s", 5, 1), ("d", 0, 16), ("e", 0, 16)]


def test_parameters_of_all_widths() -> None:
    parameters = ".param .u64 a, .param .u8 c, .param .s16 h, .param .u64 w"
    body = """
    ld.param.u64 %l1, [a];
    ld.param.s8 %r1, [c];
    st.global.u32 [%l1], %r1;
    ld.param.u8 %h1, [c];
    st.global.u16 [%l1+4], %h1;
    ld.param.s16 %r2, [h];
    st.global.u32 [%l1+8], %r2;
    ld.param.u64 %l2, [w];
    st.global.u64 [%l1+16], %l2;
    ld.param.u32 %r3, [w];
    st.global.u32 [%l1+12], %r3;
    """
    out = np.zeros(6, dtype=np.uint32)
    interpret(lower(kernel(body, parameters)), [out.data, 0xFE, 0x8001, 0x1122334455667788])
    assert out.tolist() == [0xFFFFFFFE, 0xFE, 0xFFFF8001, 0x55667788, 0x55667788, 0x11223344]


def test_special_registers() -> None:
    names = [f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"]
    lines = printed("".join(f"mov.u32 %r1, %{name};" for name in [*names, "laneid", "warpid"]))
    assert [line.split(" = ")[1] for line in lines[1:-1]] == [
        f"sreg {name} : i32" for name in [*names, "laneid", "warpid"]
    ]


def test_thread_limits() -> None:
    source = Source("k.ptx", f"{HEAD}.entry k() .maxntid 32, 4, 1 {{ ret; }} .entry m() {{ ret; }}")
    limited, free = lower_module(parse(source), source).functions
    assert (limited.attrs, free.attrs) == ({"max_threads": 128}, {})


# -------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "instruction", ["add.f32 %f1, %f2, %f3;", "add.sat.u32 %r1, %r1, %r1;", "frobnicate.b32 %r1;"]
)
def test_unsupported_instructions(instruction: str) -> None:
    name = instruction.split()[0]
    (message,) = messages(instruction)
    assert message.startswith(f"unsupported instruction '{name}': ")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("bra NOWHERE;", "the branch target is not a label of this kernel"),
        ("L: L:", "label 'L' is defined twice"),
        ("@%r1 bra L; L:", "'%r1' is not a predicate register"),
        ("add.s32 %r1, %l1, 2;", "operand has 64 bits where 32 are needed"),
        ("add.s32 %l1, %r1, 2;", "the result has 32 bits, its register 64"),
        ("add.s32 5, %r1, 2;", "the result has to go to a declared register"),
        ("setp.lt.b32 %p1, %r1, 2;", "'lt' does not compare operands of type b32"),
        ("mov.u32 %r1, nobody;", "name 'nobody' is not supported"),
        ("ld.param.u32 %r1, [nobody];", "'nobody' is not a parameter of this kernel"),
        ("ld.param.u32 %r1, [n+4];", "the access lies outside of 'n', which has 4 bytes"),
        ("ld.param.u64 %l1, [a+4];", "the access lies outside of 'a', which has 8 bytes"),
        ("ld.param.u32 %r1, [a+2];", "an access of 4 bytes at byte 2 of 'a'"),
    ],
)  # fmt: skip
def test_ill_formed_kernels(body: str, message: str) -> None:
    assert messages(body) == [message]


def test_32_bit_addresses_are_refused() -> None:
    assert "k.ptx: error: addresses of 32 bits are not supported" in refusal(
        kernel("").replace(".address_size 64", ".address_size 32")
    )


def test_all_unsupported_instructions_are_reported_with_their_cuda_lines(tmp_path: Path) -> None:
    cuda = tmp_path / "k.cu"
    cuda.write_text("first\n  second(x);\n")
    body = "\n.loc 1 2 3\nprmt.b32 %r1, %r2;\n.loc 1 1 1\nbrev.b32 %r3;\n"
    needs = "this form of the instruction is not known"
    name = str(cuda)
    assert refusal(kernel(f'{body}ret; }} .file 1 "{cuda}"\n.entry q() {{')).splitlines() == [
        f"k.ptx:13:1: error: unsupported instruction 'prmt.b32': {needs}",
        "prmt.b32 %r1, %r2;",
        "^~~~~~~~",
        f"{name}:2:3: note: compiled from here",
        "  second(x);",
        "  ^",
        f"k.ptx:15:1: error: unsupported instruction 'brev.b32': {needs}",
        "brev.b32 %r3;",
        "^~~~~~~~",
        f"{name}:1:1: note: compiled from here",
        "first",
        "^",
    ]


# ---------------------------------------------------------------- source lines


def test_instructions_know_their_cuda_lines() -> None:
    body = """
    ld.param.u32 %r1, [n];
    .loc 1 3 5
    add.s32 %r2, %r1, 1;
    .loc 1 0 5
    add.s32 %r3, %r2, 1;
    .loc 2 900 7, function_name $L_s, inlined_at 1 4 9
    add.s32 %r4, %r3, 1;
    ret; } .file 1 "k.cu" .file 2 "header.h" .entry q() {
    """
    source = Source("k.ptx", kernel(body))
    function = lower_module(parse(source), source).function("k")
    places = [str(instruction.loc) for instruction in function.entry if instruction.op == "add"]
    assert places == ["k.cu:3:5", "k.cu:3:5", "k.cu:4:9"]


def test_without_line_information_the_ptx_line_counts() -> None:
    function = lower(kernel("\nld.param.u32 %r1, [n];\n  add.s32 %r2, %r1, 1;"))
    assert str(next(iter(function.entry)).loc) == "k.ptx:13:3"


def test_a_line_of_a_file_without_a_name_counts_as_none() -> None:
    function = lower(kernel("\n.loc 7 3 1\nld.param.u32 %r1, [n];\nadd.s32 %r2, %r1, 1;"))
    assert str(next(iter(function.entry)).loc) == "k.ptx:14:1"


# -------------------------------------------------------------------- examples


@cache
def functions(path: Path, architecture: str = "compute_75") -> dict[str, Function]:
    """The kernels of a CUDA file by their names."""
    cuda = Source(str(path), path.read_text())
    ptx = Source("k.ptx", COMPILERS["nvrtc"].compile(cuda, CudaOptions(architecture=architecture)).text)
    return {function.name: function for function in lower_module(parse(ptx), ptx, cuda=cuda).functions}


@pytest.mark.parametrize("launch", launches.LAUNCHES, ids=lambda launch: launch.id)
def test_examples_compute_what_they_should(launch: launches.Launch) -> None:
    function = functions(launch.file)[launch.kernel]
    args = launch.fresh_args()
    buffers = [arg.data if isinstance(arg, np.ndarray) else arg for arg in args]
    interpret(function, buffers, launch.grid, launch.block)
    arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
    for found, expected in zip(arrays, launch.expect(), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("architecture", ["compute_75", "compute_100"])
@pytest.mark.parametrize("path", sorted(launches.HERE.glob("*.cu")), ids=lambda path: path.stem)
def test_examples_lower_for_both_generations_of_nvvm(path: Path, architecture: str) -> None:
    for function in functions(path, architecture).values():
        verify(function)
        assert {i.loc.file for i in function.instructions if i.loc} == {str(path)}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is a second source of PTX")
def test_examples_lower_from_nvcc(tmp_path: Path) -> None:
    source, out = tmp_path / "all.cu", tmp_path / "all.ptx"
    files = sorted(launches.HERE.glob("*.cu"))
    source.write_text("\n".join(path.read_text() for path in files))
    subprocess.run(["nvcc", "-ptx", "-lineinfo", "-arch=sm_75", source, "-o", out], check=True)
    ptx = Source("all.ptx", out.read_text())
    module = lower_module(parse(ptx), ptx)
    assert {function.name for function in module.functions} >= {launch.kernel for launch in launches.LAUNCHES}
    verify(module)
