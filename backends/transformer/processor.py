"""The whole machine as one circuit."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.backends.machine.block import Block
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.tokens import vocabulary
from qgpu.backends.transformer.circuit import Circuit
from qgpu.backends.transformer.units.address import compute_address
from qgpu.backends.transformer.units.alu import compute_result
from qgpu.backends.transformer.units.emission import emit_token
from qgpu.backends.transformer.units.fetch import fetch_block
from qgpu.backends.transformer.units.guard import choose_lane
from qgpu.backends.transformer.units.incoming import read_incoming
from qgpu.backends.transformer.units.memory import access_memory
from qgpu.backends.transformer.units.registers import read_operands
from qgpu.backends.transformer.units.since import keep_since
from qgpu.backends.transformer.units.state import keep_state


def build_processor(machine: MachineDescription, baked: Sequence[Block] | None = None) -> Circuit:
    """Return the circuit of a machine: one pass from the incoming token to the logits of the next.

    With `baked`, the blocks that can be the current one, the fields of the current block are in `row_tables`.
    """
    circuit = Circuit(vocabulary(machine).size)
    token = read_incoming(circuit, machine)
    state = keep_state(circuit, machine, token)
    fields = fetch_block(circuit, machine, token, state, baked)
    since = keep_since(circuit, machine, token, fields)
    operands = read_operands(circuit, machine, token, state, fields)
    address = compute_address(circuit, machine, fields, operands)
    access_memory(circuit, machine, token, fields, address, operands)
    result = compute_result(circuit, fields, operands, address)
    lanes = choose_lane(circuit, machine, token, state, fields)
    emit_token(circuit, machine, token, state, fields, address, lanes, since, result)
    return circuit
