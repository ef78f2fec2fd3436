"""Random kernels: what the machine leaves in memory is what the IR means, thread by thread."""

import dataclasses

import numpy as np
import pytest

from qgpu.backends.machine.description import DEFAULT, MachineDescription
from qgpu.backends.machine.host import build_launch
from qgpu.backends.machine.verify import verify_kernel
from qgpu.backends.reference.run import run_launch
from qgpu.ir import Function, print_function
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.parser import parse_function
from qgpu.ir.passes import default_pipeline
from qgpu.ir.passes.linearize import Linearize
from qgpu.toolchain.codegen import generate_kernel
from random_kernels import random_kernel

LARGE = dataclasses.replace(
    DEFAULT, name="large", predicates=11, register_words=8192, rom_blocks=1024, uniform_registers=128
)
NARROW = dataclasses.replace(LARGE, name="narrow", lanes=4, warps=8, register_words=2048)

# Kernels that once came out wrong, and what it was.
FOUND = {
    1123: "a condition joined with itself was inverted twice",
    1007: "a comparison with 1 was taken for a word of one bit",
    1370: "an index was inlined into an expression that does not read it",
    2043: "a displacement beside a buffer of a thread's own",
    2083: "a joined condition was computed again without its first half",
    2137: "what was computed twice did not count as a reader",
    30179: "what was computed twice found a slot changed",
}
# The grid, the threads of a block, the machine.
SHAPES = (((1, 1, 1), 5, LARGE), ((3, 1, 1), 5, LARGE), ((2, 2, 1), 4, LARGE), ((2, 1, 1), 7, NARROW))


def arguments(seed: int) -> list[int | np.ndarray]:
    """Arguments of a random kernel, in the order of its parameters."""
    random = np.random.default_rng(seed)
    source = random.integers(-(2**31), 2**31, 64).astype(np.int32)
    source[:4] = [0, 1, -1, 5]
    target = random.integers(-100, 100, 64).astype(np.int32)
    sums = np.array([1, 2, 3, 4], np.int32)
    return [source, target, sums, seed % 5, (seed * 7919 - 3000) & 0xFFFFFFFF, source[::-1].copy()]


def meaning(function: Function, args: list, grid: tuple[int, int, int], threads: int) -> list[bytes]:
    """The buffers after a launch, by the IR's interpreter."""
    copies = [bytearray(arg.tobytes()) if isinstance(arg, np.ndarray) else arg for arg in args]
    interpret(function, copies, grid, (threads, 1, 1))
    return [bytes(copy) for copy in copies if isinstance(copy, bytearray)]


def outcome(
    function: Function,
    machine: MachineDescription,
    args: list,
    grid: tuple[int, int, int],
    threads: int,
    registers: int | None = None,
) -> list[bytes]:
    """The buffers after a launch of the generated code, by the reference interpreter."""
    kernel = generate_kernel(function, machine, registers)
    verify_kernel(kernel, machine)
    assert registers is None or kernel.registers <= registers
    contents = [arg.tobytes() if isinstance(arg, np.ndarray) else arg for arg in args]
    launch = build_launch(machine, kernel, grid, (threads, 1, 1), contents)
    trace = run_launch(launch, 300_000)
    assert trace.fault is None
    return [trace.buffer(region) for region in launch.buffers if region]


def check(seed: int, statements: int, shape: tuple, passes: list, registers: int | None = None) -> None:
    grid, threads, machine = shape
    function = random_kernel(seed, statements)
    args = arguments(seed)
    try:
        expected = meaning(function, args, grid, threads)
    except Fault:
        pytest.skip("a pointer of this kernel leaves its buffer")
    again = parse_function(print_function(function))
    for step in passes:
        step.run(again)
    assert outcome(again, machine, args, grid, threads, registers) == expected


@pytest.mark.parametrize("seed", FOUND)
def test_found(seed: int) -> None:
    check(seed, 10, SHAPES[2], [Linearize()])
    check(seed, 5, SHAPES[3], default_pipeline())


@pytest.mark.parametrize("seed", range(200, 220))
def test_with_registers_of_every_kind_too_few(seed: int) -> None:
    machine = dataclasses.replace(NARROW, name="few", predicates=6, uniform_registers=32, rom_blocks=4096)
    passes = default_pipeline() if seed % 2 else [Linearize()]
    check(seed, 7, ((2, 1, 1), 7, machine), passes, registers=8)


@pytest.mark.parametrize("seed", range(24))
def test_linearised(seed: int) -> None:
    check(seed, 5, SHAPES[seed % len(SHAPES)], [Linearize()])


@pytest.mark.parametrize("seed", range(100, 124))
def test_after_all_passes(seed: int) -> None:
    check(seed, 7, SHAPES[seed % len(SHAPES)], default_pipeline())


def test_generation_leaves_the_function_alone() -> None:
    function = random_kernel(1)
    for step in default_pipeline():
        step.run(function)
    before = print_function(function)
    generate_kernel(function, LARGE)
    assert print_function(function) == before


def test_generation_is_deterministic() -> None:
    kernels = []
    for _ in range(2):
        function = random_kernel(7)
        Linearize().run(function)
        kernels.append(generate_kernel(function, LARGE))
    assert kernels[0] == kernels[1]
