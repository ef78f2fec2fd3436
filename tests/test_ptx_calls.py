"""Device functions: calls are inlined, with what they pass and return; what cannot be is refused by name."""

import struct

import numpy as np
import pytest

from ptx_texts import REGISTERS, cuda, kernel, launch, lower, messages, refusal
from qgpu.ir import IntType, Type
from qgpu.ir.interpreter import Fault, interpret
from qgpu.toolchain.ptx import graph_builder

SCALED = """
.func (.param .b32 out) scaled(.param .b32 x, .param .b32 y)
{
.reg .b32 %r<4>; .reg .pred %p1;
ld.param.u32 %r1, [x];
ld.param.u32 %r2, [y];
setp.gt.u32 %p1, %r1, 100;
@%p1 bra BIG;
mul.lo.s32 %r3, %r1, %r2;
st.param.b32 [out+0], %r3;
ret;
BIG:
st.param.b32 [out+0], 7;
ret;
}
"""


def call(x: str, y: str, result: str, guard: str = "") -> str:
    """What nvcc writes for result = scaled(x, y)."""
    return f"""
    {{
    .param .b32 param0;
    st.param.b32 [param0+0], {x};
    .param .b32 param1;
    st.param.b32 [param1+0], {y};
    .param .b32 retval0;
    {guard} call.uni (retval0), scaled, (param0, param1);
    ld.param.b32 {result}, [retval0+0];
    }}
    """


def test_arguments_and_results() -> None:
    body = call("%r1", "5", "%r2") + call("%r2", "%r2", "%r3") + "st.global.v2.u32 [%l2], {%r2, %r3};"
    assert launch(body, n=3, declarations=SCALED)[:2] == [15, 225]
    assert launch(body, n=30, declarations=SCALED)[:2] == [150, 7]


def test_the_callee_has_registers_and_labels_of_its_own() -> None:
    body = "mov.u32 %r3, 11;" + call("%r1", "1", "%r2") + "BIG: st.global.v2.u32 [%l2], {%r2, %r3};"
    assert launch(body, n=3, declarations=SCALED)[:2] == [3, 11]


def test_a_call_in_a_loop() -> None:
    body = f"""
    mov.u32 %r4, 1; mov.u32 %r5, 0;
    AGAIN: {call("%r4", "2", "%r4")}
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, %r1;
    @%p1 bra AGAIN;
    st.global.u32 [%l2], %r4;
    """
    assert launch(body, n=5, declarations=SCALED)[0] == 32


def test_a_guarded_call() -> None:
    body = """
    mov.u32 %r5, %tid.x;
    setp.eq.u32 %p1, %r5, 1;
    mad.wide.u32 %l3, %r5, 4, %l2;
    {
    .param .b32 param0; .param .b32 param1; .param .b32 retval0;
    st.param.b32 [param0], %r1; st.param.b32 [param1], 3; st.param.b32 [retval0], 1000;
    @%p1 call (retval0), scaled, (param0, param1);
    ld.param.b32 %r2, [retval0];
    }
    st.global.u32 [%l3], %r2;
    """
    assert launch(body, n=4, threads=3, declarations=SCALED)[:3] == [1000, 12, 1000]


def test_functions_that_call_functions() -> None:
    twice = f""".func (.param .b32 out) twice(.param .b32 x)
    {{ {REGISTERS} ld.param.u32 %r1, [x]; {call("%r1", "2", "%r2")} st.param.b32 [out], %r2; ret; }}
    """
    body = """{ .param .b32 p; st.param.b32 [p], %r1; .param .b32 q;
    call.uni (q), twice, (p); ld.param.b32 %r2, [q]; } st.global.u32 [%l2], %r2;"""
    assert launch(body, n=21, declarations=SCALED + twice)[0] == 42


def test_exit_in_a_function_ends_the_thread() -> None:
    quits = ".func quits(.param .b32 x) { .reg .b32 %r1; .reg .pred %p; ld.param.u32 %r1, [x];"
    quits += "setp.eq.u32 %p, %r1, 1; @%p exit; ret; }"
    body = """mov.u32 %r2, %tid.x; { .param .b32 p; st.param.b32 [p], %r2; call quits, (p); }
    mad.wide.u32 %l3, %r2, 4, %l2; st.global.u32 [%l3], 9;"""
    assert launch(body, threads=3, declarations=quits)[:3] == [9, 2, 9]


