"""Variables in every space, their initial values, and printf and assert, which read constant strings."""

import numpy as np
import pytest

from ptx_texts import LOADS, cuda, kernel, launch, lower, messages
from qgpu.ir import Array
from qgpu.ir.interpreter import Fault, interpret


def arrays(body: str, declarations: str = "") -> list[Array]:
    return lower(kernel(body, declarations=declarations)).shared


@pytest.mark.parametrize(
    ("declaration", "size", "data"),
    [
        (".global .align 4 .u32 v", 4, b""),
        (".global .u32 v = 7", 4, b"\7"),
        (".global .s32 v = -2", 4, b"\xfe\xff\xff\xff"),
        (".const .u64 v = 0x1122334455667788", 8, bytes.fromhex("8877665544332211")),
        (".const .u16 v[4] = {1, 2, 0x304}", 8, bytes.fromhex("010002000403")),
        (".global .b8 v[] = {104, 105, 0}", 3, b"hi"),
        (".global .s32 v[][2] = {{1, 2}, {3}}", 16, bytes.fromhex("010000000200000003")),
        (
            ".global .u16 v[2][2][2] = {{{1}, {2, 3}}, {{4, 5}}}",
            16,
            bytes.fromhex("010000000200030004000500"),
        ),
        (".global .s32 v[2][2] = {1, 2, 3, 4}", 16, bytes.fromhex("01000000020000000300000004")),
        (".global .v4 .b8 v[2] = {{1, 2, 3, 4}, {5}}", 8, bytes.fromhex("0102030405")),
        (".global .v2 .u16 v = {1, 2}", 4, bytes.fromhex("01000200")),
        (".global .f32 v[2] = {1.5, 0f40000000}", 8, bytes.fromhex("0000c03f00000040")),
        (".global .f64 v = 1.0", 8, bytes.fromhex("000000000000f03f")),
        (".global .u32 v[4] = {}", 16, b""),
    ],
)
def test_initial_values(declaration: str, size: int, data: bytes) -> None:
    (array,) = arrays("mov.u64 %l1, v; ld.b8 %r1, [%l1]; st.b8 [%l1], %r1;", f"{declaration};\n")
    assert (array.size, array.data) == (size, data.rstrip(b"\0"))


def test_tables_are_read_and_written() -> None:
    declarations = """
    .const .align 4 .u32 tab[4] = {10, 20, 30, 40};
    .global .align 4 .u32 counter = 5;
    """
    body = """
    mul.wide.u32 %l3, %r1, 4; mov.u64 %l4, tab; add.s64 %l5, %l4, %l3; ld.const.u32 %r2, [%l5];
    ld.const.u32 %r3, [tab+12];
    mov.u64 %l6, tab+4; cvta.const.u64 %l6, %l6; ld.u32 %r4, [%l6];
    ld.global.u32 %r5, [counter]; add.u32 %r5, %r5, %r1; st.global.u32 [counter], %r5;
    ld.global.u32 %r6, [counter];
    st.global.v4.u32 [%l2], {%r2, %r3, %r4, %r6};
    """
    assert launch(body, n=2, declarations=declarations)[:4] == [30, 40, 20, 7]


def test_elements_of_arrays_by_index() -> None:
    """PTX ISA 6.4.2: an array with an index in brackets is the address of that element."""
    body = """
    .shared .u16 s[8];
    mov.u32 %r2, s[3]; st.shared.u16 [%r2], 7; ld.shared.u16 %r3, [s+6]; ld.shared.u16 %r4, s[3];
    mov.u32 %r5, 2; ld.shared.u16 %r6, s[%r5+1]; st.global.v4.u32 [%l2], {%r3, %r4, %r6, %r5};
    """
    assert launch(body)[:3] == [7, 7, 7]


def test_a_variable_that_nothing_uses_is_no_array() -> None:
    assert arrays("", ".global .u32 v = 1;\n.extern .global .u32 elsewhere;\n") == []


def test_variables_of_one_name_in_two_scopes() -> None:
    body = """
    { .shared .u32 s; st.shared.u32 [s], 1; { .shared .u32 s; st.shared.u32 [s], 2; }
      ld.shared.u32 %r2, [s]; st.global.u32 [%l2], %r2; }
    """
    assert launch(body)[0] == 1


def test_variables_of_functions() -> None:
    """A function's global variables are the same in each call."""
    function = """.func (.param .b32 out) next(.param .b32 x)
    { .reg .b32 %r<4>; .global .u32 count = 10; .local .u32 l[2]; .reg .b64 %l1;
    ld.param.u32 %r1, [x]; st.local.u32 [l+4], %r1; ld.global.u32 %r2, [count]; add.u32 %r2, %r2, 1;
    st.global.u32 [count], %r2; ld.local.u32 %r3, [l+4]; add.u32 %r3, %r3, %r2; st.param.b32 [out], %r3;
    ret; }
    """
    body = "call (%r2), next, (100); call (%r3), next, (200); st.global.v2.u32 [%l2], {%r2, %r3};"
    assert launch(body, declarations=function)[:2] == [111, 212]


