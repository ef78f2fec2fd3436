"""The table of CUDA compilers."""

from collections.abc import Callable
from dataclasses import dataclass

from qgpu.toolchain.cuda import nvrtc
from qgpu.toolchain.cuda.options import CudaOptions, Ptx
from qgpu.toolchain.diagnostics import Source


@dataclass(frozen=True)
class Compiler:
    """A CUDA compiler: `compile` raises DiagnosticError where it is missing or refuses the source."""

    name: str
    compile: Callable[[Source, CudaOptions], Ptx]


COMPILERS = {compiler.name: compiler for compiler in [Compiler("nvrtc", nvrtc.compile_to_ptx)]}
