"""Register ports: copies of the register files that route what they read to the operands of the block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.backends.machine.block import INDEX_BITS
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.transformer.circuit import (
    Channel,
    Circuit,
    Column,
    Form,
    FormLike,
    Head,
    as_form,
    conjunction,
    equals,
)
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.incoming import Incoming
from qgpu.backends.transformer.units.state import State

OFFSET_BITS = 24
"""Bits of the offset's adder: the sum of two scaled indices, signed."""


@dataclass(frozen=True)
class Operands:
    """Channels of the block's operands.

    Attributes:
        i, j: the two terms of the offset, OFFSET_BITS bits, two's complement.
        i_high, j_high: how many of a register index's bits above INDEX_BITS - 2 are set; an index in range
            has all
            or none.
        descriptor: the buffer descriptor.
        x, y, z: operands of the arithmetic unit.
    """

    i: list[Channel]
    j: list[Channel]
    i_high: Channel
    j_high: Channel
    descriptor: list[Channel]
    x: list[Channel]
    y: list[Channel]
    z: list[Channel]


INDEX_HIGH = 32 - (INDEX_BITS - 1)
"""Bits of a register that must all be alike in an index."""


def read_operands(
    circuit: Circuit, machine: MachineDescription, token: Incoming, state: State, fields: Fields
) -> Operands:
    """Build the ports A, B and C, and the routes of the immediate and the constants."""
    operands = Operands(
        circuit.bus("i", OFFSET_BITS, kind="memory"),
        circuit.bus("j", OFFSET_BITS, kind="memory"),
        circuit.channel("i_high", INDEX_HIGH, kind="memory"),
        circuit.channel("j_high", INDEX_HIGH, kind="memory"),
        circuit.bus("descriptor", 32, kind="memory"),
        circuit.bus("x", 32, kind="memory"),
        circuit.bus("y", 32, kind="memory"),
        circuit.bus("z", 32, kind="memory"),
    )
    flag = fields.flag
    circuit.unit("immediate")
    destination = _uniform_destination(circuit, machine, state, fields)
    circuit.unit("port A")
    index = _index_columns(token.value, operands.i, operands.i_high, flag("a_to_i"), flag("a_to_i4"))
    port_a = index + _word(token.value, operands.x, flag("a_to_x"))
    port_a += _word(token.value, operands.descriptor, flag("a_to_d"))
    _thread_port(circuit, machine, "a", port_a, token, state, fields)
    _uniform_port(circuit, machine, "a", port_a, token, fields, destination)
    circuit.unit("port B")
    index = _index_columns(token.value, operands.j, operands.j_high, flag("b_to_j"), flag("b_to_j4"))
    port_b = (
        index
        + _word(token.value, operands.y, flag("b_to_y"))
        + _word(token.value, operands.z, flag("b_to_z"))
    )
    _thread_port(circuit, machine, "b", port_b, token, state, fields)
    _uniform_port(circuit, machine, "b", port_b, token, fields, destination)
    circuit.unit("port C")
    port_c = _word(token.value, operands.descriptor, flag("c_to_d"))
    port_c += _word(token.value, operands.y, flag("c_to_y")) + _word(token.value, operands.z, flag("c_to_z"))
    _uniform_port(circuit, machine, "c", port_c, token, fields, destination)
    circuit.unit("immediate")
    _route_constants(circuit, state, fields, operands)
    return operands


def _word(value: Sequence[Channel], outputs: Sequence[Channel], gate: Channel) -> list[Column]:
    return [
        Column(bit.form(), [(output, 1)], gate.form()) for bit, output in zip(value, outputs, strict=True)
    ]


