"""The figures and the Python of README.md are what the code gives."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import count_tokens
from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.transformer.emit import lay_out
from qgpu.backends.transformer.processor import build_processor

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_costs_is_what_the_script_counts() -> None:
    layers = lay_out(build_processor(DEFAULT), DEFAULT.model).layers
    assert f"it takes {layers} layers of {DEFAULT.model.heads} heads" in TEXT
    assert f"a residual stream of {DEFAULT.model.hidden}" in TEXT
    counts = {kernel: count_tokens.count(kernel)[2] for kernel in count_tokens.NAMED}
    for kernel, generated in [*counts.items(), ("all ten", sum(counts.values()))]:
        assert f"| {kernel} | {generated:,} | {generated * layers:,} |" in TEXT


def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On the interpreter, so that it needs no checkpoint."""
    (code,) = re.findall(r"\n((?:    .*\n|\n)*    import qgpu\.runtime\n(?:    .*\n|\n)*)", TEXT)
    monkeypatch.chdir(ROOT)
    exec(textwrap.dedent(code).replace('backend="engine"', 'backend="reference"'), {})
    assert capsys.readouterr().out == "[32]\n"
