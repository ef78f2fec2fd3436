"""Baked checkpoints: the kernel in the weights gives the tokens of the machine that is told of it."""

from __future__ import annotations

import functools
import hashlib
import json
import random
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import click.testing
import numpy as np
import pytest

import machine_kernels
from codegen_runs import words
from qgpu.backends import transformer
from qgpu.backends.machine.baked import BakedKernel, bake_kernel
from qgpu.backends.machine.block import Block, row_bits
from qgpu.backends.machine.description import SMALL, MachineDescription
from qgpu.backends.machine.host import Dim3, LaunchError, build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.prover import certify
from qgpu.backends.prover.equivalence.check import check
from qgpu.backends.prover.prove import RIGHT_NUMBERS, Certificate, Failure, prove
from qgpu.backends.reference.run import run_launch
from qgpu.backends.transformer import emit_baked
from qgpu.backends.transformer.bake import build_baked
from qgpu.backends.transformer.circuit import Circuit, Column, Form, Head, conjunction, equals
from qgpu.backends.transformer.emit import Layout
from qgpu.backends.transformer.evaluate import Evaluator
from qgpu.backends.transformer.fold import fold
from qgpu.backends.transformer.schedule import schedule
from qgpu.backends.transformer.stages import Tell
from qgpu.runtime import cli
from qgpu.runtime.compiled import CompiledEngine
from qgpu.runtime.launch import run
from qgpu.runtime.stock import StockEngine
from qgpu.toolchain import driver
from qgpu.toolchain.compile import compile_source

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "examples" / "plain_transformers.py"
ONE: Dim3 = (1, 1, 1)


@functools.cache
def compiled(file: str, machine: MachineDescription) -> Kernel:
    """The only kernel of a source."""
    text = (ROOT / file).read_text(encoding="utf-8")
    (kernel,) = compile_source(text, file, "cu", machine).kernels
    return kernel


class Case:
    """A kernel, a machine, and launches (grid, block, arguments); baked for the first one's shape, or any."""

    def __init__(
        self,
        file: str,
        machine: MachineDescription,
        *launches: tuple[Dim3, Dim3, list[int | bytes]],
        shaped: bool = False,
    ) -> None:
        self.file, self.machine, self.launches, self.shaped = file, machine, launches, shaped

    def baked(self) -> BakedKernel:
        """The kernel, baked."""
        shape = self.launches[0][:2] if self.shaped else ()
        return bake_kernel(compiled(self.file, self.machine), self.machine, *shape)


