"""The compiled layers of a merged checkpoint in transformers, without the layers behind them."""

from __future__ import annotations

from typing import Any

from qgpu.runtime.stock import StockEngine


class CompiledLayers(StockEngine):
    """Layers of linear attention alone.

    transformers asks a layer of full attention how long the sequence is; there is none, so this says it.
    """

    def begin(self) -> None:
        """Start a new sequence."""
        super().begin()
        self._length = 0

    def _more(self, count: int) -> dict[str, Any]:
        places = self._torch.arange(self._length, self._length + count, device=self._device)
        self._length += count
        return {
            "position_ids": places[None],
            "attention_mask": {"linear_attention": None, "full_attention": None},
        }
