"""`qgpuc`, the compiler driver, with the habits of nvcc."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qgpu.toolchain.compile import (
    LANGUAGES,
    CompileOptions,
    passes_for,
)
from qgpu.toolchain.cuda import CudaOptions
from qgpu.toolchain.cuda.command_line import cuda_options
from qgpu.toolchain.diagnostics import Source, failure, reporting
from qgpu.toolchain.dimensions import Dimensions
from qgpu.toolchain.job import EMITTERS, QUESTIONS, Job, emit_parts, machine_named
from qgpu.toolchain.memory import without_collection
from qgpu.toolchain.merging import MergeOptions, merge_options
from qgpu.toolchain.optimise import SPLIT_MARK, PassChoice, timing_table
from qgpu.toolchain.outputs import STANDARD, check_output, write_output
from qgpu.toolchain.sources import decoded
from qgpu.toolchain.weights import write_baked, write_weights

if TYPE_CHECKING:
    from qgpu.backends.machine.host import Dim3
    from qgpu.ir.passes import TimePasses

_PROGRAM = "qgpuc"


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from importlib import metadata

    try:
        version = metadata.version("qgpu")
    except metadata.PackageNotFoundError:
        version = "(not installed)"
    click.echo(f"qgpuc {version}")
    context.exit()


def _print_passes(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from qgpu.ir.passes import PASSES, describe_passes

    click.echo(describe_passes(PASSES.values()))
    context.exit()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", required=False)
@click.option(
    "-o", "output", metavar="PATH", help="Output file, or folder with --emit-weights; - for stdout."
)
@click.option(
    "-x", "language", type=click.Choice(LANGUAGES), help="Language of the input (default: its suffix)."
)
@click.option(
    "--emit",
    type=click.Choice(list(EMITTERS)),
    help="What to make: PTX, the IR (before any pass, or after those chosen), its control flow graph in DOT, "
    "machine code as text, or a program file (default; ir where passes are chosen).",
)
@click.option(
    "--kernel",
    "kernels",
    multiple=True,
    metavar="NAME",
    help="Compile this kernel (default: all): add, ns::add, 'scan<16>', or its full name.",
)
@click.option(
    "--machine", default="default", show_default=True, metavar="NAME|FILE", help="Machine to compile for."
)
@click.option("-ptx", "--ptx", "to_ptx", is_flag=True, help="Make PTX, in a file named after the input.")
@click.option("--list-kernels", is_flag=True, help="List the kernels, and the templates of kernels.")
@click.option("-dryrun", "--dryrun", is_flag=True, help="Only print the CUDA compiler's command line.")
@cuda_options
@click.option(
    "--passes",
    "pipeline",
    metavar="PIPELINE",
    help="Run these passes, as 'a,b{option=1},c', and make the IR after them.",
)
@click.option("--stop-after", metavar="PASS[,N]", help="Make the IR after the (N-th run of the) pass.")
@click.option("--print-after", multiple=True, metavar="PASS", help="Print the IR after a pass to stderr.")
@click.option("--print-after-all", is_flag=True, help="Print the IR after every pass to stderr.")
@click.option("--print-changed", is_flag=True, help="Print the IR after each pass that changed it to stderr.")
@click.option("--dump-ir", metavar="DIR", help="Write the IR after every pass to DIR/KERNEL/NN-PASS.ir.")
@click.option("--time-passes", is_flag=True, help="Print to stderr what each pass took.")
@click.option("--verify-each", is_flag=True, help="Verify the IR after every pass, not only after the last.")
@click.option(
    "--split-input-file",
    is_flag=True,
    help=f"Compile the parts of an IR or PTX file between lines of '{SPLIT_MARK}' each for itself.",
)
@click.option(
    "--help-passes",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_passes,
    help="List the passes and their options.",
)
@click.option(
    "--keep", is_flag=True, help="Keep what is made on the way as .ptx, .ir, .opt.ir and .qasm files."
)
@click.option(
    "--keep-dir", default=".", show_default=True, metavar="DIR", help="Where --keep writes; has to exist."
)
@click.option(
    "-maxrregcount",
    "--maxrregcount",
    "max_registers",
    metavar="N",
    type=click.IntRange(min=1),
    help="Let a thread have N registers at most: more of them run at a time.",
)
@click.option("-v", "--verbose", is_flag=True, help="Report what each kernel uses, as ptxas -v does.")
@click.option(
    "--emit-weights", is_flag=True, help="Write the checkpoint that is the machine, without a kernel."
)
@click.option("--bake", is_flag=True, help="With --emit-weights: write the checkpoint that is FILE's kernel.")
@click.option("--grid", type=Dimensions(), help="With --bake: use rows for launches of such a grid alone.")
@click.option("--block", type=Dimensions(), help="With --bake: use rows for such thread blocks alone.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16"]),
    default="float32",
    show_default=True,
    help="Number format of the checkpoint; with --base, the base's if not given.",
)
@merge_options
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version)
def main(
    file: str | None,
    output: str | None,
    language: str | None,
    emit: str | None,
    kernels: tuple[str, ...],
    machine: str,
    to_ptx: bool,
    list_kernels: bool,
    dryrun: bool,
    cuda: CudaOptions,
    cuda_compiler: str,
    pipeline: str | None,
    stop_after: str | None,
    print_after: tuple[str, ...],
    print_after_all: bool,
    print_changed: bool,
    dump_ir: str | None,
    time_passes: bool,
    verify_each: bool,
    split_input_file: bool,
    keep: bool,
    keep_dir: str,
    max_registers: int | None,
    verbose: bool,
    emit_weights: bool,
    bake: bool,
    grid: "Dim3 | None",
    block: "Dim3 | None",
    dtype: str,
    merge: MergeOptions,
) -> None:
    """Compile a CUDA, PTX, LLVM IR or IR file for the machine.

    FILE is a .cu, .ptx, .ll, .bc or .ir file, or - for standard input (with -x).
    """
    merge.check(emit_weights, bake)
    if not bake and (grid or block):
        raise click.UsageError("--grid and --block are for --bake.")
    if bake and not emit_weights:
        raise click.UsageError("--bake is for --emit-weights.")
    if emit_weights and not bake:
        with reporting(_PROGRAM):
            write_weights(file, output, machine, dtype, merge)
        return
    if file is None:
        raise click.UsageError("No input file.")
    choice = PassChoice(pipeline, stop_after, print_after, print_after_all, print_changed, dump_ir)
    if bake and (output is None or emit or choice.explicit or to_ptx or list_kernels or dryrun):
        raise click.UsageError(
            "--bake makes a checkpoint, in a folder: -o DIR; it goes with no other result."
        )
    emit = emit or ("ir" if choice.explicit else "ptx" if to_ptx else "qbin")
    if choice.explicit and emit not in ("ir", "cfg"):
        raise click.UsageError(f"Chosen passes make IR, not {emit}: --emit=ir or --emit=cfg.")
    language = language or _language_of(file)
    if split_input_file and (language == "cu" or emit == "qbin"):
        raise click.UsageError("--split-input-file is for IR and PTX, and for results that are text.")
    if list_kernels or dryrun:
        emit = "commands" if dryrun else "kernels"
    output = output or _default_output(file, emit, to_ptx)
    check_output([file], output)
    with reporting(_PROGRAM), without_collection(), _timing(time_passes) as timer:
        without_passes = emit in ("ptx", "ir", *QUESTIONS) and not choice.explicit
        steps = choice.steps([] if without_passes else passes_for(machine_named(machine)))
        options = CompileOptions(
            cuda=cuda,
            cuda_compiler=cuda_compiler,
            kernels=kernels or None,
            observers=choice.observers(timer),
            verify_each=verify_each,
            keep=_keeper(Path(file), keep_dir) if keep else None,
            max_registers=max_registers,
        )
        chosen = steps if choice.explicit else None
        job = Job(_read(file, language), language, machine, options, output, verbose, chosen)
        if bake:
            write_baked(job, Path(output), dtype, (grid, block), merge.prove)
            return
        emitter = QUESTIONS.get(emit) or EMITTERS[emit]
        result = emit_parts(job, emit) if split_input_file else emitter(job)
        write_output(output, result)


def _keeper(file: Path, folder: str) -> Callable[[str, str], None]:
    """Writes intermediate forms into a folder, under the input's name with their own suffix.

    The form that the input already has stays as it was written.
    """

    def keep(suffix: str, text: str) -> None:
        path = Path(folder, f"{file.stem}.{suffix}")
        if os.path.realpath(path) != os.path.realpath(file):
            write_output(str(path), text.encode())

    return keep


@contextmanager
def _timing(wanted: bool) -> "Iterator[TimePasses | None]":
    """A timer whose table goes to stderr at the end, or None."""
    if not wanted:
        yield None
        return
    from qgpu.ir.passes import TimePasses

    timer = TimePasses()
    yield timer
    click.echo(timing_table(timer), err=True)


def _language_of(file: str) -> str:
    suffix = Path(file).suffix.removeprefix(".")
    if suffix in LANGUAGES:
        return suffix
    if file == STANDARD:
        raise click.UsageError("Standard input needs its language: -x cu, ptx, ll, bc or ir.")
    raise click.UsageError(
        f"The suffix of '{file}' is none of .cu, .ptx, .ll, .bc and .ir: give the language with -x."
    )


def _default_output(file: str, emit: str, to_ptx: bool = False) -> str:
    if emit == "ptx" and to_ptx and file != STANDARD:
        return f"{Path(file).stem}.ptx"
    if emit != "qbin":
        return STANDARD
    if file == STANDARD:
        raise click.UsageError("A program from standard input needs an output file: -o PATH.")
    return f"{Path(file).stem}.qbin"


def _read(file: str, language: str) -> Source:
    try:
        data = sys.stdin.buffer.read() if file == STANDARD else Path(file).read_bytes()
    except OSError as error:
        raise failure(f"cannot read '{file}': {error.strerror}") from None
    return decoded("<stdin>" if file == STANDARD else file, data, language)
