"""The executor of whole blocks against the reference machine: state, faults, and the number of tokens."""

import random
from dataclasses import replace

import numpy as np
import pytest

import machine_kernels
from example_launches import launch_of
from launches import LAUNCHES
from launches import Launch as Example
from qgpu.backends.machine.block import FAULTS, OPS, RUN_BLOCKS, Block
from qgpu.backends.machine.description import DEFAULT, SMALL, MachineDescription
from qgpu.backends.machine.host import Launch, build_launch
from qgpu.backends.machine.program import Kernel, Variants
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.reference.lanes import OPERATIONS
from qgpu.backends.reference.machine import Machine
from qgpu.backends.reference.run import RunawayError, generate, run_launch
from qgpu.backends.reference.vector import LaneMachine, Stop, run_blocks
from random_blocks import Stream, random_block

MOST_TOKENS = 3000


def test_every_operation_has_a_row() -> None:
    assert sorted(OPERATIONS) == sorted(OPS)


def state(machine: Machine) -> list[np.ndarray]:
    lanes = LaneMachine(machine)
    return [lanes.registers, lanes.uniforms, lanes.predicates, lanes.memory, np.array(lanes.bounds)]


def outcome(run: object) -> object:
    """What a run gives, or the error that it raises."""
    try:
        return run()  # pyright: ignore[reportCallIssue]
    except (RunawayError, ValueError) as error:
        return type(error), str(error)


def stop_of(machine: Machine, tokens: list[int]) -> Stop | None:
    last = vocabulary(machine.description).token(tokens[-1])
    if last.kind != "fault":
        return None
    assert machine.block is not None
    return Stop(FAULTS[last.index], machine.block, machine.warp, machine.lane)


def check_from_here(machine: Machine, following: int | None, limit: int) -> None:
    """Both machines, from where a block has just been entered, `following` being the next token."""
    lanes, tokens = LaneMachine(machine), []

    def run_tokens() -> Stop | None:
        tokens.extend(generate(machine, following, limit))
        return stop_of(machine, tokens)

    expected = outcome(run_tokens)
    assert outcome(lambda: lanes.run(limit)) == expected
    if isinstance(expected, tuple):
        return
    assert lanes.tokens == len(tokens)
    found = (lanes.registers, lanes.uniforms, lanes.predicates, lanes.memory, np.array(lanes.bounds))
    for mine, wanted in zip(found, state(machine), strict=True):
        assert np.array_equal(mine, wanted)


WIDE = replace(SMALL, name="wide", lanes=8, warps=4, register_words=128)


@pytest.mark.parametrize("machine", [SMALL, WIDE], ids=lambda machine: machine.name)
@pytest.mark.parametrize("seed", range(4))
def test_random_blocks(machine: MachineDescription, seed: int) -> None:
    """Each random block from a random state; some with registers in rows that belong to other warps.

    The executor of whole blocks goes where `next` says: the last block of a run is not one that falls.
    """
    rng = random.Random(seed)
    stream = Stream(rng, machine)
    stream.send(stream.ids.id("reset"))
    stream.memory()
    for index in range(60):
        number = index % machine.rom_blocks
        if index % 6 == 0:
            stream.uniforms()
            stream.threads()
        block = random_block(rng, machine, number)
        if block.next % RUN_BLOCKS == 0:
            block = replace(block, fall=0)
        if rng.random() < 0.2:
            block = replace(block, dest=rng.randrange(8), a=rng.randrange(8), c=rng.randrange(8))
        check_from_here(stream.reference, stream.enter(block, number), 300)


@pytest.mark.parametrize("example", LAUNCHES, ids=lambda example: example.id)
def test_examples(example: Example) -> None:
    check_launch(launch_of(example, DEFAULT))


def check_launch(launch: Launch, limit: int = 20_000) -> None:
    result, trace = outcome(lambda: run_blocks(launch, limit)), outcome(lambda: run_launch(launch, limit))
    if isinstance(trace, tuple):
        assert result == trace
        return
    assert result.fault == trace.fault  # pyright: ignore[reportAttributeAccessIssue]
    assert result.tokens == len(trace.generated)  # pyright: ignore[reportAttributeAccessIssue]
    assert result.memory.tolist() == list(trace.memory)  # pyright: ignore[reportAttributeAccessIssue]


