"""The emitter: a scheduled and allocated circuit becomes the tensors of stock Qwen3.5 layers.

Tensor names and shapes are those of `Qwen3_5ForCausalLM` (transformers, models/qwen3_5). numpy float32
throughout; for a bfloat16 checkpoint every number is checked to be exact in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.backends.machine.description import ModelShape
from qgpu.backends.transformer.allocate import Allocation, Erasure
from qgpu.backends.transformer.circuit import Channel, Circuit, CounterHead, Form, Head, Neuron
from qgpu.backends.transformer.norms import Magnitudes, NormError, place
from qgpu.backends.transformer.numerics import (
    AND_BIAS,
    AND_SLOPE,
    BIASES,
    GATE,
    NORM_BITS,
    ON,
    ROW_CONSTANT_BITS,
    STEP_LOGIT,
    STEP_VALUE_BITS,
    row_constants,
    scale_of,
    split_bias,
)
from qgpu.backends.transformer.schedule import Schedule, schedule

CONV_TAPS = 4
"""linear_conv_kernel_dim of Qwen3.5."""

NO_DECAY = -200.0
"""A_log at which exp(A_log) is 0, so that nothing in a state fades."""

INTERMEDIATE_MULTIPLE = 64
ATTENTION_HEAD_DIM = 64


@dataclass(frozen=True)
class Layout:
    """A circuit placed in a model.

    Attributes:
        circuit, schedule, allocation: what is emitted.
        shape: the host's layer shape.
        intermediate: neurons of a layer, the widest one's rounded up.
        amplitudes: sizes of the constant channels, in units of 2^NORM_BITS.
        vocabulary: rows of the embedding and the head.
    """

    circuit: Circuit
    schedule: Schedule
    allocation: Allocation
    shape: ModelShape
    intermediate: int
    amplitudes: tuple[int, ...]
    vocabulary: int

    @property
    def layers(self) -> int:
        """Layers of the model, num_hidden_layers."""
        return self.schedule.layers


def lay_out(circuit: Circuit, shape: ModelShape) -> Layout:
    """Schedule and allocate a circuit; its counts are made smaller where the norm's constants want it.

    Raises:
        ScheduleError, AllocationError: it does not fit the shape.
        NormError: nor do its squares.
    """
    placed = schedule(circuit, shape)
    magnitudes = Magnitudes(circuit, placed)
    try:
        amplitudes, allocation = place(circuit, placed, magnitudes, shape.hidden)
    except NormError:
        circuit.shrink_counts()
        amplitudes, allocation = place(circuit, placed, magnitudes, shape.hidden)
    rounded = -(-intermediate_needed(placed, allocation) // INTERMEDIATE_MULTIPLE) * INTERMEDIATE_MULTIPLE
    return Layout(circuit, placed, allocation, shape, rounded, amplitudes, circuit.vocabulary_size)


def intermediate_needed(placed: Schedule, allocation: Allocation) -> int:
    """Neurons of the widest layer: the circuit's, those that erase, and one that holds a constant."""
    return 1 + max(len(placed.neurons[i]) + len(_erasing_layer(allocation, i)) for i in range(placed.layers))


def _erasing_layer(allocation: Allocation, layer: int) -> list[Erasure]:
    return [erasure for erasure in allocation.erasures if erasure.slot // 2 == layer]


def tensors(layout: Layout, dtype: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the named tensors, as float32, of the model that runs in `dtype`."""
    emitter = Emitter(layout, dtype)
    yield "model.embed_tokens.weight", emitter.embedding()
    for layer in range(layout.layers):
        prefix = f"model.layers.{layer}"
        yield f"{prefix}.input_layernorm.weight", emitter.norm()
        yield f"{prefix}.post_attention_layernorm.weight", emitter.norm()
        mixer = emitter.attention() if layer == layout.schedule.attention_layer else emitter.heads(layer)
        for name, tensor in (*mixer.items(), *emitter.neurons(layer).items()):
            yield f"{prefix}.{name}", tensor
    yield "model.norm.weight", emitter.norm()
    yield "lm_head.weight", emitter.head()


class Emitter:
    """Makes the tensors of a layout one by one, for a model that runs in `dtype`; all are float32.

    The methods are named for what they make: `heads` and `neurons` of a layer by their names in it, the
    `norm` of every layer, the `embedding` and the `head`.
    """

    def __init__(self, layout: Layout, dtype: str) -> None:
        self.layout = layout
        self.dtype = dtype
        self.hidden = layout.shape.hidden
        self.place = layout.allocation.place
        self.row_columns, self.norm_shift = row_constants(layout.shape.head_dim)

    def form(self, row: np.ndarray, form: Form, slope: float, bias: float = 0.0) -> None:
        """Write slope * form + bias into a projection's row."""
        constant = slope * form.constant + bias
        for channel, coefficient in form.terms.items():
            scale = scale_of(channel, self.dtype)
            row[self.place[channel]] += slope * coefficient / scale.unit
            constant -= slope * coefficient * scale.offset / scale.unit
        self.bias(row, constant)

    @staticmethod
    def bias(row: np.ndarray, constant: float) -> None:
        """Add a constant to a projection's row, in parts that bfloat16 holds exactly."""
        row[:BIASES] = split_bias(row[:BIASES].sum() + constant)

    def conjunction(self, row: np.ndarray, form: Form) -> None:
        """Write a conjunction: ON where the form is 1, at most AND_BIAS elsewhere."""
        self.form(row, form, AND_SLOPE, AND_BIAS)

    def norm(self) -> np.ndarray:
        weight = np.full(self.hidden, 2.0**NORM_BITS - 1)
        weight[: len(self.layout.amplitudes)] = -1.0
        weight[:BIASES] += 1 / self.layout.amplitudes[0]
        return weight.astype(np.float32)

    def embedding(self) -> np.ndarray:
        layout = self.layout
        table = np.zeros((layout.vocabulary, self.hidden))
        for index, amplitude in enumerate(layout.amplitudes):
            table[:, index] = amplitude * 2.0**NORM_BITS
        for channel in layout.allocation.fresh:
            table[:, self.place[channel]] = scale_of(channel, self.dtype).offset
        for channel, values in layout.circuit.token_tables.items():
            if channel in self.place:
                table[:, self.place[channel]] = values
        return table.astype(np.float32)

    def head(self) -> np.ndarray:
        table = np.zeros((self.layout.vocabulary, self.hidden))
        for token, form in self.layout.circuit.readout.logits.items():
            self.form(table[token], form, 1.0)
        return table.astype(np.float32)

    def neurons(self, layer: int) -> dict[str, np.ndarray]:
        width = self.layout.intermediate
        gate, up = np.zeros((width, self.hidden)), np.zeros((width, self.hidden))
        down = np.zeros((self.hidden, width))
        up[:, 0] = 1.0
        neurons = self.layout.schedule.neurons[layer]
        for index, neuron in enumerate(neurons):
            self._neuron(gate[index], down[:, index], neuron)
        for index, erasure in enumerate(_erasing_layer(self.layout.allocation, layer), len(neurons)):
            gate[index, erasure.place] = GATE
            down[erasure.place, index] = -1 / GATE
            down[erasure.place, width - 1] = scale_of(erasure.successor, self.dtype).offset / GATE
        gate[width - 1, 0] = GATE
        names = ("mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight")
        return {name: t.astype(np.float32) for name, t in zip(names, (gate, up, down), strict=True)}

    def _neuron(self, gate: np.ndarray, down: np.ndarray, neuron: Neuron) -> None:
        self.form(gate, neuron.gate, GATE)
        for channel, coefficient in neuron.outputs:
            if channel in self.place:
                down[self.place[channel]] += coefficient * scale_of(channel, self.dtype).unit / GATE

    def attention(self) -> dict[str, np.ndarray]:
        """A full attention layer that adds nothing: all its projections are 0."""
        dim = ATTENTION_HEAD_DIM
        shapes = {
            "q_proj": (2 * dim, self.hidden),
            "k_proj": (dim, self.hidden),
            "v_proj": (dim, self.hidden),
            "o_proj": (self.hidden, dim),
            "q_norm": (dim,),
            "k_norm": (dim,),
        }
        return {f"self_attn.{name}.weight": np.zeros(shape, np.float32) for name, shape in shapes.items()}

    def heads(self, layer: int) -> dict[str, np.ndarray]:
        out = _HeadTensors.zeros(self.layout.shape)
        for index, head in enumerate(self.layout.schedule.heads[layer]):
            if isinstance(head, Head):
                self._memory(out, index, head)
            else:
                self._counter(out, index, head)
        return out.named()

    def _memory(self, out: _HeadTensors, index: int, head: Head) -> None:
        for i, (key, query) in enumerate(zip(head.keys, head.queries, strict=True)):
            self.conjunction(out.key[index, i], key)
            self.conjunction(out.query[index, i], query)
        out.tap(out.key_conv[index], head.key_tap)
        self.conjunction(out.beta[index], head.write)
        gain = self._read_gain()
        for j, column in enumerate(head.columns):
            self.conjunction(out.value[index, j], column.value)
            out.tap(out.value_conv[index, j], column.tap)
            self._read_column(out, index, j, column.gate, column.outputs, gain)
        for j in self._constant_columns():
            self._row_constant(out.value[index, j], head)

    def _row_constant(self, row: np.ndarray, head: Head) -> None:
        size = 2.0**ROW_CONSTANT_BITS
        self.form(row, head.constant_where or Form({}, 1), size)
        if head.initial:
            flag, rows = head.initial
            self.form(row, flag, size * (math.sqrt(rows) - 1))

    def _read_column(
        self,
        out: _HeadTensors,
        index: int,
        column: int,
        gate: Form | None,
        outputs: Sequence[tuple[Channel, int]],
        gain: float,
    ) -> None:
        if gate is None:
            out.gate[index, column, 0] = ON
        else:
            self.conjunction(out.gate[index, column], gate)
        for channel, coefficient in outputs:
            if channel in self.place:
                out.output[self.place[channel], index, column] += (
                    coefficient * scale_of(channel, self.dtype).unit * gain
                )

    def _read_gain(self) -> float:
        """What turns a bit as it leaves the gated norm into 1: 2^C / (ON * ON * 2^s)."""
        return 2.0 ** (ROW_CONSTANT_BITS - self.norm_shift) / (ON * ON)

    def _constant_columns(self) -> range:
        dim = self.layout.shape.head_dim
        return range(dim - self.row_columns, dim)

    def _counter(self, out: _HeadTensors, index: int, head: CounterHead) -> None:
        always = Form({}, 1)
        self.conjunction(out.key[index, 0], always)
        self.conjunction(out.query[index, 0], always)
        self.form(out.beta[index], head.set, AND_SLOPE, AND_BIAS)
        self.form(out.beta[index], head.step, STEP_LOGIT - AND_BIAS)
        step = 2.0**STEP_VALUE_BITS / (1 + math.exp(-STEP_LOGIT))
        rounded = float(round(step))
        self.form(out.value[index, 0], head.step, 2.0**STEP_VALUE_BITS)
        self.form(out.value[index, 0], head.value, rounded)
        gain = self._read_gain() * ON / step
        self._read_column(out, index, 0, None, [(head.output, 1)], float(np.float32(gain)))
        for j in self._constant_columns():
            self.form(out.value[index, j], always, 2.0**ROW_CONSTANT_BITS)


@dataclass
class _HeadTensors:
    """Tensors of a Gated DeltaNet, a head a first axis: query, key [H, k, hidden], value, gate [H, d,
    hidden], ...
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    gate: np.ndarray
    beta: np.ndarray
    query_conv: np.ndarray
    key_conv: np.ndarray
    value_conv: np.ndarray
    output: np.ndarray

    @staticmethod
    def zeros(shape: ModelShape) -> _HeadTensors:
        count, dims = shape.heads, (shape.key_dim, shape.key_dim, shape.head_dim)
        query, key, value = (np.zeros((count, dim, shape.hidden)) for dim in dims)
        gate = np.zeros_like(value)
        convs = [np.zeros((count, dim, CONV_TAPS)) for dim in dims]
        for conv in convs:
            conv[..., -1] = 1.0
        beta = np.zeros((count, shape.hidden))
        output = np.zeros((shape.hidden, count, shape.head_dim))
        return _HeadTensors(query, key, value, gate, beta, convs[0], convs[1], convs[2], output)

    @staticmethod
    def tap(conv: np.ndarray, tap: int) -> None:
        """Make a row of the convolution (or rows) see the token `tap` before; the last entry is the token
        itself.
        """
        conv[...] = 0.0
        conv[..., CONV_TAPS - 1 - tap] = 1.0

    def named(self) -> dict[str, np.ndarray]:
        count, dim, hidden = self.value.shape
        rows = count * dim
        wide = np.concatenate([t.reshape(-1, hidden) for t in (self.query, self.key, self.value)])
        taps = (self.query_conv, self.key_conv, self.value_conv)
        conv = np.concatenate([t.reshape(-1, 1, CONV_TAPS) for t in taps])
        named = {
            "in_proj_qkv.weight": wide,
            "in_proj_z.weight": self.gate.reshape(rows, hidden),
            "in_proj_b.weight": self.beta,
            "in_proj_a.weight": np.zeros((count, hidden)),
            "conv1d.weight": conv,
            "dt_bias": np.zeros(count),
            "A_log": np.full(count, NO_DECAY),
            "norm.weight": np.ones(dim),
            "out_proj.weight": self.output.reshape(hidden, rows),
        }
        return {f"linear_attn.{name}": tensor.astype(np.float32) for name, tensor in named.items()}
