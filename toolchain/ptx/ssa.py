"""Registers to values: which definition every read of a register sees.

The construction is that of Braun et al., Simple and Efficient Construction of Static Single Assignment Form
(CC 2013), for a graph that is complete when it starts: values are looked up from the reads backwards, so phis
arise only where a read needs them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from qgpu.toolchain.ptx.cfg import Block, Site, predecessors
from qgpu.toolchain.ptx.names import Register


@dataclass(eq=False)
class Definition:
    """The value an instruction gives a register."""

    register: Register
    site: Site


@dataclass(eq=False)
class Phi:
    """A value that depends on the edge taken into a block; one operand per predecessor."""

    register: Register
    block: Block
    operands: dict[Block, "Node"] = field(default_factory=dict)


@dataclass(eq=False)
class Undefined:
    """What a register holds before anything was written to it: any value at all."""

    register: Register


Node = Definition | Phi | Undefined


@dataclass(frozen=True)
class Accesses:
    """The registers an instruction, or the guard at a block's end, reads and writes."""

    reads: tuple[Register, ...]
    writes: tuple[Register, ...] = ()


@dataclass
class Values:
    """The result: for every instruction or guarded block the node each register it reads stands for, and the
    nodes of what it writes; for every block its phis."""

    reads: dict[Site | Block, dict[Register, Node]] = field(default_factory=dict)
    writes: dict[Site, dict[Register, Definition]] = field(default_factory=dict)
    phis: dict[Block, list[Phi]] = field(default_factory=dict)


def build_values(blocks: list[Block], accesses: Mapping[Site | Block, Accesses]) -> Values:
    """Number the values of a graph. `accesses` has a row for every site, and for every block with a guard."""
    return _Builder(blocks, accesses).build()


class _Builder:
    def __init__(self, blocks: list[Block], accesses: Mapping[Site | Block, Accesses]) -> None:
        self._blocks = blocks
        self._accesses = accesses
        self._predecessors = predecessors(blocks)
        self._at_end: dict[Block, dict[Register, Node]] = {block: {} for block in blocks}
        self._phis: dict[tuple[Block, Register], Phi] = {}
        self._incomplete: list[Phi] = []
        self._undefined: dict[Register, Undefined] = {}

    def build(self) -> Values:
        values = Values(phis={block: [] for block in self._blocks})
        for block in self._blocks:
            self._write_block(block, values)
        for block in self._blocks:
            self._read_block(block, values)
        self._complete_phis()
        same = self._trivial_phis()
        for reads in values.reads.values():
            reads.update({register: same.get(node, node) for register, node in reads.items()})
        for phi in self._phis.values():
            if phi not in same:
                phi.operands = {block: same.get(node, node) for block, node in phi.operands.items()}
                values.phis[phi.block].append(phi)
        return values

    def _write_block(self, block: Block, values: Values) -> None:
        for site in block.sites:
            written = {register: Definition(register, site) for register in self._accesses[site].writes}
            values.writes[site] = written
            self._at_end[block].update(written)

    def _read_block(self, block: Block, values: Values) -> None:
        current: dict[Register, Node] = {}
        for reader in [*block.sites, *([block] if block.guard else [])]:
            reads: dict[Register, Node] = {}
            for register in self._accesses[reader].reads:
                if register not in current:
                    current[register] = self._at_start(block, register)
                reads[register] = current[register]
            values.reads[reader] = reads
            if isinstance(reader, Site):
                current.update(values.writes[reader])

    def _at_start(self, block: Block, register: Register) -> Node:
        """The node of a register at the start of a block."""
        while len(self._predecessors[block]) == 1:
            (block,) = self._predecessors[block]
            if register in self._at_end[block]:
                return self._at_end[block][register]
        if not self._predecessors[block]:
            return self._undefined.setdefault(register, Undefined(register))
        if (block, register) not in self._phis:
            self._phis[block, register] = phi = Phi(register, block)
            self._incomplete.append(phi)
        return self._phis[block, register]

    def _complete_phis(self) -> None:
        while self._incomplete:
            phi = self._incomplete.pop()
            for block in self._predecessors[phi.block]:
                phi.operands[block] = self._at_end[block].get(phi.register) or self._at_start(
                    block, phi.register
                )

    def _trivial_phis(self) -> dict[Node, Node]:
        """Phis that always equal one other node, each with that node."""
        same: dict[Node, Node] = {}
        changed = True
        while changed:
            changed = False
            for phi in self._phis.values():
                others = {_resolve(node, same) for node in phi.operands.values()} - {phi}
                if phi not in same and len(others) == 1:
                    same[phi] = others.pop()
                    changed = True
        return {phi: _resolve(phi, same) for phi in same}


def _resolve(node: Node, same: dict[Node, Node]) -> Node:
    while node in same:
        node = same[node]
    return node
