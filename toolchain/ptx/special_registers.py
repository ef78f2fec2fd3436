"""Special registers (PTX ISA 9.0, section 10), by name: how each is computed from the IR's."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from qgpu.ir import I1, I32, I64, Constant, IntType, Value
from qgpu.ir.core.opcodes import SPECIAL_REGISTERS
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.rule import CLOCK, CLOCKS

if TYPE_CHECKING:
    from qgpu.toolchain.ptx.emitter import Emitter

Reader = Callable[["Emitter"], Value]

_WARPS = 32
"""Warps that the largest thread block has."""

RESERVED = ast.Variable(
    position=ast.Position(0, 0),
    name="%reserved_smem_offset_1",
    space="shared",
    type="b8",
    align=16,
    extents=(288,),
)
"""What the register of this name holds the address of: shared memory set aside for cooperative groups.

Their header reads the register for every thread block from sm_80 on, and keeps the barriers of groups of
several warps there, in at most 288 bytes. A kernel has the array where it uses the address.
"""

ABSENT = {
    "%envreg": "grid groups (cooperative launch) read it, but thread blocks run one after another",
    "%pm": "the machine has no performance counters",
    "%reserved_smem_offset": "of what is reserved in shared memory only %reserved_smem_offset_1 is known",
    "%total_smem_size": "how much shared memory a launch has is not known to the kernel",
    "%aggr_smem_size": "how much shared memory a launch has is not known to the kernel",
    "%dynamic_smem_size": "how much shared memory a launch has is not known to the kernel",
    "%current_graph_exec": "there are no graphs",
}
"""Why registers whose names start so cannot be read."""


def read_special(x: "Emitter", name: str) -> Value | None:
    """The value of a special register in its own width; None where it is not one that can be read."""
    reader = _READERS.get(name)
    return reader(x) if reader is not None else None


def why_absent(name: str) -> str | None:
    """Why a special register cannot be read, as a clause; None where no such register is known."""
    return next((reason for prefix, reason in ABSENT.items() if name.startswith(prefix)), None)


def _sreg(name: str) -> Reader:
    return lambda x: x.builder.sreg(name)


def _constant(type_: IntType, value: int) -> Reader:
    return lambda x: Constant(type_, value)


def _lane_mask(bits: int, less: int = 0) -> Reader:
    """(`bits` << laneid) - `less`."""

    def read(x: "Emitter") -> Value:
        mask = x.operation("shl", Constant(I32, bits), x.builder.sreg("laneid"))
        return x.operation("sub", mask, Constant(I32, less)) if less else mask

    return read


def _tick(x: "Emitter") -> Value:
    """The clock; each read advances it."""
    now = x.operation("add", x.read_register(CLOCK), Constant(I64, 1))
    x.write_register(CLOCK, now)
    return now


def _tick_low(x: "Emitter") -> Value:
    return x.resized(_tick(x), I32, False)


def _tick_high(x: "Emitter") -> Value:
    return x.resized(x.operation("lshr", _tick(x), Constant(I64, 32)), I32, False)


def _clock(name: str) -> Reader:
    if name.endswith("_hi"):
        return _tick_high
    return _tick if name in ("%clock64", "%globaltimer") else _tick_low


_READERS: dict[str, Reader] = {
    **{f"%{name}": _sreg(name) for name in SPECIAL_REGISTERS},
    **{f"%{name}.w": _constant(I32, 0) for name in ("tid", "ntid", "ctaid", "nctaid")},
    "%nwarpid": _constant(I32, _WARPS),
    "%smid": _constant(I32, 0),
    "%nsmid": _constant(I32, 1),
    "%gridid": _constant(I64, 0),
    "%lanemask_eq": _lane_mask(1),
    "%lanemask_lt": _lane_mask(1, less=1),
    "%lanemask_le": _lane_mask(2, less=1),
    "%lanemask_ge": _lane_mask(-1),
    "%lanemask_gt": _lane_mask(-2),
    **{name: _clock(name) for name in CLOCKS},
    "%is_explicit_cluster": _constant(I1, 0),
    "%cluster_ctarank": _constant(I32, 0),
    "%cluster_nctarank": _constant(I32, 1),
    **{f"%cluster_ctaid.{axis}": _constant(I32, 0) for axis in "xyz"},
    **{f"%cluster_nctaid.{axis}": _constant(I32, 1) for axis in "xyz"},
    **{f"%clusterid.{axis}": _sreg(f"ctaid.{axis}") for axis in "xyz"},
    **{f"%nclusterid.{axis}": _sreg(f"nctaid.{axis}") for axis in "xyz"},
}
"""Without clusters, every thread block is a cluster of its own."""
