"""Decoding of functions before linearisation: blocks are cut into segments at barriers and exchanges.

The order of the segments is reverse postorder with loops in one piece, so that threads meet again behind what
parted them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from qgpu.ir.analysis.graph import directed_graph, postorder
from qgpu.ir.analysis.loops import LoopInfo
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32
from qgpu.ir.interpreter.decode import Decoder, Frame, Read, Step
from qgpu.ir.interpreter.exchanges import EXCHANGES, Warps
from qgpu.ir.interpreter.faults import Fault
from qgpu.ir.interpreter.steps import STEPS
from qgpu.ir.interpreter.threads import End, Segment, ThreadProgram, Threads
from qgpu.ir.interpreter.values import Lanes, Numbers, Pointers, full

Numbering = dict[BasicBlock, int]
"""The first segment of each block."""


def decode_threads(function: Function) -> ThreadProgram:
    """Decodes a function that is not linearised."""
    decoder = Decoder(function)
    order = _program_order(function)
    pieces = [(block, piece) for block in order for piece in _pieces(block)]
    first: Numbering = {}
    for number, (block, _) in enumerate(pieces):
        first.setdefault(block, number)
    segments = []
    for number, (_, piece) in enumerate(pieces):
        *body, last = piece
        steps = [STEPS[instruction.op](decoder, instruction) for instruction in body]
        segments.append(Segment(steps, last, ENDS[last.op](decoder, last, first, number + 1)))
    return ThreadProgram(decoder, segments)


def _program_order(function: Function) -> list[BasicBlock]:
    """Reverse postorder in which what a loop leaves to comes after all of the loop."""
    loops = LoopInfo(function)

    def depth(block: BasicBlock) -> int:
        loop = loops.innermost(block)
        return 0 if loop is None else loop.depth

    edges = {block: sorted(block.successors, key=depth) for block in function.blocks}
    return postorder(directed_graph(edges), function.entry)[::-1]


def _pieces(block: BasicBlock) -> Iterator[list[Instruction]]:
    """A block's instructions without phis, cut behind each that may wait."""
    piece: list[Instruction] = []
    for instruction in block.instructions:
        if instruction.op == "phi":
            continue
        piece.append(instruction)
        if instruction.op in ENDS:
            yield piece
            piece = []


Edge = Callable[[Threads, Numbers], None]
Maker = Callable[[Decoder, Instruction, dict[BasicBlock, int], int], End]
"""Makes the end of a segment from its last instruction, the first segment of each block, and the next one."""


def _edge(decoder: Decoder, terminator: Instruction, first: Numbering, target: BasicBlock) -> Edge:
    """What takes threads along an edge: phis get their values, all at once."""
    number, source = first[target], terminator.block
    incoming = [(phi, value) for phi in target.phis for value, origin in phi.incoming if origin is source]
    if not incoming:
        return lambda threads, lanes: threads.go(number, lanes)
    writes = [decoder.write(phi) for phi, _ in incoming]
    reads = [decoder.read_any(value, phi) for phi, value in incoming]
    targets = [decoder.number(phi) for phi, _ in incoming]
    sources = [decoder.number(value) for _, value in incoming]

    def take(threads: Threads, lanes: Numbers) -> None:
        frame, active = threads.frame, threads.active(lanes)
        values = [read(frame, active) for read in reads]
        if frame.shadow.marks:
            marks = [frame.shadow.of(source, active) for source in sources]
            for target, mark in zip(targets, marks, strict=True):
                frame.shadow.set(target, active, mark)
        for write, value in zip(writes, values, strict=True):
            write(frame, active, value)
        threads.go(number, lanes)

    return take


def _br(decoder: Decoder, br: Instruction, first: Numbering, following: int) -> End:
    return _edge(decoder, br, first, br.attrs["target"])


