"""NVRTC from the wheel `nvidia-cuda-nvrtc`, through ctypes: neither a toolkit nor a GPU is needed.

API: https://docs.nvidia.com/cuda/nvrtc, "User Interface".
"""

import ctypes
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from qgpu.toolchain.cuda.log import parse_log, plain_lines
from qgpu.toolchain.cuda.options import CudaOptions, DeviceCode, Ptx
from qgpu.toolchain.cuda.unit import HEADERS
from qgpu.toolchain.diagnostics import DiagnosticError, failure

_NAMESPACE = "nvidia"
_WHEEL = "nvidia-cuda-nvrtc"
_LIBRARY = re.compile(r"^(libnvrtc\.so\.\d+|nvrtc64_\d+_\d+\.dll)$")
_BUILTINS = re.compile(r"^(libnvrtc-builtins\.so\.[\d.]+|nvrtc-builtins64_\d+\.dll)$")
_SUCCESS = 0
_REFUSED = 6
"""NVRTC_ERROR_COMPILATION."""
_FIRST = "cuda_runtime.h"
"""Every CUDA file has it included before its first line."""


def compile_to_ptx(code: DeviceCode, options: CudaOptions) -> Ptx:
    """Compile device code to PTX with line information.

    Raises:
        DiagnosticError: the compiler's errors, placed in the user's files, or NVRTC is missing.
    """
    program = _Program(_load(), code)
    try:
        for name in code.instances:
            program.add_name(name)
        status = program.compile(arguments(code, options))
        log = program.log()
        diagnostics = parse_log(log)
        faulty = any(found.severity == "error" for found in diagnostics)
        if status == _SUCCESS and not faulty:
            lowered = {name: program.lowered_name(name) for name in code.instances}
            return Ptx(program.ptx(), diagnostics, lowered)
    finally:
        program.destroy()
    if faulty and status in (_SUCCESS, _REFUSED):
        raise DiagnosticError(*diagnostics)
    reason, *notes = plain_lines(log) or [program.error_string(status)]
    raise failure(f"NVRTC failed: {reason}", *notes, file=code.name)


def find_library() -> tuple[Path, Path] | None:
    """The paths of NVRTC and of its builtins, which it loads by name; None where no wheel brings them."""
    files = list(_library_files())
    library = next((path for path in files if _LIBRARY.match(path.name)), None)
    builtins = next((path for path in files if _BUILTINS.match(path.name)), None)
    return (library, builtins) if library and builtins else None


def _library_files() -> Iterator[Path]:
    """The shared libraries in the namespace package of NVIDIA's wheels.

    The package is searched for, not its metadata: reading that takes longer than all else before NVRTC runs.
    """
    package = find_spec(_NAMESPACE)
    for folder in (package and package.submodule_search_locations) or ():
        for pattern in ("*/lib/*", "*/bin/*", "*/bin/*/*"):
            yield from sorted(Path(folder).glob(pattern))


@cache
def _load() -> ctypes.CDLL:
    found = find_library()
    if found is None:
        raise failure(
            "NVRTC, the CUDA compiler, is not installed",
            f"it comes with the Python package {_WHEEL}",
            "PTX and IR files are compiled without it",
        )
    library, builtins = found
    try:
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise failure(f"NVRTC, the CUDA compiler, cannot be loaded: {error}") from error


def arguments(code: DeviceCode, options: CudaOptions) -> list[str]:
    """The options that NVRTC is called with.

    Functions without annotations are the device's (`-default-device`): what is left of them is constexpr.
    """
    folders = [Path(code.name).parent, *options.include_dirs, HEADERS]
    return [
        f"--gpu-architecture={options.architecture}",
        "-lineinfo",
        "-default-device",
        *([f"--std={options.standard}"] if options.standard else []),
        *(["--device-int128"] if sys.platform == "linux" else []),
        *(f"--define-macro={define}" for define in options.defines),
        *(f"--include-path={folder}" for folder in folders),
        f"--pre-include={_FIRST}",
    ]


class _Program:
    """An nvrtcProgram. Its text arguments are kept alive for as long as the library may read them."""

    def __init__(self, library: ctypes.CDLL, code: DeviceCode) -> None:
        self._library = library
        self._handle = ctypes.c_void_p()
        text, name = code.text.encode(), os.fsencode(code.name)
        contents, names = _strings(code.headers.values()), _strings(code.headers)
        count = len(code.headers)
        self._check(
            library.nvrtcCreateProgram(ctypes.byref(self._handle), text, name, count, contents, names)
        )

    def add_name(self, expression: str) -> None:
        """Have an instance of a template compiled."""
        self._check(self._library.nvrtcAddNameExpression(self._handle, expression.encode()))

    def lowered_name(self, expression: str) -> str:
        """The full name of an instance that was added."""
        name = ctypes.c_char_p()
        text = expression.encode()
        self._check(self._library.nvrtcGetLoweredName(self._handle, text, ctypes.byref(name)))
        return (name.value or b"").decode()

    def compile(self, arguments: list[str]) -> int:
        return self._library.nvrtcCompileProgram(self._handle, len(arguments), _strings(arguments))

    def log(self) -> str:
        return self._text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog")

    def ptx(self) -> str:
        return self._text("nvrtcGetPTXSize", "nvrtcGetPTX")

    def destroy(self) -> None:
        self._library.nvrtcDestroyProgram(ctypes.byref(self._handle))

    def error_string(self, status: int) -> str:
        function = self._library.nvrtcGetErrorString
        function.restype = ctypes.c_char_p
        return function(status).decode()

    def _text(self, size_function: str, text_function: str) -> str:
        size = ctypes.c_size_t()
        self._check(getattr(self._library, size_function)(self._handle, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._library, text_function)(self._handle, buffer))
        return buffer.value.decode(errors="replace")

    def _check(self, status: int) -> None:
        if status != _SUCCESS:
            raise failure(f"NVRTC failed: {self.error_string(status)}")


def _strings(texts: Iterable[str]) -> ctypes.Array:
    encoded = [os.fsencode(text) for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)