def test_a_function_that_falls_off_its_end_returns() -> None:
    assert launch("call f; st.global.u32 [%l2], 5;", declarations=".func f { .reg .b32 %r; }")[0] == 5


def test_registers_are_passed_and_returned() -> None:
    function = """.func (.reg .u32 out, .reg .pred is_zero) f(.reg .u32 x, .param .b32 y)
    { .reg .u32 %r1; ld.param.u32 %r1, [y]; sub.u32 out, x, %r1; setp.eq.u32 is_zero, out, 0; ret; }
    """
    body = """
    call (%r2, %p1), f, (%r1, 5);
    selp.u32 %r3, 1, 0, %p1;
    st.global.v2.u32 [%l2], {%r2, %r3};
    """
    assert launch(body, n=5, declarations=function)[:2] == [0, 1]
    assert launch(body, n=9, declarations=function)[:2] == [4, 0]


def test_memory_is_passed_to_registers_and_back() -> None:
    function = ".func (.reg .b32 out) f(.reg .b32 x) { add.u32 out, x, 1; ret; }"
    body = """.param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), f, (p);
    ld.param.b32 %r2, [q]; st.global.u32 [%l2], %r2;"""
    assert launch(body, n=8, declarations=function)[0] == 9


def test_a_result_into_a_register() -> None:
    body = "call (%r2), scaled, (%r1, 4); st.global.u32 [%l2], %r2;"
    assert launch(body, n=8, declarations=SCALED)[0] == 32


def test_values_are_put_together_from_the_parts_that_were_stored() -> None:
    function = """.func (.param .align 8 .b8 out[16]) f(.param .align 8 .b8 x[16])
    { .reg .b32 %r<4>; .reg .b64 %l1; .reg .b16 %h<5>;
    ld.param.u64 %l1, [x]; ld.param.u16 %h1, [x+10]; ld.param.s8 %r1, [x+9];
    ld.param.v2.u32 {%r2, %r3}, [x+8];
    st.param.v4.b8 [out], {%h1, %h1, 1, 2}; st.param.b32 [out+4], %r1; st.param.b64 [out+8], %l1; ret; }
    """
    body = """
    .param .align 8 .b8 p[16]; .param .align 8 .b8 q[16];
    st.param.v2.b32 [p], {0x11223344, 0x55667788}; st.param.b32 [p+8], 0x99AA80CC;
    call (q), f, (p);
    ld.param.u32 %r2, [q]; ld.param.u32 %r3, [q+4]; ld.param.v2.u32 {%r4, %r5}, [q+8];
    st.global.v4.u32 [%l2], {%r2, %r3, %r4, %r5};
    """
    expected = [0x0201AAAA, 0xFFFFFF80, 0x11223344, 0x55667788]
    assert launch(body, declarations=function)[:4] == expected


def test_arguments_that_are_indexed_lie_in_an_array() -> None:
    function = """.func (.param .b32 out) pick(.param .align 4 .b8 x[16], .param .b32 i)
    { .reg .b32 %r<4>; .reg .b64 %l<4>;
    ld.param.u32 %r1, [i]; mov.b64 %l1, x; mul.wide.u32 %l2, %r1, 4; add.s64 %l3, %l1, %l2;
    ld.param.u32 %r2, [%l3]; st.param.b32 [out], %r2; ret; }
    """
    body = """
    .param .align 4 .b8 p[16]; .param .b32 q;
    st.param.v4.b32 [p], {10, 20, 30, 40};
    call (q), pick, (p, %r1); ld.param.u32 %r2, [q]; st.global.u32 [%l2], %r2;
    """
    assert [launch(body, n=n, declarations=function)[0] for n in range(4)] == [10, 20, 30, 40]


POINTER_SUM = """.func (.param .b32 out) total(.param .b64 p)
{ .reg .b32 %r<4>; .reg .b64 %l1; ld.param.u64 %l1, [p];
ld.u32 %r1, [%l1]; ld.u32 %r2, [%l1+4]; add.u32 %r3, %r1, %r2; st.param.b32 [out], %r3; ret; }
"""


