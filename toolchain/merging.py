"""`qgpuc --emit-weights --base`: the machine merged into a Qwen3.5 checkpoint."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qgpu.toolchain.diagnostics import failure
from qgpu.toolchain.hub import ALL, CONFIG_ALONE, base_directory
from qgpu.toolchain.outputs import end_in_order
from qgpu.toolchain.progress import stages
from qgpu.toolchain.proving import proved_content

if TYPE_CHECKING:
    from qgpu.backends.machine.description import MachineDescription
    from qgpu.backends.transformer.merge.plan import MergePlan


@dataclass(frozen=True)
class MergeOptions:
    """What the command line says of a merge.

    Attributes:
        base: the base's directory or its name on the hub; None where nothing is merged.
        dry_run: only the sizes are asked for.
        as_json: as one JSON object.
        prove: the result is proved before it takes its name.
    """

    base: str | None
    dry_run: bool
    as_json: bool
    prove: bool

    def check(self, emit_weights: bool, bake: bool) -> None:
        """Refuse options without those that they belong to."""
        if self.base is None and (self.dry_run or self.as_json):
            raise click.UsageError("--dry-run and --json are for --emit-weights --base.")
        if self.prove and not emit_weights:
            raise click.UsageError("--prove is for --emit-weights.")
        if self.base is not None and (bake or not emit_weights):
            raise click.UsageError("--base is for --emit-weights of a machine.")
        if self.as_json and not self.dry_run:
            raise click.UsageError("--json is for --dry-run.")


_OPTIONS = (
    click.option(
        "--base",
        metavar="DIR|HUB_ID",
        help="With --emit-weights: merge the machine into this Qwen3.5 checkpoint.",
    ),
    click.option("--dry-run", is_flag=True, help="With --base: print sizes; config.json is all it needs."),
    click.option("--json", "as_json", is_flag=True, help="With --dry-run: print them as a JSON object."),
    click.option(
        "--prove",
        is_flag=True,
        help="With --emit-weights: write nothing that is not proved, and a certificate.",
    ),
)


def merge_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, as `merge` (MergeOptions)."""

    @functools.wraps(command)
    def wrapped(
        *args: Any, base: str | None, dry_run: bool, as_json: bool, prove: bool, **others: Any
    ) -> Any:
        return command(*args, merge=MergeOptions(base, dry_run, as_json, prove), **others)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def merge_machine(
    machine: MachineDescription, options: MergeOptions, output: str | None, dtype: str | None
) -> None:
    """Merge a machine into a base, or print what would come out.

    Args:
        output: the directory to write.
        dtype: of the result; None for the base's.

    Raises:
        DiagnosticError: the base cannot be read, the machine does not fit, or the output cannot be written.
    """
    from qgpu.backends.transformer.merge.base import MergeError, read_base
    from qgpu.backends.transformer.merge.plan import ITEM_BYTES, plan_merge

    assert options.base is not None
    source = base_directory(options.base, CONFIG_ALONE if options.dry_run else ALL)
    try:
        base = read_base(source)
        chosen = dtype or base.dtype
        if chosen not in ITEM_BYTES:
            raise failure(f"the base is {chosen}: give --dtype {' or '.join(ITEM_BYTES)}")
        with stages(f"machine '{machine.name}' in the base's layers") as tell:
            plan = plan_merge(base, machine, chosen, tell)
        if options.dry_run:
            click.echo(json.dumps(_sizes(plan)) if options.as_json else _table(plan, options.prove))
            return
        assert output is not None
        _build(plan, source, Path(output), options)
    except MergeError as error:
        raise failure(str(error)) from None
    except OSError as error:
        place = f"'{error.filename or output}'"
        raise failure(f"cannot write {place}: {error.strerror or error}") from None


def _build(plan: MergePlan, source: Path, output: Path, options: MergeOptions) -> None:
    from qgpu.backends.transformer.merge.build import build_merged

    base = str(options.base)
    name = source.resolve().name if Path(base).is_dir() else base
    more = " --prove" if options.prove else ""
    chosen = f"--machine {plan.machine.name} --dtype {plan.dtype}{more}"
    command = f"qgpuc --emit-weights --base {base} {chosen} -o {output}"
    end_in_order()
    with _progress(plan) as (written, proved):
        certify = functools.partial(certificate, plan, proved) if options.prove else None
        build_merged(plan, source, output, name, command, written, certify=certify)


def certificate(plan: MergePlan, proved: Callable[[int], None], directory: Path) -> dict[str, Any]:
    """The certificate of a directory.

    Raises:
        DiagnosticError: it is not proved, or not the machine's circuit.
    """
    from qgpu.backends.prover.certify import certify_merged

    return proved_content(certify_merged(directory, plan, proved))


@contextmanager
def _progress(plan: MergePlan) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Take the bytes written and the layers proved: bars on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda count: None, lambda layer: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("weights", total=plan.bytes)
        yield (
            lambda count: bars.advance(task, count),
            lambda layer: bars.update(task, description=f"proof: layer {layer} of {plan.layers}"),
        )


def _sizes(plan: MergePlan) -> dict[str, Any]:
    from qgpu.backends.transformer.merge.prices import CONTEXT, choices, memory

    return {
        "layers": plan.layers,
        "hidden_size": plan.hidden,
        "parameters": plan.parameters,
        "bytes": plan.bytes,
        "memory": memory(plan),
        "memory_tokens": CONTEXT,
        "dtype": plan.dtype,
        "compiled_layers": plan.layout.layers,
        "vocab_size": plan.vocabulary,
        "base_parameters": plan.base_parameters,
        "choices": [vars(choice) for choice in choices(plan)],
    }


def _table(plan: MergePlan, prove: bool) -> str:
    """Sizes, then the choices with their prices, for people."""
    from rich.console import Console
    from rich.table import Table

    from qgpu.backends.transformer.merge.prices import CONTEXT, choices, memory

    sizes = Table.grid(padding=(0, 2))
    own = len(plan.base.layer_types)
    sizes.add_row("layers", f"{plan.layers}: {plan.layout.layers} compiled, {own} of the base")
    sizes.add_row("hidden size", f"{plan.hidden}: {plan.base.hidden} of the base, {plan.width} beside them")
    vocabularies = f"{plan.base.vocabulary} of the base, {plan.layout.vocabulary}"
    sizes.add_row("vocabulary", f"{plan.vocabulary}: {vocabularies} of the machine")
    sizes.add_row("parameters", f"{plan.parameters:,}; the base has {plan.base_parameters:,}")
    sizes.add_row("bytes", f"{plan.bytes:,} ({plan.dtype})")
    sizes.add_row("memory to run", f"{memory(plan):,} bytes, with {CONTEXT} tokens")
    later = f"none; --prove makes one, or later qgpu prove OUT --against-machine {plan.machine.name}"
    sizes.add_row("certificate", "the tensors are proved before OUT is there" if prove else later)
    prices = Table("size", "choice", "GB", "", box=None, padding=(0, 2, 0, 0))
    for choice in choices(plan):
        mark = "*" if choice.taken else " "
        prices.add_row(choice.size, f"{mark} {choice.what}", f"{choice.bytes / 1e9:.2f}", choice.because)
    console = Console(width=110, color_system=None)
    with console.capture() as captured:
        console.print(sizes)
        console.print()
        console.print(prices)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())
