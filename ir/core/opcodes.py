"""The opcode table: one row per opcode, read by verifier, printer, parser, folder and interpreter.

Signatures are patterns over types. An operand or result pattern is a concrete type (`i1`, `i32`), `ptr` (any
pointer), `slot`, `void`, or a type variable: `T` (an integer), `V` (an integer or a pointer), `A` and `B`
(integers of a cast). A variable stands for one type per instruction. A result pattern with a variable that no
operand binds makes the result type part of the instruction (`load`, `sreg`, casts ...).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from qgpu.ir.core.reciprocals import reciprocal

ICMP_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
INVERSE_PREDICATE = {
    "eq": "ne",
    "ne": "eq",
    "slt": "sge",
    "sge": "slt",
    "sgt": "sle",
    "sle": "sgt",
    "ult": "uge",
    "uge": "ult",
    "ugt": "ule",
    "ule": "ugt",
}
"""The predicate that holds exactly where the other does not."""

SWAPPED_PREDICATE = {
    "eq": "eq",
    "ne": "ne",
    "slt": "sgt",
    "sgt": "slt",
    "sle": "sge",
    "sge": "sle",
    "ult": "ugt",
    "ugt": "ult",
    "ule": "uge",
    "uge": "ule",
}
"""The predicate that holds for (b, a) where the other holds for (a, b)."""

ATOMIC_KINDS = ("add", "min_s", "max_s", "min_u", "max_u", "and", "or", "xor", "xchg", "inc", "dec")
REDUCTION_KINDS = ("add", "min_s", "max_s", "min_u", "max_u", "and", "or", "xor")
BARRIER_REDUCTIONS = ("popc", "and", "or")
PERMUTE_MODES = ("bytes", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
SPECIAL_REGISTERS = (
    *(f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"),
    "laneid",
    "warpid",
)
TRAP_KINDS = ("trap", "assert", "barrier", "unreachable")
EXTENSIONS = ("zero", "sign")


class Effect(Enum):
    """What an instruction does besides computing its result.

    An exchange may be removed where its result is unused, but not moved to where other lanes run it, nor
    merged with another across a branch, nor duplicated into one (LLVM calls such an instruction convergent).
    """

    NONE = "none"
    READ = "reads memory"
    WRITE = "writes memory"
    EXCHANGE = "exchanges values with the lanes of the warp that run it together"
    CONTROL = "control flow, traps and barriers"


@dataclass(frozen=True)
class Shape:
    """What a folding function needs to know besides the operands' values: widths in bits, and attributes.

    `operand` is the width of the first operand, `result` the width of the result.
    """

    operand: int
    result: int
    attrs: Mapping[str, Any] = field(default_factory=dict)


Evaluation = Callable[[Shape, Sequence[int]], int]


@dataclass(frozen=True)
class AttrInfo:
    """An attribute: its kind (`int`, `bool`, `enum`, `type`, `block`, `blocks`, `name`, `ints`, `text`).

    `choices` lists what an enum may be. `inline` attributes are written bare after the opcode. An attribute
    that is not `required` may be left out.
    """

    kind: str
    choices: tuple[str, ...] = ()
    required: bool = True
    inline: bool = False


@dataclass(frozen=True)
class OpInfo:
    """A row of the table.

    `evaluate(shape, values)` gives the result for operand values as unsigned numbers; the caller reduces it
    modulo 2^result. Opcodes without one depend on more than their operands' numbers.
    """

    name: str
    summary: str
    operands: tuple[str, ...] = ()
    result: str = "void"
    attrs: Mapping[str, AttrInfo] = field(default_factory=dict)
    effect: Effect = Effect.NONE
    commutative: bool = False
    terminator: bool = False
    variadic: bool = False
    evaluate: Evaluation | None = None

    @property
    def pure(self) -> bool:
        """Whether the result depends on the operands (or the lane) alone and nothing else happens."""
        return self.effect is Effect.NONE and not self.terminator and self.name not in ("phi", "slot", "get")

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The attributes that name a terminator's successors."""
        return tuple(name for name, info in self.attrs.items() if info.kind == "block")

    @property
    def inline_attrs(self) -> tuple[str, ...]:
        return tuple(name for name, info in self.attrs.items() if info.inline)


