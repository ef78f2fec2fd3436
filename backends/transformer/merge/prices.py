"""What a merge costs, and what the other choices would have cost."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from qgpu.backends.machine.description import DescriptionError
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.transformer.merge.plan import ITEM_BYTES, WIDTH_STEP, MergePlan
from qgpu.backends.transformer.merge.shapes import model_tensors
from qgpu.backends.transformer.merge.stream import FLAGS

CONTEXT = 4096
"""Tokens for which `memory` counts keys and values."""


@dataclass(frozen=True)
class Choice:
    """One size that the plan chose, or could have.

    Attributes:
        size: which size.
        what: the choice in words.
        bytes: of all tensors with it.
        taken: whether it is the plan's.
        because: why it is or is not.
    """

    size: str
    what: str
    bytes: int
    taken: bool
    because: str


def memory(plan: MergePlan, tokens: int = CONTEXT) -> int:
    """Bytes to run the result on so many tokens: weights, recurrent and convolution states, keys and values.

    Activations of a forward pass come on top: a few times chunk * hidden size numbers.
    """
    base, item = plan.base, ITEM_BYTES[plan.dtype]
    linear = plan.layer_types.count("linear_attention")
    state = base.value_heads * base.key_dim * base.value_dim * 4
    window = (2 * base.key_heads * base.key_dim + base.value_heads * base.value_dim) * 4 * item
    attention = plan.layers - linear
    per_token = attention * 2 * base.kv_heads * base.head_dim * item
    return plan.bytes + linear * (state + window) + per_token * tokens


def choices(plan: MergePlan) -> list[Choice]:
    """What the plan chose, each beside its alternatives."""
    return [_layers(plan), *_widths(plan), *_tying(plan), *_vocabularies(plan)]


def _layers(plan: MergePlan) -> Choice:
    chain = -(-plan.layout.schedule.critical_path // 2)
    heads = sum(map(len, plan.layout.schedule.heads))
    why = (
        f"{heads} heads, {plan.base.key_heads} a layer; the longest chain of dependences takes {chain} layers"
    )
    return Choice("layers", f"{plan.layout.layers} compiled", plan.bytes, True, why)


def _widths(plan: MergePlan) -> list[Choice]:
    hidden, size = plan.base.hidden, "hidden size"
    apart = -(-(plan.layout.allocation.peak + plan.flag + FLAGS) // WIDTH_STEP) * WIDTH_STEP
    yours = (f"{hidden} + {plan.width}", plan.hidden, True, "the machine's data lies in the base's channels")
    own = (f"{hidden} + {apart}", hidden + apart, False, "every channel of the machine by itself")
    twice = (f"2 x {hidden}", 2 * hidden, False, "every text channel twice: the norms keep their means")
    four = (f"4 x {hidden}", 4 * hidden, False, "zeros, and powers of two alone: text keeps every bit")
    return [
        Choice(size, what, _bytes(plan, hidden=width), taken, because)
        for what, width, taken, because in (yours, own, twice, four)
        if taken or width > plan.hidden
    ]


def _tying(plan: MergePlan) -> list[Choice]:
    apart = "what reads a machine's token and what says it are different channels"
    rails = "codes of dual rails in every row, and neurons that take them away"
    return [
        Choice("output", "untied", plan.bytes, True, apart),
        Choice("output", "tied", _bytes(plan, tied=True), False, rails),
    ]


def _vocabularies(plan: MergePlan) -> list[Choice]:
    bits, found = plan.machine.payload_bits, []
    for other in (bits - 1, bits, bits + 2):
        try:
            count = vocabulary(dataclasses.replace(plan.machine, payload_bits=other)).size
        except DescriptionError:
            continue
        because = "a value takes at most" if other == bits else "a value would take at most"
        tokens = f"{-(-32 // other)} tokens of {other} bits"
        total = _bytes(plan, tokens=count)
        found.append(Choice("vocabulary", f"{count} tokens", total, other == bits, f"{because} {tokens}"))
    return found


def _bytes(plan: MergePlan, hidden: int | None = None, tied: bool = False, tokens: int | None = None) -> int:
    """Bytes of a plan with another size."""
    count = plan.base.vocabulary + (plan.layout.vocabulary if tokens is None else tokens)
    shapes = model_tensors(plan.base, plan.layer_types, hidden or plan.hidden, count, tied)
    return sum(tensor.numbers for tensor in shapes) * ITEM_BYTES[plan.dtype]
