"""Turn what a command's body raises because of its input into one diagnostic and exit status 1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from qgpu.backends.machine.description import DescriptionError
from qgpu.backends.machine.host import LaunchError
from qgpu.backends.machine.verify import ProgramError
from qgpu.runtime.arguments import ArgumentError
from qgpu.runtime.checkpoints import CheckpointError
from qgpu.runtime.engine import EngineError
from qgpu.runtime.hints import refusal_hints
from qgpu.runtime.launch import DifferenceError
from qgpu.toolchain.cuda.names import readable
from qgpu.toolchain.diagnostics import failure, reporting

PROGRAM = "qgpu"
REFUSALS = (
    ArgumentError,
    CheckpointError,
    DescriptionError,
    DifferenceError,
    EngineError,
    LaunchError,
    ProgramError,
)
"""What says that the input is at fault, or does not fit."""


@contextmanager
def refusing() -> Iterator[None]:
    """Report what the body raises because of its input in one line, and end with exit status 1."""
    with reporting(PROGRAM):
        try:
            yield
        except REFUSALS as error:
            message = readable(str(error))
            raise failure(message, *refusal_hints(message)) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            place = f"'{error.filename}': " if error.filename else ""
            raise failure(f"{place}{error.strerror or error}") from error
