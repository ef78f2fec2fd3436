"""`qgpu conformance`: its cases, its cells, and the document."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernels import KERNELS
from launches import LAUNCHES
from ptx_cases import TURING, head
from qgpu.backends.machine.description import BUILTIN
from qgpu.runtime import conformance_command
from qgpu.runtime.bench.document import provenance, write_sections
from qgpu.runtime.conformance.case import Case, CaseLaunch, first_difference
from qgpu.runtime.conformance.executors import (
    EXECUTORS,
    FAIL,
    NOT_RUN,
    PASS,
    REFUSED,
    TOO_LARGE,
    Cell,
    cell_of,
    run_case,
)
from qgpu.runtime.conformance.hardware import COLUMN
from qgpu.runtime.conformance.suite import GROUPS, load_cases
from qgpu.runtime.conformance.table import HEAD, chosen_cases, conform, section
from qgpu.toolchain.diagnostics import DiagnosticError
from test_ptx_instructions import CASES

FAST = [EXECUTORS["ir"], EXECUTORS["vector"], replace(EXECUTORS["reference"], limit=20_000)]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return load_cases()


@pytest.fixture(scope="module")
def dot(cases: list[Case]) -> Case:
    (case,) = chosen_cases(cases, ["dot"])
    return case


def with_expected(case: Case, change: bytes) -> Case:
    """The case with another last byte of the last buffer that its first launch must leave."""
    first, *others = case.launches
    wrong = (*first.expected[:-1], first.expected[-1][:-1] + change)
    return replace(case, launches=(replace(first, expected=wrong), *others))


def test_all_kernels_and_instructions_are_cases(cases: list[Case]) -> None:
    names = {group: [case.name for case in cases if case.group == group] for group in GROUPS}
    assert names["examples"] == list(dict.fromkeys(launch.kernel for launch in LAUNCHES))
    assert names["kernels"] == [f"{kernel.topic}/{kernel.name}" for kernel in KERNELS]
    assert len(names["instructions"]) == len(CASES)
    assert len({case.id for case in cases}) == len(cases)
    assert sum(len(c.launches) for c in cases if c.group == "examples") == len(LAUNCHES)


def test_digests_tell_launches_apart(cases: list[Case]) -> None:
    digests = [case.digest(launch) for case in cases for launch in case.launches]
    assert len(set(digests)) >= 0.99 * len(digests)
    case = cases[0]
    assert case.digest(case.launches[0]) != replace(case, text=case.text + " ").digest(case.launches[0])


def test_cases_pass_on_executors_without_a_checkpoint(cases: list[Case]) -> None:
    chosen = chosen_cases(cases, ["dot", "examples/gcd"])
    of_memory = next(case for case in cases if case.row == "atom")
    of_warps = next(case for case in cases if case.row == "shfl")
    of_numbers = next(case for case in cases if case.row == "brev")
    in_parts = next(case for case in cases if "cp.async.ca.shared.global" in case.text)
    for case in (*chosen, of_memory, of_warps, of_numbers, in_parts):
        cells = run_case(case, FAST)
        assert {name: cell.state for name, cell in cells.items()} == {one.name: PASS for one in FAST}
        assert cells["ir"].passed == cells["ir"].launches == len(case.launches)


@pytest.mark.parametrize("executor", FAST, ids=lambda one: one.name)
def test_a_wrong_byte_fails(dot: Case, executor) -> None:
    cell = run_case(with_expected(dot, b"\x01"), [executor])[executor.name]
    assert (cell.state, cell.passed) == (FAIL, len(dot.launches) - 1)
    assert cell.why == "buffer 2, byte 3: 0x00, not 0x01"


def test_a_fault_fails(dot: Case) -> None:
    first = dot.launches[0]
    short = replace(first, arguments=(b"", *first.arguments[1:]), expected=(b"", *first.expected[1:]))
    cells = run_case(replace(dot, launches=(short,)), FAST)
    assert [cell.state for cell in cells.values()] == [FAIL] * len(FAST)
    assert cells["ir"].why == "address: offset 0 of 'a', which has 0 bytes"
    assert cells["vector"].why == cells["reference"].why == "fault: out-of-bounds"


def test_what_the_compiler_refuses_is_refused_everywhere() -> None:
    text = f"{head(TURING)}.visible .entry k() {{ .reg .f32 %f<3>; sin.approx.f32 %f1, %f2; ret; }}"
    launch = CaseLaunch((1, 1, 1), (1, 1, 1), 0, (), ())
    case = Case("instructions", "sin", "sin", text, "k.ptx", "ptx", "k", (launch,))
    for cell in run_case(case, FAST).values():
        assert cell.state == REFUSED
        assert "sin" in cell.why


def test_what_is_too_large_or_too_long_is_told_apart(dot: Case) -> None:
    tiny = replace(BUILTIN["seed"], name="tiny", rom_blocks=4)
    cell = run_case(dot, [replace(EXECUTORS["engine-seed"], machine=tiny)])["engine-seed"]
    assert cell.state == TOO_LARGE
    assert "'tiny' has 4" in cell.why
    brief = replace(EXECUTORS["reference"], limit=3)
    cell = run_case(dot, [brief])["reference"]
    assert cell.state == NOT_RUN
    assert cell.why.endswith("tokens, more than 3")
    elsewhere = replace(brief, groups=("kernels",))
    assert run_case(dot, [elsewhere])["reference"].state == NOT_RUN


def test_a_cell_is_the_worst_that_was_seen_or_else_the_best() -> None:
    right, wrong, long = (PASS, ""), (FAIL, "byte 0"), (NOT_RUN, "9 tokens")
    assert cell_of([right, wrong, long]) == Cell(FAIL, 1, 3, "byte 0")
    assert cell_of([right, long]) == Cell(PASS, 1, 2, "not run: 9 tokens")
    assert cell_of([(TOO_LARGE, "room"), long]) == Cell(TOO_LARGE, 0, 2, "room")


def test_differences_are_found() -> None:
    assert first_difference((b"ab", b"c"), (b"ab", b"c")) == ""
    assert first_difference((b"ab",), (b"ab", b"c")) == "1 buffers, not 2"
    assert first_difference((b"ab",), (b"abc",)) == "buffer 0 has 2 bytes, not 3"
    assert first_difference((b"ab", b"c"), (b"ab", b"d")) == "buffer 1, byte 0: 0x63, not 0x64"


def test_the_document_has_a_row_a_kernel_and_keeps_other_sections(
    cases: list[Case], dot: Case, tmp_path: Path
) -> None:
    own = [with_expected(dot, b"\x01"), *chosen_cases(cases, ["brev"])]
    cells = conform(own, FAST[:2], [])
    assert cells[dot.id][COLUMN].state == NOT_RUN
    sections = [section(group, own, cells, []) for group in ("examples", "instructions")]
    file = tmp_path / "conformance.md"
    origin = provenance("qgpu conformance")
    for one in sections:
        write_sections(str(file), [one], origin, HEAD, GROUPS)
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# Conformance")
    assert "| dot | fail [1] | fail [1] | not run |" in text
    assert "| brev (2) | pass 2 | pass 2 | not run |" in text
    assert "- examples/dot fails on vector: buffer 2, byte 3: 0x00, not 0x01" in text
    assert "no GPU has been run yet" in text


def test_the_command(tmp_path: Path) -> None:
    call = ["--group", "examples", "--kernels", "dot,gcd", "--executors", "ir,vector", "--json", "-"]
    done = CliRunner().invoke(conformance_command.conformance_command, call)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found["cases"]) == ["examples/dot", "examples/gcd"]
    assert {name: cell["state"] for name, cell in found["cases"]["examples/dot"].items()} == {
        "ir": PASS,
        "vector": PASS,
        COLUMN: NOT_RUN,
    }


@pytest.mark.parametrize(
    ("call", "status", "message"),
    [
        (["--executors", "gpu"], 2, "no executor 'gpu'; there are ir, vector"),
        (["--kernels", "dot", "--write", "x.md"], 2, "--write is of whole sections"),
        (["--group", "examples", "--kernels", "sha1024"], 1, "no kernel or instruction 'sha1024'"),
    ],
)
def test_wrong_usage(call: list[str], status: int, message: str) -> None:
    done = CliRunner().invoke(conformance_command.conformance_command, call)
    assert (done.exit_code, done.stdout) == (status, "")
    assert message in done.stderr


def test_a_failure_is_the_exit_status(monkeypatch: pytest.MonkeyPatch, dot: Case) -> None:
    monkeypatch.setattr(
        "qgpu.runtime.conformance.suite.load_cases", lambda groups: [with_expected(dot, b"\x01")]
    )
    done = CliRunner().invoke(conformance_command.conformance_command, ["--executors", "ir"])
    assert done.exit_code == 1
    assert "1 of the cells fail" in done.stderr


def test_the_command_knows_all_executors_and_groups() -> None:
    assert tuple(EXECUTORS) == conformance_command.EXECUTORS
    assert conformance_command.GROUPS == GROUPS


def test_without_the_checkout_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="there is no folder 'examples'"):
        load_cases(root=tmp_path)