def test_dynamic_shared_memory() -> None:
    declarations = ".extern .shared .align 16 .b8 dyn[];\n"
    body = """mov.u32 %r2, dyn; ld.param.u64 %l2, [b]; cvta.to.global.u64 %l2, %l2;
    st.shared.u32 [%r2+4], 9; ld.shared.u32 %r3, [dyn+4]; st.global.u32 [%l2], %r3;"""
    out = np.zeros(1, np.uint32)
    function = lower(kernel(body, declarations=declarations))
    interpret(function, [np.zeros(1).data, out.data, 0], shared_bytes=8)
    assert out.tolist() == [9]


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        (".extern .global .u32 v", "it is declared here and defined elsewhere"),
        (".global .texref v", "it needs texture or surface memory"),
        (".global .u32 v[2] = {1, 2, 3}", "its initial value has 12 bytes where it has 8"),
        (".global .u32 v[67108864]", "it has 268435456 bytes; at most 16777216 are supported"),
        (".global .u64 v[2] = {0, w}",
         "its initial value holds the address 'w', which is known at launch alone"),
        (".global .u64 v = generic(w)+4",
         "its initial value holds the address 'generic(w)+4', which is known at launch alone"),
    ],
)  # fmt: skip
def test_variables_that_are_refused(declaration: str, reason: str) -> None:
    declarations = f".global .u32 w;\n{declaration};\n"
    (message,) = messages("mov.u64 %l1, v; ld.b8 %r1, [%l1];", declarations=declarations)
    assert message == f"variable 'v' cannot be used: {reason}"


# ------------------------------------------------------------------------ printf

PRINT = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"


def text_of(string: str, name: str = "text") -> str:
    content = ", ".join(str(byte) for byte in [*string.encode(), 0])
    return f".global .align 1 .b8 {name}[{len(string.encode()) + 1}] = {{{content}}};\n"


def print_call(arguments: str = "0", name: str = "text") -> str:
    return f"""
    mov.u64 %l10, {name}; cvta.global.u64 %l10, %l10;
    {{ .param .b64 p; st.param.b64 [p], %l10; .param .b64 q; st.param.b64 [q], {arguments}; .param .b32 r;
    call.uni (r), vprintf, (p, q); ld.param.b32 %r8, [r]; }}
    st.global.u32 [%l2], %r8;
    """


def output(body: str, declarations: str, n: int = 0, threads: int = 1) -> tuple[str, int]:
    """What a kernel prints, and the first word of b afterwards."""
    function = lower(kernel(LOADS + body, declarations=PRINT + declarations))
    words, pieces = np.zeros(8, np.uint32), []
    interpret(function, [words.data, words.data, n], block=(threads, 1, 1), output=pieces.append)
    return "".join(pieces), int(words[0])


def test_printf_of_a_constant() -> None:
    assert output(print_call(), text_of("100%% of it\n")) == ("100% of it\n", 0)


def test_printf_takes_its_arguments_from_a_local_array() -> None:
    body = """
    .local .align 8 .b8 args[40];
    mov.u64 %l3, args; cvta.local.u64 %l4, %l3;
    st.local.u32 [%l3], %r1; mov.u64 %l5, -5; st.local.u64 [%l3+8], %l5; st.local.u32 [args+16], 120;
    st.local.u32 [%l3+20], 255; st.local.f64 [%l3+24], 0d3FF8000000000000; st.local.u32 [%l3+32], 7;
    """
    declarations = text_of("%d|%5lld|%c|%#06x|%.2f|%-3u|")
    assert output(body + print_call("%l4"), declarations, n=42) == ("42|   -5|x|0x00ff|1.50|7  |", 6)


def test_printf_folds_strings_that_are_known() -> None:
    body = """
    .local .align 8 .b8 args[24];
    mov.u64 %l3, args; cvta.local.u64 %l4, %l3; mov.u64 %l5, word; cvta.global.u64 %l6, %l5;
    add.s64 %l7, %l6, 2;
    st.local.u64 [%l3], %l6; st.local.u32 [%l3+8], %r1; st.local.u64 [%l3+16], %l7;
    """
    declarations = text_of("<%6s|%d|%.2s>") + text_of("50%x", "word")
    assert output(body + print_call("%l4"), declarations, n=3) == ("<  50%x|3|%x>", 3)


def test_printf_of_two_strings_one_after_the_other() -> None:
    """The last store before each call counts."""
    body = ".local .align 8 .b8 args[8]; mov.u64 %l3, args; cvta.local.u64 %l4, %l3;"
    for name in ("one", "two"):
        body += f"mov.u64 %l5, {name}; cvta.global.u64 %l6, %l5; st.local.u64 [%l3], %l6;" + print_call("%l4")
    declarations = text_of("%s.") + text_of("1", "one") + text_of("2", "two")
    assert output(body, declarations)[0] == "1.2."


