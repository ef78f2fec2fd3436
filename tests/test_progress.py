"""What qgpuc shows while it makes a checkpoint: stages on a terminal, nothing elsewhere."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from qgpu.backends import transformer
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.transformer.merge import plan
from qgpu.backends.transformer.merge.base import MergeError
from qgpu.backends.transformer.stages import Tell
from qgpu.toolchain import driver

BASE = Path(__file__).parent / "data" / "qwen3_5" / "0.8B"


class Stream(io.StringIO):
    """stderr, of a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def qgpuc(monkeypatch: pytest.MonkeyPatch, terminal: bool, *arguments: object) -> str:
    """What a command shows on stderr; its exit status does not matter."""
    stream = Stream(terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(SystemExit):
        driver.main(["--emit-weights", *map(str, arguments)], prog_name="qgpuc")
    return stream.getvalue()


def emit_checkpoint(machine: MachineDescription, directory: str, dtype: str, tell: Tell) -> None:
    tell("first stage")
    tell("second [stage]")


def emit_baked(baked: object, directory: str, dtype: str, source: str, tell: Tell) -> None:
    tell("first stage")
    tell("second [stage]")


@pytest.mark.parametrize("what", ["machine 'small'", "kernel 'dot'"])
@pytest.mark.parametrize("terminal", [True, False])
def test_stages_of_a_checkpoint_are_shown_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, terminal: bool
) -> None:
    monkeypatch.setattr(transformer, "emit_checkpoint", emit_checkpoint)
    monkeypatch.setattr(transformer, "emit_baked", emit_baked)
    baked = [Path(__file__).parent.parent / "examples" / "dot.cu", "--bake"] if "kernel" in what else []
    shown = qgpuc(monkeypatch, terminal, *baked, "--machine", "small", "-o", tmp_path)
    if not terminal:
        assert shown == ""
        return
    stages = [shown.find(f"checkpoint of {what}: {stage}") for stage in ("first stage", "second [stage]")]
    assert -1 < stages[0] < stages[1]


@pytest.mark.parametrize("terminal", [True, False])
def test_stages_of_a_merge_are_shown_before_it_is_planned(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    def plan_merge(base: object, machine: MachineDescription, dtype: str, tell: Tell) -> None:
        tell("first stage")
        raise MergeError("it does not fit")

    monkeypatch.setattr(plan, "plan_merge", plan_merge)
    shown = qgpuc(monkeypatch, terminal, "--base", BASE, "--dry-run")
    assert ("machine 'default' in the base's layers: first stage" in shown) == terminal
    assert "error: " in shown and "it does not fit" in shown
