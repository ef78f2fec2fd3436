"""The decorator of compiled functions: their machine code is kept, by all the sources that it is made of.

numba looks at the file of a function alone to tell whether kept code is that of the source; a function of
another file that it calls, or a constant, may have changed since. So code is kept in a folder that is named
after all sources of the package that the function is of.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

# Its decorators are not typed such that what they return can be called.
_numba: Any = importlib.import_module("numba")

F = TypeVar("F", bound=Callable[..., Any])

_PREFIX = "compiled-"


def compiled(function: F) -> F:
    """Compile a function when it is first called, without Python's lock while it runs."""
    config = _numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = before or _folder(Path(function.__code__.co_filename).parent)
    try:
        return _numba.njit(cache=True, nogil=True)(function)
    finally:
        config.CACHE_DIR = before


@cache
def _folder(package: Path) -> str:
    """Where code is kept: beside the sources, or, where that cannot be written, where numba keeps it."""
    parent = package / "__pycache__"
    sources = b"".join(path.read_bytes() for path in sorted(package.glob("*.py")))
    folder = parent / (_PREFIX + hashlib.sha256(sources).hexdigest()[:16])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    if not os.access(folder, os.W_OK):
        return ""
    for other in parent.glob(_PREFIX + "*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return str(folder)
