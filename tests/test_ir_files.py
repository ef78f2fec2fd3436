"""Every pass on the kernels of tests/ir, against the output written there."""

from pathlib import Path

import pytest

from ir_files import PASSES, case_files, read_case, run_case
from qgpu.ir import parse_module, print_module
from qgpu.ir.passes import default_pipeline


@pytest.mark.parametrize("path", case_files(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_output_is_as_written(path: Path) -> None:
    case = read_case(path)
    assert case.expected, "the file has no '; EXPECT' part"
    assert run_case(case) == case.expected


@pytest.mark.parametrize("path", case_files(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_second_run_changes_nothing(path: Path) -> None:
    case = read_case(path)
    function = parse_module(case.expected).functions[0]
    case.step.run(function)
    assert print_module(parse_module(case.expected)) == print_module(parse_module(str(function)))


def test_every_pass_of_the_pipeline_has_a_file_test() -> None:
    tested = {path.parent.name for path in case_files()}
    assert tested == set(PASSES)
    assert {step.name for step in default_pipeline()} <= tested
