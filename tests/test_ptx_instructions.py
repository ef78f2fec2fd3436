"""The tables of instruction cases as a whole: they reach every row, and hold nothing but valid PTX."""

import shutil
import subprocess
from pathlib import Path

import pytest

import test_ptx_rules_arithmetic
import test_ptx_rules_bits
import test_ptx_rules_data
import test_ptx_rules_memory
import test_ptx_rules_sync
import test_ptx_rules_warp
from ptx_cases import BLACKWELL, HOPPER, OLD, TURING, Case, check, head, kernel_text
from qgpu.ir.passes import PassManager, default_pipeline
from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.ptx import ast, parameter_rules, printf
from qgpu.toolchain.ptx.parser import parse
from qgpu.toolchain.ptx.rules import RULES, find_rule

CASES: list[Case] = [
    *test_ptx_rules_arithmetic.CASES,
    *test_ptx_rules_bits.CASES,
    *test_ptx_rules_data.CASES,
    *test_ptx_rules_memory.CASES,
    *test_ptx_rules_sync.CASES,
    *test_ptx_rules_warp.CASES,
]


def _instructions(body: ast.Body) -> list[ast.Instruction]:
    found: list[ast.Instruction] = []
    for statement in body.statements:
        if isinstance(statement, ast.Body):
            found += _instructions(statement)
        elif isinstance(statement, ast.Instruction):
            found.append(statement)
    return found


def _of_target(target: str) -> str:
    cases = [case for case in CASES if case.target == target]
    preludes = dict.fromkeys(case.prelude for case in cases)
    kernels = [kernel_text(case, f"k{n}").removeprefix(case.prelude) for n, case in enumerate(cases)]
    return head(target) + "\n".join([*preludes, *kernels])


TARGETS = (OLD, TURING, HOPPER, BLACKWELL)


def test_cases_reach_every_row() -> None:
    """All rows but those of instructions that only the front end makes, for calls."""
    lines = ";\n".join(case.text.format(**dict.fromkeys("dabcem", "%r0")) for case in CASES)
    module = parse(Source("cases.ptx", f"{head(BLACKWELL)}.entry k()\n{{\n{lines};\n}}\n"))
    found = (find_rule(instruction) for instruction in _instructions(module.entries[0].body))
    reached = {id(pair[0]) for pair in found if pair is not None}
    made = [*parameter_rules.RULES, *printf.RULES]
    rows = [rule for rules in RULES.values() for rule in rules if rule not in made]
    assert [(rule.opcode, rule.form, rule.roles) for rule in rows if id(rule) not in reached] == []


@pytest.mark.parametrize("case", [case for case in CASES if case.target == OLD] + CASES[::25], ids=str)
def test_passes_keep_what_instructions_compute(case: Case) -> None:
    """A sample, and the exchanges that wait for nobody, as the machine gets them."""
    check(case, PassManager(default_pipeline()).run)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas judges whether the PTX is valid")
@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_accepts_all_cases(target: str, tmp_path: Path) -> None:
    file = tmp_path / "cases.ptx"
    file.write_text(_of_target(target))
    architecture = target.partition(" ")[0]
    command = ["ptxas", "-O0", f"-arch={architecture}", "-o", str(tmp_path / "out"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
