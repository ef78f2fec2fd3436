"""Code generation: a module of linearised kernels to a program for one machine."""

from __future__ import annotations

import itertools

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.program import Kernel, Program
from qgpu.ir import Function, Module
from qgpu.toolchain.codegen.allocate import Allocation, allocate, misfits
from qgpu.toolchain.codegen.comparisons import join_tests
from qgpu.toolchain.codegen.conditions import orient_conditions, test_differences
from qgpu.toolchain.codegen.emission import emit_kernel
from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.flow import Linker
from qgpu.toolchain.codegen.guards import shorten_guards
from qgpu.toolchain.codegen.hoisting import hoist_common
from qgpu.toolchain.codegen.idle import pass_over_idle
from qgpu.toolchain.codegen.layout import laid_out
from qgpu.toolchain.codegen.limits import Limits, limits_of
from qgpu.toolchain.codegen.loops import shorten_loops
from qgpu.toolchain.codegen.lowering import lower
from qgpu.toolchain.codegen.places import Decisions, RetryError, place
from qgpu.toolchain.codegen.regions import Region
from qgpu.toolchain.codegen.schedule import schedule
from qgpu.toolchain.codegen.selection import Draft, Selector
from qgpu.toolchain.codegen.selections import sink_operations
from qgpu.toolchain.codegen.tiles import Tile
from qgpu.toolchain.diagnostics import DiagnosticError

_PATIENCE = 3
"""Attempts after which no block reads an accumulator any more that might have to be taken from it."""


def generate(module: Module, machine: MachineDescription, max_registers: int | None = None) -> Program:
    """Generate the program of a module whose functions are linearised (`qgpu.ir.passes`).

    Args:
        max_registers: registers of a thread at most, besides what the machine allows (-maxrregcount).

    Raises:
        DiagnosticError: a kernel needs an operation that the machine lacks, or more of something than it has.
    """
    return Program(
        machine, tuple(generate_kernel(function, machine, max_registers) for function in module.functions)
    )


def generate_kernel(
    function: Function, machine: MachineDescription, max_registers: int | None = None
) -> Kernel:
    """Generate one kernel; see `generate`.

    Bounds take blocks and uniform registers to save tokens: where there are too few, the kernel does without.
    """
    limits = limits_of(machine, int(function.attrs.get("max_threads", 0)), max_registers)
    try:
        return _generated(function, machine, limits, bounds=True)
    except DiagnosticError:
        return _generated(function, machine, limits, bounds=False)


def _generated(function: Function, machine: MachineDescription, limits: Limits, bounds: bool) -> Kernel:
    lowered = lower(function)
    test_differences(lowered)
    orient_conditions(lowered)
    join_tests(lowered)
    shorten_guards(lowered)
    sink_operations(lowered)
    tiles, allocation = _allocated(lowered, machine, limits, bounds)
    shorten_loops(tiles, allocation.place)
    hoist_common(tiles, allocation.place)
    pass_over_idle(tiles)
    return emit_kernel(lowered, laid_out(tiles), allocation, machine)


def _allocated(
    lowered: Lowered, machine: MachineDescription, limits: Limits, bounds: bool
) -> tuple[list[Tile], Allocation]:
    """Tiles with numbered registers, of which accumulators lie where the machine has a port to them."""
    decisions, local_bytes = Decisions(), lowered.local_bytes
    for attempt in itertools.count(1):
        tiles: list[Tile] = Linker(lowered, _ordered(lowered, machine, decisions), bounds).run()
        lowered.local_bytes, lowered.spilled_bytes = local_bytes, 0
        allocation = allocate(tiles, lowered, limits)
        out_of_reach = misfits(tiles, allocation, machine)
        if not out_of_reach:
            return tiles, allocation
        if attempt >= _PATIENCE:
            out_of_reach |= {tile.root for tile in tiles if tile.root and tile.routing.accumulator}
        decisions.plain |= out_of_reach

    raise AssertionError("blocks without accumulators always fit")


def _ordered(
    lowered: Lowered, machine: MachineDescription, decisions: Decisions
) -> dict[Region, list[Draft]]:
    """The blocks of every region in order: places, selection and scheduling until no decision changes."""
    while True:
        places = place(lowered, decisions)
        try:
            selection = Selector(lowered, places, decisions, machine).run()
        except RetryError:
            continue
        ordered = schedule(selection, places, decisions)
        if ordered is not None:
            return ordered
