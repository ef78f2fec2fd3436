"""Pointers of PTX, which are numbers there: which values are addresses, of what, and for what use."""

import numpy as np
import pytest

from ptx_texts import LOADS, PARAMETERS, cuda, kernel, launch, lower, messages, refusal
from qgpu.ir.interpreter import Fault, interpret


def pointer_parameters(body: str, parameters: str) -> list[str]:
    return [str(argument.type) for argument in lower(kernel(body, parameters)).args]


@pytest.mark.parametrize(
    ("body", "types"),
    [
        ("ld.param.u64 %l1, [a]; cvta.to.global.u64 %l2, %l1; ld.param.u64 %l3, [b];",
         ["ptr<global>", "i64"]),
        ("ld.param.u64 %l1, [a]; ld.global.u32 %r1, [%l1]; ld.param.u32 %r2, [b];", ["ptr<global>", "i64"]),
        ("ld.param.u64 %l1, [a]; ld.param.u64 %l2, [b]; shl.b64 %l3, %l2, 2; add.s64 %l4, %l3, %l1;"
         "ld.global.u32 %r1, [%l4];", ["ptr<global>", "i64"]),
        ("ld.param.u64 %l1, [a]; cvta.to.global.u64 %l5, %l1; ld.param.u64 %l2, [b];"
         "add.s64 %l4, %l2, %l5; ld.global.u32 %r1, [%l4];", ["ptr<global>", "i64"]),
        ("ld.param.u64 %l1, [a]; ld.param.u64 %l2, [b]; setp.eq.u32 %p1, %r1, 0;"
         "selp.b64 %l3, %l1, %l2, %p1; st.global.u32 [%l3], 1;", ["ptr<global>", "ptr<global>"]),
        ("ld.param.u64 %l1, [b]; mul.lo.s64 %l2, %l1, %l1; ld.param.u64 %l1, [a]; st.u32 [%l1], 1;",
         ["ptr<global>", "i64"]),
    ],
)  # fmt: skip
def test_which_parameters_are_pointers(body: str, types: list[str]) -> None:
    assert pointer_parameters(body, ".param .u64 a, .param .u64 b") == types


def test_parameters_that_nothing_loads_count_as_pointers() -> None:
    """Compilers drop the load of an unused parameter, and what is 64 bits wide is most often a pointer."""
    assert pointer_parameters("", ".param .u64 a, .param .u32 b") == ["ptr<global>", "i32"]
    assert pointer_parameters("ld.param.u64 %l1, [a]; mul.lo.s64 %l2, %l1, 3;", ".param .u64 a") == ["i64"]


def test_declared_pointers_need_no_proof() -> None:
    parameters = ".param .u64 .ptr .align 1 a, .param .u64 .ptr .shared .align 4 b, .param .u64 .ptr c"
    body = "ld.param.u64 %l1, [a]; ld.param.u64 %l2, [b];"
    assert pointer_parameters(body, parameters) == ["ptr<global>", "ptr<shared>", "ptr<global>"]


def test_pointer_arithmetic() -> None:
    body = """
    add.s64 %l3, %l1, 16;
    sub.s64 %l3, %l3, 8;
    ld.global.u32 %r2, [%l3+-4];
    mul.wide.s32 %l4, %r2, -4;
    sub.s64 %l5, %l2, %l4;
    st.global.u32 [%l5], 77;
    mad.wide.s32 %l6, %r2, 8, %l2;
    st.global.u32 [%l6], 78;
    """
    assert launch(body) == [1, 2, 77, 4, 78, 6, 7, 8]


def test_pointers_that_a_loop_moves_and_compares() -> None:
    body = """
    add.s64 %l3, %l2, 16;
    LOOP:
    ld.global.u32 %r2, [%l2];
    add.s32 %r2, %r2, 100;
    st.global.u32 [%l2], %r2;
    add.s64 %l2, %l2, 4;
    setp.ne.s64 %p1, %l2, %l3;
    @%p1 bra LOOP;
    """
    assert launch(body) == [101, 102, 103, 104, 5, 6, 7, 8]


# ------------------------------------------------------------------ generic


