"""Random kernels: executors agree on them, and on those that once came out wrong; they find mistakes."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, given, settings

from fuzzing import mutations
from fuzzing.cases import FOUND, cases, read_case, write_case
from fuzzing.executors import Case, disagreement
from fuzzing.mutations import inputs, judge, judged
from fuzzing.plants import PLANTS
from fuzzing.strength import seeded_cases, strength

FILES = sorted(FOUND.glob("*.ir"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_found(path: Path) -> None:
    assert disagreement(read_case(path)) is None


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(case=cases())
def test_executors_agree(case: Case) -> None:
    assert disagreement(case) is None


def test_cases_come_back_from_files(tmp_path: Path) -> None:
    first, second = (case for case, _ in zip(seeded_cases(3), range(2), strict=False))
    paths = [write_case(case, tmp_path, "why") for case in (first, second)]
    assert [path.name for path in paths] == ["001.ir", "002.ir"]
    for case, path in zip((first, second), paths, strict=True):
        again = read_case(path)
        assert again.arguments() == case.arguments()
        assert again.text.endswith(case.text)


def test_a_few_kernels_find_the_plainest_mistakes() -> None:
    plain = ("large constant one too large", "thread block number always 0", "last value of a slot dropped")
    findings = strength([plant for plant in PLANTS if plant.title in plain], 12)
    assert len(findings) == len(plain) and all(finding.kernels is not None for finding in findings)


@pytest.mark.parametrize("suffix", [".ptx", ".ir", ".qbin", ".toml"])
def test_valid_inputs_give_results(suffix: str) -> None:
    item = next(item for item in inputs() if item.suffix == suffix)
    assert judged(item, item.data).problem is None


def test_a_crash_and_a_hang_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    item = next(item for item in inputs() if item.suffix == ".toml")

    def command(action: Callable[[], object]) -> click.Command:
        return click.Command(
            "qgpuc", callback=lambda **_: action(), params=[click.Argument(["words"], nargs=-1)]
        )

    def wait() -> None:
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(mutations, "SECONDS", 1)
    for action, problem in (
        (lambda: 1 // 0, "ZeroDivisionError"),
        (wait, "took more"),
        (lambda: sys.exit(3), "exit"),
    ):
        monkeypatch.setattr(mutations, "_command", lambda name, action=action: command(action))
        monkeypatch.setattr(mutations, "_COMMANDS", {".toml": ("qgpuc", [])})
        assert (judged(item, item.data).problem or "").startswith(problem)


def test_mutations_get_a_result_or_a_diagnostic() -> None:
    assert judge(0, 40) == []
