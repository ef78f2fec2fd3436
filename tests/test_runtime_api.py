"""Kernels called from Python on numpy arrays."""

from pathlib import Path

import numpy as np
import pytest

import machine_kernels
from qgpu.backends.machine.description import SMALL
from qgpu.backends.machine.qbin import save_program
from qgpu.runtime import CompiledKernel, FaultError, compile
from qgpu.runtime.arguments import ArgumentError
from qgpu.toolchain.diagnostics import DiagnosticError


@pytest.fixture
def vecadd(tmp_path: Path) -> CompiledKernel:
    path = tmp_path / "k.qbin"
    save_program(machine_kernels.program(machine_kernels.vecadd(), machine_kernels.triangle()), path)
    return compile(path, "vecadd", SMALL, backend="reference")


def test_a_program_is_for_its_own_machine(vecadd: CompiledKernel, tmp_path: Path) -> None:
    assert compile(tmp_path / "k.qbin", "vecadd", backend="reference").program.machine == SMALL
    with pytest.raises(DiagnosticError, match="compiled for machine 'small', not for 'seed'"):
        compile(tmp_path / "k.qbin", "vecadd", "seed")


def test_arrays_are_written_in_place(vecadd: CompiledKernel) -> None:
    a, b = np.arange(6, dtype=np.int32), np.full(6, 10, np.int32)
    c = np.zeros((2, 3), np.int32)
    outcome = vecadd[2, 4](a, b, c, np.int64(6))
    assert c.tolist() == [[10, 11, 12], [13, 14, 15]]
    assert a.tolist() == list(range(6))
    assert len(outcome.generated) > 6


def test_arrays_of_any_layout(vecadd: CompiledKernel) -> None:
    a, b = np.arange(12, dtype=np.int32)[::2], np.arange(6, dtype=">i4")
    c = np.zeros(12, np.uint32)[::-2]
    a.flags.writeable = False
    vecadd[(1, 1), (6,)](a, b, c, 6)
    assert c.tolist() == [0, 3, 6, 9, 12, 15]
    assert b.tolist() == list(range(6))


def test_sizes_may_have_shared_memory(vecadd: CompiledKernel) -> None:
    c = np.zeros(1, np.int32)
    vecadd[1, 1, 64](c, c, c, 0)
    assert c.tolist() == [0]


def test_a_fault_is_raised_and_changes_nothing(vecadd: CompiledKernel) -> None:
    a = np.arange(5, dtype=np.int32)
    c = np.zeros(5, np.int32)
    with pytest.raises(
        FaultError, match=r"k\.cu:3: out-of-bounds in thread \(5, 0, 0\) of block \(0, 0, 0\)"
    ):
        vecadd[1, 6](a, a, c, 6)
    assert c.tolist() == [0] * 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([np.zeros(1, np.float32)] * 3 + [1], "argument 1 is an array of float32, not of integers"),
        ([np.zeros(1, np.int64)] * 3 + [1], r"argument 1 .* is i64\[1\]; parameter i32\* a is wanted"),
        ([np.zeros(1, np.int32)] * 3 + [1.5], "argument 4 is neither a numpy array nor a whole number"),
        ([np.zeros(1, np.int32)] * 3 + [2**32], "4294967296 is out of range for u32"),
        ([np.zeros(1, np.int32)] * 3 + [-(2**31) - 1], "-2147483649 is out of range for i32"),
        ([np.zeros(1, np.int32)] * 2 + [1, 1], r"argument 3 .* parameter i32\* c is wanted"),
        ([np.zeros(1, np.int32)] * 3 + [1, 1], "takes 4 arguments .*; 5 are given"),
    ],
)
def test_bad_arguments(vecadd: CompiledKernel, arguments: list[object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        vecadd[1, 1](*arguments)


def test_bad_sizes(vecadd: CompiledKernel) -> None:
    with pytest.raises(ArgumentError, match="is not x, "):
        vecadd[(1, 1, 1, 1), 1]


def test_a_launch_without_sizes_is_told_how(vecadd: CompiledKernel) -> None:
    with pytest.raises(ArgumentError, match=r"write kernel\[grid, block\]"):
        vecadd(np.zeros(1, np.int32), 1)


def test_a_folder_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="a folder: qgpu run takes a baked checkpoint"):
        compile(str(tmp_path), backend="reference")
