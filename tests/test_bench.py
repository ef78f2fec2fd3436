"""`qgpu bench`."""

import dataclasses
import importlib
import importlib.util
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from qgpu.backends.machine.description import SMALL, MachineDescription
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.reference.run import run_launch
from qgpu.runtime import bench_command
from qgpu.runtime.bench import agreement, cells, growth, interpreters, kernel_table, workloads
from qgpu.runtime.bench.checkpoint_sizes import checkpoint_sizes
from qgpu.runtime.bench.document import Provenance, write_sections
from qgpu.runtime.bench.plot import bar_chart
from qgpu.runtime.bench.report import Section, Table
from qgpu.runtime.cli import main
from qgpu.runtime.engines import FAST_ENGINE
from qgpu.runtime.launch import DifferenceError
from qgpu.runtime.stock import StockEngine

Checkpoint = Callable[[MachineDescription, str], Path]
LITTLE = {"dot": 3, "vecadd": 4}


@pytest.fixture
def small(checkpoint: Checkpoint) -> Path:
    return checkpoint(SMALL, "float32")


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure in this process: one that is started for each back end takes seconds."""
    for module in (kernel_table, growth, agreement):
        monkeypatch.setattr(module, "isolated", lambda function, *args: function(*args))


def bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", *arguments])


# Interpreters.


def test_numba_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters.importlib.util, "find_spec", lambda name: None)
    result = bench("--interpreters")
    assert result.exit_code == 1
    assert "numba is missing" in result.stderr and "pip install numba" in result.stderr


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is what is compared with")
@pytest.mark.parametrize("as_json", [False, True])
def test_interpreters(monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    """The smaller launch alone; how much faster is the machine's business, but not whether.

    The engine has numba in this process before, without its simulator, as a run of `qgpu bench` may.
    """
    importlib.import_module("numba")
    compare = partial(interpreters.compare_interpreters, ("matmul 16 x 16",))
    monkeypatch.setattr(interpreters, "compare_interpreters", compare)
    result = bench("--interpreters", *(["--json"] if as_json else []))
    assert result.exit_code == 0, result.output
    if not as_json:
        assert "matmul 16 x 16" in result.stdout
        return
    (row,) = json.loads(result.stdout)["interpreters"]
    assert row["ratio"] == row["simulator"] / row["interpreter"] > 5


# Workloads.


@pytest.mark.parametrize("kernel", workloads.KERNELS)
def test_oracles_agree_with_the_machine(kernel: str) -> None:
    from qgpu.backends.machine.description import LARGE

    for size in (3, 5):
        work = workloads.workload(kernel, size)
        trace = run_launch(work.launch(LARGE))
        buffers = tuple(None if r is None else trace.buffer(r) for r in trace.launch.buffers)
        assert work.is_right(buffers)
        spoilt = [b for b in buffers if b is not None]
        spoilt[-1] = bytes([spoilt[-1][0] ^ 1]) + spoilt[-1][1:]
        assert not work.is_right(tuple(spoilt))


def test_the_commands_names_are_the_tables() -> None:
    assert tuple(workloads.KERNELS) == bench_command.KERNELS == tuple(workloads.SIZES)
    assert tuple(cells.BACKENDS) == bench_command.MEASURED


# Kernels x back ends.


def test_the_table_of_kernels(small: Path, in_process: None) -> None:
    sizes, measured = {"dot": 3}, bench_command.MEASURED
    section = kernel_table.measure_kernels(SMALL, sizes, measured, seconds=0.01, decoded=5)
    found = {(cell["launch"], cell["backend"]): cell for cell in section.data["cells"]}
    assert len(found) == len(measured)
    layers = checkpoint_sizes(small).layers
    tokens = len(run_launch(workloads.workload("dot", 3).launch(SMALL)).generated)
    for backend in bench_command.MEASURED:
        cell = found["dot/3", backend]
        assert cell["tokens"] == tokens and cell["tokens_per_second"] > 0
        assert cell["measured"] == (5 if backend == "weights" else tokens)
        has_layers = backend in (FAST_ENGINE, "weights", "verify")
        assert cell["layer_passes"] == (tokens * layers if has_layers else None)
        wanted = cell["tokens_per_second"] / tokens * cell["ptx_instructions"]
        assert cell["ptx_instructions_per_second"] == pytest.approx(wanted)
    text = section.markdown()
    assert f"| {tokens:,} | {tokens * layers:,} |" in text
    assert "| dot/3 |" in text and "| geometric mean |" in text
    assert "times the stock model's decoding" in text


def test_what_does_not_fit_is_said(in_process: None) -> None:
    section = kernel_table.measure_kernels(SMALL, {"dot": 4000}, ["reference", "vector"], seconds=0.01)
    assert all("blocks of 32 threads" in cell["problem"] for cell in section.data["cells"])
    assert "| dot/4000 | - |" in section.markdown()


@pytest.mark.parametrize("backend", ["reference", "vector", "verify"])
def test_a_wrong_result_is_no_figure(
    small: Path, in_process: None, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setattr(workloads.Workload, "is_right", lambda self, buffers: False)
    with pytest.raises(DifferenceError, match="dot/3 leaves something else"):
        cells.measure(cells.Plan(backend, SMALL, (("dot", 3),), 0.01))


def test_a_wrong_token_is_no_figure(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = vocabulary(SMALL).id("last", 77)
    monkeypatch.setattr(StockEngine, "feed", lambda self, tokens, progress=None: wrong)
    with pytest.raises(DifferenceError, match="dot/3: generated token 0 of the stock model is wrong"):
        cells.measure(cells.Plan("weights", SMALL, (("dot", 3),), 0.01))


def test_the_command(small: Path, in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One back end, in a document, as JSON and as a plot."""
    monkeypatch.setattr(workloads, "QUICK_SIZES", LITTLE)
    document, data, plot = (tmp_path / name for name in ("b.md", "b.json", "b.svg"))
    files = ("--write", str(document), "--json", str(data), "--plot", str(plot))
    result = bench("--quick", "--machine", "small", "--backend", "reference", *files)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "| dot/3 |" in document.read_text()
    cell = json.loads(data.read_text())["kernels"]["cells"][0]
    assert cell["backend"] == "reference"
    assert ElementTree.parse(plot).getroot().tag.endswith("svg")
    assert bench("--memory", "--plot", str(plot)).exit_code == 2


