"""CUDA C++ to PTX: a table of compilers behind one interface."""

from qgpu.toolchain.cuda.compilers import COMPILERS, Compiler
from qgpu.toolchain.cuda.options import CudaOptions, Ptx

__all__ = ["COMPILERS", "Compiler", "CudaOptions", "Ptx"]
