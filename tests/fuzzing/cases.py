"""Cases as Hypothesis draws and shrinks them, and as files that join the tests."""

from __future__ import annotations

import random
import re
from pathlib import Path

from hypothesis import strategies as st

from fuzzing.executors import Case
from fuzzing.kernels import random_kernel
from qgpu.ir import print_function

FOUND = Path(__file__).parent / "found"
"""Where kernels lie that once came out wrong."""

SHAPES = (("large", 1, 8), ("large", 2, 5), ("large", 1, 40), ("narrow", 2, 7), ("narrow", 1, 13))
"""Machine, thread blocks and threads of a block: warps that are full and not, one and several."""

_LAUNCH = re.compile(r"^; LAUNCH machine=(\S+) grid=(\d+) threads=(\d+) seed=(\d+)$", re.MULTILINE)


def small_case(seed: int) -> Case:
    """A short kernel for the machine that a checkpoint is built for."""
    source = random.Random(seed)
    threads = source.randint(1, 6)
    text = print_function(random_kernel(source, threads, source.randint(0, 1)))
    return Case(text, "default", 1, threads, seed)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A kernel and a launch of it."""
    machine, grid, threads = draw(st.sampled_from(SHAPES))
    source = draw(st.randoms(use_true_random=False))
    function = random_kernel(source, threads, draw(st.integers(1, 6)))
    return Case(print_function(function), machine, grid, threads, draw(st.integers(0, 2**32)))


def write_case(case: Case, folder: Path, reason: str) -> Path:
    """Writes a case under a name that no file has; `reason` goes into its first line."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(path.stem) for path in folder.glob("[0-9]*.ir")), default=0)
    path = folder / f"{number:03}.ir"
    launch = f"machine={case.machine} grid={case.grid} threads={case.threads} seed={case.seed}"
    path.write_text(f"; {reason}\n; LAUNCH {launch}\n{case.text}")
    return path


def read_case(path: Path) -> Case:
    """A case that was written; ValueError where the file names no launch."""
    text = path.read_text()
    match = _LAUNCH.search(text)
    if match is None:
        raise ValueError(f"{path} names no launch")
    machine, grid, threads, seed = match.groups()
    return Case(text, machine, int(grid), int(threads), int(seed))
