"""The host's side of a launch: what the prompt leaves in the machine, and what does not fit."""

import itertools
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import machine_kernels
from qgpu.backends.machine.block import Block, encode_block
from qgpu.backends.machine.description import DEFAULT, LARGE, SMALL, MachineDescription
from qgpu.backends.machine.host import (
    Dim3,
    Launch,
    LaunchError,
    Region,
    build_launch,
    launch_value,
    read_tokens,
    thread_value,
)
from qgpu.backends.machine.program import Kernel, Parameter, Preload
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.machine.verify import ProgramError
from qgpu.backends.reference.machine import Machine


def after_prompt(launch: Launch) -> Machine:
    machine = Machine(launch.machine)
    for token in launch.prompt:
        machine.step(token)
    return machine


def special(machine: MachineDescription, *names: str) -> Kernel:
    """A kernel that asks for special registers: of a thread in r0, r1, ..., of a launch in u4, ..."""
    row = [machine_kernels.row(machine, register) for register in range(4)]
    threads = [name for name in names if name[:3] in ("tid", "lan", "war")]
    launches = [name for name in names if name not in threads]
    blocks = [Block(next_exit=1)]
    blocks += [machine_kernels.each(0, wr_reg=1, dest=row[n], next_exit=1) for n in range(len(threads))]
    preloads = [Preload(name, block=n) for n, name in enumerate(threads, 1)]
    preloads += [Preload(name, uniform=n) for n, name in enumerate(launches, 4)]
    return machine_kernels.kernel("special", blocks, [], preloads, machine=machine)


@pytest.mark.parametrize("machine", [SMALL, DEFAULT, LARGE])
def test_the_program_arrives(machine: MachineDescription) -> None:
    kernel = machine_kernels.vecadd(machine)
    state = after_prompt(build_launch(machine, kernel, (1, 1, 1), (1, 1, 1), [b"", b"", b"", 0]))
    assert state.rom[: len(kernel.blocks)] == [encode_block(block, machine) for block in kernel.blocks]
    assert set(state.rom[len(kernel.blocks) :]) == {None}


@pytest.mark.parametrize("grid", [(1, 1, 1), (2, 1, 1), (1, 1, 3)])
@pytest.mark.parametrize("block", [(4, 1, 1), (4, 2, 1), (2, 1, 3)])
def test_the_program_is_that_of_the_launch(grid: Dim3, block: Dim3) -> None:
    """Variants take the place of blocks where the thread block has one dimension, or the grid one block."""
    kernel = machine_kernels.vecadd_flat()
    launch = build_launch(SMALL, kernel, grid, block, [b"", b"", b"", 0])
    expected = dict(enumerate(kernel.blocks))
    expected |= dict(kernel.flat) if block[1:] == (1, 1) else {}
    expected |= dict(kernel.single) if grid == (1, 1, 1) else {}
    assert launch.program == tuple(expected.values())
    sent = after_prompt(launch).rom[: len(expected)]
    assert sent == [encode_block(block, SMALL) for block in launch.program]
    assert launch.kernel == kernel


def test_a_row_that_differs_little_takes_few_tokens() -> None:
    stages = []
    for changed in (0, 1):
        blocks = (Block(next_exit=1), Block(next_exit=1, branch_any=changed))
        kernel = machine_kernels.kernel("k", list(blocks), [], [])
        prompt = build_launch(SMALL, kernel, (1, 1, 1), (1, 1, 1), []).prompt
        ids = vocabulary(SMALL)
        stages.append(sum(ids.token(token).kind == "stage" for token in prompt))
    assert stages[1] == stages[0] + 1


contents = st.lists(st.integers(0, 2**32 - 1) | st.sampled_from([0, 0, 0, 1, 2047, 2048]), max_size=40)


@given(contents, contents, st.integers(0, 3))
def test_buffers_arrive_side_by_side(first: list[int], second: list[int], odd: int) -> None:
    data = [struct.pack(f"<{len(words)}I", *words) for words in (first, second)]
    data[0] += b"\xab" * odd
    parameters = [Parameter("a", "u8", True, (1,)), Parameter("b", "u32", True, (2,))]
    kernel = machine_kernels.kernel("k", [Block(next_exit=1)], parameters, [])
    launch = build_launch(SMALL, kernel, (1, 1, 1), (1, 1, 1), data, shared_bytes=20)
    state = after_prompt(launch)
    memory = b"".join(word.to_bytes(4, "little") for word in state.memory)
    regions = [*launch.buffers, launch.shared]
    for number, (region, content) in enumerate(zip(regions, [*data, bytes(20)], strict=True), 1):
        assert region is not None
        assert region.address % 16 == 0
        assert region.size == len(content)
        assert memory[region.address : region.address + region.size] == content
        if number < 3:
            assert state.uniforms[number] == region.size << 14 | region.address // 16
    places = sorted((r.address, r.address + r.size) for r in regions if r)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(places))


