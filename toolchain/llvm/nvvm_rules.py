"""NVIDIA's intrinsics: special registers, barriers, exchanges among lanes (guide of LLVM's NVPTX back end).

They are the PTX instructions of the same name, whose meaning is in the PTX ISA, sections 9.7 and 10.
"""

from collections.abc import Callable

from qgpu.ir import I1, I32, I64, Constant, IntType, PtrType, Value
from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.emitter import Emitter, Item
from qgpu.toolchain.llvm.intrinsic_rules import Rule, halves
from qgpu.toolchain.special_registers import READERS
from qgpu.toolchain.special_registers import WARP as _WARP

_BARRIERS = 16
_CLUSTER = "is_explicit_cluster"
_ZERO = Constant(I32, 0)
_LAST = Constant(I32, 31)

# ---------------------------------------------------------- special registers


def _register(name: str) -> Rule:
    def read(x: Emitter, i: ast.Instruction) -> Item:
        """In the width of the intrinsic, which is not always the register's own."""
        assert i.type is not None
        return x.resized(READERS[name](x), x.held(i.type))

    return read


def _moved(name: str, type_: IntType) -> Callable[[Emitter], Value]:
    return lambda x: x.resized(READERS[name](x), type_)


_REGISTERS: dict[str, Rule] = {
    **{name.replace("_", "."): _register(name) for name in READERS if name != _CLUSTER},
    "warpsize": lambda x, i: Constant(I32, _WARP),
}

# ------------------------------------------------------------ barriers, fences


def _barrier_number(x: Emitter, index: int) -> int:
    number = x.literal(index, "the number of a barrier")
    if number >= _BARRIERS:
        raise x.refusal(f"a thread block has barriers 0 to {_BARRIERS - 1}")
    return number


def _wait(x: Emitter, i: ast.Instruction) -> Item:
    """A barrier for the whole thread block is the same whatever its number is."""
    if i.operands:
        _barrier_number(x, 0)
    x.builder.barrier()
    return ()


def _of_some(opcode: str) -> Rule:
    """A barrier of a part of the thread block."""

    def lower(x: Emitter, i: ast.Instruction) -> Item:
        count = x.literal(1, "the number of threads at a barrier")
        if count == 0 or count % _WARP:
            raise x.refusal(f"the number of threads at a barrier is a multiple of {_WARP}")
        x.builder.emit(opcode, attrs={"id": _barrier_number(x, 0), "count": count})
        return ()

    return lower


def _barrier_reduction(kind: str) -> Rule:
    def lower(x: Emitter, i: ast.Instruction) -> Item:
        _barrier_number(x, 0)
        result = x.builder.emit("barrier_reduce", x.number(1), attrs={"kind": kind})
        return result if kind == "popc" else x.compare("ne", result, _ZERO)

    return lower


def _nothing(x: Emitter, i: ast.Instruction) -> Item:
    return ()


def _exit(x: Emitter, i: ast.Instruction) -> Item:
    x.builder.ret()
    return ()


# ----------------------------------------------------------- atomic operations


def _atomic(kind: str) -> Rule:
    """An atomic operation for the threads of a block or of the system, which is one for all threads."""
    return lambda x, i: x.builder.atomicrmw(kind, x.pointer(i.operands[0]), x.number(1))


def _compare_and_swap(x: Emitter, i: ast.Instruction) -> Item:
    return x.builder.emit("cmpxchg", x.pointer(i.operands[0]), x.number(1), x.number(2))


# ------------------------------------------------------------------- exchanges


def _ballot_of(x: Emitter, condition: Value, mask: Value) -> Value:
    return x.builder.emit("ballot", condition, mask)


def _none(x: Emitter, condition: Value, mask: Value) -> Value:
    """Whether the condition holds in no lane."""
    return x.compare("eq", _ballot_of(x, condition, mask), _ZERO)


def _vote(kind: str) -> Rule:
    def lower(x: Emitter, i: ast.Instruction) -> Item:
        return _voted(x, kind, x.number(0), x.number(1))

    return lower


def _voted(x: Emitter, kind: str, mask: Value, condition: Value) -> Value:
    if kind == "ballot":
        return _ballot_of(x, condition, mask)
    if kind == "all":
        return _none(x, x.operation("not", condition), mask)
    if kind == "any":
        return x.compare("ne", _ballot_of(x, condition, mask), _ZERO)
    opposite = _none(x, x.operation("not", condition), mask)
    return x.operation("or", _none(x, condition, mask), opposite)


def _vote_by_mode(x: Emitter, i: ast.Instruction) -> Item:
    """vote.sync, whose second operand says which vote: a word for ballots, and a truth for the others."""
    mask, condition = x.number(0), x.number(2)
    mode = _mode(x, ("all", "any", "uni", "ballot"))
    result = _voted(x, mode, mask, condition)
    return (result, Constant(I1, 0)) if mode == "ballot" else (_ZERO, result)


def _mode(x: Emitter, modes: tuple[str, ...]) -> str:
    """What the second operand chooses (NVVM IR Specification, data movement and vote intrinsics)."""
    number = x.literal(1, "the mode")
    if number >= len(modes):
        raise x.refusal(f"there is no mode {number}")
    return modes[number]


