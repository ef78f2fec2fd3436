"""A launch written by `qgpu run --emit-tokens`, and the script that runs it with nothing of qgpu."""

from __future__ import annotations

import ast
import json
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import click.testing
import numpy as np
import pytest

import machine_kernels
from launches import LAUNCHES
from qgpu.backends.machine.block import FAULTS
from qgpu.backends.machine.description import DEFAULT, SMALL, MachineDescription
from qgpu.backends.machine.host import build_launch, read_tokens
from qgpu.backends.machine.program import Kernel, Parameter
from qgpu.backends.machine.qbin import save_program
from qgpu.backends.machine.tokens import vocabulary
from qgpu.runtime import cli
from qgpu.runtime.arguments import DTYPES
from qgpu.runtime.engine import ReferenceEngine

SCRIPT = Path(__file__).parent.parent / "examples" / "plain_transformers.py"
IDS = vocabulary(SMALL)
VECADD = ("--arg", "i32[]:1,2,3", "--arg", "i32[]:4,5,5000", "--arg", "i32[3]", "--arg", "i32:3")

RUN_EACH = """
import runpy, sys
script, folder, *files = sys.argv[1:]
for file in files:
    sys.argv = [script, folder, file]
    try:
        runpy.run_path(script)
    except SystemExit as end:
        print(end)
assert not [name for name in sys.modules if name.partition(".")[0] == "qgpu"]
"""
"""Runs the script on each file, in one process, since most of the time is that of importing transformers."""


def emit(*arguments: str, status: int = 0) -> click.testing.Result:
    result = click.testing.CliRunner(catch_exceptions=False).invoke(
        cli.main, ("run", *arguments), prog_name="qgpu"
    )
    assert result.exit_code == status, result.stderr
    return result


def emit_vecadd(*more: str, status: int = 0, arguments: Sequence[str] = VECADD) -> click.testing.Result:
    return emit("k.qbin", "--grid", "1", "--block", "3", *arguments, *more, status=status)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a program, k.qbin, and the metadata of a checkpoint of its machine, in model."""
    monkeypatch.chdir(tmp_path)
    save_program(machine_kernels.program(machine_kernels.vecadd()), "k.qbin")
    Path("model").mkdir()
    Path("model/qgpu.json").write_text(json.dumps({"machine": asdict(SMALL)}))
    return tmp_path


# The script.


def test_the_script_is_short_and_imports_nothing_else() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    nodes = list(ast.walk(ast.parse(text)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert names == {"json", "sys", "torch", "transformers"}
    assert not {node.id for node in nodes if isinstance(node, ast.Name)} & {"exec", "eval", "__import__"}


def test_it_runs_launches_on_the_stock_model(
    folder: Path, checkpoint: Callable[[MachineDescription, str], Path]
) -> None:
    """One that ends, against the example's oracle, and one whose fourth thread is outside its buffers."""
    (dot, *_) = [example for example in LAUNCHES if example.kernel == "dot"]
    arguments = [_spec(argument) for argument in dot.args]
    sizes = ["--grid", ",".join(map(str, dot.grid)), "--block", ",".join(map(str, dot.block))]
    emit(str(dot.file), "--machine", "small", *sizes, *arguments, "--emit-tokens", "dot.json")
    bad = [*VECADD[:-1], "i32:4"]
    emit("k.qbin", "--grid", "1", "--block", "4", *bad, "--emit-tokens", "bad.json")
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN_EACH, str(SCRIPT), str(checkpoint(SMALL, "float32"))]
    done = subprocess.run([*command, "dot.json", "bad.json"], capture_output=True, text=True, env=one_thread)
    assert done.returncode == 0, done.stderr
    names = ("a", "b", "out")
    wanted = [f"{name} = {array.tolist()}" for name, array in zip(names, dot.expect(), strict=True)]
    assert done.stdout.splitlines() == [*wanted, "fault: out-of-bounds"]


def _spec(argument: int | np.ndarray) -> str:
    if isinstance(argument, np.ndarray):
        return f"--arg={argument.dtype.name.replace('int', 'i')}[]:{','.join(map(str, argument))}"
    return f"--arg=i32:{argument}"


class ReferenceModel:
    """In the place of a model: greedy `generate`, on the reference interpreter."""

    @classmethod
    def from_pretrained(cls, _folder: str) -> ReferenceModel:
        return cls()

    def generate(self, given, do_sample: bool, max_new_tokens: int, eos_token_id: list[int]):
        engine = ReferenceEngine(SMALL)
        engine.begin()
        sequence = given[0].tolist()
        answer = [engine.feed(sequence)]
        while answer[-1] not in eos_token_id and len(answer) < max_new_tokens:
            answer.append(engine.feed(answer[-1:]))
        return given.new_tensor([[*sequence, *answer]])


