"""The table of CUDA compilers."""

from collections.abc import Callable
from dataclasses import dataclass

from qgpu.toolchain.cuda import nvrtc
from qgpu.toolchain.cuda.front_end import DeviceCompiler, compile_device_code
from qgpu.toolchain.cuda.options import CudaOptions, Ptx
from qgpu.toolchain.diagnostics import Source


@dataclass(frozen=True)
class Compiler:
    """A CUDA compiler: `compile` raises DiagnosticError where it is missing or refuses the source."""

    name: str
    compile: Callable[[Source, CudaOptions], Ptx]


def _of_device_code(name: str, compiler: DeviceCompiler) -> Compiler:
    """A compiler that is given the device code of a source alone."""
    return Compiler(name, lambda source, options: compile_device_code(source, options, compiler))


COMPILERS = {compiler.name: compiler for compiler in [_of_device_code("nvrtc", nvrtc.compile_to_ptx)]}
