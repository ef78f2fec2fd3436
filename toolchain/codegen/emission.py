"""Emission: tiles with numbered registers to blocks of program memory, and what the host has to know."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from qgpu.backends.machine.block import RUN_BLOCKS, Block
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.program import (
    SPILLED_UNIFORMS,
    HiddenBuffer,
    Kernel,
    Parameter,
    Preload,
    Printf,
    SharedArray,
    SourceLine,
)
from qgpu.ir import Argument, Function, IntType, Location, PtrType
from qgpu.toolchain.codegen.allocate import Allocation
from qgpu.toolchain.codegen.environment import Lowered
from qgpu.toolchain.codegen.memory_layout import array_offsets, whole_frame
from qgpu.toolchain.codegen.nodes import EQUAL, GREATER, LESS, Access, move, word
from qgpu.toolchain.codegen.refuse import first_place, refuse
from qgpu.toolchain.codegen.registers import Guard, Register
from qgpu.toolchain.codegen.tiles import Tile, routed

_LAST_NUMBER = 2**32 - 1
"""The last line or column that a program file can name; what lies beyond counts as unknown."""

_EXISTS = 1
"""The guard bit of predicate 0: the thread exists."""


@dataclass(frozen=True)
class _Layout:
    """Where things are: numbers of registers, rows a register takes, positions of tiles."""

    allocation: Allocation
    stride: int
    positions: dict[Tile, int]

    def number(self, register: Register) -> int:
        number = self.allocation.numbers[register]
        return number * self.stride if register.kind == "thread" else number


def emit_kernel(
    lowered: Lowered, tiles: list[Tile], allocation: Allocation, machine: MachineDescription
) -> Kernel:
    """Turn allocated tiles into a kernel.

    Raises:
        DiagnosticError: program memory is too small.
    """
    function = lowered.function
    preloads = _thread_preloads(allocation)
    program = [*tiles, *(tile for _, tile in preloads)]
    if len(program) > machine.rom_blocks:
        raise _too_long(function, program, machine)
    stride = machine.warp_stride(max(1, allocation.counts["thread"]))
    layout = _Layout(allocation, stride, {tile: index for index, tile in enumerate(program)})
    return Kernel(
        name=function.name,
        parameters=tuple(_parameters(lowered, allocation)),
        preloads=(
            *(Preload(name, block=layout.positions[tile]) for name, tile in preloads),
            *_uniform_preloads(allocation),
        ),
        blocks=tuple(_block(tile, layout) for tile in program),
        flat=tuple(_flat(program, layout)),
        single=tuple(_single(program, layout)),
        lines=tuple(_line(tile.loc) for tile in program),
        registers=allocation.counts["thread"],
        predicates=allocation.counts["predicate"],
        warp_stride=stride,
        shared_bytes=lowered.shared_bytes,
        max_threads=int(function.attrs.get("max_threads", 0)),
        local_bytes=whole_frame(function, lowered.local_bytes),
        hidden=tuple(_hidden(lowered, allocation)),
        printf=_printf(lowered),
        messages=tuple((index, tile.message) for index, tile in enumerate(program) if tile.message),
        shared_arrays=tuple(_shared_arrays(function)),
        thread_block_end=next((index for index, tile in enumerate(program) if tile.ends_thread_block), None),
    )


def _too_long(function: Function, program: Sequence[Tile], machine: MachineDescription) -> Exception:
    """Says how long the program is, and which line of the source takes most of it."""
    lines = Counter((tile.loc.file, tile.loc.line) for tile in program if tile.loc)
    notes = ["another --machine, or less unrolling and inlining, has room for it"]
    if lines:
        (file, line), blocks = lines.most_common(1)[0]
        notes.insert(0, f"{blocks} of them come from {file}:{line}")
    return refuse(
        f"kernel '{function.name}' needs {len(program)} blocks of program memory; "
        f"machine '{machine.name}' has {machine.rom_blocks}",
        first_place(function),
        *notes,
    )


def _shared_arrays(function: Function) -> Iterator[SharedArray]:
    offsets = array_offsets(function, "shared")
    for array in function.shared:
        if array.space == "shared":
            yield SharedArray(array.name, offsets[array.name], array.size)


def _printf(lowered: Lowered) -> Printf | None:
    """What the attributes `printf` (an array) and `printf.1`, `printf.2`, ... (the formats) say."""
    attrs = lowered.function.attrs
    if attrs.get("printf") not in lowered.arrays:
        return None
    numbers = itertools.takewhile(lambda number: f"printf.{number}" in attrs, itertools.count(1))
    formats = tuple(attrs[f"printf.{number}"] for number in numbers)
    return Printf(list(lowered.arrays).index(attrs["printf"]), formats)


def _hidden(lowered: Lowered, allocation: Allocation) -> Iterator[HiddenBuffer]:
    """The arrays in global and const memory that the kernel uses."""
    for name, register in lowered.arrays.items():
        array = lowered.function.array(name)
        yield HiddenBuffer(name, array.size, array.data.rstrip(b"\0"), allocation.numbers.get(register))
    if lowered.spilled_bytes:
        register = allocation.numbers.get(lowered.spilled_words)
        yield HiddenBuffer(SPILLED_UNIFORMS, lowered.spilled_bytes, uniform=register)


def _thread_preloads(allocation: Allocation) -> list[tuple[str, Tile]]:
    """The blocks through which the host writes thread registers; index.x begins as tid.x."""
    found = []
    for register in allocation.numbers:
        if register.kind == "thread" and register.preload:
            name = register.preload.replace("index.", "tid.")
            found.append((name, Tile(routed(move(0)), data=register, everyone=True)))
    return found


def _uniform_preloads(allocation: Allocation) -> list[Preload]:
    return [
        Preload(register.preload, uniform=number)
        for register, number in allocation.numbers.items()
        if register.kind == "uniform" and register.preload
    ]


def _parameters(lowered: Lowered, allocation: Allocation) -> list[Parameter]:
    return [
        Parameter(
            name=argument.name,
            type=_parameter_type(argument, lowered),
            pointer=isinstance(argument.type, PtrType),
            uniform=_parameter_registers(argument, lowered, allocation),
        )
        for argument in lowered.function.args
    ]


def _parameter_registers(argument: Argument, lowered: Lowered, allocation: Allocation) -> tuple[int, ...]:
    """The register of a parameter that is used; of a 64-bit one there is a second, for its high word."""
    register = lowered.parameters.get(argument.index)
    if register is None or register not in allocation.numbers:
        return ()
    return tuple(allocation.numbers[word] for word in (register, register.partner) if word)


def _parameter_type(argument: Argument, lowered: Lowered) -> str:
    """The type that the host extends a scalar by; what a buffer holds the kernel does not say."""
    if not isinstance(argument.type, IntType):
        return "void"
    narrow = argument.type.width < 32
    return f"{'u' if narrow and not lowered.is_signed(argument.index) else 'i'}{argument.type.width}"


def _line(loc: Location | None) -> SourceLine:
    if loc is None:
        return SourceLine()
    line, column = (number if number <= _LAST_NUMBER else 0 for number in (loc.line, loc.column))
    return SourceLine(loc.file, line, column)


def _flat(program: Sequence[Tile], layout: _Layout) -> Iterator[tuple[int, Block]]:
    """The blocks that stand for others in thread blocks of one dimension."""
    for number, tile in enumerate(program):
        if tile.flat is not None and tile.taken is None:
            flow = {"next": tile.next, "idle": None, "ends_thread_block": tile.ends_thread_block}
            flat = replace(tile.flat, **flow)
            layout.positions[flat] = number
            yield number, _block(flat, layout)


def _single(program: Sequence[Tile], layout: _Layout) -> Iterator[tuple[int, Block]]:
    """The blocks that stand for others in launches of one thread block: after it nothing is left to do."""
    for number, tile in enumerate(program):
        if tile.ends_thread_block:
            yield number, Block(next_exit=1)
        elif tile.next is not None and tile.next.ends_thread_block and tile.flat is None:
            yield number, replace(_block(tile, layout), next=0, fall=0, next_exit=1)


def _block(tile: Tile, layout: _Layout) -> Block:
    fields: dict[str, int | str] = {}
    fields |= _operand_fields(tile, layout)
    fields |= _access_fields(tile.access, tile.routing.flags)
    fields["check2"] = int(tile.second is not None)
    fields |= _destination_fields(tile, layout)
    fields |= _lane_fields(tile, layout)
    fields |= _flow_fields(tile, layout.positions)
    return Block(**fields)  # pyright: ignore[reportArgumentType]


def _operand_fields(tile: Tile, layout: _Layout) -> dict[str, int | str]:
    routing = tile.routing
    expression = routing.expression
    fields: dict[str, int | str] = dict.fromkeys(routing.flags, 1)
    for port, value in routing.ports.items():
        fields[port] = layout.number(value) if isinstance(value, Register) else word(value)
        if isinstance(value, Register) and port in "ab":
            fields[f"{port}_{value.kind}"] = 1
    fields["op"] = expression.op
    fields["lut"] = expression.lut
    for name, bit in (("lt", LESS), ("eq", EQUAL), ("gt", GREATER)):
        fields[f"cond_{name}"] = int(bool(expression.relation & bit))
    fields["signed"] = int(expression.signed)
    return fields


def _access_fields(access: Access | None, flags: Sequence[str]) -> dict[str, int | str]:
    if access is None:
        return {}
    return {
        "check": 1,
        "width8": int(access.width == 1),
        "width16": int(access.width == 2),
        "m_signed": int(access.sign and "m_sub_to_x" in flags),
    }


def _destination_fields(tile: Tile, layout: _Layout) -> dict[str, int | str]:
    fields: dict[str, int | str] = {"wr_mem": int(tile.stores), "wr_mem2": int(tile.stores_second)}
    if tile.data is not None:
        fields["dest"] = layout.number(tile.data)
        fields["wr_uni" if tile.data.kind == "uniform" else "wr_reg"] = 1
    if tile.predicate is not None:
        wr = "wr_bound" if tile.bound else "wr_pred"
        fields |= {wr: 1, "dest_pred": layout.number(tile.predicate)}
    if tile.trap is not None:
        fields |= {"trap": 1, "imm": tile.trap}
    return fields


def _lane_fields(tile: Tile, layout: _Layout) -> dict[str, int | str]:
    if tile.scalar:
        return {"visit": 1, "scalar": 1}
    wanted = (0 if tile.everyone else _EXISTS) | _mask(tile.guard, True, layout)
    unwanted = _mask(tile.guard, False, layout)
    if wanted & unwanted:
        return {}  # No lane would be active; the machine refuses a guard of both polarities.
    return {"visit": 1, "all_warps": 1, "guard_true": wanted, "guard_false": unwanted}


def _mask(guard: Guard, polarity: bool, layout: _Layout) -> int:
    numbers = {layout.number(literal.register) for literal in guard if literal.polarity is polarity}
    return sum(1 << number for number in numbers)


def _flow_fields(tile: Tile, positions: dict[Tile, int]) -> dict[str, int | str]:
    if tile.next is None:
        fields: dict[str, int | str] = {"next_exit": 1}
    else:
        number, following = positions[tile], positions[tile.next]
        fields = {"next": following, "fall": int(following == number + 1 and following % RUN_BLOCKS != 0)}
    if tile.taken is not None:
        fields |= {"branch_any": 1, "taken": positions[tile.taken]}
    if tile.idle is not None:
        fields |= {"skip_idle": 1, "taken": positions[tile.idle]}
    return fields
