"""The engine: it knows nothing of what a checkpoint was compiled from, and skips only what is 0."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from safetensors.numpy import load_file, save_file

import machine_kernels
from qgpu.backends.engine import native
from qgpu.backends.engine.cache import cached_form
from qgpu.backends.engine.layout import Form
from qgpu.backends.engine.sequence import TokenSequence, load_form
from qgpu.backends.engine.tensors import ModelError
from qgpu.backends.machine.description import SMALL, MachineDescription
from qgpu.backends.machine.host import build_launch
from qgpu.backends.reference.run import run_launch
from qgpu.runtime.stock import StockEngine

Tensors = dict[str, np.ndarray]
Checkpoint = Callable[[MachineDescription, str], Path]

HIDDEN, HEADS, KEY, VALUE, NEURONS, VOCABULARY, LAYERS = 64, 3, 16, 8, 24, 50, 3
BITS, WRITTEN = np.arange(1, 21), np.arange(21, HIDDEN)
"""Channels of small exact models: a token's bits, and what heads and neurons write."""


@pytest.fixture(scope="module")
def small(checkpoint: Checkpoint) -> Path:
    return checkpoint(SMALL, "float32")


def launch_tokens() -> tuple[list[int], list[int]]:
    """The prompt of a launch, and what the reference generates."""
    launch = build_launch(SMALL, machine_kernels.triangle(), (1, 1, 1), (6, 1, 1), [bytes(24)])
    return list(launch.prompt), list(run_launch(launch).generated)


# A checkpoint under other names.


def renamed(tensors: Tensors, config: dict[str, Any], seed: int) -> tuple[Tensors, np.ndarray]:
    """The model with channels, heads, their rows, neurons and tokens in another order; and the tokens'."""
    chance = np.random.default_rng(seed)
    hidden, heads = config["hidden_size"], config["linear_num_value_heads"]
    key, value = config["linear_key_head_dim"], config["linear_value_head_dim"]
    channels = chance.permutation(hidden)
    tokens = chance.permutation(config["vocab_size"])
    result = dict(tensors)
    for name, tensor in tensors.items():
        if name.endswith(("layernorm.weight", "model.norm.weight")):
            result[name] = tensor[channels]
        elif "embed_tokens" in name or "lm_head" in name:
            result[name] = tensor[tokens][:, channels]
        elif name.endswith(("down_proj.weight", "out_proj.weight", "o_proj.weight")):
            result[name] = tensor[channels]
        elif tensor.ndim == 2 and tensor.shape[1] == hidden:
            result[name] = tensor[:, channels]
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        neurons = chance.permutation(config["intermediate_size"])
        for name, axis in (("gate", 0), ("up", 0), ("down", 1)):
            name = f"{prefix}mlp.{name}_proj.weight"
            result[name] = result[name].take(neurons, axis)
        if config["layer_types"][layer] == "linear_attention":
            reorder_heads(result, f"{prefix}linear_attn.", heads, key, value, chance)
    names = np.empty_like(tokens)
    names[tokens] = np.arange(len(tokens))
    return {name: np.ascontiguousarray(tensor) for name, tensor in result.items()}, names


def reorder_heads(
    tensors: Tensors, prefix: str, heads: int, key: int, value: int, chance: np.random.Generator
) -> None:
    order = chance.permutation(heads)
    keys = (order[:, None] * key + chance.permutation(key)).reshape(-1)
    values = (order[:, None] * value + np.arange(value)).reshape(-1)
    rows = np.concatenate((keys, keys + heads * key, values + 2 * heads * key))
    places = {
        "in_proj_qkv.weight": (rows, 0),
        "conv1d.weight": (rows, 0),
        "in_proj_z.weight": (values, 0),
        "in_proj_b.weight": (order, 0),
        "in_proj_a.weight": (order, 0),
        "out_proj.weight": (values, 1),
        "A_log": (order, 0),
        "dt_bias": (order, 0),
    }
    for name, (places_of, axis) in places.items():
        tensors[prefix + name] = tensors[prefix + name].take(places_of, axis)


