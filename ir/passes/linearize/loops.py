"""Third step: loops get the shape that lockstep needs.

Every loop has one block that goes back to its header. In a divergent loop that block, the latch, is also the
only one that leaves: lanes that are done wait, their `active` slot false, until no lane is active.
"""

from __future__ import annotations

from qgpu.ir.analysis.loops import Loop
from qgpu.ir.analysis.uniformity import Uniformity
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I1
from qgpu.ir.core.values import FALSE, TRUE, Literal, Value
from qgpu.ir.passes.linearize.normalise import drop_choiceless_branch
from qgpu.ir.passes.linearize.state import Edge, LoopRegion, State, append_set, value_with_polarity


def find_loops(state: State, uniformity: Uniformity) -> None:
    """Lists the function's loops in the state, inner before outer."""
    regions: dict[Loop, LoopRegion] = {}
    for loop in uniformity.loops.loops:
        parent = regions[loop.parent] if loop.parent else None
        regions[loop] = LoopRegion(loop.header, set(loop.blocks), uniformity.is_divergent_loop(loop), parent)
    state.loops = list(reversed(regions.values()))


def shape_loops(state: State) -> None:
    """Reshapes all loops, inner before outer."""
    for loop in state.loops:
        if loop.divergent:
            shape_divergent_loop(state, loop)
        else:
            shape_uniform_loop(state, loop)


def exit_edges(state: State, loop: LoopRegion) -> list[Edge]:
    """The edges that leave a loop as it is now, in block order."""
    members = [block for block in state.function.blocks if block in loop.members]
    return [(block, other) for block in members for other in block.successors if other not in loop.members]


def latches(state: State, loop: LoopRegion) -> list[BasicBlock]:
    return [block for block in going_to(state, loop.header) if block in loop.members]


def going_to(state: State, target: BasicBlock) -> list[BasicBlock]:
    """The predecessors of one block, in block order."""
    return [block for block in state.function.blocks if target in block.successors]


def shape_uniform_loop(state: State, loop: LoopRegion) -> None:
    """One latch, which all ways back to the header run through."""
    back = latches(state, loop)
    if len(back) > 1:
        latch = state.new_block(f"{loop.header.name}.latch", loop, loop.header)
        for source in back:
            state.redirect(source, loop.header, latch)


def split_uniform_edges(state: State) -> None:
    """Gives edges of uniform branches that set slots a block for it, which runs only if the edge is taken.

    Back edges are left out: their assignments may as well be made on the way out of the loop.
    """
    headers = {loop.header: loop for loop in state.loops}
    for source, target in list(state.edge_sets):
        uniform = source.terminator.op == "condbr" and source not in state.divergent
        back = target in headers and source in headers[target].members
        if uniform and not back:
            split_edge(state, source, target, common_loop(state, source, target))


def common_loop(state: State, source: BasicBlock, target: BasicBlock) -> LoopRegion | None:
    """The innermost loop that holds both ends of an edge."""
    return next((loop for loop in state.loops if {source, target} <= loop.members), None)


def split_edge(state: State, source: BasicBlock, target: BasicBlock, loop: LoopRegion | None) -> BasicBlock:
    """Puts a block on an edge; the edge's assignments move to the block's own edge."""
    block = state.new_block(f"{source.name}.{target.name}", loop, target)
    sets = state.edge_sets.pop((source, target), [])
    source.terminator.replace_successor(target, block)
    if sets:
        state.edge_sets[block, target] = sets
    return block


def shape_divergent_loop(state: State, loop: LoopRegion) -> None:
    """Gives a loop its `active` slot, its latch, and a block behind it that sends lanes on to their exits."""
    edges = exit_edges(state, loop)
    header, name = loop.header, loop.header.name
    loop.active = state.new_slot(I1, f"{name}.active")
    enter(state, loop)
    landing = select_exit(state, loop, edges)
    latch = state.new_block(f"{name}.latch", loop, header)
    loop.latch = latch
    for source in [block for block in latches(state, loop) if block is not latch]:
        state.redirect(source, header, latch)
    for source, target in edges:
        leave(state, loop, source, target)
    latch.terminator.erase()
    attrs = {"then": header, "else": landing} if landing else {"target": header}
    loc = header.instructions[0].loc
    latch.append(
        Instruction("brany" if landing else "br", operands=(TRUE,) if landing else (), attrs=attrs, loc=loc)
    )


