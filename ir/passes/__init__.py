"""Transformations of the IR, one pass per file, and the pipeline that prepares a kernel for the machine."""

from qgpu.ir.passes.manager import Pass, PassManager

__all__ = ["Pass", "PassManager"]
