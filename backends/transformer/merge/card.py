"""The model card: README.md of a merged checkpoint."""

from __future__ import annotations

from qgpu.backends.transformer.merge.plan import MergePlan

CARD = """\
---
library_name: transformers
pipeline_tag: text-generation
license: other
license_name: see-below
base_model: {base}
tags: [qwen3.5, qgpu]
---

# {name}

{base}, with the machine `{machine}` of qgpu compiled into its first {compiled} layers. It writes text as
the base does, and it runs CUDA kernels: after the tokens of a launch, plain greedy decoding gives the
tokens of an exact execution. Nothing has to be trusted or patched: it is a `Qwen3_5ForCausalLM`.

| | |
|---|---|
| layers | {layers}: {compiled} compiled, {own} of the base |
| hidden size | {hidden}: {base_hidden} of the base, {width} beside them |
| vocabulary | {vocabulary}: the base's {base_vocabulary}, then {tokens} of the machine |
| parameters | {parameters:,} |
| bytes | {bytes:,} ({dtype}) |
| machine | {lanes} lanes, {warps} warps, {registers} register words, {memory} words of memory, {rom} blocks |

Built by

    {command}

## What holds

- On text tokens every compiled layer adds exactly 0 to the residual stream, and the logit of each of the
  machine's tokens
  is far below the maximum. What differs from the base is the rounding of the norms in a wider stream;
  `qgpu check-text` measures it. `qgpu` itself runs text on the base's own layers at their own width, bit
  for bit.
- On the machine's tokens the base's layers add exactly 0. The largest row of a compiled projection has size
  {largest_row:.4g}, the largest text token size {largest_text:.4g}; the flag that marks text outweighs
  their product {margin:,.0f} times.
- Text right after a launch in one sequence is not what the base would write there: use `qgpu`, or a new
  sequence.
- Text never becomes one of the machine's tokens; they are given by their ids.

## Licences

The weights of the base, and its tokenizer, are under the base's licence (Qwen3.5: Apache 2.0, with the
names of its authors kept). The compiled layers are made by qgpu and are under the MIT licence, as qgpu is.
"""


def card(plan: MergePlan, base_name: str, command: str, largest: tuple[float, float], margin: float) -> str:
    """The text of the card.

    Args:
        base_name: what the base is called.
        command: what built it.
        largest: sizes of the largest compiled row and of the largest text token.
        margin: by how much the flag outweighs their product.
    """
    machine, base = plan.machine, plan.base
    return CARD.format(
        name=f"{base_name} with a machine",
        base=base_name,
        machine=machine.name,
        compiled=plan.layout.layers,
        own=len(base.layer_types),
        layers=plan.layers,
        hidden=plan.hidden,
        base_hidden=base.hidden,
        width=plan.width,
        vocabulary=plan.vocabulary,
        base_vocabulary=base.vocabulary,
        tokens=plan.layout.vocabulary,
        parameters=plan.parameters,
        bytes=plan.bytes,
        dtype=plan.dtype,
        lanes=machine.lanes,
        warps=machine.warps,
        registers=machine.register_words,
        memory=machine.memory_words,
        rom=machine.rom_blocks,
        command=command,
        largest_row=largest[0],
        largest_text=largest[1],
        margin=margin,
    )
