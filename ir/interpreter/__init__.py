"""Interpreter of the IR: what a kernel means, for functions before and after linearisation.

It runs all threads of a thread block at once, on numpy arrays of one element a thread, with the effects of
running each instruction for one thread after another, in ascending order. Before linearisation threads part
at branches and meet again (`threads`); a linearised function runs in lockstep, each instruction for the lanes
in which the block's guard holds (`lockstep`). Both count as the definition of the IR: a pass is right if the
two give the same memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.interpreter.faults import FAULTS, Fault
from qgpu.ir.interpreter.launch import Dim3, Launch

__all__ = ["FAULTS", "Dim3", "Fault", "interpret"]


def interpret(
    function: Function,
    args: Sequence[int | bytearray | memoryview],
    grid: Dim3 = (1, 1, 1),
    block: Dim3 = (1, 1, 1),
    warp_size: int = 32,
    max_steps: int = 10_000_000,
    shared_bytes: int = 0,
    output: Callable[[str], object] = lambda text: None,
    apart: bool = False,
    profile: Counter[Instruction] | None = None,
) -> None:
    """Runs a launch. Buffers in `args` (one per pointer parameter, writable memory) are changed in place.

    Args:
        grid, block: thread blocks and threads as (x, y, z). Thread blocks run one after another, x fastest.
        warp_size: lanes of a warp, at most 32; warps are threads in linear order.
        max_steps: instructions before the launch is given up; one that many threads run together counts once.
        shared_bytes: dynamic shared memory, which arrays of size 0 name.
        output: called with the text of each printf, in order.
        apart: run each thread by itself as far as it can go, from barrier to barrier, the first thread first:
            an order that CUDA allows too, which shows where a barrier is missing. Not for lockstep.
        profile: gets, for each instruction that ends a block, a barrier or an exchange, how many threads came
            to it. Not for lockstep.

    Raises:
        Fault: the launch stopped early: an access outside its buffer or not aligned, a read of shared or
            local memory that was never written, a barrier or an exchange that not all threads reach, a trap,
            more than `max_steps` instructions, and, for defects of passes, an undefined value or a uniform
            branch that is none. Buffers hold what was written before the instruction.
        TypeError: a buffer for a number or the reverse.
        ValueError: not as many arguments as parameters, buffers that overlap and are not the same, or a
            profile of a linearised function.
    """
    Launch(function, args, grid, block, warp_size, max_steps, shared_bytes, output, apart, profile).run()
