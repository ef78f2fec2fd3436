"""How many PTX instructions a launch executes, summed over its threads."""

from __future__ import annotations

from collections import Counter

from qgpu.ir import Instruction
from qgpu.ir.interpreter import interpret
from qgpu.runtime.bench.workloads import Workload
from qgpu.toolchain.compile import CompileOptions, build_ir, build_ptx
from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.ptx.counting import block_sizes


def executed_instructions(workload: Workload) -> int:
    """Count the PTX instructions that a launch executes, each once for every thread that executes it.

    The PTX is NVRTC's for the source, before any pass of this compiler: an instruction whose guard is off is
    not executed, a branch that is not taken is. How often threads come through a block is counted by the
    interpreter of the IR, whose blocks are those of the PTX.

    Raises:
        DiagnosticError: the source does not compile.
        RuntimeError: the interpreter leaves something else in memory than the oracle says.
    """
    options = CompileOptions(kernels=(workload.kernel,))
    ptx = Source(f"<PTX of {workload.source.name}>", build_ptx(workload.source, options))
    (function,) = build_ir(ptx, "ptx", options).functions
    profile: Counter[Instruction] = Counter()
    arguments = [a if isinstance(a, int) else bytearray(a) for a in workload.contents]
    interpret(function, arguments, workload.grid, workload.block, profile=profile)
    if not workload.is_right(tuple(None if isinstance(a, int) else bytes(a) for a in arguments)):
        raise RuntimeError(f"{workload.name}: the IR's interpreter leaves something else than numpy")
    sizes = block_sizes(ptx, workload.kernel)
    return sum(profile[block.terminator] * size for block, size in zip(function.blocks, sizes, strict=True))
