"""A checkpoint's sparse form, and sequences that run on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from qgpu.backends.engine.layout import CELL, GAIN, HIGH, LOW, RING, Form, State
from qgpu.backends.engine.native import native_code
from qgpu.backends.engine.records import record
from qgpu.backends.engine.tensors import Arrays, ModelError, check_config, opened, read_config

STRETCH = 4096
"""Tokens between two calls of `progress`."""


def load_form(directory: str | os.PathLike[str]) -> Form:
    """Make the form of a checkpoint.

    Raises:
        ModelError: it cannot be read, or is of a kind that the engine does not compute exactly.
    """
    config = read_config(directory)
    with opened(directory) as tensors:
        return form_of(tensors, config)


def form_of(tensors: Arrays, config: dict[str, Any]) -> Form:
    """Make the form of a model that is given by its tensors and its configuration.

    Raises:
        ModelError: it is of a kind that the engine does not compute exactly.
    """
    from qgpu.backends.engine.form import build_form

    check_config(config)
    try:
        return build_form(tensors, config)
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ModelError(f"no Qwen3.5 text model: {error}") from error


class TokenSequence:
    """One sequence on a form. Forms are shared, also between threads; a sequence is used by one at a time."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._state = _new_state(form)
        self._form_record = _form_record(form)
        self._hold_state()
        self._code = native_code(self._form_record.dtype, self._state_record.dtype)

    @property
    def layers(self) -> int:
        """Layers of the model."""
        return int(self.form.sizes[1])

    def begin(self) -> None:
        """Start a new sequence: what depends on the tokens before is forgotten."""
        state = self._state
        state.clock[0] = 0
        state.history[:] = 0
        for array in (state.list_count, state.list_slot, state.list_renewed, state.entry_count):
            array[:] = 0
        for array in (state.group_count, state.read_at, state.emitted):
            array[:] = 0
        state.used[:] = 0
        self._state = state._replace(memory=np.zeros_like(state.memory))
        self._hold_state()

    def _hold_state(self) -> None:
        """Note where the records are: to ask an array for it takes longer than a token does."""
        self._state_record = record(self._state._asdict())
        self._addresses = _address(self._form_record), _address(self._state_record)

    def feed(self, tokens: Sequence[int], progress: Callable[[int], object] | None = None) -> int:
        """Append tokens, at least one; return the argmax of the logits after the last of them.

        Raises:
            ModelError: a token is not in the vocabulary.
        """
        numbers = self._checked(tokens)
        for first in range(0, len(numbers), STRETCH):
            stretch = numbers[first : first + STRETCH]
            self._call("feed", stretch.ctypes.data, len(stretch))
            if progress is not None:
                progress(len(stretch))
        return self._call("most_likely")

    def generate(self, token: int, limit: int, stops: Collection[int]) -> list[int]:
        """Append a token, then each argmax, up to `limit` of them or one of `stops`; return those.

        The last of them has not been appended.
        """
        found = np.empty(limit, np.int64)
        is_stop = np.zeros(self.form.sizes[0], bool)
        is_stop[list(stops)] = True
        first = int(self._checked((token,))[0])
        count = self._call("generate", first, is_stop.ctypes.data, found.ctypes.data, limit)
        return found[:count].tolist()

    def _call(self, name: str, *numbers: int) -> int:
        return self._code[name](*self._addresses, *numbers)

    def _checked(self, tokens: Sequence[int]) -> np.ndarray:
        numbers = np.asarray(tokens, np.int64)
        wrong = numbers[(numbers < 0) | (numbers >= self.form.sizes[0])]
        if len(wrong) or not len(numbers):
            raise ModelError(f"token {wrong[0]} is not in the vocabulary" if len(wrong) else "no token")
        return numbers

    def recurrent_states(self) -> list[np.ndarray]:
        """The recurrent state of each linear-attention layer, float32 [head * key, value]."""
        heads, key, value = (int(size) for size in self.form.sizes[3:6])
        memory = self._state.memory.reshape(-1, heads * key, value)
        nothing = np.zeros((heads * key, value), np.float32)
        return [memory[mixer] if mixer >= 0 else nothing for mixer in self.form.layer_mixer.tolist()]


def _address(record: Any) -> int:
    """The address of a record, which is an element of an array of one."""
    return record.__array_interface__["data"][0]


