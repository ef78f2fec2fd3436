"""What a CUDA compiler is asked and what it gives back."""

from dataclasses import dataclass
from pathlib import Path

from qgpu.toolchain.diagnostics import Diagnostic


@dataclass(frozen=True)
class CudaOptions:
    """Options that every CUDA compiler understands.

    `defines` are `NAME` or `NAME=VALUE`; `include_dirs` are searched after the folder of the source file.
    `architecture` is the virtual architecture whose PTX is generated.
    """

    defines: tuple[str, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    architecture: str = "compute_75"


@dataclass(frozen=True)
class Ptx:
    """Generated PTX, and the compiler's warnings."""

    text: str
    warnings: tuple[Diagnostic, ...] = ()
