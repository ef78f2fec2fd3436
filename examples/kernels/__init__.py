"""Integer kernels of the kinds that people write, by topic: `KERNELS` lists them all."""

from __future__ import annotations

import importlib

from kernels.table import Kernel

TOPICS = (
    "bits",
    "graphs",
    "grids",
    "hashing",
    "number_theory",
    "random",
    "reductions",
    "scans",
    "sorting",
    "strings",
)

KERNELS: tuple[Kernel, ...] = tuple(
    row for topic in TOPICS for row in importlib.import_module(f"kernels.{topic}").KERNELS
)
