"""A check that can fail: the flipped sign of a weight that a launch uses is named by token."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from example_launches import FIRST, expected_buffers, launch_of
from qgpu.backends.machine.block import block_fields
from qgpu.backends.machine.description import SMALL, MachineDescription
from qgpu.backends.machine.tokens import STAGE_PARTS, vocabulary
from qgpu.backends.transformer.circuit import Column, Head, Neuron
from qgpu.backends.transformer.emit import Layout, lay_out
from qgpu.backends.transformer.processor import build_processor
from qgpu.backends.transformer.units.arithmetic import SHIFTED_BITS
from qgpu.runtime.compiled import CompiledEngine
from qgpu.runtime.launch import DifferenceError, run

Checkpoint = Callable[[MachineDescription, str], Path]
(DOT,) = [example for example in FIRST if example.kernel == "dot"]


@dataclass(frozen=True)
class Weight:
    """One entry of a tensor."""

    tensor: str
    row: int
    column: int


@pytest.fixture(scope="module")
def layout() -> Layout:
    return lay_out(build_processor(SMALL), SMALL.model)


def column_weight(layout: Layout, name: str, source: str, target: str) -> Weight:
    """The weight that writes channel `source` into the column that gives `target` of a head called so."""
    for layer, heads in enumerate(layout.schedule.heads):
        for index, head in enumerate(heads):
            if head.name.startswith(name) and isinstance(head, Head):
                for column, content in enumerate(head.columns):
                    if _carries(content, source, target):
                        row = (2 * layout.shape.heads + index) * layout.shape.head_dim + column
                        tensor = f"model.layers.{layer}.linear_attn.in_proj_qkv.weight"
                        return Weight(tensor, row, place_of(layout, source))
    raise AssertionError(f"no column of {name} takes {source} to {target}")


def _carries(column: Column, source: str, target: str) -> bool:
    return [c.name for c in column.value.terms] == [source] and column.outputs[0][0].name == target


def place_of(layout: Layout, name: str) -> int:
    """The place of a channel in the residual stream."""
    return next(place for channel, place in layout.allocation.place.items() if channel.name == name)


def program_bit(layout: Layout, field: str) -> Weight:
    """The weight that writes a field's lowest bit into program memory."""
    names = [f.name for f in block_fields(SMALL)]
    position = sum(f.width for f in block_fields(SMALL)[: names.index(field)])
    part = STAGE_PARTS * SMALL.payload_bits
    source = f"staged.{position // part}.{position % part}"
    return column_weight(layout, "rom.", source, f"field.{position}")


def adder_bit(layout: Layout, bit: int) -> Weight:
    """The weight by which the adder's last layer hands on bit `bit` of a sum without carries."""
    digit, place = divmod(bit, SHIFTED_BITS)
    source, target = f"product.low.low.{digit}.{place}", f"result.{bit}"
    for layer, neurons in enumerate(layout.schedule.neurons):
        for index, neuron in enumerate(neurons):
            if _hands_on(neuron, source, target):
                tensor = f"model.layers.{layer}.mlp.down_proj.weight"
                return Weight(tensor, place_of(layout, target), index)
    raise AssertionError("no such neuron")


def _hands_on(neuron: Neuron, source: str, target: str) -> bool:
    names = {channel.name for channel in neuron.gate.terms}
    return source in names and len(names) == 2 and neuron.outputs[0][0].name == target


def head_weight(layout: Layout) -> Weight:
    """The weight that counts a payload bit for the token LAST(32)."""
    return Weight("lm_head.weight", vocabulary(SMALL).id("last", 32), place_of(layout, "payload.5"))


WEIGHTS: dict[str, Callable[[Layout], Weight]] = {
    "program memory": lambda layout: program_bit(layout, "visit"),
    "register": lambda layout: column_weight(layout, "register.a.", "value.0", "i.2"),
    "memory": lambda layout: column_weight(layout, "memory.", "value.1", "x.1"),
    "adder": lambda layout: adder_bit(layout, 1),
    "head": head_weight,
}


@pytest.mark.parametrize("part", WEIGHTS)
def test_a_flipped_weight_is_found(checkpoint: Checkpoint, layout: Layout, tmp_path: Path, part: str) -> None:
    folder = tmp_path / "flipped"
    shutil.copytree(checkpoint(SMALL, "float32"), folder)
    weight = WEIGHTS[part](layout)
    tensors = load_file(folder / "model.safetensors")
    value = tensors[weight.tensor][weight.row, weight.column]
    assert value != 0
    tensors[weight.tensor][weight.row, weight.column] = -value
    save_file({name: np.ascontiguousarray(t) for name, t in tensors.items()}, folder / "model.safetensors")
    with pytest.raises(DifferenceError) as caught:
        run(launch_of(DOT, SMALL), CompiledEngine(folder), check=True)
    assert re.match(
        r"generated token \d+ is <.*> \(.*\), the reference's is <.*>: .*block", str(caught.value)
    )


def test_the_same_launch_passes_with_the_weights_as_they_are(checkpoint: Checkpoint) -> None:
    outcome = run(launch_of(DOT, SMALL), CompiledEngine(checkpoint(SMALL, "float32")), check=True)
    assert [buffer for buffer in outcome.buffers if buffer is not None] == expected_buffers(DOT)
