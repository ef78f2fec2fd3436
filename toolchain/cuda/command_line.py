"""The options of a command line that steer a CUDA compiler, as nvcc spells them."""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from qgpu.toolchain.cuda.compilers import COMPILERS
from qgpu.toolchain.cuda.front_end import device_code
from qgpu.toolchain.cuda.host_code import HostCode
from qgpu.toolchain.cuda.kernels import Kernels
from qgpu.toolchain.cuda.names import kernel_name
from qgpu.toolchain.cuda.options import CudaOptions
from qgpu.toolchain.cuda.unit import TranslationUnit
from qgpu.toolchain.diagnostics import Source

_ARCHITECTURE = re.compile(r"(?:sm|compute)_(\d{2,3}[af]?)")
_STANDARDS = ("c++11", "c++14", "c++17", "c++20")


class _Architecture(click.ParamType):
    """A virtual architecture, for which PTX is generated; a real one stands for the virtual one."""

    name = "compute_NN"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        match = _ARCHITECTURE.fullmatch(str(value))
        if match is None:
            self.fail(f"'{value}' is not an architecture such as compute_75 or sm_80.", param, ctx)
        return f"compute_{match[1]}"


_OPTIONS = [
    click.option(
        "-D", "--define-macro", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro."
    ),
    click.option(
        "-I",
        "--include-path",
        "include_dirs",
        multiple=True,
        metavar="DIR",
        help="Search a folder for headers.",
    ),
    click.option(
        "-arch",
        "--gpu-architecture",
        "architecture",
        type=_Architecture(),
        default=CudaOptions.architecture,
        show_default=True,
        help="Virtual architecture whose PTX is generated; sm_NN means compute_NN.",
    ),
    click.option("-std", "--std", "standard", type=click.Choice(_STANDARDS), help="Dialect of C++."),
    click.option(
        "-lineinfo",
        "--generate-line-info",
        "line_information",
        is_flag=True,
        help="Taken for nvcc's sake: source lines are always kept.",
    ),
    click.option(
        "--cuda-compiler",
        type=click.Choice(list(COMPILERS)),
        default="auto",
        show_default=True,
        help="What compiles CUDA: nvrtc comes with pip (auto), clang++ and nvcc have to be installed.",
    ),
]


def cuda_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, as `cuda` (CudaOptions) and `cuda_compiler` (a key of COMPILERS)."""

    @functools.wraps(command)
    def wrapped(
        *args: Any,
        defines: tuple[str, ...],
        include_dirs: tuple[str, ...],
        architecture: str,
        standard: str | None,
        line_information: bool,
        **others: Any,
    ) -> Any:
        folders = tuple(map(Path, include_dirs))
        return command(*args, cuda=CudaOptions(defines, folders, architecture, standard), **others)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def dry_run(source: Source, options: CudaOptions, compiler: str) -> str:
    """The compiler's command line for a source, as nvcc's --dryrun writes it."""
    unit = TranslationUnit(source, options.include_dirs)
    code = device_code(HostCode(unit), tuple(Kernels(unit).instances(options.kernels)))
    words = COMPILERS[compiler].arguments(code, options)
    return "#$ " + " ".join(f'"{word}"' if re.search(r"[^\w./=+:,-]", word) else word for word in words)


def kernel_list(source: Source | None, options: CudaOptions, names: list[str]) -> str:
    """The kernels of a program, one a line, and after them the templates of its source."""
    lines = [f"{kernel_name(name)}  {name}" if str(kernel_name(name)) != name else name for name in names]
    kernels = Kernels(TranslationUnit(source, options.include_dirs)).all if source else []
    lines += [f"{kernel}  template" for kernel in kernels if kernel.template is not None]
    return "".join(f"{line}\n" for line in lines)
