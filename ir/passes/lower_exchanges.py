"""Exchanges between lanes become stores and loads of a shared array.

In a linearised function an instruction runs for all active lanes before the next one does, so a store
followed by a load hands a value over. One scratch array serves all exchanges of a kernel, since each leaves
nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from qgpu.ir.analysis.intervals import Intervals
from qgpu.ir.analysis.loops import LoopInfo
from qgpu.ir.analysis.uniformity import Uniformity
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Array, Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I1, I32, IntType, ptr
from qgpu.ir.core.values import TRUE, Argument, Constant, Value
from qgpu.ir.passes.errors import PassError
from qgpu.ir.passes.lockstep import LaneLoop, Lanes, declare_slot
from qgpu.ir.passes.manager import Pass

ZERO, ONE, ALL = (constant(I32, number) for number in (0, 1, -1))
IDENTITIES = {
    "add": 0,
    "or": 0,
    "xor": 0,
    "max_u": 0,
    "and": -1,
    "min_u": -1,
    "min_s": (1 << 31) - 1,
    "max_s": -(1 << 31),
}
"""What each kind of reduction starts from."""

BARRIER_REDUCTIONS = {"popc": ("add", 0), "or": ("or", 0), "and": ("and", 1)}
"""The atomic operation of each kind of barrier_reduce, and what it starts from."""


@dataclass(frozen=True)
class LowerExchanges(Pass):
    """Turns shuffle, ballot, match, redux and barrier_reduce into stores and loads of a shared array.

    Contract: the function is linearised; results are what docs/ir.md says. The array has a word for each
    warp, or for each thread where lanes read each other's words. Raises PassError for a shuffle or match of
    64 bits or of pointers, which has to be split before.

    Options: `warp_size` is how many lanes a warp has, `threads` the most threads of a thread block, for
    kernels that state no bound (attribute max_threads).
    """

    name: ClassVar[str] = "lower-exchanges"
    warp_size: int = 32
    threads: int = 128

    def run(self, function: Function) -> bool:
        found = [i for i in function.instructions if i.op in _RULES]
        if not found or not function.linearised:
            return False
        exchanges = _Exchanges(function, Lanes(function, self.warp_size, self.threads))
        for instruction in found:
            exchanges.lower(instruction)
        exchanges.declare_scratch()
        return True


def _is_full(mask: Value, lanes: int) -> bool:
    """Whether a mask of participants names every lane of a warp, or is 0, which leaves none out either."""
    everyone = (1 << lanes) - 1
    return isinstance(mask, Constant) and (mask.value == 0 or mask.value & everyone == everyone)


def _is_lane_number(value: Value) -> bool:
    return isinstance(value, Instruction) and value.op == "sreg" and value.attrs["name"] == "laneid"


@dataclass(frozen=True)
class _Source:
    """The lane that a shuffle reads, and how lanes whose source takes no part come to their own value.

    Either there are none, or they are told by `present`, or no two lanes read the same source (`one_to_one`):
    then each can put its own value there beforehand.
    """

    lane: Value
    present: Value | None = None
    one_to_one: bool = False


@dataclass(eq=False)
class _Exchanges:
    """The exchanges of one function while they are lowered."""

    function: Function
    lanes: Lanes
    builder: Builder = field(default_factory=Builder)
    word_per_thread: bool = False
    array: str = "exchange"
    not_zero: set[Value] = field(default_factory=set)
    _sources: dict[tuple[BasicBlock, Value, Value], _Source] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = {array.name for array in self.function.shared}
        while self.array in taken:
            self.array += "_"
        self.intervals = Intervals(self.lanes.lanes, self.lanes.threads)
        self.original = set(self.function.instructions)

    @cached_property
    def uniformity(self) -> Uniformity:
        return Uniformity(self.function, warp_size=self.lanes.lanes)

    def lower(self, instruction: Instruction) -> None:
        """Replaces one exchange."""
        self.builder.before(instruction)
        result = _RULES[instruction.op](self, instruction)
        instruction.replace_all_uses_with(result)
        instruction.erase()

    def declare_scratch(self) -> None:
        """Adds the array, in front: one whose size the launch sets comes last in shared memory."""
        words = self.lanes.warps * (self.lanes.lanes if self.word_per_thread else 1)
        self.function.shared.insert(0, Array(self.array, "shared", 4 * words))

    # Words of the scratch array

    def scratch(self) -> Value:
        return self.lanes.in_entry("exchange", "addrof", type_=ptr("shared"), name=self.array)

    def warp_word(self) -> Value:
        """The address of the warp's own word."""
        if self.lanes.warps == 1:
            return self.scratch()
        return self.builder.ptradd(self.scratch(), self.lanes.warp(), 4)

    def lane_word(self, lane: Value) -> Value:
        """The address of the word of a lane of the warp."""
        self.word_per_thread = True
        base = self.scratch()
        if self.lanes.warps > 1:
            base = self.builder.ptradd(base, self.lanes.first(), 4)
        return self.builder.ptradd(base, lane, 4)

    def store(self, address: Value, value: Value) -> None:
        self.builder.store(address, value, volatile=True)

    def load(self, address: Value) -> Value:
        return self.builder.load(address, I32, volatile=True)

    def combined(self, address: Value, kind: str, start: int, value: Value) -> Value:
        """The values of all active lanes combined in one word."""
        self.store(address, constant(I32, start))
        self.builder.atomicrmw(kind, address, value)
        return self.load(address)

    def bit(self, condition: Value) -> Value:
        """The lane's bit of a mask where a condition holds, else 0."""
        number = self.builder.cast("zext", condition, I32) if condition.type is I1 else condition
        return self.builder.emit("shl", number, self.lanes.lane())

    def named(self, mask: Value) -> Value | None:
        """The lanes that a mask names; None where these are all. A mask of 0 names all."""
        if _is_full(mask, self.lanes.lanes):
            return None
        if isinstance(mask, Constant) or mask in self.not_zero:
            return mask
        return self.builder.select(self.builder.icmp("eq", mask, ZERO), ALL, mask)

    def names(self, mask: Value, lane: Value) -> Value:
        """Whether a mask names a lane."""
        return self.builder.cast("trunc", self.builder.emit("lshr", mask, lane), I1)

    def masked(self, value: Value, mask: Value) -> Value:
        named = self.named(mask)
        return value if named is None else self.builder.emit("and", value, named)

    # Shuffles

    def shuffle(self, instruction: Instruction) -> Value:
        value, lane, mask = instruction.operands
        type_ = instruction.type
        word = self._word(instruction, value)
        source = self._source(instruction, lane, mask)
        if _is_lane_number(source.lane) and type_ is I32:
            return value
        own, other = self.lane_word(self.lanes.lane()), self.lane_word(source.lane)
        if source.one_to_one:
            self.store(other, word)
        self.store(own, word)
        result = self.load(other)
        if source.present is not None:
            result = self.builder.select(source.present, result, word)
        return result if type_ is I32 else self.builder.cast("trunc", result, type_)

    def _word(self, instruction: Instruction, value: Value) -> Value:
        """A value as a word."""
        if not isinstance(value.type, IntType) or value.type.width > 32:
            raise PassError(
                f"'{instruction.op}' of {value.type}: words are what lanes exchange",
                instruction,
                "split-wide makes two exchanges of one of 64 bits",
            )
        return self.builder.cast("zext", value, I32)

    def _source(self, instruction: Instruction, lane: Value, mask: Value) -> _Source:
        """The lane to read, known for all shuffles of a block that read the same."""
        key = (instruction.block, lane, mask)
        if key not in self._sources:
            self._sources[key] = self._find_source(instruction.block, lane, mask)
        return self._sources[key]

    def _find_source(self, block: BasicBlock, lane: Value, mask: Value) -> _Source:
        """The lane to read; it is the reading one where its number says that it takes no part."""
        if isinstance(lane, Constant):
            lane = constant(I32, lane.value) if lane.value < self.lanes.lanes else self.lanes.lane()
        if not self.intervals.of(lane).within(0, self.lanes.lanes - 1):
            inside = self.builder.icmp("ult", lane, constant(I32, self.lanes.lanes))
            lane = self.builder.select(inside, lane, self.lanes.lane())
        named = self.named(mask)
        if named is not None:
            lane = self.builder.select(self.names(named, lane), lane, self.lanes.lane())
        if _is_lane_number(lane) or (not block.guard and self._is_no_later(lane)):
            return _Source(lane)
        if self._is_one_to_one(lane, block):
            return _Source(lane, one_to_one=True)
        own, other = self.lane_word(self.lanes.lane()), self.lane_word(lane)
        self.store(other, ZERO)
        self.store(own, ONE)
        return _Source(lane, present=self.builder.icmp("ne", self.load(other), ZERO))

    def _is_no_later(self, lane: Value) -> bool:
        """Whether a lane number of the warp is at most the lane's own, so that the lane exists."""
        if _is_lane_number(lane) or self.intervals.of(lane).high == 0:
            return True
        if not isinstance(lane, Instruction):
            return False
        a, *rest = lane.operands
        match lane.op:
            case "select":
                return all(map(self._is_no_later, rest))
            case "and" | "umin":
                return any(map(_is_lane_number, lane.operands))
            case "sub":
                return _is_lane_number(a) and self.intervals.of(rest[0]).low >= 0
            case "add":
                return _is_lane_number(a) and self.intervals.of(rest[0]).high <= 0
        return False

    def _is_one_to_one(self, lane: Value, block: BasicBlock) -> bool:
        """Whether all lanes but those that read themselves read different ones."""
        if not isinstance(lane, Instruction):
            return False
        if lane.op == "select":
            sides = [side for side in lane.operands[1:] if not _is_lane_number(side)]
            return len(sides) == 1 and self._is_one_to_one(sides[0], block)
        if lane.op not in ("add", "sub", "xor"):
            return False
        a, b = lane.operands
        if _is_lane_number(b):
            a, b = b, a
        return _is_lane_number(a) and self._is_shared(b, block)

    def _is_shared(self, value: Value, block: BasicBlock) -> bool:
        """Whether all lanes that run a block together have one value."""
        if isinstance(value, Constant | Argument):
            return True
        if not isinstance(value, Instruction) or value not in self.original:
            return False
        if not self.uniformity.is_uniform(value):
            return False
        inner = LoopInfo(self.function).innermost(value.block)
        return inner is None or block in inner

    # The others

    def ballot(self, instruction: Instruction) -> Value:
        condition, mask = instruction.operands
        result = self.masked(self.combined(self.warp_word(), "or", 0, self.bit(condition)), mask)
        if condition == TRUE:
            self.not_zero.add(result)
        return result

    def redux(self, instruction: Instruction) -> Value:
        value, mask = instruction.operands
        kind = instruction.attrs["kind"]
        start = IDENTITIES[kind]
        named = self.named(mask)
        if isinstance(named, Constant):
            value = self.builder.select(self.names(named, self.lanes.lane()), value, constant(I32, start))
        return self.combined(self._group_word(named), kind, start, value)

    def _group_word(self, named: Value | None) -> Value:
        """A word for the lanes that name the same mask: that of the lowest lane in it."""
        if named is None:
            return self.warp_word()
        below = self.builder.emit("sub", named, ONE)
        lower = self.builder.emit("and", self.builder.emit("not", named), below)
        everyone = constant(I32, self.lanes.lanes - 1)
        return self.lane_word(self.builder.emit("umin", self.builder.emit("popc", lower), everyone))

    def barrier_reduce(self, instruction: Instruction) -> Value:
        returned = instruction.attrs.get("returned")
        self.builder.emit("barrier", attrs={"returned": returned} if returned else None)
        kind, start = BARRIER_REDUCTIONS[instruction.attrs["kind"]]
        number = self.builder.cast("zext", instruction.operands[0], I32)
        return self.combined(self.scratch(), kind, start, number)

    def match(self, instruction: Instruction) -> Value:
        """One round for each value: the last lane's, which all lanes that have it leave with their mask."""
        value, mask = instruction.operands
        key = self._word(instruction, value)
        result = declare_slot(self.function, I32, "match")
        loop = LaneLoop.before(instruction, "match")
        self.builder = builder = Builder(loop.body, instruction.loc)
        word = self.warp_word()
        self.store(word, key)
        chosen = self.load(word)
        same = builder.icmp("eq", chosen, key)
        found = self.combined(word, "or", 0, self.bit(same))
        builder.set(result, found)
        loop.close(builder, builder.icmp("ne", chosen, key))
        builder.before(instruction)
        lanes = self.masked(builder.get(result), mask)
        self.not_zero.add(lanes)
        return lanes


_RULES: dict[str, Callable[[_Exchanges, Instruction], Value]] = {
    "shuffle": _Exchanges.shuffle,
    "ballot": _Exchanges.ballot,
    "match": _Exchanges.match,
    "redux": _Exchanges.redux,
    "barrier_reduce": _Exchanges.barrier_reduce,
}