def test_pointers_to_two_spaces_meet_in_a_generic_one() -> None:
    body = """
    .shared .b32 s[4]; .local .b32 l[4];
    mov.u64 %l3, s; st.shared.u32 [s+8], 30; cvta.shared.u64 %l4, %l3;
    mov.u64 %l5, l; st.local.u32 [l+8], 40; cvta.local.u64 %l6, %l5;
    setp.eq.u32 %p1, %r1, 0;
    selp.b64 %l7, %l4, %l6, %p1;
    ld.u32 %r2, [%l7+8]; st.global.u32 [%l2], %r2;
    setp.eq.u32 %p2, %r1, 1;
    mov.u64 %l8, %l6;
    @%p2 mov.u64 %l8, %l1;
    ld.u32 %r3, [%l8+8]; st.global.u32 [%l2+4], %r3;
    """
    assert launch(body, n=0)[:2] == [30, 40]
    assert launch(body, n=1)[:2] == [40, 3]


def test_a_generic_pointer_in_a_space_of_its_own() -> None:
    """Converted back, a generic pointer is one of the space that the instruction names."""
    body = """
    .shared .b32 s[4];
    mov.u64 %l3, s; cvta.shared.u64 %l4, %l3;
    setp.eq.u32 %p1, %r1, 0;
    selp.b64 %l5, %l4, %l1, %p1;
    @%p1 bra SHARED;
    cvta.to.global.u64 %l6, %l5; ld.global.u32 %r2, [%l6]; bra END;
    SHARED: cvta.to.shared.u64 %l7, %l5; st.shared.u32 [%l7], 8; ld.u32 %r2, [%l5];
    END: st.global.u32 [%l2], %r2;
    """
    assert launch(body, n=0)[0] == 8
    assert launch(body, n=5)[0] == 1


def test_pointers_of_two_buffers_stay_in_their_space() -> None:
    body = "setp.eq.u32 %p1, %r1, 0; selp.b64 %l3, %l1, %l2, %p1; ld.global.u32 %r2, [%l3];"
    function = lower(kernel(LOADS + body))
    assert [str(i.type) for i in function.instructions if i.op == "select"] == ["ptr<global>"]


# --------------------------------------------------------------- arithmetic


@pytest.mark.parametrize(
    ("code", "offset"),
    [
        ("add.s64 %l9, %l3, 4;", 4),
        ("add.s64 %l4, 8, %l3; sub.s64 %l9, %l4, 4;", 4),
        ("mov.u32 %r2, 3; mad.wide.u32 %l9, %r2, 4, %l3;", 12),
        ("mov.u64 %l4, 3; mad.lo.s64 %l9, %l4, 4, %l3;", 12),
        ("mov.u64 %l4, 8; shl.b64 %l5, %l4, 1; add.s64 %l9, %l5, %l3;", 16),
        ("or.b64 %l9, %l3, 4;", 4),
        ("add.s64 %l4, %l3, 16; or.b64 %l9, %l4, 12;", 28),
        ("add.s64 %l4, %l3, 23; and.b64 %l9, %l4, -16;", 16),
        ("add.s64 %l4, %l3, 23; and.b64 %l9, 0xFFFFFFFFFFFFFFFC, %l4;", 20),
        ("add.s64 %l4, %l3, 8; min.u64 %l9, %l4, %l3;", 0),
        ("add.s64 %l4, %l3, 8; max.u64 %l9, %l4, %l3;", 8),
    ],
)  # fmt: skip
def test_arithmetic_that_gives_a_pointer(code: str, offset: int) -> None:
    body = f"mov.u64 %l3, %l2; {code} st.global.u32 [%l9], 99;"
    assert launch(body).index(99) == offset // 4


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("add.s64 %l4, %l3, 20; sub.s64 %l5, %l4, %l3; cvt.u32.u64 %r2, %l5;", 20),
        ("add.s64 %l4, %l3, 20; sub.s64 %l5, %l3, %l4; cvt.u32.u64 %r2, %l5;", -20 % 2**32),
        ("add.s64 %l4, %l3, 20; sub.s64 %l5, %l4, %l3; shr.s64 %l6, %l5, 2; cvt.u32.u64 %r2, %l6;", 5),
        ("add.s64 %l4, %l3, 23; and.b64 %l5, %l4, 15; cvt.u32.u64 %r2, %l5;", 7),
        ("add.s64 %l4, %l3, 23; cvt.u32.u64 %r3, %l4; and.b32 %r2, %r3, 15;", 7),
        ("add.s64 %l4, %l3, 23; rem.u64 %l5, %l4, 8; cvt.u32.u64 %r2, %l5;", 7),
        ("add.s64 %l4, %l3, 4; or.b64 %l5, %l4, %l3; and.b64 %l6, %l5, 15; cvt.u32.u64 %r2, %l6;", 4),
        ("add.s64 %l4, %l3, 20; xor.b64 %l5, %l4, %l3; and.b64 %l6, %l5, 7; cvt.u32.u64 %r2, %l6;", 4),
        ("add.s64 %l4, %l3, 20; cvt.u16.u64 %h1, %l4; and.b16 %h2, %h1, 31; cvt.u32.u16 %r2, %h2;", 20),
        ("add.s64 %l4, %l3, 4; setp.lt.u64 %p1, %l3, %l4; selp.u32 %r2, 1, 0, %p1;", 1),
        ("add.s64 %l4, %l3, 4; setp.ge.s64 %p1, %l3, %l4; selp.u32 %r2, 1, 0, %p1;", 0),
        ("setp.eq.s64 %p1, %l3, 0; selp.u32 %r2, 1, 0, %p1;", 0),
        ("setp.ne.s64 %p1, 0, %l3; selp.u32 %r2, 1, 0, %p1;", 1),
        ("setp.eq.s64 %p1, %l3, %l1; selp.u32 %r2, 1, 0, %p1;", 0),
        ("setp.eq.u32 %p2, %r1, 0; setp.ne.and.s64 %p1|%p3, %l3, 0, %p2; selp.u32 %r2, 1, 0, %p1;", 1),
    ],
)  # fmt: skip
def test_arithmetic_that_gives_a_number(code: str, expected: int) -> None:
    body = f"mov.u64 %l3, %l2; {code} st.global.u32 [%l2], %r2;"
    assert launch(body)[0] == expected


