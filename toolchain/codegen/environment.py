"""What lowering knows of one function while it goes through it: values, slots, registers of the host's."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu.ir import I1, I32, Argument, Constant, Function, Instruction, IntType, Value
from qgpu.toolchain.codegen.nodes import Arg, Node, Slot, move
from qgpu.toolchain.codegen.refuse import refuse_instruction
from qgpu.toolchain.codegen.regions import Emitter, Region
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.uniformity import THREAD_REGISTERS, Uniformity


@dataclass(eq=False)
class Lowered:
    """A function as regions, and the registers that the host or the grid loop writes.

    `parameters` maps parameter numbers to their register; `specials` the names of special registers such as
    `tid.x`, `index.x`, which is ctaid.x * ntid.x + tid.x, and `frame`, where the thread's local memory
    begins; `arrays` those in global and const memory. Sizes of memory are in bytes, of local memory those of
    a thread; `spilled_words` is the descriptor of the buffer that uniform registers are kept in.
    """

    function: Function
    regions: list[Region] = field(default_factory=list)
    parameters: dict[int, Register] = field(default_factory=dict)
    specials: dict[str, Register] = field(default_factory=dict)
    arrays: dict[str, Register] = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)
    shared_bytes: int = 0
    local_bytes: int = 0
    spilled_bytes: int = 0
    spilled_words: Register = field(default_factory=lambda: Register("uniform", "spilled", pinned=True))

    def array(self, name: str) -> Register:
        """The register of the descriptor of an array in global or const memory."""
        if name not in self.arrays:
            self.arrays[name] = Register("uniform", name, pinned=True)
        return self.arrays[name]

    def special(self, name: str) -> Register:
        """The register of a special register, pinned."""
        if name not in self.specials:
            thread = name in (*THREAD_REGISTERS, "frame") or name.startswith("index.")
            kind = "thread" if thread else "uniform"
            self.specials[name] = Register(kind, name, pinned=True, preload=name)
        return self.specials[name]

    def parameter(self, index: int) -> Register:
        """The register of a kernel parameter: a scalar, its low word, or the descriptor of a buffer."""
        if index not in self.parameters:
            argument = self.function.args[index]
            low = Register("uniform", argument.name, pinned=True)
            self.parameters[index] = low
            if isinstance(argument.type, IntType) and argument.type.width == 64:
                low.partner = Register("uniform", f"{argument.name}.high", pinned=True, partner=low)
        return self.parameters[index]

    def clamped(self, operand: object, is_signed: bool, more: int = 0) -> str:
        """How preloads name a parameter plus `more`, clamped to what an index can be; or nothing."""
        for index, register in self.parameters.items():
            type_ = self.function.args[index].type
            if register is operand and isinstance(type_, IntType) and type_.width <= 32:
                return f"{'su'[not is_signed]}{more}:{index}"
        return ""

    def is_signed(self, index: int) -> bool:
        """Whether the host extends the sign of a parameter narrower than a word: the kernel does so."""
        users = self.function.args[index].users
        return any(isinstance(user, Instruction) and user.op == "sext" for user in users)


class Environment:
    """The state of lowering one function.

    Attributes:
        function, result: what is lowered, and to what.
        uniformity: which values are the thread block's.
        regions: by their basic blocks.
        values: what each IR value is on the machine; pointers are not among them.
        emitter: writes to the region that is being lowered.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.result = Lowered(function)
        self.uniformity = Uniformity(function)
        self.regions = {block: Region(block) for block in function.blocks}
        self.values: dict[Value, Arg] = {}
        self.emitter = Emitter(self.regions[function.entry])
        self._first: dict[tuple[Region, Arg, bool], Slot] = {}

    def arg(self, value: Value) -> Arg:
        """What a value is on the machine: a constant, a register or a node."""
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, Argument):
            return self.result.parameter(value.index)
        return self.values[value]

    def check_types(self, instruction: Instruction) -> None:
        """Refuse an instruction on integers that are neither words nor conditions."""
        for type_ in (instruction.type, *(operand.type for operand in instruction.operands)):
            if isinstance(type_, IntType) and type_ not in (I1, I32):
                raise refuse_instruction(instruction, f"the machine computes on 32 bits, not on {type_}")

    def new_slot(self, name: str, uniform: bool) -> Slot:
        """A slot of a word."""
        slot = Slot(name, uniform, Register("uniform" if uniform else "thread", name))
        self.result.slots.append(slot)
        return slot

    def set_slot(self, slot: Slot, value: Arg) -> None:
        """Emit a set."""
        self._first = {key: first for key, first in self._first.items() if first is not slot}
        node = self.emitter.add("set", move(value), slot.uniform)
        node.slot = slot

    def set_word(self, slot: Slot, value: Arg) -> None:
        """Emit a set of a word.

        A constant, or what the host wrote, is copied from the first slot that the block set to it: copies can
        share a register.
        """
        key = (self.emitter.region, value, slot.uniform)
        first = None if isinstance(value, Node) else self._first.get(key)
        self.set_slot(slot, value if first is None else self.get_slot(first, slot.uniform))
        self._first.setdefault(key, slot)

    def get_slot(self, slot: Slot, uniform: bool) -> Node:
        """Emit a get."""
        node = self.emitter.add("get", move(slot.data), uniform)
        node.slot = slot
        return node
