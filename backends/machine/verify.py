"""Check that a kernel is one that the machine defines: every number in range, every block whole.

The machine itself checks nothing of this: a register row past the file or a width that is not given has no
defined result. Every kernel is checked when it is saved, loaded or launched.
"""

from __future__ import annotations

from collections.abc import Iterator

from qgpu.backends.machine.block import FAULTS, RUN_BLOCKS, Block, BlockError, check_block
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.firmware import HOST_ADDRESS
from qgpu.backends.machine.program import Kernel, Parameter, Preload, Program

SCALAR_BITS = {f"{sign}{bits}": bits for bits in (8, 16, 32, 64) for sign in "iu"}
"""Element types of parameters, and their widths in bits."""

THREAD_PRELOADS = ("tid.x", "tid.y", "tid.z", "laneid", "warpid", "frame")
"""Preloads with one value a thread; every other preload has one value a launch."""


class ProgramError(ValueError):
    """A kernel that the machine does not define; the message names the kernel and the block."""


def verify_program(program: Program) -> None:
    """Check every kernel of a program, and that their names differ.

    Raises:
        ProgramError: names the kernel and what is wrong with it.
    """
    names = [kernel.name for kernel in program.kernels]
    for name in names:
        if names.count(name) > 1:
            raise ProgramError(f"two kernels are called '{name}'")
    for kernel in program.kernels:
        verify_kernel(kernel, program.machine)


def verify_kernel(kernel: Kernel, machine: MachineDescription) -> None:
    """Check one kernel against a machine description.

    Raises:
        ProgramError: names the kernel and what is wrong with it.
    """
    for problem in _problems(kernel, machine):
        raise ProgramError(f"kernel '{kernel.name}': {problem}")


def _problems(kernel: Kernel, machine: MachineDescription) -> Iterator[str]:
    yield from _size_problems(kernel, machine)
    yield from _uniform_problems(kernel, machine)
    for number, block in enumerate(kernel.blocks):
        yield from _numbered_problems(number, block, kernel, machine)
    for number, block in (*kernel.flat, *kernel.single):
        if not 0 <= number < len(kernel.blocks):
            yield f"a variant of block {number} of {len(kernel.blocks)}"
        yield from _numbered_problems(number, block, kernel, machine)
    for preload in kernel.preloads:
        yield from _preload_problems(preload, kernel)
    yield from _memory_problems(kernel)


def _size_problems(kernel: Kernel, machine: MachineDescription) -> Iterator[str]:
    blocks, stride = len(kernel.blocks), kernel.warp_stride
    if not kernel.name:
        yield "it has no name"
    if not blocks:
        yield "it has no block"
    if blocks > machine.rom_blocks:
        yield f"it needs {blocks} blocks; machine '{machine.name}' has {machine.rom_blocks}"
    if len(kernel.lines) != blocks:
        yield f"{blocks} blocks have {len(kernel.lines)} source lines"
    if stride < 1 or stride & (stride - 1) or stride > machine.warps:
        yield f"a register stride of {stride} warps; machine '{machine.name}' has {machine.warps} warps"
    if kernel.registers * stride > machine.register_rows or kernel.registers < 0:
        yield (
            f"{kernel.registers} registers in {stride} warps; "
            f"machine '{machine.name}' has {machine.register_rows} rows of registers"
        )
    if not 0 <= kernel.predicates <= machine.predicates:
        yield (
            f"{kernel.predicates} predicates; machine '{machine.name}' has {machine.predicates} "
            "with that of the existing threads"
        )
    if min(kernel.shared_bytes, kernel.max_threads, kernel.local_bytes) < 0:
        yield "a negative size"
    if kernel.local_bytes % 4:
        yield f"{kernel.local_bytes} bytes of local memory are not whole words"


def _memory_problems(kernel: Kernel) -> Iterator[str]:
    """What is wrong with hidden buffers, and with what refers to them or to blocks."""
    for hidden in kernel.hidden:
        if len(hidden.data) > hidden.size:
            yield f"buffer '{hidden.name}' has {hidden.size} bytes and starts as {len(hidden.data)}"
    if kernel.printf and not 0 <= kernel.printf.buffer < len(kernel.hidden):
        yield f"it prints into hidden buffer {kernel.printf.buffer} of {len(kernel.hidden)}"
    for array in kernel.shared_arrays:
        if not 0 <= array.offset <= array.offset + array.size <= kernel.shared_bytes:
            yield f"shared array '{array.name}' ends beyond the {kernel.shared_bytes} bytes of shared memory"
    end = kernel.thread_block_end
    if end is not None and not 0 <= end < len(kernel.blocks):
        yield f"block {end} of {len(kernel.blocks)} runs after each thread block"
    for block, message in kernel.messages:
        if not 0 <= block < len(kernel.blocks) or not kernel.blocks[block].trap:
            yield f"block {block}, which is to say '{message}', is no trap"


def _uniform_problems(kernel: Kernel, machine: MachineDescription) -> Iterator[str]:
    """The uniform registers that the host writes, each for one purpose."""
    owners = {HOST_ADDRESS: "the host's address"}
    for name, register in host_registers(kernel):
        if not 0 <= register < machine.uniform_registers:
            yield f"uniform register {register} of '{name}' is outside 0..{machine.uniform_registers - 1}"
        if register in owners:
            yield f"uniform register {register} is both {owners[register]} and '{name}'"
        owners[register] = f"'{name}'"
    for parameter in kernel.parameters:
        yield from _parameter_problems(parameter)


