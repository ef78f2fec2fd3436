"""The example kernels as clang writes them in LLVM IR leave the memory that they leave by way of CUDA."""

from pathlib import Path

import numpy as np
import pytest

from example_launches import compiled, expected_buffers
from launches import LAUNCHES, Launch
from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.machine.host import build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.backends.reference.vector import run_blocks
from qgpu.ir.interpreter import interpret
from qgpu.toolchain.compile import compile_source, compile_to_ir

HERE = Path(__file__).parent / "llvm" / "examples"
KERNELS = sorted({launch.kernel for launch in LAUNCHES})


def text(kernel: str) -> str:
    return (HERE / f"{kernel}.ll").read_text(encoding="utf-8")


def by_machine(kernel: Kernel, example: Launch) -> list[bytes]:
    """The buffers after a launch of machine code."""
    arguments = [arg.tobytes() if isinstance(arg, np.ndarray) else int(arg) for arg in example.args]
    launch = build_launch(DEFAULT, kernel, example.grid, example.block, arguments)
    result = run_blocks(launch, 1_000_000)
    assert result.fault is None
    return [result.buffer(region) for region in launch.buffers if region is not None]


def by_interpreter(kernel: str, example: Launch) -> list[bytes]:
    """The buffers after a launch of the IR before any pass."""
    (function,) = compile_to_ir(text(kernel), f"{kernel}.ll", "ll").functions
    arguments = [bytearray(a.tobytes()) if isinstance(a, np.ndarray) else int(a) for a in example.args]
    interpret(function, arguments, example.grid, example.block)
    return [bytes(argument) for argument in arguments if isinstance(argument, bytearray)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_memory_is_that_of_cuda(kernel: str) -> None:
    (code,) = compile_source(text(kernel), f"{kernel}.ll", "ll", DEFAULT).kernels
    for example in (launch for launch in LAUNCHES if launch.kernel == kernel):
        wanted = expected_buffers(example)
        assert by_machine(compiled(kernel, DEFAULT), example) == wanted
        assert by_machine(code, example) == wanted
        assert by_interpreter(kernel, example) == wanted


def test_every_example_has_a_file() -> None:
    assert sorted(file.stem for file in HERE.iterdir()) == KERNELS
