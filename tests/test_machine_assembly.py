"""The text of machine code: what a block does can be read off its line."""

import pytest

import machine_kernels
from qgpu.backends.machine.assembly import block_text, program_text
from qgpu.backends.machine.block import Block

TEXTS = {
    "; next 3": Block(next=3),
    "@p0 @p2 !p1 all  r3 = mad x=mem[u3 + r2*4] y=1 z=r1 ; next 4": Block(
        visit=1, all_warps=1, guard_true=5, guard_false=2, a=8, a_thread=1, a_to_i4=1, c=3, c_to_d=1,
        m_to_x=1, one_to_y=1, b=4, b_thread=1, b_to_z=1, check=1, wr_reg=1, dest=12, next=4,
    ),
    "scalar  u9 = cmp.ne.u x=7 y=u2 ; exit, taken 1": Block(
        visit=1, scalar=1, imm_to_x=1, imm=7, op="cmp", b_uniform=1, b=2, b_to_y=1, cond_lt=1, cond_gt=1,
        wr_uni=1, dest=9, branch_any=1, taken=1, next_exit=1,
    ),
    "@p0 warp0  trap barrier ; next 3": Block(visit=1, trap=1, imm=2, guard_true=1, next=3),
    "all  mem[u3 + unsigned r1 + 3] = merge.8 x=mem[u3 + unsigned r1 + 3] y=-1 ; exit": Block(
        visit=1, all_warps=1, op="merge", width8=1, check=1, m_to_x=1, wr_mem=1, a=4, a_thread=1, a_to_i=1,
        i_unsigned=1, imm=3, imm_to_j=1, c=3, c_to_d=1, ones_to_y=1, next_exit=1,
    ),
    "all  p3 = mad x=raw.s16[u5] y=1 ; next 0": Block(
        visit=1, all_warps=1, a=5, a_uniform=1, a_to_d=1, m_sub_to_x=1, m_signed=1, width16=1, one_to_y=1,
        wr_pred=1, dest_pred=3,
    ),
    "@p0 @p1 all  raw2[r1*4] = mad x=mem[u1 + r1*4 + u5*4] y=u2 ; falls to 8, idle 9": Block(
        visit=1, all_warps=1, guard_true=3, a=4, a_thread=1, a_to_i4=1, c=1, c_to_d=1, check=1, m_to_x=1,
        e=5, e_to_j4=1, b=2, b_uniform=1, b_to_y=1, wr_mem2=1, i_to_k=1, next=8, fall=1, skip_idle=1, taken=9,
    ),
    "all  r2 = mad x=r1 y=mem[u3 + u9] z=r2 ; falls to 1, taken 4": Block(
        visit=1, all_warps=1, a=4, a_thread=1, a_to_x=1, c=3, c_to_d=1, e=9, e_to_j=1, check=1, m_to_y=1,
        dest_to_z=1, wr_reg=1, dest=8, next=1, fall=1, branch_any=1, taken=4,
    ),
    "all  r0 = mad x=mem[u1 + r0*4] y=1 z=mem2[u2 + r0*4] ; exit, idle 3": Block(
        visit=1, all_warps=1, a_thread=1, a_to_i4=1, c=1, c_to_d=1, check=1, m_to_x=1, one_to_y=1,
        m2_to_z=1, e=2, e_to_d2=1, i_to_k=1, check2=1, wr_reg=1, next_exit=1, skip_idle=1, taken=3,
    ),
    "all  mem2[u2 + 8] = mad x=r0 y=1 z=mem2[u2 + 8] ; next 0": Block(
        visit=1, all_warps=1, a_thread=1, a_to_x=1, one_to_y=1, m2_to_z=1, e=2, e_to_d2=1, imm=8,
        imm_to_k=1, check2=1, wr_mem2=1,
    ),
    "all  mad checking mem2[u2 + r0] ; next 0": Block(
        visit=1, all_warps=1, a_thread=1, a_to_i=1, e=2, e_to_d2=1, i_to_k=1, check2=1,
    ),
    "scalar  bound1 = mad x=u6 y=u8 z=u4 ; falls to 2": Block(
        visit=1, scalar=1, a=6, a_uniform=1, a_to_x=1, c=8, c_to_y=1, b=4, b_uniform=1, b_to_z=1,
        wr_bound=1, dest_pred=1, next=2, fall=1,
    ),
    "all  r0 = lop3[0x96] x=r1 y=u2 z=0x12345678 ; next 0": Block(
        visit=1, all_warps=1, op="lop3", lut=0x96, a=4, a_thread=1, a_to_x=1, c=2, c_to_y=1, imm_to_z=1,
        imm=0x12345678, wr_reg=1,
    ),
    "all  u32[lane] = mad ; next 0": Block(visit=1, all_warps=1, wr_uni=1, dest=32, dest_lane=1),
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_block_text(text: str) -> None:
    assert block_text(TEXTS[text], 4) == text


def test_program_text() -> None:
    text = program_text(machine_kernels.program(machine_kernels.vecadd()))
    lines = text.splitlines()
    assert lines[0].startswith("# machine 'small': 4 lanes, 2 warps, ")
    assert lines[2] == "kernel _Z6vecaddPKiS0_Pii(i32* a: u1, i32* b: u2, i32* c: u3, i32 n: u4)"
    assert "  preload tid.x: block 7" in lines
    assert "  2: @p0 @p1 all  r2 = mad x=mem[u1 + r1*4] y=1 ; next 3  # k.cu:3:1" in lines
    assert text.count("# k.cu:") == 8


def test_what_the_host_may_send_instead_is_listed() -> None:
    lines = program_text(machine_kernels.program(machine_kernels.vecadd_flat())).splitlines()
    assert "  flat thread block: 1: scalar  bound1 = mad x=u6 y=u8 z=u4 ; falls to 2" in lines
    assert "  one thread block: 4: ; exit" in lines
