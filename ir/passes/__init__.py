"""Transformations of the IR, one pass per file, and the pipeline that prepares a kernel for the machine."""

from qgpu.ir.passes.common_subexpressions import CommonSubexpressions
from qgpu.ir.passes.dead_code import DeadCode
from qgpu.ir.passes.if_convert import IfConvert
from qgpu.ir.passes.linearize import Linearize, LinearizeError
from qgpu.ir.passes.manager import Pass, PassManager
from qgpu.ir.passes.narrow_addresses import NarrowAddresses
from qgpu.ir.passes.promote_narrow import PromoteNarrow
from qgpu.ir.passes.recover_indices import RecoverIndices
from qgpu.ir.passes.simplify import Simplify

__all__ = [
    "CommonSubexpressions",
    "DeadCode",
    "IfConvert",
    "Linearize",
    "LinearizeError",
    "NarrowAddresses",
    "Pass",
    "PassManager",
    "PromoteNarrow",
    "RecoverIndices",
    "Simplify",
    "default_pipeline",
]


def default_pipeline() -> list[Pass]:
    """The passes between a front end and code generation, in order.

    Addresses are narrowed first, while the 64-bit arithmetic is as the front end wrote it; linearisation is
    last, since the passes before it work on SSA form.
    """
    return [
        Simplify(),
        NarrowAddresses(),
        PromoteNarrow(),
        Simplify(),
        CommonSubexpressions(),
        IfConvert(),
        RecoverIndices(),
        Simplify(),
        CommonSubexpressions(),
        DeadCode(),
        Linearize(),
    ]
