"""Counters of loops: 64-bit phis whose range fits a word, by a guard or by what each round accesses.

A round that has accessed memory without a fault tells how far its address is from the first round's: less
than BUFFER bytes. So a counter that moves no faster than an address has come no further than that, and in the
next round it is one step further.
"""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.ir.analysis.loops import Loop, LoopInfo
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.folding import fold
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import SWAPPED_PREDICATE
from qgpu.ir.core.types import I32, I64
from qgpu.ir.core.values import Argument, Constant, Value
from qgpu.ir.passes.narrow_addresses.affine import low_word
from qgpu.ir.passes.narrow_addresses.extended import is_extended
from qgpu.ir.passes.simplify.addresses import constant_step
from qgpu.ir.passes.simplify.known_bits import possible_ones
from qgpu.ir.passes.simplify.rules import is_op

ACCESSES = ("load", "store", "atomicrmw", "cmpxchg")

BUFFER = 1 << 30
"""More bytes than a buffer has on any machine; starts and steps of counters have to be below it as well."""

LARGEST_STEP = 1 << 20


@dataclass(frozen=True)
class Counter:
    """A 64-bit phi of a loop's header that becomes `following` by adding `step`, which does not change."""

    loop: Loop
    phi: Instruction
    start: Value
    following: Instruction
    step: Value

    @property
    def constant_step(self) -> int | None:
        return self.step.signed if isinstance(self.step, Constant) else None


@dataclass(frozen=True)
class Form:
    """How a counter follows from a word: extended by `extension`, and added to the start where `relative`.

    `near` tells that the word keeps away from the ends of its range, in every round from its start on.
    """

    extension: str
    relative: bool = False
    near: bool = True


def narrow_counters(function: Function) -> bool:
    """Counts in 32 bits where that is enough; comparisons with the loop's bounds follow."""
    changed = False
    loops = LoopInfo(function)
    for loop in loops.loops:
        for counter in counters_of(loop):
            form = form_of(loops, counter)
            if form is not None:
                Narrowing(loops, counter, form).run()
                changed = True
    return changed


def counters_of(loop: Loop) -> list[Counter]:
    """The counters of a loop with one way back."""
    found = [counter_of(loop, phi) for phi in loop.header.phis if phi.type is I64]
    return [counter for counter in found if counter is not None]


def counter_of(loop: Loop, phi: Instruction) -> Counter | None:
    starts = {value for value, source in phi.incoming if source not in loop}
    carried = {value for value, source in phi.incoming if source in loop}
    following = carried.pop() if len(carried) == 1 else None
    if len(loop.latches) != 1 or len(starts) != 1 or not isinstance(following, Instruction):
        return None
    if following.op != "add" or phi not in following.operands:
        return None
    step = following.operands[1 - following.operands.index(phi)]
    return Counter(loop, phi, starts.pop(), following, step) if is_outside(loop, step) else None


def is_outside(loop: Loop, value: Value) -> bool:
    return not isinstance(value, Instruction) or value.block not in loop


def form_of(loops: LoopInfo, counter: Counter) -> Form | None:
    """A form that holds in every round; None where a word is not enough."""
    step = counter.constant_step
    if step is None and possible_ones(counter.step) >= BUFFER:
        return None
    if step is not None and (abs(step) > LARGEST_STEP or step == 0):
        return None
    extension = "zext" if step is None or step > 0 else "sext"
    small = possible_ones(counter.start) < BUFFER
    if extension == "zext" and small and is_guarded(loops, counter):
        return Form(extension)
    bounds = accesses_by(loops, counter)
    if bounds and small:
        return Form(extension)
    if not bounds or step is None:
        return None
    at_start = any(is_at_a_start(counter, bound) for bound in bounds)
    if at_start and is_extended(counter.start, "sext") and is_read_after(loops, counter, bounds):
        return Form("sext", near=False)
    return Form(extension, relative=True) if is_only_equated(counter) else None


def is_only_equated(counter: Counter) -> bool:
    """Whether the loop compares the counter with bounds for equality, and in no other way."""
    users = [*counter.phi.users, *counter.following.users]
    tests = [user for user in users if isinstance(user, Instruction) and user.op == "icmp"]
    bounds = [x for test in tests for x in test.operands if x not in (counter.phi, counter.following)]
    equalities = all(test.attrs["pred"] in ("eq", "ne") for test in tests)
    return bool(tests) and equalities and all(is_outside(counter.loop, bound) for bound in bounds)


def is_guarded(loops: LoopInfo, counter: Counter) -> bool:
    """Whether another round only comes where the counter is below a bound of 31 bits."""
    return any(guards(loops, counter, block) for block in counter.loop.exiting_blocks)


