"""`qgpu prove`: that every number which a checkpoint computes is exact."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qgpu.backends.machine.description import DescriptionError, load_description
from qgpu.toolchain.diagnostics import failure, reporting

if TYPE_CHECKING:
    from qgpu.backends.prover.program import Condition
    from qgpu.backends.prover.prove import Certificate


@click.command("prove")
@click.argument("directory", metavar="DIR")
@click.option(
    "--against-machine",
    "machine",
    metavar="NAME|FILE",
    help="Take the rules of this machine's programs for granted.",
)
@click.option("--certificate", metavar="FILE", help="Write the bounds and the checkpoint's hash as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print the certificate instead of a table.")
def prove_command(directory: str, machine: str | None, certificate: str | None, as_json: bool) -> None:
    """Prove that every number which the checkpoint in DIR computes is exact, from its tensors.

    What is not proved goes to stderr, with tensor, row and reason, and the exit status is 1.
    """
    from qgpu.backends.prover.checkpoint import ProofError
    from qgpu.backends.prover.prove import prove

    with reporting("qgpu"):
        try:
            proof = prove(directory, [] if machine is None else _conditions(machine))
        except (DescriptionError, ProofError) as error:
            raise failure(str(error)) from None
        if certificate is not None:
            _write(Path(certificate), json.dumps(proof.to_json(), indent=1) + "\n")
    _print(proof, as_json)


def _conditions(machine: str) -> list[Condition]:
    from qgpu.backends.prover.program import program_conditions
    from qgpu.backends.transformer.emit import lay_out
    from qgpu.backends.transformer.processor import build_processor

    described = load_description(machine)
    return program_conditions(described, lay_out(build_processor(described), described.model))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise failure(f"'{path}': {error.strerror or error}") from None


def _print(proof: Certificate, as_json: bool) -> None:
    click.echo(json.dumps(proof.to_json()) if as_json else "\n".join(_lines(proof)))
    for found in proof.failures:
        click.echo(f"qgpu: error: not proved: {found}", err=True)
    if proof.failures:
        click.echo(f"qgpu: {len(proof.failures)} rows are not proved", err=True)
        sys.exit(1)


def _lines(proof: Certificate) -> Iterator[str]:
    for report in proof.layers:
        yield "  ".join(f"{name} {_short(value)}" for name, value in report.items() if value not in ([], {}))
    yield f"{'not ' if proof.failures else ''}proved: {proof.dtype}, sha256 {proof.sha256}"


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