def test_pointers_of_each_space_are_passed() -> None:
    def total(pointer: str, result: str) -> str:
        return f"""{{ .param .b64 p; st.param.b64 [p], {pointer}; .param .b32 q;
        call.uni (q), total, (p); ld.param.b32 {result}, [q]; }}"""

    body = f"""
    .shared .b32 s[2]; .local .b32 l[2];
    st.shared.v2.u32 [s], {{10, 20}}; st.local.v2.u32 [l], {{100, 200}};
    mov.u32 %r2, s; cvt.u64.u32 %l3, %r2; cvta.shared.u64 %l3, %l3;
    mov.u64 %l4, l; cvta.local.u64 %l4, %l4;
    ld.param.u64 %l5, [a];
    {total("%l3", "%r3")} {total("%l4", "%r4")} {total("%l5", "%r5")}
    st.global.u32 [%l2], %r3; st.global.u32 [%l2+4], %r4; st.global.u32 [%l2+8], %r5;
    """
    assert launch(body, declarations=POINTER_SUM)[:3] == [30, 300, 3]


def test_a_pointer_is_returned_in_a_structure() -> None:
    function = """.func (.param .align 8 .b8 out[16]) f(.param .align 8 .b8 x[16])
    { .reg .b64 %l1; .reg .b32 %r1; ld.param.u64 %l1, [x]; ld.param.u32 %r1, [x+8];
    add.s64 %l1, %l1, 4; st.param.b64 [out], %l1; st.param.b32 [out+8], %r1; ret; }
    """
    body = """
    .param .align 8 .b8 p[16]; .param .align 8 .b8 q[16];
    ld.param.u64 %l3, [b]; st.param.b64 [p], %l3; st.param.b32 [p+8], %r1; call (q), f, (p);
    ld.param.u64 %l4, [q]; ld.param.u32 %r2, [q+8]; st.u32 [%l4], %r2;
    """
    assert launch(body, n=77, declarations=function)[:3] == [1, 77, 3]


# ---------------------------------------------------------------- indirect calls

CHOICES = """
.func (.param .b32 out) inc(.param .b32 x)
{ .reg .b32 %r1; ld.param.u32 %r1, [x]; add.u32 %r1, %r1, 1; st.param.b32 [out], %r1; ret; }
.func (.param .b32 out) dbl(.param .b32 x)
{ .reg .b32 %r1; ld.param.u32 %r1, [x]; shl.b32 %r1, %r1, 1; st.param.b32 [out], %r1; ret; }
.func (.param .b64 out) other(.param .b32 x) { ret; }
"""
INDIRECT = """
.param .b32 p; .param .b32 q; st.param.b32 [p], %r1;
proto: .callprototype (.param .b32 _) _ (.param .b32 _);
call (q), %l5, (p), proto;
ld.param.b32 %r3, [q]; st.global.u32 [%l2], %r3;
"""


def test_a_function_chosen_at_run_time() -> None:
    body = """
    mov.u64 %l3, inc; mov.u64 %l4, dbl; mov.u64 %l6, other;
    setp.gt.u32 %p1, %r1, 10; selp.b64 %l5, %l3, %l4, %p1;
    """
    assert launch(body + INDIRECT, n=20, declarations=CHOICES)[0] == 21
    assert launch(body + INDIRECT, n=4, declarations=CHOICES)[0] == 8


def test_functions_in_a_table() -> None:
    table = ".const .u64 fs[2] = {dbl, inc};\n"
    body = "mul.wide.u32 %l3, %r1, 8; mov.u64 %l4, fs; add.s64 %l3, %l3, %l4; ld.const.u64 %l5, [%l3];"
    assert launch(body + INDIRECT, n=0, declarations=CHOICES + table)[0] == 0
    assert launch(body + INDIRECT, n=1, declarations=CHOICES + table)[0] == 2


def test_call_targets_say_which_functions_are_meant() -> None:
    body = """
    mov.u64 %l3, inc; mov.u64 %l4, dbl;
    .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;
    these: .calltargets inc;
    call (q), %l3, (p), these;
    ld.param.b32 %r3, [q]; st.global.u32 [%l2], %r3;
    """
    assert launch(body, n=4, declarations=CHOICES)[0] == 5


def test_a_call_of_no_function_traps() -> None:
    body = "mov.u64 %l3, inc; setp.gt.u32 %p1, %r1, 10; selp.b64 %l5, %l3, 0, %p1;"
    with pytest.raises(Fault, match="trap"):
        launch(body + INDIRECT, n=1, declarations=CHOICES)


# ---------------------------------------------------------------------- refusals


