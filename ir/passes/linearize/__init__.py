"""Linearisation: divergent control flow becomes guards, so that a thread block runs in lockstep.

Steps, one file each: `normalise`, `slots` (out of SSA for phis), `loops`, `guards`, `layout`, `repair`,
`cleanup`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.analysis.loops import LoopInfo
from qgpu.ir.analysis.uniformity import Uniformity
from qgpu.ir.core.function import Function
from qgpu.ir.passes.linearize.cleanup import clean_up
from qgpu.ir.passes.linearize.guards import Guards
from qgpu.ir.passes.linearize.layout import Layout, gather_sets, mark_returned
from qgpu.ir.passes.linearize.loops import find_loops, shape_loops, split_uniform_edges
from qgpu.ir.passes.linearize.normalise import blocks_before_barriers, normalise
from qgpu.ir.passes.linearize.repair import repair_dominance
from qgpu.ir.passes.linearize.slots import capture_uniform_values, phis_to_slots, place_edge_sets
from qgpu.ir.passes.linearize.state import LinearizeError, State
from qgpu.ir.passes.manager import Pass

__all__ = ["Linearize", "LinearizeError"]


@dataclass(frozen=True)
class Linearize(Pass):
    """Turns a function into one that a whole thread block runs in lockstep, each block under its guard.

    Contract: every lane reads and writes what it did before, in its own order; a barrier that only part of
    the threads that have not ended reaches is a fault. Uniform branches stay `condbr`. The result has no
    phis, at most one `ret`, and `linearised` among its attributes. Raises LinearizeError for a loop with
    several entries (see make-reducible).

    Options: `skip_limit` is how many instructions a side may have that lanes do not vote on before it runs,
    where its branch cannot skip it for nothing. `warp_size` is how many lanes a warp has, 0 if that is open.
    """

    name: ClassVar[str] = "linearize"
    skip_limit: int = 40
    warp_size: int = 0

    def run(self, function: Function) -> bool:
        if function.linearised:
            return False
        normalise(function)
        refuse_irreducible(function)
        uniformity = Uniformity(function, warp_size=self.warp_size)
        state = State(function, barrier_follows=blocks_before_barriers(function))
        state.divergent = set(uniformity.divergent_branches)
        function.attrs["linearised"] = True
        find_loops(state, uniformity)
        capture_uniform_values(state, uniformity)
        phis_to_slots(state, uniformity)
        shape_loops(state)
        split_uniform_edges(state)
        place_edge_sets(state)
        guards = Guards(state)
        Layout(state, guards, self.skip_limit).run()
        mark_returned(state, guards)
        repair_dominance(state)
        gather_sets(state)
        clean_up(state)
        gather_sets(state)
        return True


def refuse_irreducible(function: Function) -> None:
    """Raises LinearizeError if the function has a cycle that is no natural loop."""
    blocks = LoopInfo(function).irreducible
    if blocks:
        names = ", ".join(block.name for block in blocks)
        raise LinearizeError(
            f"the loop of the blocks {names} has more than one entry",
            blocks[0].terminator,
            "all ways into a loop have to go through one block: no goto into a loop's middle",
        )
