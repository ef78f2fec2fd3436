"""The JSON files of a merged checkpoint: configuration, generation, and what qgpu has to know."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.transformer.checkpoint import FORMAT_VERSION
from qgpu.backends.transformer.merge.plan import MergePlan

DROPPED = (
    "torch_dtype",
    "full_attention_interval",
    "transformers_version",
    "mtp_num_hidden_layers",
    "mtp_use_dedicated_embeddings",
    "auto_map",
)
"""What of the base's configuration says nothing of the result."""


def merged_config(plan: MergePlan) -> dict[str, Any]:
    """The content of config.json: the base's text configuration with the result's sizes."""
    kept = {name: value for name, value in plan.base.config.items() if name not in DROPPED}
    return {
        **kept,
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "dtype": plan.dtype,
        "vocab_size": plan.vocabulary,
        "hidden_size": plan.hidden,
        "num_hidden_layers": plan.layers,
        "layer_types": list(plan.layer_types),
        "tie_word_embeddings": False,
    }


def generation_config(plan: MergePlan, source: Path) -> dict[str, Any]:
    """The content of generation_config.json: greedy, ending where the base ends, at EXIT, or at a FAULT.

    Of the base's settings the tokens alone are kept: those that choose by chance contradict greedy decoding.
    """
    try:
        given = json.loads((source / "generation_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        given = {}
    config = plan.base.config
    tokens = {n: given.get(n, config.get(n)) for n in ("bos_token_id", "pad_token_id", "eos_token_id")}
    ends = tokens["eos_token_id"]
    ends = ends if isinstance(ends, list) else [] if ends is None else [ends]
    tokens["eos_token_id"] = [*ends, *(plan.base.vocabulary + token for token in _machine_ends(plan))]
    return {"do_sample": False, **{name: value for name, value in tokens.items() if value is not None}}


def _machine_ends(plan: MergePlan) -> list[int]:
    words = vocabulary(plan.machine)
    faults = range(words.first["fault"], words.first["fault"] + words.counts["fault"])
    return [words.id("exit"), *faults]


def metadata(plan: MergePlan, base_name: str) -> dict[str, Any]:
    """The content of qgpu.json.

    `merged` says where the machine is: its layers are the first `layers`, its tokens follow `first_token`,
    and the residual stream has `hidden` channels of the base before its own. `text` has what undoes the
    wider stream: embeddings and output projections are the base's times `factor`; TEXT_NORMS has the base's
    norms.
    """
    return {
        "version": FORMAT_VERSION,
        "machine": dataclasses.asdict(plan.machine),
        "merged": {
            "base": base_name,
            "layers": plan.layout.layers,
            "first_token": plan.base.vocabulary,
            "hidden": plan.base.hidden,
            "tied": plan.base.tied,
            "text": {"factor": plan.scale.factor, "flags": list(plan.scale.flags), "gain": plan.scale.gain},
        },
    }


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