def active_mask(x: Emitter) -> Value:
    """The lanes that run the instruction together."""
    return _ballot_of(x, Constant(I1, 1), _ZERO)


def _match_any(x: Emitter, i: ast.Instruction) -> Item:
    return x.builder.emit("match", x.number(1), x.number(0))


def _match_all(x: Emitter, i: ast.Instruction) -> Item:
    mask = x.number(0)
    same = x.builder.emit("match", x.number(1), mask)
    present = _ballot_of(x, Constant(I1, 1), mask)
    agreed = x.compare("eq", same, present)
    return x.choose(agreed, present, _ZERO), agreed


def _reduction(kind: str) -> Rule:
    return lambda x, i: x.builder.emit("redux", x.number(0), x.number(1), attrs={"kind": kind})


def _shuffle(mode: str, with_predicate: bool) -> Rule:
    def lower(x: Emitter, i: ast.Instruction) -> Item:
        result, inside = _shuffled(x, mode, *(x.number(index) for index in range(4)))
        return (result, inside) if with_predicate else result

    return lower


def _shuffle_by_mode(x: Emitter, i: ast.Instruction) -> Item:
    """shfl.sync.i32, whose second operand says which shuffle."""
    mode = _mode(x, ("idx", "up", "down", "bfly"))
    return _shuffled(x, mode, *(x.number(index) for index in (0, 2, 3, 4)))


def _shuffled(
    x: Emitter, mode: str, mask: Value, value: Value, distance: Value, bounds: Value
) -> tuple[Value, Value]:
    """The source lane by the manual's formulas; one that is out of bounds is the lane itself."""
    source, inside = _source_lane(x, mode, x.operation("and", distance, _LAST), bounds)
    chosen = x.builder.select(inside, source, x.builder.sreg("laneid"))
    return x.builder.emit("shuffle", value, chosen, mask), inside


def _source_lane(x: Emitter, mode: str, distance: Value, bounds: Value) -> tuple[Value, Value]:
    """The lane that a shuffle reads, and whether it lies within the segment's bounds."""
    lane = x.builder.sreg("laneid")
    segment = x.operation("and", x.operation("lshr", bounds, Constant(I32, 8)), _LAST)
    within = x.operation("xor", segment, _LAST)
    lowest = x.operation("and", lane, segment)
    limit = x.operation("or", lowest, x.operation("and", bounds, within))
    if mode == "up":
        source = x.operation("sub", lane, distance)
        return source, x.compare("sge", source, limit)
    if mode == "idx":
        source = x.operation("or", lowest, x.operation("and", distance, within))
    else:
        source = x.operation("add" if mode == "down" else "xor", lane, distance)
    return source, x.compare("sle", source, limit)


# ------------------------------------------------------------------ arithmetic


def _permute(x: Emitter, i: ast.Instruction) -> Item:
    return x.operation("prmt", x.number(0), x.number(1), x.number(2), attrs={"mode": "bytes"})


def _permute_by_mode(mode: str) -> Rule:
    def lower(x: Emitter, i: ast.Instruction) -> Item:
        a, b = x.number(0), x.number(1)
        if len(i.operands) == 2:
            a, b, control = a, _ZERO, b
        else:
            control = x.number(2)
        return x.operation("prmt", a, b, control, attrs={"mode": mode})

    return lower


def _high_product(opcode: str) -> Rule:
    return lambda x, i: x.operation(opcode, x.number(0), x.number(1))


def _product_24(signed: bool) -> Rule:
    """mul24: the low word of the product of the low 24 bits."""

    def lower(x: Emitter, i: ast.Instruction) -> Item:
        eight = Constant(I32, 8)
        shift = "ashr" if signed else "lshr"
        a, b = (x.operation(shift, x.operation("shl", x.number(n), eight), eight) for n in range(2))
        return x.operation("mul", a, b)

    return lower


