"""A machine merged into a Qwen3.5 checkpoint, driven so that text and launches do not meet.

A launch runs the compiled layers alone, on a cache of its own; text runs Qwen's own layers alone, at their
own width, so that every bit of it is the base's. docs/merge.md says what the stock model does with both in
one sequence.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.transformer.merge.base import MergeError
from qgpu.backends.transformer.merge.parts import MergedCheckpoint, open_merged_checkpoint
from qgpu.runtime.checkpoints import CheckpointError, checkpoint_machine
from qgpu.runtime.engine import Engine, EngineError
from qgpu.runtime.text_model import TextModel, load_stock

TEXT_LIMIT = 2048
"""Tokens after which a reply ends, unless the caller says otherwise."""

LAUNCH_BACKENDS = {
    "engine": "the compiled layers by what changes from token to token; float32 alone",
    "weights": "the compiled layers in transformers",
    "plain": "the whole model in transformers",
}
"""What runs a launch."""


class Merged:
    """A merged checkpoint; its parts are loaded when they are first asked for.

    Attributes:
        machine: the machine that its compiled layers are.
        dtype: "float32" or "bfloat16".
    """

    def __init__(
        self, checkpoint: MergedCheckpoint, machine: MachineDescription, device: str = "cpu"
    ) -> None:
        self.machine = machine
        self.dtype = checkpoint.dtype
        self._checkpoint = checkpoint
        self._device = device

    @cached_property
    def tokenizer(self) -> Any:
        """The base's tokenizer, with the machine's tokens appended (`transformers`).

        Raises:
            EngineError: it cannot be loaded.
        """
        import transformers

        try:
            return transformers.AutoTokenizer.from_pretrained(
                self._checkpoint.directory, local_files_only=True
            )
        except (OSError, ValueError, KeyError) as error:
            raise EngineError(
                f"cannot load the tokenizer of '{self._checkpoint.directory}': {error}"
            ) from error

    @cached_property
    def text_model(self) -> TextModel:
        """The base's text model.

        Raises:
            EngineError: it cannot be loaded.
        """
        with _as_engine_errors():
            tensors = dict(self._checkpoint.text_tensors())
            model = load_stock(self._checkpoint.text_config(), tensors, self.dtype, self._device)
        return TextModel(model, self.tokenizer, self._ends)

    @property
    def _ends(self) -> frozenset[int]:
        """The tokens that end a reply: those of the base's that generation_config.json names."""
        import transformers

        config = transformers.GenerationConfig.from_pretrained(self._checkpoint.directory)
        ends = config.eos_token_id
        given = ends if isinstance(ends, list) else [ends]
        return frozenset(t for t in given if t is not None and t < self._checkpoint.first_token)

    def generate_text(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        limit: int = TEXT_LIMIT,
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
        return self.text_model.reply(messages, tools, limit, template or {})

    def launch_engine(self, backend: str | None = None) -> Engine:
        """Return a new engine for launches.

        Args:
            backend: one of LAUNCH_BACKENDS; None for the fastest one of this dtype.

        Raises:
            EngineError: it cannot be loaded, or there is no such back end.
        """
        backend = backend or ("engine" if self.dtype == "float32" else "weights")
        if backend not in LAUNCH_BACKENDS:
            raise EngineError(f"no back end for launches is called '{backend}': {', '.join(LAUNCH_BACKENDS)}")
        if backend == "engine":
            from qgpu.runtime.compiled import CompiledEngine

            return CompiledEngine(self._checkpoint.directory)
        from qgpu.runtime.stock import StockEngine

        if backend == "plain":
            return StockEngine(self._checkpoint.directory, self.dtype, self._device)
        from qgpu.runtime.compiled_layers import CompiledLayers

        return CompiledLayers.of(self._compiled, self._device)

    @cached_property
    def _compiled(self) -> Any:
        """The compiled layers as a model of their own."""
        part = self._checkpoint
        with _as_engine_errors():
            tensors = {name: part.compiled_tensor(name) for name in part.compiled_names()}
            return load_stock(part.compiled_config(), tensors, self.dtype, self._device)


@contextmanager
def _as_engine_errors() -> Iterator[None]:
    try:
        yield
    except MergeError as error:
        raise EngineError(str(error)) from error


def open_merged(directory: str | os.PathLike[str], device: str = "cpu") -> Merged:
    """Open a merged checkpoint.

    Args:
        directory: what `qgpuc --emit-weights --base` wrote.
        device: a torch device.

    Raises:
        CheckpointError: it is no merged checkpoint.
    """
    machine = checkpoint_machine(directory)
    try:
        return Merged(open_merged_checkpoint(Path(directory)), machine, device)
    except MergeError as error:
        raise CheckpointError(str(error)) from error
