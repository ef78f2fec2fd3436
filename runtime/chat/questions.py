"""Sets of questions with right answers, and how many of them a model finds."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu.toolchain.diagnostics import failure

MODES = ("normal", "advanced")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?![\w]|\.\d)")
_GROUPED = re.compile(r"(?<=\d)[,_ \u00a0\u202f](?=\d{3}(?!\d))")
_SIGNS = str.maketrans({"\u2212": "-", "\u2013": "-"})


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        mode: of the tool.
        text: what is asked.
        expected: a number, or a list (of lists) of them.
        checker: a key of CHECKERS.
    """

    mode: str
    text: str
    expected: Any
    checker: str


def read_questions(path: str | os.PathLike[str]) -> tuple[Question, ...]:
    """The questions of a file: a JSON object a line, with `question`, `expected`, `checker` and `mode`.

    Raises:
        DiagnosticError: the file cannot be read, or a line is no question.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise failure(f"cannot read '{os.fspath(path)}': {error}") from None
    found = [
        _question(line, f"{os.fspath(path)}:{number}") for number, line in enumerate(lines, 1) if line.strip()
    ]
    if not found:
        raise failure("there is no question", file=os.fspath(path))
    return tuple(found)


def _question(line: str, place: str) -> Question:
    try:
        row = json.loads(line)
        question = Question(row.get("mode", "normal"), row["question"], row["expected"], row["checker"])
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise failure(f"no question: {error}", _FORM, file=place) from None
    if question.checker not in CHECKERS or question.mode not in MODES or not isinstance(question.text, str):
        raise failure("no question", _FORM, file=place)
    return question


_FORM = '{"question": "...", "expected": 32, "checker": "number", "mode": "normal"}'


def number(answer: str, expected: Any) -> bool:
    """Whether an answer has a number in it, with or without marks between thousands."""
    plain = answer.translate(_SIGNS)
    return any(expected in _numbers(text) for text in (plain, _GROUPED.sub("", plain)))


def numbers(answer: str, expected: Any) -> bool:
    """Whether an answer has the numbers of a list in it, one after another; of a matrix, row by row."""
    wanted = _flat(expected)
    found = _numbers(answer.translate(_SIGNS))
    return any(found[at : at + len(wanted)] == wanted for at in range(len(found) - len(wanted) + 1))


CHECKERS: dict[str, Callable[[str, Any], bool]] = {"number": number, "numbers": numbers}
"""How an answer is held against what is expected."""


def is_right(question: Question, answer: str) -> bool:
    """Whether an answer is right."""
    return CHECKERS[question.checker](answer, question.expected)


def _numbers(text: str) -> list[int]:
    return [int(found) for found in _NUMBER.findall(text)]


def _flat(values: Sequence[Any] | int) -> list[int]:
    if isinstance(values, int):
        return [values]
    return [one for value in values for one in _flat(value)]
