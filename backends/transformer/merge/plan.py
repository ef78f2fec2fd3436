"""The plan of a merge: the machine's layout in the base's layers, and the sizes of what comes out."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

from qgpu.backends.machine.description import DescriptionError, MachineDescription, ModelShape
from qgpu.backends.transformer.allocate import AllocationError
from qgpu.backends.transformer.circuit import Channel, Circuit, Head
from qgpu.backends.transformer.emit import Layout, intermediate_needed
from qgpu.backends.transformer.merge.base import Base, MergeError
from qgpu.backends.transformer.merge.shapes import TensorShape, model_tensors
from qgpu.backends.transformer.merge.stream import FLAGS, TextScale, text_scale
from qgpu.backends.transformer.norms import Magnitudes, NormError, place
from qgpu.backends.transformer.numerics import BIASES, row_constants
from qgpu.backends.transformer.processor import build_processor
from qgpu.backends.transformer.schedule import Schedule, schedule
from qgpu.backends.transformer.stages import Tell, untold

WIDTH_STEP = 16
"""The residual stream is widened by a multiple of this: matrix units want rows of bfloat16 that are a
multiple of 16 bytes, or better 32.
"""

WIDEST = 4096
"""Channels beside those that have to be the machine's own, at most: the channels of every machine fit."""

SCHEDULES = 4
"""Schedules that are tried, each with less room for the circuit's neurons than the one before."""

ITEM_BYTES = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True)
class MergePlan:
    """What a merge makes.

    Attributes:
        base: the base's sizes.
        machine: the machine, with the layer shape that the base has.
        layout: the machine's layout. Its place 0 is the first of the `width` channels after the base's own;
            places from `width` on are the base's channels, from the first.
        width: channels beside the base's.
        dtype: of the result.
    """

    base: Base
    machine: MachineDescription
    layout: Layout
    width: int
    dtype: str

    @property
    def hidden(self) -> int:
        """Channels of the residual stream."""
        return self.base.hidden + self.width

    @property
    def layer_types(self) -> tuple[str, ...]:
        """The mixers of all layers: the machine's come first."""
        return ("linear_attention",) * self.layout.layers + self.base.layer_types

    @property
    def layers(self) -> int:
        """Layers of the result."""
        return len(self.layer_types)

    @property
    def vocabulary(self) -> int:
        """Tokens of the result: the machine's follow the base's."""
        return self.base.vocabulary + self.layout.vocabulary

    @property
    def flag(self) -> int:
        """The layout's place of the first flag; it follows the constants."""
        return len(self.layout.amplitudes)

    @property
    def scale(self) -> TextScale:
        """How text stands in the stream."""
        return text_scale(self.base.hidden, self.hidden, self.base.eps, self.dtype)

    @cached_property
    def tensors(self) -> tuple[TensorShape, ...]:
        """The tensors of the result, in the order in which they are written."""
        return tuple(model_tensors(self.base, self.layer_types, self.hidden, self.vocabulary, tied=False))

    @property
    def parameters(self) -> int:
        """Numbers in all tensors."""
        return sum(tensor.numbers for tensor in self.tensors)

    @property
    def bytes(self) -> int:
        """Bytes of all tensors."""
        return self.parameters * ITEM_BYTES[self.dtype]

    @property
    def base_parameters(self) -> int:
        """Numbers in the tensors of the base's text model."""
        base = self.base
        shapes = model_tensors(base, base.layer_types, base.hidden, base.vocabulary, base.tied)
        return sum(tensor.numbers for tensor in shapes)


