"""Lowering of loads, stores and atomic operations, through pointers into one buffer or into several.

A pointer in memory is two words: the descriptor of its buffer, and its offset in bytes.
"""

from __future__ import annotations

from dataclasses import replace

from qgpu.backends.machine.description import BUFFER_ALIGN_WORDS, DESCRIPTOR_BASE_BITS
from qgpu.ir import I32, Instruction, IntType, PtrType
from qgpu.toolchain.codegen.addresses import Pointer, access, offset_in
from qgpu.toolchain.codegen.arithmetic import ATOMICS, OLD_VALUES, logic
from qgpu.toolchain.codegen.environment import Environment
from qgpu.toolchain.codegen.nodes import EQUAL, MEMORY, Access, Arg, Expression, Node, Term, move
from qgpu.toolchain.codegen.pointer_lowering import PointerLowering
from qgpu.toolchain.codegen.refuse import refuse_instruction
from qgpu.toolchain.codegen.regions import is_uniform

_FEW = 2
"""Buffers up to which it is cheaper to try each than to compute an address."""


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
        uniform = self._env.uniformity.uniform(instruction)
        return self._add("load", instruction, Expression("mad", MEMORY, 1), where, uniform)

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
        if is_uniform(pointer.descriptor):
            where = access(pointer, width, False, self._env.emitter.value)
            return self._add(kind, instruction, expression, where, uniform=False)
        choices = self._pointers.choices(instruction.operands[0])
        if len(choices) <= _FEW and not instruction.uses:
            where = access(pointer, width, False, self._env.emitter.value)
            return self._one_of_several(kind, instruction, expression, where)
        return self._by_address(kind, instruction, pointer, width, expression)

    def _add(
        self, kind: str, instruction: Instruction, expression: Expression, where: Access, uniform: bool
    ) -> Node:
        node = self._env.emitter.add(kind, expression, uniform=uniform, access=where)
        node.volatile = bool(instruction.attrs.get("volatile"))
        return node

    def _one_of_several(
        self, kind: str, instruction: Instruction, expression: Expression, where: Access
    ) -> Node:
        """Writes to each buffer it may be, in the lanes whose it is and that have not written to one before.

        A block reads two thread registers; the buffer's, the index's and the value's would be three.
        """
        emitter = self._env.emitter
        guard, node = emitter.region.guard, None
        for descriptor in self._pointers.choices(instruction.operands[0]):
            same = Expression("cmp", where.descriptor, descriptor, relation=EQUAL)
            condition = emitter.add("value", same, uniform=False)
            condition.guard = guard
            node = self._add(
                kind, instruction, expression, replace(where, descriptor=descriptor), uniform=False
            )
            node.guard = (*guard, (condition, True))
            guard = (*guard, (condition, False))
        assert node is not None
        return node

    def _by_address(
        self, kind: str, instruction: Instruction, pointer: Pointer, width: int, expression: Expression
    ) -> Node:
        """Checks the access by a load, and writes through the descriptor of all of memory."""
        emitter = self._env.emitter
        offset = offset_in(pointer, 1, emitter.value)
        term = (Term(offset, 1),)
        checked = Access(pointer.descriptor, term, 0, width, space=pointer.space)
        self._add("check", instruction, Expression("mad", MEMORY, 1), checked, uniform=False)
        base = emitter.value(logic("and", pointer.descriptor, (1 << DESCRIPTOR_BASE_BITS) - 1))
        address = emitter.value(Expression("mad", base, 4 * BUFFER_ALIGN_WORDS, offset))
        everything = self._env.result.special("memory")
        where = Access(everything, (Term(address, 1),), 0, width, space=pointer.space)
        return self._add(kind, instruction, expression, where, uniform=False)


def _after(pointer: Pointer) -> Pointer:
    """The second word of a pointer in memory."""
    return replace(pointer, displacement=pointer.displacement + 4)


def _bytes(instruction: Instruction, type_: object) -> int:
    if not isinstance(type_, IntType) or type_.width not in (8, 16, 32):
        raise refuse_instruction(instruction, f"the machine keeps no {type_} in memory")
    return type_.bytes
