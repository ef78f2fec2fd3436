"""How many PTX instructions there are in each block of a kernel's function."""

from __future__ import annotations

from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.ptx.calls import Routines
from qgpu.toolchain.ptx.cfg import BRANCH, ENDS, Block
from qgpu.toolchain.ptx.graph_builder import build_graph
from qgpu.toolchain.ptx.lower import module_scope
from qgpu.toolchain.ptx.names import Passed, Scope
from qgpu.toolchain.ptx.parser import parse
from qgpu.toolchain.ptx.places import Places

_TRANSFERS = (BRANCH, *ENDS)


def block_sizes(source: Source, kernel: str) -> list[int]:
    """Return how many PTX instructions a thread executes in each block of a kernel's function before passes.

    An instruction whose guard is off is not executed; a branch that is not taken is. Device functions are
    inlined, so a call counts as what stands for it.

    Raises:
        DiagnosticError: the text is no PTX.
    """
    module = parse(source)
    outer, places = module_scope(module), Places(source, None, module.files)
    (entry,) = [entry for entry in module.entries if entry.name == kernel]
    scope = Scope(outer, {parameter.name: Passed.declared(parameter) for parameter in entry.parameters})
    blocks = build_graph(entry, scope, Routines(module, outer, places), places)
    return list(map(_size, blocks))


def _size(block: Block) -> int:
    """A block's instructions; where a guarded one closes it, that stands, bare, in the block after it."""
    closing = block.closing
    return len(block.sites) + (closing is not None and closing.instruction.opcode in _TRANSFERS)
