"""Bases for merges, made on the spot: random Qwen3.5 models of few layers with a small tokenizer of Qwen's
kind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu.backends.machine.description import SMALL
from qgpu.backends.transformer.merge.base import base_of, read_base
from qgpu.backends.transformer.merge.build import build_merged
from qgpu.backends.transformer.merge.plan import MergePlan, plan_merge

MACHINE = dataclasses.replace(SMALL, name="mini", payload_bits=11)
"""The machine that tests merge: as small as they come, with few tokens."""

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
"""Qwen's special tokens; the markers below are added tokens too, but not special ones."""

MARKERS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")

VOCABULARY = 640
"""Of the model: more than the tokenizer's, as the published checkpoints have it."""

CORPUS = (
    "The machine adds two vectors and gives their sum. ",
    "What is the dot product of [1, 2, 3] and [4, 5, 6]? It is 32. ",
    "def dot(a, b):\n    return sum(x * y for x, y in zip(a, b))\n",
    "__global__ void add(int *c, const int *a, const int *b) { int i = threadIdx.x; c[i] = a[i] + b[i]; }\n",
    "Rivers run to the sea, and the sea is never full; 1234567890 birds flew over it in 1984.\n",
)

CHAT_TEMPLATE = """\
{%- if tools %}{{- '<|im_start|>system\\n# Tools\\n\\n' }}
{{- 'You have access to the following functions:\\n\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' ~ (tool | tojson) }}{%- endfor %}{{- '\\n</tools>' }}
{{- '\\n\\nTo call one, reply:\\n<tool_call>\\n<function=NAME>\\n<parameter=P>\\nvalue\\n</parameter>' }}
{{- '\\n</function>\\n</tool_call>' }}
{%- if messages and messages[0].role == 'system' %}{{- '\\n\\n' ~ messages[0].content }}{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' ~ message.content ~ '\\n</tool_response><|im_end|>\\n' }}
{%- elif not (message.role == 'system' and tools and loop.first) %}
{{- '<|im_start|>' ~ message.role ~ '\\n' ~ (message.content or '') }}
{%- for call in message.tool_calls or [] %}
{%- set function = call.function if call.function is defined else call %}
{{- '\\n<tool_call>\\n<function=' ~ function.name ~ '>' }}
{%- for name, value in function.arguments | items %}
{{- '\\n<parameter=' ~ name ~ '>\\n' ~ value ~ '\\n</parameter>' }}
{%- endfor %}{{- '\\n</function>\\n</tool_call>' }}
{%- endfor %}{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}
"""


@dataclass(frozen=True)
class BaseKind:
    """What a base is made like.

    Attributes:
        vision: a checkpoint of the vision class, with its names, vision tensors and tensors of multi-token
            prediction.
        tied: the head is the embedding.
        shard: size of a file, as `save_pretrained` takes it.
        dtype: of its tensors.
        hidden, intermediate, layers, value_heads: sizes; key heads are 4.
        seed: of the random weights.
    """

    vision: bool = False
    tied: bool = True
    shard: str = "5GB"
    dtype: str = "float32"
    hidden: int = 256
    intermediate: int = 1728
    layers: int = 4
    value_heads: int = 4
    seed: int = 0


def make_base(folder: Path, kind: BaseKind) -> Path:
    """Save a base in a folder, as the hub has one: config, weights, tokenizer, generation config."""
    import torch
    import transformers

    torch.manual_seed(kind.seed)
    transformers.logging.disable_progress_bar()
    text = transformers.Qwen3_5TextConfig(**text_settings(kind))
    if kind.vision:
        vision = {
            "depth": 1,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 32,
        }
        config = transformers.Qwen3_5Config(
            text_config=text.to_dict(),
            vision_config={**vision, "num_position_embeddings": 16},
            tie_word_embeddings=kind.tied,
        )
        model: Any = transformers.Qwen3_5ForConditionalGeneration(config)
    else:
        model = transformers.Qwen3_5ForCausalLM(text)
    _give_realistic_scale(model.float())
    model.to(getattr(torch, kind.dtype)).save_pretrained(folder, max_shard_size=kind.shard)
    if kind.vision:
        _add_prediction_tensors(folder)
    make_tokenizer().save_pretrained(folder)
    settings = {"do_sample": True, "temperature": 0.6, "top_p": 0.95, "top_k": 20, "eos_token_id": [2, 0]}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    return folder