def test_addresses_of_shared_memory_in_32_bits() -> None:
    body = """
    .shared .align 16 .b8 s[64];
    mov.u32 %r2, s; add.s32 %r3, %r2, 8; mad.lo.s32 %r4, 3, 4, %r3; or.b32 %r5, %r2, 4;
    st.shared.u32 [%r4], 11; st.shared.u32 [%r5], 12;
    cvt.u64.u32 %l3, %r4; cvta.shared.u64 %l4, %l3; ld.u32 %r6, [%l4];
    cvta.to.shared.u64 %l5, %l4; cvt.u32.u64 %r7, %l5; ld.shared.u32 %r8, [%r7+-16];
    sub.s32 %r3, %r4, %r2; st.global.v4.u32 [%l2], {%r6, %r8, %r3, 0};
    """
    assert launch(body)[:3] == [11, 12, 20]


def test_a_bound_that_is_compared_alone_is_a_pointer_too() -> None:
    """The end of a range is never used as an address."""
    function = cuda(
        """extern "C" __global__ void k(int *p, int *end, int *out) {
            int s = 0;
            while (p != end) s += *p++;
            *out = s;
        }"""
    )
    assert [str(arg.type) for arg in function.args] == ["ptr<global>"] * 3


def test_of_a_sum_the_number_is_what_is_computed_with() -> None:
    function = lower(
        kernel(
            "ld.param.u64 %l1, [a]; ld.param.u64 %l2, [b]; add.s64 %l3, %l1, %l2; ld.u8 %r1, [%l3];"
            "mul.lo.s64 %l4, %l2, 3; ld.u8 %r2, [%l3];",
            ".param .u64 a, .param .u64 b",
        )
    )
    assert [str(arg.type) for arg in function.args] == ["ptr<global>", "i64"]


# --------------------------------------------------------------------- null


NULLABLE = """
mov.u64 %l3, 0;
setp.eq.u32 %p1, %r1, 0;
@%p1 mov.u64 %l3, %l2;
"""


def test_null_is_compared() -> None:
    body = """setp.eq.s64 %p2, %l3, 0; selp.u32 %r2, 7, 8, %p2; st.global.u32 [%l2+4], %r2;
    setp.ne.s64 %p2, %l3, 0; @%p2 st.global.u32 [%l3], 9;"""
    assert launch(NULLABLE + body, n=0)[:2] == [9, 8]
    assert launch(NULLABLE + body, n=1)[:2] == [1, 7]


