"""Real hardware: launches by the driver's functions, the file of values, what it says; a driver stands in."""

from __future__ import annotations

import ctypes
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import run_on_gpu
from qgpu.runtime.conformance import cuda_driver
from qgpu.runtime.conformance.case import Case
from qgpu.runtime.conformance.cuda_driver import CudaGpu
from qgpu.runtime.conformance.executors import FAIL, NOT_RUN, PASS, REFUSED
from qgpu.runtime.conformance.hardware import Run, hardware_cell, read_runs, record, write_run
from qgpu.runtime.conformance.suite import load_cases
from qgpu.toolchain.diagnostics import DiagnosticError

VECADD_PTX = ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry _Z6vecaddPKiS0_Pii() { ret; }\n"
UNSUPPORTED, NO_BINARY, LAUNCH_FAILED = 222, 209, 719
NAMES = {
    UNSUPPORTED: b"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    NO_BINARY: b"CUDA_ERROR_NO_BINARY_FOR_GPU",
    LAUNCH_FAILED: b"CUDA_ERROR_LAUNCH_FAILED",
}


class Driver:
    """The functions of libcuda that a launch needs, on memory of its own; the kernel is Python.

    It is called as ctypes would call it: a reference's object is in `_obj`, and a pointer is followed.
    """

    def __init__(self, kernel: Callable[[Driver, list[int], list[int]], int], newest: str = "9.0") -> None:
        self.kernel, self.newest = kernel, newest
        self.memory: dict[int, bytearray] = {}
        self.calls: Counter[str] = Counter()
        self.loaded: list[str] = []
        self.status = 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        if not name.startswith("cu"):
            raise AttributeError(name)
        function = getattr(type(self), f"do_{name}", lambda *arguments: 0)

        def call(*arguments: Any) -> int:
            self.calls[name] += 1
            return function(self, *arguments)

        return call

    def do_cuDeviceGetName(self, name: Any, size: Any, device: Any) -> int:
        name.value = b"Tesla T4"
        return 0

    def do_cuDeviceGetAttribute(self, value: Any, number: Any, device: Any) -> int:
        value._obj.value = {75: 7, 76: 5}[number.value]
        return 0

    def do_cuDriverGetVersion(self, value: Any) -> int:
        value._obj.value = 12040
        return 0

    def do_cuGetErrorName(self, status: Any, text: Any) -> int:
        text._obj.value = NAMES.get(status.value)
        return 0

    def do_cuModuleLoadData(self, module: Any, text: Any) -> int:
        self.loaded.append(text.value.decode())
        version, target = re.findall(r"^\.(?:version|target)\s+([\w.]+)", self.loaded[-1], re.MULTILINE)
        if tuple(map(int, version.split("."))) > tuple(map(int, self.newest.split("."))):
            return UNSUPPORTED
        return 0 if target == "sm_75" else NO_BINARY

    def do_cuModuleGetFunction(self, function: Any, module: Any, name: Any) -> int:
        assert name.value.decode() in self.loaded[-1]
        return 0

    def do_cuMemAlloc_v2(self, place: Any, size: Any) -> int:
        place._obj.value = (1 << 40) + 4096 * self.calls["cuMemAlloc_v2"]
        self.memory[place._obj.value] = bytearray(size.value)
        return 0

    def do_cuMemcpyHtoD_v2(self, place: Any, content: Any, size: Any) -> int:
        address = ctypes.cast(content, ctypes.c_void_p)
        self.memory[place.value][: size.value] = ctypes.string_at(address, size.value)
        return 0

    def do_cuMemcpyDtoH_v2(self, content: Any, place: Any, size: Any) -> int:
        ctypes.memmove(content, bytes(self.memory[place.value]), size.value)
        return 0

    def do_cuMemFree_v2(self, place: Any) -> int:
        del self.memory[place.value]
        return 0

    def do_cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        sizes, (_, pointers, _) = [one.value for one in rest[:7]], rest[7:]
        values = [ctypes.c_uint64.from_address(pointer).value for pointer in pointers]
        self.status = self.kernel(self, sizes, values)
        return 0

    def do_cuCtxSynchronize(self) -> int:
        return self.status

    def do_cuDevicePrimaryCtxReset_v2(self, device: Any) -> int:
        self.status = 0
        return 0


def numbers(data: bytearray) -> list[int]:
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


def vecadd(driver: Driver, sizes: list[int], values: list[int]) -> int:
    a, b, c = (driver.memory[place] for place in values[:3])
    threads, n = sizes[0] * sizes[3], values[3]
    for i, (x, y) in enumerate(zip(numbers(a)[:n], numbers(b)[:n], strict=True)):
        if i < threads:
            c[4 * i : 4 * i + 4] = ((x + y) % (1 << 32)).to_bytes(4, "little")
    return 0


def subtracts(driver: Driver, sizes: list[int], values: list[int]) -> int:
    driver.memory[values[2]][0] ^= 1
    return 0


def faults(driver: Driver, sizes: list[int], values: list[int]) -> int:
    return LAUNCH_FAILED


@pytest.fixture(scope="module")
def case() -> Case:
    return next(case for case in load_cases(["examples"]) if case.name == "vecadd")


