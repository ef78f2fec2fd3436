"""Launches as people and programs read of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qgpu.backends.machine.description import MachineDescription
from qgpu.runtime.expressions.launcher import LaunchRecord


def total_tokens(records: Sequence[LaunchRecord]) -> int:
    """Generated tokens of all launches."""
    return sum(record.tokens for record in records)


def total_layer_passes(records: Sequence[LaunchRecord]) -> int | None:
    """Generated tokens times layers of all launches; None where there are no layers."""
    passes = [record.layer_passes for record in records if record.layer_passes is not None]
    return sum(passes) if len(passes) == len(records) else None


def launch_object(record: LaunchRecord) -> dict[str, Any]:
    """A launch as plain data."""
    return {
        "kernel": record.routine,
        "operands": [list(shape) for shape in record.shapes],
        "grid": list(record.grid),
        "block": list(record.block),
        "prompt_tokens": record.prompt_tokens,
        "generated_tokens": record.tokens,
        "layer_passes": record.layer_passes,
    }


def launch_line(record: LaunchRecord) -> str:
    """One launch in a line: `dot 3 3: 8 generated, 112 layer passes`."""
    shapes = " ".join("x".join(map(str, shape)) or "1" for shape in record.shapes)
    passes = "" if record.layer_passes is None else f", {record.layer_passes} layer passes"
    return f"{record.routine} {shapes}: {record.tokens} generated{passes}"


def launches_line(records: Sequence[LaunchRecord], machine: MachineDescription, backend: str) -> str:
    """What ran where, and what it took."""
    layer_passes = total_layer_passes(records)
    passes = "" if layer_passes is None else f", {layer_passes} layer passes"
    seconds = sum(record.seconds for record in records)
    return (
        f"{len(records)} launch{'' if len(records) == 1 else 'es'} on machine '{machine.name}' by {backend}: "
        f"{total_tokens(records)} generated tokens{passes}, {seconds:.2f} s"
    )