EMPTY = bytes(4)
CASES = {
    "dot": Case(
        "examples/dot.cu",
        SMALL,
        (ONE, (3, 1, 1), [words(1, 2, 3), words(4, 5, 6), EMPTY, 3]),
        ((2, 1, 1), (4, 1, 1), [words(*range(-9, -2)), words(*range(5000, 5007)), EMPTY, 7]),
    ),
    "collatz": Case(
        "examples/collatz.cu", SMALL, (ONE, (3, 1, 1), [words(1, 2, 3), bytes(12), 3]), shaped=True
    ),
    "reduction": Case("tests/files/reduction.cu", SMALL, ((2, 1, 1), (4, 1, 1), [bytes(16), 10])),
}
"""A sum by atomic operations, a loop that lanes leave one by one, and shared memory with barriers."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Layout]]:
    """The checkpoint of a case, and its layout, made once."""

    @functools.cache
    def made(name: str) -> tuple[Path, Layout]:
        folder, case = tmp_path_factory.mktemp(name), CASES[name]
        told: list[str] = []
        layout = emit_baked(case.baked(), folder, source=case.file, tell=told.append)
        assert told == ["circuit", "what the kernel uses of it", "layers", "weights"]
        return folder, layout

    return made


@pytest.mark.parametrize("name", CASES)
def test_tokens_are_those_of_the_machine_with_the_program(
    folders: Callable[[str], tuple[Path, Layout]], name: str
) -> None:
    case = CASES[name]
    folder, layout = folders(name)
    baked, engine = case.baked(), CompiledEngine(folder)
    assert layout.layers < 10
    for grid, block, arguments in case.launches:
        launch = baked.launch(grid, block, arguments)
        told = build_launch(case.machine, baked.kernel, grid, block, arguments)
        assert len(launch.prompt) < len(told.prompt)
        assert not {vocabulary(case.machine).token(t).kind for t in launch.prompt} & {"rom", "stage"}
        outcome = run(launch, engine, check=True)
        assert outcome.generated == run_launch(told).generated
        assert outcome.fault is None


def test_the_stock_model_gives_the_same(folders: Callable[[str], tuple[Path, Layout]]) -> None:
    case = CASES["reduction"]
    folder, _ = folders("reduction")
    outcome = run(case.baked().launch(*case.launches[0]), StockEngine(folder), check=True)
    assert outcome.buffers[0] == words(10 + 11 + 12 + 13, 14 + 15 + 16 + 17, 0, 0)


def test_what_the_kernel_never_uses_is_gone(folders: Callable[[str], tuple[Path, Layout]]) -> None:
    _, layout = folders("collatz")
    units = {neuron.unit for neuron in layout.circuit.neurons}
    assert units >= {"mad", "cmp"}
    assert not units & {"prmt", "brev", "clz", "rcp", "popc", "merge"}
    assert not any(head.name.startswith(("rom", "stage", "memory2")) for head in layout.circuit.heads)


def test_the_tensors_are_the_circuit(folders: Callable[[str], tuple[Path, Layout]]) -> None:
    assert check(*folders("dot")) == []


def test_loops_and_barriers_are_proved(folders: Callable[[str], tuple[Path, Layout]]) -> None:
    """What a predicate is made of is one bit in the rows that set one, and no row of a head is idle."""
    for name in ("collatz", "reduction"):
        certificate = prove(folders(name)[0])
        assert [str(failure) for failure in certificate.failures] == []
        assert certificate.proved and certificate.conditions == []
        assert RIGHT_NUMBERS in certificate.not_shown


def test_a_kernel_and_its_certificate(tmp_path: Path) -> None:
    """Proved before it is written, without conditions on programs."""
    options = ("--emit-weights", "--bake", "--prove", "-o", tmp_path, "--machine", "small")
    result = invoke(driver.main, ROOT / "examples" / "dot.cu", *options)
    assert (result.exit_code, result.stdout) == (0, "")
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    assert result.stderr == f"qgpuc: proved: float32, sha256 {certificate['sha256']}\n"
    assert certificate["proved"] and certificate["differences"] == []
    assert certificate["conditions"] == []
    assert certificate["kernel"] == "dot"
    weights = (tmp_path / "model.safetensors").read_bytes()
    assert certificate["sha256"] == hashlib.sha256(weights).hexdigest()
    assert certificate["machine"] == "small"
    assert RIGHT_NUMBERS not in certificate["not_shown"]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets checkpoints be made and proved in no time, with the failures given."""

    def emit(what: Any, directory: str, *others: Any) -> None:
        Path(directory, "qgpu.json").write_text("{}")

    def prepare(*failures: Failure) -> None:
        proof = Certificate("", "float32", [], failures=list(failures), complete=True)
        monkeypatch.setattr(transformer, "emit_baked", emit)
        monkeypatch.setattr(transformer, "emit_checkpoint", emit)
        monkeypatch.setattr(certify, "certify", lambda *given: certify.Found(proof, "small", []))
        for meant in ("meant_machine", "meant_kernel"):
            monkeypatch.setattr(certify, meant, lambda what: None)

    return prepare


WHAT = [(), (ROOT / "examples" / "dot.cu", "--bake")]


