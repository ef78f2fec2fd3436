"""Ask a set of questions, each in a conversation of its own, and count the right answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from qgpu.runtime.chat.questions import Question, is_right
from qgpu.runtime.chat.session import Answer, Session
from qgpu.runtime.expressions.records import total_layer_passes, total_tokens

_SHOWN = 60


@dataclass(frozen=True)
class Scored:
    """A question, and what came of it."""

    question: Question
    answer: Answer

    @property
    def right(self) -> bool:
        """Whether the answer is right."""
        return self.answer.stopped is None and is_right(self.question, self.answer.text)


def score(questions: Sequence[Question], session: Callable[[str], Session]) -> Iterator[Scored]:
    """Ask each question; `session` begins a conversation in a mode."""
    for question in questions:
        yield Scored(question, session(question.mode).ask(question.text))


def scored_line(number: int, scored: Scored) -> str:
    """A question and what came of it, in a line."""
    question = _short(scored.question.text)
    if scored.right:
        return f"{number:>3}  right  {question}"
    said = scored.answer.stopped or _short(scored.answer.text) or "nothing"
    return f"{number:>3}  wrong  {question}  expected {scored.question.expected}: {said}"


def total_line(all_scored: Sequence[Scored]) -> str:
    """How many answers are right, and what they took."""
    right = sum(scored.right for scored in all_scored)
    used = sum(bool(scored.answer.launches) for scored in all_scored)
    launches = [record for scored in all_scored for record in scored.answer.launches]
    passes = total_layer_passes(launches)
    cost = "" if passes is None else f", {passes} layer passes"
    return (
        f"{right} of {len(all_scored)} right; {used} with the tool: {len(launches)} launches, "
        f"{total_tokens(launches)} generated tokens{cost}"
    )


def scored_object(all_scored: Sequence[Scored]) -> dict[str, Any]:
    """All of it as plain data."""
    return {
        "right": sum(scored.right for scored in all_scored),
        "questions": len(all_scored),
        "answers": [
            {
                "question": scored.question.text,
                "mode": scored.question.mode,
                "expected": scored.question.expected,
                "answer": scored.answer.text,
                "stopped": scored.answer.stopped,
                "right": scored.right,
                "calls": [dict(call.arguments) for call, _ in scored.answer.calls],
                "failures": scored.answer.failures,
            }
            for scored in all_scored
        ],
    }


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."