def test_recursion_is_refused_with_its_cycle() -> None:
    functions = """
    .func g(.param .b32 x);
    .func f(.param .b32 x) { .param .b32 p; st.param.b32 [p], 1; call g, (p); ret; }
    .func g(.param .b32 x) { .param .b32 p; st.param.b32 [p], 1; call f, (p); ret; }
    """
    text = refusal(kernel(".param .b32 p; st.param.b32 [p], 1; call f, (p);", declarations=functions))
    assert text.splitlines()[0].endswith(
        "error: function 'f' calls itself, which needs a call stack: f -> g -> f"
    )
    assert "note: write the recursion as a loop, with an array as its stack" in text


@pytest.mark.parametrize(
    ("body", "declarations", "message"),
    [
        ("call f;", "", "'f' is not a function that is declared here"),
        ("call f;", ".extern .func f;",
         "function 'f' cannot be called: it is declared here and defined elsewhere; link its source in"),
        (".param .b64 p; .param .b64 q; call (p), malloc, (q);",
         ".extern .func (.param .b64 r) malloc(.param .b64 n);",
         "function 'malloc' cannot be called: it needs a heap; "
         "pass a buffer to the kernel, or use an array of fixed size"),
        ("call scaled, (%r1, %r1);", SCALED, "the call has 0 results where 'scaled' has 1"),
        ("call (%r2), scaled, (%r1);", SCALED, "the call has 1 arguments where 'scaled' has 2"),
        (".param .b64 p; call (%r2), scaled, (p, 1);", SCALED, "'p' has 8 bytes where parameter 'x' has 4"),
        ("call (%r2), %l1, (%r1), proto; proto: .callprototype (.param .b32 _) _ (.param .b32 _);", "",
         "no function has its address taken that %l1 could call"),
    ],
)  # fmt: skip
def test_calls_that_are_refused(body: str, declarations: str, message: str) -> None:
    assert messages(body, declarations=declarations) == [message]


def test_an_error_in_a_function_is_reported_once() -> None:
    function = ".func f { .reg .f32 %f<3>; add.f32 %f1, %f1, %f2; ret; }"
    assert len(messages("call f; call f;", declarations=function)) == 1


def test_growth_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_builder, "MAX_INSTRUCTIONS", 50)
    (message,) = messages(call("1", "2", "%r1") * 10, declarations=SCALED)
    assert message == "with its functions inlined, the kernel has more than 50 instructions"


def test_calls_nest_to_a_bounded_depth() -> None:
    functions = ".func f0 { ret; }" + "".join(f".func f{i} {{ call f{i - 1}; ret; }}" for i in range(1, 101))
    (message,) = messages("call f100;", declarations=functions)
    assert message == "device functions call each other more than 64 deep"


# ------------------------------------------------------------- kernel parameters


def test_a_structure_becomes_the_parts_that_are_loaded() -> None:
    function = lower(
        kernel(
            """ld.param.u64 %l1, [s]; ld.param.v2.u32 {%r1, %r2}, [s+8]; ld.param.u8 %r3, [s+17];
            ld.param.u32 %r4, [n]; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4;
            cvta.to.global.u64 %l1, %l1; st.global.u32 [%l1], %r1;""",
            ".param .align 8 .b8 s[24], .param .u32 n",
        )
    )
    assert [(arg.name, str(arg.type)) for arg in function.args] == [
        ("s.0", "ptr<global>"), ("s.8", "i32"), ("s.12", "i32"), ("s.17", "i8"), ("n", "i32"),
    ]  # fmt: skip
    assert function.attrs["parameters"] == "s[24], n"
    out = np.zeros(1, np.uint32)
    interpret(function, [out.data, 1, 20, 250, 4000])
    assert out.tolist() == [4271]


def test_a_part_of_a_wider_part() -> None:
    function = lower(
        kernel(
            "ld.param.u64 %l1, [out]; ld.param.u64 %l2, [s]; ld.param.u32 %r1, [s+4];"
            "ld.param.s16 %r2, [s+2];"
            "st.global.u64 [%l1], %l2; st.global.v2.u32 [%l1+8], {%r1, %r2};",
            ".param .u64 out, .param .align 8 .b8 s[8]",
        )
    )
    assert [arg.name for arg in function.args] == ["out", "s.0"]
    out = np.zeros(4, np.uint32)
    interpret(function, [out.data, 0x11223344_F5667788])
    assert out.tolist() == [0xF5667788, 0x11223344, 0x11223344, 0xFFFFF566]