def test_names_do_not_matter(small: Path, tmp_path: Path) -> None:
    config = json.loads((small / "config.json").read_text())
    tensors, names = renamed(load_file(small / "model.safetensors"), config, seed=1)
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    prompt, generated = launch_tokens()
    sequence = TokenSequence(load_form(tmp_path))
    first = sequence.feed(names[prompt].tolist())
    found = [first, *sequence.generate(first, len(generated) - 1, ())]
    assert found == names[generated].tolist()


# Small exact models: integers everywhere, as in a compiled one.


def exact_model(folder: Path, seed: int, **changes: Any) -> None:
    """A model of small integers: rows of keys and queries are conjunctions of bits, through any tap."""
    chance = np.random.default_rng(seed)
    settings: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": NEURONS,
        "num_hidden_layers": LAYERS,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "linear_num_key_heads": HEADS,
        "linear_num_value_heads": HEADS,
        "linear_key_head_dim": KEY,
        "linear_value_head_dim": VALUE,
        "tie_word_embeddings": False,
        **changes,
    }
    config = transformers.Qwen3_5TextConfig(**settings, dtype="float32")
    transformers.Qwen3_5ForCausalLM(config).save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    for name, tensor in tensors.items():
        tensors[name] = exact_tensor(chance, name, tensor.shape).astype(np.float32)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def conjunctions(chance: np.random.Generator, count: int) -> np.ndarray:
    """Rows that are 32 where up to three random bits are as they should be, and at most -224 elsewhere."""
    table = np.zeros((count, HIDDEN))
    for row in table:
        bits = chance.choice(BITS, chance.integers(1, 4), replace=False)
        row[bits] = chance.choice([-256, 256], len(bits))
        row[0] = 32 - row[row > 0].sum()
    return table


def decoders(chance: np.random.Generator) -> np.ndarray:
    """KEY rows for each head: that of the number in four random bits is 32, if another bit is 1."""
    table = np.zeros((HEADS, KEY, HIDDEN))
    for head in table:
        *bits, enable = chance.choice(BITS, 5, replace=False)
        digits = np.arange(KEY)[:, None] >> np.arange(4) & 1
        head[:, bits] = 512 * digits - 256
        head[:, enable] = 256
        head[:, 0] = 32 - 256 * (digits.sum(axis=1) + 1)
    return table.reshape(-1, HIDDEN)


def values(chance: np.random.Generator) -> np.ndarray:
    """VALUE rows for each head: bits, and two constants that make the head's norm a power of two."""
    table = conjunctions(chance, HEADS * VALUE).reshape(HEADS, VALUE, HIDDEN)
    table[:, -2:] = 0
    table[:, -2:, 0] = 2.0**20
    return table.reshape(-1, HIDDEN)


def taps(chance: np.random.Generator) -> np.ndarray:
    """One tap a row, the same for all keys (or queries) of a head; constants have the last."""
    of_heads = np.repeat(chance.integers(0, 4, 2 * HEADS), KEY)
    of_values = chance.integers(0, 4, (HEADS, VALUE))
    of_values[:, -2:] = 3
    return np.eye(4)[np.concatenate((of_heads, of_values.reshape(-1)))]


def into(chance: np.random.Generator, channels: np.ndarray, columns: int, weight: float) -> np.ndarray:
    """A projection [HIDDEN, columns] that adds each column, times a weight, to a random channel."""
    table = np.zeros((HIDDEN, columns))
    table[chance.choice(channels, columns), np.arange(columns)] = weight
    return table


