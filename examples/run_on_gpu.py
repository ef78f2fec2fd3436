"""Run the launches of the conformance table on this machine's GPU, as real CUDA, and keep what they leave.

    python examples/run_on_gpu.py [--kernels NAME ...] [--compiler auto|nvcc|nvrtc] [--file FILE]

Wants an NVIDIA GPU with its driver. The CUDA sources are compiled by nvcc where it is on the path, else by
NVRTC. The values go to examples/hardware.json with the name of the GPU, the driver and the date;
`qgpu conformance` then holds them against the oracles, in the column `hardware`.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from qgpu.runtime.conformance.case import Case
from qgpu.runtime.conformance.cuda_driver import CudaGpu
from qgpu.runtime.conformance.hardware import FILE, Gpu, hardware_cell, record, write_run
from qgpu.runtime.conformance.suite import load_cases
from qgpu.runtime.conformance.table import chosen_cases
from qgpu.toolchain.compile import CompileOptions, build_ptx
from qgpu.toolchain.cuda import CudaOptions
from qgpu.toolchain.diagnostics import Source, failure, reporting


def by_nvrtc(case: Case) -> str:
    """The PTX of a case, by the compiler that the project comes with."""
    cuda = CudaOptions(architecture=case.architecture)
    options = CompileOptions(cuda=cuda, cuda_compiler="nvrtc", kernels=(case.kernel,))
    return build_ptx(Source(case.file, case.text), options)


def by_nvcc(case: Case) -> str:
    """The PTX of a case, by nvcc."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "kernel.cu", Path(folder) / "kernel.ptx"
        source.write_text(case.text, encoding="utf-8")
        command = ["nvcc", "-ptx", f"-arch={case.architecture}", "-o", str(out), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise failure(f"nvcc does not compile it: {done.stderr.strip()}", file=case.file)
        return out.read_text(encoding="utf-8")


COMPILERS: dict[str, Callable[[Case], str]] = {"nvcc": by_nvcc, "nvrtc": by_nvrtc}


def to_ptx(case: Case, compiler: str) -> str:
    """The PTX of a case; that of an instruction is its source."""
    return case.text if case.language == "ptx" else COMPILERS[compiler](case)


def run(gpu: Gpu, kernels: list[str], compiler: str, file: Path) -> int:
    """Run and keep launches; the exit status: 1 where one leaves something else than its oracle says."""
    cases = chosen_cases(load_cases(), kernels)
    chosen = compiler if compiler != "auto" else "nvcc" if shutil.which("nvcc") else "nvrtc"
    today = datetime.date.today().isoformat()
    shown = record(
        cases,
        gpu,
        lambda case: to_ptx(case, chosen),
        chosen,
        today,
        lambda name: print(name, file=sys.stderr),
    )
    write_run(shown, file)
    cells = {case.id: hardware_cell(case, [shown]) for case in cases}
    for name, cell in cells.items():
        if cell.why:
            print(f"{name}: {cell.state}: {cell.why}")
    states = [cell.state for cell in cells.values()]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    print(f"{shown}: {len(states)} cases: {counts}")
    return int("fail" in states)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", nargs="+", default=[], metavar="NAME", help="only these (default: all)")
    parser.add_argument("--compiler", choices=("auto", *COMPILERS), default="auto")
    parser.add_argument("--file", type=Path, default=FILE)
    given = parser.parse_args()
    with reporting("run_on_gpu"):
        return run(CudaGpu(), given.kernels, given.compiler, given.file)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
