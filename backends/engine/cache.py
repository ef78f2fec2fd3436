"""Forms of checkpoints in a folder: made once, found by the checkpoint's content, made again if damaged."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from qgpu.backends.engine.layout import Form
from qgpu.backends.engine.tensors import CONFIG, WEIGHTS, ModelError

_MADE_BY = ("layout.py", "tensors.py", "form.py", "tree.py")
"""Sources that decide what a form holds."""


def cached_form(directory: str | os.PathLike[str], folder: Path) -> Form:
    """Return the form of a checkpoint from a folder; see `cached_form_of`."""
    from qgpu.backends.engine.sequence import load_form

    files = [Path(directory) / WEIGHTS, Path(directory) / CONFIG]
    return cached_form_of(files, folder, lambda: load_form(directory))


def cached_form_of(files: Sequence[Path], folder: Path, load: Callable[[], Form]) -> Form:
    """Return the form of files from a folder, which it is put into if it is not there or is damaged.

    Its name there is a hash of the checkpoint's files and of the sources that make forms. To hash the weights
    takes a second, so the hash is noted beside the size, the time and the inode that the
    files had; if these are the same, so are the files.

    Args:
        files: all that decides the form; the first one names the checkpoint.
        folder: where forms are kept.
        load: makes the form.

    Raises:
        ModelError: see `load_form`.
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{_content(files, folder)}.npz"
    form = _read(target)
    if form is None:
        form = load()
        _write(target, lambda file: np.savez(file, **form._asdict()))
    return form


def _read(path: Path) -> Form | None:
    """Read a form; None where there is none that is whole. Every array in the file has a check sum."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return Form(**{name: np.ascontiguousarray(arrays[name]) for name in Form._fields})
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _write(target: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".writing-", delete=False) as file:
        try:
            write(file)
            file.close()
            Path(file.name).replace(target)
        finally:
            Path(file.name).unlink(missing_ok=True)


def _content(files: Sequence[Path], folder: Path) -> str:
    """A hash of a checkpoint's files and of the sources."""
    try:
        stamps = [[str(file.resolve()), *_stamp(file)] for file in files]
    except OSError as error:
        raise ModelError(str(error)) from error
    sources = hashlib.sha256(b"".join((Path(__file__).parent / name).read_bytes() for name in _MADE_BY))
    name = hashlib.sha256(json.dumps(stamps[0][0]).encode()).hexdigest()[:32]
    note = folder / f"{name}.json"
    known = _note(note)
    if known is None or known.get("files") != stamps:
        known = {"files": stamps, "hash": _digest(files)}
        content = json.dumps(known).encode()
        _write(note, lambda file: file.write(content))
    return hashlib.sha256(f"{known['hash']} {sources.hexdigest()}".encode()).hexdigest()[:32]


def _note(path: Path) -> dict[str, object] | None:
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) and isinstance(known.get("hash"), str) else None


def _stamp(file: Path) -> tuple[int, int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _digest(files: Sequence[Path]) -> str:
    total = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()
