"""Barriers of a part of the thread block, by number and count, go: in lockstep their threads are together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.passes.errors import PassError
from qgpu.ir.passes.manager import Pass


@dataclass(frozen=True)
class LowerBarriers(Pass):
    """Removes barriers that have a number and a count, and what arrives at them.

    Contract: the function is linearised, and the threads that a barrier waits for come to one place of the
    code, or arrive at an earlier one. Raises PassError where that is not so: threads that wait for each other
    at different places cannot run one place after the other. How many threads come is not checked.
    """

    name: ClassVar[str] = "lower-barriers"

    def run(self, function: Function) -> bool:
        places = [i for i in function.instructions if is_partial(i)]
        if not places or not function.linearised:
            return False
        for first, second in combinations(places, 2):
            if first.attrs["id"] == second.attrs["id"]:
                _check(first, second)
        for place in places:
            place.erase()
        return True


def is_partial(instruction: Instruction) -> bool:
    """Whether an instruction is about a barrier of a part of the thread block."""
    return instruction.op == "arrive" or (instruction.op == "barrier" and "count" in instruction.attrs)


def _check(first: Instruction, second: Instruction) -> None:
    """Refuses two places at which the same threads may be waited for, in the order of the code."""
    number = first.attrs["id"]
    if first.op == "arrive":
        return
    if second.op == "arrive" and not _same_threads(first, second):
        raise PassError(
            f"threads wait at barrier {number} for others that arrive only at a later place",
            first,
            *_also(second),
        )
    if first.attrs["count"] == second.attrs["count"] and not _same_threads(first, second):
        raise PassError(f"threads wait at barrier {number} at two places", second, *_also(first))


def _same_threads(first: Instruction, second: Instruction) -> bool:
    """Whether all threads that come to one of two places come to the other."""
    a, b = (set(place.block.guard) for place in (first, second))
    return a <= b or b <= a


def _also(other: Instruction) -> Iterator[str]:
    if other.loc is not None:
        yield f"the other place is {other.loc}"
    yield "all threads of a barrier have to come to the same one, or arrive at an earlier one"
