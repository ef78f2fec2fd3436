"""The stock model and the engine: the same function of the same files, and the reference's tokens."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import machine_kernels
from qgpu.backends.machine.description import SMALL, MachineDescription
from qgpu.backends.machine.host import Launch, build_launch
from qgpu.backends.reference.run import run_launch
from qgpu.runtime.compiled import CompiledEngine
from qgpu.runtime.engine import EngineError
from qgpu.runtime.engines import make_engine
from qgpu.runtime.launch import run
from qgpu.runtime.stock import StockEngine

VOCABULARY = 40
Loader = Callable[[Path], CompiledEngine | StockEngine]


def write_random_model(folder: Path, **changes: Any) -> None:
    """A tiny model of random weights, most of them 0, whose attention puts out 0."""
    torch.manual_seed(len(changes))
    settings: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 24,
        "num_hidden_layers": 4,
        "layer_types": ["linear_attention", "linear_attention", "full_attention", "linear_attention"],
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "linear_num_key_heads": 3,
        "linear_num_value_heads": 3,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 8,
        **changes,
    }
    config = transformers.Qwen3_5TextConfig(**settings, dtype="float32")
    model = transformers.Qwen3_5ForCausalLM(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.randn_like(weight))
            if "proj" in name or "conv" in name:
                weight.mul_(torch.rand_like(weight) < 0.3)
            if "o_proj" in name:
                weight.zero_()
            if "A_log" in name:
                weight[0] = -200.0
    model.save_pretrained(folder)


@pytest.fixture(scope="session")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("random")
    write_random_model(folder)
    return folder


@pytest.fixture
def small_checkpoint(checkpoint: Callable[[MachineDescription, str], Path]) -> Path:
    return checkpoint(SMALL, "float32")


def random_tokens(count: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(0, VOCABULARY, count).tolist()


def states(stock: StockEngine) -> list[np.ndarray]:
    return [state.float().numpy().reshape(-1, state.shape[-1]) for state in stock.recurrent_states()]


def test_both_compute_a_random_model_alike(random_model: Path) -> None:
    """Within rounding: a random model's sums are not exact, so their order shows."""
    stock, engine = StockEngine(random_model), CompiledEngine(random_model)
    for count, token in enumerate(random_tokens(30)):
        assert stock.feed([token]) == engine.feed([token])
        if count:
            for wanted, got in zip(states(stock), engine.recurrent_states(), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-4)


def test_tied_embeddings(tmp_path: Path) -> None:
    write_random_model(tmp_path, tie_word_embeddings=True)
    stock, engine = StockEngine(tmp_path), CompiledEngine(tmp_path)
    assert [stock.feed([t]) for t in random_tokens(10)] == [engine.feed([t]) for t in random_tokens(10)]


def test_a_new_sequence_starts_from_nothing(random_model: Path) -> None:
    for engine in (StockEngine(random_model), CompiledEngine(random_model)):
        first = [engine.feed([token]) for token in random_tokens(12)]
        engine.begin()
        assert [engine.feed([token]) for token in random_tokens(12)] == first


def test_feeding_many_tokens_is_feeding_each(random_model: Path) -> None:
    tokens = random_tokens(70, seed=1)
    one_by_one = StockEngine(random_model)
    each = [one_by_one.feed([token]) for token in tokens]
    whole = StockEngine(random_model)
    taken: list[int] = []
    assert whole.feed(tokens, taken.append) == each[-1]
    assert sum(taken) == len(tokens)
    whole.begin()
    assert whole.prefill_argmax(tokens, chunk=33) == each
    assert CompiledEngine(random_model).feed(tokens) == each[-1]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("dtype", "bfloat16", "dtype = 'bfloat16'"),
        ("hidden_act", "gelu", "hidden_act = 'gelu'"),
        ("linear_num_key_heads", 1, "key and value heads differ in number"),
        ("layer_types", None, "cannot load"),
    ],
)
def test_models_that_the_engine_refuses(
    random_model: Path, tmp_path: Path, name: str, value: object, message: str
) -> None:
    config = json.loads((random_model / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, name: value}))
    (tmp_path / "model.safetensors").symlink_to(random_model / "model.safetensors")
    with pytest.raises(EngineError, match=message):
        CompiledEngine(tmp_path)


