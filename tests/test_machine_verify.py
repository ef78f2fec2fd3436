"""Kernels that a machine does not define: each is refused with the words that say why."""

import re
from dataclasses import replace

import pytest

import machine_kernels
from qgpu.backends.machine.block import Block
from qgpu.backends.machine.description import SMALL
from qgpu.backends.machine.program import HiddenBuffer, Parameter, Preload, Printf, SharedArray
from qgpu.backends.machine.verify import ProgramError, verify_kernel, verify_program

TRIANGLE = machine_kernels.triangle()
WRONG_KERNELS = {
    "it has no block": replace(TRIANGLE, blocks=(), lines=()),
    "it needs 65 blocks; machine 'small' has 64": replace(
        TRIANGLE, blocks=(Block(),) * 65, lines=machine_kernels.lines(65)
    ),
    "7 blocks have 2 source lines": replace(TRIANGLE, lines=machine_kernels.lines(2)),
    "a register stride of 4 warps": replace(TRIANGLE, warp_stride=4),
    "17 registers in 2 warps": replace(TRIANGLE, registers=17),
    "9 predicates": replace(TRIANGLE, predicates=9),
    "uniform register 0 is both the host's address and 'out'": replace(
        TRIANGLE, parameters=(Parameter("out", "u32", True, (0,)),)
    ),
    "unknown type 'f32'": replace(TRIANGLE, parameters=(Parameter("x", "f32", False, (1,)),)),
    "parameter 'x' has 1 uniform registers, not 2": replace(
        TRIANGLE, parameters=(Parameter("x", "i64", False, (1,)),)
    ),
    "preload 'tid.x' has block 9 of 7": replace(TRIANGLE, preloads=(Preload("tid.x", block=9),)),
    "block 5 does not write a register of every thread": replace(
        TRIANGLE, preloads=(Preload("tid.x", block=5),)
    ),
    "preload 'ntid.x' has one value a launch": replace(TRIANGLE, preloads=(Preload("ntid.x", block=6),)),
}


