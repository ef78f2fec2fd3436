"""Thread blocks and grids of every shape that a machine allows."""

import pytest

from codegen_runs import after, made, reversal, words
from qgpu.backends.machine.description import DEFAULT, LARGE, MachineDescription
from qgpu.backends.machine.host import Dim3, LaunchError

INDEXED = """kernel @k(%out: ptr<global>) attributes {linearised: true} {
entry:
  %x = sreg tid.x : i32
  %y = sreg tid.y : i32
  %z = sreg tid.z : i32
  %nx = sreg ntid.x : i32
  %ny = sreg ntid.y : i32
  %nz = sreg ntid.z : i32
  %bx = sreg ctaid.x : i32
  %by = sreg ctaid.y : i32
  %bz = sreg ctaid.z : i32
  %gx = sreg nctaid.x : i32
  %gy = sreg nctaid.y : i32
  %warp = sreg warpid : i32
  %lane = sreg laneid : i32
  %a0 = mul %z, %ny : i32
  %a1 = add %a0, %y : i32
  %a2 = mul %a1, %nx : i32
  %t = add %a2, %x : i32
  %b0 = mul %bz, %gy : i32
  %b1 = add %b0, %by : i32
  %b2 = mul %b1, %gx : i32
  %b = add %b2, %bx : i32
  %n0 = mul %nx, %ny : i32
  %n = mul %n0, %nz : i32
  %i0 = mul %b, %n : i32
  %i = add %i0, %t : i32
  %p = ptradd %out, %i {scale: 4, disp: 0, signed: true} : ptr<global>
  %w = mul %warp, i32 32 : i32
  %linear = add %w, %lane : i32
  %same = icmp eq %linear, %t : i1
  %v = select %same, %i, i32 -1 : i32
  %old = atomicrmw add %p, %v : i32
  ret
}
"""


@pytest.mark.parametrize(
    ("machine", "grid", "block"),
    [
        (LARGE, (1, 1, 1), (1024, 1, 1)),
        (LARGE, (2, 1, 1), (32, 32, 1)),
        (LARGE, (1, 3, 2), (7, 11, 13)),
        (LARGE, (3, 2, 4), (33, 1, 1)),
        (LARGE, (1, 1, 5), (1, 1, 64)),
        (DEFAULT, (2, 2, 2), (4, 4, 6)),
    ],
)
def test_every_thread_of_every_block_runs_once(machine: MachineDescription, grid: Dim3, block: Dim3) -> None:
    threads = grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2]
    kernel = made(INDEXED, machine)
    (out,) = after(kernel, [bytes(4 * threads)], block, grid, machine)
    assert out == list(range(threads))


def test_a_long_grid_in_every_dimension() -> None:
    """A grid of more thread blocks than any of its dimensions has, of which nothing is stored."""
    text = """kernel @k(%out: ptr<global>) attributes {linearised: true} {
entry:
  %y = sreg ctaid.y : i32
  %z = sreg ctaid.z : i32
  %v = add %y, %z : i32
  %old = atomicrmw add %out, %v : i32
  ret
}
"""
    (out,) = after(made(text), [words(0)], (1, 1, 1), (5, 40, 30))
    assert out == [5 * sum(y + z for y in range(40) for z in range(30))]


def test_a_block_too_large_for_the_registers_says_what_to_do() -> None:
    kernel = made(reversal(12), DEFAULT)
    most = kernel.warp_stride * 32
    assert most == 256
    with pytest.raises(LaunchError) as raised:
        after(kernel, [bytes(4)], (512, 1, 1), machine=DEFAULT)
    assert f"runs blocks of at most {most} on machine 'default'; compile it with -maxrregcount 8" in str(
        raised.value
    )


def test_a_stated_bound_lets_the_block_run() -> None:
    text = INDEXED.replace("{linearised: true}", "{linearised: true, max_threads: 128}")
    kernel = made(text, DEFAULT)
    (out,) = after(kernel, [bytes(4 * 128)], (128, 1, 1), machine=DEFAULT)
    assert out == list(range(128))