def test_the_address_of_a_parameter_at_constant_offsets_needs_no_array() -> None:
    body = """
    mov.b64 %l3, s; add.s64 %l4, %l3, 4; cvta.param.u64 %l5, %l4;
    ld.param.u32 %r1, [%l4+4]; ld.u32 %r2, [%l5]; ld.param.u64 %l1, [out];
    st.global.v2.u32 [%l1], {%r1, %r2};
    """
    function = lower(kernel(body, ".param .u64 out, .param .align 4 .b8 s[12]"))
    assert [arg.name for arg in function.args] == ["out", "s.4", "s.8"]
    assert function.shared == []


def test_a_parameter_that_is_indexed_lies_in_an_array() -> None:
    body = """
    ld.param.u64 %l1, [out]; ld.param.u32 %r1, [i]; mov.b64 %l3, s; mul.wide.u32 %l4, %r1, 8;
    add.s64 %l5, %l3, %l4; ld.param.u64 %l6, [%l5]; ld.u32 %r2, [%l6+4]; st.global.u32 [%l1], %r2;
    """
    function = lower(kernel(body, ".param .u64 out, .param .align 8 .b8 s[16], .param .u32 i"))
    assert [str(arg.type) for arg in function.args] == ["ptr<global>", "ptr<global>", "ptr<global>", "i32"]
    for i in range(2):
        out, first, second = np.zeros(1, np.uint32), np.array([1, 2], np.uint32), np.array([3, 4], np.uint32)
        interpret(function, [out.data, first.data, second.data, i])
        assert out.tolist() == [2 + 2 * i]


# ----------------------------------------------------------------------- CUDA


STRUCTURES = """
struct S { int *p; int n; short h; char c[6]; };
__device__ __noinline__ S g(S s, int k) { s.n += k; s.c[k & 3] = k; return s; }
__device__ __noinline__ int total(const int *p, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += p[i];
    return s;
}
extern "C" __global__ void k(S s, int n) {
    S t = g(s, n);
    __shared__ int sh[4];
    int lo[4];
    for (int i = 0; i < 4; i++) lo[i] = t.c[i] * i;
    sh[threadIdx.x] = s.h;
    __syncthreads();
    s.p[threadIdx.x] = t.n + t.c[n & 3] + total(lo, n & 3) + total(sh, 4);
}
"""


@pytest.mark.parametrize("architecture", ["compute_75", "compute_100"])
def test_structures_and_pointers_from_cuda(architecture: str) -> None:
    function = cuda(STRUCTURES, architecture)
    out = np.zeros(4, np.int32)
    content = struct.pack("<Qih6b4x", 0, 1000, 3, 5, -6, 7, 8, 9, 10)
    args: list[int | memoryview] = [_argument(arg.name, arg.type, content, 2) for arg in function.args]
    args[0] = out.data
    interpret(function, args, block=(4, 1, 1))
    n, picked, local_total, shared_total = 1000 + 2, 2, 5 * 0 + -6 * 1, 4 * 3
    assert out.tolist() == [n + picked + local_total + shared_total] * 4


def _argument(name: str, type_: Type, content: bytes, n: int) -> int | memoryview:
    """The part of a structure that an argument `parameter.offset` stands for; n for one that is no part."""
    _, dot, offset = name.partition(".")
    size = type_.bytes if isinstance(type_, IntType) else 8
    return int.from_bytes(content[int(offset) :][:size], "little") if dot else n


def test_virtual_functions_from_cuda() -> None:
    text = """
    struct Shape { __device__ virtual int area(int) const = 0; };
    struct Square : Shape {
        int a;
        __device__ Square(int a) : a(a) {}
        __device__ int area(int k) const { return a * a + k; }
    };
    struct Line : Shape { __device__ int area(int k) const { return k; } };
    __device__ __noinline__ int area(const Shape &s, int k) { return s.area(k); }
    extern "C" __global__ void k(int *out, int n) {
        Square square(n); Line line;
        out[threadIdx.x] = area(threadIdx.x % 2 ? (Shape &)square : (Shape &)line, 7);
    }
    """
    function = cuda(text)
    out = np.zeros(2, np.int32)
    interpret(function, [out.data, 5], block=(2, 1, 1))
    assert out.tolist() == [7, 32]
