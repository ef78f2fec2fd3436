"""The executors of a kernel, which have to agree: the IR's interpreter, and what the compiler makes of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from fuzzing.kernels import CELLS, OWN_WORDS, SOURCE_WORDS, WIDE_NUMBERS
from qgpu.backends.machine.description import BUILTIN, MachineDescription
from qgpu.backends.machine.host import build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.backends.machine.verify import verify_kernel
from qgpu.backends.reference.run import run_launch
from qgpu.ir import Function, Module, print_function
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.parser import parse_function
from qgpu.toolchain.codegen import generate_kernel
from qgpu.toolchain.compile import CompileOptions, passes_for, run_passes

TOKEN_LIMIT = 2_000_000
Argument = int | bytes


@dataclass(frozen=True)
class Case:
    """A launch of a kernel; `text` is the kernel before any pass."""

    text: str
    machine: str
    grid: int
    threads: int
    seed: int

    @property
    def description(self) -> MachineDescription:
        return _description(self.machine)

    def arguments(self) -> list[Argument]:
        """Arguments in the order of a random kernel's parameters, corners among them."""
        source = random.Random(self.seed)

        def numbers(count: int, width: int) -> bytes:
            corners = (0, 1, 5, (1 << width) - 1, 1 << (width - 1))
            found = [source.choice((source.getrandbits(width), source.choice(corners))) for _ in range(count)]
            return b"".join(number.to_bytes(width // 8, "little") for number in found)

        own = numbers(OWN_WORDS * self.grid * self.threads, 32)
        buffers = [numbers(SOURCE_WORDS, 32), numbers(WIDE_NUMBERS, 64), own, numbers(CELLS, 32)]
        return [*buffers, source.randrange(64), source.getrandbits(32), source.getrandbits(64)]


@dataclass(frozen=True)
class Outcome:
    """What a launch leaves: the fault's kind, or the buffers."""

    fault: str | None
    buffers: tuple[bytes, ...] = ()


@cache
def _description(name: str) -> MachineDescription:
    """A machine by name; those of other warps than the built-in ones have memory for whole kernels."""
    large = BUILTIN["large"]
    narrow = replace(large, name="narrow", lanes=4, warps=32, register_words=16384)
    return {**BUILTIN, "narrow": narrow}[name]


def meaning(case: Case) -> Outcome:
    """What the kernel means: thread by thread, before any pass."""
    return interpreted(parse_function(case.text), case)


def interpreted(function: Function, case: Case) -> Outcome:
    """What the IR's interpreter leaves."""
    arguments = [bytearray(a) if isinstance(a, bytes) else a for a in case.arguments()]
    shape = ((case.grid, 1, 1), (case.threads, 1, 1))
    try:
        interpret(function, arguments, *shape, warp_size=case.description.lanes)
    except Fault as fault:
        return Outcome(fault.kind)
    return Outcome(None, tuple(bytes(a) for a in arguments if isinstance(a, bytearray)))


def lowered(case: Case) -> Function:
    """The kernel after the passes."""
    module = Module([parse_function(case.text)])
    run_passes(module, CompileOptions(), passes_for(case.description))
    return module.functions[0]


def in_lockstep(case: Case) -> Outcome:
    """What the IR's interpreter leaves after the passes, read back from text."""
    return interpreted(parse_function(print_function(lowered(case))), case)


def compiled(case: Case) -> Kernel:
    """The kernel's machine code."""
    kernel = generate_kernel(lowered(case), case.description)
    verify_kernel(kernel, case.description)
    return kernel


def on_machine(case: Case, kernel: Kernel) -> Outcome:
    """What the machine leaves, token by token."""
    shape = ((case.grid, 1, 1), (case.threads, 1, 1))
    launch = build_launch(case.description, kernel, *shape, case.arguments())
    trace = run_launch(launch, TOKEN_LIMIT)
    if trace.fault is not None:
        return Outcome(trace.fault.kind)
    return Outcome(None, tuple(trace.buffer(region) for region in launch.buffers if region))


def by_reference(case: Case) -> Outcome:
    return on_machine(case, compiled(case))


EXECUTORS: dict[str, Callable[[Case], Outcome]] = {
    "passes": in_lockstep,
    "reference": by_reference,
}
"""What has to give the kernel's meaning."""


def disagreement(case: Case) -> str | None:
    """The first executor that gives something else than the kernel means, with what differs; None if none."""
    expected = meaning(case)
    for name, execute in EXECUTORS.items():
        found = execute(case)
        if found != expected:
            return f"{name}: {_difference(expected, found)}"
    return None


def _difference(expected: Outcome, found: Outcome) -> str:
    if expected.fault or found.fault:
        return f"fault {found.fault} where {expected.fault} is meant"
    for number, (right, wrong) in enumerate(zip(expected.buffers, found.buffers, strict=True)):
        for offset in range(0, len(right), 4):
            if right[offset : offset + 4] != wrong[offset : offset + 4]:
                values = (int.from_bytes(b[offset : offset + 4], "little") for b in (wrong, right))
                return f"buffer {number}, byte {offset}: {next(values):#x} where {next(values):#x} is meant"
    return "buffers differ in size"