def _index_columns(
    value: Sequence[Channel], outputs: Sequence[Channel], high: Channel, plain: Channel, scaled: Channel
) -> list[Column]:
    """Columns that give a signed index, plain or times 4, and the count of its high bits."""
    body, sign = INDEX_BITS - 1, value[31].form()
    columns: list[Column] = []
    for gate, shift in ((plain, 0), (scaled, 2)):
        columns += [Column(value[k].form(), [(outputs[k + shift], 1)], gate.form()) for k in range(body)]
        columns.append(Column(sign, [(output, 1) for output in outputs[body + shift :]], gate.form()))
    used = plain.form() + scaled
    columns += [Column(value[k].form(), [(high, 1)], used) for k in range(body, 32)]
    return columns


def _thread_port(
    circuit: Circuit,
    machine: MachineDescription,
    port: str,
    columns: list[Column],
    token: Incoming,
    state: State,
    fields: Fields,
) -> None:
    row_bits = max(1, (machine.register_rows - 1).bit_length())
    warps: list[FormLike] = [*state.warp, *([0] * row_bits)]
    read = [as_form(a) + w for a, w in zip(fields.bits[port][:row_bits], warps, strict=False)]
    written = [as_form(d) + w for d, w in zip(fields.bits["dest"][:row_bits], warps, strict=False)]
    enable = fields.flag(f"{port}_thread").form()
    # Row and warp have no bit in common, but where the field numbers a uniform register their sums reach 2.
    surplus = (enable - 1) * len(state.warp)
    for first in range(0, machine.register_words, machine.model.head_dim):
        words = range(first, min(first + machine.model.head_dim, machine.register_words))
        circuit.heads.append(
            Head(
                f"register.{port}.{first}",
                circuit.current_unit,
                [conjunction(*equals([*state.lane_before, *written], word)) for word in words],
                [conjunction(enable, *equals([*state.lane, *read], word)) + surplus for word in words],
                conjunction(token.is_kind["last"], fields.flag("wr_reg")),
                columns,
            )
        )


def _uniform_port(
    circuit: Circuit,
    machine: MachineDescription,
    port: str,
    columns: list[Column],
    token: Incoming,
    fields: Fields,
    destination: Sequence[Form],
) -> None:
    bits = len(destination)
    gate = [fields.flag(f"{port}_uniform")] if f"{port}_uniform" in fields.bits else []
    registers = range(machine.uniform_registers)
    circuit.heads.append(
        Head(
            f"uniform.{port}",
            circuit.current_unit,
            [conjunction(*equals(destination, register)) for register in registers],
            [conjunction(*gate, *equals(fields.bits[port][:bits], register)) for register in registers],
            conjunction(token.is_kind["last"], fields.flag("wr_uni")),
            columns,
        )
    )


def _uniform_destination(
    circuit: Circuit, machine: MachineDescription, state: State, fields: Fields
) -> list[Form]:
    """The number of the uniform register that a value goes to: `dest`, plus the lane where `dest_lane`."""
    bits = (machine.uniform_registers - 1).bit_length()
    destination = [bit.form() for bit in fields.bits["dest"][:bits]]
    for k, lane in enumerate(state.lane_before):
        destination[k] = destination[k] + circuit.both(f"dest_lane.{k}", fields.flag("dest_lane"), lane)
    return destination


def _route_constants(circuit: Circuit, state: State, fields: Fields, operands: Operands) -> None:
    routes = (("imm_to_x", operands.x), ("imm_to_y", operands.y), ("imm_to_z", operands.z))
    for name, outputs in routes:
        for bit, output in zip(fields.bits["imm"], outputs, strict=True):
            circuit.add_and(output, fields.flag(name), bit)
    for bit, output in zip(fields.bits["imm"], operands.j, strict=False):
        circuit.add_and(output, fields.flag("imm_to_j"), bit)
    circuit.neuron(fields.flag("one_to_y"), (operands.y[0], 1))
    circuit.neuron(fields.flag("ones_to_y"), *((output, 1) for output in operands.y))
    for k, bit in enumerate(state.lane):
        circuit.add_and(operands.i[k + 2], fields.flag("lane_to_i4"), bit)