def test_null_is_selected_and_merged_again() -> None:
    body = """
    selp.b64 %l3, %l2, 0, %p1; selp.b64 %l4, 0, %l2, %p1;
    setp.eq.u32 %p2, %r1, 1; mov.u64 %l5, %l4; @%p2 mov.u64 %l5, %l3;
    setp.eq.s64 %p3, %l5, 0; selp.u32 %r2, 1, 0, %p3; st.global.u32 [%l2], %r2;
    setp.eq.s64 %p3, %l3, %l4; selp.u32 %r2, 1, 0, %p3; st.global.u32 [%l2+4], %r2;
    """
    text = "setp.lt.u32 %p1, %r1, 2;" + body
    assert launch(text, n=0)[:2] == [1, 0]
    assert launch(text, n=1)[:2] == [0, 0]
    assert launch(text, n=2)[:2] == [0, 0]


def test_an_access_through_null_is_a_fault() -> None:
    with pytest.raises(Fault, match="address"):
        launch(NULLABLE + "ld.global.u32 %r2, [%l3+4]; st.global.u32 [%l2], %r2;", n=1)


def test_null_of_either_space() -> None:
    body = """
    .shared .b32 s[4]; st.shared.u32 [s], 5; mov.u64 %l4, s; cvta.shared.u64 %l4, %l4;
    mov.u64 %l3, 0;
    setp.eq.u32 %p1, %r1, 0; @%p1 mov.u64 %l3, %l4;
    setp.eq.u32 %p2, %r1, 1; @%p2 mov.u64 %l3, %l1;
    setp.eq.s64 %p3, %l3, 0; mov.u32 %r2, 100; @!%p3 ld.u32 %r2, [%l3]; st.global.u32 [%l2], %r2;
    """
    assert [launch(body, n=n)[0] for n in range(3)] == [5, 1, 100]


def test_a_pointer_that_is_always_null() -> None:
    body = """
    mov.u64 %l3, 0; setp.eq.u32 %p1, %r1, 5; @%p1 bra END;
    mov.u64 %l3, 0; END:
    setp.eq.u32 %p2, %r1, 1; @%p2 st.global.u32 [%l3], 1;
    """
    assert launch(body)[0] == 1
    with pytest.raises(Fault):
        launch(body, n=1)


# ------------------------------------------------------------------- memory


def test_pointers_in_local_arrays() -> None:
    body = """
    .local .align 8 .b8 l[32];
    mov.u64 %l3, l;
    ld.param.u64 %l4, [a]; ld.param.u64 %l5, [b];
    st.local.v2.u64 [%l3], {%l4, %l5}; st.local.u64 [l+16], %l5;
    and.b32 %r2, %r1, 1; mul.wide.u32 %l6, %r2, 8; add.s64 %l7, %l3, %l6;
    ld.local.u64 %l8, [%l7]; ld.u32 %r3, [%l8+4]; add.u32 %r3, %r3, 50; st.u32 [%l8+4], %r3;
    ld.local.v2.u64 {%l9, %l10}, [l]; ld.u32 %r4, [%l10+4]; st.u32 [%l5], %r4;
    """
    parameters = PARAMETERS
    function = lower(kernel(body + "ld.param.u32 %r1, [n];", parameters))
    assert [str(arg.type) for arg in function.args] == ["ptr<global>", "ptr<global>", "i32"]
    assert launch(body, n=0)[:2] == [2, 2]
    assert launch(body, n=1)[:2] == [52, 52]


def test_pointers_of_several_spaces_in_one_array() -> None:
    body = """
    .local .align 8 .b8 l[16]; .shared .b32 s[2]; st.shared.u32 [s+4], 77;
    mov.u64 %l3, s; cvta.shared.u64 %l4, %l3; st.local.u64 [l], %l4; st.local.u64 [l+8], %l1;
    mul.wide.u32 %l6, %r1, 8; mov.u64 %l7, l; add.s64 %l7, %l7, %l6;
    ld.local.u64 %l8, [%l7]; ld.u32 %r3, [%l8+4]; st.global.u32 [%l2], %r3;
    ld.local.u64 %l9, [l+8]; ld.global.u32 %r4, [%l9]; st.global.u32 [%l2+4], %r4;
    """
    assert launch(body, n=0)[:2] == [77, 1]
    assert launch(body, n=1)[:2] == [2, 1]


