"""PTX instructions that a launch executes: counts that can be made by hand."""

import pytest

from qgpu.runtime.bench.instructions import executed_instructions
from qgpu.runtime.bench.workloads import workload
from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.ptx.counting import block_sizes

PTX = """
.version 9.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra $DONE;
    @%p1 add.u32 %r2, %r2, 1;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd2, %rd1, %rd2;
    st.global.u32 [%rd2], %r2;
$DONE:
    ret;
}
"""


def test_blocks_have_their_instructions() -> None:
    """A branch counts where it stands; a guarded instruction only in the block that its guard leads to."""
    assert block_sizes(Source("k.ptx", PTX), "k") == [5, 0, 1, 3, 1]


@pytest.mark.parametrize(
    ("size", "threads_in", "threads_out"), [(8, 8, 0), (64, 64, 0), (65, 65, 31), (100, 100, 28)]
)
def test_every_thread_counts(size: int, threads_in: int, threads_out: int) -> None:
    """vecadd: 22 instructions, of which a thread beyond the end executes 10 up to the branch, and ret."""
    assert executed_instructions(workload("vecadd", size)) == 22 * threads_in + 11 * threads_out