def guards(loops: LoopInfo, counter: Counter, block: BasicBlock) -> bool:
    loop, branch = counter.loop, block.terminator
    test = is_op(branch.operands[0], "icmp") if branch.op == "condbr" else None
    if test is None or not loops.tree.dominates(block, loop.latches[0]):
        return False
    if branch.attrs["then"] not in loop or test.operands[0] not in (counter.phi, counter.following):
        return False
    bound = test.operands[1]
    predicate = test.attrs["pred"]
    if predicate in ("ult", "ule"):
        return possible_ones(bound) >> 31 == 0 or (isinstance(bound, Constant) and bound.value < 1 << 31)
    return predicate in ("slt", "sle") and is_outside(loop, bound) and is_extended(bound, "sext")


def accesses_by(loops: LoopInfo, counter: Counter) -> list[Instruction]:
    """The accesses that every round makes, at addresses that move as far as the counter does."""
    loop = counter.loop
    return [
        access
        for block in loop.blocks
        if loops.innermost(block) is loop and loops.tree.dominates(block, loop.latches[0])
        for access in block.instructions
        if access.op in ACCESSES and moves_as_far(counter, access.operands[0])
    ]


def moves_as_far(counter: Counter, pointer: Value) -> bool:
    """Whether each round moves a pointer by the same number of bytes, no less than it moves the counter."""
    movement = 0
    step = counter.constant_step or 1
    while not is_outside(counter.loop, pointer):
        assert isinstance(pointer, Instruction)
        if pointer.op == "phi":
            advance = advance_of(counter, pointer)
            return advance is not None and abs(step) <= abs(movement + advance) < BUFFER
        factor = coefficient(counter, pointer.operands[1]) if pointer.op == "ptradd" else None
        if factor is None or abs(factor * pointer.attrs["scale"]) > LARGEST_STEP:
            return False
        movement += factor * pointer.attrs["scale"] * step
        pointer = pointer.operands[0]
    return abs(step) <= abs(movement)


def advance_of(counter: Counter, phi: Instruction) -> int | None:
    """By how many bytes a round advances a pointer of the header, if that is a constant."""
    if counter.constant_step is None or phi.block is not counter.loop.header:
        return None
    carried = {value for value, source in phi.incoming if source in counter.loop}
    advance = is_op(carried.pop(), "ptradd") if len(carried) == 1 else None
    return constant_step(advance) if advance and advance.operands[0] is phi else None


def coefficient(counter: Counter, value: Value) -> int | None:
    """What a value is multiplied by where it is a sum with multiples of the counter; None for other forms."""
    if value in (counter.phi, counter.following):
        return 1
    if is_outside(counter.loop, value):
        return 0
    if not isinstance(value, Instruction) or value.type is not I64:
        return None
    if value.op in ("add", "sub"):
        a, b = (coefficient(counter, operand) for operand in value.operands)
        return None if a is None or b is None else a + b if value.op == "add" else a - b
    factor = value.operands[1] if value.op == "mul" else None
    inner = coefficient(counter, value.operands[0]) if isinstance(factor, Constant) else None
    return inner * factor.signed if inner is not None and isinstance(factor, Constant) else None


def is_at_a_start(counter: Counter, access: Instruction) -> bool:
    """Whether an address is a buffer's start, a multiple of the counter and a constant below BUFFER."""
    pointer: Value = access.operands[0]
    distance = 0
    while isinstance(pointer, Instruction) and pointer.op == "ptradd":
        distance += abs(pointer.attrs["disp"])
        index = pointer.operands[1]
        if isinstance(index, Constant):
            distance += abs(index.signed * pointer.attrs["scale"])
        elif index is not counter.phi:
            return False
        pointer = pointer.operands[0]
    starts = isinstance(pointer, Argument) or is_op(pointer, "addrof") is not None
    return starts and distance < BUFFER


def is_read_after(loops: LoopInfo, counter: Counter, bounds: list[Instruction]) -> bool:
    """Whether the following number is only read where an access of the round has shown it to be near."""
    for use in counter.following.uses:
        user = use.user
        assert isinstance(user, Instruction)
        place = user.attrs["blocks"][use.index] if user.op == "phi" else user.block
        if user is counter.phi:
            continue
        if not any(loops.tree.dominates(bound.block, place) for bound in bounds):
            return False
    return True


