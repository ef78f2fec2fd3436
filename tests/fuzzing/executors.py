"""The executors of a kernel, which have to agree: the IR's interpreter, and what the compiler makes of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

from fuzzing.kernels import CELLS, OWN_WORDS, SOURCE_WORDS, WIDE_NUMBERS
from qgpu.backends.machine.description import BUILTIN, MachineDescription
from qgpu.backends.machine.host import Launch, LaunchError, build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.backends.machine.verify import verify_kernel
from qgpu.backends.reference.run import Trace, run_launch
from qgpu.backends.reference.vector import Result, run_blocks
from qgpu.ir import Function, Module, print_function
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.parser import parse_function
from qgpu.runtime.engines import make_engine
from qgpu.runtime.launch import run
from qgpu.toolchain.codegen import generate_kernel
from qgpu.toolchain.compile import CompileOptions, passes_for, run_passes
from qgpu.toolchain.diagnostics import DiagnosticError

STEPS = 200_000
"""Instructions after which a launch has gone wrong: a mistake may make a loop endless."""

TOKEN_LIMIT = 2_000_000
SHORT = 5_000
"""Tokens of the longest launch that is also run token by token."""
SHORT_FOR_MODELS = 1_000

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


def interpreted(function: Function, case: Case, apart: bool = False) -> Outcome:
    """What the IR's interpreter leaves; with `apart` each thread runs by itself from barrier to barrier."""
    arguments = [bytearray(a) if isinstance(a, bytes) else a for a in case.arguments()]
    shape = ((case.grid, 1, 1), (case.threads, 1, 1))
    try:
        interpret(function, arguments, *shape, warp_size=case.description.lanes, max_steps=STEPS, apart=apart)
    except Fault as fault:
        return Outcome(fault.kind)
    return Outcome(None, tuple(bytes(a) for a in arguments if isinstance(a, bytearray)))


def lowered(case: Case, before: str | None = None) -> Function:
    """The kernel after the passes, or after those before one of them."""
    steps = passes_for(case.description)
    names = [step.name for step in steps]
    module = Module([parse_function(case.text)])
    run_passes(
        module, CompileOptions(verify_each=True), steps[: None if before is None else names.index(before)]
    )
    return module.functions[0]


def thread_by_thread(case: Case) -> Outcome:
    """What threads leave that run one after another as far as barriers let them, before linearisation."""
    return interpreted(lowered(case, "linearize"), case, apart=True)


def in_lockstep(case: Case) -> Outcome:
    """What the IR's interpreter leaves after the passes, read back from text."""
    return interpreted(parse_function(print_function(lowered(case))), case)


def compiled(case: Case) -> Kernel:
    """The kernel's machine code."""
    kernel = generate_kernel(lowered(case), case.description)
    verify_kernel(kernel, case.description)
    return kernel


def _launch(case: Case) -> Launch:
    """The launch of the kernel's machine code."""
    return build_launch(
        case.description, compiled(case), (case.grid, 1, 1), (case.threads, 1, 1), case.arguments()
    )


def on_machine(case: Case) -> dict[str, Outcome]:
    """What the machine leaves, block by block, and in short launches also token by token."""
    launch = _launch(case)
    result = run_blocks(launch, TOKEN_LIMIT)
    found = {"vector": _left(launch, result)}
    if result.tokens <= SHORT:
        found["reference"] = _left(launch, run_launch(launch, SHORT))
    return found


def by_model(case: Case) -> dict[str, Outcome]:
    """What the non-zeros of the machine's checkpoint leave; nothing of kernels too large or slow for it."""
    try:
        launch = _launch(case)
    except (DiagnosticError, LaunchError):
        return {}
    if run_blocks(launch, TOKEN_LIMIT).tokens > SHORT_FOR_MODELS:
        return {}
    outcome = run(launch, make_engine("engine", case.description), True, TOKEN_LIMIT)
    if outcome.fault is not None:
        return {"engine": Outcome(outcome.fault.kind)}
    return {"engine": Outcome(None, tuple(buffer for buffer in outcome.buffers if buffer is not None))}


def _left(launch: Launch, result: Result | Trace) -> Outcome:
    if result.fault is not None:
        return Outcome(result.fault.kind)
    return Outcome(None, tuple(result.buffer(region) for region in launch.buffers if region))


EXECUTORS: tuple[Callable[[Case], dict[str, Outcome]], ...] = (
    lambda case: {"apart": thread_by_thread(case)},
    lambda case: {"passes": in_lockstep(case)},
    on_machine,
)
"""What has to give the kernel's meaning."""


def disagreement(
    case: Case, executors: Iterable[Callable[[Case], dict[str, Outcome]]] = EXECUTORS
) -> str | None:
    """The first executor that gives something else than the kernel means, with what differs; None if none."""
    expected = meaning(case)
    for execute in executors:
        for name, found in execute(case).items():
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
