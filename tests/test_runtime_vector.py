"""The back ends without tokens, `vector` and `ir`: the reference's results, from the shell and in Python."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import machine_kernels
from launches import HERE
from qgpu.backends.machine.qbin import save_program
from qgpu.runtime import compile
from qgpu.runtime.api import FaultError
from qgpu.runtime.cli import main

BACKENDS = ("reference", "vector", "ir")
DOT = ("--grid", "1", "--block", "3", "--arg", "i32[]:4,5,6", "--arg", "i32[1]", "--arg", "i32:3")
PRINTS = r"""
#include <stdio.h>
extern "C" __global__ void prints(int *out) {
    printf("thread %d\n", threadIdx.x);
    out[threadIdx.x] = warpSize;
}
"""


def qgpu(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def run_dot(backend: str, first: Sequence[int], *more: str) -> Result:
    buffer = f"i32[]:{','.join(map(str, first))}"
    return qgpu("run", str(HERE / "dot.cu"), "--arg", buffer, *DOT, "--backend", backend, *more)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_arguments_after_a_launch(backend: str) -> None:
    result = run_dot(backend, [1, 2, 3])
    assert result.exit_code == 0, result.output
    assert "out = [32]" in result.stdout


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fault_is_shown_at_its_line(backend: str) -> None:
    result = run_dot(backend, [1, 2])
    assert result.exit_code == 1
    assert "dot.cu:7:9: error: " in result.stderr
    assert "in thread (2, 0, 0) of block (0, 0, 0)" in result.stderr
    assert result.stdout == ""


def test_the_number_of_tokens_is_the_references() -> None:
    counts = [json.loads(run_dot(backend, [1, 2, 3], "--json").stdout) for backend in ("reference", "vector")]
    assert counts[0]["generated_tokens"] == counts[1]["generated_tokens"] > 3
    assert counts[0]["args"] == counts[1]["args"]


def test_a_launch_that_does_not_end() -> None:
    result = run_dot("vector", [1, 2, 3], "--max-tokens", "5")
    assert result.exit_code == 1 and "has not ended after 5 tokens" in result.stderr


@pytest.mark.parametrize("backend", ["vector", "ir"])
def test_options_about_tokens_and_models_are_refused(backend: str) -> None:
    for option in (["--check"], ["--trace"], ["--model", "somewhere"]):
        result = run_dot(backend, [1], *option)
        assert result.exit_code == 2 and "neither tokens nor a model" in result.stderr


def test_machine_code_has_no_ir(tmp_path: Path) -> None:
    file = tmp_path / "a.qbin"
    save_program(machine_kernels.program(machine_kernels.vecadd()), file)
    result = qgpu("run", str(file), "--grid", "1", "--block", "1", "--backend", "ir")
    assert result.exit_code == 1 and "of which there is no IR" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arg", "i32:1"], "argument 1 of kernel"),
        ([], "takes 4 arguments"),
        (["--kernel", "other"], "no kernel 'other'"),
    ],
)
def test_what_the_ir_is_given_has_to_fit(arguments: list[str], message: str) -> None:
    more = ["--arg", "i32[1]", "--arg", "i32[1]", "--arg", "i32:1"] if "i32:1" in arguments else []
    sizes = ("--grid", "1", "--block", "1", "--backend", "ir")
    result = qgpu("run", str(HERE / "dot.cu"), *sizes, *arguments, *more)
    assert result.exit_code == 1 and message in result.stderr


def test_what_a_kernel_prints(tmp_path: Path) -> None:
    file = tmp_path / "prints.cu"
    file.write_text(PRINTS)
    sizes = ("--grid", "1", "--block", "2", "--backend", "ir", "--arg", "i32[2]")
    result = qgpu("run", str(file), *sizes)
    assert result.stdout == "thread 0\nthread 1\nout = [32, 32]\n"
    assert json.loads(qgpu("run", str(file), *sizes, "--json").stdout) == {
        "args": [[32, 32]],
        "output": "thread 0\nthread 1\n",
    }


def test_vector_from_python() -> None:
    add = compile(HERE / "vecadd.cu", backend="vector")
    a, out = np.arange(100, dtype=np.int32), np.zeros(100, np.int32)
    outcome = add[4, 32](a, a, out, 100)
    assert out.tolist() == (2 * a).tolist()
    assert outcome.tokens > 100
    with pytest.raises(FaultError):
        add[4, 32](a, a, out, 120)
    assert out.tolist() == (2 * a).tolist()