@pytest.mark.parametrize("what", WHAT, ids=["machine", "kernel"])
def test_what_is_not_proved_is_not_written(
    found: Callable[..., None], tmp_path: Path, what: tuple[str | Path, ...]
) -> None:
    arguments = (*what, "--emit-weights", "--prove", "--machine", "small", "-o", tmp_path)
    (tmp_path / "qgpu.json").write_text("before")
    found(Failure("lm_head.weight", 3, "too small"))
    result = invoke(driver.main, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "not proved: lm_head.weight row 3: too small" in result.stderr
    assert "nothing is written: 1 row is not proved" in result.stderr
    assert [file.read_text() for file in tmp_path.iterdir()] == ["before"]
    found()
    assert invoke(driver.main, *arguments).exit_code == 0
    assert {file.name for file in tmp_path.iterdir()} == {"qgpu.json", "certificate.json"}


@pytest.mark.parametrize("what", WHAT, ids=["machine", "kernel"])
def test_a_certificate_goes_with_its_tensors(
    found: Callable[..., None], tmp_path: Path, what: tuple[str | Path, ...]
) -> None:
    found()
    (tmp_path / "certificate.json").write_text("of others")
    assert invoke(driver.main, *what, "--emit-weights", "--machine", "small", "-o", tmp_path).exit_code == 0
    assert [file.name for file in tmp_path.iterdir()] == ["qgpu.json"]


@pytest.mark.parametrize(
    ("there", "message"),
    [
        ({"config.json": "{}"}, "holds another model: config.json"),
        ({"model.safetensors.index.json": "{}", "qgpu.json": "{}"}, "holds another model: model.safetensors"),
        ({"generation_config.json/x": ""}, "'generation_config.json' is a folder there"),
    ],
)
def test_a_folder_of_another_model_stays_as_it_is(
    found: Callable[..., None], tmp_path: Path, there: dict[str, str], message: str
) -> None:
    for name, content in there.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    found()
    result = invoke(driver.main, "--emit-weights", "--machine", "small", "-o", tmp_path)
    assert (result.exit_code, message in result.stderr) == (1, True), result.stderr
    assert {str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file()} == set(there)


def test_a_build_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    """SIGTERM in the middle of a proof."""
    code = "from qgpu.toolchain.driver import main; main(prog_name='qgpuc')"
    options = ("--emit-weights", "--machine", "small", "--prove", "-o", str(tmp_path / "out"))
    with subprocess.Popen([sys.executable, "-c", code, *options]) as process:
        while not list(tmp_path.glob("out/.qgpuc-*/qgpu.json")):
            assert process.poll() is None
            time.sleep(0.1)
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
    assert list((tmp_path / "out").iterdir()) == []


def test_a_proof_is_of_weights() -> None:
    result = invoke(driver.main, ROOT / "examples" / "dot.cu", "--prove", "-o", "x")
    assert (result.exit_code, "--prove is for --emit-weights" in result.stderr) == (2, True)


def test_rows_for_a_shape_are_for_that_shape_alone() -> None:
    kernel = machine_kernels.vecadd_flat()
    arguments = [words(1, 2, 3), words(4, 5, 5000), bytes(12), 3]
    shaped = bake_kernel(kernel, SMALL, ONE, (3, 1, 1))
    assert (shaped.flat, shaped.single, shaped.warps) == (True, True, 1)
    told = build_launch(SMALL, kernel, ONE, (3, 1, 1), arguments)
    assert shaped.launch(ONE, (3, 1, 1), arguments).resident == told.program
    any_shape = bake_kernel(kernel, SMALL)
    assert (any_shape.flat, any_shape.single, any_shape.warps) == (False, False, 2)
    assert any_shape.launch((1, 1, 1), (1, 3, 1), arguments).resident == kernel.blocks
    for grid, block, reason in (
        (ONE, (1, 3, 1), "of one dimension"),
        ((2, 1, 1), (3, 1, 1), "of one thread block"),
        (ONE, (5, 1, 1), "at most 4 threads, not 5"),
    ):
        with pytest.raises(LaunchError, match=reason):
            shaped.launch(grid, block, arguments)
    with pytest.raises(LaunchError, match="blocks of 9 threads"):
        bake_kernel(kernel, SMALL, block=(9, 1, 1))


def test_programs_of_several_runs_of_blocks() -> None:
    """33 blocks, of which the last begins another run; every firmware block that the host uses has a row."""
    blocks = [Block(next=k + 1, fall=int((k + 1) % 32 > 0)) for k in range(32)]
    blocks.append(machine_kernels.scalar(imm=7, imm_to_z=1, wr_uni=1, dest=5, next_exit=1))
    kernel = machine_kernels.kernel("long", blocks, [], [])
    baked = bake_kernel(kernel, SMALL)
    assert set(baked.rows()) == {*range(33), *range(SMALL.rom_blocks, SMALL.rom_blocks + 4)}
    launch, circuit = baked.launch(ONE, ONE, []), build_baked(baked)
    evaluator = Evaluator(circuit, schedule(circuit, SMALL.model))
    spoken = [evaluator.step(token) for token in (*launch.prompt, *run_launch(launch).generated)]
    assert spoken[len(launch.prompt) - 1 : -1] == list(run_launch(launch).generated)


# The command line.


def invoke(command: click.Command, *arguments: object) -> click.testing.Result:
    return click.testing.CliRunner(catch_exceptions=False).invoke(command, list(map(str, arguments)))


def qgpu(folder: object, *more: object, grid: int = 1, block: int = 3, n: int = 3) -> click.testing.Result:
    arguments = ("--arg", "i32[]:1,2,3", "--arg", "i32[]:4,5,6", "--arg", "i32[1]", "--arg", f"i32:{n}")
    return invoke(cli.main, "run", folder, "--grid", grid, "--block", block, *arguments, *more)


@pytest.fixture
def dot(folders: Callable[[str], tuple[Path, Layout]]) -> Path:
    return folders("dot")[0]


def test_qgpuc_bakes_what_it_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[BakedKernel, str, str]] = []

    def emit(baked: BakedKernel, directory: str, dtype: str, source: str, tell: Tell) -> None:
        made.append((baked, dtype, source))
        Path(directory, "qgpu.json").write_text("{}")

    monkeypatch.setattr(transformer, "emit_baked", emit)
    monkeypatch.chdir(ROOT)
    shape = ("--grid", "1", "--block", "3")
    options = (
        "--emit-weights",
        "--bake",
        "-o",
        tmp_path,
        "--machine",
        "small",
        "--dtype",
        "bfloat16",
        *shape,
    )
    assert invoke(driver.main, "examples/collatz.cu", *options).output == ""
    assert made == [(CASES["collatz"].baked(), "bfloat16", "examples/collatz.cu")]
    assert [file.name for file in tmp_path.iterdir()] == ["qgpu.json"]


