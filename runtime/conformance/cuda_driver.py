"""A GPU by NVIDIA's driver alone, through ctypes: neither a toolkit nor a library for Python is needed.

API: the CUDA Driver API reference, "Module Management", "Memory Management", "Execution Control".
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator
from typing import Any

from qgpu.runtime.conformance.case import CaseLaunch
from qgpu.runtime.conformance.hardware import GpuFaultError, RefusedError
from qgpu.toolchain.cuda.names import plain_name
from qgpu.toolchain.diagnostics import failure

_LIBRARIES = {"win32": "nvcuda.dll"}
_LIBRARY = "libcuda.so.1"
_UNSUPPORTED_PTX = 222
"""CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the driver is older than the compiler that wrote the PTX."""
_VERSIONS = ("8.8", "8.7", "8.6", "8.5", "8.4", "8.3", "8.2", "8.1", "8.0", "7.8", "7.5", "7.0", "6.4")
"""Versions of PTX to fall back to: the text is the same, and assembles or does not."""
_VERSION = re.compile(r"^(\.version\s+)([\d.]+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR."""
_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""


class CudaGpu:
    """The first GPU. `name`, `capability` and `driver` are as of `hardware.Gpu`."""

    def __init__(self, library: Any = None) -> None:
        """`library` stands for the driver's library.

        Raises:
            DiagnosticError: there is no driver, or no GPU.
        """
        self._cuda = library if library is not None else _load()
        self._device = ctypes.c_int()
        self._context = ctypes.c_void_p()
        try:
            self._start()
        except GpuFaultError as error:
            raise failure(f"no GPU: {error}") from None
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, ctypes.c_int(256), self._device)
        self.name = name.value.decode()
        self.capability = f"{self._attribute(_MAJOR)}.{self._attribute(_MINOR)}"
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        self.driver = f"{version.value // 1000}.{version.value % 1000 // 10}"

    def run(self, ptx: str, kernel: str, launch: CaseLaunch) -> list[bytes]:
        """The buffers after a launch; a failed one leaves a new context behind.

        Raises:
            RefusedError: the driver does not take the PTX.
            GpuFaultError: the launch ended with an error.
        """
        module = self._module(ptx)
        try:
            return self._launch(module, _entry(ptx, kernel), launch)
        except GpuFaultError:
            self._restart()
            raise
        finally:
            self._cuda.cuModuleUnload(module)

    def _start(self) -> None:
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(0))
        self._enter()

    def _enter(self) -> None:
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self._call("cuCtxSetCurrent", self._context)

    def _restart(self) -> None:
        """An error in a kernel ruins the context: every later call would fail."""
        self._call("cuDevicePrimaryCtxReset_v2", self._device)
        self._enter()

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(number), self._device)
        return value.value

    def _module(self, ptx: str) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        status = _UNSUPPORTED_PTX
        for text in _older(ptx):
            status = self._cuda.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(text.encode()))
            if status != _UNSUPPORTED_PTX:
                break
        if status:
            raise RefusedError(f"the driver does not load the PTX: {self._error(status)}")
        return module

    def _launch(self, module: ctypes.c_void_p, entry: str, launch: CaseLaunch) -> list[bytes]:
        function = ctypes.c_void_p()
        name = ctypes.c_char_p(entry.encode())
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name)
        if launch.shared:
            attribute = (ctypes.c_int(_DYNAMIC_SHARED), ctypes.c_int(launch.shared))
            self._call("cuFuncSetAttribute", function, *attribute)
        places: list[tuple[ctypes.c_uint64, int]] = []
        try:
            values = [self._argument(argument, places) for argument in launch.arguments]
            pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
            sizes = map(ctypes.c_uint, (*launch.grid, *launch.block, launch.shared))
            self._call("cuLaunchKernel", function, *sizes, ctypes.c_void_p(), pointers, ctypes.c_void_p())
            self._call("cuCtxSynchronize")
            return [self._content(place, size) for place, size in places]
        finally:
            for place, _ in places:
                self._cuda.cuMemFree_v2(place)

    def _argument(self, argument: int | bytes, places: list[tuple[ctypes.c_uint64, int]]) -> ctypes.c_uint64:
        """The eight bytes that an argument is read from; of a scalar the driver takes as many as it has."""
        if isinstance(argument, int):
            return ctypes.c_uint64(argument % (1 << 64))
        place = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(1, len(argument))))
        places.append((place, len(argument)))
        self._call("cuMemcpyHtoD_v2", place, ctypes.c_char_p(argument), ctypes.c_size_t(len(argument)))
        return place

    def _content(self, place: ctypes.c_uint64, size: int) -> bytes:
        content = ctypes.create_string_buffer(max(1, size))
        self._call("cuMemcpyDtoH_v2", content, place, ctypes.c_size_t(size))
        return content.raw[:size]

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._cuda, function)(*arguments)
        if status:
            raise GpuFaultError(f"{function}: {self._error(status)}")

    def _error(self, status: int) -> str:
        text = ctypes.c_char_p()
        self._cuda.cuGetErrorName(ctypes.c_int(status), ctypes.byref(text))
        return f"{(text.value or b'error').decode()} ({status})"


def _load() -> ctypes.CDLL:
    name = _LIBRARIES.get(sys.platform, _LIBRARY)
    try:
        return ctypes.CDLL(name)
    except OSError:
        raise failure(
            f"no CUDA driver: '{name}' cannot be loaded",
            "run this on a machine with an NVIDIA GPU and its driver",
        ) from None


def _older(ptx: str) -> Iterator[str]:
    """The text, and then the same as each older version of PTX."""
    yield ptx
    found = _VERSION.search(ptx)
    own = _number(found[2]) if found else (0, 0)
    for version in _VERSIONS:
        if _number(version) < own:
            yield _VERSION.sub(rf"\g<1>{version}", ptx, count=1)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _entry(ptx: str, kernel: str) -> str:
    """The full name of a kernel.

    Raises:
        RefusedError: there is none.
    """
    names = [name for name in _ENTRY.findall(ptx) if kernel in (name, plain_name(name))]
    if not names:
        raise RefusedError(f"the PTX has no kernel '{kernel}'")
    return names[0]
