"""A checkpoint run by the compiled engine (`backends/engine`), which needs neither torch nor transformers."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from qgpu.runtime.engine import EngineError, Progress

if TYPE_CHECKING:
    import numpy as np

CACHE_FOLDER = "engine"
"""Under the cache directory: sparse forms of checkpoints."""


class CompiledEngine:
    """A checkpoint's sparse form and a sequence on it.

    Attributes:
        layers: of the model.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """Load a float32 checkpoint of a Qwen3.5 text model; from the cache where it has been loaded before.

        Raises:
            EngineError: it cannot be loaded, or is of a kind that this engine does not compute exactly.
            OSError: the cache cannot be written.
        """
        from qgpu.backends.engine.cache import cached_form
        from qgpu.backends.engine.sequence import TokenSequence
        from qgpu.runtime.checkpoints import cache_directory

        with _as_engine_errors(f"cannot load '{directory}': "):
            self._form = cached_form(directory, cache_directory() / CACHE_FOLDER)
        self._sequence = TokenSequence(self._form)
        self.layers = self._sequence.layers

    def another(self) -> CompiledEngine:
        """An engine of the same form with a sequence of its own, for another thread."""
        from qgpu.backends.engine.sequence import TokenSequence

        copy = object.__new__(CompiledEngine)
        copy._form = self._form
        copy._sequence = TokenSequence(self._form)
        copy.layers = self.layers
        return copy

    def begin(self) -> None:
        """Start a new sequence."""
        self._sequence.begin()

    def feed(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        """Append tokens to the sequence; return the argmax of the logits after the last of them."""
        with _as_engine_errors():
            return self._sequence.feed(tokens, progress)

    def generate(self, token: int, limit: int, stops: Collection[int]) -> list[int]:
        """Append a token, then each argmax in turn; return these. See `Generator`."""
        with _as_engine_errors():
            return self._sequence.generate(token, limit, stops)

    def recurrent_states(self) -> list[np.ndarray]:
        """The recurrent state of each linear-attention layer, float32 [head * key, value]."""
        return self._sequence.recurrent_states()


@contextmanager
def _as_engine_errors(prefix: str = "") -> Iterator[None]:
    from qgpu.backends.engine.tensors import ModelError

    try:
        yield
    except ModelError as error:
        raise EngineError(f"{prefix}{error}") from error
