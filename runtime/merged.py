"""A machine merged into a Qwen3.5 checkpoint, driven so that text and launches do not meet.

A launch runs the compiled layers alone, on a cache of its own; text runs Qwen's own layers alone, at their
own width, so that every bit of it is the base's. docs/merge.md says what the stock model does with both in
one sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from qgpu.backends.machine.description import MachineDescription
from qgpu.runtime.engine import Engine


class Merged(Protocol):
    """What `open_merged` gives.

    Attributes:
        tokenizer: the base's, with the machine's tokens appended (`transformers`).
        machine: the machine that its compiled layers are.
        dtype: "float32" or "bfloat16".
    """

    tokenizer: Any
    machine: MachineDescription
    dtype: str

    def generate_text(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        limit: int = 2048,
        template: Mapping[str, Any] | None = None,
    ) -> Iterator[str]:
        """Yield the reply to a conversation piece by piece, chosen greedily; special tokens are left out,
        those of a tool call are not.

        Args:
            messages, tools: as `apply_chat_template` takes them.
            limit: tokens after which the reply ends.
            template: more arguments of `apply_chat_template`, such as enable_thinking.

        Raises:
            EngineError: the text model cannot be loaded, or the tokenizer has no chat template.
        """
        ...

    def launch_engine(self, backend: str = "engine") -> Engine:
        """Return an engine of the compiled layers.

        Args:
            backend: "engine" (sparse, without torch; float32 alone) or "weights" (the stock layers).

        Raises:
            EngineError: it cannot be loaded.
        """
        ...
