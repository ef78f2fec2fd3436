"""The table of CUDA compilers."""

from collections.abc import Callable
from dataclasses import dataclass

from qgpu.toolchain.cuda import nvrtc
from qgpu.toolchain.cuda.clang import CLANG
from qgpu.toolchain.cuda.front_end import compile_device_code
from qgpu.toolchain.cuda.nvcc import NVCC
from qgpu.toolchain.cuda.options import CudaOptions, DeviceCode, Ptx
from qgpu.toolchain.diagnostics import Source


@dataclass(frozen=True)
class Compiler:
    """A CUDA compiler.

    Attributes:
        device: compiles device code; raises DiagnosticError where it is missing or refuses the code.
        arguments: its command line, for people to read.
    """

    name: str
    device: Callable[[DeviceCode, CudaOptions], Ptx]
    arguments: Callable[[DeviceCode, CudaOptions], list[str]]

    def compile(self, source: Source, options: CudaOptions) -> Ptx:
        """Compile a CUDA source's kernels.

        Raises:
            DiagnosticError: the source is at fault, or the compiler is missing.
        """
        return compile_device_code(source, options, self.device)


def _nvrtc_words(code: DeviceCode, options: CudaOptions) -> list[str]:
    return ["nvrtc", *nvrtc.arguments(code, options), code.name]


_NVRTC = Compiler("nvrtc", nvrtc.compile_to_ptx, _nvrtc_words)

COMPILERS = {
    "auto": _NVRTC,
    "nvrtc": _NVRTC,
    "clang": Compiler("clang", CLANG.compile, CLANG.arguments),
    "nvcc": Compiler("nvcc", NVCC.compile, NVCC.arguments),
}
"""By the names of --cuda-compiler; `auto` is the one that comes with pip."""
