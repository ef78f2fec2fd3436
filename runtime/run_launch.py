"""Run a launch on the back end that a command line asks for, and print what it leaves."""

from __future__ import annotations

import functools
import json
import sys
from dataclasses import dataclass

import click

from qgpu.backends.machine.follow import Step
from qgpu.backends.machine.host import Dim3, Launch
from qgpu.backends.machine.program import Kernel
from qgpu.ir import Function
from qgpu.runtime.arguments import Argument, argument_values, updated
from qgpu.runtime.engines import make_engine
from qgpu.runtime.launch import Outcome, run
from qgpu.runtime.progress import progress
from qgpu.runtime.results import (
    argument_lines,
    fault_diagnostic,
    outcome_object,
    step_line,
    summary,
    verification_line,
)
from qgpu.runtime.structures import Structure, spread
from qgpu.toolchain.progress import stages


@dataclass(frozen=True)
class EngineChoice:
    """Which engine a command line asks for."""

    backend: str
    model: str | None
    dtype: str
    device: str
    chunk: int


def run_ir_launch(
    function: Function,
    grid: Dim3,
    block: Dim3,
    given: tuple[Argument | Structure, ...],
    shared: int,
    as_json: bool,
) -> None:
    """Run a source's IR, and print the arguments after the launch."""
    from qgpu.ir.interpreter import Fault
    from qgpu.runtime.ir_run import ir_fault_diagnostic, run_ir, signature

    arguments = spread(signature(function), given)
    printed: list[str] = []
    show = printed.append if as_json else functools.partial(click.echo, nl=False)
    try:
        after = run_ir(function, grid, block, arguments, shared, show)
    except Fault as fault:
        raise ir_fault_diagnostic(fault, block) from fault
    if as_json:
        click.echo(json.dumps({"args": list(map(argument_values, after)), "output": "".join(printed)}))
        return
    for line in argument_lines(signature(function), after):
        click.echo(line)


def run_launch(launch: Launch, wanted: EngineChoice, check: bool, limit: int, trace: bool) -> Outcome:
    """Run a launch for at most `limit` tokens, with progress or a trace of each on stderr."""
    if wanted.backend == "vector":
        from qgpu.runtime.vector import run_vector

        with stages(f"back end '{wanted.backend}'"):
            return run_vector(launch, limit)
    if wanted.backend == "verify":
        return _verify(launch, wanted, limit, trace)
    engine = make_engine(
        wanted.backend, launch.machine, wanted.model, wanted.dtype, wanted.device, launch.in_weights
    )
    with progress(len(launch.prompt), _tracer(launch.kernel) if trace else None) as watch:
        return run(launch, engine, check, limit, watch)


def _verify(launch: Launch, wanted: EngineChoice, limit: int, trace: bool) -> Outcome:
    """Check the reference's tokens with the stock model, and say what was found beyond them."""
    from qgpu.runtime.verify import open_verifier, verify

    verifier = open_verifier(
        launch.machine, wanted.model, wanted.dtype, wanted.device, wanted.chunk, launch.in_weights
    )
    with progress(len(launch.prompt), _tracer(launch.kernel) if trace else None) as watch:
        verification = verify(launch, verifier, limit, watch)
    click.echo(verification_line(verification), err=True)
    return verification.outcome


def _tracer(kernel: Kernel):
    count = 0

    def show(step: Step) -> None:
        nonlocal count
        count += 1
        click.echo(step_line(count, step, kernel), err=True)

    return show


def print_outcome(outcome: Outcome, kernel: Kernel, arguments: tuple[Argument, ...], as_json: bool) -> None:
    """Print the arguments after a launch, and what it took to stderr; raises DiagnosticError for a fault."""
    after = [updated(*pair) for pair in zip(arguments, outcome.buffers, strict=True)]
    if as_json:
        click.echo(json.dumps(outcome_object(outcome, after)))
    else:
        click.echo(outcome.output, nl=False)
    if not as_json and not outcome.fault:
        for line in argument_lines(kernel, after):
            click.echo(line)
    click.echo(summary(outcome), err=True)
    sys.stdout.flush()
    if outcome.fault:
        raise fault_diagnostic(outcome.fault)
