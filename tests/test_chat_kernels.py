"""Advanced mode: kernels that a text model writes, right ones, wrong ones and malicious ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from qgpu.backends.machine.description import DEFAULT
from qgpu.runtime.chat import Session, limits, untrusted
from qgpu.runtime.chat.kernel_tool import KernelTool
from qgpu.runtime.chat.machine import bounded_runs
from qgpu.runtime.chat.tool import ToolError
from qgpu.runtime.chat.untrusted import check_source, compile_untrusted
from qgpu.runtime.vector import run_vector
from qgpu.toolchain.compile import compile_source
from qgpu.toolchain.diagnostics import DiagnosticError
from scripted_model import ScriptedModel, json_call, last_answer, xml_call

KERNEL = """__global__ void k(const int *a, int *out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = a[i] * 2;
}
"""
LAUNCH: dict[str, Any] = {"block": "4", "args": ["i32[]:1,2,3", "i32[3]", "i32:3"]}


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile in this process, where a test is about something else: the look at the source stays."""

    def compile(text: str, machine: Any) -> Any:
        check_source(text)
        try:
            return compile_source(text, untrusted.FILE, "cu", machine)
        except DiagnosticError as error:
            raise ToolError(str(error)) from None

    monkeypatch.setattr("qgpu.runtime.chat.kernel_tool.compile_untrusted", compile)


def tool() -> KernelTool:
    return KernelTool(DEFAULT, run_vector)


def refusal(**arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        tool().call(arguments)
    return str(caught.value)


# The tool.


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(
    "launch",
    [
        LAUNCH,
        {"grid": 1, "block": 4, "args": [[1, 2, 3], "i32[3]", 3]},
        {"grid": [1], "block": [2, 2], "args": '["i32[]:1,2,3", "i32[3]", "i32:3"]'} | {"block": [4, 1]},
        {"grid": "(1, 1)", "block": "4,1,1", "args": "i32[]:1,2,3\ni32[3]\ni32:3"},
    ],
)
def test_buffers_after_a_launch(launch: dict[str, Any]) -> None:
    answer = tool().call({"source": KERNEL, **launch})
    assert answer.text == "a = [1, 2, 3]\nout = [2, 4, 6]"
    (record,) = answer.launches
    assert (record.routine, record.block, record.shapes) == ("k", (4, 1, 1), ((3,), (3,), ()))


@pytest.mark.usefixtures("trusted")
def test_what_a_kernel_prints() -> None:
    source = '#include <stdio.h>\n__global__ void k(int n) { printf("%d and %d\\n", n, n * n); }'
    assert tool().call({"source": source, "block": "1", "args": ["i32:7"]}).text == "7 and 49\n"


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": ""}, "no argument 'source'"),
        ({"source": KERNEL.replace("int n", "int m")}, "kernel.cu:3:11: error: 'n' is not declared"),
        ({"source": KERNEL + KERNEL.replace(" k(", " j(")}, "2 kernels: write one alone"),
        ({"source": "int x;"}, "no kernel"),
        ({"block": "0"}, "'block' is X, X,Y or X,Y,Z"),
        ({"block": "a"}, "'block' is X, X,Y or X,Y,Z"),
        ({"grid": "70000"}, "'grid' is X, X,Y or X,Y,Z"),
        ({"block": "2000"}, "of at most 1024"),
        ({"args": ["i32[]:1,2,3"]}, "takes 3 arguments"),
        ({"args": ["i32[]:@secrets.npy", "i32[3]", "i32:3"]}, "cannot be read from a file"),
        ({"args": ["i32[]:1,2,3", "i32[9999]", "i32:3"]}, "words of memory"),
        ({"args": ["f32[]:1,2,3", "i32[3]", "i32:3"]}, "is no argument"),
        ({"args": {"a": 1}}, "'args' is a list"),
        ({"args": ["i32:1"] * 40}, "'args' is a list"),
        ({"shared": 4}, "there is no argument 'shared'"),
        ({"args": ["i32[]:1,2,3", "i32[3]", "i32:4"]}, "kernel.cu:3:3: error: out-of-bounds"),
    ],
)
def test_wrong_calls(change: dict[str, Any], message: str) -> None:
    assert message in refusal(**{"source": KERNEL, **LAUNCH, **change})


@pytest.mark.usefixtures("trusted")
def test_a_fault_has_its_line() -> None:
    source = "__global__ void k(int *a) {\n  a[threadIdx.x] = 1;\n}"
    text = refusal(source=source, block="5", args=["i32[4]"])
    assert "kernel.cu:2:3: error: out-of-bounds" in text
    assert "\n  a[threadIdx.x] = 1;\n  ^" in text and "in thread (4, 0, 0)" in text


