"""Second step: phis become slots that edges assign; uniform values leave divergent loops through slots."""

from __future__ import annotations

from qgpu.ir.analysis.loops import Loop
from qgpu.ir.analysis.uniformity import Uniformity
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.values import Use
from qgpu.ir.passes.linearize.state import State, append_set


def phis_to_slots(state: State, uniformity: Uniformity) -> None:
    """Replaces every phi by a `get` of a slot; the edges set it, except to the value it still has."""
    reads: dict[Instruction, Instruction] = {}
    for block in state.function.blocks:
        for phi in block.phis:
            slot = state.new_slot(phi.type, phi.name and f"{phi.name}.slot", uniformity.is_uniform(phi))
            read = Instruction("get", phi.type, (slot,), loc=phi.loc, name=phi.name)
            block.insert(len(block.phis) + _leading_gets(block), read)
            phi.replace_all_uses_with(read)
            reads[phi] = read
    _replace_in_edge_sets(state, reads)
    for phi, read in reads.items():
        _set_on_edges(state, phi, read)
    for phi in reads:
        phi.erase()


def _set_on_edges(state: State, phi: Instruction, read: Instruction) -> None:
    """Gives the edges into a phi's block their assignments.

    One that keeps the value needs none, unless another does so at the end of a block that may go elsewhere:
    there all its lanes assign.
    """
    changing = [source for value, source in phi.incoming if value is not read]
    overwritten = not state.divergent.isdisjoint(changing)
    for value, source in phi.incoming:
        if value is not read or overwritten:
            state.add_edge_set((source, phi.block), read.operands[0], value)


def _leading_gets(block: BasicBlock) -> int:
    """How many gets stand right after the phis."""
    rest = block.instructions[len(block.phis) :]
    return next((n for n, i in enumerate(rest) if i.op not in ("get", "slot")), len(rest))


def _replace_in_edge_sets(state: State, reads: dict[Instruction, Instruction]) -> None:
    for sets in state.edge_sets.values():
        sets[:] = [
            (slot, reads.get(value, value) if isinstance(value, Instruction) else value)
            for slot, value in sets
        ]


def capture_uniform_values(state: State, uniformity: Uniformity) -> None:
    """Gives each uniform value of a divergent loop that is read outside a divergent slot, set on the way out.

    The value is one for all lanes in an iteration, but lanes that leave in different iterations need their
    own. Reads by phis on the exit edges do so already.
    """
    for loop in uniformity.loops.loops:
        for block in loop.blocks if uniformity.is_divergent_loop(loop) else []:
            for value in block.instructions:
                if uniformity.is_uniform(value) and uniformity.loops.innermost(block) is not None:
                    _capture(state, uniformity, loop, value)


def _capture(state: State, uniformity: Uniformity, loop: Loop, value: Instruction) -> None:
    outside = [use for use in value.uses if _reads_outside(uniformity, loop, value.block, use)]
    if not outside:
        return
    slot = state.new_slot(value.type, value.name and f"{value.name}.exit")
    for source, target in loop.exit_edges:
        if uniformity.tree.dominates(value.block, source):
            state.add_edge_set((source, target), slot, value)
    for use in outside:
        _read_slot(slot, use)


def _reads_outside(uniformity: Uniformity, loop: Loop, block: BasicBlock, use: Use) -> bool:
    """Whether a use is outside `loop`, with no divergent loop inside that leaves it first."""
    assert isinstance(use.user, Instruction)
    place = use.user.block
    if use.user.op == "phi":
        source = use.user.attrs["blocks"][use.index]
        if source in loop:
            return False
        place = source
    if place in loop:
        return False
    inner = uniformity.loops.innermost(block)
    while inner is not None and inner is not loop:
        if uniformity.is_divergent_loop(inner) and place not in inner:
            return False
        inner = inner.parent
    return True


def _read_slot(slot: Instruction, use: Use) -> None:
    user = use.user
    assert isinstance(user, Instruction)
    builder = Builder()
    if user.op == "phi":
        builder.before(user.attrs["blocks"][use.index].terminator)
    else:
        builder.before(user)
    use.replace(builder.get(slot))


def place_edge_sets(state: State) -> None:
    """Puts the assignments of every edge at the end of the block it comes from.

    Lanes that take another edge make them too: no harm, since a slot is only read where some edge has set it
    just before.
    """
    for (source, _), sets in state.edge_sets.items():
        for slot, value in sets:
            append_set(source, slot, value)
    state.edge_sets.clear()
