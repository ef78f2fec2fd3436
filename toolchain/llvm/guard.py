"""What LLVM does with some modules that break its rules: it prints an assertion and ends the process.

The C library's signal handler is the only place where that can still be reported as an error of the input.
"""

import ctypes
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from qgpu.toolchain.diagnostics import emit, failure

_STDERR = 2


@contextmanager
def guarded(name: str) -> Iterator[None]:
    """Report an end of the process in the body as an error of the file `name`, with exit status 1."""
    if os.name != "posix":
        yield
        return
    library = ctypes.CDLL(None)
    library.signal.restype = ctypes.c_void_p
    library.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    with tempfile.TemporaryFile() as log:
        kept = os.dup(_STDERR)
        handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda _: _end(name, kept, log.fileno()))
        before = library.signal(signal.SIGABRT, ctypes.cast(handler, ctypes.c_void_p))
        os.dup2(log.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
            library.signal(signal.SIGABRT, before)


def _end(name: str, kept: int, log: int) -> None:
    """Say on the process's own stderr what LLVM wrote, and end."""
    os.dup2(kept, _STDERR)
    size = os.lseek(log, 0, os.SEEK_END)
    text = os.pread(log, size, 0).decode("utf-8", "replace")
    quoted = text.partition('&& "')[2].partition('"')[0]
    found = failure(
        f"LLVM gives up on this module: {quoted or 'it breaks a rule that is not checked'}",
        "a call or metadata that LLVM brings up to date may not have the form it expects",
        file=name,
    )
    emit(found.diagnostics)
    os._exit(1)
