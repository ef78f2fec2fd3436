"""A checkpoint run by the stock model: `AutoModelForCausalLM`, greedy, one token a forward pass."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from qgpu.runtime.engine import PREFILL_CHUNK, EngineError, Progress


class StockEngine:
    """A checkpoint in transformers; of a merged one, the whole model.

    Attributes:
        model: the loaded model.
        cache: keys, values, convolution and recurrent states of the current sequence.
        first_token: id of the machine's first token in the model, whose text tokens come before.
        layers: of the model.
    """

    def __init__(
        self, directory: str | os.PathLike[str], dtype: str = "float32", device: str = "cpu"
    ) -> None:
        """Load a checkpoint.

        Args:
            directory: what `from_pretrained` opens.
            dtype: "float32" or "bfloat16": the type of weights and activations.
            device: a torch device.

        Raises:
            EngineError: it cannot be loaded, or there is no such device.
        """
        import torch

        available = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
        if device in available and not available[device]():
            raise EngineError(f"this torch has no {device} device")
        self.model: Any = load_checkpoint(directory, dtype).to(device)
        self._adopt(_first_token(directory), device)

    @classmethod
    def of(cls, model: Any, device: str = "cpu") -> Self:
        """The engine of a model that is there already, and has the machine's tokens alone."""
        engine = object.__new__(cls)
        engine.model = model
        engine._adopt(0, device)
        return engine

    def _adopt(self, first_token: int, device: str) -> None:
        """Take `model` as the engine's."""
        import torch

        self._torch = torch
        self.first_token = first_token
        self._cache_name = cache_argument(self.model)
        self._device = device
        self.layers = int(self.model.config.num_hidden_layers)
        self.begin()

    def begin(self) -> None:
        """Start a new sequence."""
        import transformers

        self.cache: Any = transformers.DynamicCache(config=self.model.config)

    def feed(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        """Append tokens to the sequence; return the argmax of the logits after the last of them."""
        following = 0
        for first in range(0, len(tokens), PREFILL_CHUNK):
            chunk = tokens[first : first + PREFILL_CHUNK]
            following = self._forward(chunk, logits_to_keep=1)[-1]
            if progress is not None:
                progress(len(chunk))
        return following

    def prefill_argmax(self, tokens: Sequence[int], chunk: int = PREFILL_CHUNK) -> list[int]:
        """Append tokens to the sequence; return the argmax of the logits after each of them.

        A greedy continuation is right if, given whole, each of its tokens is the argmax after the one before.
        """
        following: list[int] = []
        for first in range(0, len(tokens), chunk):
            following += self._forward(tokens[first : first + chunk], logits_to_keep=0)
        return following

    def _forward(self, tokens: Sequence[int], logits_to_keep: int) -> list[int]:
        torch = self._torch
        ids = torch.tensor([tokens], device=self._device) + self.first_token
        with torch.inference_mode():
            output = self.model(
                input_ids=ids,
                use_cache=True,
                logits_to_keep=logits_to_keep,
                **{self._cache_name: self.cache},
                **self._more(len(tokens)),
            )
        following = (output.logits[0].argmax(dim=-1) - self.first_token).tolist()
        if min(following) < 0:
            raise EngineError(f"the model goes on with text, token {min(following) + self.first_token}")
        return following

    def _more(self, count: int) -> dict[str, Any]:
        """More arguments for a forward pass over so many tokens."""
        return {}

    def recurrent_states(self) -> list[Any]:
        """The recurrent state of each linear-attention layer, float32 [heads, key, value]."""
        kinds = self.model.config.layer_types
        layers = (layer for layer, kind in enumerate(kinds) if kind == "linear_attention")
        return [self.cache.layers[layer].recurrent_states[0][0] for layer in layers]


def load_checkpoint(directory: str | os.PathLike[str], dtype: str) -> Any:
    """Load a checkpoint as a stock model, on the CPU.

    Raises:
        EngineError: it cannot be loaded, or is not whole.
    """
    import torch
    import transformers
    from safetensors import SafetensorError

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        # Typed as a model alone; with output_loading_info it is a model and the report of its loading.
        loaded: Any = transformers.AutoModelForCausalLM.from_pretrained(
            Path(directory),
            dtype=getattr(torch, dtype),
            attn_implementation="sdpa",
            local_files_only=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise EngineError(f"cannot load '{directory}': {_first_line(error)}") from error
    model, report = loaded
    _check_complete(directory, report)
    return model.eval()


def cache_argument(model: Any) -> str:
    """The name of the argument that takes the cache: transformers renamed `past_key_values` in 5.24."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def _first_token(directory: str | os.PathLike[str]) -> int:
    """The id of the machine's first token in a checkpoint: in a merged one, the base's come before."""
    from qgpu.backends.transformer.merge.parts import merged_table

    table = merged_table(Path(directory))
    return 0 if table is None else int(table["first_token"])


def _check_complete(directory: str | os.PathLike[str], report: Any) -> None:
    """Refuse a model some of whose tensors transformers made up or left out: it is another model."""
    for fault in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        names = sorted(str(name) for name in report[fault])
        if names:
            kind = fault.removesuffix("_keys")
            raise EngineError(f"cannot load '{directory}': {len(names)} {kind} tensors, {names[0]} the first")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
