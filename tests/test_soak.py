"""`python -m soak`: it compares, it stops at a mismatch, and a number is a unit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from qgpu.backends.machine.description import SMALL, MachineDescription, load_description
from qgpu.runtime.engine import Progress, ReferenceEngine
from soak import __main__ as command
from soak import running
from soak.running import Done, run_unit
from soak.units import EXAMPLES, Unit, launches, unit

DOT = next(number for number, example in enumerate(EXAMPLES) if example.name == "dot")


class Wrong(ReferenceEngine):
    """The reference, wrong at the 30th token after the prompt of a launch."""

    def begin(self) -> None:
        super().begin()
        self.fed = 0

    def feed(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        self.fed += 1
        return super().feed(tokens, progress) + (self.fed == 30)


def test_a_number_is_a_unit() -> None:
    machines = ("default", "small")
    units = [unit(number, machines) for number in range(8)]
    assert [u.machine for u in units] == ["default", "small"] * 4
    assert [u.example for u in units] == [0, 0, None, None, 1, 1, None, None]
    again = unit(len(EXAMPLES) * 2 * len(machines), machines)
    assert (again.example, again.round) == (0, 1)
    for chosen in (units[0], again):
        first, second = (next(launches(chosen)).prompt for _ in range(2))
        assert first == second


def test_launches_differ_in_their_data() -> None:
    prompts = [launch.prompt for launch in itertools.islice(launches(Unit(0, "default", "", DOT)), 8)]
    assert len(set(prompts)) >= 6


def test_random_kernels_are_launched_on_other_arguments() -> None:
    for number in range(40):
        prompts = {launch.prompt for launch in itertools.islice(launches(Unit(number, "large", "", None)), 3)}
        if len(prompts) == 3:
            return
    raise AssertionError("no random kernel fits the machine `large`")


def test_a_unit_is_compared() -> None:
    done = run_unit(Unit(0, "default", "", DOT), lambda machine: ReferenceEngine(load_description(machine)))
    assert done.wrong is None and done.launches > 3 and done.tokens > 100
    wrong = run_unit(Unit(0, "default", "", DOT), lambda machine: Wrong(load_description(machine)))
    assert wrong.wrong is not None and "generated token 29 is " in wrong.wrong


def test_what_does_not_fit_counts_for_nothing() -> None:
    big = next(number for number, example in enumerate(EXAMPLES) if example.name == "sha256")
    assert run_unit(Unit(0, "small", "", big)) == Done(Unit(0, "small", "", big), 0, 0)


def test_the_command_on_the_engine(
    checkpoint: Callable[[MachineDescription, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint(SMALL, "float32")
    monkeypatch.setattr(running, "UNIT_TOKENS", {True: 100, False: 100})
    document = tmp_path / "benchmarks.md"
    arguments = ["--machine", "small", "--units", "2", "--jobs", "1", "--write", str(document)]
    result = CliRunner().invoke(command.main, arguments)
    assert result.exit_code == 0, result.output
    assert "without a mismatch" in result.stdout and "the next unit is 2" in result.stdout
    assert "## Soak" in document.read_text() and "| small | " in document.read_text()


def test_a_mismatch_is_shown_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [Done(unit(n, ("small",)), 1, 50, "launch 1: differs" if n == 7 else None) for n in range(9)]
    monkeypatch.setattr(command, "built_checkpoint", lambda machine: None)
    monkeypatch.setattr(command, "_results", lambda numbers, machines, jobs: iter(wrong[5:]))
    result = CliRunner().invoke(command.main, ["--machine", "small", "--first", "5"])
    assert result.exit_code == 1
    assert "launch 1: differs" in result.stdout
    assert "again: python -m soak --machine small --first 7 --units 1" in result.stdout


def test_it_goes_on_where_it_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(numbers: object, machines: object, jobs: object):
        yield Done(unit(5, ("small",)), 1, 50)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "built_checkpoint", lambda machine: None)
    monkeypatch.setattr(command, "_results", interrupted)
    result = CliRunner().invoke(command.main, ["--machine", "small", "--first", "5", "--tokens", "120"])
    assert result.exit_code == 130
    assert "to go on: python -m soak --machine small --tokens 70 --first 6" in result.stderr


def test_what_is_done_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def results(numbers: Iterator[int], machines: object, jobs: object) -> Iterator[Done]:
        return (Done(unit(number, ("small",)), 2, 50) for number in numbers)

    monkeypatch.setattr(command, "built_checkpoint", lambda machine: None)
    monkeypatch.setattr(command, "_results", results)
    kept = ["--machine", "small", "--kept", str(tmp_path / "soak.json")]
    first = CliRunner().invoke(command.main, [*kept, "--first", "5", "--tokens", "120"])
    assert "150 tokens of 6 launches" in first.stdout and "the next unit is 8" in first.stdout
    second = CliRunner().invoke(command.main, [*kept, "--tokens", "240"])
    assert "250 tokens of 10 launches" in second.stdout and "the next unit is 10" in second.stdout
