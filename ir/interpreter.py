"""Interpreter of the IR: what a kernel means, for functions before and after linearisation.

Before linearisation each thread runs by itself, in thread order, from barrier to barrier. A linearised
function runs all threads of a thread block in lockstep, each instruction for the lanes in which the block's
guard holds. Both count as the definition of the IR: a pass is right if the two give the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.folding import evaluate
from qgpu.ir.core.function import Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import COMPARISONS, to_signed
from qgpu.ir.core.printer import print_instruction
from qgpu.ir.core.types import IntType, PtrType, SlotType
from qgpu.ir.core.values import Argument, Constant, Literal, Value

Dim3 = tuple[int, int, int]

FAULTS = (
    "address",
    "alignment",
    "barrier",
    "steps",
    "trap",
    "undefined",
    "uniformity",
    "unreachable",
)


class Fault(Exception):
    """The launch stopped. `kind` is one of FAULTS; `thread` is the index in its block, if one is to blame."""

    def __init__(
        self, kind: str, message: str, instruction: Instruction | None = None, thread: int | None = None
    ):
        place = f" in '{print_instruction(instruction)}'" if instruction else ""
        who = f", thread {thread}" if thread is not None else ""
        super().__init__(f"{kind}: {message}{place}{who}")
        self.kind = kind
        self.instruction = instruction
        self.thread = thread


@dataclass(frozen=True, eq=False)
class Buffer:
    """A piece of memory that pointers point into."""

    name: str
    data: memoryview

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True)
class Pointer:
    """A buffer and a byte offset, which may lie outside; only accesses are checked."""

    buffer: Buffer
    offset: int


NULL = Pointer(Buffer("null", memoryview(bytearray())), 0)
Scalar = int | Pointer

ATOMICS: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda old, new, width: old + new,
    "min_s": lambda old, new, width: min(to_signed(old, width), to_signed(new, width)),
    "max_s": lambda old, new, width: max(to_signed(old, width), to_signed(new, width)),
    "min_u": lambda old, new, width: min(old, new),
    "max_u": lambda old, new, width: max(old, new),
    "and": lambda old, new, width: old & new,
    "or": lambda old, new, width: old | new,
    "xor": lambda old, new, width: old ^ new,
    "xchg": lambda old, new, width: new,
}


@dataclass(eq=False)
class Lane:
    """One thread: its values, slots, private arrays and special registers."""

    index: int
    registers: dict[str, int]
    arrays: dict[str, Buffer]
    values: dict[Value, Scalar] = field(default_factory=dict)
    slots: dict[Value, Scalar] = field(default_factory=dict)

    def read(self, value: Value, user: Instruction | None = None) -> Scalar:
        if isinstance(value, Constant):
            return value.value
        if value not in self.values:
            raise Fault("undefined", f"the lane never computed '%{value.name}'", user, self.index)
        return self.values[value]

    def holds(self, literal: Literal) -> bool:
        """Whether a guard's literal holds in this lane."""
        value = literal.value
        if not isinstance(value.type, SlotType):
            return bool(self.read(value)) == literal.polarity
        if value not in self.slots:
            raise Fault("undefined", f"the lane never set the guard's slot '%{value.name}'", None, self.index)
        return bool(self.slots[value]) == literal.polarity


