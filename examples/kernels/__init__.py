"""Integer kernels of the kinds that people write, by topic: `KERNELS` lists them all."""

from __future__ import annotations

from kernels import (
    bits,
    ciphers,
    compression,
    concurrency,
    games,
    graphs,
    grids,
    hashing,
    linear_algebra,
    number_theory,
    random,
    reductions,
    scans,
    sorting,
    strings,
)
from kernels.table import Kernel

KERNELS: tuple[Kernel, ...] = (
    *bits.KERNELS,
    *ciphers.KERNELS,
    *compression.KERNELS,
    *concurrency.KERNELS,
    *games.KERNELS,
    *graphs.KERNELS,
    *grids.KERNELS,
    *hashing.KERNELS,
    *linear_algebra.KERNELS,
    *number_theory.KERNELS,
    *random.KERNELS,
    *reductions.KERNELS,
    *scans.KERNELS,
    *sorting.KERNELS,
    *strings.KERNELS,
)