def plan_merge(base: Base, machine: MachineDescription, dtype: str, tell: Tell = untold) -> MergePlan:
    """Lay a machine out in the layers of a base; `tell` is told each stage.

    Raises:
        MergeError: it does not fit; the message names the size.
    """
    hosted = _hosted(machine, base)
    tell("circuit")
    circuit = build_processor(hosted)
    # The narrower the stream, the less its constants absorb.
    circuit.shrink_counts()
    _check_heads(circuit, base)
    room = base.intermediate
    for _ in range(SCHEDULES):
        tell("layers")
        layout = _narrowest(circuit, hosted, base, room)
        needed = intermediate_needed(layout.schedule, layout.allocation)
        if needed <= base.intermediate:
            width = layout.shape.hidden - base.hidden
            return MergePlan(base, dataclasses.replace(hosted, model=layout.shape), layout, width, dtype)
        # The neurons that empty places are not known before there is a schedule.
        room -= needed - base.intermediate
        if room < 1:
            break
    raise MergeError(
        f"machine '{machine.name}' needs more neurons in a layer than the base's intermediate_size of "
        f"{base.intermediate}"
    )


def _narrowest(circuit: Circuit, hosted: MachineDescription, base: Base, room: int) -> Layout:
    """The layout in the narrowest stream, with layers of up to `room` neurons of the circuit."""
    try:
        shape = dataclasses.replace(hosted.model, intermediate=room)
        placed = schedule(circuit, shape, attention=False, narrow=False)
    except ValueError as error:
        raise MergeError(f"machine '{hosted.name}' does not fit the base's layers: {error}") from None
    alone = _read_by_the_head(circuit)
    magnitudes = Magnitudes(circuit, placed)
    least = -(-(BIASES + FLAGS + len(alone)) // WIDTH_STEP) * WIDTH_STEP
    for width in range(least, least + WIDEST, WIDTH_STEP):
        layout = _laid_out(circuit, placed, magnitudes, hosted, base, width, alone)
        if layout is not None:
            return layout
    raise MergeError(f"machine '{hosted.name}' does not fit any residual stream")


def _hosted(machine: MachineDescription, base: Base) -> MachineDescription:
    """The machine in the layer shape of a base; a key head serves one value head, the others stay empty."""
    shape = ModelShape(base.hidden, base.key_heads, base.key_dim, base.value_dim, base.intermediate)
    if base.value_heads % base.key_heads:
        raise MergeError(f"{base.value_heads} value heads are no multiple of {base.key_heads} key heads")
    try:
        row_constants(base.value_dim)
        return dataclasses.replace(machine, model=shape)
    except DescriptionError as error:
        raise MergeError(f"{error}, in the base's heads of {base.key_dim} keys") from None
    except ValueError as error:
        raise MergeError(f"the base's linear_value_head_dim: {error}") from None


def _check_heads(circuit: Circuit, base: Base) -> None:
    """Refuse heads that are larger than the base's."""
    columns = base.value_dim - row_constants(base.value_dim)[0]
    for head in circuit.heads:
        if isinstance(head, Head) and (len(head.columns) > columns or len(head.keys) > base.key_dim):
            raise MergeError(
                f"head '{head.name}' has {len(head.keys)} rows of {len(head.columns)} bits; the base's heads "
                f"have linear_key_head_dim = {base.key_dim} rows of {columns}"
            )


def _read_by_the_head(circuit: Circuit) -> list[Channel]:
    """Channels that logits depend on: the final norm weighs them as the machine's, so they cannot be
    Qwen's.
    """
    return list(dict.fromkeys(c for form in circuit.readout.logits.values() for c in form.terms))


def _laid_out(
    circuit: Circuit,
    placed: Schedule,
    magnitudes: Magnitudes,
    hosted: MachineDescription,
    base: Base,
    width: int,
    alone: list[Channel],
) -> Layout | None:
    """The layout in a stream of so many channels beside the base's.

    None where they are too few, or no constants absorb the squares of what the stream holds.
    """
    hidden = base.hidden + width
    try:
        amplitudes, allocation = place(circuit, placed, magnitudes, hidden, FLAGS, alone)
    except (AllocationError, NormError):
        return None
    if len(amplitudes) + FLAGS + len(alone) > width:
        return None
    shape = dataclasses.replace(hosted.model, hidden=hidden)
    return Layout(circuit, placed, allocation, shape, base.intermediate, amplitudes, circuit.vocabulary_size)
