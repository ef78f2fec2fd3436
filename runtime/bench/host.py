"""What a measurement was made on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("numpy", "numba", "torch", "transformers")


def host() -> dict[str, str]:
    """The machine and the versions of what computes, by name."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = {"processor": _processor(), "cores": str(cores), "system": platform.system()}
    found |= {"Python": platform.python_version()}
    return found | {name: found for name in _PACKAGES if (found := _version(name))}


def host_text(found: dict[str, str]) -> str:
    """The host in one line."""
    versions = ", ".join(f"{name} {found[name]}" for name in ("Python", *_PACKAGES) if name in found)
    return f"{found['processor']}, {found['cores']} cores, {found['system']}; {versions}"


def peak_bytes() -> int | None:
    """The most memory that this process has held, in bytes; None where the system does not say."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage: on Linux that counts what the process was before it loaded this program.
        lines = (line.split() for line in status.read_text().splitlines())
        return next((1024 * int(words[1]) for words in lines if words[:1] == ["VmHWM:"]), None)
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if platform.system() == "Darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
