"""The questions that ship: their answers, from Python alone, and how answers are counted."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click.testing
import numpy as np
import pytest

from qgpu.runtime.chat.questions import is_right, number, numbers, read_questions
from qgpu.runtime.cli import main
from qgpu.toolchain.compile import compile_source
from qgpu.toolchain.diagnostics import DiagnosticError
from scripted_model import Reply, ScriptedModel, json_call, last_answer, xml_call

FOLDER = Path(__file__).parent.parent / "examples" / "questions"
NORMAL, ADVANCED = FOLDER / "normal.jsonl", FOLDER / "advanced.jsonl"


def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def _rises(values: tuple[int, ...]) -> bool:
    return all(a < b for a, b in itertools.pairwise(values))


def longest_increasing(values: list[int]) -> int:
    sizes = range(len(values), 0, -1)
    return next(n for n in sizes if any(map(_rises, itertools.combinations(values, n))))


def primes(end: int) -> int:
    return sum(all(n % d for d in range(2, n)) for n in range(2, end))


def fibonacci(n: int) -> int:
    return functools.reduce(lambda pair, _: (pair[1], sum(pair)), range(n - 1), (1, 1))[0]


A, B = np.array([[1, 2], [3, 4]]), np.array([[2, 0], [1, 3]])
SOLUTIONS: tuple[tuple[Any, str], ...] = (
    (sum(x * y for x, y in zip([1, 2, 3], [4, 5, 6], strict=True)), "[1, 2, 3] @ [4, 5, 6]"),
    (12345 * 6789, "12345 * 6789"),
    (98765 - 123456, "98765 - 123456"),
    (1000000 // 37, "1000000 // 37"),
    (987654321 % 1234, "987654321 % 1234"),
    (3**17, "3 ** 17"),
    (np.add([15, 27, -9, 42], [8, -30, 77, 5]), "[15, 27, -9, 42] + [8, -30, 77, 5]"),
    (np.multiply([12, 7, 33], [4, 19, -6]), "[12, 7, 33] * [4, 19, -6]"),
    (sum(range(501)), "sum(range(1, 501))"),
    (17**2 + 23**2 + 31**2 + 44**2, "x = [17, 23, 31, 44]; x @ x"),
    (sorted([88, -3, 41, 7, 250, 19, 0, -77]), "sort([88, -3, 41, 7, 250, 19, 0, -77])"),
    (list(itertools.accumulate([5, -2, 11, 8, -20, 3])), "cumsum([5, -2, 11, 8, -20, 3])"),
    (947 + 28, "x = [381, 112, 947, 946, 28]\nmax(x) + min(x)"),
    ([44, 19, 83, 12, 61].index(12), "argmin([44, 19, 83, 12, 61])"),
    (A @ [5, 6], "[[1, 2], [3, 4]] @ [5, 6]"),
    (B @ [[4, 1], [5, 2]], "[[2, 0], [1, 3]] @ [[4, 1], [5, 2]]"),
    (np.arange(1, 7).reshape(2, 3).T, "[[1, 2, 3], [4, 5, 6]].T"),
    (math.gcd(462, 1071), "gcd(462, 1071)"),
    (math.lcm(84, 126), "lcm(84, 126)"),
    (sum(x > 20 for x in [14, 3, 99, 27, 8, 56, 71]), "sum([14, 3, 99, 27, 8, 56, 71] > 20)"),
    ([max(x, 0) for x in [4, -7, 0, -1, 12]], "max([4, -7, 0, -1, 12], 0)"),
    ((123456789).bit_count(), "popcount(123456789)"),
    (0b110101 ^ 0b011011, "0b110101 ^ 0b011011"),
    (math.isqrt(1522756), "isqrt(1522756)"),
)
"""Of each question for normal mode, in order: the answer by Python, and an expression that asks the tool."""

COLLATZ = """__global__ void k(int *out, int n) {
  int steps = 0;
  for (; n != 1; steps++) n = n & 1 ? 3 * n + 1 : n >> 1;
  *out = steps;
}"""
PRIMES = """__global__ void k(int *out, int n) {
  __shared__ int composite[200];
  for (int i = threadIdx.x; i < n; i += blockDim.x) composite[i] = i < 2;
  __syncthreads();
  for (int p = 2; p * p < n; p++)
    for (int m = p * p + p * threadIdx.x; m < n; m += p * blockDim.x) composite[m] = 1;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) if (!composite[i]) atomicAdd(out, 1);
}"""
FIBONACCI = """__global__ void k(int *out, int n) {
  int a = 1, b = 1;
  for (int i = 1; i < n; i++) { int next = a + b; a = b; b = next; }
  *out = a;
}"""
POWER = """__global__ void k(int *out, int base, int exponent, int m) {
  int result = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result = result * base % m;
    base = base * base % m;
  }
  *out = result;
}"""
INCREASING = """__global__ void k(const int *a, int *length, int n, int *out) {
  for (int i = 0; i < n; i++) {
    int best = 1;
    for (int j = 0; j < i; j++) if (a[j] < a[i]) best = max(best, length[j] + 1);
    length[i] = best;
    *out = max(*out, best);
  }
}"""
SEQUENCE = [50, 12, 81, 23, 40, 66, 31, 70, 95, 17]
KERNELS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (collatz(27), {"source": COLLATZ, "block": "1", "args": ["i32[1]", 27]}),
    (
        sum(all(n % d for d in range(2, n)) for n in range(2, 200)),
        {"source": PRIMES, "block": "32", "args": ["i32[1]", 200]},
    ),
    (fibonacci(40), {"source": FIBONACCI, "block": "1", "args": ["i32[1]", 40]}),
    (pow(7, 200, 1009), {"source": POWER, "block": "1", "args": ["i32[1]", 7, 200, 1009]}),
    (
        longest_increasing(SEQUENCE),
        {"source": INCREASING, "block": "1", "args": [SEQUENCE, "i32[10]", 10, "i32[1]"]},
    ),
)
"""Of each question for advanced mode: the answer by Python, and a call of the tool."""


def listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(("file", "solutions", "count"), [(NORMAL, SOLUTIONS, 24), (ADVANCED, KERNELS, 5)])
def test_expected_answers(file: Path, solutions: tuple[tuple[Any, Any], ...], count: int) -> None:
    questions = read_questions(file)
    assert len(questions) == len(solutions) == count
    for question, (answer, _) in zip(questions, solutions, strict=True):
        assert question.expected == listed(answer), question.text
        assert question.mode == file.stem
        assert question.checker == ("numbers" if isinstance(question.expected, list) else "number")
        assert not is_right(question, question.text), "the question has its answer in it"


@pytest.fixture
def score(monkeypatch: pytest.MonkeyPatch) -> Callable[..., click.testing.Result]:
    """Run `qgpu chat --score` with a scripted model; launches run token by token on the reference."""

    def compile(text: str, machine: Any) -> Any:
        return compile_source(text, "kernel.cu", "cu", machine)

    def run(replies: list[Reply], *arguments: str) -> click.testing.Result:
        monkeypatch.setattr(
            "qgpu.runtime.chat.model.open_model", lambda path, device: ScriptedModel(*replies)
        )
        monkeypatch.setattr("qgpu.runtime.chat.kernel_tool.compile_untrusted", compile)
        return click.testing.CliRunner(catch_exceptions=False).invoke(main, ["chat", "MODEL", *arguments])

    return run


def test_every_question_can_be_answered(score: Callable[..., click.testing.Result]) -> None:
    replies = [reply for _, text in SOLUTIONS for reply in (xml_call(expression=text), last_answer)]
    result = score(replies, "--score", str(NORMAL))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith("24 of 24 right; 24 with the tool: ")
    assert result.stdout.count("  right  ") == 24


def test_every_advanced_question_can_be_answered(score: Callable[..., click.testing.Result]) -> None:
    replies = [reply for _, call in KERNELS for reply in (json_call(**call), last_answer)]
    result = score(replies, "--score", str(ADVANCED), "--json")
    found = json.loads(result.stdout)
    assert (found["right"], found["questions"]) == (5, 5), result.stderr
    assert "5 of 5 right; 5 with the tool: 5 launches" in result.stderr


def test_wrong_answers_are_counted_as_wrong(
    score: Callable[..., click.testing.Result], tmp_path: Path
) -> None:
    lines = NORMAL.read_text().splitlines()[:4]
    file = tmp_path / "four.jsonl"
    file.write_text("\n".join(lines) + "\n\n")
    endless = itertools.repeat("no end ")
    result = score(["It is 33.", "83,810,205", endless, "27027.5"], "--score", str(file))
    assert [line[5:10] for line in result.stdout.splitlines()[:4]] == ["wrong", "right", "wrong", "wrong"]
    assert "expected 32: It is 33." in result.stdout
    assert "1 of 4 right; 0 with the tool" in result.stdout


@pytest.mark.parametrize(
    ("checker", "answer", "expected", "right"),
    [
        (number, "The result is 32.", 32, True),
        (number, "**32**", 32, True),
        (number, r"\boxed{-24691}", -24691, True),
        (number, "It is \u221224,691.", -24691, True),
        (number, "83 810 205", 83810205, True),
        (number, "132", 32, False),
        (number, "32.5", 32, False),
        (number, "0.32", 32, False),
        (number, "x32", 32, False),
        (number, "-32", 32, False),
        (number, "", 32, False),
        (numbers, "The result is [23, -3, 68, 47].", [23, -3, 68, 47], True),
        (numbers, "23, -3, 68 and 47", [23, -3, 68, 47], True),
        (numbers, "[[8, 2], [19, 7]]", [[8, 2], [19, 7]], True),
        (numbers, "[[8, 19], [2, 7]]", [[8, 2], [19, 7]], False),
        (numbers, "[23, -3, 68]", [23, -3, 68, 47], False),
        (numbers, "[23, 3, 68, 47]", [23, -3, 68, 47], False),
    ],
)
def test_checkers(checker: Callable[[str, Any], bool], answer: str, expected: Any, right: bool) -> None:
    assert checker(answer, expected) is right


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"question": "?"}', "[1]", '{"question": "?", "expected": 1, "checker": "magic"}'],
)
def test_files_that_are_none(text: str, tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(text)
    with pytest.raises(DiagnosticError, match="no question"):
        read_questions(file)