def test_attention_that_puts_something_out_is_refused(tmp_path: Path) -> None:
    config = {"layer_types": ["full_attention"], "num_hidden_layers": 1}
    write_random_model(tmp_path, **config)
    CompiledEngine(tmp_path)
    model = transformers.Qwen3_5ForCausalLM.from_pretrained(tmp_path)
    with torch.no_grad():
        model.get_parameter("model.layers.0.self_attn.o_proj.weight")[3, 5] = 1.0
    model.save_pretrained(tmp_path)
    with pytest.raises(EngineError, match="self_attn attends"):
        CompiledEngine(tmp_path)


@pytest.mark.parametrize("engine", [CompiledEngine, StockEngine])
def test_directories_without_a_model(tmp_path: Path, engine: Loader) -> None:
    with pytest.raises(EngineError, match="cannot load"):
        engine(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    (tmp_path / "model.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(EngineError, match="cannot load"):
        engine(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\xff" * 4000, None])
@pytest.mark.parametrize("engine", [CompiledEngine, StockEngine])
def test_weights_that_are_damaged(
    random_model: Path,
    tmp_path: Path,
    engine: Loader,
    content: bytes | None,
) -> None:
    """Empty, wrong, or cut short (None)."""
    whole = (random_model / "model.safetensors").read_bytes()
    (tmp_path / "config.json").write_bytes((random_model / "config.json").read_bytes())
    (tmp_path / "model.safetensors").write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(EngineError, match="cannot load"):
        engine(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("model.layers.0.mlp.down_proj.weight"), "1 missing tensors"),
        (lambda tensors: tensors.update(extra=torch.zeros(3)), "1 unexpected tensors, extra"),
    ],
)
def test_the_stock_engine_takes_whole_models_alone(
    random_model: Path, tmp_path: Path, change: Callable[[dict[str, torch.Tensor]], object], message: str
) -> None:
    """transformers makes up what is missing at random, and leaves out what it does not know."""
    tensors = load_file(random_model / "model.safetensors")
    change(tensors)
    (tmp_path / "config.json").write_bytes((random_model / "config.json").read_bytes())
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EngineError, match=message):
        StockEngine(tmp_path)


def test_devices_that_are_not_there(random_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EngineError, match="this torch has no cuda device"):
        StockEngine(random_model, device="cuda")


def vecadd_launch() -> Launch:
    a, b = (struct.pack("<7i", *(scale * i - 9 for i in range(7))) for scale in (1, 100_000))
    return build_launch(SMALL, machine_kernels.vecadd(), (2, 1, 1), (4, 1, 1), [a, b, bytes(28), 7])


def tid_launch() -> Launch:
    """Five threads store their tid: a prompt of few tokens."""
    kernel = machine_kernels.one_access(
        a_thread=1, a_to_x=1, a_to_i4=1, one_to_y=1, c=1, c_to_d=1, check=1, wr_mem=1
    )
    return build_launch(SMALL, kernel, (1, 1, 1), (5, 1, 1), [bytes(20), 0])


def test_the_stock_model_runs_a_kernel(small_checkpoint: Path) -> None:
    outcome = run(tid_launch(), make_engine("weights", SMALL, small_checkpoint), check=True)
    assert outcome.buffers[0] == struct.pack("<5i", *range(5))


def test_the_engine_runs_kernels(small_checkpoint: Path) -> None:
    engine = make_engine("engine", SMALL, small_checkpoint)
    outcome = run(vecadd_launch(), engine, check=True)
    assert outcome.layers == StockEngine(small_checkpoint).layers
    triangle = build_launch(SMALL, machine_kernels.triangle(), (1, 1, 1), (6, 1, 1), [bytes(24)])
    assert run(triangle, engine, check=True).buffers[0] == struct.pack("<6i", 0, 1, 3, 6, 10, 15)


def test_states_are_equal_to_the_bit(small_checkpoint: Path) -> None:
    launch = tid_launch()
    tokens = [*launch.prompt, *run_launch(launch).generated]
    stock, engine = StockEngine(small_checkpoint), CompiledEngine(small_checkpoint)
    assert [stock.feed([token]) for token in tokens] == [engine.feed([token]) for token in tokens]
    for wanted, got in zip(states(stock), engine.recurrent_states(), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("chunk", [64, 100])
def test_the_model_agrees_with_a_whole_launch_at_once(small_checkpoint: Path, chunk: int) -> None:
    launch = vecadd_launch()
    generated = run_launch(launch).generated
    following = StockEngine(small_checkpoint).prefill_argmax([*launch.prompt, *generated], chunk)
    first = len(launch.prompt) - 1
    assert following[first : first + len(generated)] == list(generated)