def small_launch(kernel: Kernel, threads: int, *arguments: int | bytes, grid: int = 1) -> Launch:
    return build_launch(SMALL, kernel, (grid, 1, 1), (threads, 1, 1), arguments)


def words(*values: int) -> bytes:
    return np.array(values, np.int32).tobytes()


def launches() -> dict[str, Launch]:
    """Launches of kernels assembled by hand, of all that can come of one."""
    eleven = words(*range(11))
    access = machine_kernels.one_access(a_thread=1, a_to_x=1, one_to_y=1, c=1, c_to_d=1, check=1, wr_mem=1)
    adding = replace(access.blocks[0], a_to_x=0, m_to_x=1, b_thread=1, b_to_z=1, a_thread=0)
    counting = replace(adding, b_thread=0, b_to_z=0, imm=1, imm_to_z=1, wr_uni=1, dest=5)
    running = replace(counting, wr_mem=0, m_to_x=0, a=5, a_uniform=1, a_to_x=1)
    second = {"m2_to_z": 1, "e": 1, "e_to_d2": 1, "check2": 1, "wr_mem2": 1}
    mean = replace(access.blocks[0], a_to_i4=1, wr_mem=0, c_to_d=0, check=0, i_to_k=1, **second)
    shifted = replace(mean, m_to_x=1, a_to_x=0, c_to_d=1, check=1, imm=4, imm_to_j=1)
    gathered = replace(shifted, i_to_k=0, imm_to_j=0)
    few = [replace(machine_kernels.vecadd_flat(), flat=f, single=s) for f, s in _variants()]
    return {
        "threads leave a loop": small_launch(machine_kernels.triangle(), 7, bytes(28)),
        "a fault in the second thread block": small_launch(
            machine_kernels.vecadd(), 6, eleven, eleven, bytes(44), 12, grid=2
        ),
        "lanes add to one word": small_launch(with_first(access, adding), 7, words(100), 0),
        "lanes count in a uniform register": small_launch(with_first(access, counting), 7, words(100), 0),
        "lanes add in a uniform register": small_launch(with_first(access, running), 7, words(100), 0),
        "a trap": small_launch(with_first(access, replace(adding, trap=1, imm=4)), 7, words(1), 0),
        "each adds to its own word by the second access": small_launch(
            with_first(access, mean), 5, eleven, 0
        ),
        "each reads the next word, which the next lane writes": small_launch(
            with_first(access, shifted), 7, eleven, 0
        ),
        "a fault of the second access": small_launch(with_first(access, mean), 7, words(1, 2, 3), 0),
        "lanes add other words to one": small_launch(with_first(access, gathered), 7, eleven, 0),
        **{
            f"few tokens, variants {index}": small_launch(kernel, 6, eleven, eleven, bytes(44), 11, grid=2)
            for index, kernel in enumerate(few)
        },
        "few tokens, one thread block": small_launch(
            machine_kernels.vecadd_flat(), 7, eleven, eleven, bytes(44), 5
        ),
        "no thread inside": small_launch(machine_kernels.vecadd_flat(), 7, eleven, eleven, bytes(44), 0),
        "the bound is beyond the buffer": small_launch(
            machine_kernels.vecadd_flat(), 7, words(1, 2, 3), eleven, bytes(44), 6
        ),
        "no end": small_launch(machine_kernels.kernel("k", [Block(next=0)], [], []), 1),
    }


def _variants() -> list[tuple[Variants, Variants]]:
    """The variants of a kernel, and none in their place."""
    kernel = machine_kernels.vecadd_flat()
    return [(flat, single) for flat in (kernel.flat, ()) for single in (kernel.single, ())]


def with_first(kernel: Kernel, block: Block) -> Kernel:
    return replace(kernel, blocks=(block, *kernel.blocks[1:]))


@pytest.mark.parametrize("name", launches())
def test_kernels_by_hand(name: str) -> None:
    check_launch(launches()[name], 500)


def test_every_limit() -> None:
    """A launch that is given fewer tokens than it needs, as many, and more."""
    launch = launches()["lanes add to one word"]
    most = len(run_launch(launch).generated)
    for limit in range(1, most + 2):
        check_launch(launch, limit)