def _form_record(form: Form) -> Any:
    vocabulary, _, _, heads, key, value, places, _ = (int(size) for size in form.sizes)
    stages, hidden = form.gain.shape
    numbers = {
        "vocabulary": vocabulary,
        "stages": stages,
        "hidden": hidden,
        "heads": heads,
        "key": key,
        "dimension": value,
        "places": places,
        "rows": len(form.row_form),
        "trees": len(form.tree_stage),
        "fades": int((form.decay_form >= 0).any()),
    }
    arrays = {name: array for name, array in form._asdict().items() if name != "epsilon"}
    return record({**arrays, **numbers, "epsilon": form.epsilon[0]})


def _cells(form: Form) -> np.ndarray:
    cells = np.zeros((*form.gain.shape, CELL), np.float32)
    cells[..., GAIN] = form.gain
    cells[..., LOW] = -np.inf
    cells[..., HIGH] = np.inf
    return cells


def _new_state(form: Form) -> State:
    stages, hidden = form.gain.shape
    _, _, mixers, heads, key, value, places, forms = (int(size) for size in form.sizes)
    neurons, nodes, trees = len(form.down_start) - 1, len(form.lowest_row), len(form.tree_stage)
    rows, shapes = len(form.row_form), len(form.shape_node)
    largest = int(np.diff(form.tree_node).max()) + 1

    def zeros(*shape: int, dtype: type = np.float32) -> np.ndarray:
        return np.zeros(shape, dtype)

    return State(
        clock=np.array([0, 0, -1], np.int64),
        embedded=zeros(hidden),
        squares=zeros(stages, dtype=np.float64),
        inverse=np.full(stages, np.nan, np.float32),
        cell=_cells(form),
        difference=zeros(hidden, dtype=np.float64),
        value=zeros(forms, dtype=np.float64),
        touched=zeros(neurons + 1, dtype=np.int32),
        neuron_difference=zeros(neurons + 1, dtype=np.float64),
        marked_at=zeros(hidden, dtype=np.int64),
        candidates=zeros(2, hidden + 1, dtype=np.int32),
        changed=zeros(hidden, dtype=np.int32),
        written=zeros(stages, hidden, dtype=np.int32),
        written_count=zeros(stages, dtype=np.int64),
        total=zeros(hidden, dtype=np.float64),
        total_at=zeros(hidden, dtype=np.int64),
        history=zeros(RING, rows),
        row_value=zeros(rows),
        row_at=zeros(rows, dtype=np.int64),
        memory=zeros(mixers * heads, key, value),
        used=zeros(mixers * heads, dtype=np.int8),
        stale=zeros(stages, dtype=np.int64),
        rest=zeros(nodes, dtype=np.float64),
        shape_value=zeros(shapes, dtype=np.float64),
        shape_at=zeros(shapes, dtype=np.int64),
        shape_stack=zeros(shapes, dtype=np.int32),
        list_row=zeros(RING, places, dtype=np.int32),
        list_value=zeros(RING, places),
        list_count=zeros(RING, trees, dtype=np.int64),
        list_slot=zeros(RING, trees, dtype=np.int64),
        list_renewed=zeros(RING, trees, dtype=np.int64),
        stack_node=zeros(largest, dtype=np.int32),
        stack_sum=zeros(largest, dtype=np.float64),
        stack_bound=zeros(largest, dtype=np.float64),
        entry_count=zeros(mixers, 2, heads, dtype=np.int64),
        entry_row=zeros(mixers, 2, heads, key, dtype=np.int32),
        entry_value=zeros(mixers, 2, heads, key),
        entry_at=zeros(mixers, 2, heads, dtype=np.int64),
        group_head=zeros(form.group_place[-1], dtype=np.int32),
        group_count=zeros(len(form.group_place) - 1, dtype=np.int64),
        written_at=zeros(mixers * heads, dtype=np.int64),
        read_at=zeros(mixers * heads, dtype=np.int64),
        gate_input=zeros(len(form.gate_form)),
        opening=zeros(len(form.gate_form)),
        emitted=zeros(mixers * heads, dtype=np.int64),
        emitted_channel=zeros(len(form.output_channel), dtype=np.int32),
        emitted_value=zeros(len(form.output_channel), dtype=np.float64),
        vectors=zeros(3, value),
    )
