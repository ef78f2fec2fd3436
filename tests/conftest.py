"""Settings for every test: one thread per process, since the tests themselves run in parallel."""

import os
import sys
from collections.abc import Iterator

import pytest

# Read by the libraries when they are first imported, which is after this file.
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"


@pytest.fixture(autouse=True)
def _one_torch_thread() -> Iterator[None]:
    """Hold torch to one thread where a test has imported it, without importing it for the others."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    yield
