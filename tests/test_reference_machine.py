"""The reference machine, token by token, and launches of kernels assembled by hand."""

import struct
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import machine_kernels
from qgpu.backends.machine.block import Block, encode_block
from qgpu.backends.machine.description import DEFAULT, SMALL, MachineDescription
from qgpu.backends.machine.host import Launch, build_launch, read_requests, read_tokens
from qgpu.backends.machine.program import Kernel, Preload, SourceLine
from qgpu.backends.machine.tokens import stage_slices, vocabulary
from qgpu.backends.reference.machine import Machine
from qgpu.backends.reference.run import RunawayError, generate, run_launch

IDS = vocabulary(SMALL)


def pack(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def unpack(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 4}i", data))


def names(tokens: Sequence[int | None]) -> str:
    return " ".join("?" if token is None else IDS.name(token)[1:-1] for token in tokens)


def launch_of(kernel: Kernel, threads: int, *arguments: int | bytes, grid: int = 1) -> Launch:
    return build_launch(SMALL, kernel, (grid, 1, 1), (threads, 1, 1), arguments)


def feed(machine: Machine, tokens: Sequence[int]) -> list[int | None]:
    return [machine.step(token) for token in tokens]


@pytest.mark.parametrize(("machine", "n", "grid"), [(SMALL, 8, 1), (SMALL, 7, 3), (DEFAULT, 75, 2)])
def test_vecadd(machine: MachineDescription, n: int, grid: int) -> None:
    a = [3 * i - 7 for i in range(n)]
    b = [100_000 * i for i in range(n)]
    kernel = machine_kernels.vecadd(machine)
    block = -(-n // grid)
    launch = build_launch(machine, kernel, (grid, 1, 1), (block, 1, 1), [pack(a), pack(b), bytes(4 * n), n])
    trace = run_launch(launch)
    region = launch.buffers[2]
    assert region is not None
    assert unpack(trace.buffer(region)) == [x + y for x, y in zip(a, b, strict=True)]
    assert trace.fault is None


def test_threads_leave_a_loop_one_by_one() -> None:
    trace = run_launch(launch_of(machine_kernels.triangle(), 7, bytes(28)))
    assert unpack(trace.buffer(trace.launch.buffers[0]))[:7] == [0, 1, 3, 6, 10, 15, 21]  # pyright: ignore


def test_generated_tokens_of_a_small_launch() -> None:
    """Every thread stores its tid; lanes without a thread are passed over."""
    kernel = machine_kernels.one_access(a=0, a_thread=1, a_to_x=1, a_to_i4=1, one_to_y=1, c=1, c_to_d=1,
                                        check=1, wr_mem=1)  # fmt: skip
    trace = run_launch(launch_of(kernel, 3, bytes(12), 0))
    assert names(trace.generated) == "last:0 last:1 last:2 exit"
    trace = run_launch(launch_of(kernel, 6, bytes(24), 0))
    assert names(trace.generated) == "last:0 last:1 last:2 last:3 warp:1 last:4 last:5 exit"


def test_lanes_out_of_the_guard_are_passed_over() -> None:
    blocks = [
        machine_kernels.each(op="lop3", lut=0xC0, a_thread=1, a_to_x=1, imm=1, imm_to_y=1,
                             wr_pred=1, dest_pred=1, next=1),
        machine_kernels.each(3, imm=9, imm_to_z=1, wr_reg=1, dest=2, next=2),
        machine_kernels.each(1, 2, imm=5000, imm_to_z=1, wr_reg=1, dest=2, next_exit=1),
        machine_kernels.each(0, wr_reg=1, next_exit=1),
    ]  # fmt: skip
    kernel = machine_kernels.kernel("k", blocks, [], [Preload("tid.x", block=3)])
    trace = run_launch(launch_of(kernel, 6))
    assert names(trace.generated) == (
        "last:0 last:2050 last:0 last:2050 warp:1 last:0 last:2050"
        " exec:1 lane:1 last:9 lane:3 last:9 warp:1 lane:1 last:9"
        " exec:2 more:904 last:1 lane:2 more:904 last:1 warp:1 more:904 last:1 exit"
    )


@pytest.mark.parametrize(("grid", "block"), [(1, (7, 1, 1)), (2, (6, 1, 1)), (1, (4, 2, 1)), (4, (3, 2, 1))])
def test_launches_of_the_kernel_of_few_tokens(grid: int, block: tuple[int, int, int]) -> None:
    """The variants that the host sends: over one thread block and several, of one dimension and of two."""
    n = min(7, grid * block[0])
    numbers = [pack(range(n)), pack(range(100, 100 + n)), bytes(4 * n), n]
    kernel = machine_kernels.vecadd_flat()
    trace = run_launch(build_launch(SMALL, kernel, (grid, 1, 1), block, numbers))
    assert unpack(trace.buffer(trace.launch.buffers[2])) == [100 + 2 * i for i in range(n)]  # pyright: ignore
    whole = run_launch(build_launch(SMALL, replace(kernel, flat=(), single=()), (grid, 1, 1), block, numbers))
    assert whole.memory == trace.memory
    assert (len(whole.generated) > len(trace.generated)) == (grid == 1 or block[1] == 1)


def test_a_block_falls_to_the_next_with_its_last_lane() -> None:
    """The last of several parts is FINAL too, and the next block begins at lane 0 of warp 0."""
    blocks = [
        machine_kernels.each(a_thread=1, a_to_x=1, imm=3000, imm_to_y=1, wr_reg=1, next=1, fall=1),
        machine_kernels.scalar(imm=7, imm_to_z=1, wr_uni=1, dest=3, next=2, fall=1),
        machine_kernels.each(next_exit=1),
        machine_kernels.each(0, wr_reg=1, next_exit=1),
    ]
    kernel = machine_kernels.kernel("k", blocks, [], [Preload("tid.x", block=3)])
    trace = run_launch(launch_of(kernel, 6))
    assert names(trace.generated) == (
        "last:0 more:3000 last:0 more:1904 last:1 more:808 last:2 warp:1 more:3808 last:2 more:2712 final:3"
        " final:7 last:0 last:0 last:0 last:0 warp:1 last:0 last:0 exit"
    )
    assert names(run_launch(launch_of(kernel, 2)).generated) == (
        "last:0 more:3000 final:0 final:7 last:0 last:0 exit"
    )


def test_a_final_part_is_committed() -> None:
    machine = Machine(SMALL)
    kernel = machine_kernels.kernel(
        "k",
        [
            machine_kernels.scalar(imm=123456, imm_to_z=1, wr_uni=1, dest=5, next=1, fall=1),
            machine_kernels.scalar(imm=0xFFFFFFFF, imm_to_z=1, wr_uni=1, dest=6, next=2, fall=1),
            machine_kernels.scalar(a=5, a_uniform=1, a_to_x=1, one_to_y=1, wr_uni=1, dest=7, next_exit=1),
        ],
        [],
        [],
    )
    generate(machine, feed(machine, launch_of(kernel, 1).prompt)[-1])
    assert machine.uniforms[5:8] == [123456, 2**32 - 1, 123456]
    assert (machine.block, machine.lane) == (2, 1)


def test_lanes_that_are_passed_over_do_not_end_a_block() -> None:
    """FINAL is what the last active lane gives, in whichever warp that is the last."""
    blocks = [
        machine_kernels.each(op="cmp", cond_lt=1, a_thread=1, a_to_x=1, c=2, c_to_y=1, wr_pred=1, dest_pred=2,
                             next=1, fall=1),
        machine_kernels.each(1 | 4, imm=9, imm_to_z=1, next=2, fall=1),
        Block(next_exit=1),
        machine_kernels.each(0, wr_reg=1, next_exit=1),
    ]  # fmt: skip
    parameters = list(machine_kernels.one_access().parameters)
    kernel = machine_kernels.kernel("k", blocks, parameters, [Preload("tid.x", block=3)])

    def after(threads: int, below: int) -> str:
        generated = names(run_launch(launch_of(kernel, threads, b"", below)).generated)
        return generated.partition("final:")[2].partition(" ")[2]

    assert after(3, 2) == "last:9 final:9 exit"
    assert after(3, 3) == "last:9 last:9 final:9 exit"
    assert after(6, 5) == "last:9 last:9 last:9 last:9 warp:1 final:9 exit"
    assert after(6, 2) == "last:9 last:9 warp:1 exec:2 exit", "the last warp has no active lane"
    assert after(3, 0) == "exec:2 exit", "no lane at all"


def test_a_block_that_branches_falls_if_no_result_was_set() -> None:
    blocks = [
        machine_kernels.each(op="cmp", cond_eq=1, a_thread=1, a_to_x=1, c=2, c_to_y=1, branch_any=1, taken=2,
                             next=1, fall=1),
        machine_kernels.scalar(imm=5, imm_to_z=1, next_exit=1),
        machine_kernels.scalar(imm=77, imm_to_z=1, next_exit=1),
        machine_kernels.each(0, wr_reg=1, next_exit=1),
    ]  # fmt: skip
    parameters = list(machine_kernels.one_access().parameters)
    kernel = machine_kernels.kernel("k", blocks, parameters, [Preload("tid.x", block=3)])

    def generated(thread: int) -> str:
        return names(run_launch(launch_of(kernel, 3, b"", thread)).generated)

    assert generated(0) == "last:1 last:0 last:0 exec:2 last:77 exit"
    assert generated(2) == "last:0 last:0 last:1 exec:2 last:77 exit"
    assert generated(9) == "last:0 last:0 final:0 last:5 exit"


def test_a_run_is_32_blocks() -> None:
    """The block number is a run and a place in it: FINAL in the last place would go to the run's first."""
    machine, rows = Machine(SMALL), {0: 50, 32: 60, 62: 70, 63: 80}
    for number, value in rows.items():
        block = machine_kernels.scalar(imm=value, imm_to_z=1, next=(number + 1) % 64, fall=1)
        load_row(machine, block, number)
    assert names(feed(machine, [IDS.id("exec", 62)])) == "final:70"
    assert names(feed(machine, [IDS.id("final", 70), IDS.id("final", 80)])) == "final:80 final:60"
    assert machine.block == 32


def load_row(machine: Machine, block: Block, number: int) -> None:
    """Write a program row directly."""
    bits = encode_block(block, SMALL)
    for index in range(stage_slices(SMALL)):
        piece = bits[36 * index : 36 * index + 36]
        value = sum(bit << i for i, bit in enumerate(piece))
        feed(machine, [IDS.id("more", value >> 12 * part & 4095) for part in range(3)])
        machine.step(IDS.id("stage", index))
    machine.step(IDS.id("rom", number))


def test_idle_blocks_are_skipped() -> None:
    """Blocks of one guard are passed over by one token; a visit counts, whatever its result."""
    guarded = {"imm_to_z": 1, "wr_reg": 1, "dest": 2, "skip_idle": 1, "taken": 3, "fall": 1}
    blocks = [
        machine_kernels.each(op="cmp", cond_eq=1, a_thread=1, a_to_x=1, c=2, c_to_y=1, wr_pred=1, dest_pred=3,
                             next=1, fall=1),
        machine_kernels.each(1 | 8, **guarded, next=2),
        machine_kernels.each(1 | 8, **guarded, next=3),
        machine_kernels.scalar(imm=4, imm_to_z=1, next_exit=1),
        machine_kernels.each(0, wr_reg=1, next_exit=1),
    ]  # fmt: skip
    parameters = list(machine_kernels.one_access().parameters)
    kernel = machine_kernels.kernel("k", blocks, parameters, [Preload("tid.x", block=4)])

    def tail(threads: int, thread: int) -> str:
        return names(run_launch(launch_of(kernel, threads, b"", thread)).generated[threads:])

    assert tail(3, 9) == "exec:3 last:4 exit"
    assert tail(3, 0) == "final:0 final:0 last:4 exit"
    assert tail(3, 2) == "lane:2 final:0 lane:2 final:0 last:4 exit"
    assert (
        names(run_launch(launch_of(kernel, 6, b"", 9)).generated[-5:]) == "final:0 warp:1 exec:3 last:4 exit"
    )


FLAGS = machine_kernels.scalar(wr_bound=1, dest_pred=1, next_exit=1)


@pytest.mark.parametrize("bound", [-(2**31), -1, 0, 1, 3, 4, 5, 7, 8, 9, 100, 2**31 - 1])
@pytest.mark.parametrize("guards", [(2, 0), (0, 2)])
def test_a_bound_is_of_thread_numbers(bound: int, guards: tuple[int, int]) -> None:
    """Predicate 1 holds in the threads below its bound, which is signed."""
    machine = Machine(SMALL)
    load_row(machine, FLAGS, 0)
    feed(machine, [IDS.firmware("threads"), *IDS.value(8), IDS.launch(2), *IDS.value(bound % 2**32)])
    assert machine.bounds == [8, bound]
    block = machine_kernels.each(1 | guards[0], guards[1], next_exit=1)
    found = []
    for warp in range(2):
        machine.warp = warp
        active = machine.active_lanes(block)
        found += [4 * warp + lane for lane in range(4) if active >> lane & 1]
    inside = [thread for thread in range(8) if thread < bound]
    assert found == (inside if guards[0] else [thread for thread in range(8) if thread >= bound])


def test_a_predicate_is_written_with_those_beside_it() -> None:
    """What leaves is all that is stored of the lane, and as top bit the new one, which is what `any` sees."""
    machine = Machine(SMALL)
    load_row(machine, machine_kernels.scalar(imm=6, imm_to_z=1, wr_pred=1, dest_pred=5, next_exit=1), 0)
    load_row(machine, machine_kernels.scalar(wr_pred=1, dest_pred=2, branch_any=1, taken=9, next=0), 1)
    load_row(machine, machine_kernels.scalar(wr_pred=1, dest_pred=1, branch_any=1, taken=9, next=0), 2)
    feed(machine, [IDS.launch(2), IDS.id("last", 0b1100)])
    assert [masks[0] & 1 for masks in machine.predicates] == [0, 0, 1, 1, 0, 0, 0, 0]
    assert names(feed(machine, [IDS.id("exec", 0)])) == f"last:{1 << 11 | 0b101100}"
    assert names(feed(machine, [IDS.id("last", 1 << 11 | 0b101101)])) == "exit"
    assert [masks[0] & 1 for masks in machine.predicates] == [0, 0, 1, 1, 0, 1, 0, 0], "0 is not stored"
    assert [masks[1] for masks in machine.predicates] == [0] * 8
    assert names(feed(machine, [IDS.id("exec", 1), IDS.id("last", 0b101000)])) == "last:40 exec:0"
    assert names(feed(machine, [IDS.id("exec", 2), IDS.id("last", 0b101000)])) == "last:40 exec:0"


def test_the_accumulator_is_the_destination_before() -> None:
    """Every thread adds to its register; beyond the rows that the port reads there is 0."""
    for row, expected in ((14, [10, 11, 12]), (16, [10, 10, 10])):
        machine = Machine(replace(SMALL, accumulator_rows=16))
        blocks = [
            machine_kernels.each(a_thread=1, a_to_x=1, one_to_y=1, wr_reg=1, dest=row, next=1, fall=1),
            machine_kernels.each(
                imm=10, imm_to_x=1, one_to_y=1, dest_to_z=1, wr_reg=1, dest=row, next_exit=1
            ),
            machine_kernels.each(0, wr_reg=1, next_exit=1),
        ]
        kernel = machine_kernels.kernel("k", blocks, [], [Preload("tid.x", block=2)])
        generate(machine, feed(machine, launch_of(kernel, 3).prompt)[-1])
        assert machine.registers[row][:3] == expected


def test_a_branch_is_taken_if_any_lane_of_any_warp_says_so() -> None:
    blocks = [
        machine_kernels.each(op="cmp", cond_eq=1, a_thread=1, a_to_x=1, c=2, c_to_y=1, branch_any=1, taken=2),
        machine_kernels.each(0, wr_reg=1, next_exit=1),
        machine_kernels.scalar(imm=77, imm_to_z=1, next_exit=1),
    ]
    blocks[0] = replace(blocks[0], next_exit=1)
    parameters = machine_kernels.one_access().parameters
    preloads = [Preload("tid.x", block=1)]
    kernel = machine_kernels.kernel("k", blocks, list(parameters), preloads)
    for thread in range(6):
        trace = run_launch(launch_of(kernel, 6, b"", thread))
        assert names(trace.generated[-3:]) == "exec:2 last:77 exit"
    assert names(run_launch(launch_of(kernel, 6, b"", 6)).generated[-2:]) == "last:0 exit"


def test_a_lane_sees_the_stores_of_the_lanes_before_it() -> None:
    """Every thread adds its tid to the same word."""
    kernel = machine_kernels.one_access(a_thread=1, a_to_x=1, one_to_y=1, c=1, c_to_d=1, check=1, wr_mem=1)
    block = replace(kernel.blocks[0], a_to_x=0, m_to_x=1, b_thread=1, b_to_z=1, a_thread=0)
    trace = run_launch(launch_of(replace(kernel, blocks=(block, kernel.blocks[1])), 7, pack([100]), 0))
    assert unpack(trace.buffer(trace.launch.buffers[0])) == [121]  # pyright: ignore[reportArgumentType]


def test_a_uniform_destination_keeps_the_last_lane() -> None:
    kernel = machine_kernels.one_access(a_thread=1, a_to_x=1, one_to_y=1, wr_uni=1, dest=5)
    machine = Machine(SMALL)
    launch = launch_of(kernel, 6, b"", 0)
    generate(machine, feed(machine, launch.prompt)[-1])
    assert machine.uniforms[5] == 5


FROM_BUFFER = {"a_thread": 1, "c": 1, "c_to_d": 1, "check": 1, "m_to_x": 1}
FAULTS: dict[str, tuple[dict[str, int], tuple[int, int, int]]] = {
    "out-of-bounds": ({**FROM_BUFFER, "a_to_i4": 1}, (0, 0, 1)),
    "misaligned": ({**FROM_BUFFER, "a_to_i": 1}, (0, 0, 1)),
    "trap": ({"trap": 1, "imm": 3}, (0, 0, 0)),
    "assert": ({"trap": 1, "imm": 4}, (0, 0, 0)),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_names_its_thread_and_line(kind: str) -> None:
    """The index is tid.z of a block of 2 x 2 x 2; the buffer has one word, or two."""
    fields, thread = FAULTS[kind]
    kernel = machine_kernels.one_access(SMALL, **fields)
    kernel = replace(kernel, preloads=(Preload("tid.z", block=1),))
    size = 8 if kind == "misaligned" else 4
    fault = run_launch(build_launch(SMALL, kernel, (1, 1, 1), (2, 2, 2), [bytes(size), 0])).fault
    assert fault is not None
    assert (fault.kind, fault.line, fault.machine_block) == (kind, SourceLine("k.cu", 1, 1), 0)
    assert (fault.thread, fault.block) == (thread, (0, 0, 0))


def test_a_fault_in_a_later_warp_and_thread_block() -> None:
    """vecadd with a bound too large by one: the last thread of the second block reads past the end."""
    data = pack(range(11))
    launch = launch_of(machine_kernels.vecadd(), 6, data, data, bytes(44), 12, grid=2)
    fault = run_launch(launch).fault
    assert fault is not None
    assert (fault.kind, fault.thread, fault.block, fault.line.line) == (
        "out-of-bounds",
        (5, 0, 0),
        (1, 0, 0),
        3,
    )


def test_a_runaway_is_stopped() -> None:
    kernel = machine_kernels.kernel("k", [Block(next=0)], [], [])
    with pytest.raises(RunawayError, match="after 50 tokens"):
        run_launch(launch_of(kernel, 1), limit=50)


@given(st.binary(max_size=200))
def test_memory_is_read_back_by_tokens(data: bytes) -> None:
    machine = Machine(SMALL)
    kernel = machine_kernels.one_access()
    launch = launch_of(kernel, 1, data, 0)
    feed(machine, launch.prompt)
    region = launch.buffers[0]
    assert region is not None
    words: list[int] = []
    for tokens, count in read_requests(SMALL, region):
        answer = generate(machine, feed(machine, tokens)[-1])
        assert IDS.name(answer.pop()) == "<exit>"
        words += parse_values(answer)
        assert len(words) % SMALL.lanes == count % SMALL.lanes
    assert b"".join(word.to_bytes(4, "little") for word in words)[: len(data)] == data


def parse_values(tokens: Sequence[int]) -> list[int]:
    values: list[int] = []
    parts: list[int] = []
    for token in tokens:
        parts.append(token)
        if IDS.token(token).kind == "last":
            values.append(IDS.parse_value(parts))
            parts = []
    assert not parts
    return values


def test_reading_part_of_a_row() -> None:
    assert names(read_tokens(SMALL, 40, 4)) == "addr last:40 read"
    assert names(read_tokens(SMALL, 40, 1)) == "addr last:28 read lane:3"
    assert names(read_tokens(SMALL, 0, 1)) == "addr last:4084 read lane:3"


def test_what_the_machine_leaves_open() -> None:
    machine = Machine(SMALL)
    launch = launch_of(machine_kernels.triangle(), 2, bytes(8))
    emitted = feed(machine, launch.prompt)
    for token, following in zip(launch.prompt, emitted, strict=True):
        if IDS.token(token).kind in ("reset", "stage", "rom"):
            assert following is None
    assert names(emitted[-1:]) == "last:0"
    assert machine.step(IDS.id("pad")) is None
    assert machine.step(IDS.id("exec", 50)) is None
    with pytest.raises(ValueError, match="outside"):
        machine.step(IDS.size)
    with pytest.raises(ValueError, match="outside"):
        machine.step(-1)


def test_rows_are_staged_in_slices() -> None:
    """A slice that is not sent again keeps its content; fewer than three parts leave the others 0."""
    machine = Machine(SMALL)
    feed(machine, [IDS.id("more", 1), IDS.id("more", 2), IDS.id("more", 3), IDS.id("stage", 0)])
    feed(machine, [IDS.id("more", 7), IDS.id("stage", 1), IDS.id("rom", 9), IDS.id("rom", 3)])
    assert machine.slices[:2] == [1 | 2 << 12 | 3 << 24, 7 << 24]
    assert machine.rom[9] == machine.rom[3]
    assert machine.rom[9] is not None
    assert (
        sum(bit << i for i, bit in enumerate(machine.rom[9])) == machine.slices[0] | machine.slices[1] << 36
    )


@given(st.integers(0, 2**32 - 1))
def test_values_are_committed_as_they_are_encoded(value: int) -> None:
    machine = Machine(SMALL)
    feed(machine, [IDS.firmware("uniform.1"), IDS.id("lane", 2), *IDS.value(value)])
    assert machine.uniforms[4:8] == [0, 0, value, 0]
    assert machine.lane == 3
