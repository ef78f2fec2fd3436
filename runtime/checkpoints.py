"""Checkpoints of machines: built once, kept in a cache, and checked before use."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from qgpu.backends.machine.description import DescriptionError, MachineDescription, description_from_table

DTYPES = ("float32", "bfloat16")
METADATA = "qgpu.json"
T = TypeVar("T")
CACHE_VARIABLE = "QGPU_CACHE"


class CheckpointError(ValueError):
    """A directory that is no checkpoint, or that of another machine."""


def cache_directory() -> Path:
    """Where checkpoints are kept: QGPU_CACHE, or a folder of the platform's cache directory."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "qgpu"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "qgpu" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qgpu"


def built_checkpoint(machine: MachineDescription, dtype: str = "float32") -> Path:
    """Return a directory with the checkpoint of a machine, which is built where the cache has none.

    The directory's name holds a hash of the machine, the dtype and the back end's sources. A checkpoint is
    built in a directory of its own and moved into place whole, so two processes may build the same one.

    Raises:
        CheckpointError: the machine does not fit its model's shape.
        OSError: the cache cannot be written.
    """
    name = re.sub(r"[^\w.-]", "_", machine.name) or "machine"
    target = cache_directory() / f"{name}-{dtype}-{_key(machine, dtype)}"
    if not _is_complete(target, machine):
        _build(machine, dtype, target)
    return target


def checkpoint_machine(directory: str | os.PathLike[str]) -> MachineDescription:
    """Return the machine that a checkpoint is of.

    Raises:
        CheckpointError: the directory is no checkpoint of a machine.
    """
    path = Path(directory) / METADATA
    try:
        table = json.loads(path.read_text(encoding="utf-8"))["machine"]
        return description_from_table(table, str(path))
    except OSError as error:
        raise CheckpointError(f"no checkpoint in '{directory}': {METADATA}: {error.strerror}") from None
    except DescriptionError as error:
        raise CheckpointError(str(error)) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CheckpointError(f"'{path}' is not the metadata of a checkpoint") from None


def baked_hash(directory: str | os.PathLike[str]) -> str | None:
    """Return the hash of the kernel that a checkpoint holds in its weights, or None where it holds none.

    Raises:
        CheckpointError: the directory is no checkpoint.
    """
    path = Path(directory) / METADATA
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        return str(table["baked"]["sha256"]) if "baked" in table else None
    except OSError as error:
        raise CheckpointError(f"no checkpoint in '{directory}': {METADATA}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        raise CheckpointError(f"'{path}' is not the metadata of a checkpoint") from None


def check_checkpoint(
    directory: str | os.PathLike[str],
    machine: MachineDescription,
    dtype: str | None = None,
    in_weights: bool = False,
) -> None:
    """Check that a checkpoint runs programs of a machine: its sizes must agree; its name and layers need not.

    With `dtype`, it must be one of that dtype too: what rounds in one does not in the other
    (`backends/transformer/numerics.py`).

    Args:
        in_weights: the program is the one that the checkpoint holds; without this, it may hold none.

    Raises:
        CheckpointError: it is no checkpoint, or that of another machine or dtype, or of a kernel.
    """
    difference = machine_difference(checkpoint_machine(directory), machine)
    if not in_weights and baked_hash(directory) is not None:
        raise CheckpointError(f"'{directory}' runs the kernel in its weights alone: qgpu run {directory}")
    if difference is not None:
        raise CheckpointError(f"'{directory}' is the checkpoint of another machine: {difference}")
    if dtype is not None and (own := _configured(directory, "dtype", str)) != dtype:
        raise CheckpointError(f"'{directory}' is a {own} checkpoint: it is exact with --dtype {own} alone")


def machine_difference(first: MachineDescription, second: MachineDescription) -> str | None:
    """Say in which size two machines differ, or None where programs of one run on the other."""
    for field in dataclasses.fields(MachineDescription):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if field.name not in ("name", "model") and one != other:
            return f"'{first.name}' has {field.name} = {one}, '{second.name}' has {other}"
    return None


def checkpoint_layers(directory: str | os.PathLike[str]) -> int:
    """Return `num_hidden_layers` of a checkpoint's config.json.

    Raises:
        CheckpointError: there is no such number.
    """
    return _configured(directory, "num_hidden_layers", int)


def _configured(directory: str | os.PathLike[str], name: str, kind: Callable[[Any], T]) -> T:
    path = Path(directory) / "config.json"
    try:
        return kind(json.loads(path.read_text(encoding="utf-8"))[name])
    except (OSError, ValueError, TypeError, KeyError):
        raise CheckpointError(f"'{path}' is not the configuration of a model") from None


def _key(machine: MachineDescription, dtype: str) -> str:
    from qgpu.backends.transformer import fingerprint

    description = json.dumps(dataclasses.asdict(machine), sort_keys=True)
    return hashlib.sha256("\n".join((description, dtype, fingerprint())).encode()).hexdigest()[:16]


def _is_complete(directory: Path, machine: MachineDescription) -> bool:
    try:
        check_checkpoint(directory, machine)
    except CheckpointError:
        return False
    return (directory / "model.safetensors").is_file() and (directory / "config.json").is_file()


def _build(machine: MachineDescription, dtype: str, target: Path) -> None:
    from qgpu.backends.transformer import emit_checkpoint

    target.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        emit_checkpoint(machine, building, dtype)
        _move_into_place(building, target, machine)
    except ValueError as error:
        raise CheckpointError(f"machine '{machine.name}': {error}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _move_into_place(building: Path, target: Path, machine: MachineDescription) -> None:
    """Rename a directory to its final name, unless another process has put a complete one there first."""
    if target.exists() and not _is_complete(target, machine):
        shutil.rmtree(target, ignore_errors=True)
    try:
        building.rename(target)
    except OSError:
        if not _is_complete(target, machine):
            raise
