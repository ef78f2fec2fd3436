"""A checkpoint run by the compiled engine (`backends/engine`), which needs neither torch nor transformers."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from qgpu.runtime.engine import EngineError, Progress

if TYPE_CHECKING:
    import numpy as np

    from qgpu.backends.engine.layout import Form
    from qgpu.backends.transformer.merge.parts import MergedCheckpoint

CACHE_FOLDER = "engine"
"""Under the cache directory: sparse forms of checkpoints."""


class CompiledEngine:
    """A checkpoint's sparse form and a sequence on it.

    Attributes:
        layers: of the model.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """Load a float32 checkpoint of a Qwen3.5 text model; from the cache where it has been loaded before.

        Of a merged checkpoint, the compiled layers alone are loaded.

        Raises:
            EngineError: it cannot be loaded, or is of a kind that this engine does not compute exactly.
            OSError: the cache cannot be written.
        """
        from qgpu.backends.engine.cache import cached_form
        from qgpu.runtime.checkpoints import cache_directory

        folder = cache_directory() / CACHE_FOLDER
        with _as_engine_errors(f"cannot load '{directory}': "):
            self._adopt(_merged_form(Path(directory), folder) or cached_form(directory, folder))

    def _adopt(self, form: Form) -> None:
        from qgpu.backends.engine.sequence import TokenSequence

        self._form = form
        self._sequence = TokenSequence(form)
        self.layers = self._sequence.layers

    def another(self) -> CompiledEngine:
        """An engine of the same form with a sequence of its own, for another thread."""
        copy = object.__new__(CompiledEngine)
        copy._adopt(self._form)
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


def _merged_form(directory: Path, folder: Path) -> Form | None:
    """The form of a merged checkpoint's compiled layers, from a cache folder where it is there; None where
    the
    checkpoint is no merged one.
    """
    from qgpu.backends.engine.cache import cached_form_of
    from qgpu.backends.engine.sequence import form_of
    from qgpu.backends.engine.tensors import check_config
    from qgpu.backends.transformer.merge.base import MergeError
    from qgpu.backends.transformer.merge.parts import merged_table, open_merged_checkpoint

    if merged_table(directory) is None:
        return None
    try:
        merged = open_merged_checkpoint(directory)
        config = merged.compiled_config(grouped=False)
        check_config(config)
        return cached_form_of(
            merged.compiled_files(), folder, lambda: form_of(_MergedTensors(merged), config)
        )
    except MergeError as error:
        raise EngineError(str(error)) from error


class _MergedTensors:
    """The tensors of the compiled layers by name, as float32 arrays."""

    def __init__(self, merged: MergedCheckpoint) -> None:
        self._merged = merged

    def __getitem__(self, name: str) -> np.ndarray:
        return self._merged.compiled_tensor(name, grouped=False).numpy()


@contextmanager
def _as_engine_errors(prefix: str = "") -> Iterator[None]:
    from qgpu.backends.engine.tensors import ModelError

    try:
        yield
    except ModelError as error:
        raise EngineError(f"{prefix}{error}") from error