def test_scalars_take_the_width_of_their_parameter() -> None:
    values = {
        "i8": -3,
        "u8": 253,
        "i16": -300,
        "u16": 65236,
        "i32": -1,
        "u32": 2**32 - 1,
        "i64": -2,
        "u64": 2**40 + 7,
    }
    registers = iter(range(1, 31))
    parameters = [
        Parameter(kind, kind, False, tuple(next(registers) for _ in range(2 if "64" in kind else 1)))
        for kind in values
    ]
    kernel = machine_kernels.kernel("k", [Block(next_exit=1)], parameters, [])
    state = after_prompt(build_launch(SMALL, kernel, (1, 1, 1), (1, 1, 1), list(values.values())))
    held = dict(zip(values, (tuple(state.uniforms[u] for u in p.uniform) for p in parameters), strict=True))
    top = 2**32
    assert held == {
        "i8": (top - 3,), "u8": (253,), "i16": (top - 300,), "u16": (65236,), "i32": (top - 1,),
        "u32": (top - 1,), "i64": (top - 2, top - 1), "u64": (7, 256),
    }  # fmt: skip


@pytest.mark.parametrize("machine", [SMALL, DEFAULT, LARGE])
@pytest.mark.parametrize("block", [(1, 1, 1), (5, 1, 1), (2, 3, 1), (1, 2, 3), (2, 2, 2)])
def test_special_registers(machine: MachineDescription, block: Dim3) -> None:
    names = (
        "tid.x",
        "tid.y",
        "tid.z",
        "laneid",
        "ntid.x",
        "ntid.z",
        "-nctaid.y",
        "nctaid.total",
        "ctaid.x",
        "const:-9",
    )
    kernel = special(machine, *names)
    state = after_prompt(build_launch(machine, kernel, (3, 2, 1), block, []))
    threads = [(x, y, z) for z in range(block[2]) for y in range(block[1]) for x in range(block[0])]
    for number, thread in enumerate(threads):
        warp, lane = divmod(number, machine.lanes)
        rows = [register * kernel.warp_stride + warp for register in range(4)]
        assert [state.registers[row][lane] for row in rows] == [*thread, lane]
    assert state.bounds == [len(threads), 0]
    assert not any(any(masks) for masks in state.predicates)
    assert state.warps == -(-len(threads) // machine.lanes)
    assert state.uniforms[4:10] == [block[0], block[2], 2**32 - 2, 6, 0, 2**32 - 9]


def test_values_of_special_registers() -> None:
    assert [thread_value("warpid", thread, 4, (5, 2, 1)) for thread in (0, 3, 4, 9)] == [0, 0, 1, 2]
    shared = Region(32, 8)
    assert launch_value("shared", (1, 1, 1), (1, 1, 1), shared) == 8 << 14 | 2
    assert launch_value("ntid.total", (1, 1, 1), (2, 3, 4), shared) == 24
    with pytest.raises(LaunchError, match="asks the host for 'clock', which it does not know"):
        launch_value("clock", (1, 1, 1), (1, 1, 1), shared)


def test_a_whole_memory_of_buffers_and_empty_shared_memory() -> None:
    full = replace(SMALL, name="full", memory_words=1 << 16)
    kernel = machine_kernels.one_access(full)
    launch = build_launch(
        full, replace(kernel, shared_bytes=0), (1, 1, 1), (1, 1, 1), [bytes((1 << 18) - 4), 0]
    )
    assert launch.shared.descriptor == 0
    with pytest.raises(LaunchError, match="a buffer has at most 262143 bytes"):
        build_launch(full, kernel, (1, 1, 1), (1, 1, 1), [bytes(1 << 18), 0])


VECADD = machine_kernels.vecadd()
BUFFER = bytes(32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arguments": [BUFFER, BUFFER, 3]}, "takes 4 arguments; 3 are given"),
        (
            {"arguments": [BUFFER, 3, BUFFER, 3]},
            "argument 2 of kernel .* is a scalar; parameter 'b' is a buffer",
        ),
        ({"arguments": [BUFFER] * 4}, "argument 4 of kernel .* is a buffer; parameter 'n' is a scalar"),
        (
            {"arguments": [bytes(400), bytes(400), bytes(1), 3]},
            "needs 201 words of memory; machine 'small' has 128",
        ),
        ({"shared_bytes": 500}, "needs 149 words of memory; machine 'small' has 128"),
        ({"block": (9, 1, 1)}, "blocks of 9 threads: .* runs blocks of at most 8 on machine 'small'"),
        ({"block": (0, 1, 1)}, "block 0,1,1: each of x, y, z must be 1 to 2147483647"),
        ({"grid": (1, 1, 2**31)}, "grid 1,1,2147483648"),
        ({"grid": (1, 1 << 23, 1), "block": (1, 64, 1)}, "fewer than 536870912 threads an axis"),
        ({"kernel": replace(VECADD, max_threads=4)}, "states a bound of 4"),
    ],
)
def test_launches_that_do_not_fit(change: dict[str, object], message: str) -> None:
    launch = {
        "kernel": VECADD,
        "grid": (1, 1, 1),
        "block": (8, 1, 1),
        "arguments": [BUFFER, BUFFER, BUFFER, 3],
    }
    with pytest.raises(LaunchError, match=message):
        build_launch(SMALL, **{**launch, **change})  # pyright: ignore[reportArgumentType]


def test_a_kernel_for_another_machine() -> None:
    with pytest.raises(ProgramError, match="kernel '_Z6vecaddPKiS0_Pii': "):
        build_launch(replace(SMALL, rom_blocks=4), VECADD, (1, 1, 1), (8, 1, 1), [BUFFER, BUFFER, BUFFER, 3])


@pytest.mark.parametrize(("address", "count"), [(2, 1), (0, 5), (0, 0), (-4, 1), (508, 2)])
def test_reads_that_are_none(address: int, count: int) -> None:
    with pytest.raises(LaunchError, match="cannot read"):
        read_tokens(SMALL, address, count)
