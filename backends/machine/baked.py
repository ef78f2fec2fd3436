"""Baked kernels: the rows of program memory that a checkpoint holds in its weights, and what launches them.

Of a row that has variants, for thread blocks of one dimension or grids of one thread block, one is baked.
Rows for any shape are right for all; a row for a shape is right for that shape alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qgpu.backends.machine.block import Block
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.firmware import firmware_blocks, firmware_id
from qgpu.backends.machine.host import Dim3, Launch, LaunchError, build_launch, thread_count
from qgpu.backends.machine.program import Kernel
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.machine.verify import host_registers, verify_kernel


@dataclass(frozen=True)
class BakedKernel:
    """A kernel whose rows are a checkpoint's.

    Attributes:
        machine: what runs it.
        kernel: the kernel, its blocks being the rows; it has no variants.
        flat: whether the rows are those of thread blocks of one dimension.
        single: whether they are those of grids of one thread block.
        warps: warps of the largest thread block that may be launched.
    """

    machine: MachineDescription
    kernel: Kernel
    flat: bool
    single: bool
    warps: int

    def launch(
        self, grid: Dim3, block: Dim3, arguments: Sequence[int | bytes], shared_bytes: int = 0
    ) -> Launch:
        """Build a launch whose prompt holds data alone; see `build_launch`.

        Raises:
            LaunchError: as there, or the rows are for launches of another shape.
        """
        launch = build_launch(
            self.machine, self.kernel, grid, block, arguments, shared_bytes, in_weights=True
        )
        most = self.warps * self.machine.lanes
        baked = f"the checkpoint of kernel '{self.kernel.name}' is baked for"
        if self.flat and block[1:] != (1, 1):
            raise LaunchError(f"{baked} thread blocks of one dimension")
        if self.single and grid != (1, 1, 1):
            raise LaunchError(f"{baked} grids of one thread block")
        if thread_count(block) > most:
            raise LaunchError(f"{baked} thread blocks of at most {most} threads, not {thread_count(block)}")
        return launch

    def rows(self) -> dict[int, Block]:
        """The blocks that can be the current one, by id: the program's, and the firmware that hosts use."""
        program = dict(enumerate(self.kernel.blocks))
        return program | {
            firmware_id(self.machine, firmware.name): firmware.block
            for firmware in firmware_blocks(self.machine)
            if firmware.name in self._firmware()
        }

    def tokens(self) -> list[int]:
        """The ids of the tokens that a launch may have."""
        words, lanes = vocabulary(self.machine), self.machine.lanes
        numbers = {
            "launch": range(self.warps),
            "firmware": [words.firmware_names.index(name) for name in self._firmware()],
            "exec": range(len(self.kernel.blocks)),
            "lane": range(lanes),
            "warp": range(self.warps),
        }
        whole = ("reset", "exit", "fault", "last", "final", "more")
        numbers |= {kind: range(words.counts[kind]) for kind in whole}
        return sorted(words.id(kind, index) for kind, found in numbers.items() for index in found)

    def spoken(self) -> list[int]:
        """The ids of the tokens that have a logit: those, and EXEC for all numbers of as many bits.

        So whatever block is chosen has a token of its own, as on a machine.
        """
        codes = 1 << (len(self.kernel.blocks) - 1).bit_length()
        first = vocabulary(self.machine).id("exec")
        return sorted({*self.tokens(), *range(first, first + codes)})

    def _firmware(self) -> list[str]:
        groups = {register // self.machine.lanes for _, register in host_registers(self.kernel)}
        return ["addr", "read", "write", "threads", *(f"uniform.{group}" for group in sorted(groups))]


def bake_kernel(
    kernel: Kernel, machine: MachineDescription, grid: Dim3 | None = None, block: Dim3 | None = None
) -> BakedKernel:
    """Choose the rows of a kernel for launches like one of this grid and thread block, or for any.

    Raises:
        ProgramError: the kernel is not one that the machine defines.
        LaunchError: the thread block is none that the kernel runs.
    """
    verify_kernel(kernel, machine)
    most = machine.lanes * kernel.warp_stride
    most = min(most, kernel.max_threads) if kernel.max_threads else most
    threads = most if block is None else thread_count(block)
    if threads > most:
        raise LaunchError(
            f"blocks of {threads} threads: kernel '{kernel.name}' runs blocks of at most {most}"
        )
    # A shape that no variant is for: two thread blocks, of two dimensions.
    rows = kernel.launched(grid or (2, 1, 1), block or (1, 2, 1))
    chosen = replace(kernel, blocks=rows, flat=(), single=())
    flat = bool(kernel.flat and block and block[1:] == (1, 1))
    single = bool(kernel.single and grid == (1, 1, 1))
    return BakedKernel(machine, chosen, flat, single, -(-threads // machine.lanes))