def to_signed(value: int, width: int) -> int:
    """The number that `width` bits of `value` mean in two's complement."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _signed(function: Callable[[int, int], int]) -> Evaluation:
    return lambda shape, v: function(to_signed(v[0], shape.operand), to_signed(v[1], shape.operand))


def _unsigned(function: Callable[[int, int], int]) -> Evaluation:
    return lambda shape, v: function(v[0], v[1])


def _shift(function: Callable[[Shape, int, int], int]) -> Evaluation:
    """Shifts clamp their amount to the width, as PTX does (PTX ISA, shl and shr)."""
    return lambda shape, v: function(shape, v[0], min(v[1], shape.operand))


def _truncated_division(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _division(function: Callable[[int, int], int], signed: bool) -> Evaluation:
    """By zero, quotient and remainder are all ones, as on NVIDIA's GPUs (PTX leaves it open)."""

    def evaluate(shape: Shape, v: Sequence[int]) -> int:
        if v[1] == 0:
            return -1
        if signed:
            return function(to_signed(v[0], shape.operand), to_signed(v[1], shape.operand))
        return function(v[0], v[1])

    return evaluate


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def compare(predicate: str, a: int, b: int, width: int) -> bool:
    """An icmp predicate applied to two unsigned numbers of `width` bits."""
    if predicate.startswith("s"):
        a, b = to_signed(a, width), to_signed(b, width)
    return COMPARISONS[predicate[-2:]](a, b)


def _icmp(shape: Shape, v: Sequence[int]) -> int:
    return int(compare(shape.attrs["pred"], v[0], v[1], shape.operand))


def _lop3(shape: Shape, v: Sequence[int]) -> int:
    """Bit i of the result is bit 4a + 2b + c of the table (PTX ISA, lop3: immLut)."""
    lut = shape.attrs["lut"]
    result = 0
    for bit in range(shape.operand):
        a, b, c = ((value >> bit) & 1 for value in v)
        result |= ((lut >> (4 * a + 2 * b + c)) & 1) << bit
    return result


def _count_leading_zeros(shape: Shape, v: Sequence[int]) -> int:
    return shape.operand - v[0].bit_length()


def _reversed_bits(shape: Shape, v: Sequence[int]) -> int:
    return int(f"{v[0]:0{shape.operand}b}"[::-1], 2)


def _extracted(shape: Shape, v: Sequence[int], signed: bool) -> int:
    """PTX ISA, bfe: position and length are low bytes of their operands; the field ends at the top bit."""
    position, length = v[1] & 255, v[2] & 255
    field_ = (v[0] >> position) & ((1 << length) - 1)
    if not signed or length == 0:
        return field_
    top = min(position + length - 1, shape.operand - 1)
    sign = (v[0] >> top) & 1
    return field_ | (-sign << max(0, min(length, shape.operand - position)))


def _inserted(shape: Shape, v: Sequence[int]) -> int:
    """PTX ISA, bfi: `length` low bits of the first operand over the second, from `position` on."""
    position, length = v[2] & 255, v[3] & 255
    mask = (((1 << length) - 1) << position) & ((1 << shape.operand) - 1)
    return (v[1] & ~mask) | ((v[0] << position) & mask)


_PERMUTATIONS: dict[str, Callable[[int], tuple[int, ...]]] = {
    "f4e": lambda c: tuple(c + i for i in range(4)),
    "b4e": lambda c: tuple((c - i) % 8 for i in range(4)),
    "rc8": lambda c: (c,) * 4,
    "ecl": lambda c: tuple(max(c, i) for i in range(4)),
    "ecr": lambda c: tuple(min(c, i) for i in range(4)),
    "rc16": lambda c: (2 * (c & 1), 2 * (c & 1) + 1) * 2,
}
"""Which bytes each mode takes for the control value 0 to 3, lowest byte first (PTX ISA, prmt)."""