def _condbr(decoder: Decoder, condbr: Instruction, first: Numbering, following: int) -> End:
    condition = decoder.read(condbr.operands[0], condbr)
    then, otherwise = (_edge(decoder, condbr, first, condbr.attrs[name]) for name in ("then", "else"))

    def branch(threads: Threads, lanes: Numbers) -> None:
        taken = condition(threads.frame, threads.active(lanes))
        assert not isinstance(taken, Pointers)
        if taken.all():
            then(threads, lanes)
        elif not taken.any():
            otherwise(threads, lanes)
        else:
            then(threads, lanes[taken])
            otherwise(threads, lanes[~taken])

    return branch


def _ret(decoder: Decoder, ret: Instruction, first: Numbering, following: int) -> End:
    return lambda threads, lanes: threads.finish(lanes)


def _trap(decoder: Decoder, trap: Instruction, first: Numbering, following: int) -> End:
    def stop(threads: Threads, lanes: Numbers) -> None:
        raise trap_fault(trap, int(lanes[0]))

    return stop


def trap_fault(trap: Instruction, thread: int) -> Fault:
    """The fault of a trap that a thread runs."""
    message = trap.attrs.get("message", "the kernel stopped itself")
    return Fault(trap.attrs["kind"], message, trap, thread)


def _barrier(decoder: Decoder, barrier: Instruction, first: Numbering, following: int) -> End:
    if barrier.attrs.get("count") is not None:
        return lambda threads, lanes: threads.come_to(barrier, lanes, following, waits=True)

    def go_on(threads: Threads, lanes: Numbers) -> None:
        threads.go(following, lanes)

    return lambda threads, lanes: threads.wait_at_barrier(barrier, lanes, go_on)


def _arrive(decoder: Decoder, arrive: Instruction, first: Numbering, following: int) -> End:
    return lambda threads, lanes: threads.come_to(arrive, lanes, following, waits=False)


def _barrier_reduce(decoder: Decoder, barrier: Instruction, first: Numbering, following: int) -> End:
    read, write = decoder.read(barrier.operands[0], barrier), decoder.write(barrier)

    def go_on(threads: Threads, lanes: Numbers) -> None:
        active = threads.active(lanes)
        write(threads.frame, active, reduced(barrier, read, threads.frame, active))
        threads.go(following, lanes)

    return lambda threads, lanes: threads.wait_at_barrier(barrier, lanes, go_on)


def reduced(barrier: Instruction, read: Read, frame: Frame, lanes: Lanes) -> Numbers:
    """The result of a barrier_reduce for the threads that come to it."""
    values = read(frame, lanes)
    assert not isinstance(values, Pointers)
    results = {"popc": np.count_nonzero(values), "and": values.all(), "or": values.any()}
    return full(I32, int(results[barrier.attrs["kind"]]), len(values))


def _exchange(decoder: Decoder, instruction: Instruction, first: Numbering, following: int) -> End:
    mask = decoder.read(instruction.operands[-1], instruction)
    run = exchange_step(decoder, instruction)

    def go_on(threads: Threads, lanes: Numbers) -> None:
        run(threads.frame, threads.active(lanes))
        threads.go(following, lanes)

    def come(threads: Threads, lanes: Numbers) -> None:
        masks = mask(threads.frame, threads.active(lanes))
        assert not isinstance(masks, Pointers)
        threads.wait_at_exchange(instruction, lanes, masks, go_on)

    return come


def exchange_step(decoder: Decoder, instruction: Instruction) -> Step:
    """The step in which some threads run an exchange together."""
    row, attrs = EXCHANGES[instruction.op], instruction.attrs

    def compute(frame: Frame, lanes: Lanes, *operands: Numbers) -> Numbers | Pointers:
        warps = Warps(frame.running(lanes), operands[-1], frame.warp_size)
        return row(warps, attrs, operands[:-1])

    return decoder.deciding(instruction, compute, instruction.operands)


ENDS: dict[str, Maker] = {
    "br": _br,
    "condbr": _condbr,
    "ret": _ret,
    "trap": _trap,
    "barrier": _barrier,
    "arrive": _arrive,
    "barrier_reduce": _barrier_reduce,
    **dict.fromkeys(EXCHANGES, _exchange),
}
"""One row for each opcode that may wait or branch, in functions before linearisation."""
