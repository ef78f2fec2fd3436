"""The model card: README.md of a merged checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
  machine's tokens is far below the maximum. What differs from the base is the rounding of the norms in a
  wider stream; `qgpu check-text` measures it. `qgpu` itself runs text on the base's own layers at their own
  width, bit for bit.
- On the machine's tokens the base's layers add exactly 0. The largest row of a compiled projection has size
  {largest_row:.4g}, the largest text token size {largest_text:.4g}; the flag that marks text outweighs
  their product {margin:,.0f} times.
- Text right after a launch in one sequence is not what the base would write there: use `qgpu`, or a new
  sequence.
- Text never becomes one of the machine's tokens; they are given by their ids.

## Certificate

{certificate}
## Licences

The weights of the base, and its tokenizer, are under the base's licence (Qwen3.5: Apache 2.0, with the
names of its authors kept). The compiled layers are made by qgpu and are under the MIT licence, as qgpu is.
"""


NOT_PROVED = """\
What holds is by construction, and has not been proved of these tensors. This does it, from the tensors alone:

    qgpu prove DIR --against-machine {machine} --certificate FILE
"""

PROVED = """\
Proved of these tensors, from the tensors alone; `qgpu prove DIR --against-machine {machine}` does it again.
`certificate.json` has the bounds of each layer.

- On the machine's tokens every number of the compiled layers is exact, in any order of summation, and their
  neurons, memories and codes are the machine's circuit, with every weight accounted for.
- On them every layer of the base adds exactly 0: no gate is above {gates:,.0f}.
- The machine's token has a logit of at least {code_margin:g} above the others of its kind, {kind_margin:g}
  above those of other kinds, and {text_below:,.0f} above every token of text.
- On text every compiled layer adds exactly 0: the flag outweighs what else any row can read
  {flag_margin:,.0f} times. The machine's logits are at least 100 below the largest.

Conditions:

{conditions}

sha256 of the files of tensors, one after another: `{sha256}`
"""


def card(
    plan: MergePlan,
    names: tuple[str, str],
    largest: tuple[float, float],
    margin: float,
    certificate: Mapping[str, Any] | None,
) -> str:
    """The text of the card.

    Args:
        names: what the base is called, and the command that built the checkpoint.
        largest: sizes of the largest compiled row and of the largest text token.
        margin: by how much the flag outweighs their product.
        certificate: the content of the certificate, where the checkpoint is proved.
    """
    machine, base, (base_name, command) = plan.machine, plan.base, names
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
        certificate=_figures(machine.name, certificate),
    )


def _figures(machine: str, certificate: Mapping[str, Any] | None) -> str:
    if certificate is None:
        return NOT_PROVED.format(machine=machine)
    layers = certificate["layers"]
    head = layers[-1]
    return PROVED.format(
        machine=machine,
        gates=max(report["gates"] for report in layers if "gates" in report),
        code_margin=head["code_margin"],
        kind_margin=head["kind_margin"],
        text_below=head["text_below"],
        flag_margin=certificate["text"]["flag_margin"],
        conditions="\n".join(f"- {condition}" for condition in certificate["conditions"]),
        sha256=certificate["sha256"],
    )
