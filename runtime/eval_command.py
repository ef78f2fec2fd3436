"""`qgpu eval`: an expression on vectors and matrices, computed by launches of library kernels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from qgpu.runtime.checkpoints import DTYPES, checkpoint_machine
from qgpu.runtime.engines import BACKENDS, ENGINES, FAST_ENGINE, make_engine
from qgpu.runtime.launch import MAX_TOKENS, run
from qgpu.runtime.refusing import refusing

if TYPE_CHECKING:
    from qgpu.backends.machine.description import MachineDescription
    from qgpu.backends.machine.host import Launch
    from qgpu.runtime.expressions import Evaluation, Launcher
    from qgpu.runtime.expressions.launcher import RunLaunch
    from qgpu.runtime.launch import Outcome

_BACKENDS = (*ENGINES, "vector")
_HELP = "; ".join(f"{name}, {BACKENDS[name]}" for name in _BACKENDS)


@click.command("eval", context_settings={"ignore_unknown_options": True})
@click.argument("expression")
@click.option(
    "--backend",
    type=click.Choice(_BACKENDS),
    default=FAST_ENGINE,
    show_default=True,
    help=f"What runs the launches: {_HELP}.",
)
@click.option("--model", metavar="DIR", help="Checkpoint to use (default: built once, then cached).")
@click.option("--machine", metavar="NAME|FILE", help="Machine to compile kernels for.")
@click.option("--dtype", type=click.Choice(DTYPES), default="float32", show_default=True, help="For weights.")
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda", "mps"]),
    default="cpu",
    show_default=True,
    help="For weights.",
)
@click.option("--check", is_flag=True, help="Compare every token with the reference interpreter's.")
@click.option(
    "--max-tokens", type=click.IntRange(1), default=MAX_TOKENS, show_default=True, help="Of a launch."
)
@click.option("--verbose", "-v", is_flag=True, help="Print a line for every launch to stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print value and launches as one JSON object.")
def eval_command(
    expression: str,
    backend: str,
    model: str | None,
    machine: str | None,
    dtype: str,
    device: str,
    check: bool,
    max_tokens: int,
    verbose: bool,
    as_json: bool,
) -> None:
    """Evaluate EXPRESSION, such as '[1, 2, 3] @ [4, 5, 6]'.

    Each step is a launch of a library kernel on 32-bit integers. stdout has the value alone.
    """
    _check_usage(backend, model, dtype, check)
    from qgpu.backends.machine.description import load_description
    from qgpu.runtime.expressions import Launcher, evaluate
    from qgpu.runtime.expressions.records import launch_line, launches_line

    with refusing():
        described = load_description(machine or "default")
        if machine is None and model is not None:
            described = checkpoint_machine(model)
        launcher = Launcher(described, _runner(backend, described, model, dtype, device, check, max_tokens))
        evaluation = evaluate(expression, launcher)
    for record in evaluation.launches if verbose else ():
        click.echo(launch_line(record), err=True)
    click.echo(json.dumps(_object(evaluation, launcher, backend, check)) if as_json else _text(evaluation))
    click.echo(launches_line(evaluation.launches, described, backend), err=True)


def _check_usage(backend: str, model: str | None, dtype: str, check: bool) -> None:
    """Refuse options that say nothing about the back end chosen."""
    if backend == "vector" and (check or model is not None):
        raise click.UsageError("--backend vector has neither tokens nor a model: no --check, no --model.")
    if backend == "reference" and check:
        raise click.UsageError(
            "--check compares with the reference: it says nothing about --backend reference."
        )
    if backend == FAST_ENGINE and dtype != "float32":
        raise click.UsageError(f"--backend {FAST_ENGINE} computes in float32, weights in both.")


def _runner(
    backend: str,
    machine: MachineDescription,
    model: str | None,
    dtype: str,
    device: str,
    check: bool,
    limit: int,
) -> RunLaunch:
    """What runs a launch on a back end; the engine is made at the first one."""
    if backend == "vector":
        from qgpu.runtime.vector import run_vector

        return lambda launch: run_vector(launch, limit)
    made: list[Any] = []

    def on_engine(launch: Launch) -> Outcome:
        made.extend([] if made else [make_engine(backend, machine, model, dtype, device)])
        return run(launch, made[0], check, limit)

    return on_engine


def _text(evaluation: Evaluation) -> str:
    return str(evaluation.value.tolist())


def _object(evaluation: Evaluation, launcher: Launcher, backend: str, checked: bool) -> dict[str, Any]:
    from qgpu.runtime.expressions.records import launch_object

    return {
        "value": evaluation.value.tolist(),
        "machine": launcher.machine.name,
        "backend": backend,
        "generated_tokens": evaluation.tokens,
        "layer_passes": evaluation.layer_passes,
        "checked": checked or None,
        "launches": list(map(launch_object, evaluation.launches)),
    }
