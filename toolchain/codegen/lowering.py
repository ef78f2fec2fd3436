"""Lowering: a linearised function to regions of nodes, with pointers taken apart.

What is free on the machine leaves no node: pointer arithmetic, extensions of an i1, reads of parameters and
special registers, barriers that every thread reaches.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from qgpu.backends.machine.block import FAULTS
from qgpu.ir import (
    I1,
    I32,
    Argument,
    Constant,
    Function,
    Instruction,
    IntType,
    Literal,
    PtrType,
    SlotType,
    Value,
)
from qgpu.toolchain.codegen.addresses import Pointer, access, moved, offset_in, shared_layout
from qgpu.toolchain.codegen.arithmetic import ATOMICS, OLD_VALUES, RELATIONS, RULES
from qgpu.toolchain.codegen.inductions import Induction, find_inductions
from qgpu.toolchain.codegen.inline import is_inversion
from qgpu.toolchain.codegen.nodes import (
    GREATER,
    LESS,
    MEMORY,
    Arg,
    Condition,
    Expression,
    Node,
    NodeGuard,
    Slot,
    Term,
    move,
)
from qgpu.toolchain.codegen.pointers import Buffer, PointerShapes, Shape
from qgpu.toolchain.codegen.refuse import refuse, refuse_instruction
from qgpu.toolchain.codegen.regions import Emitter, Region, is_uniform
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.uniformity import Uniformity

_THREAD_SREGS = ("tid.x", "tid.y", "tid.z", "laneid", "warpid")
_TRAPS = {"trap": "trap", "unreachable": "trap", "barrier": "barrier"}


@dataclass(eq=False)
class Lowered:
    """A function as regions, and the registers that the host or the grid loop writes, by their names.

    `parameters` maps parameter numbers to their register; `specials` names such as `tid.x` or `const:7`.
    """

    function: Function
    regions: list[Region] = field(default_factory=list)
    parameters: dict[int, Register] = field(default_factory=dict)
    specials: dict[str, Register] = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)
    shared_bytes: int = 0

    def special(self, name: str) -> Register:
        """The register of a special register or constant, pinned."""
        if name not in self.specials:
            kind = "thread" if name in _THREAD_SREGS or name.startswith("index.") else "uniform"
            self.specials[name] = Register(kind, name, pinned=True, preload=name)
        return self.specials[name]


@dataclass(frozen=True)
class _PointerSlot:
    """A slot of pointers: slots for the descriptor and the offset, where these are not always the same."""

    shape: Shape
    offset: Slot | None
    descriptor: Slot | None


def lower(function: Function) -> Lowered:
    """Lower a linearised function.

    Raises:
        DiagnosticError: an instruction that the machine has no operation for.
    """
    return _Lowering(function).run()


class _Lowering:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.result = Lowered(function)
        self.layout = shared_layout(function)
        self.shapes = PointerShapes(function)
        self.uniformity = Uniformity(function)
        self.inductions = find_inductions(function, self.shapes, self.uniformity)
        self.starts: dict[Value, Pointer] = {}
        self.moved: dict[tuple, Slot] = {}
        self.constants: dict[tuple[Region, int, bool], Slot] = {}
        self.values: dict[Value, Arg] = {}
        self.pointers: dict[Value, Pointer] = {}
        self.slots: dict[Value, Slot] = {}
        self.pointer_slots: dict[Value, _PointerSlot] = {}
        self.conditions: dict[Value, Condition] = {}
        self.regions = {block: Region(block) for block in function.blocks}
        self.emitter = Emitter(self.regions[function.entry])

    def run(self) -> Lowered:
        for block in self.function.blocks:
            region = self.regions[block]
            self.emitter = Emitter(region)
            region.guard = self._guard(block.guard)
            region.successors = tuple(self.regions[other] for other in block.terminator.successors)
            for instruction in block.instructions:
                self.emitter.loc = instruction.loc
                self._instruction(instruction)
            self.result.regions.append(region)
        self.result.slots = [*self.slots.values(), *self.moved.values()]
        for pair in self.pointer_slots.values():
            self.result.slots += filter(None, (pair.offset, pair.descriptor))
        self.result.shared_bytes = self.layout[""]
        return self.result

    # Guards

    def _guard(self, literals: tuple[Literal, ...]) -> NodeGuard:
        return tuple((self._condition(literal.value), literal.polarity) for literal in literals)

    def _condition(self, value: Value) -> Condition:
        """What gives a guard's literal its predicate register."""
        if value in self.conditions:
            return self.conditions[value]
        condition = self.slots[value] if isinstance(value.type, SlotType) else self._per_thread(value)
        if condition.predicate is None:
            condition.predicate = Register("predicate", value.name)
        self.conditions[value] = condition
        return condition

    def _per_thread(self, value: Value) -> Node:
        """The node of a condition, one value a thread; a copy next to it where it is the thread block's."""
        arg = self.values[value]
        if isinstance(arg, Node) and not arg.uniform:
            return arg
        assert isinstance(value, Instruction)
        region = self.regions[value.block]
        node = Node("value", move(arg), region.block, value.loc)
        position = next((i for i, n in enumerate(region.nodes) if n is arg), -1) + 1
        region.nodes.insert(position, node)
        return node

    # Values

    def _arg(self, value: Value) -> Arg:
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, Argument):
            return self._parameter(value.index)
        return self.values[value]

    def _parameter(self, index: int) -> Register:
        known = self.result.parameters
        if index not in known:
            known[index] = Register("uniform", self.function.args[index].name, pinned=True)
        return known[index]

    def _pointer(self, value: Value) -> Pointer:
        if isinstance(value, Argument):
            return Pointer(self._parameter(value.index), "global")
        return self.pointers[value]

    def _descriptor(self, buffer: Buffer) -> Register:
        if buffer.space == "shared":
            return self.result.special("shared")
        return self._parameter(buffer.parameter)

    # Instructions

    def _instruction(self, instruction: Instruction) -> None:
        handler = getattr(self, f"_lower_{instruction.op}", None)
        if isinstance(instruction.type, PtrType) and instruction.op == "select":
            self._select_pointer(instruction)
        elif handler:
            handler(instruction)
        else:
            self.values[instruction] = self._pure(instruction)

    def _pure(self, instruction: Instruction) -> Arg:
        if instruction.op not in RULES:
            raise refuse_instruction(instruction, "the machine has no operation for it")
        self._check_types(instruction)
        args = [self._arg(operand) for operand in instruction.operands]
        return self._computed(instruction, args)

    def _computed(self, instruction: Instruction, args: list[Arg]) -> Arg:
        expression = RULES[instruction.op](instruction, args)
        if expression is None:
            raise refuse_instruction(
                instruction, f"the machine has no operation for it on {instruction.type}"
            )
        axis = self._grid_axis(expression)
        if axis:
            return self.result.special(f"index.{axis}")
        if self.uniformity.uniform(instruction) or not all(map(is_uniform, args)):
            return self.emitter.value(expression)
        return self.emitter.add("value", expression, uniform=False)

    def _grid_axis(self, expression: Expression) -> str | None:
        """The axis where an expression is ctaid * ntid + tid: the grid loop keeps that in a register."""
        x, y, z = expression.operands
        if expression.op != "mad" or y != 1:
            return None
        for thread, product in ((x, z), (z, x)):
            axis = thread.preload[-1:] if isinstance(thread, Register) else ""
            if not axis or not isinstance(product, Node) or product.expression.op != "mad":
                continue
            factors = product.expression.operands
            names = {factor.preload for factor in factors if isinstance(factor, Register)}
            if thread is self.result.specials.get(f"tid.{axis}") and names == {
                f"ctaid.{axis}",
                f"ntid.{axis}",
            }:
                return axis if factors[2] == 0 else None
        return None

    def _check_types(self, instruction: Instruction) -> None:
        for type_ in (instruction.type, *(operand.type for operand in instruction.operands)):
            if isinstance(type_, IntType) and type_ not in (I1, I32):
                raise refuse_instruction(instruction, f"the machine computes on 32 bits, not on {type_}")

    def _lower_icmp(self, instruction: Instruction) -> None:
        if isinstance(instruction.operands[0].type, PtrType):
            self.values[instruction] = self._compare_pointers(instruction)
        else:
            self.values[instruction] = self._pure(instruction)

    def _compare_pointers(self, instruction: Instruction) -> Arg:
        """Compares offsets: they are signed, whatever the predicate says of addresses."""
        shapes = [self.shapes.of(operand) for operand in instruction.operands]
        if shapes[0].buffer is None or shapes[0].buffer != shapes[1].buffer:
            raise refuse_instruction(instruction, "the pointers are not known to point into the same buffer")
        unit = min(shape.unit for shape in shapes)
        a, b = (offset_in(self._pointer(p), unit, self.emitter) for p in instruction.operands)
        relation, _ = RELATIONS[instruction.attrs["pred"]]
        return self.emitter.value(Expression("cmp", a, b, relation=relation, signed=True))

    def _lower_param(self, instruction: Instruction) -> None:
        index = instruction.attrs["index"]
        if isinstance(instruction.type, PtrType):
            self.pointers[instruction] = Pointer(self._parameter(index), "global")
        else:
            self._check_types(instruction)
            self.values[instruction] = self._parameter(index)

    def _lower_sreg(self, instruction: Instruction) -> None:
        self.values[instruction] = self.result.special(instruction.attrs["name"])

    # Pointers

    def _lower_addrof(self, instruction: Instruction) -> None:
        array = self.function.array(instruction.attrs["name"])
        if array.space != "shared":
            raise refuse_instruction(
                instruction, f"the machine has no {array.space} memory of its own for arrays"
            )
        descriptor = self.result.special("shared")
        self.pointers[instruction] = Pointer(descriptor, "shared", (), self.layout[array.name])

    def _lower_ptradd(self, instruction: Instruction) -> None:
        base, index = instruction.operands
        attrs = instruction.attrs
        if not isinstance(index, Constant) and index.type is not I32:
            raise refuse_instruction(instruction, f"an index of type {index.type} needs 64-bit arithmetic")
        number = self._index(index)
        self.pointers[instruction] = moved(
            self._pointer(base), number, attrs["scale"], attrs["disp"], not attrs["signed"]
        )

    def _index(self, index: Value) -> Arg:
        return index.signed & 0xFFFFFFFF if isinstance(index, Constant) else self._arg(index)

    def _select_pointer(self, instruction: Instruction) -> None:
        shape = self.shapes.of(instruction)
        condition = self._arg(instruction.operands[0])
        pair = [self._pointer(operand) for operand in instruction.operands[1:]]
        offset = descriptor = None
        if shape.offset is None:
            a, b = (offset_in(pointer, shape.unit, self.emitter) for pointer in pair)
            offset = self.emitter.value(Expression("select", a, b, condition))
        if shape.buffer is None:
            a, b = (pointer.descriptor for pointer in pair)
            descriptor = self.emitter.value(Expression("select", a, b, condition))
        self.pointers[instruction] = self._shaped(shape, descriptor, offset)

    def _shaped(self, shape: Shape, descriptor: Arg | None, offset: Arg | None) -> Pointer:
        """The pointer of a shape, with what the shape leaves open."""
        if descriptor is None:
            assert shape.buffer
            descriptor = self._descriptor(shape.buffer)
        pointer = Pointer(descriptor, shape.buffer.space if shape.buffer else "any")
        if offset is None:
            return replace(pointer, displacement=shape.offset or 0)
        return moved(pointer, offset, shape.unit, 0, unsigned=False)

    # Memory

    def _lower_load(self, instruction: Instruction) -> None:
        self._check_types(instruction)
        type_ = instruction.attrs["type"]
        sign = instruction.attrs.get("ext") == "sign"
        node = self._memory("load", instruction, type_, Expression("mad", MEMORY, 1), sign)
        node.uniform = self.uniformity.uniform(instruction)
        self.values[instruction] = node

    def _lower_store(self, instruction: Instruction) -> None:
        type_ = instruction.attrs["type"]
        self._check_stored(instruction, type_)
        value = self._arg(instruction.operands[1])
        narrow = Expression("merge", MEMORY, value)
        node = self._memory("store", instruction, type_, move(value) if type_ is I32 else narrow)
        alike = is_uniform(value) and all(map(is_uniform, node.args))
        node.uniform = alike and not self.emitter.region.guard

    def _check_stored(self, instruction: Instruction, type_: object) -> None:
        if isinstance(type_, IntType) and type_.width > 32:
            raise refuse_instruction(instruction, f"the machine computes on 32 bits, not on {type_}")
        if isinstance(type_, PtrType):
            raise refuse_instruction(instruction, "the machine keeps no pointers in memory")

    def _memory(
        self, kind: str, instruction: Instruction, type_: object, expression: Expression, sign: bool = False
    ) -> Node:
        if not isinstance(type_, IntType) or type_.width not in (8, 16, 32):
            raise refuse_instruction(instruction, f"the machine keeps no {type_} in memory")
        pointer = self._pointer(instruction.operands[0])
        where = access(pointer, type_.bytes, sign, self.emitter)
        node = self.emitter.add(kind, expression, uniform=False, access=where)
        node.volatile = bool(instruction.attrs.get("volatile"))
        return node

    def _lower_atomicrmw(self, instruction: Instruction) -> None:
        self._check_types(instruction)
        kind = instruction.attrs["kind"]
        value = self._arg(instruction.operands[1])
        node = self._memory("atomic", instruction, I32, ATOMICS[kind](value))
        if not instruction.uses:
            return
        if kind not in OLD_VALUES:
            raise refuse_instruction(
                instruction, "a block has one result, and the old value does not follow from the new one"
            )
        self.values[instruction] = self.emitter.value(OLD_VALUES[kind](node, value))

    # Slots

    def _lower_slot(self, instruction: Instruction) -> None:
        type_ = instruction.type
        assert isinstance(type_, SlotType)
        uniform = self.uniformity.uniform(instruction)
        if instruction in self.inductions:
            return
        if isinstance(type_.element, PtrType):
            self._pointer_slot(instruction, uniform)
            return
        if type_.element not in (I1, I32):
            raise refuse_instruction(instruction, f"the machine computes on 32 bits, not on {type_.element}")
        self.slots[instruction] = self._new_slot(instruction.name, uniform)

    def _new_slot(self, name: str, uniform: bool) -> Slot:
        return Slot(name, uniform, Register("uniform" if uniform else "thread", name))

    def _pointer_slot(self, instruction: Instruction, uniform: bool) -> None:
        shape = self.shapes.of(instruction)
        name = instruction.name
        descriptor = None if shape.buffer else self._new_slot(f"{name}.buffer", uniform)
        offset = self._new_slot(f"{name}.offset", uniform) if shape.offset is None else None
        self.pointer_slots[instruction] = _PointerSlot(shape, offset, descriptor)

    def _lower_set(self, instruction: Instruction) -> None:
        slot, value = instruction.operands
        if isinstance(value, Instruction) and value.op == "undef":
            return
        if slot in self.slots:
            self._set(self.slots[slot], self._arg(value))
            return
        if slot in self.inductions:
            self._set_induction(slot, self.inductions[slot], instruction)
            return
        pair, pointer = self.pointer_slots[slot], self._pointer(value)
        if pair.offset:
            self._set(pair.offset, offset_in(pointer, pair.shape.unit, self.emitter))
        if pair.descriptor:
            self._set(pair.descriptor, pointer.descriptor)

    def _set(self, slot: Slot, value: Arg) -> None:
        if isinstance(value, int):
            value = self._alike(slot, value)
        node = self.emitter.add("set", move(value), slot.uniform)
        node.slot = slot

    def _alike(self, slot: Slot, number: int) -> Arg:
        """A constant as what the first slot of the block that is set to it holds: a copy may cost nothing."""
        first = self.constants.setdefault((self.emitter.region, number, slot.uniform), slot)
        alone = first is slot or slot.predicate or first.predicate
        return number if alone else self._get(first, slot.uniform)

    def _lower_get(self, instruction: Instruction) -> None:
        slot = instruction.operands[0]
        uniform = self.uniformity.uniform(instruction)
        if slot in self.slots:
            self.values[instruction] = self._get(self.slots[slot], uniform)
            return
        if slot in self.inductions:
            self._get_induction(instruction, self.inductions[slot])
            return
        pair = self.pointer_slots[slot]
        descriptor = self._get(pair.descriptor, uniform) if pair.descriptor else None
        offset = self._get(pair.offset, uniform) if pair.offset else None
        self.pointers[instruction] = self._shaped(pair.shape, descriptor, offset)

    def _get(self, slot: Slot, uniform: bool) -> Node:
        node = self.emitter.add("get", move(slot.data), uniform)
        node.slot = slot
        return node

    # Induction pointers

    def _set_induction(self, slot: Value, induction: Induction, instruction: Instruction) -> None:
        pointer, unit = self._pointer(instruction.operands[1]), self.shapes.of(slot).unit
        known = induction.key in self.moved
        moved = self._moved(induction)
        if instruction is induction.start:
            self.starts[slot] = self._start(pointer, unit)
            if not known and induction.counter is None:
                self._set(moved, 0)
            return
        if induction.counter is None and self._is_first(slot, induction):
            terms = pointer.terms[len(self.starts[slot].terms) :]
            distance = replace(pointer, terms=terms)
            self._set(moved, offset_in(distance, unit, self.emitter))

    def _moved(self, induction: Induction) -> Slot:
        """The slot that counts how far the thread block has moved."""
        if induction.counter is not None:
            return self.slots[induction.counter]
        if induction.key not in self.moved:
            self.moved[induction.key] = self._new_slot("moved", uniform=True)
        return self.moved[induction.key]

    def _is_first(self, slot: Value, induction: Induction) -> bool:
        """Whether of the pointers that move alike this is the one that counts for all."""
        alike = [other for other, found in self.inductions.items() if found.key == induction.key]
        return alike[0] is slot

    def _start(self, pointer: Pointer, unit: int) -> Pointer:
        """Where a thread's pointer starts, as a pointer with one term that an address can be made of."""
        simple = (
            len(pointer.terms) == 1 and pointer.terms[0].scale in (1, 4) and not pointer.terms[0].unsigned
        )
        if pointer.displacement == 0 and (simple or not pointer.terms):
            return pointer
        offset = offset_in(pointer, unit, self.emitter)
        return moved(Pointer(pointer.descriptor, pointer.space), offset, unit, 0, unsigned=False)

    def _get_induction(self, instruction: Instruction, induction: Induction) -> None:
        slot = instruction.operands[0]
        moved = self._get(self._moved(induction), uniform=True)
        start, unit = self.starts[slot], self.shapes.of(slot).unit
        self.pointers[instruction] = replace(start, terms=(*start.terms, Term(moved, unit)))

    # Control flow

    def _lower_brany(self, instruction: Instruction) -> None:
        condition = self._arg(instruction.operands[0])
        guarded = bool(self.emitter.region.guard)
        self.emitter.add("branch", move(condition), is_uniform(condition) and not guarded)

    def _lower_condbr(self, instruction: Instruction) -> None:
        condition = self._arg(instruction.operands[0])
        uniform = is_uniform(condition)
        if uniform and isinstance(condition, Node) and is_inversion(condition.expression):
            tested = replace(condition.expression, relation=LESS | GREATER)
            condition = self.emitter.value(tested)
            region = self.emitter.region
            region.successors = region.successors[::-1]
        self.emitter.add("branch", move(condition), uniform)

    def _lower_br(self, instruction: Instruction) -> None:
        """Control goes on by itself."""

    _lower_ret = _lower_br

    def _lower_trap(self, instruction: Instruction) -> None:
        self._trap(_TRAPS[instruction.attrs["kind"]])

    def _trap(self, kind: str) -> Node:
        node = self.emitter.add("trap", move(0), uniform=False)
        node.trap = FAULTS.index(kind)
        return node

    def _lower_barrier(self, instruction: Instruction) -> None:
        """Lockstep is the barrier; threads that do not come to it, and have not ended, are a fault."""
        self.emitter.add("fence", move(0), uniform=True)
        returned = instruction.attrs.get("returned", ())
        guard = self.emitter.region.guard
        for index, (condition, polarity) in enumerate(guard):
            if index not in returned:
                self._trap("barrier").guard = (*guard[:index], (condition, not polarity))

    def _lower_phi(self, instruction: Instruction) -> None:
        raise ValueError("code generation takes linearised functions; this one has a phi")


def check_function(function: Function) -> None:
    """Refuse what no launch of this machine could hold, before any code is generated."""
    for array in function.shared:
        if array.space != "shared":
            raise refuse(
                f"kernel '{function.name}' needs the array '{array.name}' in {array.space} memory",
                None,
                f"the machine has no {array.space} memory; this array takes {array.size} bytes",
            )
