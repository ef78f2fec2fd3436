"""What a CUDA compiler is asked and what it gives back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qgpu.toolchain.diagnostics import Diagnostic


@dataclass(frozen=True)
class CudaOptions:
    """Options that every CUDA compiler understands.

    `defines` are `NAME` or `NAME=VALUE`; `include_dirs` are searched after the folder of the source file.
    `architecture` is the virtual architecture whose PTX is generated, `standard` a dialect such as `c++17`.
    `kernels` names what is wanted: instances of templates among them are compiled; None means those that the
    source launches.
    """

    defines: tuple[str, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    architecture: str = "compute_75"
    standard: str | None = None
    kernels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Ptx:
    """Generated PTX, and the compiler's warnings.

    `instances` has the full name of each kernel that was asked for as an instance of a template,
    `templates` the templates of kernels in the source, as `scan<int N>`.
    """

    text: str
    warnings: tuple[Diagnostic, ...] = ()
    instances: Mapping[str, str] = field(default_factory=dict)
    templates: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeviceCode:
    """A translation unit without its host code.

    `name` is the user's file, `text` what is left of it; `headers` has what is left of the user's headers, by
    the names under which the texts include them. `instances` are the instances of kernel templates to make.
    """

    name: str
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)
    instances: tuple[str, ...] = ()