@pytest.fixture
def run_script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Runs the script on a file, with the reference interpreter in the place of transformers."""
    stand_in = ModuleType("transformers")
    stand_in.AutoModelForCausalLM = ReferenceModel  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "transformers", stand_in)

    def run(file: str) -> None:
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), "model", file])
        runpy.run_path(str(SCRIPT))

    return run


def all_types() -> Kernel:
    """A kernel of a buffer of each type, which leaves them as they are."""
    parameters = [Parameter(f"buffer_{name}", name, True, (i,)) for i, name in enumerate(DTYPES, 1)]
    return machine_kernels.kernel("keep", [machine_kernels.scalar(next_exit=1)], parameters, [])


def test_it_reads_every_type_back(
    folder: Path, run_script: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The ends of each type's range, and what takes one, two and three parts; some words are half filled."""
    save_program(machine_kernels.program(all_types()), "k.qbin")
    values: dict[str, list[int]] = {}
    for name, dtype in DTYPES.items():
        limits, edges = np.iinfo(dtype), (0, 1, 100, 2047, 2048, -2048, -2049, -1, 1 << 23, -(1 << 23) - 1)
        inside = [value for value in edges if limits.min <= value <= limits.max]
        values[name] = [int(limits.min), *inside, int(limits.max), 5]
    specs = [f"--arg={name}[]:{','.join(map(str, numbers))}" for name, numbers in values.items()]
    assert any(len(numbers) * DTYPES[name].itemsize % 4 for name, numbers in values.items())
    emit_vecadd("--emit-tokens", "k.json", arguments=specs)
    run_script("k.json")
    assert capsys.readouterr().out.splitlines() == [
        f"buffer_{n} = {numbers}" for n, numbers in values.items()
    ]


def test_an_empty_buffer(
    folder: Path, run_script: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    emit_vecadd("--emit-tokens", "k.json", arguments=["--arg=i32[0]"] * 3 + ["--arg=i32:0"])
    run_script("k.json")
    assert capsys.readouterr().out == "a = []\nb = []\nc = []\n"


def test_what_it_refuses(folder: Path, run_script: Callable[[str], None]) -> None:
    emit_vecadd("--emit-tokens", "k.json", "--max-tokens", "10")
    with pytest.raises(SystemExit, match="no end after 10 tokens"):
        run_script("k.json")
    Path("model/qgpu.json").write_text(json.dumps({"machine": asdict(DEFAULT)}))
    with pytest.raises(SystemExit, match="the tokens are for another machine"):
        run_script("k.json")


# The file.


def test_the_file_holds_the_launch_and_how_to_read_it_back(folder: Path) -> None:
    assert emit_vecadd("--emit-tokens", "k.json", "--max-tokens", "500").output == ""
    buffers = [np.array(values, "<i4").tobytes() for values in ((1, 2, 3), (4, 5, 5000), (0, 0, 0))]
    launch = build_launch(SMALL, machine_kernels.vecadd(), (1, 1, 1), (3, 1, 1), [*buffers, 3])
    sizes = asdict(SMALL)
    del sizes["name"], sizes["model"]
    assert json.loads(Path("k.json").read_text()) == {
        "kernel": "_Z6vecaddPKiS0_Pii",
        "machine": sizes,
        "baked": None,
        "prompt": list(launch.prompt),
        "max_new_tokens": 500,
        "exit": IDS.id("exit"),
        "faults": {str(IDS.id("fault", i)): kind for i, kind in enumerate(FAULTS)},
        "part_bits": 12,
        "more": [IDS.id("more", 0), IDS.id("more", 4095) + 1],
        "last": [IDS.id("last", 0), IDS.id("last", 4095) + 1],
        "buffers": [
            {
                "name": name,
                "type": "int32",
                "bytes": 12,
                "reads": [{"tokens": read_tokens(SMALL, address, 3), "words": 3, "max_new_tokens": 10}],
            }
            for name, address in (("a", 0), ("b", 16), ("c", 32))
        ],
    }


def test_the_file_may_be_standard_output(folder: Path) -> None:
    emit_vecadd("--emit-tokens", "k.json")
    assert emit_vecadd("--emit-tokens", "-").stdout == Path("k.json").read_text()


@pytest.mark.parametrize(
    "options",
    ["--backend weights", "--backend ir", "--dtype float32", "--device cpu", "--check", "--trace", "--json"],
)
def test_options_for_running_are_wrong_usage(folder: Path, options: str) -> None:
    result = emit_vecadd("--emit-tokens", "k.json", *options.split(), status=2)
    option = options.split()[0]
    assert result.stderr.endswith(f"Error: --emit-tokens runs nothing: leave out {option}.\n")
    assert not Path("k.json").exists()


@pytest.mark.parametrize("output", ["./k.qbin", "a.npy", "small.toml"])
def test_what_is_read_is_not_overwritten(folder: Path, output: str) -> None:
    np.save("a.npy", np.array([1, 2, 3], np.int32))
    Path("small.toml").write_text("lanes = 4\n")
    before = Path(output).read_bytes()
    arguments = ["--arg", "i32[]:@./a.npy", *VECADD[2:], "--machine", "small.toml"]
    result = emit_vecadd("--emit-tokens", output, arguments=arguments, status=2)
    assert result.stderr.endswith(f"Error: The output file '{output}' is the input file.\n")
    assert Path(output).read_bytes() == before


def test_a_launch_that_fails_leaves_the_file_as_it_was(folder: Path) -> None:
    Path("k.json").write_text("mine")
    result = emit_vecadd("--emit-tokens", "k.json", arguments=["--arg", "i32[500]", *VECADD[2:]], status=1)
    assert "the launch needs 507 words of memory" in result.stderr
    Path("model/qgpu.json").write_text(json.dumps({"machine": asdict(DEFAULT)}))
    result = emit_vecadd("--emit-tokens", "k.json", "--model", "model", status=1)
    assert "'model' is the checkpoint of another machine" in result.stderr
    assert Path("k.json").read_text() == "mine"
    emit_vecadd("--emit-tokens", "k.json")
    assert json.loads(Path("k.json").read_text())["kernel"] == "_Z6vecaddPKiS0_Pii"


def test_a_file_that_cannot_be_written(folder: Path) -> None:
    result = emit_vecadd("--emit-tokens", "no/k.json", status=1)
    assert result.stderr.splitlines()[0] == "qgpu: error: cannot write 'no/k.json': No such file or directory"