def exact_tensor(chance: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Channel 0 is a constant that makes the norm 1; then BITS, then WRITTEN."""
    makers: dict[str, Callable[[], np.ndarray]] = {
        "lm_head": lambda: chance.integers(-2, 3, shape) * (chance.random((shape[0], 1)) < 0.7),
        "A_log": lambda: np.full(shape, -200),
        "linear_attn.norm": lambda: np.ones(shape),
        "norm.weight": lambda: np.where(np.arange(HIDDEN) == 0, 1 / 8, 2.0**16) - 1,
        "conv1d": lambda: taps(chance)[:, None],
        "qkv": lambda: np.concatenate((decoders(chance), decoders(chance), values(chance))),
        "in_proj_b": lambda: conjunctions(chance, shape[0]),
        "in_proj_z": lambda: conjunctions(chance, shape[0]),
        "gate_proj": lambda: conjunctions(chance, shape[0]),
        "up_proj": lambda: np.where(np.arange(HIDDEN) == 0, 1, 2 * np.eye(shape[0], shape[1])),
        "down_proj": lambda: into(chance, WRITTEN, shape[1], 1 / 32),
        "out_proj": lambda: (
            into(chance, WRITTEN, shape[1], 2.0**9) * (np.arange(shape[1]) % VALUE < VALUE - 2)
        ),
    }
    if "embed_tokens" in name:
        table = np.zeros(shape)
        table[:, 0] = 8 * 2.0**16
        table[:, BITS] = chance.integers(0, 2, (shape[0], len(BITS)))
        return table
    return next((make() for part, make in makers.items() if part in name), np.zeros(shape))


@pytest.mark.parametrize("seed", range(4))
def test_states_and_tokens_are_those_of_stock_decode(tmp_path: Path, seed: int) -> None:
    """Ranges that grow late, every tap, inputs of neurons that vary, ties of logits: all to the bit."""
    exact_model(tmp_path, seed)
    stock, sequence = StockEngine(tmp_path), TokenSequence(load_form(tmp_path))
    tokens = np.random.default_rng(seed).integers(0, VOCABULARY, 120)
    # At first few tokens alone, so that the later ones are beyond the ranges seen by then.
    tokens[:40] %= 3
    for number, token in enumerate(tokens.tolist()):
        assert sequence.feed([token]) == stock.feed([token]), number
    for wanted, got in zip(stock.recurrent_states(), sequence.recurrent_states(), strict=True):
        assert np.abs(got).max() > 0
        np.testing.assert_array_equal(got, wanted.numpy().reshape(got.shape))


def test_a_convolution_of_several_taps(tmp_path: Path) -> None:
    exact_model(tmp_path, seed=7)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    conv = tensors["model.layers.0.linear_attn.conv1d.weight"]
    conv[::5, 0] = [0.5, 0.0, 0.0, 1.0]
    conv[1::5, 0] = [0.0, 0.0, 2.0, 0.0]
    save_file(tensors, path, metadata={"format": "pt"})
    stock, sequence = StockEngine(tmp_path), TokenSequence(load_form(tmp_path))
    for token in np.random.default_rng(3).integers(0, VOCABULARY, 60).tolist():
        assert sequence.feed([token]) == stock.feed([token])
    for wanted, got in zip(stock.recurrent_states(), sequence.recurrent_states(), strict=True):
        np.testing.assert_allclose(got, wanted.numpy().reshape(got.shape), rtol=1e-4, atol=1e-5)


def test_of_equal_logits_the_first_wins(tmp_path: Path) -> None:
    exact_model(tmp_path, seed=1, layer_types=["full_attention"], num_hidden_layers=1)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    tensors["lm_head.weight"][30:] = tensors["lm_head.weight"][:20]
    tensors["lm_head.weight"][7] = tensors["lm_head.weight"][23]
    save_file(tensors, path, metadata={"format": "pt"})
    stock, sequence = StockEngine(tmp_path), TokenSequence(load_form(tmp_path))
    for token in range(VOCABULARY):
        assert sequence.feed([token]) == stock.feed([token])


# Sequences.


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exact")
    exact_model(folder, seed=2)
    return folder


@pytest.fixture(scope="module")
def form(exact: Path) -> Form:
    return load_form(exact)


def test_generating_is_feeding_what_was_said(form: Form) -> None:
    one_by_one, at_once = TokenSequence(form), TokenSequence(form)
    expected = [one_by_one.feed([5, 6])]
    for _ in range(29):
        expected.append(one_by_one.feed(expected[-1:]))
    first = at_once.feed([5, 6])
    assert [first, *at_once.generate(first, 29, ())] == expected
    stop = expected[12]
    at_once.begin()
    first = at_once.feed([5, 6])
    stopped = [first, *at_once.generate(first, 29, (stop,))]
    assert stopped == expected[: 1 + (expected.index(stop, 1) if stop in expected[1:] else 29)]


def test_sequences_of_one_form_in_threads(form: Form) -> None:
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, (4, 3000))
    expected = [TokenSequence(form).feed(row.tolist()) for row in tokens]
    found: dict[int, int] = {}

    def work(number: int) -> None:
        found[number] = TokenSequence(form).feed(tokens[number].tolist())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(tokens))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] for number in range(len(tokens))] == expected


@pytest.mark.parametrize("tokens", [[], [3, VOCABULARY], [-1]])
def test_tokens_that_are_none(form: Form, tokens: list[int]) -> None:
    with pytest.raises(ModelError, match="token"):
        TokenSequence(form).feed(tokens)


# The compiled code that is kept.


def test_kept_code_runs_without_numba(exact: Path, form: Form, tmp_path: Path) -> None:
    """What a first sequence compiled, a process that never sees numba runs: the same answers."""
    cached_form(exact, tmp_path)
    tokens = np.random.default_rng(2).integers(0, VOCABULARY, 40).tolist()
    expected = [TokenSequence(form).feed(tokens[: n + 1]) for n in range(len(tokens))]
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "from pathlib import Path\n"
        "from qgpu.backends.engine.cache import cached_form\n"
        "from qgpu.backends.engine.sequence import TokenSequence\n"
        f"sequence = TokenSequence(cached_form({str(exact)!r}, Path({str(tmp_path)!r})))\n"
        f"print([sequence.feed([token]) for token in {tokens}])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == expected


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"objects": {"feed": ["f", "00"]}, "sum": ""}', b"\xff"])
def test_damaged_code_is_not_loaded(tmp_path: Path, damage: bytes) -> None:
    kept = tmp_path / "code.json"
    objects = {name: (name, b"code") for name in ("feed", "most_likely", "generate")}
    native.write_objects(kept, objects)
    assert native.read_objects(kept) == objects
    content = kept.read_bytes()
    kept.write_bytes(damage)
    assert native.read_objects(kept) is None
    kept.write_bytes(content.replace(b"code".hex().encode(), b"cafe".hex().encode(), 1))
    assert native.read_objects(kept) is None


# The cache of forms.


def equal_forms(one: Form, other: Form) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_form_is_made_once(
    exact: Path, form: Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert equal_forms(cached_form(exact, tmp_path), form)
    monkeypatch.setattr("qgpu.backends.engine.sequence.load_form", lambda _: pytest.fail("made again"))
    assert equal_forms(cached_form(exact, tmp_path), form)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text"])
def test_a_damaged_form_is_made_again(exact: Path, form: Form, tmp_path: Path, damage: str) -> None:
    cached_form(exact, tmp_path)
    (kept,) = tmp_path.glob("*.npz")
    content = bytearray(kept.read_bytes())
    middle = len(content) // 2
    content[middle] ^= 1
    kept.write_bytes(
        {"empty": b"", "cut": bytes(content[:middle]), "flipped": bytes(content), "text": b"form"}[damage]
    )
    assert equal_forms(cached_form(exact, tmp_path), form)
    assert equal_forms(cached_form(exact, tmp_path), form)


def test_another_checkpoint_in_the_same_place_has_another_form(tmp_path: Path) -> None:
    folder, cache = tmp_path / "model", tmp_path / "cache"
    exact_model(folder, seed=3)
    before = cached_form(folder, cache)
    exact_model(folder, seed=4)
    after = cached_form(folder, cache)
    assert not equal_forms(before, after)
    assert equal_forms(after, load_form(folder))
    for note in cache.glob("*.json"):
        note.write_text("[")
    assert equal_forms(cached_form(folder, cache), after)
