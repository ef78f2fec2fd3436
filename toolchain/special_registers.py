"""Special registers (PTX ISA 9.0, section 10), by name without `%`: how each is computed from the IR's.

Both front ends read this table: PTX says `%lanemask_lt`, LLVM's intrinsic `read.ptx.sreg.lanemask.lt`.
"""

from collections.abc import Callable
from typing import Any, Protocol

from qgpu.ir import I1, I32, I64, Builder, Constant, IntType, Value
from qgpu.ir.core.opcodes import SPECIAL_REGISTERS

WARP = 32
"""Threads of a warp (`WARP_SZ`), and warps that the largest thread block has."""

CLOCKS = ("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi")
"""The registers that read the clock of a thread, which advances by one with each read."""

ABSENT = {
    "envreg": "grid groups (cooperative launch) read it, but thread blocks run one after another",
    "pm": "the machine has no performance counters",
    "reserved_smem_offset": "of what is reserved in shared memory only %reserved_smem_offset_1 is known",
    "total_smem_size": "how much shared memory a launch has is not known to the kernel",
    "aggr_smem_size": "how much shared memory a launch has is not known to the kernel",
    "dynamic_smem_size": "how much shared memory a launch has is not known to the kernel",
    "current_graph_exec": "there are no graphs",
}
"""Why registers whose names start so cannot be read."""


class Emitting(Protocol):
    """What a register is read with: the emitter of a front end."""

    @property
    def builder(self) -> Builder: ...

    def operation(self, opcode: str, *operands: Value, attrs: dict[str, Any] | None = None) -> Value:
        """The result of a pure operation."""
        ...

    def resized(self, value: Value, type_: IntType, signed: bool) -> Value:
        """An integer truncated or extended to a type."""
        ...

    def tick(self) -> Value:
        """The thread's clock, of 64 bits, advanced by this read."""
        ...


Reader = Callable[[Emitting], Value]


def why_absent(name: str) -> str | None:
    """Why a special register cannot be read, as a clause; None where no such register is known."""
    return next((reason for prefix, reason in ABSENT.items() if name.startswith(prefix)), None)


def _sreg(name: str) -> Reader:
    return lambda x: x.builder.sreg(name)


def _constant(type_: IntType, value: int) -> Reader:
    return lambda x: Constant(type_, value)


def _lane_mask(bits: int, less: int = 0) -> Reader:
    """(`bits` << laneid) - `less`."""

    def read(x: Emitting) -> Value:
        mask = x.operation("shl", Constant(I32, bits), x.builder.sreg("laneid"))
        return x.operation("sub", mask, Constant(I32, less)) if less else mask

    return read


def _low(x: Emitting) -> Value:
    return x.resized(x.tick(), I32, False)


def _high(x: Emitting) -> Value:
    return x.resized(x.operation("lshr", x.tick(), Constant(I64, 32)), I32, False)


def _clock(name: str) -> Reader:
    if name.endswith("_hi"):
        return _high
    return (lambda x: x.tick()) if name in ("clock64", "globaltimer") else _low


READERS: dict[str, Reader] = {
    **{name: _sreg(name) for name in SPECIAL_REGISTERS},
    **{f"{name}.w": _constant(I32, 0) for name in ("tid", "ntid", "ctaid", "nctaid")},
    "nwarpid": _constant(I32, WARP),
    "smid": _constant(I32, 0),
    "nsmid": _constant(I32, 1),
    "gridid": _constant(I64, 0),
    "lanemask_eq": _lane_mask(1),
    "lanemask_lt": _lane_mask(1, less=1),
    "lanemask_le": _lane_mask(2, less=1),
    "lanemask_ge": _lane_mask(-1),
    "lanemask_gt": _lane_mask(-2),
    **{name: _clock(name) for name in CLOCKS},
    "is_explicit_cluster": _constant(I1, 0),
    "cluster_ctarank": _constant(I32, 0),
    "cluster_nctarank": _constant(I32, 1),
    **{f"cluster_ctaid.{axis}": _constant(I32, 0) for axis in "xyz"},
    **{f"cluster_nctaid.{axis}": _constant(I32, 1) for axis in "xyz"},
    **{f"clusterid.{axis}": _sreg(f"ctaid.{axis}") for axis in "xyz"},
    **{f"nclusterid.{axis}": _sreg(f"nctaid.{axis}") for axis in "xyz"},
}
"""How each register is read, in its own width. Without clusters, every thread block is one of its own."""
