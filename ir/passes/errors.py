"""What a pass raises where it cannot do its work on a function that is as it should be."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction


class PassError(Exception):
    """A pass cannot transform a function.

    `instruction` is where, if one is to blame; `notes` say what it would need.
    """

    def __init__(self, message: str, instruction: Instruction | None = None, *notes: str) -> None:
        super().__init__(message)
        self.message = message
        self.instruction = instruction
        self.notes = notes
