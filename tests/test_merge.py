"""Merged checkpoints: what lies in them, text on them, and launches in them, in both dtypes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from example_launches import FIRST, launch_of
from merge_bases import CORPUS, MACHINE, VOCABULARY, BaseKind, layout_plan, make_tokenizer, merged_checkpoint
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.reference.run import run_launch
from qgpu.backends.transformer.merge.base import MergeError, read_base
from qgpu.backends.transformer.merge.build import build_merged
from qgpu.backends.transformer.merge.parts import open_merged_checkpoint
from qgpu.backends.transformer.merge.source import stored_tensors
from qgpu.runtime.check_text import Logits, distance
from qgpu.runtime.stock import load_checkpoint

TEXT_CLASS = (BaseKind(), "float32")
VISION_CLASS = (
    BaseKind(vision=True, tied=False, shard="4MB", dtype="bfloat16", value_heads=8, seed=1),
    "bfloat16",
)
TEXT = "".join(CORPUS) * 5

(SAXPY,) = [example for example in FIRST if example.kernel == "saxpy"]


@dataclasses.dataclass(frozen=True)
class Pair:
    """A base and what came of it, both loaded."""

    base_folder: Path
    folder: Path
    base: Any
    merged: Any
    dtype: str

    @property
    def compiled(self) -> int:
        """How many layers are compiled."""
        return layout_plan().layout.layers


@pytest.fixture(scope="module", params=[TEXT_CLASS, VISION_CLASS], ids=["text", "vision"])
def pair(request: pytest.FixtureRequest, shared_folder: Path) -> Pair:
    kind, dtype = request.param
    base, merged = merged_checkpoint(shared_folder, kind, dtype, shard_bytes=1 << 25)
    return Pair(base, merged, load_checkpoint(base, dtype), load_checkpoint(merged, dtype), dtype)


def text_ids(count: int) -> Any:
    import torch

    return torch.tensor([make_tokenizer()(TEXT)["input_ids"][:count]], dtype=torch.long)


def machine_ids(count: int | None = None) -> Any:
    """The tokens of a launch, as the merged model has them."""
    import torch

    return torch.tensor([launch_of(SAXPY, MACHINE).prompt[:count]]) + VOCABULARY


def entering(model: Any, layer: int, ids: Any, **more: Any) -> tuple[Any, Any]:
    """What enters a layer in a forward pass, and the pass's output."""
    import torch

    seen = []
    hook = model.model.layers[layer].register_forward_pre_hook(
        lambda module, args, given: seen.append(args[0] if args else given["hidden_states"]), with_kwargs=True
    )
    with hook, torch.inference_mode():
        output = model(ids, use_cache=True, **more)
    return seen[0], output


def same_bits(one: Any, other: Any) -> bool:
    import torch

    kind = {4: torch.int32, 2: torch.int16}[one.element_size()]
    return torch.equal(one.contiguous().view(kind), other.contiguous().view(kind))


