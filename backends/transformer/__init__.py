"""The transformer back end: from a machine description to the tensors of stock Qwen3.5 layers.

machine -> `processor` (circuits over named channels) -> `schedule` (layers) -> `allocate` (places in the
residual stream) -> `emit` (tensors) -> `checkpoint` (a Hugging Face directory). `evaluate` runs circuits
without weights; `bake` puts a kernel's rows into the circuit, and `fold` takes out what it never uses.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from qgpu.backends.transformer.checkpoint import emit_baked, emit_checkpoint

__all__ = ["emit_baked", "emit_checkpoint", "fingerprint"]


def fingerprint() -> str:
    """Return a hash of the sources that decide a checkpoint's content: those of this back end and of the
    machine.
    """
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for folder in (here, here.parent / "machine"):
        for source in sorted(folder.rglob("*.py")):
            digest.update(source.relative_to(here.parent).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()