def enter(state: State, loop: LoopRegion) -> None:
    """Makes lanes active on their way in: by the branch that chooses the loop, or in a block before it."""
    assert loop.active is not None
    header = loop.header
    outside = [b for b in going_to(state, header) if b not in loop.members]
    if len(outside) != 1 or outside[0].successors != (header,):
        before = state.new_block(f"{header.name}.enter", loop.parent, header)
        for source in outside:
            state.redirect(source, header, before)
        outside = [before]
    [before] = outside
    sources = going_to(state, before)
    chosen = len(sources) == 1 and sources[0] in state.divergent
    if chosen and state.innermost(sources[0]) is loop.parent:
        enter_by_branch(state, loop, sources[0], before)
    else:
        state.add_edge_set((before, header), loop.active, TRUE)


def enter_by_branch(state: State, loop: LoopRegion, source: BasicBlock, before: BasicBlock) -> None:
    """Sets the slot to the branch's condition, which then needs no predicate of its own."""
    assert loop.active is not None
    chosen = state.literal(source, before)
    assert chosen is not None
    value = value_with_polarity(source, chosen.value, chosen.polarity)
    append_set(source, loop.active, value)
    state.entered_with[source, before] = Literal(loop.active)


def select_exit(state: State, loop: LoopRegion, edges: list[Edge]) -> BasicBlock | None:
    """The block all lanes go to after the loop; for several exits a chain of blocks that tell them apart.

    Each block of the chain has a slot that the edge to its exit sets true, and edges to later exits false.
    """
    targets = list(dict.fromkeys(target for _, target in edges))
    if not targets:
        return None
    name, rest = loop.header.name, targets[-1]
    for position in range(len(targets) - 2, -1, -1):
        target = targets[position]
        slot = state.new_slot(I1, f"{name}.exit")
        for edge in edges:
            if edge[1] in targets[position:]:
                state.add_edge_set(edge, slot, TRUE if edge[1] is target else FALSE)
        rest = branch_on_slot(state, loop, slot, target, rest)
    return state.new_block(f"{name}.exit", loop.parent, rest) if len(targets) == 1 else rest


def branch_on_slot(
    state: State, loop: LoopRegion, slot: Value, target: BasicBlock, rest: BasicBlock
) -> BasicBlock:
    block = state.new_block(f"{loop.header.name}.exits", loop.parent, rest)
    state.origins[block] += state.sources_of([target])
    loc = block.terminator.loc
    block.terminator.erase()
    read = block.append(Instruction("get", I1, (slot,), loc=loc))
    block.append(Instruction("condbr", operands=(read,), attrs={"then": target, "else": rest}, loc=loc))
    state.divergent.add(block)
    return block


def leave(state: State, loop: LoopRegion, source: BasicBlock, target: BasicBlock) -> None:
    """Turns an exit edge into one to the latch, on which the lane stops being active.

    Where the edge assigns slots, or all lanes take it, it gets a block that does both; else the branch's
    condition itself becomes the new value of `active`.
    """
    assert loop.active is not None and loop.latch is not None
    needs_block = (source, target) in state.edge_sets or source not in state.divergent
    if needs_block or source in state.stays:
        block = split_edge(state, source, target, loop)
        state.redirect(block, target, loop.latch)
        state.add_edge_set((block, loop.latch), loop.active, FALSE)
        state.clears[block] = loop
        return
    stays = state.literal(source, target)
    assert stays is not None
    value = value_with_polarity(source, stays.value, not stays.polarity)
    state.redirect(source, target, loop.latch)
    append_set(source, loop.active, value)
    state.stays.add(source)
    state.clears[source] = loop
    drop_choiceless_branch(source)
