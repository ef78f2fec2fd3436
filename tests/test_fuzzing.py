"""Random kernels: executors agree on them, and on those that once came out wrong; they find mistakes."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from fuzzing.cases import FOUND, cases, read_case, write_case
from fuzzing.executors import Case, disagreement
from fuzzing.plants import PLANTS
from fuzzing.strength import seeded_cases, strength

FILES = sorted(FOUND.glob("*.ir"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_found(path: Path) -> None:
    assert disagreement(read_case(path)) is None


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
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
    plain = [plant for plant in PLANTS if plant.title in ("carry lost", "loop left after one round")]
    assert all(finding.kernels is not None for finding in strength(plain, 12))
