"""Every example kernel, compiled from CUDA, by the engine on the default machine's checkpoint."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from launches import LAUNCHES, Launch
from qgpu.backends.machine.description import DEFAULT, MachineDescription
from qgpu.runtime import compile
from qgpu.runtime.engine import Engine
from qgpu.runtime.engines import make_engine

FIRST = {launch.kernel: launch for launch in reversed(LAUNCHES)}
"""The smallest launch of each kernel."""


@pytest.fixture(scope="module")
def engine(checkpoint: Callable[[MachineDescription, str], Path]) -> Engine:
    return make_engine("engine", DEFAULT, checkpoint(DEFAULT, "float32"))


@pytest.mark.parametrize("launch", FIRST.values(), ids=FIRST)
def test_weights_compute_what_the_kernel_means(
    launch: Launch, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oracle decides on the arrays, the reference interpreter on every token."""
    kernel = compile(launch.file)
    monkeypatch.setattr(kernel, "engine", lambda: engine)
    arguments = launch.fresh_args()
    kernel[launch.grid, launch.block](*arguments, check=True)
    arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
    for got, wanted in zip(arrays, launch.expect(), strict=True):
        np.testing.assert_array_equal(got, wanted)
