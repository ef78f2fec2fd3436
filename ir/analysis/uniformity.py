"""Uniformity: which values are the same in all threads of the thread block that compute them.

A value is divergent if it comes from a divergent source (tid, laneid, warpid, a load through a divergent
pointer, an atomic's result, the address of a local array), from a divergent operand, from a phi at a join
of paths that a divergent branch chose, or from a loop that threads leave in different iterations and which
does not hold the use (temporal divergence). Rosemann, Moll, Hack: An Abstract Interpretation for SPMD
Divergence on Reducible Control Flow Graphs (POPL 2021).
"""

from __future__ import annotations

from qgpu.ir.analysis.cfg import reverse_postorder
from qgpu.ir.analysis.dominators import DominatorTree
from qgpu.ir.analysis.intervals import Intervals
from qgpu.ir.analysis.loops import Loop, LoopInfo
from qgpu.ir.analysis.postdominators import Reconvergence
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, PtrType
from qgpu.ir.core.values import Value

LANE_RESULTS = ("atomicrmw", "cmpxchg", "shuffle", "ballot", "match", "redux")
"""Opcodes whose results depend on the lane, or on its warp."""

MAX_THREADS, MAX_LANES = 1024, 32
"""The sizes of thread blocks and warps that no machine exceeds (CUDA C++ Programming Guide, compute
capabilities)."""

DIVERGENT_REGISTERS = ("tid.x", "tid.y", "tid.z", "laneid", "warpid")


def is_source(instruction: Instruction) -> bool:
    """Whether an instruction is divergent whatever its operands are."""
    if instruction.op == "sreg":
        return instruction.attrs["name"] in DIVERGENT_REGISTERS
    if instruction.op == "get":
        slot = instruction.operands[0]
        return not (isinstance(slot, Instruction) and slot.attrs.get("uniform", False))
    if instruction.op == "addrof":
        return isinstance(instruction.type, PtrType) and instruction.type.space == "local"
    return instruction.op in LANE_RESULTS


class Uniformity:
    """Divergent values, branches and loops of a function.

    In a linearised function slots say themselves whether they are uniform, and no branch diverges.
    With `warp_size`, votes are uniform in a kernel whose thread blocks are one warp (attribute max_threads).
    """

    def __init__(
        self,
        function: Function,
        tree: DominatorTree | None = None,
        loops: LoopInfo | None = None,
        warp_size: int = 0,
    ) -> None:
        self.function = function
        threads = int(function.attrs.get("max_threads", MAX_THREADS))
        self._intervals = Intervals(warp_size or MAX_LANES, threads)
        self._one_warp = threads <= warp_size
        self.tree = tree or DominatorTree(function)
        self.loops = loops or LoopInfo(function, self.tree)
        self.reconvergence = Reconvergence(self.loops)
        self._order = reverse_postorder(function)
        self._number = {block: index for index, block in enumerate(self._order)}
        self._irreducible = set(self.loops.irreducible)
        self._divergent: set[Value] = set()
        self._branches: set[BasicBlock] = set()
        self._joins: set[BasicBlock] = set()
        self._loops: set[Loop] = set()
        self._solve()

    def _solve(self) -> None:
        """Grows the divergent sets until nothing changes; each pass is in reverse postorder."""
        changed = True
        while changed:
            changed = False
            for block in self._order:
                for instruction in block.instructions:
                    changed |= self._visit(block, instruction)

    def _visit(self, block: BasicBlock, instruction: Instruction) -> bool:
        if instruction.op == "condbr":
            return self._visit_branch(block, instruction)
        if instruction in self._divergent or not self._becomes_divergent(block, instruction):
            return False
        self._divergent.add(instruction)
        return True

    def _becomes_divergent(self, block: BasicBlock, instruction: Instruction) -> bool:
        if instruction.op in ("ballot", "redux") and self._one_warp:
            return not self.is_uniform_at(instruction.operands[1], block)
        if is_source(instruction):
            return not self._has_one_value(instruction)
        if instruction.op == "barrier_reduce" or self._has_one_value(instruction):
            return False
        joined = block in self._joins or block in self._irreducible
        if joined and instruction.op == "phi" and len(set(instruction.operands)) > 1:
            return True
        return any(not self.is_uniform_at(operand, block) for operand in instruction.operands)

    def _has_one_value(self, instruction: Instruction) -> bool:
        """Whether a value is the same number in every thread, however they come to it."""
        if instruction.op == "icmp":
            return self._intervals.decides(instruction)
        if instruction.op == "phi" or instruction.type is not I32:
            return False
        interval = self._intervals.of(instruction)
        return interval.low == interval.high

    def _visit_branch(self, block: BasicBlock, branch: Instruction) -> bool:
        if block in self._branches or len(block.successors) < 2:
            return False
        if self.is_uniform_at(branch.operands[0], block) or self.function.linearised:
            return False
        self._branches.add(block)
        self._spread(block)
        return True

    def _spread(self, branch: BasicBlock) -> None:
        """Finds the joins of the paths a divergent branch starts, and the loops it lets threads leave apart.

        Every block up to where the threads meet again gets a label: the successor all paths to it
        start with, or itself where paths with different labels meet. Back edges end the walk: the next
        iteration is in lockstep again.
        """
        end = self.reconvergence.of(branch)
        labels: dict[BasicBlock, BasicBlock] = {}
        arriving: dict[BasicBlock, set[BasicBlock]] = {}
        for successor in branch.successors:
            arriving.setdefault(successor, set()).add(successor)
        self._leave_loops(branch)
        first = self._number[branch] + 1
        for block in self._order[first:]:
            if block not in arriving:
                continue
            labels[block] = block if len(arriving[block]) > 1 else next(iter(arriving[block]))
            if block is end:
                continue
            self._leave_loops(block, branch)
            for successor in block.successors:
                arriving.setdefault(successor, set()).add(labels[block])
        self._joins |= {block for block, sources in arriving.items() if len(sources) > 1}

    def _leave_loops(self, block: BasicBlock, branch: BasicBlock | None = None) -> None:
        """Marks the loops around the branch that an edge of a block under its control leaves."""
        loop = self.loops.innermost(branch or block)
        while loop is not None:
            if block in loop and any(successor not in loop for successor in block.successors):
                self._loops.add(loop)
            loop = loop.parent

    def is_uniform(self, value: Value) -> bool:
        """Whether all threads that compute a value, in the same iteration of the loops around it, agree."""
        return value not in self._divergent

    def is_uniform_at(self, value: Value, block: BasicBlock) -> bool:
        """Whether a value is uniform where `block` reads it, outside the loops that threads leave apart."""
        if value in self._divergent:
            return False
        loop = self.loops.innermost(value.block) if isinstance(value, Instruction) else None
        while loop is not None:
            if loop in self._loops and block not in loop:
                return False
            loop = loop.parent
        return True

    def is_divergent_branch(self, block: BasicBlock) -> bool:
        """Whether threads may take different successors of a block."""
        return block in self._branches

    def is_divergent_loop(self, loop: Loop) -> bool:
        """Whether threads may leave a loop in different iterations or at different exits."""
        return loop in self._loops

    @property
    def divergent_branches(self) -> list[BasicBlock]:
        return [block for block in self._order if block in self._branches]
