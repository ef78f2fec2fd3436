"""Code generation: linearised IR to the machine's blocks."""

from qgpu.toolchain.codegen.pipeline import generate, generate_kernel

__all__ = ["generate", "generate_kernel"]
