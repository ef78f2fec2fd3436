"""Units of a soak: a kernel on a machine, launched with many data. A number says which, always the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.executors import Case, compiled
from fuzzing.kernels import random_kernel
from kernels import KERNELS
from launches import LAUNCHES
from qgpu.backends.machine.description import MachineDescription, load_description
from qgpu.backends.machine.host import Dim3, Launch, LaunchError, build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.ir import print_function
from qgpu.toolchain.compile import CompileOptions, compile_source
from qgpu.toolchain.cuda import CudaOptions
from qgpu.toolchain.diagnostics import Source, without_warnings

Argument = int | bytes
Array = np.ndarray


@dataclass(frozen=True)
class Unit:
    """A kernel on a machine.

    Attributes:
        number: which unit it is.
        machine: the name of a machine, or its file.
        what: the kernel, in words.
        example: its place among EXAMPLES; None for a random kernel.
        round: how often the unit's example has had its turn before.
    """

    number: int
    machine: str
    what: str
    example: int | None
    round: int = 0


@dataclass(frozen=True)
class Example:
    """A kernel's source, and the launches that its table has."""

    name: str
    file: Path
    architecture: str
    launches: tuple[tuple[Dim3, Dim3, int, tuple[Any, ...]], ...]

    @without_warnings()
    def program(self, machine: MachineDescription) -> Kernel:
        """The kernel's machine code. Raises DiagnosticError where it does not fit."""
        options = CompileOptions(cuda=CudaOptions(architecture=self.architecture), kernels=(self.name,))
        source = Source(self.file.name, self.file.read_text(encoding="utf-8"))
        (kernel,) = compile_source(source.text, source.name, "cu", machine, options).kernels
        return kernel


def _examples() -> Iterator[Example]:
    """The kernels of examples/, by folder."""
    for name in dict.fromkeys(launch.kernel for launch in LAUNCHES):
        own = [launch for launch in LAUNCHES if launch.kernel == name]
        yield Example(name, own[0].file, "compute_75", tuple((x.grid, x.block, 0, x.args) for x in own))
    for row in KERNELS:
        launches = tuple((x.grid, x.block, x.shared, x.args) for x in row.launches)
        yield Example(row.name, row.file, row.architecture, launches)


EXAMPLES = tuple(_examples())


def unit(number: int, machines: tuple[str, ...]) -> Unit:
    """Return a unit: machines take turns, and on each examples and random kernels."""
    turn, place = divmod(number, len(machines))
    pair, is_random = divmod(turn, 2)
    if is_random:
        return Unit(number, machines[place], f"random kernel {pair}", None, pair)
    example, done = pair % len(EXAMPLES), pair // len(EXAMPLES)
    return Unit(number, machines[place], f"example {EXAMPLES[example].name}", example, done)


def launches(chosen: Unit) -> Iterator[Launch]:
    """Yield launches of a unit's kernel, without an end, each with other data.

    Raises:
        DiagnosticError: the kernel does not fit the machine.
    """
    return _random_launches(chosen) if chosen.example is None else _example_launches(chosen)


def _example_launches(chosen: Unit) -> Iterator[Launch]:
    """The launches of the kernel's table, at first as they are, then with elements of arrays in other orders.

    Shuffled elements are of the same range, so most indices stay inside their buffers; where one does not,
    the machine faults, which is compared as well.
    """
    assert chosen.example is not None
    example, machine = EXAMPLES[chosen.example], load_description(chosen.machine)
    kernel = example.program(machine)
    source = np.random.default_rng((chosen.number, chosen.round))
    is_first = chosen.round == 0
    while True:
        fitting = 0
        for grid, block, shared, arguments in example.launches:
            content = [_content(argument, None if is_first else source) for argument in arguments]
            try:
                yield build_launch(machine, kernel, grid, block, content, shared)
            except LaunchError:
                continue
            fitting += 1
        if not fitting:
            return
        is_first = False


def _content(argument: Array | int, source: np.random.Generator | None) -> Argument:
    if not isinstance(argument, np.ndarray):
        return int(argument)
    return (argument if source is None else source.permutation(argument)).tobytes()


def _random_launches(chosen: Unit) -> Iterator[Launch]:
    """A random kernel, short enough for the machine's program memory in most cases, on random arguments."""
    machine = load_description(chosen.machine)
    source = random.Random(chosen.number)
    threads = source.randint(1, min(machine.threads, 40))
    text = print_function(random_kernel(source, threads, source.randint(0, 2)))
    kernel = compiled(Case(text, chosen.machine, 1, threads, chosen.number))
    while True:
        case = Case(text, chosen.machine, 1, threads, source.getrandbits(32))
        try:
            yield build_launch(machine, kernel, (1, 1, 1), (threads, 1, 1), case.arguments())
        except LaunchError:
            return
