"""The kernels of examples/kernels/: each compiles, and every executor leaves what its oracle says."""

import re

import numpy as np
import pytest

from kernel_launches import first_difference, interpreted, options_of, run, source_of
from kernels import KERNELS
from kernels.table import HERE, Kernel, Launch
from qgpu.toolchain.compile import build_ptx

READY = (
    "counting_sort",
    "histogram_private",
    "list_ranking",
    "merge_path",
    "odd_even_sort",
    "partition_stable",
    "rank_sort",
    "scan_blelloch",
)
LAUNCHES = [(kernel, launch) for kernel in KERNELS if kernel.name in READY for launch in kernel.launches]


def name(value: object) -> str:
    return value.name if isinstance(value, Kernel) else ""


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_nvrtc_takes_the_kernel(kernel: Kernel) -> None:
    ptx = build_ptx(source_of(kernel), options_of(kernel))
    (entry,) = re.findall(r"\.entry (\w+)\(", ptx)
    assert entry == kernel.name
    assert not re.search(r"\.f(16|32|64)\b", ptx)


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_launches_are_small_and_change_something(kernel: Kernel) -> None:
    assert kernel.launches
    for launch in kernel.launches:
        arrays = [arg for arg in launch.args if isinstance(arg, np.ndarray)]
        assert launch.threads <= 256
        assert sum(array.nbytes for array in arrays) <= 4 * 1024
        wanted = kernel.expect(launch)
        assert [array.dtype for array in wanted] == [array.dtype for array in arrays]
        assert any(old.tobytes() != new.tobytes() for old, new in zip(arrays, wanted, strict=True))


def test_every_file_has_one_row() -> None:
    assert sorted(kernel.file for kernel in KERNELS) == sorted(HERE.glob("*/*.cu"))
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)


@pytest.mark.parametrize(("kernel", "launch"), LAUNCHES, ids=name)
def test_interpreter(kernel: Kernel, launch: Launch) -> None:
    assert not first_difference(interpreted(kernel, launch), kernel.expect(launch))


@pytest.mark.parametrize(("kernel", "launch"), LAUNCHES, ids=name)
def test_machine(kernel: Kernel, launch: Launch) -> None:
    assert not first_difference(run(kernel, launch), kernel.expect(launch))
