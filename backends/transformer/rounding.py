"""Numbers of a checkpoint in its dtype: exact, or an error that names the weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


class InexactWeightError(ValueError):
    """A weight that the checkpoint's dtype can't hold exactly."""


def in_dtype(name: str, tensor: np.ndarray, dtype: str) -> torch.Tensor:
    """Return a compiled tensor, given as float32, in a checkpoint's dtype.

    Raises:
        InexactWeightError: a weight is not exact in `dtype`, and has to be.
    """
    import torch

    exact = torch.from_numpy(np.ascontiguousarray(tensor))
    rounded = exact.to(getattr(torch, dtype))
    if dtype == "float32" or _may_round(name):
        return rounded
    wrong = (rounded.float() != exact).nonzero()
    if len(wrong):
        where = tuple(wrong[0].tolist())
        raise InexactWeightError(f"{name}{list(where)} = {exact[where].item()} is not exact in {dtype}")
    return rounded


def _may_round(name: str) -> bool:
    """The norms' 2^16 - 1 rounds to 2^16, and its output back; a counter's gain is approximate by design."""
    return name.endswith(("layernorm.weight", "model.norm.weight", "out_proj.weight"))
