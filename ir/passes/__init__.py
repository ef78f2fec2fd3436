"""Transformations of the IR, one pass per file, and the pipeline that prepares a kernel for the machine."""

from qgpu.ir.passes.common_subexpressions import CommonSubexpressions
from qgpu.ir.passes.dead_code import DeadCode
from qgpu.ir.passes.enclose_critical_sections import EncloseCriticalSections
from qgpu.ir.passes.errors import PassError
from qgpu.ir.passes.expand_operations import ExpandOperations
from qgpu.ir.passes.if_convert import IfConvert
from qgpu.ir.passes.linearize import Linearize, LinearizeError
from qgpu.ir.passes.lower_barriers import LowerBarriers
from qgpu.ir.passes.lower_exchanges import LowerExchanges
from qgpu.ir.passes.lower_printf import LowerPrintf
from qgpu.ir.passes.make_reducible import MakeReducible
from qgpu.ir.passes.manager import Observer, Pass, PassManager, PassRun
from qgpu.ir.passes.narrow_addresses import NarrowAddresses
from qgpu.ir.passes.observers import DumpFiles, PrintAfter, PrintChanged, TimePasses
from qgpu.ir.passes.promote_local import PromoteLocal
from qgpu.ir.passes.promote_narrow import PromoteNarrow
from qgpu.ir.passes.recover_indices import RecoverIndices
from qgpu.ir.passes.registry import PipelineError, describe_passes, parse_pipeline
from qgpu.ir.passes.serialise_atomics import SerialiseAtomics
from qgpu.ir.passes.simplify import Simplify
from qgpu.ir.passes.specialise import Specialise
from qgpu.ir.passes.split_wide import SplitWide
from qgpu.ir.passes.target import Target
from qgpu.ir.passes.unroll import Unroll

__all__ = [
    "PASSES",
    "CommonSubexpressions",
    "DeadCode",
    "DumpFiles",
    "EncloseCriticalSections",
    "ExpandOperations",
    "IfConvert",
    "Linearize",
    "LinearizeError",
    "LowerBarriers",
    "LowerExchanges",
    "LowerPrintf",
    "MakeReducible",
    "NarrowAddresses",
    "Observer",
    "Pass",
    "PassError",
    "PassManager",
    "PassRun",
    "PipelineError",
    "PrintAfter",
    "PrintChanged",
    "PromoteLocal",
    "PromoteNarrow",
    "RecoverIndices",
    "SerialiseAtomics",
    "Simplify",
    "Specialise",
    "SplitWide",
    "Target",
    "TimePasses",
    "Unroll",
    "default_pipeline",
    "describe_passes",
    "parse_pipeline",
]

PASSES: dict[str, type[Pass]] = {
    step.name: step
    for step in sorted(Pass.__subclasses__(), key=lambda step: step.__name__)
    if step.__module__.startswith(__name__)
}
"""Every pass by its name."""


def default_pipeline(target: Target | None = None) -> list[Pass]:
    """The passes between a front end and code generation for a target, in order.

    Addresses are narrowed first, while the 64-bit arithmetic is as the front end wrote it. Linearisation ends
    SSA form, on which the passes before it work; those after it make use of lockstep.
    """
    target = target or Target()
    return [
        Simplify(),
        Unroll(),
        Simplify(),
        PromoteLocal(),
        LowerPrintf(min(target.memory_words // 8, 4096)),
        NarrowAddresses(),
        PromoteNarrow(),
        Simplify(),
        CommonSubexpressions(),
        IfConvert(),
        RecoverIndices(),
        MakeReducible(),
        EncloseCriticalSections(),
        ExpandOperations(),
        SplitWide(),
        ExpandOperations(),
        Simplify(),
        CommonSubexpressions(),
        DeadCode(),
        Linearize(warp_size=target.warp_size),
        LowerBarriers(),
        LowerExchanges(target.warp_size, target.threads),
        SerialiseAtomics(target.warp_size, target.threads),
    ]
