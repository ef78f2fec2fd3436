"""Critical sections move into the loop that waits for their lock, so that a lane can release it.

In lockstep, lanes that leave a loop wait until the others have left. A lane that has taken a lock and waits
behind the loop would never release it, and the others would try forever (ElTantawy, Aamodt: MIMD
Synchronization on SIMT Architectures, MICRO 2016). With the section inside, the lane runs it in the same
round, and the next round finds the lock free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.analysis.loops import Loop, LoopInfo
from qgpu.ir.analysis.postdominators import PostDominatorTree
from qgpu.ir.analysis.uniformity import Uniformity
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I1
from qgpu.ir.core.values import FALSE, TRUE, Value
from qgpu.ir.passes.blocks import split_before
from qgpu.ir.passes.first_tests import FirstTest, first_test
from qgpu.ir.passes.manager import Pass
from qgpu.ir.passes.ssa_repair import restore_dominance

READS = ("cmpxchg", "atomicrmw")
WRITES = ("store", "cmpxchg", "atomicrmw")


@dataclass(frozen=True)
class EncloseCriticalSections(Pass):
    """Moves what a lane does between taking a lock and releasing it into the loop that waits for the lock.

    A loop waits for a lock if a divergent branch leaves it by a value that an atomic operation or a volatile
    load gives, and a write to the same address comes on every way from there; that write, the last one if
    there are several, is the release. Sections with barriers stay where they are.

    Contract: each thread runs what it ran before, in the same order; there are no cycles with several
    entries. Locks that lanes wait for in other ways may never be released in lockstep: the launch then ends
    at its limit of steps.
    """

    name: ClassVar[str] = "enclose-critical-sections"

    def run(self, function: Function) -> bool:
        if not any(map(_may_wait, function.instructions)):
            return False
        changed = False
        while (section := next(_sections(function), None)) is not None:
            if isinstance(section, FirstTest):
                section.move_inside(function)
            else:
                section.enclose(function)
                restore_dominance(function)
            changed = True
        return changed


@dataclass(frozen=True)
class _Section:
    """A critical section: `loop` waits for the lock, the edge from `source` to `entry` is taken with it."""

    loop: Loop
    source: BasicBlock
    entry: BasicBlock
    release: Instruction

    def enclose(self, function: Function) -> None:
        """Sends lanes that have released the lock, and those that did not get it, to one block.

        It is the loop's new latch: the former leave there, the latter go round again.
        """
        header = self.loop.header
        sources = [latch for latch in function.predecessors()[header] if latch in self.loop]
        inside = self.release.block
        rest = split_before(inside.instructions[inside.instructions.index(self.release) + 1])
        latch = function.add_block(f"{header.name}.released", before=rest)
        inside.terminator.replace_successor(rest, latch)
        for source in sources:
            source.terminator.replace_successor(header, latch)
        for phi in header.phis:
            self._carry(function, phi, latch, sources, inside)
        released = latch.append(Instruction("phi", I1, attrs={"blocks": ()}, name="released"))
        released.add_incoming(TRUE, inside)
        for source in sources:
            released.add_incoming(FALSE, source)
        Builder(latch, self.release.loc).condbr(released, rest, header)

    @staticmethod
    def _carry(
        function: Function, phi: Instruction, latch: BasicBlock, sources: list[BasicBlock], inside: BasicBlock
    ) -> None:
        """Lets a header's phi take the values of the former back edges from the new latch."""
        missing = function.entry.insert(0, Instruction("undef", phi.type))
        carried = latch.append(Instruction("phi", phi.type, attrs={"blocks": ()}, name=phi.name))
        carried.add_incoming(missing, inside)
        for value, source in [pair for pair in phi.incoming if pair[1] in sources]:
            carried.add_incoming(value, source)
            phi.remove_incoming(source)
        phi.add_incoming(carried, latch)


def _may_wait(instruction: Instruction) -> bool:
    """Whether an instruction reads what another thread may be about to change."""
    volatile = instruction.op == "load" and bool(instruction.attrs.get("volatile"))
    return instruction.op in READS or volatile


def _sections(function: Function) -> Iterator[_Section | FirstTest]:
    """The critical sections that lie behind their loops, or what keeps them from being no more than that."""
    uniformity = Uniformity(function)
    post = PostDominatorTree(function)
    predecessors = function.predecessors()
    for loop in reversed(uniformity.loops.loops):
        for source, entry in loop.exit_edges:
            first = first_test(loop, entry, predecessors)
            if uniformity.is_divergent_branch(source) and (first or len(predecessors[entry]) == 1):
                release = _release(function, uniformity.loops, post, loop, source, entry)
                if release is not None:
                    yield first or _Section(loop, source, entry, release)


def _release(
    function: Function,
    loops: LoopInfo,
    post: PostDominatorTree,
    loop: Loop,
    source: BasicBlock,
    entry: BasicBlock,
) -> Instruction | None:
    """The last write behind an exit to an address that decides whether it is taken."""
    locks = [read.operands[0] for read in _deciding_reads(loop, source.terminator.operands[0])]
    if not locks:
        return None
    behind = [b for b in loops.tree.preorder() if loops.tree.dominates(entry, b)]
    certain = [b for b in behind if post.post_dominates(b, entry) and loops.innermost(b) is loop.parent]
    found = [
        i
        for block in certain
        for i in block.instructions
        if i.op in WRITES and any(_same_address(i.operands[0], lock) for lock in locks)
    ]
    if not found or _has_barrier(behind, loops, found[-1].block):
        return None
    return found[-1]


def _has_barrier(blocks: list[BasicBlock], loops: LoopInfo, last: BasicBlock) -> bool:
    """Whether threads may wait for each other before the last block of a section."""
    section = [block for block in blocks if block is last or not loops.tree.dominates(last, block)]
    return any(i.op in ("barrier", "barrier_reduce") for block in section for i in block.instructions)


def _deciding_reads(loop: Loop, condition: Value) -> list[Instruction]:
    """The reads of memory in a loop that a condition is made of."""
    found, work, seen = [], [condition], set()
    while work:
        value = work.pop()
        if not isinstance(value, Instruction) or value in seen or value.block not in loop:
            continue
        seen.add(value)
        if _may_wait(value):
            found.append(value)
        else:
            work += value.operands
    return found


def _same_address(a: Value, b: Value) -> bool:
    """Whether two pointers are computed alike from the same values."""
    if a is b or a == b:
        return True
    if not (isinstance(a, Instruction) and isinstance(b, Instruction)):
        return False
    alike = (a.op, a.type, a.attrs) == (b.op, b.type, b.attrs) and a.info.pure
    return alike and len(a.operands) > 0 and all(map(_same_address, a.operands, b.operands))