def _dot(a_signed: bool, b_signed: bool, width: int) -> Rule:
    """dp4a and dp2a: products of the bytes of b with the bytes, or half words, of a, added to c."""

    def part(x: Emitter, word: Value, at: int, bits: int, signed: bool) -> Value:
        above = x.operation("shl", word, Constant(I32, I32.width - at - bits))
        return x.operation("ashr" if signed else "lshr", above, Constant(I32, I32.width - bits))

    def lower(x: Emitter, i: ast.Instruction) -> Item:
        a, b = x.number(0), x.number(1)
        first = 0
        total = x.number(2 if width == 8 else 3)
        if width == 16:
            first = 16 if x.literal(2, "the half that dp2a takes") else 0
        for index in range(I32.width // width):
            left = part(x, a, width * index, width, a_signed)
            right = part(x, b, first + 8 * index, 8, b_signed)
            total = x.operation("add", total, x.operation("mul", left, right))
        return total

    return lower


def _difference(signed: bool) -> Rule:
    """sad: |a - b| + c."""

    def lower(x: Emitter, i: ast.Instruction) -> Item:
        a, b, c = (x.number(index) for index in range(3))
        most, least = ("smax", "smin") if signed else ("umax", "umin")
        return x.operation("add", c, x.operation("sub", x.operation(most, a, b), x.operation(least, a, b)))

    return lower


def _halves_swapped(x: Emitter, i: ast.Instruction) -> Item:
    low, high = halves(x, x.number(0))
    return x.operation("pack", high, low)


def _is_in(space: str) -> Rule:
    """isspacep: of a pointer whose memory is known."""

    def lower(x: Emitter, i: ast.Instruction) -> Item:
        type_ = x.scalar(i.operands[0]).type
        if not isinstance(type_, PtrType) or type_.space == "generic":
            raise x.refusal("the memory of this pointer is not known at compile time")
        return Constant(I1, int(type_.space == space))

    return lower


def _same_pointer(x: Emitter, i: ast.Instruction) -> Item:
    return x.pointer(i.operands[0])


_REDUCTIONS = {
    "add": "add",
    "min": "min_s",
    "max": "max_s",
    "umin": "min_u",
    "umax": "max_u",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
_ATOMICS = {
    "add": "add",
    "min": "min_s",
    "max": "max_s",
    "exch": "xchg",
    "inc": "inc",
    "dec": "dec",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
_SCOPES = ("cta", "sys")
_SIGNS = {"s": True, "u": False}
_SYNC = ("barrier.cta.sync.aligned", "barrier.cta.sync")
_NOTHING = (
    "bar.warp.sync",
    "membar.cta",
    "membar.gl",
    "membar.sys",
    "fence.sc.cluster",
    "nanosleep",
    "fence.acq_rel.cluster",
    "griddepcontrol.wait",
    "griddepcontrol.launch.dependents",
    "pm.event.mask",
)

RULES: dict[str, Rule] = {
    **{f"read.ptx.sreg.{name}": rule for name, rule in _REGISTERS.items()},
    _CLUSTER: _register(_CLUSTER),
    **{f"{name}.all": _wait for name in _SYNC},
    **{f"{name}.count": _of_some("barrier") for name in _SYNC},
    **{f"barrier.cta.arrive{aligned}.count": _of_some("arrive") for aligned in ("", ".aligned")},
    **{
        f"barrier.cta.red.{kind}{aligned}.all": _barrier_reduction(kind)
        for kind in ("popc", "and", "or")
        for aligned in ("", ".aligned")
    },
    "barrier0": _wait,
    **dict.fromkeys(_NOTHING, _nothing),
    "exit": _exit,
    **{f"atomic.{name}.gen.i.{scope}": _atomic(kind) for name, kind in _ATOMICS.items() for scope in _SCOPES},
    **{f"atomic.cas.gen.i.{scope}": _compare_and_swap for scope in _SCOPES},
    **{f"vote.{kind}.sync": _vote(kind) for kind in ("all", "any", "uni", "ballot")},
    "activemask": lambda x, i: active_mask(x),
    **{f"match.any.sync.i{width}": _match_any for width in (32, 64)},
    **{f"match.all.sync.i{width}{p}": _match_all for width in (32, 64) for p in ("", "p")},
    "shfl.sync.i32": _shuffle_by_mode,
    "vote.sync": _vote_by_mode,
    **{f"redux.sync.{name}": _reduction(kind) for name, kind in _REDUCTIONS.items()},
    **{f"shfl.sync.{mode}.i32": _shuffle(mode, False) for mode in ("up", "down", "bfly", "idx")},
    **{f"shfl.sync.{mode}.i32p": _shuffle(mode, True) for mode in ("up", "down", "bfly", "idx")},
    "prmt": _permute,
    **{f"prmt.{mode}": _permute_by_mode(mode) for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")},
    **{f"mulhi.{kind}": _high_product("mulhi_s") for kind in ("s", "i", "ll")},
    **{f"mulhi.{kind}": _high_product("mulhi_u") for kind in ("us", "ui", "ull")},
    "mul24.i": _product_24(True),
    "mul24.ui": _product_24(False),
    **{f"idp4a.{a}.{b}": _dot(_SIGNS[a], _SIGNS[b], 8) for a in "su" for b in "su"},
    **{f"idp2a.{a}.{b}": _dot(_SIGNS[a], _SIGNS[b], 16) for a in "su" for b in "su"},
    **{f"sad.{kind}": _difference(True) for kind in ("s", "i", "ll")},
    **{f"sad.{kind}": _difference(False) for kind in ("us", "ui", "ull")},
    "swap.lo.hi.b64": _halves_swapped,
    **{f"isspacep.{space}": _is_in(space) for space in ("global", "shared", "local", "const")},
    "ptr.param.to.gen": _same_pointer,
}
"""By the name after `llvm.nvvm.`, of atomic operations without the types."""

ASSEMBLY: dict[str, Callable[[Emitter], Value]] = {
    "activemask.b32 $0;": active_mask,
    **{f"mov.u32 $0, %{name};": _moved(name, I32) for name in READERS if name != _CLUSTER},
    **{f"mov.u64 $0, %{name};": _moved(name, I64) for name in READERS if name != _CLUSTER},
}
"""Inline PTX that headers use where there is no intrinsic."""
