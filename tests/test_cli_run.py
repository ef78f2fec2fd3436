"""`qgpu run` and `qgpu objdump` as a user meets them: stdout, stderr, exit status."""

import dataclasses
import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click.testing
import numpy as np
import pytest

import machine_kernels
from qgpu.backends.machine.description import DEFAULT, SMALL
from qgpu.backends.machine.host import build_launch
from qgpu.backends.machine.qbin import save_program
from qgpu.runtime import cli, engines, run_launch
from qgpu.runtime.engine import Progress, ReferenceEngine


@dataclass(frozen=True)
class Result:
    """What a command left."""

    status: int
    out: str
    err: str


def qgpu(*arguments: str) -> Result:
    """Run `qgpu`; an exception that is no exit is the test's failure."""
    result = click.testing.CliRunner(catch_exceptions=False).invoke(cli.main, arguments, prog_name="qgpu")
    return Result(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def qbin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program of two kernels, in the current folder."""
    monkeypatch.chdir(tmp_path)
    save_program(machine_kernels.program(machine_kernels.vecadd(), machine_kernels.triangle()), "k.qbin")
    return "k.qbin"


VECADD = ("--arg", "i32[]:1,2,3", "--arg", "i32[]:4,5,5000", "--arg", "i32[3]", "--arg", "i32:3")


def vecadd(qbin: str, *more: str, block: int = 3, arguments: Sequence[str] = VECADD) -> Result:
    sizes = ("--grid", "1", "--block", str(block))
    backend = () if "--backend" in more else ("--backend", "reference")
    return qgpu("run", qbin, "--kernel", "vecadd", *sizes, *arguments, *backend, *more)


def test_results_alone_are_on_stdout(qbin: str) -> None:
    result = vecadd(qbin)
    assert result.status == 0
    assert result.out == "a = [1, 2, 3]\nb = [4, 5, 5000]\nc = [5, 7, 5003]\nn = 3\n"
    assert "24 generated" in result.err


def test_json(qbin: str) -> None:
    result = vecadd(qbin, "--json")
    outcome = json.loads(result.out)
    assert outcome.pop("tokens_per_second") > 0
    contents = [struct.pack("<3i", *values) for values in ((1, 2, 3), (4, 5, 5000), (0, 0, 0))]
    launch = build_launch(SMALL, machine_kernels.vecadd(), (1, 1, 1), (3, 1, 1), [*contents, 3])
    assert outcome == {
        "args": [[1, 2, 3], [4, 5, 5000], [5, 7, 5003], 3],
        "prompt_tokens": len(launch.prompt),
        "generated_tokens": 24,
        "compiled_layers": None,
        "layer_passes": None,
        "checked": None,
        "output": "",
        "fault": None,
    }


def test_trace_goes_to_stderr(qbin: str) -> None:
    result = vecadd(qbin, "--trace")
    assert result.out.startswith("a = ")
    lines = result.err.splitlines()
    assert len(lines) == 25
    assert lines[15].split() == (
        [
            "16",
            "<last:1>",
            "block",
            "3,",
            "warp",
            "0,",
            "lane",
            "2,",
            "part",
            "1:",
            "result",
            "5003",
            "#",
            "k.cu:4",
        ]
    )
    assert lines[23].split()[:2] == ["24", "<exit>"]


def test_the_mangled_name_and_npy_files(qbin: str) -> None:
    np.save("a.npy", np.array([1, 2, 3], np.int32))
    arguments = ["--arg", "i32[]:@a.npy", *VECADD[2:]]
    result = qgpu("run", qbin, "--kernel", "_Z6vecaddPKiS0_Pii", "--grid", "1,1,1", "--block", "3,1",
                  *arguments, "--backend", "reference")  # fmt: skip
    assert (result.status, result.out.splitlines()[2]) == (0, "c = [5, 7, 5003]")


def test_a_fault_is_a_diagnostic(qbin: str) -> None:
    Path("k.cu").write_text("\n\n  c[i] = a[i] + b[i];\n")
    result = vecadd(qbin, "--json", block=4, arguments=[*VECADD[:-1], "i32:4"])
    assert result.status == 1
    outcome = json.loads(result.out)
    assert outcome["args"] is None
    assert outcome["fault"] == {
        "kind": "out-of-bounds", "thread": [3, 0, 0], "block": [0, 0, 0],
        "file": "k.cu", "line": 3, "column": 1, "message": "",
    }  # fmt: skip
    assert result.err.split("\n", 1)[1] == (
        "k.cu:3:1: error: out-of-bounds: access outside its buffer\n"
        "  c[i] = a[i] + b[i];\n"
        "^\n"
        "note: in thread (3, 0, 0) of block (0, 0, 0)\n"
        "note: compare the index with the number of elements before the access\n"
        "1 error generated.\n"
    )
    assert vecadd(qbin, block=4, arguments=[*VECADD[:-1], "i32:4"]).out == ""


class SlowEngine(ReferenceEngine):
    """The reference with layers, as a stand-in for a model; wrong at its sixth token if told so."""

    layers = 13
    wrong = False

    def feed(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        token = super().feed(tokens, progress)
        self.count = getattr(self, "count", 0) + 1
        return token + 1 if self.wrong and self.count == 6 else token


@pytest.fixture
def slow_engine(monkeypatch: pytest.MonkeyPatch) -> type[SlowEngine]:
    monkeypatch.setattr(engines, "built_checkpoint", lambda machine, dtype: "/nowhere")
    monkeypatch.setattr(run_launch, "make_engine", lambda backend, machine, *rest: SlowEngine(machine))
    monkeypatch.setattr(SlowEngine, "wrong", False)
    return SlowEngine


def test_check_passes(qbin: str, slow_engine: type[SlowEngine]) -> None:
    result = vecadd(qbin, "--backend", "engine", "--check")
    assert result.status == 0
    assert "24 generated x 13 layers = 312 layer passes" in result.err
    assert result.err.endswith("every token equal to the reference\n")
    outcome = json.loads(vecadd(qbin, "--backend", "engine", "--check", "--json").out)
    assert (outcome["checked"], outcome["compiled_layers"], outcome["layer_passes"]) == (True, 13, 312)


def test_check_names_the_first_difference(
    qbin: str, slow_engine: type[SlowEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_engine, "wrong", True)
    result = vecadd(qbin, "--backend", "engine", "--check", "--json")
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(
        "qgpu: error: generated token 5 is <last:2051> (result), the reference's is <last:2050>: "
        "block 1, warp 0, lane 1, part 0\n"
    )


def first_error(result: Result) -> str:
    assert result.out == ""
    assert "Traceback" not in result.err
    return result.err.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arg", "i32:1"], "qgpu: error: kernel 'vecadd' takes 4 arguments (i32* a, i32* b, "
                             "i32* c, i32 n); 1 are given"),
        (["--arg", "i64[]:1", *VECADD[2:]],
         "qgpu: error: argument 1 of kernel 'vecadd' is i64[1]; parameter i32* a is wanted"),
        (["--arg", "i32[]:@no.npy", *VECADD[2:]],
         "qgpu: error: cannot read 'no.npy': No such file or directory"),
        (["--arg", "i32[]:3000000000", *VECADD[2:]],
         "qgpu: error: 3000000000 is out of range for i32: -2147483648 to 2147483647"),
        (["--arg", "i32[500]", *VECADD[2:]],
         "qgpu: error: the launch needs 507 words of memory; machine 'small' has 128: "
         "2024 bytes of arguments"),
    ],
)  # fmt: skip
def test_bad_arguments(qbin: str, arguments: list[str], message: str) -> None:
    result = vecadd(qbin, arguments=arguments)
    assert (result.status, first_error(result)) == (1, message)


def test_bad_launches(qbin: str) -> None:
    assert first_error(vecadd(qbin, block=9)).startswith("qgpu: error: blocks of 9 threads: ")
    assert first_error(vecadd(qbin, "--max-tokens", "7")) == (
        "qgpu: error: the launch has not ended after 7 tokens"
    )
    assert vecadd(qbin, "--machine", "default").err.splitlines()[:3] == [
        "k.qbin: error: compiled for machine 'small', not for 'default': "
        "'small' has lanes = 4, 'default' has 32",
        "note: compile it for that one: qgpuc k.cu --machine default -o k.qbin",
        "note: or leave out --machine to run it on its own",
    ]
    assert first_error(vecadd(qbin, "--machine", "nowhere")).startswith("qgpu: error: no machine 'nowhere'")


def test_bad_files(qbin: str) -> None:
    assert first_error(vecadd("no.qbin")) == "qgpu: error: cannot read 'no.qbin': No such file or directory"
    assert first_error(vecadd(".")) == "qgpu: error: cannot read '.': Is a directory"
    data = bytearray(Path(qbin).read_bytes())
    data[100] ^= 1
    Path("bad.qbin").write_bytes(data)
    message = "bad.qbin: error: not a valid .qbin file: at byte 16: the checksum does not match the content"
    for result in (vecadd("bad.qbin"), qgpu("objdump", "bad.qbin")):
        assert (result.status, first_error(result)) == (1, message)
    Path("some.txt").write_text("hello, this is no program at all")
    assert "some.txt: error: not a valid .qbin file: at byte 0" in first_error(qgpu("objdump", "some.txt"))
    Path("k.cu").write_bytes(b"int \xff;")
    assert first_error(vecadd("k.cu")) == "k.cu: error: not a text file: byte 4 is not UTF-8"


def test_bad_kernels(qbin: str) -> None:
    sizes = ("--grid", "1", "--block", "1", "--backend", "reference")
    result = qgpu("run", qbin, *sizes)
    assert (result.status, result.err.splitlines()[:2]) == (
        1,
        [
            "qgpu: error: several kernels: choose one by its full name with --kernel",
            "note: there are: vecadd, triangle",
        ],
    )
    assert first_error(qgpu("run", qbin, *sizes, "--kernel", "dot")) == "qgpu: error: no kernel 'dot'"


def test_checkpoints_of_other_machines(qbin: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    result = vecadd(qbin, "--backend", "weights", "--model", str(folder))
    assert first_error(result).startswith(f"qgpu: error: no checkpoint in '{folder}'")
    assert "note: a checkpoint is a directory that qgpuc --emit-weights -o DIR wrote" in result.err
    folder.mkdir()
    (folder / "qgpu.json").write_text(json.dumps({"machine": dataclasses.asdict(DEFAULT)}))
    result = vecadd(qbin, "--backend", "weights", "--model", str(folder))
    assert (result.status, first_error(result)) == (
        1,
        f"qgpu: error: '{folder}' is the checkpoint of another machine: "
        "'small' has lanes = 4, 'default' has 32",
    )
    assert "note: give the source instead of the program" in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "k.qbin", "--grid", "1"],
        ["run", "k.qbin", "--grid", "1", "--block", "a"],
        ["run", "k.qbin", "--grid", "1", "--block", "1,2,3,4"],
        ["run", "k.qbin", "--grid", "1", "--block", "1", "--arg", "i32"],
        ["run", "k.qbin", "--grid", "1", "--block", "1", "--backend", "gpu"],
        ["run", "k.qbin", "--grid", "1", "--block", "1", "--shared", "-4"],
        ["run", "k.qbin", "--grid", "1", "--block", "1", "--backend", "reference", "--check"],
        ["run", "k.qbin", "--grid", "1", "--block", "1", "--backend", "engine", "--dtype", "bfloat16"],
        ["objdump"],
        ["frobnicate"],
    ],
)
def test_wrong_usage(qbin: str, arguments: list[str]) -> None:
    result = qgpu(*arguments)
    assert result.status == 2
    assert result.out == ""
    assert "Error: " in result.err


def test_objdump(qbin: str) -> None:
    result = qgpu("objdump", qbin)
    assert result.status == 0
    assert "kernel triangle(u32* out: u1)" in result.out.splitlines()


def test_starting_takes_no_torch() -> None:
    """The commands that need no model must not pay for loading what runs one."""
    code = "import sys, qgpu.runtime.cli; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                            env={"PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    assert result.stdout == "[]\n"
