"""Index recovery: pointers that a loop advances become a fixed pointer and an index that all lanes share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.analysis.loops import Loop, LoopInfo
from qgpu.ir.analysis.uniformity import Uniformity
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, PtrType
from qgpu.ir.core.values import Constant, Value
from qgpu.ir.passes.dead_code import remove_dead_instructions
from qgpu.ir.passes.manager import Pass
from qgpu.ir.passes.simplify.addresses import constant_step

ACCESSES = ("load", "store", "atomicrmw")
SMALL = 1 << 20
FREE_SCALES = (1, 2, 4, 8)
"""Scales that an access may apply to its index; others cost as much as a uniform pointer's step."""


@dataclass(frozen=True)
class RecoverIndices(Pass):
    """Undoes the strength reduction of addresses, which front ends do for machines that add for nothing.

    Contract: a pointer `p = phi [base], [p + step]` in a loop header becomes base + index * scale, where an
    integer of the loop advances in proportion, or where the pointer is divergent and its step uniform, with
    a new integer. Advancing the pointer costs a pass in every lane; a uniform index costs one for all, and
    adding it is part of the access. Faults stay as they are: only pointers that every round accesses are
    rewritten, so that the access of the round before has faulted when the offset reaches 2^31 bytes or
    more, which no buffer has; up to there 32 bits hold the index.
    """

    name: ClassVar[str] = "recover-indices"

    def run(self, function: Function) -> bool:
        if function.linearised:
            return False
        uniformity = Uniformity(function)
        changed = False
        for loop in uniformity.loops.loops:
            for phi in loop.header.phis:
                changed |= isinstance(phi.type, PtrType) and recover(uniformity, loop, phi)
        return remove_dead_instructions(function) or changed


def recover(uniformity: Uniformity, loop: Loop, phi: Instruction) -> bool:
    """Rewrites one pointer, if it has the form."""
    base, advanced = split_incoming(loop, phi)
    if base is None or not isinstance(advanced, Instruction) or advanced.op != "ptradd":
        return False
    if advanced.operands[0] is not phi or not accessed_every_round(uniformity.loops, loop, phi):
        return False
    found = existing_index(loop, advanced) or new_index(uniformity, loop, phi, advanced)
    if found is None:
        return False
    index, scale, disp = found
    if uniformity.is_uniform(phi) and scale not in FREE_SCALES:
        return False
    builder = Builder(loc=phi.loc).at_start(loop.header)
    pointer = builder.ptradd(base, index, scale, disp, name=phi.name)
    phi.replace_all_uses_with(pointer)
    phi.erase()
    return True


def split_incoming(loop: Loop, phi: Instruction) -> tuple[Value | None, Value | None]:
    """The one value a phi has on entry and the one it has on the back edge; None where there are several."""
    into = {value for value, source in phi.incoming if source not in loop}
    back = {value for value, source in phi.incoming if source in loop}
    if len(into) != 1 or len(loop.latches) != 1:
        return None, None
    return into.pop(), back.pop()


def accessed_every_round(loops: LoopInfo, loop: Loop, phi: Instruction) -> bool:
    """Whether each round accesses the pointer, or a place a small constant away from it, before its end."""
    pointers = [phi]
    for user in phi.users:
        step = constant_step(user) if isinstance(user, Instruction) and user.op == "ptradd" else None
        if isinstance(user, Instruction) and step is not None and abs(step) < SMALL:
            pointers.append(user)
    accesses = [user for pointer in pointers for user in pointer.users if isinstance(user, Instruction)]
    return any(is_access(loops, loop, access, pointers) for access in accesses)


def is_access(loops: LoopInfo, loop: Loop, user: Instruction, pointers: list[Instruction]) -> bool:
    if user.op not in ACCESSES or user.operands[0] not in pointers:
        return False
    block: BasicBlock = user.block
    return loops.innermost(block) is loop and loops.tree.dominates(block, loop.latches[0])


def existing_index(loop: Loop, advanced: Instruction) -> tuple[Value, int, int] | None:
    """An integer of the loop that advances with the pointer, as (index, scale, displacement)."""
    step = constant_step(advanced)
    for counter in loop.header.phis:
        if counter.type is not I32 or step is None:
            continue
        start, stepped = split_incoming(loop, counter)
        rise = rise_of(counter, stepped)
        if not isinstance(start, Constant) or abs(start.signed) >= SMALL or rise == 0 or step % rise:
            continue
        return counter, step // rise, -start.signed * (step // rise)
    return None


def rise_of(counter: Instruction, stepped: Value | None) -> int:
    """By what constant a counter rises in a round; 0 where it is none."""
    if not isinstance(stepped, Instruction) or stepped.op != "add" or stepped.operands[0] is not counter:
        return 0
    rise = stepped.operands[1]
    return rise.signed if isinstance(rise, Constant) else 0


def new_index(
    uniformity: Uniformity, loop: Loop, phi: Instruction, advanced: Instruction
) -> tuple[Value, int, int] | None:
    """A counter for a divergent pointer whose step is the same for all lanes and rounds."""
    step, amount = constant_step(advanced), advanced.operands[1]
    if uniformity.is_uniform(phi) or (step is None and not is_fixed(uniformity, loop, advanced)):
        return None
    rise: Value = constant(I32, 1) if step is not None else amount
    counter = Instruction("phi", I32, (), {"blocks": ()}, phi.loc, phi.name and f"{phi.name}.index")
    loop.header.insert(0, counter)
    following = Builder().before(loop.latches[0].terminator).emit("add", counter, rise)
    for _, source in phi.incoming:
        counter.add_incoming(following if source in loop else constant(I32, 0), source)
    return counter, advanced.attrs["scale"] if step is None else step, 0


def is_fixed(uniformity: Uniformity, loop: Loop, advanced: Instruction) -> bool:
    """Whether a pointer advances by a multiple of a uniform i32 that the loop does not change."""
    amount, attrs = advanced.operands[1], advanced.attrs
    outside = not isinstance(amount, Instruction) or amount.block not in loop
    uniform = uniformity.is_uniform_at(amount, loop.header)
    return outside and uniform and amount.type is I32 and attrs["signed"] and attrs["disp"] == 0