@pytest.mark.parametrize("message", WRONG_KERNELS)
def test_kernels_that_no_machine_defines(message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        verify_kernel(WRONG_KERNELS[message], SMALL)


WRONG_BLOCKS = {
    "imm = -1 does not fit 32 bits": Block(imm=-1),
    "X has 2 sources: a_to_x, imm_to_x": Block(a_to_x=1, imm_to_x=1),
    "next is block 9 of 7": Block(next=9),
    "taken is block 8 of 7": Block(branch_any=1, taken=8),
    "m_sub_to_x without a width": Block(m_sub_to_x=1),
    "merge without a width": Block(op="merge"),
    "merge without a check": Block(op="merge", width16=1),
    "a trap of kind 5": Block(trap=1, imm=5),
    "the displacement 2097152 is not one of 22 bits": Block(imm_to_j=1, imm=1 << 21),
    "scalar and all_warps": Block(visit=1, scalar=1, all_warps=1),
    "dest_lane is the firmware's": Block(dest_lane=1),
    "it writes uniform register 0, the host's": Block(wr_uni=1),
    "dest = 31 in 2 warps; machine 'small' has 32 rows": Block(wr_reg=1, dest=31),
    "a = 3 is not a row of warp 0": Block(a_thread=1, a=3),
    "op = 'nop' is not one of": Block(op="nop"),
    "J has 2 sources: e_to_j, imm_to_j": Block(e_to_j=1, imm_to_j=1),
    "K has 2 sources: i_to_k, imm_to_k": Block(i_to_k=1, imm_to_k=1),
    "Z has 2 sources: m2_to_z, dest_to_z": Block(m2_to_z=1, dest_to_z=1),
    "the displacement -2097153 is not one of 22 bits": Block(imm_to_k=1, imm=2**32 - 2**21 - 1),
    "destination has 2 sources: wr_reg, wr_pred": Block(wr_reg=1, wr_pred=1, dest_pred=1),
    "destination has 2 sources: wr_uni, wr_bound": Block(visit=1, scalar=1, wr_uni=1, wr_bound=1),
    "predicate or memory destination has 2 sources: wr_pred, wr_mem": Block(wr_pred=1, wr_mem=1, dest_pred=1),
    "memory destination has 2 sources: wr_bound, wr_mem2": Block(wr_bound=1, wr_mem2=1),
    "store has 2 sources: wr_mem, wr_mem2": Block(wr_mem=1, wr_mem2=1),
    "dest has 2 sources: dest_to_z, wr_uni": Block(dest_to_z=1, wr_uni=1),
    "successor has 2 sources: branch_any, skip_idle": Block(branch_any=1, skip_idle=1),
    "end has 2 sources: next_exit, fall": Block(next_exit=1, fall=1, next=1),
    "predicate 2 has no bound": Block(visit=1, scalar=1, wr_bound=1, dest_pred=2),
    "it writes predicate 0, which is not stored": Block(visit=1, wr_pred=1),
    "wr_bound in a block that is not scalar": Block(visit=1, wr_bound=1, dest_pred=1),
    "it falls to block 2, which is not the next of its 32": Block(fall=1, next=2),
    "it falls to block 0, which is not the next of its 32": Block(fall=1, next=0),
    "taken is block 9 of 7": Block(skip_idle=1, taken=9),
    "e = 32 does not fit 5 bits": Block(e=32, e_to_d2=1),
    "dest = 3 is not a row of warp 0": Block(dest=3, dest_to_z=1),
}


@pytest.mark.parametrize("message", WRONG_BLOCKS)
def test_blocks_that_no_machine_defines(message: str) -> None:
    blocks = (WRONG_BLOCKS[message], *TRIANGLE.blocks[1:])
    with pytest.raises(ProgramError, match="block 0: " + re.escape(message)):
        verify_kernel(replace(TRIANGLE, blocks=blocks), SMALL)


def test_a_run_ends_where_its_blocks_do() -> None:
    """A block falls within 32 blocks that begin at a multiple of 32."""
    blocks = [Block(fall=1, next=number + 1) for number in range(40)]
    kernel = replace(
        TRIANGLE, blocks=(*blocks, Block(next_exit=1)), lines=machine_kernels.lines(41), preloads=()
    )
    with pytest.raises(ProgramError, match="block 31: it falls to block 32, which is not the next of its 32"):
        verify_kernel(kernel, SMALL)
    whole = (*blocks[:31], Block(next=32), *blocks[32:], Block(next_exit=1))
    verify_kernel(replace(kernel, blocks=whole), SMALL)


def test_the_accumulator_port_reads_the_first_rows_alone() -> None:
    """The rows of every warp have to be among them."""
    machine = replace(SMALL, accumulator_rows=8)
    for row, right in ((6, True), (8, False)):
        kernel = machine_kernels.kernel("k", [Block(dest_to_z=1, dest=row, next_exit=1)], [], [])
        if right:
            verify_kernel(kernel, machine)
            continue
        with pytest.raises(ProgramError, match="reads 8 rows"):
            verify_kernel(kernel, machine)


@pytest.mark.parametrize("field", ["flat", "single"])
def test_variants_are_checked_like_blocks(field: str) -> None:
    for variant, message in (
        ((7, Block()), "a variant of block 7 of 7"),
        ((2, Block(next=9)), "block 2: next is block 9 of 7"),
        ((2, Block(fall=1, next=2)), "block 2: it falls to block 2, which is not the next"),
    ):
        with pytest.raises(ProgramError, match=message):
            verify_kernel(replace(TRIANGLE, **{field: (variant,)}), SMALL)  # pyright: ignore


def test_kernels_of_one_name_are_refused() -> None:
    with pytest.raises(ProgramError, match="two kernels are called 'triangle'"):
        verify_program(machine_kernels.program(TRIANGLE, TRIANGLE))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": (HiddenBuffer("t", 2, b"abc"),)}, "'t' has 2 bytes and starts as 3"),
        ({"hidden": (HiddenBuffer("t", 2, uniform=1),)}, "uniform register 1 is both"),
        ({"printf": Printf(0, ("%d",))}, "hidden buffer 0 of 0"),
        ({"shared_arrays": (SharedArray("s", 4, 8),), "shared_bytes": 8}, "'s' ends beyond the 8 bytes"),
        ({"thread_block_end": 99}, "block 99 of"),
        ({"local_bytes": 6}, "6 bytes of local memory"),
        ({"messages": ((0, "n > 0"),)}, "block 0, which is to say 'n > 0', is no trap"),
    ],
)
def test_memory_that_no_launch_can_add_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        verify_kernel(replace(machine_kernels.vecadd(), **change), SMALL)  # pyright: ignore
