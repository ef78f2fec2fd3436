"""`qgpu run`: a kernel of a program, a source or a baked checkpoint."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from qgpu.backends.machine.description import load_description
from qgpu.backends.machine.host import Dim3, Launch, build_launch
from qgpu.backends.machine.program import Kernel, Program
from qgpu.runtime.arguments import FORMS, Argument, SpecError, check_arguments, files_of, launch_argument
from qgpu.runtime.baked import is_checkpoint, open_baked
from qgpu.runtime.checkpoints import DTYPES, checkpoint_machine, machine_difference
from qgpu.runtime.engine import PREFILL_CHUNK
from qgpu.runtime.engines import BACKENDS, ENGINES, FAST_ENGINE
from qgpu.runtime.hints import recompile_hints
from qgpu.runtime.launch import MAX_TOKENS
from qgpu.runtime.programs import compiled_for, open_ir, open_kernel
from qgpu.runtime.refusing import refusing
from qgpu.runtime.run_launch import EngineChoice, print_outcome, run_ir_launch, run_launch
from qgpu.runtime.structures import Structure, parse_given, spread
from qgpu.runtime.token_file import check_tokens_file, emit_tokens
from qgpu.toolchain.compile import CompileOptions
from qgpu.toolchain.cuda.command_line import cuda_options
from qgpu.toolchain.cuda.names import described, matching
from qgpu.toolchain.cuda.options import CudaOptions
from qgpu.toolchain.diagnostics import failure
from qgpu.toolchain.dimensions import Dimensions

_BACKEND_HELP = f"What runs it: {'; '.join(f'{name}, {what}' for name, what in BACKENDS.items())}."


@dataclass(frozen=True)
class _Opened:
    """A kernel that is to run, what builds a launch of it (grid, block, arguments, shared bytes), and the
    checkpoint, None for the machine's from the cache.
    """

    kernel: Kernel
    launch: Callable[[Dim3, Dim3, Sequence[int | bytes], int], Launch]
    model: str | None


@click.command("run")
@click.argument("file")
@click.option(
    "--kernel",
    metavar="NAME",
    help="Kernel to run (default: the only one): add, ns::add, 'scan<16>', or its full name.",
)
@cuda_options
@click.option("--grid", type=Dimensions(), required=True, help="Thread blocks of the grid.")
@click.option("--block", type=Dimensions(), required=True, help="Threads of a block.")
@click.option(
    "--shared",
    type=click.IntRange(0),
    default=0,
    metavar="BYTES",
    help="Shared memory beyond what the kernel declares.",
)
@click.option(
    "--arg",
    "specs",
    metavar="SPEC",
    multiple=True,
    help=f"An argument, in order: {FORMS}, bytes:HEX (a structure).",
)
@click.option(
    "--backend", type=click.Choice(list(BACKENDS)), default=FAST_ENGINE, show_default=True, help=_BACKEND_HELP
)
@click.option("--model", metavar="DIR", help="Checkpoint to use (default: built once, then cached).")
@click.option("--machine", metavar="NAME|FILE", help="Machine to compile a source for.")
@click.option("--dtype", type=click.Choice(DTYPES), default="float32", show_default=True)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda", "mps"]),
    default="cpu",
    show_default=True,
    help="For weights and verify.",
)
@click.option(
    "--chunk",
    type=click.IntRange(1),
    default=PREFILL_CHUNK,
    show_default=True,
    metavar="TOKENS",
    help="For verify: tokens of a forward pass.",
)
@click.option(
    "--check", is_flag=True, help="Compare every token and buffer with the reference interpreter's."
)
@click.option("--trace", is_flag=True, help="Print each generated token to stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as one JSON object.")
@click.option(
    "--emit-tokens",
    "tokens_file",
    metavar="FILE",
    help="Write the launch as JSON instead of running it, for a program without qgpu; - for stdout.",
)
@click.option(
    "--max-tokens", type=click.IntRange(1), default=MAX_TOKENS, show_default=True, help="Give up after these."
)
def run_command(
    file: str,
    kernel: str | None,
    grid: Dim3,
    block: Dim3,
    shared: int,
    specs: tuple[str, ...],
    backend: str,
    model: str | None,
    machine: str | None,
    dtype: str,
    device: str,
    chunk: int,
    check: bool,
    trace: bool,
    as_json: bool,
    tokens_file: str | None,
    max_tokens: int,
    cuda: CudaOptions,
    cuda_compiler: str,
) -> None:
    """Run a kernel of FILE: a .qbin, or a .cu, .ptx, .ll, .bc or .ir source, compiled first, or the folder of
    a baked checkpoint.

    stdout has the arguments after the launch, in order, one line each.
    """
    _check_usage(backend, check, trace, model, dtype)
    if tokens_file is not None:
        check_tokens_file(tokens_file, [file, *([machine] if machine else ()), *files_of(specs)])
    options = CompileOptions(cuda=cuda, cuda_compiler=cuda_compiler)
    with refusing():
        given = _arguments(specs)
        if backend == "ir":
            run_ir_launch(open_ir(file, kernel, options), grid, block, given, shared, as_json)
            return
        if is_checkpoint(file):
            opened = _baked(file, machine, model, kernel)
        else:
            opened = _compiled(file, machine, model, kernel, options)
        arguments = spread(opened.kernel, given)
        check_arguments(opened.kernel, arguments)
        launch = opened.launch(grid, block, [launch_argument(argument) for argument in arguments], shared)
        if tokens_file is not None:
            emit_tokens(launch, arguments, max_tokens, opened.model, tokens_file)
            return
        engine = EngineChoice(backend, opened.model, dtype, device, chunk)
        outcome = run_launch(launch, engine, check, max_tokens, trace)
        print_outcome(outcome, opened.kernel, arguments, as_json)


def _check_usage(backend: str, check: bool, trace: bool, model: str | None, dtype: str) -> None:
    """Refuse options that say nothing about the back end chosen."""
    if backend in ("reference", "verify") and check:
        raise click.UsageError(
            f"--check compares with the reference; it says nothing about --backend {backend}."
        )
    if backend not in (*ENGINES, "verify") and (check or trace or model is not None):
        raise click.UsageError(
            f"--backend {backend} has neither tokens nor a model: leave out --check, --trace and --model."
        )
    if backend == FAST_ENGINE and dtype != "float32":
        raise click.UsageError(f"--backend {FAST_ENGINE} computes in float32, weights and verify in both.")


def _arguments(specs: tuple[str, ...]) -> tuple[Argument | Structure, ...]:
    try:
        return tuple(map(parse_given, specs))
    except SpecError as error:
        raise click.UsageError(f"--arg: {error}.") from None


def _compiled(
    file: str, machine: str | None, model: str | None, kernel: str | None, options: CompileOptions
) -> _Opened:
    program, chosen = _program(file, machine, model, kernel, options)
    return _Opened(chosen, functools.partial(build_launch, program.machine, chosen), model)


def _baked(folder: str, machine: str | None, model: str | None, kernel: str | None) -> _Opened:
    """Open a baked checkpoint, which holds its kernel itself."""
    if model is not None:
        raise click.UsageError(f"'{folder}' is a checkpoint itself: leave out --model.")
    baked = open_baked(folder)
    own = baked.kernel.name
    difference = None if machine is None else machine_difference(baked.machine, load_description(machine))
    if difference is not None:
        raise failure(f"'{folder}' is the checkpoint of another machine: {difference}")
    if kernel is not None and not matching(kernel, [own]):
        raise failure(f"no kernel '{kernel}' in the weights of '{folder}'", f"there is: {described([own])}")
    return _Opened(baked.kernel, baked.launch, folder)


def _program(
    file: str, machine: str | None, model: str | None, kernel: str | None, options: CompileOptions
) -> tuple[Program, Kernel]:
    """Open a program and its kernel; a source is compiled for the machine named, or for the checkpoint's."""
    described = None if machine is None else load_description(machine)
    if described is None and model is not None:
        described = checkpoint_machine(model)
    program, chosen = open_kernel(file, described, kernel, options)
    difference = None if described is None else machine_difference(program.machine, described)
    if described is None or difference is None:
        return program, chosen
    if machine is None:
        hint = "give the source instead of the program: it is compiled for the checkpoint's machine"
        raise failure(f"'{model}' is the checkpoint of another machine: {difference}", hint)
    hints = recompile_hints(program, file, machine)
    raise failure(compiled_for(program, described, difference), *hints, file=file)
