"""Make the engine that a back end's name asks for."""

from __future__ import annotations

import os

from qgpu.backends.machine.description import MachineDescription
from qgpu.runtime.checkpoints import built_checkpoint, check_checkpoint
from qgpu.runtime.engine import Engine, EngineError, ReferenceEngine
from qgpu.runtime.progress import explained

ENGINES = {
    "reference": "the reference interpreter, without a model",
    "weights": "the stock transformer",
    "engine": "the checkpoint's files by what changes from token to token, without the transformer",
}
"""What takes tokens and says which comes next."""

FAST_ENGINE = "engine"
"""The engine that others are held against: it computes the same as the stock model, much faster."""

BACKENDS = {
    **ENGINES,
    "verify": "the reference interpreter, whose tokens the stock transformer then checks in chunks",
    "vector": "the machine code, for all lanes at once and without tokens",
    "ir": "the kernel before it is compiled for a machine",
}


def make_engine(
    backend: str,
    machine: MachineDescription,
    model: str | os.PathLike[str] | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    in_weights: bool = False,
) -> Engine:
    """Make an engine for a machine.

    Args:
        backend: one of ENGINES.
        model: the checkpoint to use; None builds it, or takes it from the cache.
        dtype, device: for `weights`: torch's.
        in_weights: the checkpoint is baked, and its kernel is what is to run.

    Raises:
        CheckpointError: the checkpoint is none, or that of another machine or dtype, or cannot be built.
        EngineError: it cannot be loaded.
        OSError: the cache cannot be written.
    """
    if backend not in ENGINES:
        raise EngineError(f"no engine is called '{backend}'; there are {', '.join(ENGINES)}")
    if backend == "reference":
        return ReferenceEngine(machine)
    if model is None:
        with explained(f"building the checkpoint of machine '{machine.name}': a minute or two, and once"):
            model = built_checkpoint(machine, dtype)
    else:
        check_checkpoint(model, machine, dtype, in_weights)
    if backend == FAST_ENGINE:
        from qgpu.runtime.compiled import CompiledEngine

        with explained("compiling the engine and its form of the checkpoint: a minute or so, and once"):
            return CompiledEngine(model)
    from qgpu.runtime.stock import StockEngine

    return StockEngine(model, dtype, device)
