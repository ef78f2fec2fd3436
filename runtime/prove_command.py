"""`qgpu prove`: that every number which a checkpoint computes is exact."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qgpu.backends.machine.description import DescriptionError, MachineDescription, load_description
from qgpu.runtime.baked import is_checkpoint, open_baked
from qgpu.runtime.checkpoints import CheckpointError, baked_hash, checkpoint_machine, machine_difference
from qgpu.toolchain.diagnostics import failure, reporting
from qgpu.toolchain.outputs import check_output, write_output
from qgpu.toolchain.progress import stages

if TYPE_CHECKING:
    from qgpu.backends.prover.certify import Found, Meaning


@click.command("prove")
@click.argument("directory", metavar="DIR")
@click.option(
    "--against-machine",
    "machine",
    metavar="NAME|FILE",
    help="Compare the circuit with this machine's, and take the rules of its programs for granted.",
)
@click.option("--certificate", metavar="FILE", help="Write the bounds and the checkpoint's hash as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print the certificate instead of a table.")
def prove_command(directory: str, machine: str | None, certificate: str | None, as_json: bool) -> None:
    """Prove that every number which the checkpoint in DIR computes is exact, from its tensors.

    What is not proved, and what differs from the machine's circuit, goes to stderr, with tensor, row and
    reason, and the exit status is 1.
    """
    from qgpu.backends.prover.checkpoint import ProofError
    from qgpu.backends.transformer.merge.parts import merged_table

    if certificate is not None:
        _check_certificate(directory, certificate)
    with reporting("qgpu"):
        certify = _certify if merged_table(directory) is None else _certify_merged
        if machine is None:
            _tell_of_machine(directory)
        try:
            with stages(f"proof of '{directory}'") as tell:
                tell("its tensors" if machine is None else f"the circuit of machine '{machine}'")
                found = certify(directory, machine, lambda layer: tell(f"layer {layer}"))
        except (DescriptionError, CheckpointError, ProofError) as error:
            raise failure(str(error)) from None
        content = found.content()
        if certificate is not None:
            write_output(certificate, (json.dumps(content, indent=1) + "\n").encode())
    click.echo(json.dumps(content) if as_json else "\n".join(_lines(found)))
    _report(found)


def _certify(directory: str, machine: str | None, watch: Callable[[int], object]) -> Found:
    """Prove a checkpoint of a machine or a kernel by itself."""
    from qgpu.backends.prover.certify import certify

    return certify(directory, None if machine is None else _meant(directory, machine), watch)


def _certify_merged(directory: str, machine: str | None, watch: Callable[[int], object]) -> Found:
    from qgpu.backends.prover.certify import certify_merged
    from qgpu.backends.prover.merged.circuit import meant_by
    from qgpu.backends.prover.merged.weights import open_weights

    if machine is None:
        return certify_merged(directory, None, watch)
    described = _same_machine(directory, machine)
    return certify_merged(directory, meant_by(open_weights(directory), described), watch)


def _meant(directory: str, machine: str) -> Meaning:
    """The circuit that a checkpoint is meant to be."""
    from qgpu.backends.prover.certify import meant_kernel, meant_machine

    if not is_checkpoint(directory):
        return meant_machine(load_description(machine))
    described = _same_machine(directory, machine)
    return meant_machine(described) if baked_hash(directory) is None else meant_kernel(open_baked(directory))


def _same_machine(directory: str, name: str) -> MachineDescription:
    """The machine of a name, which a checkpoint has to be of.

    Raises:
        CheckpointError: the checkpoint says that it is another machine's.
    """
    described = load_description(name)
    if difference := machine_difference(checkpoint_machine(directory), described):
        raise CheckpointError(f"'{directory}' is the checkpoint of another machine: {difference}")
    return described


def _tell_of_machine(directory: str) -> None:
    """Say which machine a checkpoint is, since without its rules much of one is not proved, and slowly."""
    try:
        name = checkpoint_machine(directory).name
        alone = baked_hash(directory) is None
    except CheckpointError:
        return
    if alone:
        click.echo(
            f"qgpu: note: with --against-machine {name} the rules of its programs are known, "
            "and the circuit is compared; without them some rows are left, after a long search",
            err=True,
        )


def _check_certificate(directory: str, certificate: str) -> None:
    """Refuse, before the work, a certificate in place of another file of the checkpoint, or in no folder."""
    from qgpu.backends.transformer.checkpoint import CERTIFICATE

    files = (str(file) for file in Path(directory).rglob("*") if file.name != CERTIFICATE)
    check_output(files, certificate)
    if not Path(certificate).absolute().parent.is_dir():
        raise click.UsageError(f"There is no folder '{Path(certificate).parent}'.")


def _report(found: Found) -> None:
    for problem in found.problems:
        click.echo(f"qgpu: error: {problem}", err=True)
    if found.proof.failures:
        click.echo(f"qgpu: {len(found.proof.failures)} rows are not proved", err=True)
    if found.differences:
        click.echo(f"qgpu: {len(found.differences)} differences from the circuit", err=True)
    if found.problems:
        sys.exit(1)


def _lines(found: Found) -> Iterator[str]:
    proof = found.proof
    for report in proof.layers:
        yield "  ".join(f"{name} {_short(value)}" for name, value in report.items() if value not in ([], {}))
    if found.differences is not None:
        yield f"{'not ' if found.differences else ''}the circuit of machine {found.machine}"
    yield f"{'not ' if proof.failures else ''}proved: {proof.dtype}, sha256 {proof.sha256}"


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
