"""The arithmetic unit: every operation adds its result to one bus, enabled by the block's operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qgpu.backends.machine.block import OPS
from qgpu.backends.transformer.circuit import Channel, Circuit, FormLike
from qgpu.backends.transformer.units.address import Address
from qgpu.backends.transformer.units.arithmetic import multiply_add, population_count
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.logic import (
    Relation,
    ShiftAmount,
    add_relation,
    bitwise,
    choose,
    compare_digits,
    decode_amount,
    flip_sign,
    merge_bytes,
    shift_left,
    shift_right,
)
from qgpu.backends.transformer.units.registers import Operands


@dataclass
class Arithmetic:
    """What the operations share while the unit is built."""

    circuit: Circuit
    fields: Fields
    operands: Operands
    address: Address
    result: list[Channel]
    amount: ShiftAmount
    related: Channel


def _mad(unit: Arithmetic, enable: Channel) -> None:
    o = unit.operands
    multiply_add(unit.circuit, o.x, o.y, o.z, unit.result, enable)


def _lop3(unit: Arithmetic, enable: Channel) -> None:
    o = unit.operands
    bitwise(unit.circuit, (o.x, o.y, o.z), unit.fields.bits["lut"], unit.result, enable)


def _shl(unit: Arithmetic, enable: Channel) -> None:
    shift_left(unit.circuit, unit.operands.x, unit.amount, unit.result, enable)


def _shr(unit: Arithmetic, enable: Channel) -> None:
    signed = unit.fields.flag("signed")
    shift_right(unit.circuit, unit.operands.x, unit.amount, signed, unit.result, enable)


def _cmp(unit: Arithmetic, enable: Channel) -> None:
    unit.circuit.add_and(unit.result[0], enable, unit.related)


def _pick(unit: Arithmetic, enable: Channel) -> None:
    choose(unit.circuit, unit.operands.x, unit.operands.y, unit.related, unit.result, enable)


def _select(unit: Arithmetic, enable: Channel) -> None:
    choose(unit.circuit, unit.operands.x, unit.operands.y, unit.operands.z[0], unit.result, enable)


def _merge(unit: Arithmetic, enable: Channel) -> None:
    flag, low = unit.fields.flag, unit.address.byte
    widths = (flag("width8"), flag("width16"))
    merge_bytes(unit.circuit, unit.operands.x, unit.operands.y, (low[0], low[1]), widths, unit.result, enable)


def _popc(unit: Arithmetic, enable: Channel) -> None:
    population_count(unit.circuit, unit.operands.x, unit.result, enable)


UNITS: dict[str, Callable[[Arithmetic, Channel], None]] = {
    "mad": _mad,
    "lop3": _lop3,
    "shl": _shl,
    "shr": _shr,
    "cmp": _cmp,
    "pick": _pick,
    "select": _select,
    "merge": _merge,
    "popc": _popc,
}
"""One circuit for each operation of the block."""


def compute_result(circuit: Circuit, fields: Fields, operands: Operands, address: Address) -> list[Channel]:
    """Build the arithmetic unit and return the 32 bits of the result."""
    circuit.unit("shift")
    amount = decode_amount(circuit, operands.y)
    circuit.unit("compare")
    related = _relation(circuit, fields, operands.x, operands.y)
    unit = Arithmetic(circuit, fields, operands, address, circuit.bus("result", 32), amount, related)
    for name in OPS:
        circuit.unit(name)
        UNITS[name](unit, fields.choice("op", tuple(OPS), name))
    return unit.result


def _relation(circuit: Circuit, fields: Fields, x: Sequence[FormLike], y: Sequence[FormLike]) -> Channel:
    flag = fields.flag
    left = flip_sign(circuit, "compare.x", x, flag("signed"))
    right = flip_sign(circuit, "compare.y", y, flag("signed"))
    orders = compare_digits(circuit, "compare", left, right)
    related = circuit.channel("related")
    add_relation(circuit, orders, Relation(flag("cond_lt"), flag("cond_eq"), flag("cond_gt")), related)
    return related
