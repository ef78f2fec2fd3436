"""Calls of tools in a reply, in either form that Qwen writes.

Qwen3's is a JSON object between `<tool_call>` and `</tool_call>`; that of Qwen3.5 and Qwen3-Coder has
`<function=NAME>` there, and in it `<parameter=NAME>`, a line end, the value, a line end, `</parameter>`. Both
are as the models' chat templates declare them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OPEN, CLOSE = "<tool_call>", "</tool_call>"
THOUGHT = "</think>"
_STARTS = (OPEN, "<function=", "<tool_response>", "<think>")
_FUNCTION = re.compile(r"<function=([^>\n]*)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]*)>(.*?)</parameter>", re.DOTALL)
_RESPONSE = "<tool_response>"


class CallError(ValueError):
    """A call that is not written as one; the message says how it is written."""


@dataclass(frozen=True)
class Call:
    """A call of a tool: its name, and arguments, which are texts where the form has no types."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """What a reply says, without what the model thought before it, and the calls in it.

    `text` is what stands before the first call. `said` is the reply as it goes into the conversation.
    """

    text: str
    said: str
    calls: tuple[Call, ...]


def parse_reply(reply: str) -> Reply:
    """Take a reply apart.

    Raises:
        CallError: there is a call in it that cannot be read.
    """
    said = reply.rpartition(THOUGHT)[2].split(_RESPONSE)[0].strip()
    bodies = [part.split(CLOSE)[0] for part in said.split(OPEN)[1:]]
    if not bodies and "<function=" in said:
        bodies = [said[said.index("<function=") :]]
    if OPEN in said and CLOSE not in said.rpartition(OPEN)[2]:
        raise CallError(f"the call is never closed: write {CLOSE} after it")
    return Reply(visible(said, ended=True).strip(), said, tuple(map(_call, bodies)))


def visible(reply: str, ended: bool = False) -> str:
    """What of a reply so far is text for people: neither thoughts nor calls, nor the beginning of one.

    With `ended`, nothing follows, and what looks like a beginning is text.
    """
    said = reply.rpartition(THOUGHT)[2]
    ends = [at for start in _STARTS if (at := said.find(start)) >= 0]
    if ends:
        return said[: min(ends)]
    held = 0 if ended else max(_overlap(said, start) for start in _STARTS)
    return said[: len(said) - held]


def _overlap(text: str, start: str) -> int:
    """How many characters at the end of a text are the beginning of a mark."""
    return next((n for n in range(min(len(start), len(text)), 0, -1) if text.endswith(start[:n])), 0)


def _call(body: str) -> Call:
    body = body.strip()
    if body.startswith("{"):
        return _from_json(body)
    match = _FUNCTION.search(body)
    if match is None:
        raise CallError(
            "the call is neither a JSON object nor <function=NAME> with parameters: between the marks "
            'write {"name": "cuda", "arguments": {...}}'
        )
    parameters = {name.strip(): _value(text) for name, text in _PARAMETER.findall(match[2])}
    if match[2].count("<parameter=") != len(parameters):
        raise CallError("a parameter is given twice, or never closed: write </parameter> after its value")
    return Call(match[1].strip(), parameters)


def _from_json(body: str) -> Call:
    try:
        found = json.loads(body, strict=False)
    except (ValueError, RecursionError) as error:
        raise CallError(f"the call is no JSON: {error}") from None
    arguments = found.get("arguments", {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False)
        except (ValueError, RecursionError):
            raise CallError("the arguments of the call are no JSON object") from None
    if not isinstance(arguments, dict) or not isinstance(found.get("name"), str):
        raise CallError('a call is {"name": "cuda", "arguments": {...}}')
    return Call(found["name"], arguments)


def _value(text: str) -> str:
    """A parameter's value: the lines between the marks, without the line ends that belong to these."""
    return text.removeprefix("\n").removesuffix("\n")
