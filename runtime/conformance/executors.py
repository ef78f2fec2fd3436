"""Run a case on an executor, and say what came of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from qgpu.backends.machine.description import BUILTIN, MachineDescription
from qgpu.backends.machine.host import Launch, LaunchError, build_launch
from qgpu.backends.machine.program import Kernel
from qgpu.ir import Function, Module
from qgpu.ir.interpreter import Fault, interpret
from qgpu.runtime.conformance.case import Case, CaseLaunch, first_difference
from qgpu.runtime.engine import Engine, EngineError
from qgpu.runtime.engines import make_engine
from qgpu.runtime.launch import DifferenceError, Outcome, run
from qgpu.runtime.vector import run_vector
from qgpu.toolchain.compile import (
    CompileOptions,
    build_ir,
    generate_program,
    optimise,
)
from qgpu.toolchain.cuda import CudaOptions
from qgpu.toolchain.diagnostics import DiagnosticError, Source, without_warnings

if TYPE_CHECKING:
    from qgpu.runtime.verify import Verifier

PASS, FAIL, REFUSED, TOO_LARGE, NOT_RUN = "pass", "fail", "refused", "does not fit", "not run"
STATES = (FAIL, PASS, REFUSED, TOO_LARGE, NOT_RUN)
"""What may come of a launch, and of a case: the first of these that one of its launches has."""

_COUNTING_LIMIT = 1 << 22


@dataclass(frozen=True)
class Executor:
    """A column of the table.

    Attributes:
        backend: `ir`, or one of the back ends of machine code.
        machine: the machine that it runs; None for `ir`.
        limit: tokens of the longest launch that it is given, as its speed allows.
        groups: the groups whose cases it is given; None means all.
    """

    name: str
    backend: str
    machine: MachineDescription | None
    limit: int
    groups: tuple[str, ...] | None = None


EXECUTORS = {
    executor.name: executor
    for executor in (
        Executor("ir", "ir", None, 0),
        Executor("vector", "vector", BUILTIN["large"], _COUNTING_LIMIT),
        Executor("reference", "reference", BUILTIN["large"], 100_000),
        Executor("engine", "engine", BUILTIN["default"], _COUNTING_LIMIT),
        Executor("engine-seed", "engine", BUILTIN["seed"], _COUNTING_LIMIT, ("examples", "kernels")),
        Executor("verify", "verify", BUILTIN["default"], 24, ("examples",)),
        Executor("weights", "weights", BUILTIN["default"], 16, ("examples",)),
    )
}
"""All executors by name, from the kernel's meaning to the stock model."""


@dataclass(frozen=True)
class Cell:
    """What came of a case on an executor: `passed` of its `launches`, and why the others did not."""

    state: str
    passed: int = 0
    launches: int = 0
    why: str = ""


Result: TypeAlias = tuple[str, str]
"""What came of a launch: one of STATES, and why it is not PASS."""


def cell_of(results: Sequence[Result]) -> Cell:
    """The cell of a case whose launches gave these results."""
    passed = sum(state == PASS for state, _ in results)
    state = next(state for state in STATES if any(found == state for found, _ in results))
    why = next((why for found, why in results if found == state and found != PASS), "")
    if state == PASS:
        why = next((f"{found}: {why}" for found, why in results if found != PASS), "")
    return Cell(state, passed, len(results), why)


@without_warnings()
def run_case(case: Case, executors: Sequence[Executor]) -> dict[str, Cell]:
    """The cells of a case, by the names of the executors."""
    try:
        (function,) = _module(case).functions
    except DiagnosticError as error:
        return {one.name: Cell(REFUSED, 0, len(case.launches), _reason(error)) for one in executors}
    codes = _Codes(case, function)
    return {one.name: _cell(case, one, codes) for one in executors}


def _module(case: Case) -> Module:
    """The case's IR before any pass."""
    options = CompileOptions(cuda=CudaOptions(architecture=case.architecture), kernels=(case.kernel,))
    return build_ir(Source(case.file, case.text), case.language, options)


def _reason(error: DiagnosticError) -> str:
    return next(one.message for one in error.diagnostics if one.severity == "error")