@pytest.mark.parametrize(
    ("format_", "message"),
    [
        ("%s", "printf's '%s' takes a string that is not known at compile time: print its characters by %c"),
        ("%p", "printf's '%p' is not supported: a pointer has no number here; print an index instead"),
        ("%n", "printf's '%n' is not supported: CUDA's printf does not have it"),
        ("50%", "printf's format ends within a conversion"),
    ],
)
def test_conversions_that_are_refused(format_: str, message: str) -> None:
    body = ".local .align 8 .b8 args[8]; mov.u64 %l3, args; cvta.local.u64 %l4, %l3;"
    body += "st.local.u64 [%l3], %l1;"
    assert messages(LOADS + body + print_call("%l4"), declarations=PRINT + text_of(format_)) == [message]


def test_a_format_that_is_not_constant_is_refused() -> None:
    body = "{ .param .b64 p; st.param.b64 [p], %l1; .param .b64 q; st.param.b64 [q], 0; .param .b32 r;"
    body += "call.uni (r), vprintf, (p, q); }"
    assert messages(LOADS + body, declarations=PRINT) == [
        "printf's format is not a string that is known at compile time"
    ]


def test_assert_says_what_does_not_hold() -> None:
    text = """
    #include <cassert>
    extern "C" __global__ void k(int *o, int n) { assert(n < 5); o[0] = n; }
    """
    function = cuda(text)
    out = np.zeros(1, np.int32)
    interpret(function, [out.data, 4])
    assert out.tolist() == [4]
    with pytest.raises(Fault, match=r"n < 5") as caught:
        interpret(function, [out.data, 5])
    assert caught.value.kind == "assert"
    (trap,) = [i for i in function.instructions if i.op == "trap"]
    assert trap.attrs["message"].startswith("k.cu:3: ")
    assert trap.attrs["message"].endswith("Assertion `n < 5' failed")


def test_printf_from_cuda() -> None:
    text = """
    #include <cstdio>
    extern "C" __global__ void k(int n) {
        int x = threadIdx.x;
        printf("thread %d of %u: %lld %s %c\\n", x, blockDim.x, (long long)n * n, "squared", 'a' + x);
    }
    """
    pieces: list[str] = []
    interpret(cuda(text), [-100000], block=(2, 1, 1), output=pieces.append)
    assert "".join(pieces) == ("thread 0 of 2: 10000000000 squared a\nthread 1 of 2: 10000000000 squared b\n")


def test_variables_from_cuda() -> None:
    text = """
    __constant__ short table[2][3] = {{1, 2, 3}, {-4, 5, -6}};
    __device__ unsigned long long total = 1ull << 40;
    __device__ int *kept;
    extern "C" __global__ void k(int *o, int i, int j) {
        const char *word = "hello";
        kept = o + 1;
        total += table[i][j];
        *kept = word[i + j];
        o[0] = table[i][j];
        o[2] = (int)(total >> 20);
    }
    """
    out = np.zeros(3, np.int32)
    interpret(cuda(text), [out.data, 1, 2])
    assert out.tolist() == [-6, ord("l"), (1 << 20) - 1]


RESERVED = """
mov.u32 %r2, %reserved_smem_offset_1; cvt.u64.u32 %l3, %r2; cvta.shared.u64 %l4, %l3;
{use}
"""


def test_reserved_shared_memory_is_an_array_of_the_kernels_that_use_it() -> None:
    """Cooperative groups keep the address of their scratch memory beside what else they know of a group."""
    declarations = ".shared .align 4 .b8 mine[8];\n.extern .shared .align 4 .b8 rest[];\n"
    mine = "mov.u64 %l9, mine; st.shared.u32 [%l9], 9; mov.u64 %l10, rest; st.shared.u32 [%l10], 9;"
    unused = arrays(RESERVED.format(use=mine), declarations)
    assert [array.name for array in unused] == ["mine", "rest"]
    use = ".local .align 8 .b8 group[16]; st.local.u64 [group+8], %l4; ld.local.u64 %l5, [group+8];"
    use += "ld.u32 %r3, [mine]; st.u32 [%l5+284], %r3; ld.u32 %r4, [%l4+284]; st.global.u32 [%l2], %r4;"
    found = lower(kernel(LOADS + RESERVED.format(use=mine + use), declarations=declarations)).shared
    shared = [(array.size, array.align) for array in found if array.space == "shared"]
    assert shared == [(288, 16), (8, 4), (0, 16)]
    assert (
        launch(RESERVED.format(use=mine.partition(" mov.u64 %l10")[0] + use), declarations=declarations)[0]
        == 9
    )


def test_reserved_shared_memory_ends() -> None:
    with pytest.raises(Fault, match="has 288 bytes"):
        launch(RESERVED.format(use="st.u32 [%l4+288], %r1;"))
