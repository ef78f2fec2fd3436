"""What a compiled kernel takes of its machine."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.backends.machine.program import Kernel, Program
from qgpu.runtime.arguments import parameter_text
from qgpu.toolchain.cuda.names import readable


@dataclass(frozen=True)
class Report:
    """What a kernel takes, and what its machine has.

    Attributes:
        kernel, machine: their names; the kernel's as its source has it, `ns::scan<int, 16>`.
        parameters: as C writes them, in order.
        blocks, block_limit: blocks of program memory that it takes, and that there are.
        registers: registers of a thread.
        predicates, predicate_limit: predicate registers of a thread, with the one that says that it exists.
        threads: threads of the largest thread block that it can be launched with.
        shared_bytes: shared memory that it declares.
        local_bytes: local memory of a thread.
        memory_bytes: what the machine has for buffers, shared and local memory.
        prints: whether device code prints.
    """

    kernel: str
    machine: str
    parameters: tuple[str, ...]
    blocks: int
    block_limit: int
    registers: int
    predicates: int
    predicate_limit: int
    threads: int
    shared_bytes: int
    local_bytes: int
    memory_bytes: int
    prints: bool

    def __str__(self) -> str:
        predicates = f"{self.predicates} of {self.predicate_limit} predicates"
        local, shared = (f"{size:,} bytes of" for size in (self.local_bytes, self.shared_bytes))
        return "\n".join(
            (
                f"{self.kernel}({', '.join(self.parameters)}) on machine '{self.machine}'",
                f"  program: {self.blocks:,} of {self.block_limit:,} blocks",
                f"  thread: {self.registers} registers, {predicates}, {local} local memory",
                f"  thread block: up to {self.threads:,} threads, {shared} shared memory",
                f"  memory: {self.memory_bytes:,} bytes for buffers, shared and local memory",
            )
        )


def report_of(program: Program, kernel: Kernel) -> Report:
    """The report of a kernel of a program."""
    machine = program.machine
    threads = machine.lanes * kernel.warp_stride
    return Report(
        kernel=readable(kernel.name),
        machine=machine.name,
        parameters=tuple(map(parameter_text, kernel.parameters)),
        blocks=len(kernel.blocks),
        block_limit=machine.rom_blocks,
        registers=kernel.registers,
        predicates=kernel.predicates,
        predicate_limit=machine.predicates,
        threads=min(threads, kernel.max_threads or threads),
        shared_bytes=kernel.shared_bytes,
        local_bytes=kernel.local_bytes,
        memory_bytes=4 * machine.memory_words,
        prints=kernel.printf is not None,
    )