def test_a_process_of_its_own() -> None:
    """The peak is that of the process that measures, and what goes wrong there comes through."""
    from qgpu.runtime.bench.isolate import isolated

    found = isolated(cells.measure, cells.Plan("reference", SMALL, (("dot", 3),), 0.01))["dot/3"]
    assert isinstance(found, cells.Speed)
    assert found.peak is None or 10e6 < found.peak < 500e6
    with pytest.raises(KeyError):
        isolated(cells.measure, cells.Plan("nothing", SMALL, (("dot", 3),), 0.01))


# Growth.


def test_growth_with_memory(
    checkpoint: Checkpoint, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "BASE_WORDS", 64)
    section = growth.memory_growth(SMALL, (64, 128), {"dot": 3}, seconds=0.01)
    rates = [cell["tokens_per_second"] for cell in section.data["cells"]]
    (finding,) = section.findings
    percent = float(re.findall(r"by ([+-][\d.]+)%", finding)[0])
    assert percent == pytest.approx(100 * (rates[1] / rates[0] - 1), abs=0.06)
    assert list(section.data["checkpoints"]) == ["64 words", "128 words"]


def test_growth_with_the_problem(small: Path, in_process: None) -> None:
    section = growth.problem_growth(SMALL, {"vecadd": (2, 4, 4000)}, ["reference", "vector"], 0.01)
    (table,) = section.tables
    assert int(table.rows[0][2]) < int(table.rows[1][2])
    assert table.rows[2][1] == "does not fit"


