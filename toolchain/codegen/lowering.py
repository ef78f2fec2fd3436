"""Lowering: a linearised function to regions of nodes.

What is free on the machine leaves no node: pointer arithmetic, extensions of an i1, reads of parameters and
special registers, barriers that every thread reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qgpu.backends.machine.block import FAULTS
from qgpu.ir import I1, I32, I64, Argument, Function, Instruction, IntType, Literal, SlotType, Value
from qgpu.toolchain.codegen.arithmetic import RULES, logic
from qgpu.toolchain.codegen.environment import Environment, Lowered
from qgpu.toolchain.codegen.inline import is_inversion
from qgpu.toolchain.codegen.memory_layout import array_offsets, whole_frame
from qgpu.toolchain.codegen.memory_lowering import MemoryLowering
from qgpu.toolchain.codegen.nodes import (
    GREATER,
    LESS,
    Arg,
    Condition,
    Expression,
    Node,
    NodeGuard,
    Slot,
    move,
)
from qgpu.toolchain.codegen.pointer_lowering import PointerLowering
from qgpu.toolchain.codegen.refuse import refuse_instruction
from qgpu.toolchain.codegen.regions import Emitter, is_uniform
from qgpu.toolchain.codegen.registers import Register

_TRAPS = {"trap": "trap", "unreachable": "trap", "barrier": "barrier", "assert": "assert"}


def lower(function: Function) -> Lowered:
    """Lower a linearised function.

    Raises:
        DiagnosticError: an instruction that the machine has no operation for.
    """
    return _Lowering(function).run()


class _Lowering:
    def __init__(self, function: Function) -> None:
        self.env = Environment(function)
        self.slots: dict[Value, Slot] = {}
        self.pointers = PointerLowering(self.env, self.slots)
        self.memory = MemoryLowering(self.env, self.pointers)
        self.conditions: dict[Value, Condition] = {}
        self.handlers: dict[str, Callable[[Instruction], None]] = {
            "param": self._param,
            "sreg": self._sreg,
            "load": self.memory.load,
            "store": self.memory.store,
            "atomicrmw": self.memory.atomic,
            "slot": self._slot,
            "set": self._set,
            "get": self._get,
            "barrier": self._barrier,
            "br": self._go_on,
            "ret": self._go_on,
            "brany": self._branch_any,
            "condbr": self._branch,
            "trap": self._trap,
        }

    def run(self) -> Lowered:
        env = self.env
        for block in env.function.blocks:
            region = env.regions[block]
            env.emitter = Emitter(region)
            region.guard = self._guard(block.guard)
            region.successors = tuple(env.regions[other] for other in block.terminator.successors)
            for instruction in block.instructions:
                env.emitter.loc = instruction.loc
                self._instruction(instruction)
            env.result.regions.append(region)
        env.result.shared_bytes = array_offsets(env.function, "shared")[""]
        env.result.local_bytes = whole_frame(env.function, array_offsets(env.function, "local")[""])
        return env.result

    def _instruction(self, instruction: Instruction) -> None:
        if self.pointers.takes(instruction):
            self.pointers.lower(instruction)
        elif instruction.op in self.handlers:
            self.handlers[instruction.op](instruction)
        else:
            self.env.values[instruction] = self._pure(instruction)

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
        arg = self.env.values[value]
        if isinstance(arg, Node) and not arg.uniform:
            return arg
        assert isinstance(value, Instruction)
        region = self.env.regions[value.block]
        node = Node("value", move(arg), region.block, value.loc)
        position = next((i for i, n in enumerate(region.nodes) if n is arg), -1) + 1
        region.nodes.insert(position, node)
        return node

    # Arithmetic

    def _pure(self, instruction: Instruction) -> Arg:
        part = self._word_of_wide(instruction)
        if part is not None:
            return part
        if isinstance(parameter := next(iter(instruction.operands), None), Argument):
            converted = self._converted(instruction, parameter)
            if converted is not None:
                return converted
        if instruction.op not in RULES:
            raise refuse_instruction(instruction, "the machine has no operation for it")
        self.env.check_types(instruction)
        args = [self.env.arg(operand) for operand in instruction.operands]
        return self._computed(instruction, args)

    def _word_of_wide(self, instruction: Instruction) -> Arg | None:
        """A word of a 64-bit parameter or distance: `trunc` or `high` of it."""
        high = instruction.op == "high"
        if not high and (instruction.op != "trunc" or instruction.type is not I32):
            return None
        source = instruction.operands[0]
        if source.type is not I64:
            return None
        if isinstance(source, Argument):
            low = self.env.result.parameter(source.index)
            return low.partner if high else low
        if isinstance(source, Instruction) and source.op in ("ptrdiff", "ptrtoint", "param"):
            low = self.env.values[source]
            if source.op == "param":
                return low.partner if high and isinstance(low, Register) else low
            return self.env.emitter.value(Expression("shr", low, 31, signed=True)) if high else low
        return None

    def _converted(self, instruction: Instruction, parameter: Argument) -> Arg | None:
        """A parameter that is not a word as one, or None: the host has extended it, or it is the low word."""
        width = parameter.type.width if isinstance(parameter.type, IntType) else 0
        if instruction.type is not I32 or width in (1, 32):
            return None
        register = self.env.result.parameter(parameter.index)
        if instruction.op == "zext" and self.env.result.is_signed(parameter.index):
            return self.env.emitter.value(logic("and", register, (1 << width) - 1))
        return register if instruction.op in ("sext", "zext", "trunc") else None

    def _computed(self, instruction: Instruction, args: list[Arg]) -> Arg:
        expression = RULES[instruction.op](instruction, args)
        if expression is None:
            raise refuse_instruction(
                instruction, f"the machine has no operation for it on {instruction.type}"
            )
        axis = self._grid_axis(expression)
        if axis:
            return self.env.result.special(f"index.{axis}")
        if self.env.uniformity.uniform(instruction) or not all(map(is_uniform, args)):
            return self.env.emitter.value(expression)
        return self.env.emitter.add("value", expression, uniform=False)

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
            if thread is self.env.result.specials.get(f"tid.{axis}") and names == {
                f"ctaid.{axis}",
                f"ntid.{axis}",
            }:
                return axis if factors[2] == 0 else None
        return None

    # Special registers and slots

    def _param(self, instruction: Instruction) -> None:
        self.env.values[instruction] = self.env.result.parameter(instruction.attrs["index"])

    def _sreg(self, instruction: Instruction) -> None:
        self.env.values[instruction] = self.env.result.special(instruction.attrs["name"])

    def _slot(self, instruction: Instruction) -> None:
        type_ = instruction.type
        assert isinstance(type_, SlotType)
        if type_.element not in (I1, I32):
            raise refuse_instruction(instruction, f"the machine computes on 32 bits, not on {type_.element}")
        uniform = self.env.uniformity.uniform(instruction)
        self.slots[instruction] = self.env.new_slot(instruction.name, uniform)

    def _set(self, instruction: Instruction) -> None:
        slot, value = instruction.operands
        if isinstance(value, Instruction) and value.op == "undef":
            return
        emit = self.env.set_slot if value.type is I1 else self.env.set_word
        emit(self.slots[slot], self.env.arg(value))

    def _get(self, instruction: Instruction) -> None:
        uniform = self.env.uniformity.uniform(instruction)
        self.env.values[instruction] = self.env.get_slot(self.slots[instruction.operands[0]], uniform)

    # Control flow

    def _branch_any(self, instruction: Instruction) -> None:
        condition = self.env.arg(instruction.operands[0])
        guarded = bool(self.env.emitter.region.guard)
        self.env.emitter.add("branch", move(condition), is_uniform(condition) and not guarded)

    def _branch(self, instruction: Instruction) -> None:
        condition = self.env.arg(instruction.operands[0])
        uniform = is_uniform(condition)
        if uniform and isinstance(condition, Node) and is_inversion(condition.expression):
            tested = replace(condition.expression, relation=LESS | GREATER)
            condition = self.env.emitter.value(tested)
            region = self.env.emitter.region
            region.successors = region.successors[::-1]
        self.env.emitter.add("branch", move(condition), uniform)

    def _go_on(self, instruction: Instruction) -> None:
        """Control goes on by itself."""

    def _trap(self, instruction: Instruction) -> None:
        node = self._trap_block(_TRAPS[instruction.attrs["kind"]])
        node.message = instruction.attrs.get("message", "")

    def _trap_block(self, kind: str) -> Node:
        node = self.env.emitter.add("trap", move(0), uniform=False)
        node.trap = FAULTS.index(kind)
        return node

    def _barrier(self, instruction: Instruction) -> None:
        """Lockstep is the barrier; threads that do not come to it, and have not ended, are a fault."""
        self.env.emitter.add("fence", move(0), uniform=True)
        returned = instruction.attrs.get("returned", ())
        guard = self.env.emitter.region.guard
        for index, (condition, polarity) in enumerate(guard):
            if index not in returned:
                self._trap_block("barrier").guard = (*guard[:index], (condition, not polarity))
