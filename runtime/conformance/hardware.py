"""Values that real hardware leaves: the file that they are kept in, how they get there, and what they say.

The file holds values, not verdicts: whether they are what the oracle says is decided where it is read. A
value counts for a launch of the same source, sizes and arguments alone, by `Case.digest`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from qgpu.runtime.conformance.case import Case, CaseLaunch, first_difference
from qgpu.runtime.conformance.executors import FAIL, NOT_RUN, PASS, REFUSED, Cell, Result, cell_of
from qgpu.runtime.conformance.suite import ROOT
from qgpu.toolchain.diagnostics import failure

COLUMN = "hardware"
FILE = ROOT / "examples" / "hardware.json"
FORMAT = 1


class RefusedError(RuntimeError):
    """A kernel that the GPU or its driver does not take."""


class GpuFaultError(RuntimeError):
    """A launch that ended with an error."""


class Gpu(Protocol):
    """What runs launches: its name, compute capability (`7.5`), and the CUDA version of its driver."""

    name: str
    capability: str
    driver: str

    def run(self, ptx: str, kernel: str, launch: CaseLaunch) -> list[bytes]:
        """The buffers after a launch.

        Raises:
            RefusedError, GpuFaultError: it does not run, or not to its end.
        """
        ...


@dataclass
class Run:
    """What one GPU left.

    Attributes:
        gpu, capability, driver: as of `Gpu`.
        compiler: what made the PTX of CUDA sources.
        date: of the run, as YYYY-MM-DD.
        values: by `Case.id`, then by digest of the launch: `buffers`, each its bytes in hexadecimal digits,
            or None where it is as it was before; or `refused` or `fault` with the reason.
    """

    gpu: str
    capability: str
    driver: str
    compiler: str
    date: str
    values: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.gpu} (compute capability {self.capability}), driver for CUDA {self.driver}, {self.date}"
        )


def read_runs(file: Path = FILE) -> list[Run]:
    """The runs of a file, the oldest first; none where there is no file.

    Raises:
        DiagnosticError: the file cannot be read, or is not of this format.
    """
    if not file.exists():
        return []
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}, not {FORMAT}")
        return [Run(**run) for run in data["runs"]]
    except OSError as error:
        raise failure(f"cannot read '{file}': {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise failure(f"not a file of values from hardware: {error}", file=str(file)) from None


def write_run(run: Run, file: Path = FILE) -> None:
    """Add a run to a file; of the same GPU and driver, its values replace those of the cases that it has.

    Raises:
        DiagnosticError: the file is of another format, or cannot be written.
    """
    from qgpu.toolchain.outputs import write_output

    runs = read_runs(file)
    same = [one for one in runs if (one.gpu, one.driver) == (run.gpu, run.driver)]
    kept = {name: value for one in same for name, value in one.values.items()}
    merged = Run(run.gpu, run.capability, run.driver, run.compiler, run.date, kept | run.values)
    data = {"format": FORMAT, "runs": [vars(one) for one in (*(r for r in runs if r not in same), merged)]}
    write_output(str(file), json.dumps(data, indent=1).encode() + b"\n")


def record(
    cases: Iterable[Case],
    gpu: Gpu,
    to_ptx: Callable[[Case], str],
    compiler: str,
    date: str,
    told: Callable[[str], object] = lambda text: None,
) -> Run:
    """Run every launch of some cases on a GPU; `told` hears of each case.

    Raises:
        DiagnosticError: a source does not compile.
    """
    run = Run(gpu.name, gpu.capability, gpu.driver, compiler, date)
    for case in cases:
        told(case.id)
        ptx = to_ptx(case)
        run.values[case.id] = {case.digest(one): _value(gpu, ptx, case, one) for one in case.launches}
    return run


def _value(gpu: Gpu, ptx: str, case: Case, launch: CaseLaunch) -> dict[str, Any]:
    try:
        after = gpu.run(ptx, case.kernel, launch)
    except RefusedError as error:
        return {"refused": str(error)}
    except GpuFaultError as error:
        return {"fault": str(error)}
    before = [argument for argument in launch.arguments if isinstance(argument, bytes)]
    pairs = zip(before, after, strict=True)
    return {"buffers": [None if new == old else new.hex() for old, new in pairs]}


def hardware_cell(case: Case, runs: Sequence[Run]) -> Cell:
    """What real hardware says of a case: its launches by the newest run that has them, else not run."""
    return cell_of([_judged(case, launch, runs) for launch in case.launches])


def _judged(case: Case, launch: CaseLaunch, runs: Sequence[Run]) -> Result:
    digest = case.digest(launch)
    found = [run.values[case.id][digest] for run in runs if digest in run.values.get(case.id, {})]
    if not found:
        return NOT_RUN, "no values: run examples/run_on_gpu.py where there is a GPU"
    value = found[-1]
    if "refused" in value:
        return REFUSED, value["refused"]
    if "fault" in value:
        return FAIL, value["fault"]
    before = [argument for argument in launch.arguments if isinstance(argument, bytes)]
    if len(value["buffers"]) != len(before):
        return FAIL, f"{len(value['buffers'])} buffers, not {len(before)}"
    pairs = zip(before, value["buffers"], strict=True)
    after = tuple(old if new is None else bytes.fromhex(new) for old, new in pairs)
    difference = first_difference(after, launch.expected)
    return (FAIL, difference) if difference else (PASS, "")
