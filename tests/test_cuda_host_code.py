"""Host code is set aside in place, whatever the text looks like; device code stays as it is."""

import random
from pathlib import Path

import pytest

from qgpu.toolchain.cuda import COMPILERS, CudaOptions
from qgpu.toolchain.cuda.host_code import HostCode
from qgpu.toolchain.cuda.kernels import Kernels
from qgpu.toolchain.cuda.tokens import tokens_of
from qgpu.toolchain.cuda.unit import TranslationUnit
from qgpu.toolchain.diagnostics import DiagnosticError, Source

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.cu"))


def device_text(text: str) -> str:
    unit = TranslationUnit(Source("k.cu", text), ())
    return HostCode(unit).text(unit.files["k.cu"])


def left(text: str) -> str:
    """What is left of a text, with single spaces."""
    return " ".join(device_text(text).split())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("int main() { k<<<1, 2>>>(); }", ""),
        ("__global__ void k() { }", "__global__ void k() { }"),
        ("static inline int f(int x) noexcept { return x; }", ""),
        ("constexpr int f(int x) { return x; }", "constexpr int f(int x) { return x; }"),
        ("template <class T, int N = 4> T f(T x) { return x; }", ""),
        ("template <class T> __device__ T f(T x) { return x; }",) * 2,
        ("int f(int);", ""),
        ("__device__ int f(int);",) * 2,
        ("std::vector<std::pair<int, int>> v = {{1, 2}};", ""),
        ("int a = 1, *b, c[3];", ""),
        ("const int a = 1;",) * 2,
        ("static const char *names[] = {\"}\", \"{\"};", ""),
        ("__constant__ int c[2] = {1, 2};",) * 2,
        ("extern __shared__ int s[];",) * 2,
        ("enum class E : int { A, B };",) * 2,
        ("using T = int; typedef int U;",) * 2,
        ("namespace n { int f() { return 1; } __device__ int g() { return 2; } }",
         "namespace n { __device__ int g() { return 2; } }"),
        ('extern "C" { int f() { return 1; } __global__ void k() { } }',
         'extern "C" { __global__ void k() { } }'),
        ('extern "C" __global__ void k() { }',) * 2,
        ("struct S { int x; int f() { return x; } __device__ int g() { return x; } };",
         "struct S { int x; int f() =delete; __device__ int g() { return x; } };"),
        ("struct S { S(int a) : x{a}, y(a) { f(); } int x, y; };",
         "struct S { S(int a) =delete; int x, y; };"),
        ("struct S { ~S() { } S(const S &o) { } S &operator=(S o) { return *this; } int x; };",
         "struct S { int x; };"),
        ("struct S { virtual int f() const = 0; S() = default; };",) * 2,
        ("int S::f() const { return 1; }", ""),
        ("std::ostream &operator<<(std::ostream &o, const S &s) { return o; }", ""),
        ("auto f = [](int x) { return x; };", ""),
        ("template __global__ void k<int>(int *);",) * 2,
        ("namespace cg = cooperative_groups;",) * 2,
        ("#define HD __host__ __device__\nHD int f() { return 1; }\nint g() { return 2; }",
         "#define HD __host__ __device__ HD int f() { return 1; }"),
        ("#define K(n) __global__ void n() { }\nK(a)\nint main() { }\nK(b);",
         "#define K(n) __global__ void n() { } K(a) K(b);"),
        ("int f() {\n#ifdef A\n  if (x) {\n#else\n  {\n#endif\n  } }\n__global__ void k() { }",
         "#ifdef A #else #endif __global__ void k() { }"),
        ('#ifdef __cplusplus\nextern "C" {\n#endif\nint f() { }\n#ifdef __cplusplus\n}\n#endif\n',
         '#ifdef __cplusplus extern "C" { #endif #ifdef __cplusplus } #endif'),
        ("int f() { return '}'; /* } */ } // }\n__global__ void k() { }", "// } __global__ void k() { }"),
        ('int f() { return R"x( } " )x"[0]; }\n__global__ void k() { }', "__global__ void k() { }"),
        ("int main() { if (1) {", ""),
        ("#include <vector>\n#include <stdint.h>\n#include <gone.h>",
         "#include <stdint.h> #include <gone.h>"),
    ],
)  # fmt: skip
def test_what_is_left_for_the_device(text: str, wanted: str) -> None:
    assert left(text) == wanted


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.stem)
def test_places_stay(file: Path) -> None:
    """Every line is as long as before, up to a member without a body; what is left stays where it is."""
    text = file.read_text()
    unit = TranslationUnit(Source(str(file), text), ())
    after = HostCode(unit).text(unit.files[str(file)])
    assert after.count("\n") == text.count("\n")
    for before, now in zip(text.split("\n"), after.split("\n"), strict=True):
        if "=delete;" not in now and "#include" not in before:
            assert len(before) == len(now)
            assert all(new in (old, " ") for old, new in zip(before, now, strict=True))


def test_tokens_lose_nothing() -> None:
    """Between tokens there is nothing but white space and comments."""
    for file in SAMPLES:
        text, end = file.read_text(), 0
        for token in tokens_of(text):
            between = text[end : token.start].strip()
            assert not between or between.startswith(("//", "/*")), between
            assert text[token.start : token.end] == token.text
            end = token.end