class Launch:
    """One launch of a function; `run` executes all thread blocks in order."""

    def __init__(
        self,
        function: Function,
        args: Sequence[int | bytearray | memoryview],
        grid: Dim3,
        block: Dim3,
        warp_size: int,
        max_steps: int,
    ) -> None:
        self.function = function
        self.grid = grid
        self.block = block
        self.warp_size = warp_size
        self.steps_left = max_steps
        self.args = [
            self._argument(argument, value) for argument, value in zip(function.args, args, strict=True)
        ]

    @staticmethod
    def _argument(argument: Argument, value: int | bytearray | memoryview) -> Scalar:
        if isinstance(argument.type, PtrType):
            if isinstance(value, int):
                raise TypeError(f"parameter '{argument.name}' takes a buffer")
            return Pointer(Buffer(argument.name, memoryview(value).cast("B")), 0)
        if not isinstance(value, int) or not isinstance(argument.type, IntType):
            raise TypeError(f"parameter '{argument.name}' takes a number")
        return value & argument.type.mask

    def run(self) -> None:
        run_block = self._run_lockstep if self.function.linearised else self._run_threads
        for z, y, x in product(*map(range, reversed(self.grid))):
            run_block(self._lanes((x, y, z)))

    def _lanes(self, ctaid: Dim3) -> list[Lane]:
        """The threads of one thread block, with fresh shared and local memory of zeros."""
        shared = self._arrays("shared")
        lanes = []
        for index, (z, y, x) in enumerate(product(*map(range, reversed(self.block)))):
            registers = {"laneid": index % self.warp_size, "warpid": index // self.warp_size}
            for name, triple in (
                ("tid", (x, y, z)),
                ("ntid", self.block),
                ("ctaid", ctaid),
                ("nctaid", self.grid),
            ):
                registers.update({f"{name}.{axis}": value for axis, value in zip("xyz", triple, strict=True)})
            lane = Lane(index, registers, shared | self._arrays("local"))
            lane.values.update(zip(self.function.args, self.args, strict=True))
            lanes.append(lane)
        return lanes

    def _arrays(self, space: str) -> dict[str, Buffer]:
        arrays = [array for array in self.function.shared if array.space == space]
        return {array.name: Buffer(array.name, memoryview(bytearray(array.size))) for array in arrays}

    def step(self, instruction: Instruction) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Fault("steps", "the launch does not end within the steps allowed", instruction)

    def execute(self, lane: Lane, instruction: Instruction) -> None:
        """Runs one instruction that is no phi, barrier or terminator for one lane."""
        self.step(instruction)
        operands = [
            0 if isinstance(value.type, SlotType) else lane.read(value, instruction)
            for value in instruction.operands
        ]
        handler = HANDLERS.get(instruction.op, _compute)
        result = handler(lane, instruction, operands)
        if result is not None:
            lane.values[instruction] = result

    def _run_threads(self, lanes: list[Lane]) -> None:
        """Runs each thread to its next barrier, until all have ended."""
        running = {lane.index: self._thread(lane) for lane in lanes}
        while running:
            waiting: dict[int, Instruction] = {}
            for index, thread in list(running.items()):
                barrier = next(thread, None)
                if barrier is None:
                    del running[index]
                else:
                    waiting[index] = barrier
            if len(set(map(id, waiting.values()))) > 1:
                first = next(iter(waiting.values()))
                raise Fault("barrier", "threads wait at different barriers", first)

    def _thread(self, lane: Lane) -> Generator[Instruction, None, None]:
        """One thread; yields each barrier it reaches."""
        block: BasicBlock | None = self.function.entry
        source: BasicBlock | None = None
        while block is not None:
            for instruction in _enter(lane, block, source):
                if instruction.op == "barrier":
                    yield instruction
                else:
                    self.execute(lane, instruction)
            source, block = block, self._next(lane, block.terminator)

    def _next(self, lane: Lane, terminator: Instruction) -> BasicBlock | None:
        self.step(terminator)
        if terminator.op == "condbr":
            return terminator.attrs["then" if lane.read(terminator.operands[0], terminator) else "else"]
        if terminator.op == "trap":
            raise Fault(terminator.attrs["kind"], "the kernel stopped itself", terminator, lane.index)
        return terminator.attrs.get("target")

    def _run_lockstep(self, lanes: list[Lane]) -> None:
        block: BasicBlock | None = self.function.entry
        while block is not None:
            for instruction in block.instructions[:-1]:
                if instruction.op == "barrier":
                    _check_barrier(lanes, instruction)
                    continue
                for lane in active_lanes(lanes, block):
                    self.execute(lane, instruction)
            block = self._next_lockstep(active_lanes(lanes, block), block.terminator)

    def _next_lockstep(self, active: list[Lane], terminator: Instruction) -> BasicBlock | None:
        self.step(terminator)
        op, attrs = terminator.op, terminator.attrs
        if op == "brany":
            conditions = [lane.read(terminator.operands[0], terminator) for lane in active]
            return attrs["then" if any(conditions) else "else"]
        if op == "condbr":
            choices = {lane.read(terminator.operands[0], terminator) for lane in active}
            if len(choices) != 1:
                raise Fault(
                    "uniformity", f"{len(choices)} different conditions in the active lanes", terminator
                )
            return attrs["then" if choices.pop() else "else"]
        if op == "trap":
            if not active:
                raise Fault("uniformity", "a trap is reached by no lane", terminator)
            raise Fault(attrs["kind"], "the kernel stopped itself", terminator, active[0].index)
        return attrs.get("target")


def active_lanes(lanes: Iterable[Lane], block: BasicBlock) -> list[Lane]:
    """The lanes in which all literals of a block's guard hold now."""
    return [lane for lane in lanes if all(lane.holds(literal) for literal in block.guard)]


def _check_barrier(lanes: list[Lane], barrier: Instruction) -> None:
    """A lane may miss a barrier only if the first literal that fails in it says that it has returned."""
    returned = barrier.attrs.get("returned", ())
    for lane in lanes:
        failing = [
            index for index, literal in enumerate(barrier.block.guard) if not _holds_known(lane, literal)
        ]
        if failing and failing[0] not in returned:
            raise Fault(
                "barrier", "a thread that has not ended does not reach the barrier", barrier, lane.index
            )


def _holds_known(lane: Lane, literal: Literal) -> bool:
    """Whether a literal holds; one the lane never computed comes after one that does not hold."""
    try:
        return lane.holds(literal)
    except Fault:
        return False


def _enter(lane: Lane, block: BasicBlock, source: BasicBlock | None) -> list[Instruction]:
    """Sets a block's phis for the edge from `source`, all at once; gives the block's body."""
    incoming = [(phi, value) for phi in block.phis for value, origin in phi.incoming if origin is source]
    lane.values.update([(phi, lane.read(value, phi)) for phi, value in incoming])
    return block.body


def _compute(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> Scalar:
    numbers = [operand for operand in operands if isinstance(operand, int)]
    result = evaluate(instruction, numbers)
    assert result is not None, instruction.op
    return result


def _select(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> Scalar:
    return operands[1] if operands[0] else operands[2]


def _icmp(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> Scalar:
    a, b = operands
    if not isinstance(a, Pointer) or not isinstance(b, Pointer):
        return _compute(lane, instruction, operands)
    predicate = instruction.attrs["pred"]
    if a.buffer is b.buffer:
        return int(COMPARISONS[predicate[-2:]](a.offset, b.offset))
    if predicate in ("eq", "ne"):
        return int(predicate == "ne")
    raise Fault("address", "pointers into different buffers have no order", instruction, lane.index)


def _undef(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> Scalar:
    return NULL if isinstance(instruction.type, PtrType) else 0


def _param(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> Scalar:
    function = instruction.block.parent
    assert function is not None
    return lane.values[function.args[instruction.attrs["index"]]]


def _sreg(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> Scalar:
    return lane.registers[instruction.attrs["name"]]


def _addrof(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> Scalar:
    return Pointer(lane.arrays[instruction.attrs["name"]], 0)


def _ptradd(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> Scalar:
    base, index = operands
    type_, attrs = instruction.operands[1].type, instruction.attrs
    assert isinstance(base, Pointer) and isinstance(index, int) and isinstance(type_, IntType)
    extended = to_signed(index, type_.width) if attrs["signed"] else index
    moved = to_signed(base.offset + extended * attrs["scale"] + attrs["disp"], 64)
    return Pointer(base.buffer, moved)


def _access(lane: Lane, instruction: Instruction, pointer: Scalar, type_: IntType) -> memoryview:
    """The bytes an access touches; Fault where they lie outside the buffer or are not aligned."""
    assert isinstance(pointer, Pointer)
    size, offset = type_.bytes, pointer.offset
    if not 0 <= offset <= len(pointer.buffer) - size:
        message = f"offset {offset} of '{pointer.buffer.name}', which has {len(pointer.buffer)} bytes"
        raise Fault("address", message, instruction, lane.index)
    if offset % size:
        raise Fault("alignment", f"offset {offset} of an access of {size} bytes", instruction, lane.index)
    return pointer.buffer.data[offset : offset + size]


def _integer(type_: object, instruction: Instruction) -> IntType:
    if not isinstance(type_, IntType):
        raise TypeError(f"{instruction!r} needs an integer type, not {type_}")
    return type_


def _load(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> Scalar:
    memory, type_ = _integer(instruction.attrs["type"], instruction), _integer(instruction.type, instruction)
    number = int.from_bytes(_access(lane, instruction, operands[0], memory), "little") & memory.mask
    signed = instruction.attrs.get("ext") == "sign"
    return (to_signed(number, memory.width) if signed else number) & type_.mask


def _store(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> None:
    memory, number = _integer(instruction.attrs["type"], instruction), operands[1]
    assert isinstance(number, int)
    _access(lane, instruction, operands[0], memory)[:] = (number & memory.mask).to_bytes(
        memory.bytes, "little"
    )


def _atomicrmw(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> Scalar:
    type_, number = _integer(instruction.type, instruction), operands[1]
    assert isinstance(number, int)
    data = _access(lane, instruction, operands[0], type_)
    old = int.from_bytes(data, "little")
    new = ATOMICS[instruction.attrs["kind"]](old, number, type_.width) & type_.mask
    data[:] = new.to_bytes(type_.bytes, "little")
    return old


def _set(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> None:
    lane.slots[instruction.operands[0]] = operands[1]


def _get(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> Scalar:
    variable = instruction.operands[0]
    if variable not in lane.slots:
        raise Fault("undefined", f"the lane never set '%{variable.name}'", instruction, lane.index)
    return lane.slots[variable]


def _declare(lane: Lane, instruction: Instruction, operands: list[Scalar]) -> None:
    return None


HANDLERS: dict[str, Callable[[Lane, Instruction, list[Scalar]], Scalar | None]] = {
    "select": _select,
    "icmp": _icmp,
    "undef": _undef,
    "param": _param,
    "sreg": _sreg,
    "addrof": _addrof,
    "ptradd": _ptradd,
    "load": _load,
    "store": _store,
    "atomicrmw": _atomicrmw,
    "set": _set,
    "get": _get,
    "slot": _declare,
}


def interpret(
    function: Function,
    args: Sequence[int | bytearray | memoryview],
    grid: Dim3 = (1, 1, 1),
    block: Dim3 = (1, 1, 1),
    warp_size: int = 32,
    max_steps: int = 10_000_000,
) -> None:
    """Runs a launch. Buffers in `args` (one per pointer parameter, writable memory) are changed in place.

    `grid` and `block` count thread blocks and threads as (x, y, z). Raises Fault where the launch stops
    early: an access outside its buffer or not aligned, a barrier that not all threads reach, a trap, a
    more than `max_steps` instructions, and, for defects of passes, an undefined value or a
    uniform branch that is none.
    """
    Launch(function, args, grid, block, warp_size, max_steps).run()
