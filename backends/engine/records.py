"""What the compiled loop is handed: the addresses of arrays, and numbers, in one record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def record(values: Mapping[str, Any]) -> Any:
    """A record with the address of each array and the value of each number; it does not keep the arrays."""
    kinds = [
        (name, np.int64 if isinstance(value, (int, np.ndarray)) else np.float32)
        for name, value in values.items()
    ]
    entries = tuple(
        value.ctypes.data if isinstance(value, np.ndarray) else value for value in values.values()
    )
    return np.array([entries], np.dtype(kinds))[0]