def test_qgpu_runs_a_checkpoint(dot: Path) -> None:
    result = qgpu(dot, "--check")
    assert (result.exit_code, result.stdout.splitlines()[2]) == (0, "out = [32]")
    assert "every token equal to the reference" in result.stderr
    for backend in ("reference", "vector"):
        assert qgpu(dot, "--backend", backend).stdout == result.stdout


def test_the_script_that_knows_nothing_of_qgpu_runs_it(
    dot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = tmp_path / "dot.json"
    assert qgpu(dot, "--emit-tokens", tokens).output == ""
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(dot), str(tokens)])
    runpy.run_path(str(SCRIPT))
    assert "out = [32]" in capsys.readouterr().out
    told = json.loads(tokens.read_text())
    tokens.write_text(json.dumps(told | {"baked": None}))
    with pytest.raises(SystemExit, match="another kernel in its weights"):
        runpy.run_path(str(SCRIPT))


def test_the_metadata_say_what_is_in_the_weights(dot: Path) -> None:
    baked = json.loads((dot / "qgpu.json").read_text())["baked"]
    kernel = compiled("examples/dot.cu", SMALL)
    assert (baked["kernel"], baked["source"]) == ("dot", "examples/dot.cu")
    assert [p["name"] for p in baked["parameters"]] == ["a", "b", "out", "n"]
    assert sum(baked["fields"].values()) == row_bits(SMALL)
    assert set(baked["rows"]) == set(map(str, CASES["dot"].baked().rows()))
    imm = list(baked["fields"]).index("imm")
    at = sum(list(baked["fields"].values())[:imm])
    for number, block in enumerate(kernel.blocks):
        assert int(baked["rows"][str(number)], 16) >> at & 0xFFFFFFFF == block.imm


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--kernel", "saxpy"), "no kernel 'saxpy' in the weights of"),
        (("--machine", "default"), "is the checkpoint of another machine"),
        (("--dtype", "bfloat16", "--backend", "weights"), "it is exact with --dtype float32 alone"),
        (("--model", "m"), "is a checkpoint itself: leave out --model"),
    ],
)
def test_what_a_run_refuses(dot: Path, more: tuple[str, ...], message: str) -> None:
    result = qgpu(dot, *more)
    assert result.exit_code == (2 if "--model" in more else 1)
    assert message in result.stderr
    assert result.stdout == ""


def test_other_programs_do_not_run_on_it(dot: Path, tmp_path: Path) -> None:
    source = ROOT / "examples" / "dot.cu"
    assert "runs the kernel in its weights alone" in qgpu(source, "--model", dot).stderr
    other = tmp_path / "other"
    other.mkdir()
    for file in dot.iterdir():
        (other / file.name).symlink_to(file)
    (other / "kernel.qbin").unlink()
    assert "No such file" in qgpu(other).stderr
    (other / "kernel.qbin").write_bytes((dot / "kernel.qbin").read_bytes() + b"x")
    assert qgpu(other).exit_code == 1
    (other / "qgpu.json").unlink()
    metadata = json.loads((dot / "qgpu.json").read_text())
    del metadata["baked"]
    (other / "qgpu.json").write_text(json.dumps(metadata))
    assert "has no kernel in its weights" in qgpu(other).stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--bake", "-o", "x"), 2, "--bake is for --emit-weights"),
        (("--emit-weights", "--grid", "1", "-o", "x"), 2, "--grid and --block are for --bake"),
        (("--emit-weights", "--bake"), 2, "in a folder: -o DIR"),
        (("--emit-weights", "--bake", "-o", "x", "--emit", "ir"), 2, "no other result"),
        (("--emit-weights", "--bake", "-o", "x", "--block", "2000"), 1, "blocks of 2000 threads"),
    ],
)
def test_what_qgpuc_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], status: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(driver.main, ROOT / "examples" / "dot.cu", *arguments)
    assert (result.exit_code, message in result.stderr) == (status, True), result.stderr
    assert not Path("x").exists()