def recorded(case: Case, driver: Driver, ptx: str = VECADD_PTX) -> Run:
    return record([case], CudaGpu(driver), lambda case: ptx, "nvrtc", "2030-01-02")


def test_a_launch_by_the_driver(case: Case) -> None:
    driver = Driver(vecadd)
    run = recorded(case, driver)
    assert (run.gpu, run.capability, run.driver) == ("Tesla T4", "7.5", "12.4")
    cell = hardware_cell(case, [run])
    assert (cell.state, cell.passed) == (PASS, len(case.launches))
    assert driver.memory == {}
    assert driver.calls["cuModuleUnload"] == driver.calls["cuModuleLoadData"] == len(case.launches)
    assert driver.calls["cuDevicePrimaryCtxReset_v2"] == 0
    values = run.values[case.id][case.digest(case.launches[0])]["buffers"]
    assert values[:2] == [None, None]
    assert values[2] == case.launches[0].expected[2].hex()


def test_wrong_values_fail(case: Case) -> None:
    cell = hardware_cell(case, [recorded(case, Driver(subtracts))])
    assert cell.state == FAIL
    assert cell.why.startswith("buffer 2, byte 0: ")


def test_a_fault_fails_and_the_next_launch_has_a_new_context(case: Case) -> None:
    driver = Driver(faults)
    run = recorded(case, driver)
    assert hardware_cell(case, [run]).why == "cuCtxSynchronize: CUDA_ERROR_LAUNCH_FAILED (719)"
    assert hardware_cell(case, [run]).state == FAIL
    assert driver.calls["cuDevicePrimaryCtxReset_v2"] == len(case.launches)


def test_what_the_gpu_does_not_take_is_refused(case: Case) -> None:
    run = recorded(case, Driver(vecadd), VECADD_PTX.replace("sm_75", "sm_90"))
    cell = hardware_cell(case, [run])
    assert cell.state == REFUSED
    assert "CUDA_ERROR_NO_BINARY_FOR_GPU" in cell.why


def test_an_older_driver_gets_the_same_text_as_older_ptx(case: Case) -> None:
    driver = Driver(vecadd, newest="8.4")
    assert hardware_cell(case, [recorded(case, driver)]).state == PASS
    assert driver.loaded[0] == VECADD_PTX
    assert VECADD_PTX.replace("9.0", "8.4") in driver.loaded
    none = Driver(vecadd, newest="6.0")
    assert "UNSUPPORTED_PTX" in hardware_cell(case, [recorded(case, none)]).why


def test_no_driver_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "_LIBRARY", "libcuda-that-is-not-there.so")
    monkeypatch.setattr(cuda_driver, "_LIBRARIES", {})
    with pytest.raises(DiagnosticError, match="no CUDA driver"):
        CudaGpu()


def test_no_gpu_is_said() -> None:
    class Bare(Driver):
        def do_cuInit(self, flags: Any) -> int:
            return 100

    with pytest.raises(DiagnosticError, match=r"no GPU: cuInit: error \(100\)"):
        CudaGpu(Bare(vecadd))


def test_the_file_keeps_runs_and_replaces_values_of_the_same_gpu(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "hardware.json"
    assert read_runs(file) == []
    wrong, right = recorded(case, Driver(subtracts)), recorded(case, Driver(vecadd))
    other = replace(right, gpu="Other", values={"examples/dot": {}})
    for run in (wrong, other, right):
        write_run(run, file)
    runs = read_runs(file)
    assert [run.gpu for run in runs] == ["Other", "Tesla T4"]
    assert hardware_cell(case, runs).state == PASS
    write_run(replace(right, values={"examples/gcd": {}}), file)
    assert set(read_runs(file)[-1].values) == {case.id, "examples/gcd"}


def test_values_of_another_source_do_not_count(case: Case) -> None:
    run = recorded(case, Driver(vecadd))
    changed = replace(case, text=case.text.replace("+", "-"))
    assert hardware_cell(changed, [run]).state == NOT_RUN
    assert hardware_cell(case, []).state == NOT_RUN


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 2, "runs": []}', '{"format": 1, "runs": [{"gpu": ""}]}']
)
def test_a_file_of_another_format_is_refused_and_kept(case: Case, tmp_path: Path, text: str) -> None:
    file = tmp_path / "hardware.json"
    file.write_text(text)
    with pytest.raises(DiagnosticError, match="not a file of values from hardware"):
        write_run(recorded(case, Driver(vecadd)), file)
    assert file.read_text() == text


def test_the_script_runs_chosen_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NVRTC compiles; the driver that stands in executes."""
    file = tmp_path / "hardware.json"
    assert run_on_gpu.run(CudaGpu(Driver(vecadd)), ["vecadd"], "nvrtc", file) == 0
    assert "Tesla T4 (compute capability 7.5), driver for CUDA 12.4" in capsys.readouterr().out
    (run,) = json.loads(file.read_text())["runs"]
    assert (run["compiler"], list(run["values"])) == ("nvrtc", ["examples/vecadd"])
    assert run_on_gpu.run(CudaGpu(Driver(subtracts)), ["vecadd"], "nvrtc", file) == 1


def test_a_repository_file_if_there_is_one_is_readable() -> None:
    read_runs()