def text_settings(kind: BaseKind) -> dict[str, Any]:
    """The text configuration of a base."""
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": kind.hidden,
        "intermediate_size": kind.intermediate,
        "num_hidden_layers": kind.layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "linear_num_key_heads": 4,
        "linear_num_value_heads": kind.value_heads,
        "tie_word_embeddings": kind.tied,
        "max_position_embeddings": 1 << 16,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000_000,
            "partial_rotary_factor": 0.25,
            "mrope_section": [3, 3, 2],
            "mrope_interleaved": True,
        },
        "eos_token_id": 2,
        "dtype": kind.dtype,
    }


def _give_realistic_scale(model: Any) -> None:
    """Spread the norms, let some channels stand out, and bring the logits' logsumexp near 20."""
    import torch

    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "visual" in name:
                continue
            if name.endswith(("layernorm.weight", ".norm.weight")) and "linear_attn" not in name:
                weight.normal_(0.1, 0.35)
            elif name.endswith(("q_norm.weight", "k_norm.weight")):
                weight.normal_(0.3, 0.2)
            elif weight.dim() == 2:
                weight.normal_(0, 0.7 / weight.shape[1] ** 0.5)
        embedding = model.get_input_embeddings().weight
        embedding.normal_(0, 0.03)
        embedding[:, torch.randperm(embedding.shape[1])[:5]] *= 8
        head = model.get_output_embeddings().weight
        norm = (model.model.language_model if hasattr(model.model, "language_model") else model.model).norm
        if head is embedding:
            norm.weight.copy_((1 + norm.weight) * _gain(model) - 1)
        else:
            head.normal_(0, 0.03)
            head.mul_(_gain(model))


def _gain(model: Any) -> float:
    """What the logits have to be multiplied by for a logsumexp of about 20."""
    import torch

    logits = model(input_ids=torch.arange(64)[None] * 7 % VOCABULARY).logits[0].float()
    low, high = 0.0, 1e4
    for _ in range(50):
        middle = (low + high) / 2
        size = float((logits * middle).logsumexp(-1).mean())
        low, high = (middle, high) if size < 20 else (low, middle)
    return low


def _add_prediction_tensors(folder: Path) -> None:
    """Add the tensors of multi-token prediction that the published checkpoints have and the model class
    lacks.
    """
    import torch
    from safetensors.torch import load_file, save_file

    path = min(folder.glob("model*.safetensors"))
    tensors = load_file(path)
    tensors["mtp.fc.weight"] = torch.ones(4, 4, dtype=next(iter(tensors.values())).dtype)
    save_file(tensors, path, metadata={"format": "pt"})
    index = folder / "model.safetensors.index.json"
    if index.exists():
        content = json.loads(index.read_text())
        content["weight_map"]["mtp.fc.weight"] = path.name
        index.write_text(json.dumps(content))


@functools.cache
def make_tokenizer() -> Any:
    """A byte-level BPE tokenizer with Qwen's special tokens and a chat template with tools."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=560,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    wrapped.add_tokens(list(MARKERS))
    wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def merged_checkpoint(folder: Path, kind: BaseKind, dtype: str, **options: Any) -> tuple[Path, Path]:
    """A base and what the machine makes of it in a dtype, built where the folder has none.

    Args:
        folder: a folder that all processes of a test run share.
        options: of `build_merged`.
    """
    name = "-".join(str(value) for value in vars(kind).values())
    base, merged = folder / f"base-{name}", folder / f"merged-{name}-{dtype}"
    if not (base / "complete").exists():
        building = Path(tempfile.mkdtemp(dir=folder))
        make_base(building, kind)
        (building / "complete").touch()
        with contextlib.suppress(OSError):
            building.rename(base)
    if not merged.exists():
        plan = dataclasses.replace(layout_plan(), base=read_base(base), dtype=dtype)
        with contextlib.suppress(OSError):  # another process was faster
            build_merged(plan, base, merged, "base", "qgpuc", **options)
    return base, merged


@functools.cache
def layout_plan() -> MergePlan:
    """The plan of MACHINE in bases of the usual sizes: its layout fits them all."""
    return plan_merge(
        base_of(text_settings(BaseKind()) | {"model_type": "qwen3_5_text"}, "base"), MACHINE, "float32"
    )
