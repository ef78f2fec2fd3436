"""Transformations of the IR, one pass per file, and the pipeline that brings a kernel to the machine's form."""

from qgpu.ir.passes.manager import Pass, PassManager

__all__ = ["Pass", "PassManager"]