def _permuted(shape: Shape, v: Sequence[int]) -> int:
    """PTX ISA, prmt: a byte of the pair {b, a} by each selector, whose bit 3 spreads the byte's sign."""
    pair, mode = v[1] << 32 | v[0], shape.attrs["mode"]
    selectors = (
        tuple(v[2] >> (4 * i) & 15 for i in range(4)) if mode == "bytes" else _PERMUTATIONS[mode](v[2] & 3)
    )
    result = 0
    for index, selector in enumerate(selectors):
        byte = pair >> (8 * (selector & 7)) & 255
        result |= ((255 * (byte >> 7)) if selector & 8 else byte) << (8 * index)
    return result


def _lane(shape: Shape, v: Sequence[int]) -> int:
    return v[0]


def _binary(name: str, summary: str, evaluate: Evaluation, commutative: bool = False) -> OpInfo:
    return OpInfo(name, summary, ("T", "T"), "T", commutative=commutative, evaluate=evaluate)


_INT = AttrInfo("int")
_BLOCK = AttrInfo("block")
_VOLATILE = AttrInfo("bool", required=False)
_TEXT = AttrInfo("text")

_ROWS = (
    _binary("add", "sum modulo 2^width", _unsigned(lambda a, b: a + b), True),
    _binary("sub", "difference modulo 2^width", _unsigned(lambda a, b: a - b)),
    _binary("mul", "low half of the product", _unsigned(lambda a, b: a * b), True),
    _binary("and", "bitwise and", _unsigned(lambda a, b: a & b), True),
    _binary("or", "bitwise or", _unsigned(lambda a, b: a | b), True),
    _binary("xor", "bitwise exclusive or", _unsigned(lambda a, b: a ^ b), True),
    _binary("shl", "shift left; 0 from an amount of width on", _shift(lambda s, a, n: a << n)),
    _binary("lshr", "logical shift right; 0 from an amount of width on", _shift(lambda s, a, n: a >> n)),
    _binary(
        "ashr",
        "arithmetic shift right; the sign from an amount of width on",
        _shift(lambda s, a, n: to_signed(a, s.operand) >> n),
    ),
    _binary("smin", "signed minimum", _signed(min), True),
    _binary("smax", "signed maximum", _signed(max), True),
    _binary("umin", "unsigned minimum", _unsigned(min), True),
    _binary("umax", "unsigned maximum", _unsigned(max), True),
    OpInfo(
        "mulhi_s",
        "high half of the signed product",
        ("T", "T"),
        "T",
        commutative=True,
        evaluate=lambda s, v: (to_signed(v[0], s.operand) * to_signed(v[1], s.operand)) >> s.operand,
    ),
    OpInfo(
        "mulhi_u",
        "high half of the unsigned product",
        ("T", "T"),
        "T",
        commutative=True,
        evaluate=lambda s, v: (v[0] * v[1]) >> s.operand,
    ),
    _binary("sdiv", "signed quotient, rounded to zero", _division(_truncated_division, True)),
    _binary("udiv", "unsigned quotient", _division(lambda a, b: a // b, False)),
    _binary(
        "srem",
        "signed remainder, with the dividend's sign",
        _division(lambda a, b: a - b * _truncated_division(a, b), True),
    ),
    _binary("urem", "unsigned remainder", _division(lambda a, b: a % b, False)),
    OpInfo("not", "bitwise complement", ("T",), "T", evaluate=lambda s, v: ~v[0]),
    OpInfo("popc", "number of bits set", ("T",), "T", evaluate=lambda s, v: v[0].bit_count()),
    OpInfo("clz", "number of zero bits above the highest one", ("T",), "T", evaluate=_count_leading_zeros),
    OpInfo("brev", "bits in reverse order", ("T",), "T", evaluate=_reversed_bits),
    OpInfo(
        "shf",
        "the low word of a pair of words, shifted right",
        ("i32", "i32", "i32"),
        "i32",
        evaluate=lambda s, v: (v[1] << 32 | v[0]) >> min(v[2], 32),
    ),
    OpInfo(
        "rcp",
        "2^32 over a word, or a little less",
        ("i32",),
        "i32",
        evaluate=lambda s, v: reciprocal(v[0]),
    ),
    OpInfo(
        "bfe_u",
        "the bits from a position on, as many as a length, zero-extended",
        ("T", "i32", "i32"),
        "T",
        evaluate=lambda s, v: _extracted(s, v, False),
    ),
    OpInfo(
        "bfe_s",
        "the bits from a position on, as many as a length, sign-extended",
        ("T", "i32", "i32"),
        "T",
        evaluate=lambda s, v: _extracted(s, v, True),
    ),
    OpInfo(
        "bfi",
        "the second operand with low bits of the first in it, at a position and of a length",
        ("T", "T", "i32", "i32"),
        "T",
        evaluate=_inserted,
    ),
    OpInfo(
        "prmt",
        "four bytes of a pair of words, by the selectors of the third operand",
        ("i32", "i32", "i32"),
        "i32",
        {"mode": AttrInfo("enum", PERMUTE_MODES, inline=True)},
        evaluate=_permuted,
    ),
    OpInfo(
        "icmp",
        "comparison; of pointers into one buffer, by offset",
        ("V", "V"),
        "i1",
        {"pred": AttrInfo("enum", ICMP_PREDICATES, inline=True)},
        evaluate=_icmp,
    ),
    OpInfo(
        "select",
        "the second operand where the first is true, else the third",
        ("i1", "V", "V"),
        "V",
        evaluate=lambda s, v: v[1] if v[0] else v[2],
    ),
    OpInfo("sext", "sign extension", ("A",), "B", evaluate=lambda s, v: to_signed(v[0], s.operand)),
    OpInfo("zext", "zero extension", ("A",), "B", evaluate=_lane),
    OpInfo("trunc", "low bits", ("A",), "B", evaluate=_lane),
    OpInfo(
        "pack",
        "the i64 of a low and a high word",
        ("i32", "i32"),
        "i64",
        evaluate=lambda s, v: v[1] << 32 | v[0],
    ),
    OpInfo("high", "the high word", ("i64",), "i32", evaluate=lambda s, v: v[0] >> 32),
    OpInfo(
        "lop3",
        "bitwise function of three operands, bit 4a + 2b + c of `lut` for the bits a, b, c",
        ("i32", "i32", "i32"),
        "i32",
        {"lut": _INT},
        evaluate=_lop3,
    ),
    OpInfo("undef", "an arbitrary value of the result type; the interpreter gives 0", (), "V"),
    OpInfo("param", "kernel parameter number `index`", (), "V", {"index": AttrInfo("int", inline=True)}),
    OpInfo("sreg", "special register", (), "i32", {"name": AttrInfo("enum", SPECIAL_REGISTERS, inline=True)}),
    OpInfo(
        "ptradd",
        "pointer with offset + ext(index) * scale + disp bytes; ext is sign or zero extension to 64 bits",
        ("ptr", "T"),
        "ptr",
        {"scale": _INT, "disp": _INT, "signed": AttrInfo("bool")},
    ),
    OpInfo("ptrcast", "the same pointer, typed as generic or as of the space it points to", ("ptr",), "V"),
    OpInfo("ptrdiff", "bytes from the second pointer to the first, in one buffer", ("ptr", "ptr"), "i64"),
    OpInfo("ptrtoint", "byte offset in the buffer; congruent to the address modulo 256", ("ptr",), "i64"),
    OpInfo(
        "addrof",
        "address of an array of the kernel",
        (),
        "ptr",
        {"name": AttrInfo("name", inline=True)},
    ),
    OpInfo(
        "load",
        "value of memory type `type`, extended to the result type as `ext` says where that is wider",
        ("ptr",),
        "V",
        {
            "type": AttrInfo("type", inline=True),
            "ext": AttrInfo("enum", EXTENSIONS, False),
            "volatile": _VOLATILE,
        },
        Effect.READ,
    ),
    OpInfo(
        "store",
        "writes the low bits of the value, as many as memory type `type` has",
        ("ptr", "V"),
        "void",
        {"type": AttrInfo("type", inline=True), "volatile": _VOLATILE},
        Effect.WRITE,
    ),
    OpInfo(
        "atomicrmw",
        "read, combine and write in one step; the result is the old value",
        ("ptr", "T"),
        "T",
        {"kind": AttrInfo("enum", ATOMIC_KINDS, inline=True)},
        Effect.WRITE,
    ),
    OpInfo(
        "cmpxchg",
        "writes the third operand where memory equals the second, in one step; the result is the old value",
        ("ptr", "T", "T"),
        "T",
        effect=Effect.WRITE,
    ),
    OpInfo(
        "shuffle",
        "the first operand as the lane has it that the second names, or the lane's own where that lane does "
        "not run the instruction with it; the third is the mask of lanes that take part",
        ("V", "i32", "i32"),
        "V",
        effect=Effect.EXCHANGE,
    ),
    OpInfo(
        "ballot",
        "the mask of the lanes of the warp that run it with a true operand; the second is the mask of lanes "
        "that take part",
        ("i1", "i32"),
        "i32",
        effect=Effect.EXCHANGE,
    ),
    OpInfo(
        "match",
        "the mask of the lanes of the warp that run it with the same first operand; the second is the mask "
        "of lanes that take part",
        ("T", "i32"),
        "i32",
        effect=Effect.EXCHANGE,
    ),
    OpInfo(
        "redux",
        "the first operands of the lanes of the warp that run it, combined; the second is the mask of lanes "
        "that take part",
        ("i32", "i32"),
        "i32",
        {"kind": AttrInfo("enum", REDUCTION_KINDS, inline=True)},
        Effect.EXCHANGE,
    ),
    OpInfo(
        "printf",
        "prints the operands by the format, which has one conversion for each",
        (),
        "void",
        {"format": _TEXT},
        Effect.WRITE,
        variadic=True,
    ),
    OpInfo(
        "phi", "the value of the edge that was taken", (), "V", {"blocks": AttrInfo("blocks")}, variadic=True
    ),
    OpInfo("slot", "a per-lane variable; declared in the entry block", (), "slot", {"uniform": _VOLATILE}),
    OpInfo("set", "writes a slot", ("slot", "V"), "void", effect=Effect.WRITE),
    OpInfo("get", "reads a slot", ("slot",), "V"),
    OpInfo(
        "barrier",
        "all threads of the thread block wait for each other; `returned` lists the guard's literals that "
        "only tell lanes which have ended the kernel from those which have not",
        (),
        "void",
        {
            "returned": AttrInfo("ints", required=False),
            "id": AttrInfo("int", required=False),
            "count": AttrInfo("int", required=False),
        },
        Effect.CONTROL,
    ),
    OpInfo(
        "arrive",
        "tells barrier `id` of `count` threads that the thread has come, and does not wait",
        (),
        "void",
        {"id": AttrInfo("int"), "count": AttrInfo("int")},
        Effect.CONTROL,
    ),
    OpInfo(
        "barrier_reduce",
        "a barrier; the result is how many threads have a true operand, or whether all or any have",
        ("i1",),
        "i32",
        {
            "kind": AttrInfo("enum", BARRIER_REDUCTIONS, inline=True),
            "returned": AttrInfo("ints", required=False),
        },
        Effect.CONTROL,
    ),
    OpInfo("br", "goes to a block", (), "void", {"target": _BLOCK}, Effect.CONTROL, terminator=True),
    OpInfo(
        "condbr",
        "goes to `then` where the operand is true, else to `else`",
        ("i1",),
        "void",
        {"then": _BLOCK, "else": _BLOCK},
        Effect.CONTROL,
        terminator=True,
    ),
    OpInfo(
        "brany",
        "goes to `then` if the operand is true in any lane active under the block's guard, else to `else`",
        ("i1",),
        "void",
        {"then": _BLOCK, "else": _BLOCK},
        Effect.CONTROL,
        terminator=True,
    ),
    OpInfo("ret", "ends the kernel for the lanes that run it", effect=Effect.CONTROL, terminator=True),
    OpInfo(
        "trap",
        "stops the launch with a fault",
        (),
        "void",
        {"kind": AttrInfo("enum", TRAP_KINDS, inline=True), "message": AttrInfo("text", required=False)},
        Effect.CONTROL,
        terminator=True,
    ),
)

OPCODES: dict[str, OpInfo] = {row.name: row for row in _ROWS}
