"""The report of `qgpuc -v`, in the form of `ptxas -v`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qgpu.toolchain.cuda.names import told_apart

if TYPE_CHECKING:
    from qgpu.backends.machine.program import Kernel, Program

_HEAD = "qgpuc info    : "


def report(program: "Program") -> str:
    """What each kernel uses of its machine, one paragraph a kernel."""
    names = told_apart([kernel.name for kernel in program.kernels])
    named = zip(names, program.kernels, strict=True)
    return "\n".join(line for name, kernel in named for line in _lines(name, kernel, program))


def _lines(name: str, kernel: "Kernel", program: "Program") -> Iterator[str]:
    machine = program.machine
    yield f"{_HEAD}Compiling entry function '{name}' for '{machine.name}'"
    yield (
        f"{_HEAD}Used {kernel.registers} registers, {kernel.predicates} of {machine.predicates} predicates, "
        f"{len(kernel.blocks)} of {machine.rom_blocks} ROM blocks, {kernel.shared_bytes} bytes smem"
    )
    hidden = sum(buffer.size for buffer in kernel.hidden)
    if kernel.local_bytes or hidden:
        yield f"{_HEAD}{kernel.local_bytes} bytes lmem a thread, {hidden} bytes of variables"
    threads = kernel.warp_stride * machine.lanes
    memory = 4 * machine.memory_words - kernel.shared_bytes - hidden
    yield f"{_HEAD}Launches of up to {threads} threads a block, {memory} bytes gmem"
