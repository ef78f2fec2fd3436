"""Names and shapes of the tensors of a Qwen3.5 text model, and how each meets the residual stream."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from qgpu.backends.transformer.emit import CONV_TAPS
from qgpu.backends.transformer.merge.base import Base

EMBEDDING = "model.embed_tokens.weight"
FINAL_NORM = "model.norm.weight"
HEAD = "lm_head.weight"


class Role(enum.Enum):
    """How a tensor meets the residual stream."""

    READS = "its columns are the stream's channels"
    WRITES = "its rows are the stream's channels"
    NORM = "it weighs the stream's channels"
    INSIDE = "it does not meet the stream"


@dataclass(frozen=True)
class TensorShape:
    """A tensor of the model: its name, its shape, its role."""

    name: str
    shape: tuple[int, ...]
    role: Role

    @property
    def numbers(self) -> int:
        """How many numbers it has."""
        product = 1
        for size in self.shape:
            product *= size
        return product


def model_tensors(
    base: Base, layer_types: tuple[str, ...], hidden: int, vocabulary: int, tied: bool
) -> Iterator[TensorShape]:
    """Yield the tensors of a text model with the heads and the neurons of `base`, in the order of a forward
    pass.
    """
    yield TensorShape(EMBEDDING, (vocabulary, hidden), Role.READS)
    for number, kind in enumerate(layer_types):
        for tensor in layer_tensors(base, kind, hidden):
            yield TensorShape(f"model.layers.{number}.{tensor.name}", tensor.shape, tensor.role)
    yield TensorShape(FINAL_NORM, (hidden,), Role.NORM)
    if not tied:
        yield TensorShape(HEAD, (vocabulary, hidden), Role.READS)


def layer_tensors(base: Base, kind: str, hidden: int) -> list[TensorShape]:
    """The tensors of one layer, without the layer's number."""
    mixer = _linear(base, hidden) if kind == "linear_attention" else _full(base, hidden)
    width = base.intermediate
    return [
        TensorShape("input_layernorm.weight", (hidden,), Role.NORM),
        *mixer,
        TensorShape("post_attention_layernorm.weight", (hidden,), Role.NORM),
        TensorShape("mlp.gate_proj.weight", (width, hidden), Role.READS),
        TensorShape("mlp.up_proj.weight", (width, hidden), Role.READS),
        TensorShape("mlp.down_proj.weight", (hidden, width), Role.WRITES),
    ]


def _linear(base: Base, hidden: int) -> list[TensorShape]:
    keys, values, heads = base.key_heads * base.key_dim, base.value_heads * base.value_dim, base.value_heads
    shapes = {
        "in_proj_qkv.weight": ((2 * keys + values, hidden), Role.READS),
        "in_proj_z.weight": ((values, hidden), Role.READS),
        "in_proj_b.weight": ((heads, hidden), Role.READS),
        "in_proj_a.weight": ((heads, hidden), Role.READS),
        "conv1d.weight": ((2 * keys + values, 1, CONV_TAPS), Role.INSIDE),
        "dt_bias": ((heads,), Role.INSIDE),
        "A_log": ((heads,), Role.INSIDE),
        "norm.weight": ((base.value_dim,), Role.INSIDE),
        "out_proj.weight": ((hidden, values), Role.WRITES),
    }
    return [TensorShape(f"linear_attn.{name}", *rest) for name, rest in shapes.items()]


def _full(base: Base, hidden: int) -> list[TensorShape]:
    queries, keys = base.attention_heads * base.head_dim, base.kv_heads * base.head_dim
    shapes = {
        "q_proj.weight": ((2 * queries, hidden), Role.READS),
        "k_proj.weight": ((keys, hidden), Role.READS),
        "v_proj.weight": ((keys, hidden), Role.READS),
        "q_norm.weight": ((base.head_dim,), Role.INSIDE),
        "k_norm.weight": ((base.head_dim,), Role.INSIDE),
        "o_proj.weight": ((hidden, queries), Role.WRITES),
    }
    return [TensorShape(f"self_attn.{name}", *rest) for name, rest in shapes.items()]