def test_one_kernel_is_baked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kernel = 'extern "C" __global__ void {}(int *x) {{ *x = 1; }}\n'
    Path("two.cu").write_text(kernel.format("one") + kernel.format("two"))
    result = invoke(driver.main, "two.cu", "--emit-weights", "--bake", "-o", "x")
    assert result.exit_code == 1
    assert "several kernels: a checkpoint holds one; choose it with --kernel" in result.stderr
    assert "there are: one, two" in result.stderr


# Folding.


def small_circuit() -> tuple[Circuit, list[int]]:
    """Three blocks with fields p = 1 1 0, q = 0 1 0, r = q and s = not q, and tokens of two bits."""
    circuit = Circuit(8)
    bits = [circuit.token_channel(f"bit.{k}", np.arange(8) >> k & 1) for k in range(3)]
    p, q, r, s = (
        circuit.row_channel(name, np.array(table))
        for name, table in (("p", (1, 1, 0)), ("q", (0, 1, 0)), ("r", (0, 1, 0)), ("s", (1, 0, 1)))
    )
    out = circuit.bus("out", 4)
    circuit.add_and(out[0], p, bits[0])
    circuit.add_and(out[0], r, s, bits[1])  # never
    circuit.add_and(out[1], q, s.form() * -1 + 1)  # what the block alone says
    circuit.add_and(out[2], bits[2])  # 0 in the tokens that occur
    held = circuit.bus("held", 2, kind="memory")
    columns = [Column(bit.form(), [(output, 1)]) for bit, output in zip(bits, held, strict=False)]
    rows = [conjunction(*equals(bits[:2], k)) for k in range(4)]
    read = [conjunction(q, *equals(bits[:1], k & 1), 1 if k < 2 else 0) for k in range(4)]
    circuit.heads.append(Head("memory", "", rows, read, Form({}, 1), columns))
    circuit.neuron(held[0], (out[3], 1))
    circuit.neuron(held[1], (out[3], 1))
    for token, channel in enumerate(out):
        circuit.readout.logits[token] = channel.form()
    return circuit, [0, 1, 2, 3]


def spoken(circuit: Circuit, sequence: list[tuple[int, int]]) -> list[list[int]]:
    """The logits of four tokens, where each of a sequence is a block and a token."""
    blocks, tokens = np.array(sequence).T
    told = Circuit(len(sequence))
    told.adopt(circuit.channels)
    told.token_tables = {c: table[tokens] for c, table in circuit.token_tables.items()}
    told.token_tables |= {c: table[blocks] for c, table in circuit.row_tables.items()}
    told.neurons, told.heads = circuit.neurons, circuit.heads
    told.readout.logits = {0: Form({}, 0)}
    evaluator, found = Evaluator(told, schedule(told, SMALL.model)), []
    for step in range(len(sequence)):
        evaluator.step(step)
        forms = [circuit.readout.logits.get(token, Form({}, 0)) for token in range(4)]
        found.append(
            [sum(k * evaluator.value_of(c.name) for c, k in f.terms.items()) + f.constant for f in forms]
        )
    return found


def test_folding_leaves_what_can_happen() -> None:
    circuit, tokens = small_circuit()
    rng = random.Random(1)
    sequence = [(rng.randrange(3), rng.choice(tokens)) for _ in range(100)]
    before = spoken(circuit, sequence)
    folded = fold(circuit, tokens)
    assert spoken(folded, sequence) == before
    assert {channel.name for channel in folded.channels} == {
        *("bit.0", "bit.1", "p", "q", "out.0", "held.0", "held.1", "out.3")
    }
    (head,) = folded.heads
    assert isinstance(head, Head)
    assert (len(folded.neurons), len(head.keys)) == (3, 2)
