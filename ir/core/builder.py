"""Builder: creates instructions at a position of a block, with result types from the opcode table."""

from __future__ import annotations

from typing import Any

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import OPCODES
from qgpu.ir.core.types import I1, I32, I64, VOID, IntType, PtrType, SlotType, Type, ptr, slot
from qgpu.ir.core.values import Constant, Location, Value


def result_type(op: str, operands: tuple[Value, ...]) -> Type | None:
    """The result type the operands fix; None where it has to be given (casts, loads, phis ...)."""
    info = OPCODES[op]
    if info.result == "void":
        return VOID
    if info.result in ("i1", "i32", "i64"):
        return {"i1": I1, "i32": I32, "i64": I64}[info.result]
    if op == "get":
        slot_type = operands[0].type
        assert isinstance(slot_type, SlotType)
        return slot_type.element
    if info.result in info.operands:
        return operands[info.operands.index(info.result)].type
    return None


class Builder:
    """Creates instructions where it is positioned; `loc` is given to each of them."""

    def __init__(self, block: BasicBlock | None = None, loc: Location | None = None) -> None:
        self._block = block
        self._before: Instruction | None = None
        self.loc = loc

    @property
    def block(self) -> BasicBlock:
        """The block the builder writes to; ValueError before it was positioned."""
        if self._block is None:
            raise ValueError("the builder has no position")
        return self._block

    def at_end(self, block: BasicBlock) -> Builder:
        """Positions at the end of a block."""
        self._block, self._before = block, None
        return self

    def at_start(self, block: BasicBlock) -> Builder:
        """Positions after the phis of a block."""
        self._block = block
        self._before = next((i for i in block.instructions if i.op != "phi"), None)
        return self

    def before(self, instruction: Instruction) -> Builder:
        """Positions before an instruction, and takes over its location."""
        self._block, self._before, self.loc = instruction.block, instruction, instruction.loc
        return self

    def insert(self, instruction: Instruction) -> Instruction:
        """Puts an instruction at the position."""
        instructions = self.block.instructions
        return self.block.insert(
            instructions.index(self._before) if self._before else len(instructions), instruction
        )

    def emit(
        self,
        op: str,
        *operands: Value,
        type: Type | None = None,
        attrs: dict[str, Any] | None = None,
        name: str = "",
    ) -> Instruction:
        """Creates any instruction; `type` is needed where the operands do not fix the result type."""
        fixed = type or result_type(op, operands)
        if fixed is None:
            raise ValueError(f"'{op}' needs a result type")
        return self.insert(Instruction(op, fixed, operands, attrs, self.loc, name))

    def icmp(self, pred: str, a: Value, b: Value, name: str = "") -> Instruction:
        return self.emit("icmp", a, b, attrs={"pred": pred}, name=name)

    def select(self, condition: Value, a: Value, b: Value, name: str = "") -> Instruction:
        return self.emit("select", condition, a, b, name=name)

    def cast(self, op: str, value: Value, type: Type, name: str = "") -> Value:
        """`sext`, `zext` or `trunc` to a type; the value itself where it has that type already."""
        return value if value.type is type else self.emit(op, value, type=type, name=name)

    def sreg(self, register: str, name: str = "") -> Instruction:
        return self.emit("sreg", attrs={"name": register}, name=name)

    def param(self, index: int, type: Type, name: str = "") -> Instruction:
        return self.emit("param", type=type, attrs={"index": index}, name=name)

    def addrof(self, array: str, space: str, name: str = "") -> Instruction:
        return self.emit("addrof", type=ptr(space), attrs={"name": array}, name=name)

    def ptradd(
        self, base: Value, index: Value, scale: int = 1, disp: int = 0, signed: bool = True, name: str = ""
    ) -> Instruction:
        """The pointer `base` moved by ext(index) * scale + disp bytes."""
        attrs = {"scale": scale, "disp": disp, "signed": signed}
        return self.emit("ptradd", base, index, attrs=attrs, name=name)

    def load(
        self,
        pointer: Value,
        type: IntType | PtrType,
        result: IntType | None = None,
        ext: str = "zero",
        volatile: bool = False,
        name: str = "",
    ) -> Instruction:
        """Loads memory type `type`; a wider `result` type takes it extended as `ext` says."""
        attrs: dict[str, Any] = {"type": type}
        if result is not None and result is not type:
            attrs["ext"] = ext
        if volatile:
            attrs["volatile"] = True
        return self.emit("load", pointer, type=result or type, attrs=attrs, name=name)

    def store(
        self, pointer: Value, value: Value, type: Type | None = None, volatile: bool = False
    ) -> Instruction:
        """Stores the low bits of `value`, as memory type `type` (default: the value's own)."""
        attrs: dict[str, Any] = {"type": type or value.type}
        if volatile:
            attrs["volatile"] = True
        return self.emit("store", pointer, value, attrs=attrs)

    def atomicrmw(self, kind: str, pointer: Value, value: Value, name: str = "") -> Instruction:
        return self.emit("atomicrmw", pointer, value, attrs={"kind": kind}, name=name)

    def phi(self, type: Type, name: str = "") -> Instruction:
        """An empty phi; `add_incoming` gives it its pairs."""
        return self.emit("phi", type=type, attrs={"blocks": ()}, name=name)

    def slot(self, element: Type, name: str = "", uniform: bool = False) -> Instruction:
        attrs = {"uniform": True} if uniform else None
        return self.emit("slot", type=slot(element), attrs=attrs, name=name)

    def get(self, variable: Value, name: str = "") -> Instruction:
        return self.emit("get", variable, name=name)

    def set(self, variable: Value, value: Value) -> Instruction:
        return self.emit("set", variable, value)

    def barrier(self) -> Instruction:
        return self.emit("barrier")

    def br(self, target: BasicBlock) -> Instruction:
        return self.emit("br", attrs={"target": target})

    def condbr(self, condition: Value, then: BasicBlock, otherwise: BasicBlock) -> Instruction:
        return self.emit("condbr", condition, attrs={"then": then, "else": otherwise})

    def brany(self, condition: Value, then: BasicBlock, otherwise: BasicBlock) -> Instruction:
        return self.emit("brany", condition, attrs={"then": then, "else": otherwise})

    def ret(self) -> Instruction:
        return self.emit("ret")

    def trap(self, kind: str = "trap") -> Instruction:
        return self.emit("trap", attrs={"kind": kind})


def constant(type_: Type, value: int) -> Constant:
    """An integer constant; ValueError where the type is no integer type."""
    if not isinstance(type_, IntType):
        raise ValueError(f"no constant of type {type_}")
    return Constant(type_, value)