def test_bytes_are_those_of_the_dry_run(pair: Pair) -> None:
    plan = dataclasses.replace(layout_plan(), base=read_base(pair.base_folder), dtype=pair.dtype)
    found = stored_tensors(pair.folder)
    assert {name: shape for name, (_, shape) in found.items()} == {t.name: t.shape for t in plan.tensors}
    assert sum(p.numel() * p.element_size() for p in pair.merged.parameters()) == plan.bytes
    index = json.loads((pair.folder / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == plan.bytes
    files = sorted(pair.folder.glob("*.safetensors"))
    assert len(files) > 1
    assert 0 <= sum(file.stat().st_size for file in files) - plan.bytes < 300 * len(found)


def test_text_enters_the_base_as_if_nothing_stood_before(pair: Pair) -> None:
    """Prefill and decode: what the compiled layers add is 0 to the bit."""
    hidden = layout_plan().base.hidden
    for ids in (text_ids(70), text_ids(1)):
        seen, _ = entering(pair.merged, pair.compiled, ids)
        assert same_bits(seen, pair.merged.get_input_embeddings()(ids))
        factor = layout_plan().scale.factor
        assert same_bits(seen[..., :hidden], pair.base.get_input_embeddings()(ids) * factor)
        assert same_bits(
            seen[..., hidden + layout_plan().flag + 2 :], 0 * seen[..., hidden + layout_plan().flag + 2 :]
        )


def test_text_after_a_launch_adds_nothing_and_leaves_the_machine_as_it_was(pair: Pair) -> None:
    """The convolutions of the compiled layers still see the machine's last token, whose key is on at these
    lengths.
    """
    import torch

    for length in (150, 162):
        with torch.inference_mode():
            cache = pair.merged(machine_ids(length), use_cache=True).cache
        before = [layer.recurrent_states[0].clone() for layer in cache.layers[: pair.compiled]]
        seen, _ = entering(pair.merged, pair.compiled, text_ids(20), cache=cache)
        assert same_bits(seen, pair.merged.get_input_embeddings()(text_ids(20)))
        after = [layer.recurrent_states[0] for layer in cache.layers[: pair.compiled]]
        assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_the_base_is_inert_on_the_machines_tokens(pair: Pair) -> None:
    """What leaves the last compiled layer reaches the final norm, and the base's states stay."""
    import torch

    with torch.inference_mode():
        cache = pair.merged(text_ids(20), use_cache=True).cache
    kinds = pair.merged.config.layer_types[pair.compiled :]
    linear = [cache.layers[pair.compiled + i] for i, kind in enumerate(kinds) if kind == "linear_attention"]
    before = [layer.recurrent_states[0].clone() for layer in linear]
    final: list[Any] = []
    hook = pair.merged.model.norm.register_forward_pre_hook(lambda module, args: final.append(args[0]))
    with hook:
        seen, output = entering(pair.merged, pair.compiled, machine_ids(80), cache=cache)
    assert torch.equal(final[0], seen)
    assert all(torch.equal(b, layer.recurrent_states[0]) for b, layer in zip(before, linear, strict=True))
    assert float(output.logits[..., :VOCABULARY].max()) < float(output.logits.max(-1).values.min()) - 100


def logits_of(model: Any) -> Logits:
    def run(tokens: Any) -> Iterator[Any]:
        import torch

        with torch.inference_mode():
            yield model(torch.tensor([tokens])).logits[0]

    return run


def test_text_is_as_before(pair: Pair) -> None:
    tokens = text_ids(500 if pair.dtype == "float32" else 150)[0].tolist()
    found = distance(logits_of(pair.base), logits_of(pair.merged), tokens)
    assert found.added is not None
    assert found.added < -100
    if pair.dtype == "float32":
        assert found.mean < 1e-9
        return
    exact = load_checkpoint(pair.base_folder, "float32")
    noise = distance(logits_of(exact), logits_of(pair.base), tokens)
    assert 0 < found.mean < 2 * noise.mean


def test_a_launch_by_plain_generation(pair: Pair) -> None:
    """The whole stock model, greedy, from the launch's tokens; also with text before them."""
    import torch

    launch = launch_of(SAXPY, MACHINE)
    wanted = [token + VOCABULARY for token in run_launch(launch).generated]
    ids = torch.tensor([launch.prompt]) + VOCABULARY
    for before in (0, 500) if pair.dtype == "float32" else (9,):
        prompt = torch.cat([text_ids(before), ids], dim=1)
        whole = pair.merged.generate(prompt, max_new_tokens=2 * len(wanted))
        assert whole[0, prompt.shape[1] :].tolist() == wanted


def test_the_tokenizer_has_the_machines_tokens_and_reads_text_as_before(pair: Pair) -> None:
    import transformers

    base = transformers.AutoTokenizer.from_pretrained(pair.base_folder)
    merged = transformers.AutoTokenizer.from_pretrained(pair.folder)
    words = vocabulary(MACHINE)
    for token in (0, 1, words.id("last", 5), words.size - 1):
        name = f"<|qgpu:{words.name(token)[1:-1]}|>"
        assert merged.convert_tokens_to_ids(name) == VOCABULARY + token
        assert merged.decode([VOCABULARY + token]) == name
    for text in (
        TEXT,
        "<|qgpu:read|> <read> <|unused:600|>",
        "<|im_start|>user\n<tool_call>héé\t  数</tool_call>",
    ):
        assert merged(text)["input_ids"] == base(text)["input_ids"]
    assert merged.chat_template == base.chat_template
    assert len(merged) == VOCABULARY + words.size


def test_text_tensors_are_the_bases(pair: Pair) -> None:
    given = pair.base.state_dict()
    if pair.base.config.tie_word_embeddings:
        given.pop("lm_head.weight")
    taken = dict(open_merged_checkpoint(pair.folder).text_tensors())
    assert taken.keys() == given.keys()
    for name, tensor in taken.items():
        assert tensor.equal(given[name]), name


def test_generation_is_greedy_and_ends_where_the_base_or_the_launch_ends(pair: Pair) -> None:
    config = pair.merged.generation_config
    words = vocabulary(MACHINE)
    assert not config.do_sample
    assert config.temperature is None or config.temperature == 1.0
    assert set(config.eos_token_id) >= {
        0,
        2,
        VOCABULARY + words.id("exit"),
        VOCABULARY + words.id("fault", 4),
    }


def test_the_card_says_what_it_is(pair: Pair) -> None:
    text = (pair.folder / "README.md").read_text()
    for part in ("Apache 2.0", "MIT", f"{sum(p.numel() for p in pair.merged.parameters()):,}", "outweighs"):
        assert part in text


def test_an_interrupted_build_leaves_nothing(shared_folder: Path, tmp_path: Path) -> None:
    kind, dtype = TEXT_CLASS
    base, _ = merged_checkpoint(shared_folder, kind, dtype, shard_bytes=1 << 25)
    plan = dataclasses.replace(layout_plan(), base=read_base(base), dtype=dtype)

    def interrupt(count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_merged(plan, base, tmp_path / "out", "base", "", interrupt)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_overwritten(shared_folder: Path, tmp_path: Path) -> None:
    kind, dtype = TEXT_CLASS
    base, _ = merged_checkpoint(shared_folder, kind, dtype, shard_bytes=1 << 25)
    (tmp_path / "file").write_text("here")
    with pytest.raises(MergeError, match="exists already"):
        build_merged(layout_plan(), base, tmp_path, "base", "")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("damage", ["missing", "shape", "tokenizer"])
def test_a_base_that_is_not_whole_is_refused(shared_folder: Path, tmp_path: Path, damage: str) -> None:
    from safetensors.torch import load_file, save_file

    kind, dtype = TEXT_CLASS
    base, _ = merged_checkpoint(shared_folder, kind, dtype, shard_bytes=1 << 25)
    own = tmp_path / "base"
    own.mkdir()
    for file in base.iterdir():
        (own / file.name).symlink_to(file)
    name = "model.layers.1.mlp.up_proj.weight"
    tensors = load_file(base / "model.safetensors")
    if damage == "tokenizer":
        (own / "tokenizer.json").unlink()
    else:
        up = tensors.pop(name)
        tensors |= {name: up[:-1].clone()} if damage == "shape" else {}
        (own / "model.safetensors").unlink()
        save_file(tensors, own / "model.safetensors")
    with pytest.raises(MergeError, match=damage if damage == "tokenizer" else name):
        build_merged(layout_plan(), own, tmp_path / "out", "base", "")
    assert not (tmp_path / "out").exists()
