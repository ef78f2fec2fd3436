"""Run kernels: launches, tokens, checkpoints, and the engines that take them.

from qgpu.runtime import compile
add = compile("add.cu")
add[1, 32](a, b, c, 32)
"""

from qgpu.backends.machine.host import LaunchError
from qgpu.runtime.api import CompiledKernel, FaultError, compile
from qgpu.runtime.arguments import ArgumentError
from qgpu.runtime.report import Report
from qgpu.toolchain.diagnostics import DiagnosticError

__all__ = [
    "ArgumentError",
    "CompiledKernel",
    "DiagnosticError",
    "FaultError",
    "LaunchError",
    "Report",
    "compile",
]
