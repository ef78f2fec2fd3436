"""Run kernels: launches, tokens, checkpoints, and the engines that take them.

from qgpu.runtime import compile
add = compile("add.cu")
add[1, 32](a, b, c, 32)
"""

from qgpu.runtime.api import CompiledKernel, FaultError, compile

__all__ = ["CompiledKernel", "FaultError", "compile"]
