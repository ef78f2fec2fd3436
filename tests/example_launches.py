"""The launches of examples/, compiled and ready to be sent."""

from __future__ import annotations

import functools

import numpy as np

from launches import LAUNCHES
from launches import Launch as Example
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.host import Launch, build_launch
from qgpu.backends.machine.program import Kernel

FIRST = tuple({example.kernel: example for example in reversed(LAUNCHES)}.values())[::-1]
"""The first, tiny launch of each kernel."""


@functools.cache
def compiled(kernel: str, machine: MachineDescription) -> Kernel:
    """The machine code of an example kernel."""
    from qgpu.toolchain.compile import compile_source

    (example, *_) = [example for example in LAUNCHES if example.kernel == kernel]
    program = compile_source(example.file.read_text(encoding="utf-8"), str(example.file), "cu", machine)
    (only,) = program.kernels
    return only


def launch_of(example: Example, machine: MachineDescription) -> Launch:
    """The launch of an example on a machine."""
    arguments = [arg.tobytes() if isinstance(arg, np.ndarray) else int(arg) for arg in example.args]
    kernel = compiled(example.kernel, machine)
    return build_launch(machine, kernel, example.grid, example.block, arguments)


def expected_buffers(example: Example) -> list[bytes]:
    """What the buffers of an example must hold after it."""
    return [array.tobytes() for array in example.expect()]
