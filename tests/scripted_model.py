"""A text model for tests: it says what it is told to say, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from qgpu.backends.machine.description import DEFAULT, MachineDescription
from qgpu.runtime.engine import Engine, ReferenceEngine

Reply = str | Iterable[str] | Callable[[Sequence[Mapping[str, Any]]], str]


class ScriptedModel:
    """Emits given replies one after another, each whole, in given pieces, or as made of the messages so far.

    Attributes:
        asked: the messages of each reply, as they were.
    """

    dtype = "float32"

    def __init__(self, *replies: Reply, machine: MachineDescription = DEFAULT) -> None:
        self._replies = list(replies)
        self.machine = machine
        self.asked: list[list[Mapping[str, Any]]] = []
        self.tools: Sequence[Mapping[str, Any]] | None = None

    def generate_text(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        limit: int = 2048,
        template: Mapping[str, Any] | None = None,
    ) -> Iterator[str]:
        self.asked.append(list(messages))
        self.tools = tools
        reply = self._replies.pop(0)
        if callable(reply):
            reply = reply(messages)
        yield from (
            reply if not isinstance(reply, str) else [reply[i : i + 3] for i in range(0, len(reply), 3)]
        )

    def launch_engine(self, backend: str = "engine") -> Engine:
        return ReferenceEngine(self.machine)


def json_call(**arguments: Any) -> str:
    """A call as Qwen3 writes it."""
    return f"<tool_call>\n{json.dumps({'name': 'cuda', 'arguments': arguments})}\n</tool_call>"


def xml_call(**arguments: Any) -> str:
    """A call as Qwen3.5 writes it."""
    parameters = "".join(
        f"<parameter={name}>\n{value if isinstance(value, str) else json.dumps(value)}\n</parameter>\n"
        for name, value in arguments.items()
    )
    return f"<tool_call>\n<function=cuda>\n{parameters}</function>\n</tool_call>"


def last_answer(messages: Sequence[Mapping[str, Any]]) -> str:
    """A reply that repeats the tool's answer."""
    return f"The result is {messages[-1]['content']}."
