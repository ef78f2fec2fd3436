"""A conversation: questions, replies, calls of the tool, and their answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from qgpu.runtime.chat.calls import Call, CallError, Reply, parse_reply, visible
from qgpu.runtime.chat.limits import FAILURES, REPLIES, REPLY_CHARACTERS, THINKING_CHARACTERS
from qgpu.runtime.chat.text_model import Message, TextModel
from qgpu.runtime.chat.tool import NAME, Tool, ToolAnswer, ToolError
from qgpu.runtime.expressions.launcher import LaunchRecord


class Observer(Protocol):
    """Who looks on while a question is answered."""

    def text(self, piece: str) -> None:
        """More of a reply's text, as it comes."""

    def call(self, call: Call) -> None:
        """The tool is called."""

    def answered(self, answer: ToolAnswer) -> None:
        """The tool has answered."""


class _Nobody(Observer):
    """Does nothing of what comes."""


@dataclass(frozen=True)
class Answer:
    """What came of a question.

    Attributes:
        text: the reply without a call, which ends it; empty where it was stopped.
        calls: calls that could be read, and the tool's answers.
        failures: how many calls failed, those that could not be read among them.
        stopped: why there is no answer, or None.
    """

    text: str
    calls: tuple[tuple[Call, ToolAnswer], ...]
    failures: int = 0
    stopped: str | None = None

    @property
    def launches(self) -> tuple[LaunchRecord, ...]:
        """Every launch, in order."""
        return tuple(record for _, answer in self.calls for record in answer.launches)


class _EndlessError(Exception):
    """A reply that does not end."""


class Session:
    """A conversation with a text model that has a tool.

    Attributes:
        messages: so far; a question that is interrupted leaves none.
    """

    def __init__(self, model: TextModel, tool: Tool, think: bool = False) -> None:
        """`think` lets the model think before it replies, where its chat template knows of that."""
        self._model = model
        self._tool = tool
        self._template = {"enable_thinking": think}
        self._most = THINKING_CHARACTERS if think else REPLY_CHARACTERS
        self.messages: list[Message] = [{"role": "system", "content": tool.instructions}]

    def ask(self, question: str, observer: Observer | None = None) -> Answer:
        """Answer a question.

        Raises:
            EngineError: the text model, or the machine, has failed.
            DifferenceError: a launch was checked, and is not the reference's.
        """
        before = len(self.messages)
        try:
            return self._answer(question, observer or _Nobody())
        except BaseException:
            del self.messages[before:]
            raise

    def _answer(self, question: str, observer: Observer) -> Answer:
        self.messages.append({"role": "user", "content": question})
        done: list[tuple[Call, ToolAnswer]] = []
        failures = 0
        for _ in range(REPLIES):
            try:
                raw = self._reply(observer)
            except _EndlessError as error:
                return self._stopped(str(error), done, failures)
            try:
                reply = parse_reply(raw)
            except CallError as error:
                failures += 1
                self._say({"role": "assistant", "content": raw}, str(error))
                reply = Reply("", raw, ())
            else:
                if not reply.calls:
                    self.messages.append({"role": "assistant", "content": reply.said})
                    return Answer(reply.text, tuple(done), failures)
            answers = self._call(reply, observer)
            done += zip(reply.calls, answers, strict=True)
            failures += sum(answer.failed for answer in answers)
            if failures >= FAILURES:
                return self._stopped(f"{failures} calls of the tool have failed", done, failures)
        return self._stopped(f"no answer in {REPLIES} replies", done, failures)

    def _reply(self, observer: Observer) -> str:
        """One reply of the model, whose text is told of as it comes."""
        reply, shown = "", 0
        pieces = self._model.generate_text(
            self.messages, [self._tool.declaration], limit=self._most, template=self._template
        )
        for piece in _bounded(pieces, self._most):
            reply += piece
            text = visible(reply)
            observer.text(text[shown:])
            shown = max(shown, len(text))
        observer.text(visible(reply, ended=True)[shown:])
        return reply

    def _call(self, reply: Reply, observer: Observer) -> list[ToolAnswer]:
        """Do what a reply's calls ask for, and add them and their answers to the conversation."""
        if not reply.calls:
            return []
        made = [{"type": "function", "function": _function(call)} for call in reply.calls]
        self.messages.append({"role": "assistant", "content": reply.text, "tool_calls": made})
        answers: list[ToolAnswer] = []
        for call in reply.calls:
            observer.call(call)
            answers.append(self._done(call))
            observer.answered(answers[-1])
            self.messages.append({"role": "tool", "name": call.name, "content": answers[-1].text})
        return answers

    def _done(self, call: Call) -> ToolAnswer:
        if call.name != NAME:
            return ToolAnswer(f"error: there is no tool '{call.name}': the tool is '{NAME}'", failed=True)
        try:
            return self._tool.call(call.arguments)
        except ToolError as error:
            return ToolAnswer(f"error: {error}", failed=True, launches=error.launches)

    def _say(self, said: Message, error: str) -> None:
        """Add a call that could not be read, and what is wrong with it."""
        self.messages += [said, {"role": "tool", "name": NAME, "content": f"error: {error}"}]

    def _stopped(self, why: str, done: Sequence[tuple[Call, ToolAnswer]], failures: int) -> Answer:
        self.messages.append({"role": "assistant", "content": f"(stopped: {why})"})
        return Answer("", tuple(done), failures, why)


def _function(call: Call) -> dict[str, Any]:
    return {"name": call.name, "arguments": dict(call.arguments)}


def _bounded(pieces: Iterator[str], most: int) -> Iterator[str]:
    """The pieces of a reply, up to so many characters; one without a character counts as one."""
    count = 0
    for piece in pieces:
        count += max(1, len(piece))
        if count >= most:
            raise _EndlessError(f"a reply has not ended after {most} characters")
        yield piece
