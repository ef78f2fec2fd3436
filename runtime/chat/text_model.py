"""What a conversation needs of a text model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

Message = Mapping[str, Any]
"""A message as `apply_chat_template` of transformers takes it."""


class TextModel(Protocol):
    """Something that continues a conversation."""

    def generate_text(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        limit: int = 2048,
        template: Mapping[str, Any] | None = None,
    ) -> Iterator[str]:
        """Yield the reply to a conversation piece by piece, chosen greedily.

        Args:
            messages, tools: as `apply_chat_template` takes them.
            limit: tokens after which the reply ends.
            template: more arguments of `apply_chat_template`, such as enable_thinking.

        Raises:
            EngineError: the text model cannot answer.
        """
        ...
