"""The circuit that the compiled layers of a merged checkpoint are meant to be, in its channels."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.prover.checkpoint import ProofError
from qgpu.backends.prover.equivalence.check import check_tensors
from qgpu.backends.prover.equivalence.difference import Difference, amount
from qgpu.backends.prover.merged.view import OUTPUT, READING, READING_NEURONS, CompiledView
from qgpu.backends.prover.merged.weights import Weights
from qgpu.backends.prover.program import Condition, Place, program_conditions
from qgpu.backends.transformer.merge.base import MergeError, base_of
from qgpu.backends.transformer.merge.plan import MergePlan, plan_merge
from qgpu.backends.transformer.merge.shapes import EMBEDDING, FINAL_NORM, HEAD
from qgpu.backends.transformer.merge.stream import FLAG_BITS, MACHINE_OFF_BITS

FLAGGED = ("in_proj_qkv.weight", "in_proj_z.weight", "in_proj_b.weight")


def meant_by(weights: Weights, machine: MachineDescription) -> MergePlan:
    """The plan of a merge of a machine into the base of a merged checkpoint.

    Raises:
        ProofError: there is none.
    """
    parts = weights.parts
    try:
        base = base_of({**parts.text_config(), "model_type": "qwen3_5_text"}, str(parts.directory))
        return plan_merge(base, machine, parts.dtype)
    except MergeError as error:
        raise ProofError(str(error)) from None


def merged_conditions(plan: MergePlan) -> list[Condition]:
    """The rules of the machine's programs, over the channels of the merged checkpoint."""
    return [
        dataclasses.replace(
            rule,
            forbidden=tuple(
                tuple(Place((p.channel - plan.width) % plan.hidden, p.layer) for p in places)
                for places in rule.forbidden
            ),
        )
        for rule in program_conditions(plan.machine, plan.layout)
    ]


def differences(weights: Weights, plan: MergePlan) -> list[Difference]:
    """Where the compiled layers and the machine's tokens are not the circuit of a plan."""
    parts = weights.parts
    sizes = {
        "hidden_size": (parts.whole.hidden, plan.hidden),
        "vocab_size": (parts.whole.vocabulary, plan.vocabulary),
        "num_hidden_layers": (len(parts.whole.layer_types), plan.layers),
    }
    wrong = [(name, got, wanted) for name, (got, wanted) in sizes.items() if got != wanted]
    if wrong:
        return [Difference("config.json", None, None, "", f"{n} is {g}, not {w}") for n, g, w in wrong]
    view = CompiledView(weights)
    placed = _InPlaces(view, plan)
    found = [placed.found(difference) for difference in check_tensors(placed, plan.layout)]
    return [*found, *_other_weights(weights, view, plan)]


class _InPlaces:
    """A view whose channels are in the order of the layout's places: the base's are the last."""

    def __init__(self, view: CompiledView, plan: MergePlan) -> None:
        self._view, self._plan = view, plan
        self.config, self.dtype, self.names = view.config, view.dtype, view.names

    @property
    def sha256(self) -> str:
        return self._view.sha256

    def __getitem__(self, name: str, /) -> np.ndarray:
        tensor, axis = self._view[name], _stream_axis(name)
        return tensor if axis is None else np.roll(tensor, self._plan.width, axis)

    def found(self, difference: Difference) -> Difference:
        """A difference with the checkpoint's rows and columns."""
        row, column, name = difference.row, difference.column, difference.tensor
        axis = _stream_axis(name) if name in self.names else None
        if axis == 0 and row is not None:
            row = self._channel(row)
        elif row is not None and name in self.names:
            row = self._view.place(name, row)
        if axis == 1 and column is not None:
            column = self._channel(column)
        elif column is not None and name.endswith(OUTPUT):
            column = self._view.value_column(column)
        return dataclasses.replace(difference, row=row, column=column)

    def _channel(self, place: int) -> int:
        return (place - self._plan.width) % self._plan.hidden


def _stream_axis(name: str) -> int | None:
    """The axis of a tensor that has the stream's channels."""
    if name in (EMBEDDING, HEAD) or name.endswith((*READING, *READING_NEURONS)):
        return 1
    writes = (OUTPUT, "down_proj.weight", "layernorm.weight")
    return 0 if name == FINAL_NORM or name.endswith(writes) else None


def _other_weights(weights: Weights, view: CompiledView, plan: MergePlan) -> Iterator[Difference]:
    """Weights of channels that the machine's tokens never have: the flag's turn text off, others are 0."""
    absent = np.flatnonzero(view.absent)
    first = weights.parts.first_token
    flag = plan.base.hidden + plan.flag
    for name in view.names:
        if _stream_axis(name) != 1 or name == EMBEDDING:
            continue
        usual = np.zeros(len(absent))
        if name == HEAD or name.endswith(FLAGGED):
            usual[absent == flag] = -(2.0 ** (MACHINE_OFF_BITS if name == HEAD else FLAG_BITS))
        for start, block in weights.blocks(name, first if name == HEAD else 0):
            for row, index in np.argwhere(block[:, absent] != usual).tolist():
                got, wanted = block[row, absent[index]], usual[index]
                reason = f"{amount(got)} of a channel that the machine has not, not {amount(wanted)}"
                yield Difference(name, start + row, int(absent[index]), "", reason)
