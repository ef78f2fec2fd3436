"""`qgpu bench`."""

import importlib.util
import json

import pytest
from click.testing import CliRunner

from qgpu.runtime.bench import interpreters
from qgpu.runtime.cli import main


def test_what_to_measure_has_to_be_said() -> None:
    result = CliRunner().invoke(main, ["bench"])
    assert result.exit_code == 2 and "--interpreters" in result.stderr


def test_numba_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(interpreters.importlib, "import_module", missing)
    result = CliRunner().invoke(main, ["bench", "--interpreters"])
    assert result.exit_code == 1
    assert "numba is missing" in result.stderr and "qgpu[bench]" in result.stderr


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is what is compared with")
@pytest.mark.parametrize("as_json", [False, True])
def test_interpreters(monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    """The smaller launch alone; how much faster is the machine's business, but not whether."""
    monkeypatch.setattr(interpreters, "WORKLOADS", interpreters.WORKLOADS[1:])
    result = CliRunner().invoke(main, ["bench", "--interpreters", *(["--json"] if as_json else [])])
    assert result.exit_code == 0, result.output
    if not as_json:
        assert "matmul 16 x 16" in result.stdout
        return
    (row,) = json.loads(result.stdout)["interpreters"]
    assert row["ratio"] == row["simulator"] / row["interpreter"] > 5
