"""Mistakes in CUDA files and launches: tests/mistakes/NAME.cu, and in NAME.txt the command and what it says.

The first line of NAME.txt is the command; the rest is its stderr, without the line of what a launch took.
"""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from qgpu.runtime.cli import main as qgpu
from qgpu.toolchain.driver import main as qgpuc

HERE = Path(__file__).parent / "mistakes"
COMMANDS = {"qgpu": qgpu, "qgpuc": qgpuc}
SUMMARY = re.compile(r"^\d+ prompt tokens in .*\n", re.MULTILINE)


@pytest.mark.parametrize("name", sorted(path.stem for path in HERE.glob("*.txt")))
def test_a_mistake_is_told_with_what_to_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    command, wanted = (HERE / f"{name}.txt").read_text().split("\n", 1)
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert f"{name}.cu" in arguments
    result = CliRunner(catch_exceptions=False).invoke(COMMANDS[program], arguments, prog_name=program)
    assert SUMMARY.sub("", result.stderr) == wanted
    assert result.stdout == ""
    assert result.exit_code == (2 if wanted.startswith("Usage: ") else 1)


def test_every_mistake_has_its_text() -> None:
    assert {path.stem for path in HERE.glob("*.cu")} == {path.stem for path in HERE.glob("*.txt")}
