"""Special registers as PTX writes them; see `qgpu.toolchain.special_registers`."""

from typing import TYPE_CHECKING

from qgpu.ir import Value
from qgpu.toolchain import special_registers
from qgpu.toolchain.ptx import ast

if TYPE_CHECKING:
    from qgpu.toolchain.ptx.emitter import Emitter

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


def read_special(x: "Emitter", name: str) -> Value | None:
    """The value of a special register (`%tid.x`) in its own width; None where it is none that can be read."""
    reader = special_registers.READERS.get(name[1:]) if name.startswith("%") else None
    return reader(x) if reader is not None else None


def why_absent(name: str) -> str | None:
    """Why a special register cannot be read, as a clause; None where no such register is known."""
    return special_registers.why_absent(name[1:]) if name.startswith("%") else None
