"""Faults: why a launch stops early."""

from __future__ import annotations

from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.printer import print_instruction

FAULTS = {
    "address": "an access outside its buffer, or pointers into different buffers that are compared",
    "alignment": "an access that is not aligned to its size",
    "assert": "an assertion of the kernel does not hold",
    "barrier": "a barrier that not all threads reach",
    "exchange": "threads wait at an exchange for lanes of their warp that never come",
    "format": "a printf whose format does not fit its operands",
    "pointer": "a load of a pointer where memory holds none, or of a number where it holds one",
    "steps": "more instructions than allowed",
    "trap": "the kernel stopped itself",
    "undefined": "a value or a slot that the lane never set (a defect of a pass)",
    "uniformity": "a branch that should be uniform and is not (a defect of a pass)",
    "uninitialised": "a read of shared or local memory that was never written",
    "unreachable": "a place that the kernel says is never reached",
}
"""The kinds of faults, and what they mean."""


class Fault(Exception):
    """The launch stopped.

    Attributes:
        kind: one of FAULTS.
        reason: what is wrong.
        instruction: where, if one instruction is to blame.
        thread: the index of the thread in its block, if one is to blame.
        thread_block: (x, y, z) of the thread block that ran.
    """

    def __init__(
        self, kind: str, message: str, instruction: Instruction | None = None, thread: int | None = None
    ) -> None:
        place = f" in '{print_instruction(instruction)}'" if instruction else ""
        who = f", thread {thread}" if thread is not None else ""
        super().__init__(f"{kind}: {message}{place}{who}")
        self.kind = kind
        self.reason = message
        self.thread_block: tuple[int, int, int] | None = None
        self.instruction = instruction
        self.thread = thread
