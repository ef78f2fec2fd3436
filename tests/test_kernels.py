"""The kernels of examples/kernels/: each compiles, and both interpreters leave what its oracle says."""

import re

import numpy as np
import pytest

from kernel_launches import code_of, first_difference, interpreted, options_of, run, source_of
from kernels import KERNELS
from kernels.ciphers import chacha20_block, speck64_96, xtea_encipher
from kernels.hashing import murmur3_32, siphash24, xxh32, xxh64
from kernels.random import philox4x32
from kernels.table import HERE, Kernel
from qgpu.toolchain.compile import build_ptx

FLOATING = re.compile(r"\.(bf16|f16|f32|f64|tf32)\b")


def name(kernel: Kernel) -> str:
    return kernel.name


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_nvrtc_takes_the_kernel(kernel: Kernel) -> None:
    ptx = build_ptx(source_of(kernel), options_of(kernel))
    assert re.findall(r"\.entry (\w+)\(", ptx) == [kernel.name]
    assert not FLOATING.search(ptx)


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


def test_oracles_know_published_answers() -> None:
    """Test vectors of the specifications, for the oracles that no library stands behind."""
    assert xxh32(b"", 0) == 0x02CC5D05
    assert xxh64(b"", 0) == 0xEF46DB3751D8E999
    assert murmur3_32(b"", 1) == 0x514E28B7
    assert siphash24(bytes(range(15)), (0x0706050403020100, 0x0F0E0D0C0B0A0908)) == 0xA129CA6149BE45E5
    assert philox4x32((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    nonce = bytes.fromhex("000000090000004a00000000")
    assert chacha20_block(bytes(range(32)), 1, nonce).startswith(bytes.fromhex("10f1e7e4d13b5915"))
    words = [0x00010203, 0x04050607, 0x08090A0B, 0x0C0D0E0F]
    assert xtea_encipher([0x41424344, 0x45464748], words) == [0x497DF3D0, 0x72612CB5]
    key = [0x03020100, 0x0B0A0908, 0x13121110]
    assert speck64_96([0x736E6165, 0x74614620], key) == [0x4175946C, 0x9F7952EC]


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_ir_interpreter(kernel: Kernel) -> None:
    for launch in kernel.launches:
        assert not first_difference(interpreted(kernel, launch), kernel.expect(launch))


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_machine(kernel: Kernel) -> None:
    assert code_of(kernel).blocks
    for launch in kernel.launches:
        assert not first_difference(run(kernel, launch), kernel.expect(launch))