def host_registers(kernel: Kernel) -> Iterator[tuple[str, int]]:
    """The uniform registers that the host writes, each with the name of what it holds."""
    for parameter in kernel.parameters:
        yield from ((parameter.name, register) for register in parameter.uniform)
    for preload in kernel.preloads:
        if preload.uniform is not None:
            yield preload.name, preload.uniform
    for hidden in kernel.hidden:
        if hidden.uniform is not None:
            yield hidden.name, hidden.uniform


def _parameter_problems(parameter: Parameter) -> Iterator[str]:
    if parameter.type not in SCALAR_BITS and not (parameter.pointer and parameter.type == "void"):
        yield f"parameter '{parameter.name}' has the unknown type '{parameter.type}'"
    elif len(parameter.uniform) not in (0, uniform_count(parameter)):
        yield (
            f"parameter '{parameter.name}' has {len(parameter.uniform)} uniform registers, "
            f"not {uniform_count(parameter)}"
        )


def uniform_count(parameter: Parameter) -> int:
    """Uniform registers that the argument of a parameter takes where the kernel uses it."""
    return 2 if not parameter.pointer and SCALAR_BITS[parameter.type] == 64 else 1


def _preload_problems(preload: Preload, kernel: Kernel) -> Iterator[str]:
    if preload.name not in THREAD_PRELOADS:
        if preload.uniform is None or preload.block is not None:
            yield f"preload '{preload.name}' has one value a launch, and needs a uniform register alone"
        return
    if preload.block is None or preload.uniform is not None:
        yield f"preload '{preload.name}' has one value a thread, and needs a block alone"
    elif not 0 <= preload.block < len(kernel.blocks):
        yield f"preload '{preload.name}' has block {preload.block} of {len(kernel.blocks)}"
    elif not _is_preload_block(kernel.blocks[preload.block]):
        yield f"block {preload.block} does not write a register of every thread, as '{preload.name}' needs"


def _is_preload_block(block: Block) -> bool:
    every_thread = block.visit and block.all_warps and not block.scalar
    return bool(every_thread and block.wr_reg and not block.guard_true and not block.guard_false)


def _numbered_problems(
    number: int, block: Block, kernel: Kernel, machine: MachineDescription
) -> Iterator[str]:
    for problem in (*_block_problems(block, kernel, machine), *_successor_problems(block, number, kernel)):
        yield f"block {number}: {problem}"


def _block_problems(block: Block, kernel: Kernel, machine: MachineDescription) -> Iterator[str]:
    try:
        check_block(block, machine)
    except BlockError as error:
        yield str(error)
        return
    yield from _register_problems(block, kernel, machine)
    sized = block.width8 or block.width16
    for name, used in (("m_sub_to_x", block.m_sub_to_x), ("merge", block.op == "merge")):
        if used and not sized:
            yield f"{name} without a width"
        if used and not block.check:
            yield f"{name} without a check: what a misaligned half word would be is not defined"
    if block.trap and block.imm >= len(FAULTS):
        yield f"a trap of kind {block.imm}; there are {len(FAULTS)}"
    if block.scalar and block.all_warps:
        yield "scalar and all_warps: a scalar block is visited once"
    if block.dest_lane:
        yield "dest_lane is the firmware's"
    yield from _predicate_problems(block, machine)


def _predicate_problems(block: Block, machine: MachineDescription) -> Iterator[str]:
    if block.dest_pred >= machine.predicates:
        yield f"predicate {block.dest_pred}; machine '{machine.name}' has {machine.predicates}"
    if block.wr_pred and not block.dest_pred:
        yield "it writes predicate 0, which is not stored"
    if block.guard_true & block.guard_false:
        yield "a predicate that has to be both 1 and 0: no lane would be active"
    if block.wr_bound and not block.scalar:
        yield "wr_bound in a block that is not scalar: the bound would change what the block visits"


def _register_problems(block: Block, kernel: Kernel, machine: MachineDescription) -> Iterator[str]:
    places = (
        ("a", block.a, block.a_thread, block.a_uniform),
        ("b", block.b, block.b_thread, block.b_uniform),
        ("dest", block.dest, block.wr_reg or block.dest_to_z, block.wr_uni),
    )
    rows, uniforms = machine.register_rows, machine.uniform_registers
    for name, number, thread, uniform in places:
        if thread and number + kernel.warp_stride > rows:
            yield f"{name} = {number} in {kernel.warp_stride} warps; machine '{machine.name}' has {rows} rows"
        if thread and number % kernel.warp_stride:
            yield f"{name} = {number} is not a row of warp 0: registers are {kernel.warp_stride} rows apart"
        if uniform and number >= uniforms:
            yield f"{name} = {number}; machine '{machine.name}' has {uniforms} uniform registers"
    last = block.dest + kernel.warp_stride
    if block.dest_to_z and last > machine.accumulator_rows:
        yield (
            f"dest = {block.dest} in {kernel.warp_stride} warps; the accumulator port of machine "
            f"'{machine.name}' reads {machine.accumulator_rows} rows"
        )
    if block.wr_uni and block.dest == HOST_ADDRESS:
        yield f"it writes uniform register {HOST_ADDRESS}, the host's"


def _successor_problems(block: Block, number: int, kernel: Kernel) -> Iterator[str]:
    blocks = len(kernel.blocks)
    if not block.next_exit and block.next >= blocks:
        yield f"next is block {block.next} of {blocks}"
    if (block.branch_any or block.skip_idle) and block.taken >= blocks:
        yield f"taken is block {block.taken} of {blocks}"
    if block.fall and (block.next != number + 1 or block.next % RUN_BLOCKS == 0):
        yield f"it falls to block {block.next}, which is not the next of its {RUN_BLOCKS}"
