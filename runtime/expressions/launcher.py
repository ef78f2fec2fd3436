"""Launches of library routines: compiled once for a machine, run, and counted."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.follow import Fault
from qgpu.backends.machine.host import Launch, LaunchError, build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.runtime.launch import Outcome
from qgpu.runtime.library import ROUTINES
from qgpu.runtime.library.plans import Array, Plan
from qgpu.runtime.library.table import UNCHECKED, Routine
from qgpu.toolchain.compile import CompileOptions, compile_source
from qgpu.toolchain.cuda import CudaOptions

MAX_LAUNCHES = 500
"""Launches of one launcher, after which it refuses more."""

_ASSERTED = re.compile(r"Assertion `.*&& \"(.*)\"' failed")

RunLaunch = Callable[[Launch], Outcome]


class RefusedError(ValueError):
    """A launch that does not fit the machine, or that an assertion of its kernel stopped."""


@dataclass(frozen=True)
class LaunchRecord:
    """A launch that has run.

    Attributes:
        routine: its name.
        shapes: of its operands.
        grid, block: thread blocks, and threads of one.
        prompt_tokens, tokens: before the launch, and generated.
        layer_passes: generated tokens times layers; None where there are no layers.
        seconds: for the generated tokens.
    """

    routine: str
    shapes: tuple[tuple[int, ...], ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    prompt_tokens: int
    tokens: int
    layer_passes: int | None
    seconds: float


class Launcher:
    """Runs routines on a machine.

    Attributes:
        machine: what kernels are compiled for.
        records: what has run.
    """

    def __init__(self, machine: MachineDescription, run: RunLaunch) -> None:
        """`run` runs a launch on some back end; what it raises comes through."""
        self.machine = machine
        self.records: list[LaunchRecord] = []
        self._run = run

    def __call__(self, name: str, operands: Sequence[Array]) -> Array:
        """Launch a routine on int32 arrays of shapes that it takes; return its result, int32.

        Raises:
            RefusedError: it does not fit, or has been stopped; the message says why.
        """
        if len(self.records) == MAX_LAUNCHES:
            raise RefusedError(f"more than {MAX_LAUNCHES} launches")
        routine = ROUTINES[name]
        kernel = compiled(routine, self.machine, routine.certain(operands))
        plan = routine.plan(operands, kernel.warp_stride * self.machine.lanes)
        outcome = self._run(self._launch(kernel, plan))
        self._record(routine, operands, outcome)
        if outcome.fault is not None:
            raise RefusedError(_refusal(outcome.fault, plan))
        return _result(plan, outcome)

    def _launch(self, kernel: Kernel, plan: Plan) -> Launch:
        arguments = [one.tobytes() if isinstance(one, np.ndarray) else one for one in plan.arguments]
        try:
            return build_launch(self.machine, kernel, plan.grid, plan.block, arguments)
        except LaunchError as error:
            raise RefusedError(str(error)) from None

    def _record(self, routine: Routine, operands: Sequence[Array], outcome: Outcome) -> None:
        launch = outcome.launch
        self.records.append(
            LaunchRecord(
                routine.name,
                tuple(one.shape for one in operands),
                launch.grid,
                launch.block,
                len(launch.prompt),
                outcome.tokens,
                outcome.layer_passes,
                outcome.seconds,
            )
        )


@functools.lru_cache(maxsize=256)
def compiled(routine: Routine, machine: MachineDescription, unchecked: bool) -> Kernel:
    """The machine code of a routine; `unchecked` leaves out its assertions.

    Raises:
        DiagnosticError: it does not fit the machine.
    """
    options = CompileOptions(cuda=CudaOptions(defines=(UNCHECKED,) if unchecked else ()))
    program = compile_source(routine.text, str(routine.file), "cu", machine, options)
    (kernel,) = program.kernels
    return kernel


def _refusal(fault: Fault, plan: Plan) -> str:
    """What a fault says: the assertion's text, and for which element where there is a thread for each."""
    match = _ASSERTED.search(fault.message or "")
    message = match[1] if match else f"the launch stopped: {fault.kind}"
    if fault.block is None or not plan.shape or plan.block == (1, 1, 1) == plan.grid:
        return message
    column, row = (fault.block[axis] * plan.block[axis] + fault.thread[axis] for axis in (0, 1))
    flat = plan.block[1] == 1 == plan.grid[1]
    if len(plan.shape) == 1:
        return f"{message} (element {column if flat else row})"
    if flat:
        row, column = divmod(column, plan.shape[1])
    return f"{message} (row {row}, column {column})"


def _result(plan: Plan, outcome: Outcome) -> Array:
    found = _words(outcome, plan.result)
    if plan.count is not None:
        return found[: int(_words(outcome, plan.count)[0])]
    return found.reshape(plan.shape)


def _words(outcome: Outcome, argument: int) -> Array:
    content = outcome.buffers[argument]
    if content is None:
        raise RefusedError("the launch left no result")
    return np.frombuffer(content, "<i4").astype(np.int32)