class _Codes:
    """The machine code of a kernel for each machine, and what its launches come to, each made once."""

    def __init__(self, case: Case, function: Function) -> None:
        self.function = function
        self._case = case
        self._made: dict[str, Kernel | Result] = {}
        self._outcomes: dict[tuple[str, CaseLaunch], Outcome] = {}

    def outcome(self, machine: MachineDescription, case: CaseLaunch) -> Outcome:
        """What all lanes at once make of a launch, and the launch itself.

        Raises:
            LaunchError: the machine has no room for it.
            EngineError: it does not come to an end.
        """
        key = (machine.name, case)
        if key not in self._outcomes:
            code = self.code(machine)
            assert isinstance(code, Kernel)
            sizes = (case.grid, case.block, list(case.arguments), case.shared)
            self._outcomes[key] = run_vector(build_launch(machine, code, *sizes), _COUNTING_LIMIT)
        return self._outcomes[key]

    def code(self, machine: MachineDescription) -> Kernel | Result:
        """Its machine code, or why there is none."""
        if machine.name not in self._made:
            self._made[machine.name] = self._generate(machine)
        return self._made[machine.name]

    def _generate(self, machine: MachineDescription) -> Kernel | Result:
        """Code generation changes the module it is given: each machine gets its own."""
        options = CompileOptions()
        try:
            module = _module(self._case)
            optimise(module, self._case.language, machine, options)
        except DiagnosticError as error:
            return REFUSED, _reason(error)
        try:
            (kernel,) = generate_program(module, machine, Source(self._case.file, self._case.text)).kernels
        except DiagnosticError as error:
            return TOO_LARGE, _reason(error)
        return kernel


def _cell(case: Case, executor: Executor, codes: _Codes) -> Cell:
    if executor.groups is not None and case.group not in executor.groups:
        return Cell(NOT_RUN, 0, len(case.launches), f"given cases of {', '.join(executor.groups)} alone")
    if executor.machine is None:
        return cell_of([_interpreted(codes.function, launch) for launch in case.launches])
    code = codes.code(executor.machine)
    if not isinstance(code, Kernel):
        return cell_of([code] * len(case.launches))
    return cell_of([_executed(codes, executor, launch) for launch in case.launches])


def _interpreted(function: Function, launch: CaseLaunch) -> Result:
    arguments = [bytearray(a) if isinstance(a, bytes) else a for a in launch.arguments]
    try:
        interpret(function, arguments, launch.grid, launch.block, shared_bytes=launch.shared)
    except Fault as fault:
        return FAIL, f"{fault.kind}: {fault.reason}"
    return _judged(tuple(bytes(a) for a in arguments if isinstance(a, bytearray)), launch)


def _judged(found: tuple[bytes, ...], launch: CaseLaunch) -> Result:
    difference = first_difference(found, launch.expected)
    return (FAIL, difference) if difference else (PASS, "")


def _executed(codes: _Codes, executor: Executor, case: CaseLaunch) -> Result:
    assert executor.machine is not None
    try:
        outcome = codes.outcome(executor.machine, case)
        if outcome.tokens > executor.limit:
            return NOT_RUN, f"{outcome.tokens:,} tokens, more than {executor.limit:,}"
        if executor.backend != "vector":
            outcome = _RUN[executor.backend](outcome.launch, executor.machine)
    except LaunchError as error:
        return TOO_LARGE, str(error)
    except (DifferenceError, EngineError) as error:
        return FAIL, str(error)
    if outcome.fault is not None:
        return FAIL, f"fault: {outcome.fault.kind}"
    return _judged(tuple(buffer for buffer in outcome.buffers if buffer is not None), case)


@functools.cache
def _engine(backend: str, machine: str) -> Engine:
    return make_engine(backend, BUILTIN[machine])


@functools.cache
def _verifier(machine: str) -> Verifier:
    from qgpu.runtime.verify import open_verifier

    return open_verifier(BUILTIN[machine])


def _by_engine(backend: str) -> Callable[[Launch, MachineDescription], Outcome]:
    checked = backend != "reference"
    return lambda launch, machine: run(launch, _engine(backend, machine.name), checked, _COUNTING_LIMIT)


def _by_verifier(launch: Launch, machine: MachineDescription) -> Outcome:
    from qgpu.runtime.verify import verify

    return verify(launch, _verifier(machine.name), _COUNTING_LIMIT).outcome


_RUN: dict[str, Callable[[Launch, MachineDescription], Outcome]] = {
    "reference": _by_engine("reference"),
    "engine": _by_engine("engine"),
    "weights": _by_engine("weights"),
    "verify": _by_verifier,
}
"""How each back end that takes tokens runs a launch."""
