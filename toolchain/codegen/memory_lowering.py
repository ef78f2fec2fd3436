"""Lowering of loads, stores and atomic operations, through pointers into one buffer or into several.

A pointer in memory is two words: the descriptor of its buffer, and its offset in bytes.
"""

from __future__ import annotations

from dataclasses import replace

from qgpu.backends.machine.block import FAULTS
from qgpu.ir import I32, Instruction, IntType, PtrType
from qgpu.toolchain.codegen.addresses import Pointer, access
from qgpu.toolchain.codegen.arithmetic import ATOMICS, OLD_VALUES
from qgpu.toolchain.codegen.environment import Environment
from qgpu.toolchain.codegen.nodes import EQUAL, MEMORY, Access, Arg, Expression, Node, move
from qgpu.toolchain.codegen.pointer_lowering import PointerLowering
from qgpu.toolchain.codegen.refuse import refuse_instruction
from qgpu.toolchain.codegen.regions import is_uniform


class MemoryLowering:
    """Lowers the instructions that access memory."""

    def __init__(self, environment: Environment, pointers: PointerLowering) -> None:
        self._env = environment
        self._pointers = pointers

    def load(self, instruction: Instruction) -> None:
        """Lower a load."""
        type_ = instruction.attrs["type"]
        pointer = self._pointers.pointer(instruction.operands[0])
        if isinstance(type_, PtrType):
            one = self._pointers.in_one_buffer(instruction)
            descriptor = None if one else self._loaded(instruction, pointer, I32)
            self._pointers.define(instruction, descriptor, self._loaded(instruction, _after(pointer), I32))
            return
        self._env.check_types(instruction)
        self._env.values[instruction] = self._loaded(instruction, pointer, type_)

    def _loaded(self, instruction: Instruction, pointer: Pointer, type_: object) -> Node:
        width, sign = _bytes(instruction, type_), instruction.attrs.get("ext") == "sign"
        where = access(pointer, width, sign, self._env.emitter.value)
        expression = Expression("mad", MEMORY, 1)
        if not _fits(where):
            return self._one_of_several("load", instruction, expression, where)
        uniform = self._env.uniformity.uniform(instruction)
        return self._add("load", instruction, expression, where, uniform)

    def store(self, instruction: Instruction) -> None:
        """Lower a store."""
        target, value = instruction.operands
        type_ = instruction.attrs["type"]
        pointer = self._pointers.pointer(target)
        if isinstance(type_, PtrType):
            if not self._pointers.stored_in_one_buffer():
                self._stored(instruction, pointer, I32, self._pointers.pointer(value).descriptor)
            self._stored(instruction, _after(pointer), I32, self._pointers.offset_in_bytes(value))
            return
        if isinstance(type_, IntType) and type_.width > 32:
            raise refuse_instruction(instruction, f"the machine computes on 32 bits, not on {type_}")
        self._stored(instruction, pointer, type_, self._env.arg(value))

    def _stored(self, instruction: Instruction, pointer: Pointer, type_: object, value: Arg) -> None:
        expression = move(value) if type_ is I32 else Expression("merge", MEMORY, value)
        node = self._write("store", instruction, pointer, _bytes(instruction, type_), expression)
        alike = is_uniform(value) and all(map(is_uniform, node.args))
        node.uniform = alike and not self._env.emitter.region.guard

    def atomic(self, instruction: Instruction) -> None:
        """Lower an atomic operation; its old value follows from the new one."""
        self._env.check_types(instruction)
        kind, value = instruction.attrs["kind"], self._env.arg(instruction.operands[1])
        pointer = self._pointers.pointer(instruction.operands[0])
        node = self._write("atomic", instruction, pointer, 4, ATOMICS[kind](value))
        if not instruction.uses:
            return
        if kind not in OLD_VALUES:
            raise refuse_instruction(
                instruction, "a block has one result, and the old value does not follow from the new one"
            )
        self._env.values[instruction] = self._env.emitter.value(OLD_VALUES[kind](node, value))

    # Writes

    def _write(
        self, kind: str, instruction: Instruction, pointer: Pointer, width: int, expression: Expression
    ) -> Node:
        where = access(pointer, width, False, self._env.emitter.value)
        if _fits(where):
            return self._add(kind, instruction, expression, where, uniform=False)
        return self._one_of_several(kind, instruction, expression, where)

    def _add(
        self, kind: str, instruction: Instruction, expression: Expression, where: Access, uniform: bool
    ) -> Node:
        node = self._env.emitter.add(kind, expression, uniform=uniform, access=where)
        node.volatile = bool(instruction.attrs.get("volatile"))
        return node

    def _one_of_several(
        self, kind: str, instruction: Instruction, expression: Expression, where: Access
    ) -> Node:
        """Accesses each buffer that it may be, in the lanes whose it is, and faults in lanes that have none.

        A block reads one thread register for its address; the buffer's and the index's would be two.
        """
        emitter, guard, node = self._env.emitter, self._env.emitter.region.guard, None
        for descriptor in self._pointers.choices(instruction.operands[0]):
            same = Expression("cmp", where.descriptor, descriptor, relation=EQUAL)
            condition = emitter.add("value", same, uniform=False)
            condition.guard = guard
            chosen = replace(where, descriptor=descriptor)
            one = self._add(kind, instruction, expression, chosen, uniform=False)
            one.guard = (*guard, (condition, True))
            one.over = node if instruction.uses else None
            guard, node = (*guard, (condition, False)), one
        stray = emitter.add("trap", move(0), uniform=False)
        stray.trap, stray.guard = FAULTS.index("out-of-bounds"), guard
        return node or emitter.add("value", move(0), uniform=False)


def _fits(where: Access) -> bool:
    """Whether a block can read both the descriptor and the index: one of them alone through port A."""
    if is_uniform(where.descriptor) or not where.terms:
        return True
    only = where.terms[0] if len(where.terms) == 1 and not where.displacement else None
    return only is not None and is_uniform(only.value) and only.scale in (1, 4)


def _after(pointer: Pointer) -> Pointer:
    """The second word of a pointer in memory."""
    return replace(pointer, displacement=pointer.displacement + 4)


def _bytes(instruction: Instruction, type_: object) -> int:
    if not isinstance(type_, IntType) or type_.width not in (8, 16, 32):
        raise refuse_instruction(instruction, f"the machine keeps no {type_} in memory")
    return type_.bytes