# Agreement.

CASES = [
    agreement.Case("float32", 30, 1, 1),
    agreement.Case("float32", 260, 63, 2),
    agreement.Case("bfloat16", 100, 64, 1),
]


def test_the_stock_model_agrees_with_the_engine(checkpoint: Checkpoint, in_process: None) -> None:
    section = agreement.agreement(SMALL, CASES, LITTLE)
    assert [(one["compared"], one["differences"]) for one in section.data] == [(30, 0), (260, 0), (100, 0)]
    assert section.data[0]["counters"] == {} and section.data[0]["states"] > 0
    assert "390 tokens, the same argmax everywhere" in section.markdown()


def test_disagreement_is_a_failure(
    checkpoint: Checkpoint, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = StockEngine.prefill_argmax

    def lying(self: StockEngine, tokens: list[int], chunk: int) -> list[int]:
        following = honest(self, tokens, chunk)
        return [*following[:-1], following[-1] + 1]

    monkeypatch.setattr(StockEngine, "prefill_argmax", lying)
    with pytest.raises(DifferenceError, match="do not agree: float32, decode, 1 thread: after token"):
        agreement.agreement(SMALL, CASES[:1], LITTLE)


def test_another_state_is_a_failure(
    checkpoint: Checkpoint, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = StockEngine.recurrent_states

    def shaken(self: StockEngine) -> list[np.ndarray]:
        return [state.numpy() * np.float32(1 + 2.0**-20) for state in honest(self)]

    monkeypatch.setattr(StockEngine, "recurrent_states", shaken)
    for case in (CASES[0], dataclasses.replace(CASES[1], tokens=100)):
        with pytest.raises(DifferenceError, match="states differ"):
            agreement.agreement(SMALL, [case], LITTLE)


# Reports.


def section(key: str, text: str) -> Section:
    return Section(key, f"About {key}", text, [Table("T", ("a", "b"), [("x", "1")])], None, ["Found."])


def test_a_document_keeps_its_other_sections(tmp_path: Path) -> None:
    path = str(tmp_path / "b.md")
    origin = Provenance(
        "qgpu bench", "2020-01-01", {"processor": "P", "cores": "1", "system": "S", "Python": "3"}
    )
    write_sections(path, [section("memory", "old"), section("kernels", "first")], origin)
    write_sections(path, [section("memory", "new")], dataclasses.replace(origin, date="2020-01-02"))
    text = Path(path).read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["About kernels", "About memory"]
    assert "old" not in text and "new" in text and "first" in text
    assert text.count("2020-01-01") == text.count("2020-01-02") == 1
    assert "- Found.\n\nT:\n\n| a | b |\n| --- | ---: |\n| x | 1 |\n" in text


def test_a_chart_is_logarithmic() -> None:
    root = ElementTree.fromstring(bar_chart("t", {"a <b>": 10.0, "c": 1000.0}, "u"))
    widths = [float(bar.attrib["width"]) for bar in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert widths[1] / widths[0] == pytest.approx(3.0, rel=0.01)
    with pytest.raises(ValueError, match="positive"):
        bar_chart("t", {"a": 0.0}, "u")


def test_non_zeros_are_counted(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    (tmp_path / "config.json").write_text('{"num_hidden_layers": 2, "hidden_size": 3, "vocab_size": 4}')
    tensors = {"a": np.array([[0, 1], [2, 0]], np.float32), "b": np.zeros(5, np.float32)}
    save_file(tensors, tmp_path / "model.safetensors")
    sizes = checkpoint_sizes(tmp_path)
    assert (sizes.layers, sizes.hidden, sizes.vocabulary, sizes.numbers, sizes.nonzeros) == (2, 3, 4, 9, 2)
