"""Plans of merges: sizes for the published bases, what is refused, and the command that tells them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from merge_bases import MACHINE, BaseKind, layout_plan, text_settings
from qgpu.backends.transformer.merge import plan
from qgpu.backends.transformer.merge.base import MergeError, base_of, read_base
from qgpu.backends.transformer.merge.plan import plan_merge
from qgpu.backends.transformer.merge.shapes import Role, model_tensors
from qgpu.backends.transformer.merge.stream import FLAGS, check_flag, text_scale
from qgpu.backends.transformer.norms import Magnitudes, constant_squares
from qgpu.backends.transformer.numerics import absorbs, constant_amplitudes
from qgpu.toolchain.driver import main

PUBLISHED = Path(__file__).parent / "data" / "qwen3_5"

SIZES = {"0.8B": 752_393_024, "2B": 1_881_825_088, "4B": 4_205_751_296, "9B": 8_953_803_264}
"""Numbers in the text models, without vision and multi-token prediction."""


def qgpuc(*arguments: str | Path) -> Result:
    return CliRunner(catch_exceptions=False).invoke(main, ["--emit-weights", *map(str, arguments)])


def settings(**changes: Any) -> dict[str, Any]:
    return {**text_settings(BaseKind()), "model_type": "qwen3_5_text", **changes}


@pytest.mark.parametrize("size", SIZES)
def test_published_bases_are_read(size: str) -> None:
    base = read_base(PUBLISHED / size)
    shapes = model_tensors(base, base.layer_types, base.hidden, base.vocabulary, base.tied)
    assert sum(shape.numbers for shape in shapes) == SIZES[size]
    assert base.layer_types[:4] == ("linear_attention",) * 3 + ("full_attention",)


@pytest.mark.parametrize(("size", "limit", "hidden"), [("0.8B", 3.5e9, 1152), ("2B", 8e9, 2160)])
def test_a_dry_run_needs_a_config_alone_and_keeps_within_the_limits(
    size: str, limit: float, hidden: int
) -> None:
    result = qgpuc("--base", PUBLISHED / size, "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["layers"] <= 46
    assert told["bytes"] <= limit
    assert told["bytes"] == 2 * told["parameters"]
    assert told["memory"] > told["bytes"]
    assert told["dtype"] == "bfloat16"
    assert told["hidden_size"] == hidden
    taken = [choice for choice in told["choices"] if choice["taken"]]
    assert {choice["size"] for choice in taken} == {"layers", "hidden size", "output", "vocabulary"}
    assert all(choice["bytes"] == told["bytes"] for choice in taken)


def test_a_dry_run_is_a_table_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "plan_merge", lambda base, machine, dtype, tell: layout_plan())
    (tmp_path / "config.json").write_text(json.dumps(settings()))
    result = qgpuc("--base", tmp_path, "--dry-run")
    assert result.exit_code == 0, result.output
    assert f"{layout_plan().parameters:,}" in result.stdout
    assert "memory to run" in result.stdout
    assert "--prove makes one" in result.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "config.json"]


def test_too_few_neurons_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    there = layout_plan().layout
    monkeypatch.setattr(plan, "build_processor", lambda machine: there.circuit)
    monkeypatch.setattr(plan, "schedule", lambda circuit, shape, **how: there.schedule)
    told: list[str] = []
    with pytest.raises(MergeError, match="neurons in a layer than the base's intermediate_size of 900"):
        plan_merge(base_of(settings(intermediate_size=900), "config.json"), MACHINE, "float32", told.append)
    assert told[:2] == ["circuit", "layers"]


def test_what_the_head_reads_lies_in_channels_of_the_machine() -> None:
    merge = layout_plan()
    read = {c for form in merge.layout.circuit.readout.logits.values() for c in form.terms}
    places = merge.layout.allocation.place
    assert {c for c in places if merge.flag <= places[c] < merge.flag + FLAGS} == set()
    assert max(places[c] for c in read) < merge.width
    others = {places[c] for c in places if c not in read}
    assert others.isdisjoint(places[c] for c in read)
    assert max(others) >= merge.width, "no data lies in the base's channels: the stream could be narrower"


def test_the_constants_absorb_all_that_the_stream_can_hold() -> None:
    layout = layout_plan().layout
    squares = Magnitudes(layout.circuit, layout.schedule).squares(layout.allocation)
    assert absorbs(constant_squares(layout.amplitudes), squares)


def test_a_stream_is_as_wide_as_its_constants_want(monkeypatch: pytest.MonkeyPatch) -> None:
    there = layout_plan()
    monkeypatch.setattr(plan, "build_processor", lambda machine: there.layout.circuit)
    monkeypatch.setattr(plan, "schedule", lambda circuit, shape, **how: there.layout.schedule)
    monkeypatch.setattr(Magnitudes, "squares", lambda magnitudes, allocation: 40_000.0)
    wider = plan_merge(there.base, MACHINE, "float32")
    assert there.width < wider.width
    assert absorbs(constant_squares(wider.layout.amplitudes), 40_000)
    assert not absorbs(constant_squares(there.layout.amplitudes), 40_000)


def test_energies_make_the_norm_that_of_the_base() -> None:
    for hidden, widened in ((1024, 1152), (2048, 2176), (256, 576), (64, 640)):
        for dtype, error in (("float32", 1e-7), ("bfloat16", 1e-4)):
            scale = text_scale(hidden, widened, 1e-6, dtype)
            energy = sum(flag * flag for flag in scale.flags)
            ratio = (energy / widened + 1e-6) / (4**scale.bits * hidden / widened * 1e-6)
            assert ratio == pytest.approx(1, abs=error)
            assert scale.gain == pytest.approx((hidden / widened) ** 0.5)


def test_a_stream_four_times_as_wide_needs_no_rounding() -> None:
    scale = text_scale(256, 1024, 1e-6, "bfloat16")
    assert (scale.bits, scale.gain) == (1, 0.5)
    assert 0 < scale.flags[0] < 2.0**-12


def test_constants_of_every_width_dominate_the_norm() -> None:
    for hidden in range(128, 8192, 64):
        assert sum(a * a for a in constant_amplitudes(hidden)) == hidden


def test_text_that_outweighs_the_flag_is_refused() -> None:
    scale = text_scale(1024, 1152, 1e-6, "bfloat16")
    check_flag(scale, 100, 2000)
    with pytest.raises(MergeError, match="outweigh"):
        check_flag(scale, 1e6, 1e5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"linear_key_head_dim": 16}, "uniform_registers"),
        ({"linear_value_head_dim": 96}, "linear_value_head_dim: head dimension 96"),
        ({"linear_value_head_dim": 32}, r"has \d+ rows of .* bits; the base's heads"),
        ({"linear_num_value_heads": 6}, "6 value heads"),
    ],
)
def test_a_base_whose_layers_are_too_small_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MergeError, match=message):
        plan_merge(base_of(settings(**changes), "config.json"), MACHINE, "float32")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "qwen3"}, "model_type is 'qwen3'"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"attention_bias": True}, "attention_bias"),
        ({"linear_conv_kernel_dim": 3}, "linear_conv_kernel_dim"),
        ({"hidden_size": 0}, "hidden_size"),
        ({"vocab_size": "many"}, "vocab_size"),
        ({"layer_types": ["linear_attention"] * 4}, "full attention"),
        ({"layer_types": ["sliding_attention"] * 4}, "layer_types"),
    ],
)
def test_a_config_of_another_kind_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MergeError, match=message):
        base_of(settings(**changes), "config.json")


def test_usage() -> None:
    runner = CliRunner(catch_exceptions=False)
    for arguments in (["--dry-run"], ["--base", "x"], ["--emit-weights", "--json"]):
        assert runner.invoke(main, arguments).exit_code == 2
    assert qgpuc("--base", "x").exit_code == 2, "no -o"


def test_a_base_that_is_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name, message in (
        ("./none", "no directory './none'"),
        ("nobody/nothing", "cannot get 'nobody/nothing'"),
    ):
        result = qgpuc("--base", name, "--dry-run")
        assert result.exit_code == 1
        assert message in result.stderr
    result = qgpuc("--base", tmp_path, "--dry-run")
    assert result.exit_code == 1
    assert "config.json" in result.stderr


def test_roles_cover_every_axis_of_the_stream() -> None:
    base = base_of(settings(hidden_size=251), "config.json")
    for shape in model_tensors(base, base.layer_types, 251, base.vocabulary, False):
        axes = [i for i, size in enumerate(shape.shape) if size == 251]
        assert axes == {Role.READS: [1], Role.WRITES: [0], Role.NORM: [0], Role.INSIDE: []}[shape.role], shape
