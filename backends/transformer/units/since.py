"""What has happened since the block began."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.transformer.circuit import Channel, Circuit, as_form, conjunction, total
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.incoming import Incoming
from qgpu.backends.transformer.units.state import latch


@dataclass(frozen=True)
class Since:
    """What has happened since the block began: a result was not 0, and a lane was visited."""

    any_nonzero: Channel
    visited: Channel


def keep_since(circuit: Circuit, machine: MachineDescription, token: Incoming, fields: Fields) -> Since:
    """Build the flags that say what has happened since the block began.

    A LAST token alone adds to them: after a FINAL one another block has begun.
    """
    circuit.unit("sequencing")
    last, writes_predicate = token.is_kind["last"], fields.flag("wr_pred")
    nonzero, top = circuit.channel("result_nonzero"), machine.payload_bits - 1
    plain = conjunction(last, 1 - writes_predicate.form())
    ones = total(token.value)
    circuit.neuron(ones + (plain - 1) * 32, (nonzero, 1))
    circuit.neuron(ones - 1 + (plain - 1) * 32, (nonzero, -1))
    circuit.add_and(nonzero, last, writes_predicate, token.argument[top])
    begins = as_form(token.is_kind["start"]) + token.is_kind["final"]
    (any_nonzero,) = latch(circuit, "any", begins + nonzero, [nonzero])
    (visited,) = latch(circuit, "visited", begins + last, [last])
    return Since(any_nonzero, visited)
