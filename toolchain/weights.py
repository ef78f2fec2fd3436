"""`qgpuc --emit-weights`: the checkpoint of a machine, of a kernel, or of a machine in a base."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from qgpu.toolchain.diagnostics import failure
from qgpu.toolchain.job import Job, compile_job, machine_named
from qgpu.toolchain.merging import MergeOptions, merge_machine
from qgpu.toolchain.outputs import end_in_order
from qgpu.toolchain.progress import stages
from qgpu.toolchain.proving import proved_content

if TYPE_CHECKING:
    from qgpu.backends.machine.baked import BakedKernel
    from qgpu.backends.machine.description import MachineDescription
    from qgpu.backends.machine.host import Dim3
    from qgpu.backends.transformer.stages import Tell

CONFIG, METADATA, SHARDS = "config.json", "qgpu.json", "model.safetensors.index.json"


def write_weights(
    file: str | None, output: str | None, machine: str, dtype: str, merge: MergeOptions
) -> None:
    """Write the checkpoint of a machine, alone or merged into a base, or print what the latter would be.

    Raises:
        UsageError: the command line does not say where to, or names a source.
        DiagnosticError: there is no such machine or base, or the result cannot be written.
    """
    if file is not None:
        raise click.UsageError("--emit-weights takes no input file: the checkpoint is the machine.")
    if output is None and not merge.dry_run:
        raise click.UsageError("--emit-weights needs a folder: -o DIR.")
    described = machine_named(machine)
    if merge.base is not None:
        given = click.get_current_context().get_parameter_source("dtype") != ParameterSource.DEFAULT
        merge_machine(described, merge, output, dtype if given else None)
        return
    assert output is not None
    _emit_weights(described, Path(output), dtype, merge.prove)


def _emit_weights(machine: "MachineDescription", folder: Path, dtype: str, prove: bool) -> None:
    """Write the checkpoint of a machine."""
    from qgpu.backends.transformer import emit_checkpoint

    with stages(f"checkpoint of machine '{machine.name}'") as tell:
        _write_checkpoint(
            folder,
            lambda directory: emit_checkpoint(machine, directory, dtype, tell),
            lambda directory: _certify(directory, machine, tell) if prove else None,
        )


def write_baked(
    job: Job, folder: Path, dtype: str, shape: "tuple[Dim3 | None, Dim3 | None]", prove: bool
) -> None:
    """Write the checkpoint of a kernel, for launches of the grid and the thread block given.

    Raises:
        DiagnosticError: the source is wrong, the kernel does not fit, it is to be proved and is not, or the
            result cannot be written.
    """
    from qgpu.backends.machine.baked import bake_kernel
    from qgpu.backends.machine.host import LaunchError
    from qgpu.backends.transformer import emit_baked
    from qgpu.toolchain.cuda.names import described, readable

    program = compile_job(job)
    (kernel, *others) = program.kernels
    if others:
        known = described([kernel.name for kernel in program.kernels])
        raise failure(
            "several kernels: a checkpoint holds one; choose it with --kernel", f"there are: {known}"
        )
    try:
        baked = bake_kernel(kernel, program.machine, *shape)
    except LaunchError as error:
        raise failure(readable(str(error))) from None
    with stages(f"checkpoint of kernel '{readable(kernel.name)}'") as tell:
        _write_checkpoint(
            folder,
            lambda directory: emit_baked(baked, directory, dtype, program.source, tell),
            lambda directory: _certify(directory, baked, tell) if prove else None,
        )


def _check_folder(folder: Path) -> None:
    """Refuse a folder whose files are not those of a checkpoint of this kind."""
    if folder.exists() and not folder.is_dir():
        raise failure(f"'{folder}' is no folder")
    others = [folder / name for name in (CONFIG, SHARDS) if (folder / name).exists()]
    if others and (others[-1].name == SHARDS or not (folder / METADATA).exists()):
        raise failure(f"'{folder}' holds another model: {others[-1].name}", "name a folder of its own")
    if blocked := next((file for file in folder.glob("*.json") if file.is_dir()), None):
        raise failure(f"cannot write '{folder}': '{blocked.name}' is a folder there")


def _certify(directory: str, what: "MachineDescription | BakedKernel", tell: "Tell") -> None:
    """Prove the checkpoint of a machine or a kernel, and put the certificate beside it.

    Raises:
        DiagnosticError: it is not proved.
    """
    from qgpu.backends.machine.baked import BakedKernel
    from qgpu.backends.prover.certify import certify, meant_kernel, meant_machine
    from qgpu.backends.transformer.checkpoint import CERTIFICATE

    tell("comparison with the circuit")
    meaning = meant_kernel(what) if isinstance(what, BakedKernel) else meant_machine(what)
    found = certify(directory, meaning, lambda layer: tell(f"proof of layer {layer}"))
    Path(directory, CERTIFICATE).write_text(
        json.dumps(proved_content(found), indent=1) + "\n", encoding="utf-8"
    )


def _write_checkpoint(folder: Path, write: Callable[[str], object], certify: Callable[[str], object]) -> None:
    """Write a checkpoint into a folder, which gets its files only when all of them are complete.

    Args:
        write, certify: are called with the directory that the files are made in.

    Raises:
        DiagnosticError: the machine does not fit, or the folder cannot be written or holds another model.
    """
    from tempfile import TemporaryDirectory

    from qgpu.backends.transformer.allocate import AllocationError
    from qgpu.backends.transformer.checkpoint import CERTIFICATE
    from qgpu.backends.transformer.norms import NormError
    from qgpu.backends.transformer.schedule import ScheduleError

    try:
        _check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        end_in_order()
        with TemporaryDirectory(prefix=".qgpuc-", dir=folder) as temporary:
            write(temporary)
            certify(temporary)
            files = sorted(Path(temporary).iterdir(), key=lambda file: file.name == CONFIG)
            for file in files:
                file.replace(folder / file.name)
            if not any(file.name == CERTIFICATE for file in files):
                # One that is there is of other tensors.
                (folder / CERTIFICATE).unlink(missing_ok=True)
    except (ScheduleError, AllocationError, NormError) as error:
        raise failure(f"the machine does not fit its model: {error}") from None
    except OSError as error:
        raise failure(f"cannot write '{folder}': {error.strerror}") from None
