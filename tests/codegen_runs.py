"""Run IR on the machine: compile a text, launch it, and read its buffers."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from qgpu.backends.machine.description import LARGE, MachineDescription
from qgpu.backends.machine.host import Dim3, build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.backends.reference.run import Trace, run_launch
from qgpu.ir import verify
from qgpu.ir.parser import parse_function
from qgpu.toolchain.codegen import generate_kernel

LINEARISED = "attributes {linearised: true}"


def words(*numbers: int) -> bytes:
    """Numbers as 32-bit words."""
    return struct.pack(f"<{len(numbers)}I", *(number & 0xFFFFFFFF for number in numbers))


def numbers(data: bytes) -> list[int]:
    """Words as signed numbers."""
    return list(struct.unpack(f"<{len(data) // 4}i", data))


def made(text: str, machine: MachineDescription = LARGE, max_registers: int | None = None) -> Kernel:
    """The machine code of a kernel that is linearised already."""
    function = parse_function(text)
    verify(function)
    return generate_kernel(function, machine, max_registers)


def ran(
    kernel: Kernel,
    arguments: Sequence[int | bytes],
    block: Dim3 = (1, 1, 1),
    grid: Dim3 = (1, 1, 1),
    machine: MachineDescription = LARGE,
) -> Trace:
    """What the reference machine makes of a launch."""
    return run_launch(build_launch(machine, kernel, grid, block, arguments), 1_000_000)


def after(
    kernel: Kernel,
    arguments: Sequence[int | bytes],
    block: Dim3 = (1, 1, 1),
    grid: Dim3 = (1, 1, 1),
    machine: MachineDescription = LARGE,
) -> list[list[int]]:
    """The words of each buffer after a launch that does not fault."""
    trace = ran(kernel, arguments, block, grid, machine)
    assert trace.fault is None, trace.fault
    return [numbers(trace.buffer(region)) for region in trace.launch.buffers if region]


def reversal(count: int) -> str:
    """A kernel that reads `count` words of each thread, all before it writes them in reverse order."""
    lines = [f"  %t = sreg tid.x : i32\n  %s = mul %t, i32 {count} : i32"]
    for i in range(count):
        lines.append(f"  %p{i} = ptradd %a, %s {{scale: 4, disp: {4 * i}, signed: true}} : ptr<global>")
        lines.append(f"  %x{i} = load i32 %p{i} : i32")
    lines += [f"  store i32 %p{i}, %x{count - 1 - i}" for i in range(count)]
    body = "\n".join(lines)
    return f"kernel @k(%a: ptr<global>) {LINEARISED} {{\nentry:\n{body}\n  ret\n}}\n"