def test_numbers_beside_pointers_in_an_array() -> None:
    body = """
    .local .align 8 .b8 l[24];
    st.local.u64 [l], %l1; mov.u64 %l3, 1000; st.local.u64 [l+8], %l3; st.local.u32 [l+16], %r1;
    ld.local.u64 %l4, [l]; ld.local.u64 %l5, [l+8]; cvt.u32.u64 %r2, %l5;
    ld.global.u32 %r3, [%l4+8]; add.u32 %r3, %r3, %r2; st.global.u32 [%l2], %r3;
    """
    assert launch(body)[0] == 1003


def test_null_in_an_array() -> None:
    body = """
    .local .align 8 .b8 l[16]; mov.u64 %l9, 0;
    st.local.u64 [l], %l1; st.local.u64 [l+8], %l9;
    mul.wide.u32 %l6, %r1, 8; mov.u64 %l7, l; add.s64 %l7, %l7, %l6; ld.local.u64 %l8, [%l7];
    setp.eq.s64 %p1, %l8, 0; mov.u32 %r2, 500; @!%p1 ld.global.u32 %r2, [%l8]; st.global.u32 [%l2], %r2;
    """
    assert launch(body, n=0)[0] == 1
    assert launch(body, n=1)[0] == 500


def test_a_pointer_in_shared_memory_and_in_a_global_variable() -> None:
    body = """
    .shared .b64 kept;
    mov.u32 %r2, %tid.x; setp.ne.u32 %p1, %r2, 0; @%p1 bra JOIN;
    ld.param.u64 %l3, [a]; st.shared.u64 [kept], %l3; st.global.u64 [head], %l2;
    JOIN: bar.sync 0;
    ld.shared.u64 %l4, [kept]; mul.wide.u32 %l5, %r2, 4; add.s64 %l4, %l4, %l5; ld.u32 %r3, [%l4+4];
    ld.global.u64 %l6, [head]; add.s64 %l6, %l6, %l5; st.global.u32 [%l6], %r3;
    """
    assert launch(body, threads=3, declarations=".global .u64 head;\n")[:4] == [2, 3, 4, 4]


def test_a_list_in_a_local_array() -> None:
    """Each node points to the next; the last points to nothing."""
    function = cuda(
        """struct Node { int value; Node *next; };
        extern "C" __global__ void k(int *out, int n) {
            Node nodes[4];
            for (int i = 0; i < 4; i++) {
                nodes[i].value = n * i;
                nodes[i].next = i < 3 ? &nodes[i + 1] : nullptr;
            }
            int s = 0;
            for (Node *p = &nodes[n & 1]; p; p = p->next) s = s * 10 + p->value;
            *out = s;
        }"""
    )
    out = np.zeros(1, np.int32)
    interpret(function, [out.data, 2])
    assert out.tolist() == [246]
    interpret(function, [out.data, 1])
    assert out.tolist() == [123]


def test_a_list_that_is_built_from_null() -> None:
    """Null comes into memory by way of a merge, and out of it again."""
    function = cuda(
        """struct Node { Node *next; int value; };
        __device__ Node pool[16];
        extern "C" __global__ void k(int *out, int n) {
            Node *head = nullptr;
            for (int i = 0; i < n; i++) { pool[i].value = i; pool[i].next = head; head = &pool[i]; }
            int s = 0;
            for (Node *p = head; p; p = p->next) s = s * 10 + p->value;
            *out = s;
        }"""
    )
    out = np.zeros(1, np.int32)
    for n, expected in ((0, 0), (3, 210), (6, 543210)):
        interpret(function, [out.data, n])
        assert out.tolist() == [expected]


def test_swapped_pointers() -> None:
    """Double buffering, as stencils do it."""
    function = cuda(
        """extern "C" __global__ void k(int *a, int *b, int n) {
            int *from = a, *to = b;
            for (int i = 0; i < n; i++) {
                to[threadIdx.x] = from[(threadIdx.x + 1) % blockDim.x];
                __syncthreads();
                int *t = from; from = to; to = t;
            }
        }"""
    )
    a, b = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    interpret(function, [a.data, b.data, 3], block=(4, 1, 1))
    assert (a.tolist(), b.tolist()) == ([2, 3, 0, 1], [3, 0, 1, 2])


# ------------------------------------------------------------------ refusals

