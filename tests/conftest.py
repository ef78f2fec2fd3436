"""Settings for every test.

One thread per process, since the tests themselves run in parallel. No time limit per example of a property,
and on CI the same examples in every run, so that a failure belongs to the change under test.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from qgpu.backends.machine.description import MachineDescription

# Read by the libraries when they are first imported, which is after this file.
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"

hypothesis.settings.register_profile("qgpu", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("qgpu")


@pytest.fixture(autouse=True)
def _one_torch_thread() -> None:
    """Hold torch to one thread where a test module has imported it, without importing it for the others."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests build out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QGPU_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


@pytest.fixture(scope="session")
def checkpoint(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator["Callable[[MachineDescription, str], Path]"]:
    """Give the checkpoint of a machine in a dtype, built once for all processes of a test run."""
    from qgpu.runtime.checkpoints import built_checkpoint

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QGPU_CACHE", str(shared / "checkpoints"))
        yield built_checkpoint


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what is built once for all processes of a test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder
