"""The arithmetic unit: every operation adds its result to one bus, enabled by the block's operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qgpu.backends.machine.block import OPS
from qgpu.backends.transformer.circuit import Channel, Circuit, FormLike
from qgpu.backends.transformer.units.address import Address
from qgpu.backends.transformer.units.arithmetic import (
    Digit,
    look_ahead,
    population_count,
    product_digits,
)
from qgpu.backends.transformer.units.fetch import Fields
from qgpu.backends.transformer.units.leading import count_leading_zeros, leading_one, reciprocal
from qgpu.backends.transformer.units.logic import (
    DigitOrder,
    Relation,
    Shifter,
    add_relation,
    bitwise,
    choose,
    compare_digits,
    flip_sign,
    merge_bytes,
    permute_bytes,
    reverse,
    shift_left,
    shift_pair,
    shift_right,
    step,
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
    product: list[Digit]
    shifter: Shifter
    orders: list[DigitOrder]
    related: Channel
    leading: list[Channel]


def _mad(unit: Arithmetic, enable: Channel) -> None:
    look_ahead(unit.circuit, unit.product, unit.result, enable)


def _mulhi(unit: Arithmetic, enable: Channel) -> None:
    look_ahead(unit.circuit, unit.product, unit.result, enable, len(unit.product) // 2)


def _lop3(unit: Arithmetic, enable: Channel) -> None:
    o = unit.operands
    bitwise(unit.circuit, (o.x, o.y, o.z), unit.fields.bits["lut"], unit.result, enable)


def _shl(unit: Arithmetic, enable: Channel) -> None:
    shift_left(unit.shifter, unit.operands.x, enable)


def _shr(unit: Arithmetic, enable: Channel) -> None:
    shift_right(unit.shifter, unit.operands.x, unit.fields.flag("signed"), unit.result, enable)


def _shf(unit: Arithmetic, enable: Channel) -> None:
    shift_pair(unit.shifter, unit.operands.x, unit.operands.z, unit.result, enable)


def _cmp(unit: Arithmetic, enable: Channel) -> None:
    unit.circuit.add_and(unit.result[0], enable, unit.related)


def _inc(unit: Arithmetic, enable: Channel) -> None:
    step(unit.circuit, unit.operands.z, unit.related, True, unit.result, enable)


def _dec(unit: Arithmetic, enable: Channel) -> None:
    step(unit.circuit, unit.operands.z, unit.related, False, unit.result, enable)


def _lex(unit: Arithmetic, enable: Channel) -> None:
    flag = unit.fields.flag
    relation = Relation(flag("cond_lt"), unit.operands.z[0], flag("cond_gt"))
    add_relation(unit.circuit, unit.orders, relation, unit.result[0], enable)


def _pick(unit: Arithmetic, enable: Channel) -> None:
    choose(unit.circuit, unit.operands.x, unit.operands.y, unit.related, unit.result, enable)


def _select(unit: Arithmetic, enable: Channel) -> None:
    choose(unit.circuit, unit.operands.x, unit.operands.y, unit.operands.z[0], unit.result, enable)


def _merge(unit: Arithmetic, enable: Channel) -> None:
    flag, low = unit.fields.flag, unit.address.byte
    widths = (flag("width8"), flag("width16"))
    merge_bytes(unit.circuit, unit.operands.x, unit.operands.y, (low[0], low[1]), widths, unit.result, enable)


def _prmt(unit: Arithmetic, enable: Channel) -> None:
    o = unit.operands
    permute_bytes(unit.circuit, o.x, o.y, o.z, unit.result, enable)


def _popc(unit: Arithmetic, enable: Channel) -> None:
    population_count(unit.circuit, unit.operands.x, unit.result, enable)


def _clz(unit: Arithmetic, enable: Channel) -> None:
    count_leading_zeros(unit.circuit, unit.leading, unit.result, enable)


def _brev(unit: Arithmetic, enable: Channel) -> None:
    reverse(unit.circuit, unit.operands.x, unit.result, enable)


def _rcp(unit: Arithmetic, enable: Channel) -> None:
    reciprocal(unit.circuit, unit.operands.x, unit.leading, unit.result, enable)


UNITS: dict[str, Callable[[Arithmetic, Channel], None]] = {
    "mad": _mad,
    "mulhi": _mulhi,
    "lop3": _lop3,
    "shl": _shl,
    "shr": _shr,
    "shf": _shf,
    "cmp": _cmp,
    "inc": _inc,
    "dec": _dec,
    "lex": _lex,
    "pick": _pick,
    "select": _select,
    "merge": _merge,
    "prmt": _prmt,
    "popc": _popc,
    "clz": _clz,
    "brev": _brev,
    "rcp": _rcp,
}
"""One circuit for each operation of the block."""


def compute_result(circuit: Circuit, fields: Fields, operands: Operands, address: Address) -> list[Channel]:
    """Build the arithmetic unit and return the 32 bits of the result.

    Z may come a layer later than X and Y.
    """
    operation = {name: fields.choice("op", tuple(OPS), name) for name in OPS}
    result = circuit.bus("result", 32)
    circuit.unit("multiply")
    o = operands
    product = product_digits(circuit, o.x, o.y, o.z, operation["mad"], fields.flag("signed"))
    circuit.unit("shift")
    shifter = Shifter(circuit, o.y, operation["shl"])
    circuit.unit("compare")
    orders = _orders(circuit, fields, o.x, o.y)
    related = circuit.channel("related")
    conditions = (fields.flag(name) for name in ("cond_lt", "cond_eq", "cond_gt"))
    add_relation(circuit, orders, Relation(*conditions), related)
    circuit.unit("leading one")
    leading = leading_one(circuit, o.x)
    unit = Arithmetic(circuit, fields, operands, address, result, product, shifter, orders, related, leading)
    for name in OPS:
        circuit.unit(name)
        UNITS[name](unit, operation[name])
    circuit.unit("shift")
    shifter.finish(result)
    return result


def _orders(
    circuit: Circuit, fields: Fields, x: Sequence[FormLike], y: Sequence[FormLike]
) -> list[DigitOrder]:
    left = flip_sign(circuit, "compare.x", x, fields.flag("signed"))
    right = flip_sign(circuit, "compare.y", y, fields.flag("signed"))
    return compare_digits(circuit, "compare", left, right)