ADDRESS = "the address does not come from a pointer parameter or an array: "
BUFFER = (
    "it is loaded from the buffer 'a', and a buffer holds no pointers that the machine could follow; "
    "pass what it points to as a parameter, or keep an index instead of the pointer"
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ld.param.u64 %l1, [a]; ld.param.u64 %l2, [b]; add.s64 %l3, %l1, %l2; st.global.u8 [%l3], 1;",
         "either operand of this sum could be the pointer"),
        (LOADS + "add.s64 %l3, %l1, %l2;", "two pointers are added"),
        (LOADS + "st.global.u64 [%l1], %l2;",
         "a pointer is stored to a buffer, where nothing can load it from again"),
        (LOADS + "mul.lo.s64 %l3, %l1, 3;", "a pointer is used as an integer"),
        (LOADS + "setp.eq.s64 %p1, %l1, 8;", "a pointer is compared with a number: it is a number"),
        (LOADS + "xor.b64 %l3, %l1, %l2; st.global.u64 [%l1], %l3;",
         "an address is used as a number of which more than the low 8 bits count"),
        (LOADS + "rem.u64 %l3, %l1, 12;",
         "an address is divided: only the remainder by a small power of two is known"),
        (LOADS + "add.s64 %l3, %l1, 2; or.b64 %l4, %l3, 2;",
         "bits of an address are set that are not known to be clear"),
        (LOADS + "mov.b64 {%r1, %r2}, %l1;",
         "a pointer is taken apart or put together: pass it on as a whole"),
        ("mov.u64 %l1, 64; st.global.u32 [%l1], 1;", ADDRESS + "it is a constant"),
        ("ld.param.u32 %r1, [n]; cvt.u64.u32 %l3, %r1; ld.global.u32 %r2, [%l3];",
         ADDRESS + "the parameter is a number"),
        (LOADS + "ld.global.u64 %l3, [%l1]; ld.global.u32 %r1, [%l3];", ADDRESS + BUFFER),
        (LOADS + "ld.global.u64 %l3, [%l1]; add.s64 %l4, %l3, 4; ld.u32 %r1, [%l4];", ADDRESS + BUFFER),
        (LOADS + ".local .b64 l; st.local.u64 [l], 5; ld.local.u64 %l3, [l]; ld.u32 %r1, [%l3];",
         ADDRESS + "it is loaded from 'l', where no pointer is stored"),
        ("mul.wide.u32 %l3, %r1, 8; ld.u32 %r1, [%l3];", ADDRESS + "it is computed by 'mul.wide.u32'"),
        ("st.global.u32 [64], 1;", "an address has to start from a register or an array"),
        (LOADS + "ld.shared.u32 %r1, [%l1];", "the address points to global memory, not to shared memory"),
        (LOADS + "mov.u64 %l3, 8; setp.eq.s32 %p1, %r1, 0; @%p1 mov.u64 %l3, %l1; st.global.u32 [%l3], 1;",
         "%l3 holds a pointer on one path and a number on another: it is a constant"),
    ],
)  # fmt: skip
def test_pointers_that_are_refused(body: str, message: str) -> None:
    assert messages(body) == [message]


def test_a_refusal_shows_where_the_value_comes_from() -> None:
    body = """
    ld.global.u64 %l3, [%l1];
    mad.wide.u32 %l4, %r1, 4, %l3;
    ld.u32 %r2, [%l4];
    """
    text = refusal(kernel(LOADS + body))
    notes = [line for line in text.splitlines() if "note:" in line]
    assert [note.partition("note: ")[2] for note in notes] == [
        "through 'mad.wide.u32 %l4, %r1, 4, %l3'",
        "the value comes from 'ld.global.u64 %l3, [%l1]'",
    ]


def test_errors_that_do_not_depend_on_each_other_are_reported_at_once() -> None:
    body = LOADS + "mul.lo.s64 %l3, %l1, 3; add.s64 %l4, %l1, %l2; add.s64 %l5, %l4, 1; ld.u32 %r2, [%l5];"
    assert messages(body) == ["a pointer is used as an integer", "two pointers are added"]


def test_what_follows_from_an_error_is_not_reported() -> None:
    body = LOADS + "ld.global.u64 %l3, [%l1]; cvta.to.global.u64 %l4, %l3; ld.global.u32 %r2, [%l4];"
    assert messages(body) == [ADDRESS + BUFFER]


def test_textures_are_refused() -> None:
    assert messages("", ".param .texref t, .param .u64 .ptr .surfref s") == [
        "parameter 't' needs texture or surface memory",
        "parameter 's' needs texture or surface memory",
    ]
