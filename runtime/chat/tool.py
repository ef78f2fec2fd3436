"""What the tool `cuda` is in each mode: its declaration, and what a call of it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from qgpu.backends.machine.description import MachineDescription
from qgpu.runtime.chat.limits import ANSWER_CHARACTERS
from qgpu.runtime.expressions.launcher import LaunchRecord, RunLaunch

NAME = "cuda"


class ToolError(ValueError):
    """A call that has failed; the message goes back to the model."""

    def __init__(self, message: str, launches: tuple[LaunchRecord, ...] = ()) -> None:
        super().__init__(message)
        self.launches = launches


@dataclass(frozen=True)
class ToolAnswer:
    """What a call gave.

    Attributes:
        text: the tool's answer to the model.
        failed: whether it says why there is no result.
        launches: what ran, also where it failed in the end.
    """

    text: str
    failed: bool = False
    launches: tuple[LaunchRecord, ...] = field(default=())


class Tool(Protocol):
    """One mode of the tool."""

    @property
    def declaration(self) -> Mapping[str, Any]:
        """The tool as a chat template takes it: a function with a JSON schema of its parameters."""
        ...

    @property
    def instructions(self) -> str:
        """What the model is told before the conversation."""
        ...

    def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Do what a call asks for.

        Raises:
            ToolError: it cannot be done.
            EngineError, DifferenceError: the machine itself has failed.
        """
        ...


MakeTool = Callable[[MachineDescription, RunLaunch], Tool]


def text_argument(arguments: Mapping[str, Any], name: str) -> str:
    """An argument that has to be a text.

    Raises:
        ToolError: it is missing, or none.
    """
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f"the call has no argument '{name}': give it as a text")
    return value


def check_names(arguments: Mapping[str, Any], *known: str) -> None:
    """Check that a call has no arguments but these.

    Raises:
        ToolError: it has.
    """
    others = sorted(set(arguments) - set(known))
    if others:
        raise ToolError(f"there is no argument '{others[0]}': the arguments are {', '.join(known)}")


def short(text: str, hint: str) -> str:
    """A text for the model, unless it is too long.

    Raises:
        ToolError: it is; the hint says what to do.
    """
    if len(text) > ANSWER_CHARACTERS:
        raise ToolError(
            f"the result has {len(text)} characters, and {ANSWER_CHARACTERS} can be shown: {hint}"
        )
    return text


def declaration(description: str, properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    """A function in the form that chat templates take."""
    return {
        "type": "function",
        "function": {
            "name": NAME,
            "description": description,
            "parameters": {"type": "object", "properties": dict(properties), "required": required},
        },
    }
