"""The kernels of examples/kernels/, compiled, and what the executors make of their launches."""

from __future__ import annotations

import functools

import numpy as np

from kernels.table import Array, Kernel, Launch
from qgpu.backends.machine import program
from qgpu.backends.machine.description import LARGE
from qgpu.backends.machine.host import build_launch
from qgpu.backends.reference.vector import run_blocks
from qgpu.ir import Function
from qgpu.ir.interpreter import interpret
from qgpu.toolchain.compile import CompileOptions, build_ir, compile_source
from qgpu.toolchain.cuda import CudaOptions
from qgpu.toolchain.diagnostics import Source

MAX_TOKENS = 50_000_000


def options_of(kernel: Kernel) -> CompileOptions:
    """How the kernel is compiled."""
    return CompileOptions(cuda=CudaOptions(architecture=kernel.architecture), kernels=(kernel.name,))


def source_of(kernel: Kernel) -> Source:
    """The kernel's text, under its name without folders."""
    return Source(kernel.file.name, kernel.file.read_text(encoding="utf-8"))


@functools.cache
def ir_of(kernel: Kernel) -> Function:
    """The kernel as the front end gives it, before any pass."""
    (function,) = build_ir(source_of(kernel), "cu", options_of(kernel)).functions
    return function


@functools.cache
def code_of(kernel: Kernel) -> program.Kernel:
    """The kernel's machine code."""
    source = source_of(kernel)
    (code,) = compile_source(source.text, source.name, "cu", LARGE, options_of(kernel)).kernels
    return code


def interpreted(kernel: Kernel, launch: Launch) -> list[bytes]:
    """The buffers after a launch, by the interpreter of the IR."""
    args = [bytearray(arg.tobytes()) if isinstance(arg, np.ndarray) else arg for arg in launch.args]
    interpret(ir_of(kernel), args, launch.grid, launch.block, shared_bytes=launch.shared)
    return [bytes(arg) for arg in args if isinstance(arg, bytearray)]


def run(kernel: Kernel, launch: Launch) -> list[bytes]:
    """The buffers after a launch, by the interpreter of machine code."""
    args = [arg.tobytes() if isinstance(arg, np.ndarray) else arg for arg in launch.args]
    built = build_launch(LARGE, code_of(kernel), launch.grid, launch.block, args, launch.shared)
    result = run_blocks(built, MAX_TOKENS)
    assert result.fault is None, result.fault
    return [result.buffer(region) for region in built.buffers if region is not None]


def first_difference(got: list[bytes], wanted: list[Array]) -> str:
    """Where buffers are not what they must be, in words; empty where they are."""
    for number, (content, array) in enumerate(zip(got, wanted, strict=True)):
        values = np.frombuffer(content, array.dtype)
        (places,) = np.nonzero(values != array)
        if len(places):
            at = places[0]
            return f"buffer {number}, element {at}: {values[at]}, not {array[at]}; {len(places)} differ"
    return ""
