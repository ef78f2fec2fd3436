"""clang (14 or later) without a CUDA SDK: this project's headers take the SDK's place.

https://clang.llvm.org/docs, "Compiling CUDA with clang".
"""

import dataclasses
import re
from collections.abc import Iterator

from qgpu.toolchain.cuda.command import Program, include_folders
from qgpu.toolchain.cuda.options import CudaOptions, DeviceCode
from qgpu.toolchain.cuda.unit import HEADERS
from qgpu.toolchain.diagnostics import Diagnostic, Severity

_PTX_VERSION = "+ptx72"
_MESSAGE = re.compile(
    r"(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): "
    r"(?P<severity>fatal error|error|warning|note): (?P<text>.*)"
)
_SEVERITY: dict[str, Severity] = {
    "fatal error": "error",
    "error": "error",
    "warning": "warning",
    "note": "note",
}


def command(source: str, output: str, code: DeviceCode, options: CudaOptions) -> list[str]:
    """clang's command line for a file."""
    architecture = options.architecture.replace("compute_", "sm_")
    return [
        "clang++",
        *("-x", "cuda", "--cuda-device-only", f"--cuda-gpu-arch={architecture}", "-nocudainc", "-nocudalib"),
        *("-Xclang", "-target-feature", "-Xclang", _PTX_VERSION),
        *("-nostdlibinc", "-nostdinc++", "-isystem", str(HEADERS), "-include", "cuda_runtime.h"),
        *("-O2", "-gline-tables-only", "-S"),
        *("-fno-caret-diagnostics", "-fno-color-diagnostics", "-fno-diagnostics-show-option"),
        *("-Wno-unknown-cuda-version", "-Wno-unused-command-line-argument"),
        f"-std={options.standard or 'c++17'}",
        *(f"-D{define}" for define in options.defines),
        *(f"-I{folder}" for folder in include_folders(code, options)),
        *("-o", output, source),
    ]


def parse(log: str) -> Iterator[Diagnostic]:
    """clang's messages, each with the notes after it."""
    last: Diagnostic | None = None
    for line in log.splitlines():
        match = _MESSAGE.fullmatch(line)
        if match is None:
            continue
        found = Diagnostic(
            severity=_SEVERITY[match["severity"]],
            message=match["text"],
            file=match["file"],
            line=int(match["line"]),
            column=int(match["column"]),
        )
        if found.severity == "note" and last is not None:
            last = _with_note(last, found)
            continue
        if last is not None:
            yield last
        last = found
    if last is not None:
        yield last


def _with_note(diagnostic: Diagnostic, note: Diagnostic) -> Diagnostic:
    return dataclasses.replace(diagnostic, notes=(*diagnostic.notes, note))


CLANG = Program(
    "clang++", command, lambda log: list(parse(log)), "--cuda-compiler=nvrtc needs no installation"
)
