"""The base: sizes of a Qwen3.5 text model, as its config.json says them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONFIG = "config.json"

DEFAULTS: dict[str, Any] = {
    "vocab_size": 248320,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 32,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "head_dim": 256,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "full_attention_interval": 4,
}
"""What `Qwen3_5TextConfig` takes where a config says nothing (transformers, models/qwen3_5)."""

REQUIRED = {"hidden_act": "silu", "attention_bias": False, "linear_conv_kernel_dim": 4}
"""What the compiled layers take for granted of every layer."""

LAYER_KINDS = ("linear_attention", "full_attention")


class MergeError(ValueError):
    """A base that cannot be read, or in whose layers the machine does not fit."""


@dataclass(frozen=True)
class Base:
    """Sizes of a Qwen3.5 text model, in the terms of `Qwen3_5TextConfig`.

    Attributes:
        config: the text configuration as the file has it.
        hidden, intermediate, vocabulary: sizes.
        layer_types: the mixer of each layer.
        attention_heads, kv_heads, head_dim: of full attention.
        key_heads, value_heads, key_dim, value_dim: of linear attention.
        tied: whether the head is the embedding.
        eps: rms_norm_eps.
        dtype: the dtype that its tensors are meant for.
    """

    config: Mapping[str, Any] = field(repr=False)
    hidden: int
    intermediate: int
    vocabulary: int
    layer_types: tuple[str, ...]
    attention_heads: int
    kv_heads: int
    head_dim: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    tied: bool
    eps: float
    dtype: str


def read_base(directory: str | Path) -> Base:
    """Read the config.json of a directory; nothing else has to be there.

    Raises:
        MergeError: there is none, or it is not that of a Qwen3.5 model whose layers the compiled ones can
            copy.
    """
    path = Path(directory) / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MergeError(f"no base in '{directory}': {CONFIG}: {error.strerror}") from None
    except ValueError:
        raise MergeError(f"'{path}' is not JSON") from None
    return base_of(config, str(path))


def base_of(config: Any, where: str) -> Base:
    """Read a configuration of the text class, or the text part of one of the vision class.

    Raises:
        MergeError: see `read_base`.
    """
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind == "qwen3_5" and isinstance(config.get("text_config"), dict):
        outer, config = config, config["text_config"]
        # The vision class has both for the whole model; its text part need not repeat them.
        for name in ("tie_word_embeddings", "dtype", "torch_dtype"):
            if name in outer:
                config = {name: outer[name], **config}
    elif kind == "qwen3_5":
        raise MergeError(f"{where}: model_type is 'qwen3_5', the vision class, but there is no text_config")
    elif kind != "qwen3_5_text":
        raise MergeError(f"{where}: model_type is {kind!r}, not 'qwen3_5' or 'qwen3_5_text'")
    value = {**DEFAULTS, **{name: given for name, given in config.items() if given is not None}}
    for name, wanted in REQUIRED.items():
        if value[name] != wanted:
            raise MergeError(f"{where}: {name} is {value[name]!r}; the compiled layers need {wanted!r}")
    return Base(
        config=config,
        **{ours: _count(value, theirs, where) for ours, theirs in _COUNTS.items()},
        layer_types=_layer_types(value, where),
        tied=bool(value["tie_word_embeddings"]),
        eps=_eps(value["rms_norm_eps"], where),
        dtype=str(value.get("dtype") or value.get("torch_dtype") or "float32"),
    )


_COUNTS = {
    "hidden": "hidden_size",
    "intermediate": "intermediate_size",
    "vocabulary": "vocab_size",
    "attention_heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "key_heads": "linear_num_key_heads",
    "value_heads": "linear_num_value_heads",
    "key_dim": "linear_key_head_dim",
    "value_dim": "linear_value_head_dim",
}


def _count(value: Mapping[str, Any], name: str, where: str) -> int:
    if type(value[name]) is not int or value[name] < 1:
        raise MergeError(f"{where}: {name} is {value[name]!r}, not a positive integer")
    return value[name]


def _eps(value: Any, where: str) -> float:
    """A number that keeps every norm's root real, and is small beside what norms see."""
    if type(value) not in (int, float) or not 0 < value < 1:
        raise MergeError(f"{where}: rms_norm_eps is {value!r}, not a number between 0 and 1")
    return float(value)


def _layer_types(value: Mapping[str, Any], where: str) -> tuple[str, ...]:
    count = _count(value, "num_hidden_layers", where)
    every = _count(value, "full_attention_interval", where)
    given = value.get("layer_types") or [LAYER_KINDS[i % every == every - 1] for i in range(count)]
    if not isinstance(given, list) or len(given) != count or not set(given) <= set(LAYER_KINDS):
        raise MergeError(f"{where}: layer_types does not name {count} layers of {' or '.join(LAYER_KINDS)}")
    if "full_attention" not in given:
        raise MergeError(f"{where}: no layer of full attention, which transformers' cache asks for")
    return tuple(given)
