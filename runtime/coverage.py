"""Which kernels of a folder compile, for which machines they fit, and what stops the rest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from qgpu.backends.machine.description import MachineDescription
from qgpu.toolchain.compile import (
    LANGUAGES,
    CompileOptions,
    build_ir,
    build_ptx,
    generate_program,
    optimise,
)
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source, failure
from qgpu.toolchain.sources import decoded

STAGES = ("parse", "compile", "fit")
"""What a kernel has to pass, in order: its file's front end, lowering and passes, code for a machine."""

_INSTRUCTION = re.compile(r"unsupported instruction '([\w:]+)")
_QUOTED = re.compile(r"'[^']*'")
_NUMBER = re.compile(r"\b\d[\d,]*\b")


@dataclass(frozen=True)
class Stop:
    """What keeps a kernel from compiling.

    Attributes:
        stage: one of STAGES.
        reason: the opcode of an unsupported instruction, or the message without its names and numbers.
        message: the first diagnostic, as the compiler gives it, with its place.
    """

    stage: str
    reason: str
    message: str


@dataclass(frozen=True)
class KernelCoverage:
    """How far one kernel gets.

    `fits` names the machines that hold it. Where none does, `stop` says what it fails at first, and `reasons`
    everything that stops it there.
    """

    file: str
    kernel: str
    parses: bool
    compiles: bool
    fits: tuple[str, ...] = ()
    stop: Stop | None = None
    reasons: tuple[str, ...] = ()


@dataclass
class Coverage:
    """The kernels of all files, in order, and the machines that they were compiled for."""

    machines: tuple[str, ...]
    kernels: list[KernelCoverage] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """How many kernels there are, parse, compile, and fit each machine."""
        counts = {
            "kernels": len(self.kernels),
            "parse": sum(kernel.parses for kernel in self.kernels),
            "compile": sum(kernel.compiles for kernel in self.kernels),
        }
        fits = Counter(name for kernel in self.kernels for name in kernel.fits)
        return counts | {f"fit {name}": fits[name] for name in self.machines}

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """What stops kernels, with how many of them it stops, most first; a kernel counts for each reason."""
        found = Counter(reason for kernel in self.kernels for reason in dict.fromkeys(kernel.reasons))
        return found.most_common()

    def to_json(self) -> dict[str, Any]:
        """Plain data: `counts`, `reasons` and `kernels`."""
        return {
            "counts": self.counts,
            "reasons": [{"reason": reason, "kernels": count} for reason, count in self.reasons],
            "kernels": [asdict(kernel) for kernel in self.kernels],
        }


def source_files(paths: Iterable[str]) -> list[Path]:
    """The files named, and all .cu, .ptx, .ll, .bc and .ir files below the folders named, sorted.

    Raises:
        DiagnosticError: a path does not exist, or there is no such file.
    """
    suffixes = {f".{language}" for language in LANGUAGES}
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.exists():
            raise failure(f"'{path}' does not exist")
        below = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [file for file in below if file.suffix in suffixes and file.is_file()]
    if not found:
        raise failure("no .cu, .ptx, .ll, .bc or .ir file to look at")
    return list(dict.fromkeys(found))


def cover(
    files: Sequence[Path],
    machines: Sequence[MachineDescription],
    options: CompileOptions,
    jobs: int = 1,
    done: Callable[[Path], None] = lambda file: None,
) -> Coverage:
    """Compile every kernel of every file for every machine, in `jobs` processes; `done` hears of each."""
    coverage = Coverage(tuple(machine.name for machine in machines))
    task = partial(cover_file, machines=machines, options=options)
    if jobs == 1:
        results: Iterable[list[KernelCoverage]] = map(task, files)
        _collect(coverage, files, results, done)
        return coverage
    with ProcessPoolExecutor(jobs) as pool:
        _collect(coverage, files, pool.map(task, files), done)
    return coverage


def _collect(
    coverage: Coverage,
    files: Iterable[Path],
    results: Iterable[list[KernelCoverage]],
    done: Callable[[Path], None],
) -> None:
    for file, kernels in zip(files, results, strict=True):
        coverage.kernels += kernels
        done(file)


def cover_file(
    file: Path, machines: Sequence[MachineDescription], options: CompileOptions
) -> list[KernelCoverage]:
    """How far each kernel of a file gets; one nameless kernel stands for a file that does not parse."""
    language = file.suffix[1:]
    try:
        source = decoded(str(file), file.read_bytes(), language)
        if language == "cu":
            source, language = Source(f"<PTX of {file}>", build_ptx(source, options)), "ptx"
        names = list(_kernel_names(source, language))
    except (DiagnosticError, OSError) as error:
        return [_stopped(file, "", "parse", error)]
    return [_cover_kernel(file, source, language, name, machines, options) for name in names]


def _kernel_names(source: Source, language: str) -> Iterator[str]:
    if language == "ptx":
        from qgpu.toolchain.ptx.parser import parse

        yield from (entry.name for entry in parse(source).entries)
        return
    if language in ("ll", "bc"):
        from qgpu.toolchain.llvm.lower import read

        yield from (kernel.name for kernel in read(source).kernels)
        return
    yield from (function.name for function in build_ir(source, language, CompileOptions()).functions)


def _cover_kernel(
    file: Path,
    source: Source,
    language: str,
    name: str,
    machines: Sequence[MachineDescription],
    options: CompileOptions,
) -> KernelCoverage:
    """Compiles for the machines one after the other: code generation changes the module it is given."""
    chosen = replace(options, kernels=(name,))
    result = KernelCoverage(str(file), name, parses=True, compiles=False)
    stopped: KernelCoverage | None = None
    for machine in machines:
        try:
            module = build_ir(source, language, chosen)
            optimise(module, language, machine, chosen)
        except DiagnosticError as error:
            return _stopped(file, name, "compile", error)
        result = replace(result, compiles=True)
        try:
            generate_program(module, machine, source)
            result = replace(result, fits=(*result.fits, machine.name))
        except DiagnosticError as error:
            stopped = _stopped(file, name, "fit", error)
    return result if result.fits or stopped is None else stopped


def _stopped(file: Path, kernel: str, stage: str, error: DiagnosticError | OSError) -> KernelCoverage:
    if isinstance(error, OSError):
        found = (Diagnostic(message=f"cannot read the file: {error.strerror}", file=str(file)),)
    else:
        found = tuple(d for d in error.diagnostics if d.severity == "error")
    reasons = tuple(dict.fromkeys(map(_reason, found)))
    first = found[0]
    place = f"{first.file}:{first.line}: " if first.file and first.line else ""
    stop = Stop(stage, reasons[0], f"{place}{first.message}")
    return KernelCoverage(str(file), kernel, stage != "parse", stage == "fit", (), stop, reasons)


def _reason(diagnostic: Diagnostic) -> str:
    """The opcode that is not supported, or what the message has in common with others of its kind."""
    match = _INSTRUCTION.match(diagnostic.message)
    if match:
        return match.group(1)
    return _NUMBER.sub("N", _QUOTED.sub("'...'", diagnostic.message))
