"""Baked programs in the prover: sums that rows bound, and logits of codes that are not whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings

from qgpu.backends.prover.facts import Cause, Facts, Literals, Term
from qgpu.backends.prover.logits import prove_logits
from qgpu.backends.prover.projection import project
from qgpu.backends.prover.rows import program_rows
from qgpu.backends.prover.search import DEPTHS
from qgpu.backends.prover.stream import embedded
from qgpu.backends.prover.sums import largest
from test_prove import allowed, cones, value


@settings(max_examples=300)
@given(cones())
def test_intervals_of_rows_have_all_that_can_be(cone: tuple[list[Term], Facts]) -> None:
    terms, facts = cone
    facts.counts = (0,)
    assume(program_rows(facts))
    (rows,) = program_rows(facts)
    numbers = np.stack([rows.variable(root)[0] for root in rows.roots], axis=1).tolist()
    for case in allowed(facts):
        row = numbers.index([case[root] for root in rows.roots])
        for term in terms:
            low, high = rows.term(term)
            assert low[row] <= value(term, case) <= high[row]


@settings(max_examples=300)
@given(cones())
def test_a_sum_is_never_above_what_rows_allow(cone: tuple[list[Term], Facts]) -> None:
    terms, facts = cone
    facts.counts = (0,)
    bound = largest([Cause(term, Literals(), (number,)) for number, term in enumerate(terms)], facts)
    assert bound >= max((sum(value(term, case) for term in terms) for case in allowed(facts)), default=0)


def test_operands_that_a_row_fixes_leave_one_bit_of_a_result() -> None:
    """In row 0 one of four results can be 1, in row 1 the others; they are counted in row 0 alone."""
    facts = Facts()
    count = facts.new(1, Literals())
    results = []
    for number in range(4):
        bit = facts.new(1, Literals())
        first, weight = (0, 1) if number else (-1, -1)
        fixed = Term((bit, count), (1, weight), first, np.array([0.0, 0, 1]))
        results.append(_handed_on(facts, facts.new(1, Literals(), [fixed])))
    counted = Term((count, *results), (-4, 1, 1, 1, 1), -4, np.maximum(np.arange(-4.0, 5), 0))
    causes = [Cause(counted, Literals())]
    assert largest(causes, facts) == 4
    facts.counts, facts.found = (count,), {}
    assert largest(causes, facts) == 1


def _handed_on(facts: Facts, variable: int) -> int:
    """A variable that is the same, by more definitions than a search looks at."""
    for _ in range(max(DEPTHS) + 1):
        same = Term((variable,), (1,), 0, np.array([0.0, 1]))
        variable = facts.new(1, Literals(), [same])
    return variable


EMBEDDING = np.array(
    [
        # 1, the flags of two kinds, a bit, and one that is always 0
        [1, 1, 0, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 0, 1, 0, 0],
    ],
    dtype=np.float64,
)
HEAD = np.array(
    [
        [0, 32, 0, 0, 0],
        [-1, 32, 0, 2, 0],
        [-1, 32, 0, 0, 2],
        [-2, 32, 0, 2, 2],
        [0, 0, 32, 0, 0],
    ],
    dtype=np.float64,
)


def failures_of(head: np.ndarray) -> tuple[list[str], dict]:
    """What is not proved of a head's logits, and the report."""
    failures: list[str] = []
    report: dict = {}

    def fail(tensor: str, row: int | None, reason: str) -> None:
        failures.append(reason)

    stream = embedded(EMBEDDING)
    stream.held[:] = True
    stream.facts.definition[2] = (Term((1,), (1,), 0, np.array([1.0, 0])),)
    prove_logits(project(stream, head, "lm_head.weight", fail), head, fail, report)
    return failures, report


def test_codes_of_a_bit_that_is_never_on_stay_below() -> None:
    failures, report = failures_of(HEAD)
    assert failures == []
    assert (report["kinds"], report["code_margin"], report["least_chosen"]) == (2, 1, 32)


@pytest.mark.parametrize("token", [2, 3])
def test_a_code_that_is_as_high_as_another_is_not_proved(token: int) -> None:
    head = HEAD.copy()
    head[token, 0] += 1
    failures, _ = failures_of(head)
    assert any("are not all codes of 1 bits" in failure for failure in failures)
