"""Open what a conversation talks with: a checkpoint with a text model and a machine."""

from __future__ import annotations

from typing import Protocol

from qgpu.backends.machine.description import MachineDescription
from qgpu.runtime.chat.text_model import TextModel
from qgpu.runtime.engine import Engine


class ChatModel(TextModel, Protocol):
    """A text model, and the machine beside it.

    Attributes:
        machine: what kernels are compiled for.
        dtype: "float32" or "bfloat16".
    """

    machine: MachineDescription
    dtype: str

    def launch_engine(self, backend: str = "engine") -> Engine:
        """An engine of the machine's layers: "engine" (float32 alone) or "weights".

        Raises:
            EngineError: it cannot be loaded.
        """
        ...


def open_model(path: str, device: str = "cpu") -> ChatModel:
    """Open a merged checkpoint.

    Raises:
        CheckpointError: there is none.
        EngineError: it cannot be loaded, or there is no such device.
    """
    from qgpu.runtime.merged import open_merged

    return open_merged(path, device=device)
