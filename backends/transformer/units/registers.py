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
    matches,
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
        k: the immediate offset of the second access, where its index is not I.
        i_high, j_high: how many of a register index's bits above INDEX_BITS - 2 are set; an index in range
            has all
            or none.
        descriptor, descriptor2: the buffer descriptors of both accesses.
        x, y, z: operands of the arithmetic unit.
    """

    i: list[Channel]
    j: list[Channel]
    k: list[Channel]
    i_high: Channel
    j_high: Channel
    descriptor: list[Channel]
    descriptor2: list[Channel]
    x: list[Channel]
    y: list[Channel]
    z: list[Channel]


INDEX_HIGH = 32 - (INDEX_BITS - 1)
"""Bits of a register that must all be alike in an index."""


def read_operands(
    circuit: Circuit, machine: MachineDescription, token: Incoming, state: State, fields: Fields
) -> Operands:
    """Build the ports, and the routes of the immediate and the constants."""
    operands = Operands(
        circuit.bus("i", OFFSET_BITS, kind="memory"),
        circuit.bus("j", OFFSET_BITS, kind="memory"),
        circuit.bus("k", OFFSET_BITS),
        circuit.channel("i_high", INDEX_HIGH, kind="memory"),
        circuit.channel("j_high", INDEX_HIGH, kind="memory"),
        circuit.bus("descriptor", 32, kind="memory"),
        circuit.bus("descriptor2", 32, kind="memory"),
        circuit.bus("x", 32, kind="memory"),
        circuit.bus("y", 32, kind="memory"),
        circuit.bus("z", 32, kind="memory"),
    )
    circuit.unit("immediate")
    files = _Files(
        circuit, machine, token, state, fields, _uniform_destination(circuit, machine, state, fields)
    )
    flag, value = fields.flag, token.value
    circuit.unit("port C")
    port_c = _word(value, operands.descriptor, flag("c_to_d")) + _word(value, operands.y, flag("c_to_y"))
    files.uniform_port("c", port_c + _word(value, operands.z, flag("c_to_z")))
    circuit.unit("port E")
    index = _index_columns(value, operands.j, operands.j_high, flag("e_to_j"), flag("e_to_j4"))
    files.uniform_port("e", index + _word(value, operands.descriptor2, flag("e_to_d2")))
    circuit.unit("port A")
    index = _index_columns(value, operands.i, operands.i_high, flag("a_to_i"), flag("a_to_i4"))
    port_a = (
        index + _word(value, operands.x, flag("a_to_x")) + _word(value, operands.descriptor, flag("a_to_d"))
    )
    files.uniform_port("a", port_a, flag("a_uniform"))
    files.thread_port("a", port_a, flag("a_thread"))
    circuit.unit("port B")
    port_b = _word(value, operands.y, flag("b_to_y")) + _word(value, operands.z, flag("b_to_z"))
    files.uniform_port("b", port_b, flag("b_uniform"))
    files.thread_port("b", port_b, flag("b_thread"))
    circuit.unit("accumulator port")
    gate = flag("dest_to_z")
    files.thread_port("dest", _word(value, operands.z, gate), gate, machine.accumulator_rows)
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


@dataclass(frozen=True)
class _Files:
    """The register files; each port is a copy of one.

    A value is committed by the token after the pass that computed it, so a copy's keys are those of the token
    before: that pass knew the register, the warp and the lane, whatever block and lane the machine is at now.
    """

    circuit: Circuit
    machine: MachineDescription
    token: Incoming
    state: State
    fields: Fields
    uniform_destination: list[Form]

    def thread_port(
        self, field: str, columns: list[Column], enable: Channel, rows: int | None = None
    ) -> None:
        """Build a port that reads the thread register that a field numbers, up to row `rows`."""
        machine = self.machine
        words = min(machine.register_words, (rows or machine.register_rows) * machine.lanes)
        for first in range(0, words, machine.model.key_dim):
            held = range(first, min(first + machine.model.key_dim, words))
            self.circuit.heads.append(
                Head(
                    f"register.{field}.{first}",
                    self.circuit.current_unit,
                    self._word_keys("dest", self.fields.flag("wr_reg"), held),
                    self._word_keys(field, enable, held),
                    self.token.is_kind["value"].form(),
                    columns,
                    key_tap=1,
                    file=f"register.{field}",
                )
            )

    def _word_keys(self, field: str, enable: Channel, words: range) -> list[Form]:
        """For each word of the file, whether `enable` holds and the field's register of this thread is it."""
        row_bits = max(1, (self.machine.register_rows - 1).bit_length())
        warps: list[FormLike] = [*self.state.warp, *([0] * row_bits)]
        row = [as_form(f) + w for f, w in zip(self.fields.bits[field][:row_bits], warps, strict=False)]
        # Row and warp have no bit in common, but where the field numbers a uniform register sums reach 2.
        sure = enable.form() * (len(self.state.warp) + 1) - len(self.state.warp)
        return matches([*self.state.lane, *row], words, sure)

    def uniform_port(self, field: str, columns: list[Column], enable: Channel | None = None) -> None:
        """Build a port that reads the uniform register that a field numbers."""
        bits, gate = len(self.uniform_destination), [] if enable is None else [enable]
        written = self.fields.flag("wr_uni")
        registers = range(self.machine.uniform_registers)
        read = self.fields.bits[field][:bits]
        self.circuit.heads.append(
            Head(
                f"uniform.{field}",
                self.circuit.current_unit,
                matches(self.uniform_destination, registers, written),
                matches(read, registers, *gate),
                self.token.is_kind["value"].form(),
                columns,
                key_tap=1,
            )
        )


def _uniform_destination(
    circuit: Circuit, machine: MachineDescription, state: State, fields: Fields
) -> list[Form]:
    """The number of the uniform register that a value goes to: `dest`, plus the lane where `dest_lane`."""
    bits = (machine.uniform_registers - 1).bit_length()
    destination = [bit.form() for bit in fields.bits["dest"][:bits]]
    for k, lane in enumerate(state.lane):
        destination[k] = destination[k] + circuit.both(f"dest_lane.{k}", fields.flag("dest_lane"), lane)
    return destination


def _route_constants(circuit: Circuit, state: State, fields: Fields, operands: Operands) -> None:
    routes = (("imm_to_x", operands.x), ("imm_to_y", operands.y), ("imm_to_z", operands.z))
    for name, outputs in routes:
        for bit, output in zip(fields.bits["imm"], outputs, strict=True):
            circuit.add_and(output, fields.flag(name), bit)
    for name, outputs in (("imm_to_j", operands.j), ("imm_to_k", operands.k)):
        for bit, output in zip(fields.bits["imm"], outputs, strict=False):
            circuit.add_and(output, fields.flag(name), bit)
    circuit.neuron(fields.flag("one_to_y"), (operands.y[0], 1))
    circuit.neuron(fields.flag("ones_to_y"), *((output, 1) for output in operands.y))
    for k, bit in enumerate(state.lane):
        circuit.add_and(operands.i[k + 2], fields.flag("lane_to_i4"), bit)