def test_damaged_files_end_with_a_diagnostic_or_not_at_all() -> None:
    """Parsing never fails, whatever is missing or doubled."""
    generator = random.Random(7)
    texts = [file.read_text() for file in SAMPLES]
    for _ in range(300):
        text = generator.choice(texts)
        start = generator.randrange(len(text))
        stop = start + generator.choice([1, 2, 5, 40])
        damaged = text[:start] + generator.choice(["", "{", '"', "<<<", text[start:stop] * 2]) + text[stop:]
        unit = TranslationUnit(Source("k.cu", damaged), ())
        after = HostCode(unit).text(unit.files["k.cu"])
        assert after.count("\n") == damaged.count("\n")
        try:
            Kernels(unit).instances(None)
        except DiagnosticError as error:
            assert "template" in str(error)


def test_what_only_the_compiler_can_tell_is_set_aside_when_it_has_said_so() -> None:
    text = (
        "#include <string>\n#include <vector>\n"
        "struct Timer { std::string name; void start(); };\n"
        "using Names = std::vector<std::string>;\n"
        'const std::string title = "x";\n'
        "template <typename T> struct Traits { typedef std::vector<T> list; };\n"
        "__global__ void k(int *a) { a[0] = 1; }\n"
    )
    assert ".entry _Z1kPi" in COMPILERS["nvrtc"].compile(Source("k.cu", text), CudaOptions()).text


def test_headers_of_the_same_name_in_different_folders(tmp_path: Path) -> None:
    for folder, value in (("a", 111), ("b", 222)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "value.h").write_text(f"enum {{ {folder}_value = {value} }};\n")
        (tmp_path / folder / "all.h").write_text('#pragma once\n#include "value.h"\n#include "value2.h"\n')
        (tmp_path / folder / "value2.h").write_text(f"int {folder}_host() {{ return {value}; }}\n")
    text = '#include "a/all.h"\n#include "b/all.h"\n__global__ void k(int *a) { *a = a_value + b_value; }\n'
    source = Source(str(tmp_path / "k.cu"), text)
    assert "333" in COMPILERS["nvrtc"].compile(source, CudaOptions()).text


def test_an_error_in_a_header_is_told_there(tmp_path: Path) -> None:
    header = tmp_path / "f.h"
    header.write_text(
        "#pragma once\nint host() { return undefined1; }\n__device__ int f() {\n  return nothing;\n}\n"
    )
    source = Source(str(tmp_path / "k.cu"), '#include "f.h"\n__global__ void k(int *a) { *a = f(); }\n')
    with pytest.raises(DiagnosticError) as caught:
        COMPILERS["nvrtc"].compile(source, CudaOptions())
    (error,) = caught.value.diagnostics
    assert (error.file, error.line, error.column) == (str(header), 4, 10)
    assert error.source_line == "  return nothing;"


@pytest.mark.parametrize(
    ("before", "arguments", "instances"),
    [
        ("", "int, 16", ["k<int,16>"]),
        ("#define SIZE 64", "int, SIZE", ["k<int,64>"]),
        ("#define SIZE -3", "int, SIZE", ["k<int,-3>"]),
        ("constexpr int SIZE = 8;", "int, SIZE", ["k<int,8>"]),
        ("static const unsigned SIZE = 0x10;", "int, SIZE", ["k<int,0x10>"]),
        ("#define SIZE 64\n#undef SIZE\n#define SIZE 32", "int, SIZE", []),
        ("#define SIZE 64\nint f() { const int SIZE = 32; return SIZE; }", "int, SIZE", []),
        ("#define SIZE (64)", "int, SIZE", []),
        ("", "int, SIZE", []),
        ("typedef unsigned int word;", "word, 4", ["k<word,4>"]),
        ("using word = unsigned;", "const word*, 4", []),
        ("using word = unsigned;", "word*, 4", ["k<word*,4>"]),
        ("struct pair { int x; };", "pair, 4", ["k<pair,4>"]),
        ("typedef struct { int x; } pair;", "pair, 4", ["k<pair,4>"]),
        ("namespace n { typedef int word; }", "word, 4", []),
        ("typedef int word; void f() { typedef short word; }", "word, 4", []),
        ("typedef int word; void f() { using word = short; }", "word, 4", []),
        ("typedef int word; template <class word> word f();", "word, 4", []),
        ("template <class T> using same = T;", "same<int>, 4", []),
    ],
)
def test_instances_that_are_launched(before: str, arguments: str, instances: list[str]) -> None:
    """A name that stands for one literal or type everywhere is as good as that; others must be asked for."""
    text = (
        f"{before}\ntemplate <class T, int N> __global__ void k(T *p) {{ *p = N; }}\n"
        f"int main() {{ k<{arguments}><<<1, 2>>>(nullptr); }}\n"
    )
    found = Kernels(TranslationUnit(Source("k.cu", text), ())).instances(None)
    assert [name.replace(" ", "") for name in found] == instances