@pytest.mark.usefixtures("trusted")
def test_a_loop_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qgpu.runtime.chat.machine.LAUNCH_TOKENS", 200)
    endless = KernelTool(DEFAULT, bounded_runs(ScriptedModel().launch_engine))
    with pytest.raises(ToolError, match="is there a loop that does not end"):
        endless.call(
            {
                "source": "__global__ void k(volatile int *a) { for (;;) a[0] = a[0] + 1; }",
                "block": "1",
                "args": ["i32[1]"],
            }
        )


@pytest.mark.usefixtures("trusted")
def test_a_name_in_the_source_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault's place is shown from the text that was given, whatever lies in the folder."""
    monkeypatch.chdir(tmp_path)
    Path(untrusted.FILE).write_text("secret\nsecret\nsecret\n")
    source = "__global__ void k(int *a) {\n  a[7] = 1;\n}"
    assert "secret" not in refusal(source=source, block="1", args=["i32[1]"])


# Malicious sources.


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"',
        "#include </etc/passwd>",
        '#include "../../pyproject.toml"',
        "#include <thrust/sort.h>",
        '  #  include "secrets.h"',
        '#/**/include "/etc/passwd"',
        '#inc\\\nlude "/etc/passwd"',
        '#\\\n  include "/etc/passwd"',
        '#include \\\n "/etc/passwd"',
        '%:include "/etc/passwd"',
        '??=include "/etc/passwd"',
        '#define F "/etc/passwd"\n#include F',
        '#include_next "/etc/passwd"',
        '#embed "/etc/passwd"',
        '#import "/etc/passwd"',
        '#line 1 "/etc/passwd"',
        '# 1 "/etc/passwd"',
        '#if __has_include("/etc/passwd")\n#endif',
        "int a = __has_include(</etc/passwd>);",
        '/* */ #include "/etc/passwd"',
    ],
)
def test_files_that_a_source_names(line: str) -> None:
    with pytest.raises(ToolError, match=r"kernel\.cu:\d+:\d+: error: .*\n.*\n *\^"):
        check_source(f"int x;\n{line}\n{KERNEL}")


@pytest.mark.parametrize(
    "text",
    [
        KERNEL,
        f"#include <cuda_runtime.h>\n#include <cooperative_groups/reduce.h>\n#include <vector>\n{KERNEL}",
        f"#define TWICE(x) \\\n  ((x) * 2)\n#ifdef TWICE\n#pragma once\n#endif\n{KERNEL}",
        f'// #include "/etc/passwd"\nconst char *s = "#include <x>";\n{KERNEL}',
    ],
)
def test_sources_that_name_none(text: str) -> None:
    check_source(text)


def test_a_source_is_not_too_long() -> None:
    with pytest.raises(ToolError, match="20000 are the most"):
        check_source("/" * (limits.SOURCE_CHARACTERS + 1))


def test_the_process_that_compiles_opens_no_file(tmp_path: Path) -> None:
    """Past the look at the source: files that are there are not found, and none is shown."""
    secret = tmp_path / "secret.h"
    secret.write_text("secret secret\n")
    asked = f'#if __has_include("{secret}")\n#error found\n#endif\n'
    text = f'{asked}#line 1 "{secret}"\n#include "{secret}"\n{KERNEL}'
    request = {"source": text, "file": untrusted.FILE, "machine": dataclasses.asdict(DEFAULT)}
    answer = untrusted._ask_child(request)
    assert "file not found" in answer["error"]
    assert "secret secret" not in answer["error"] and "#error" not in answer["error"]


def test_the_process_that_compiles_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    many = "#define A(x) x x x x x x x x x x\n__global__ void k(int *a) { A(A(A(A(A(A(*a += a[3];)))))) }"
    monkeypatch.setattr(untrusted, "COMPILE_CPU_SECONDS", 1)
    with pytest.raises(ToolError, match=r"takes more than 1 seconds and \d GiB of memory to compile"):
        compile_untrusted(many, DEFAULT)
    monkeypatch.setattr(untrusted, "COMPILE_SECONDS", 0.2)
    with pytest.raises(ToolError, match=r"takes more than 0\.2 seconds to compile"):
        compile_untrusted(KERNEL, DEFAULT)


def test_a_model_mends_its_kernel() -> None:
    """A compile error and a fault go back; the third call is right; then the answer."""
    wrong = KERNEL.replace("* 2", "* two")
    model = ScriptedModel(
        xml_call(source=wrong, **LAUNCH),
        json_call(source=KERNEL, **{**LAUNCH, "args": ["i32[]:1,2", "i32[3]", 3]}),
        xml_call(source=KERNEL, **LAUNCH),
        last_answer,
    )
    answer = Session(model, KernelTool(DEFAULT, bounded_runs(model.launch_engine))).ask("Twice 1, 2, 3?")
    told = [given.text for _, given in answer.calls]
    assert "'two' is not declared" in told[0]
    assert "out-of-bounds" in told[1]
    assert answer.text == "The result is a = [1, 2, 3]\nout = [2, 4, 6]."
    assert (answer.failures, len(answer.launches)) == (2, 2)
