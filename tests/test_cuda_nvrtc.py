"""CUDA to PTX with NVRTC: options, headers, errors in the user's file."""

import time
from pathlib import Path

import pytest

from qgpu.toolchain.cuda import COMPILERS, CudaOptions, nvrtc
from qgpu.toolchain.diagnostics import DiagnosticError, Source

KERNEL = 'extern "C" __global__ void k(int *a) { a[threadIdx.x] = VALUE; }\n'


def compile_text(text: str, name: str = "k.cu", **options) -> str:
    return COMPILERS["nvrtc"].compile(Source(name, text), CudaOptions(**options)).text


def errors_of(text: str, name: str = "k.cu", **options) -> list:
    with pytest.raises(DiagnosticError) as caught:
        compile_text(text, name, **options)
    return [found for found in caught.value.diagnostics if found.severity == "error"]


def test_ptx_has_line_information_and_defines() -> None:
    ptx = compile_text("\n" + KERNEL, defines=("VALUE=1234",))
    assert ".target sm_75" in ptx
    assert "\t.loc\t1 2 " in ptx
    assert "1234" in ptx


def test_architecture() -> None:
    assert ".target sm_80" in compile_text(KERNEL, defines=("VALUE",), architecture="compute_80")


def test_include_paths(tmp_path: Path) -> None:
    for folder, name, text in [("here", "a.h", "#define A 111"), ("there", "b.h", "#define B 222")]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    source = '#include "a.h"\n#include <b.h>\n' + KERNEL.replace("VALUE", "A + B")
    ptx = compile_text(source, str(tmp_path / "here" / "k.cu"), include_dirs=(tmp_path / "there",))
    assert "333" in ptx


def test_standard_integer_headers() -> None:
    headers = ["stdint.h", "cstdint", "limits.h", "climits", "stddef.h", "cuda_runtime.h"]
    sizes = {"int8_t": 1, "std::uint16_t": 2, "std::int32_t": 4, "uint64_t": 8, "uintptr_t": 8, "size_t": 8}
    checks = [f"static_assert(sizeof({name}) == {size});" for name, size in sizes.items()]
    checks += [f"static_assert({name} + 1 == 0);" for name in ("UINT32_MAX", "UINT_MAX", "ULONG_MAX")]
    checks += ["static_assert((signed char)(CHAR_MAX + 1) == CHAR_MIN);"]
    lines = [*(f"#include <{name}>" for name in headers), *checks, KERNEL]
    assert ".entry k" in compile_text("\n".join(lines), defines=("VALUE=INT_MIN",))


def test_errors_point_into_the_users_file() -> None:
    first, second = errors_of(
        'extern "C" __global__ void k(int *a) {\n\t*a = b;\n  a->x = 1;\n}\n', "dir/k.cu"
    )
    assert (first.file, first.line, first.column, first.source_line) == ("dir/k.cu", 2, 7, "\t*a = b;")
    assert (second.line, second.column) == (3, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('#include "gone.h"\n', "'gone.h' file not found"),
        ("a\0b", "the source contains a NUL character"),
    ],
)
def test_refusals_in_our_words(text: str, message: str) -> None:
    (error,) = errors_of(text)
    assert (error.message, error.file) == (message, "k.cu")


def test_an_error_without_a_place_is_passed_on() -> None:
    (error,) = errors_of(KERNEL, defines=("1=1",))
    assert "invalid macro definition: 1=1" in error.message


def test_warnings_come_with_the_ptx() -> None:
    source = Source("k.cu", KERNEL.replace("VALUE", "1; int unused"))
    (warning,) = COMPILERS["nvrtc"].compile(source, CudaOptions()).warnings
    assert (warning.severity, warning.line) == ("warning", 1)


def test_missing_nvrtc_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_NAMESPACE", "nvidia_missing")
    nvrtc._load.cache_clear()
    try:
        (error,) = errors_of(KERNEL)
    finally:
        nvrtc._load.cache_clear()
    assert error.message == "NVRTC, the CUDA compiler, is not installed"


def seconds_to_compile() -> float:
    start = time.process_time()
    compile_text(KERNEL, defines=("VALUE=1",))
    return time.process_time() - start


def test_a_small_kernel_compiles_fast() -> None:
    assert min(seconds_to_compile() for _ in range(3)) < 0.6