class Narrowing:
    """Replaces one counter by a word."""

    def __init__(self, loops: LoopInfo, counter: Counter, form: Form) -> None:
        self.loops = loops
        self.counter = counter
        self.form = form

    def run(self) -> None:
        counter = self.counter
        phi, following = counter.phi, counter.following
        word = phi.block.insert(0, Instruction("phi", I32, (), {"blocks": ()}, phi.loc, phi.name))
        start = constant(I32, 0) if self.form.relative else low_word(self._before(), counter.start)
        step = low_word(self._before(), counter.step)
        stepped = Builder().before(following).emit("add", word, step, name=following.name)
        phi.name = following.name = ""
        for _, source in phi.incoming:
            word.add_incoming(stepped if source in counter.loop else start, source)
        for value, narrow in ((phi, word), (following, stepped)):
            for test in [user for user in value.users if isinstance(user, Instruction) and user.op == "icmp"]:
                self._compare(test, value, narrow)
        following.replace_all_uses_with(self._wide(Builder().before(following), stepped))
        phi.replace_all_uses_with(self._wide(Builder(loc=phi.loc).at_start(phi.block), word))
        phi.attrs["blocks"] = ()
        for value in (phi, following):
            value.operands = ()
            value.erase()

    def _wide(self, builder: Builder, word: Value) -> Value:
        extended = builder.emit(self.form.extension, word, type=I64)
        return builder.emit("add", self.counter.start, extended) if self.form.relative else extended

    def _before(self) -> Builder:
        """Where what the loop does not change is computed."""
        above = self.loops.tree.idom(self.counter.loop.header)
        assert above is not None
        return Builder().before(above.terminator)

    def _compare(self, test: Instruction, value: Value, word: Value) -> None:
        """Compares the word with the bound, brought into the range that the word is sure to keep within."""
        first = test.operands[0] is value
        bound = test.operands[1 if first else 0]
        if bound is value or not is_outside(self.counter.loop, bound):
            return
        exact = self.form.near or value is self.counter.following
        if not exact and not is_extended(bound, self.form.extension):
            return
        if self.form.relative:
            bound = self._before().emit("sub", bound, self.counter.start)
        predicate = test.attrs["pred"] if first else SWAPPED_PREDICATE[test.attrs["pred"]]
        found = Bounds(self._before(), self.form.extension).of(predicate, bound)
        if found is None:
            return
        narrow = Builder().before(test).icmp(found[0], word, found[1], name=test.name)
        test.name = ""
        test.replace_all_uses_with(narrow)
        test.erase()


@dataclass(frozen=True)
class Bounds:
    """Bounds of 64 bits as words, such that a counter compares with them as before.

    A counter extended by `zext` is below 2^32 - 1, one extended by `sext` at least -2^31 and below 2^31 - 1.
    """

    builder: Builder
    extension: str

    def of(self, predicate: str, bound: Value) -> tuple[str, Value] | None:
        """The predicate on words, and the bound; None where there are none."""
        if self.extension == "sext":
            return self._signed(predicate, bound)
        if predicate in ("eq", "ne") or predicate.startswith("u"):
            return predicate, self._unsigned(bound)
        if predicate in ("slt", "sge"):
            return "u" + predicate[1:], self._unsigned(self._extremum("smax", bound, 0))
        above = self._plus_one(self._extremum("smax", bound, -1))
        return {"sle": "ult", "sgt": "uge"}[predicate], self._unsigned(above)

    def _signed(self, predicate: str, bound: Value) -> tuple[str, Value] | None:
        if predicate.startswith("u"):
            return None
        bound = self._extremum("smin", bound, (1 << 31) - 1)
        return predicate, low_word(self.builder, self._extremum("smax", bound, -(1 << 31)))

    def _unsigned(self, bound: Value) -> Value:
        """A bound no more than the greatest word; one of 32 bits already is a word."""
        if bound.type is I32:
            return bound
        if possible_ones(bound) >> 32:
            bound = self._extremum("umin", bound, (1 << 32) - 1)
        return low_word(self.builder, bound)

    def _extremum(self, op: str, bound: Value, other: int) -> Value:
        """Of an extended word and 0 or -1 as a word; at the ends of the range an extended word itself."""
        if isinstance(bound, Constant):
            return fold(Instruction(op, I64, (bound, constant(I64, other)))) or bound
        if op != "umin" and is_extended(bound, "sext"):
            if abs(other) > 1:
                return bound
            return self.builder.emit(op, low_word(self.builder, bound), constant(I32, other))
        return self.builder.emit(op, bound, constant(I64, other))

    def _plus_one(self, bound: Value) -> Value:
        if isinstance(bound, Constant):
            return constant(bound.type, bound.value + 1)
        return self.builder.emit("add", bound, constant(bound.type, 1))
