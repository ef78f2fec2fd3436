"""A launch as plain data: all that a program needs that runs it on a checkpoint without a line of qgpu.

examples/plain_transformers.py is such a program. docs/tokens.md says what the tokens mean.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import click
from click.core import ParameterSource

from qgpu.backends.machine.block import FAULTS
from qgpu.backends.machine.host import Launch, Region, read_requests
from qgpu.backends.machine.tokens import Vocabulary, vocabulary
from qgpu.runtime.arguments import DTYPES, Argument, Buffer
from qgpu.runtime.checkpoints import baked_hash, check_checkpoint
from qgpu.runtime.results import parameter_label
from qgpu.toolchain.outputs import check_output, write_output

_RUNNING = ("backend", "dtype", "device", "check", "trace", "as_json")
"""Parameters of `qgpu run` that say how a launch runs, or what is printed of it."""


def check_tokens_file(output: str, inputs: Sequence[str]) -> None:
    """Check the command line of a `qgpu run` that writes a launch instead of running it.

    Raises:
        UsageError: it has options that are for running, or the output is one of the inputs.
    """
    context = click.get_current_context()
    for name in _RUNNING:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--emit-tokens runs nothing: leave out --{name.removeprefix('as_')}.")
    check_output(inputs, output)


def emit_tokens(
    launch: Launch, arguments: Sequence[Argument], limit: int, model: str | None, output: str
) -> None:
    """Write a launch to a file as JSON; where a checkpoint is named, only if the launch is one for it.

    A launch whose program is in the weights is one for the checkpoint named.

    Raises:
        CheckpointError: it is not.
        DiagnosticError: the file cannot be written.
    """
    if model is not None:
        check_checkpoint(model, launch.machine, in_weights=launch.in_weights)
    baked = None if model is None else baked_hash(model)
    write_output(output, json.dumps(launch_object(launch, arguments, limit, baked)).encode() + b"\n")


def launch_object(
    launch: Launch, arguments: Sequence[Argument], limit: int, baked: str | None = None
) -> dict[str, Any]:
    """Return a launch as plain data, which says nothing of what comes of it.

    The keys:
        kernel: its name.
        machine: the sizes that the checkpoint's machine must have, as in its qgpu.json.
        baked: the hash of the kernel that the checkpoint must have in its weights, as in its qgpu.json; null
            for the checkpoint of a machine.
        prompt: token ids; greedy generation goes on from the last of them.
        max_new_tokens: how many to generate before the launch is given up.
        exit: the id of EXIT, which ends a launch and each answer to a read.
        faults: the ids that end a launch otherwise, each with the fault's kind; in JSON the ids are strings.
        part_bits, more, last: a 32-bit word is answered in parts of so many bits, low part first, each an id
            of the range `more` (its first id, and the one after its end) but the last, which is one of the
            range `last`; the part is the place of its id in its range, and of the last part the top bit is
            the sign, which fills the bits above.
        buffers: in the order of the parameters. Each has its `name`, the `type` of an element, as numpy and
            torch call it, its size in `bytes`, and the `reads` that ask for its words, little-endian: the
            `tokens` to append, how many `words` are answered, and the most tokens that this takes, EXIT
            included, as `max_new_tokens`.

    Args:
        arguments: what the buffers were made from; their types are those of the elements.
        limit: `max_new_tokens`.
        baked: that hash.
    """
    ids = vocabulary(launch.machine)
    sizes = dataclasses.asdict(launch.machine)
    rows = zip(launch.kernel.parameters, arguments, launch.buffers, strict=True)
    return {
        "kernel": launch.kernel.name,
        "machine": {name: size for name, size in sizes.items() if name not in ("name", "model")},
        "baked": baked,
        "prompt": list(launch.prompt),
        "max_new_tokens": limit,
        "exit": ids.id("exit"),
        "faults": {ids.id("fault", index): kind for index, kind in enumerate(FAULTS)},
        "part_bits": launch.machine.payload_bits,
        "more": _ids(ids, "more"),
        "last": _ids(ids, "last"),
        "buffers": [
            {"name": parameter_label(launch.kernel, parameter), **_buffer_object(launch, argument, region)}
            for parameter, argument, region in rows
            if isinstance(argument, Buffer) and region is not None
        ],
    }


def _ids(ids: Vocabulary, kind: str) -> list[int]:
    """The first id of a kind, and the one after its last."""
    return [ids.first[kind], ids.first[kind] + ids.counts[kind]]


def _buffer_object(launch: Launch, argument: Buffer, region: Region) -> dict[str, Any]:
    return {
        "type": DTYPES[argument.type].name,
        "bytes": region.size,
        "reads": [
            {"tokens": tokens, "words": words, "max_new_tokens": words * launch.machine.parts + 1}
            for tokens, words in read_requests(launch.machine, region)
        ],
    }
