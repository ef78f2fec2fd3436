"""Verifier: types by the opcode table, dominance, phis, terminators, guards, use lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qgpu.ir.analysis.dominators import DominatorTree
from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Function, Module
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import OPCODES, AttrInfo
from qgpu.ir.core.printer import print_instruction
from qgpu.ir.core.types import I1, I32, I64, IntType, PtrType, SlotType, Type
from qgpu.ir.core.values import Argument, Constant, Use, Value

LINEARISED_ONLY = ("brany", "get", "set", "slot")


class VerifyError(Exception):
    """A function breaks a rule of the IR, in `block` and `instruction` where the rule is about one."""

    def __init__(
        self,
        message: str,
        function: Function,
        block: BasicBlock | None = None,
        instruction: Instruction | None = None,
    ) -> None:
        place = f"kernel '@{function.name}'"
        if block is not None:
            place += f", block '{block.name}'"
        if instruction is not None:
            place += f", in '{print_instruction(instruction)}'"
        super().__init__(f"{place}: {message}")
        self.message = message
        self.function = function
        self.block = block
        self.instruction = instruction


def _is_int(type_: Type) -> bool:
    return isinstance(type_, IntType)


def _is_scalar(type_: Type) -> bool:
    return isinstance(type_, IntType | PtrType)


PATTERNS: dict[str, Callable[[Type], bool]] = {
    "T": _is_int,
    "A": _is_int,
    "B": _is_int,
    "V": _is_scalar,
    "ptr": lambda type_: isinstance(type_, PtrType),
    "slot": lambda type_: isinstance(type_, SlotType),
    "i1": lambda type_: type_ is I1,
    "i32": lambda type_: type_ is I32,
    "i64": lambda type_: type_ is I64,
    "void": lambda type_: str(type_) == "void",
}


def _is_attribute(info: AttrInfo, value: Any) -> bool:
    """Whether a value is of an attribute's kind."""
    kinds: dict[str, Callable[[Any], bool]] = {
        "int": lambda v: isinstance(v, int) and not isinstance(v, bool),
        "bool": lambda v: isinstance(v, bool),
        "enum": lambda v: v in info.choices,
        "type": lambda v: isinstance(v, Type) and _is_scalar(v),
        "name": lambda v: isinstance(v, str),
        "block": lambda v: isinstance(v, BasicBlock),
        "blocks": lambda v: isinstance(v, tuple) and all(isinstance(block, BasicBlock) for block in v),
        "text": lambda v: isinstance(v, str),
        "ints": lambda v: isinstance(v, tuple) and all(isinstance(number, int) for number in v),
    }
    return kinds[info.kind](value)


class Verifier:
    """Checks one function; `run` raises VerifyError at the first broken rule."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.predecessors: dict[BasicBlock, list[BasicBlock]] = {}

    def fail(self, message: str, place: BasicBlock | Instruction | None = None) -> VerifyError:
        if isinstance(place, Instruction):
            return VerifyError(message, self.function, place.parent, place)
        return VerifyError(message, self.function, place)

    def run(self) -> None:
        self.check_blocks()
        self.predecessors = self.function.predecessors()
        if self.predecessors[self.function.entry]:
            raise self.fail("the entry block has a predecessor", self.function.entry)
        for instruction in self.function.instructions:
            self.check_attributes(instruction)
            self.check_signature(instruction)
            self.check_rules(instruction)
        self.check_dominance()
        self.check_returns()

    def check_blocks(self) -> None:
        function = self.function
        if not function.blocks:
            raise self.fail("there are no blocks")
        names = [block.name for block in function.blocks]
        for block in function.blocks:
            if names.count(block.name) > 1:
                raise self.fail("two blocks have this name", block)
            if block.parent is not function:
                raise self.fail("the block's parent is another function", block)
            self.check_terminator(block)
        for block in function.blocks:
            if any(successor.parent is not function for successor in block.successors):
                raise self.fail("goes to a block of another function", block.terminator)

    def check_terminator(self, block: BasicBlock) -> None:
        if not block.terminated:
            raise self.fail("does not end in a terminator", block)
        for instruction in block.instructions:
            if instruction.parent is not block:
                raise self.fail("the instruction's parent is another block", instruction)
            if instruction.info.terminator and instruction is not block.instructions[-1]:
                raise self.fail("a terminator stands before the block's end", instruction)

    def check_attributes(self, instruction: Instruction) -> None:
        rows = instruction.info.attrs
        for name in instruction.attrs:
            if name not in rows:
                raise self.fail(f"'{instruction.op}' has no attribute '{name}'", instruction)
        for name, info in rows.items():
            if name not in instruction.attrs:
                if info.required:
                    raise self.fail(f"the attribute '{name}' is missing", instruction)
            elif not _is_attribute(info, instruction.attrs[name]):
                raise self.fail(f"the attribute '{name}' is not of kind '{info.kind}'", instruction)

    def check_signature(self, instruction: Instruction) -> None:
        """Matches operand and result types against the opcode's patterns."""
        info = instruction.info
        if info.variadic:
            return
        if len(instruction.operands) != len(info.operands):
            raise self.fail(
                f"takes {len(info.operands)} operands, has {len(instruction.operands)}", instruction
            )
        bound: dict[str, Type] = {}
        types = [operand.type for operand in instruction.operands]
        for pattern, type_ in zip((*info.operands, info.result), (*types, instruction.type), strict=True):
            if not PATTERNS[pattern](type_):
                raise self.fail(f"the type {type_} does not match '{pattern}' of its signature", instruction)
            if pattern in "TVAB" and bound.setdefault(pattern, type_) is not type_:
                raise self.fail(f"the types {bound[pattern]} and {type_} should be the same", instruction)

    def check_rules(self, instruction: Instruction) -> None:
        """The rules that single opcodes have beyond their signature."""
        if instruction.op in LINEARISED_ONLY and not self.function.linearised:
            raise self.fail("belongs to linearised functions", instruction)
        rule = RULES.get(instruction.op)
        message = rule(self, instruction) if rule else None
        if message:
            raise self.fail(message, instruction)
        for index, operand in enumerate(instruction.operands):
            self.check_use(operand, Use(instruction, index))

    def check_use(self, value: Value, use: Use) -> None:
        """The value belongs to this function and lists the use."""
        place = use.user
        if isinstance(value, Constant):
            return
        if not any(u.user is use.user and u.index == use.index for u in value.uses):
            raise self.fail("a value does not list this use of it", place)
        if isinstance(value, Argument):
            if value not in self.function.args:
                raise self.fail("uses an argument of another function", place)
            return
        assert isinstance(value, Instruction)
        if (
            value.parent is None
            or value.parent.parent is not self.function
            or value not in value.parent.instructions
        ):
            raise self.fail(f"uses a value ('{value.op}') that is not in the function", place)

    def check_returns(self) -> None:
        """In lockstep the first `ret` ends the kernel for all lanes."""
        returns = [block.terminator for block in self.function.blocks if block.terminator.op == "ret"]
        if self.function.linearised and len(returns) > 1:
            raise self.fail("a linearised function has one 'ret'", returns[1])

    def check_dominance(self) -> None:
        tree = DominatorTree(self.function)
        for block in self.function.blocks:
            self.check_guard(block)
            for use in [Use(i, n) for i in block.instructions for n in range(len(i.operands))]:
                assert isinstance(use.user, Instruction)
                self.check_dominated(tree, use.user.operands[use.index], use)
            for index, literal in enumerate(block.guard):
                self.check_dominated(tree, literal.value, Use(block, index))

    def check_dominated(self, tree: DominatorTree, value: Value, use: Use) -> None:
        block = use.user if isinstance(use.user, BasicBlock) else use.user.block
        if isinstance(use.user, Instruction) and use.user.op == "phi":
            block = use.user.attrs["blocks"][use.index]
        if not tree.reachable(block) or not isinstance(value, Instruction):
            return
        if not tree.reachable(value.block) or not tree.value_dominates_use(value, use):
            raise self.fail(
                f"the definition '{print_instruction(value)}' does not dominate this use", use.user
            )

    def check_guard(self, block: BasicBlock) -> None:
        if block.guard and not self.function.linearised:
            raise self.fail("a guard belongs to linearised functions", block)
        for index, literal in enumerate(block.guard):
            type_ = literal.value.type
            if type_ is not I1 and not (isinstance(type_, SlotType) and type_.element is I1):
                raise self.fail(f"a guard's literal is an i1 or a slot<i1>, not {type_}", block)
            if isinstance(literal.value, Constant):
                raise self.fail("a guard's literal is a constant", block)
            self.check_use(literal.value, Use(block, index))
        self.check_guard_updates(block)

    def check_guard_updates(self, block: BasicBlock) -> None:
        """A block may change its own guard only at its end: literals are read anew by each instruction."""
        own = {literal.value for literal in block.guard}
        updates = [i.op == "set" and i.operands[0] in own for i in block.instructions[:-1]]
        if updates != sorted(updates):
            raise self.fail("an instruction follows a change of the block's guard", block)


def _check_phi(verifier: Verifier, phi: Instruction) -> str | None:
    block, sources = phi.block, phi.attrs["blocks"]
    position = block.instructions.index(phi)
    if any(other.op != "phi" for other in block.instructions[:position]):
        return "a phi stands after another instruction"
    if verifier.function.linearised:
        return "a linearised function has no phis"
    if len(sources) != len(phi.operands):
        return "has not as many values as blocks"
    if len(set(sources)) != len(sources) or set(sources) != set(verifier.predecessors[block]):
        names = ", ".join(source.name for source in verifier.predecessors[block])
        return f"its blocks are not the predecessors ({names})"
    if not _is_scalar(phi.type) or any(operand.type is not phi.type for operand in phi.operands):
        return "a value has another type than the phi"
    return None


def _check_widening(verifier: Verifier, cast: Instruction) -> str | None:
    before, after = cast.operands[0].type, cast.type
    assert isinstance(before, IntType) and isinstance(after, IntType)
    return None if before.width < after.width else f"does not widen {before} to {after}"


def _check_narrowing(verifier: Verifier, cast: Instruction) -> str | None:
    before, after = cast.operands[0].type, cast.type
    assert isinstance(before, IntType) and isinstance(after, IntType)
    return None if before.width > after.width else f"does not narrow {before} to {after}"


def _check_load(verifier: Verifier, load: Instruction) -> str | None:
    memory, extended = load.attrs["type"], "ext" in load.attrs
    if not extended:
        return (
            None if memory is load.type else f"loads {memory} into {load.type} and does not say how to extend"
        )
    if (
        not isinstance(memory, IntType)
        or not isinstance(load.type, IntType)
        or memory.width >= load.type.width
    ):
        return f"cannot extend {memory} to {load.type}"
    return None


def _check_store(verifier: Verifier, store: Instruction) -> str | None:
    memory, value = store.attrs["type"], store.operands[1].type
    if memory is value:
        return None
    if not isinstance(memory, IntType) or not isinstance(value, IntType) or memory.width > value.width:
        return f"cannot store {value} as {memory}"
    return None


def _check_param(verifier: Verifier, param: Instruction) -> str | None:
    args, index = verifier.function.args, param.attrs["index"]
    if not 0 <= index < len(args):
        return f"there is no parameter {index}"
    return None if args[index].type is param.type else f"parameter {index} has the type {args[index].type}"


def _check_addrof(verifier: Verifier, addrof: Instruction) -> str | None:
    for array in verifier.function.shared:
        if array.name == addrof.attrs["name"]:
            assert isinstance(addrof.type, PtrType)
            return None if array.space == addrof.type.space else f"the array lies in {array.space} memory"
    return f"there is no array '@{addrof.attrs['name']}'"


def _check_slot(verifier: Verifier, declaration: Instruction) -> str | None:
    return None if declaration.block is verifier.function.entry else "is declared outside the entry block"


def _check_access(verifier: Verifier, access: Instruction) -> str | None:
    slot_type = access.operands[0].type
    accessed = access.type if access.op == "get" else access.operands[1].type
    assert isinstance(slot_type, SlotType)
    return None if slot_type.element is accessed else f"the slot holds {slot_type.element}, not {accessed}"


def _check_ptradd(verifier: Verifier, ptradd: Instruction) -> str | None:
    return None if ptradd.type is ptradd.operands[0].type else "the result is in another address space"


def _check_atomic(verifier: Verifier, atomic: Instruction) -> str | None:
    return "memory is not combined in bits" if atomic.type is I1 else None


def _check_ptrcast(verifier: Verifier, cast: Instruction) -> str | None:
    before, after = cast.operands[0].type, cast.type
    if not isinstance(before, PtrType) or not isinstance(after, PtrType):
        return "the result is no pointer"
    generic = "generic" in (before.space, after.space) and before.space != after.space
    return None if generic else "casts to generic or from it"


def _check_printf(verifier: Verifier, printf: Instruction) -> str | None:
    fits = all(isinstance(operand.type, IntType) for operand in printf.operands)
    return None if fits else "prints what is no integer"


def _check_icmp(verifier: Verifier, icmp: Instruction) -> str | None:
    signed = icmp.attrs["pred"].startswith("s")
    return "pointers compare as unsigned" if signed and isinstance(icmp.operands[0].type, PtrType) else None


def _check_barrier(verifier: Verifier, barrier: Instruction) -> str | None:
    literals = len(barrier.block.guard)
    if any(not 0 <= index < literals for index in barrier.attrs.get("returned", ())):
        return "'returned' names a literal that the guard does not have"
    return None


RULES: dict[str, Callable[[Verifier, Instruction], str | None]] = {
    "phi": _check_phi,
    "sext": _check_widening,
    "zext": _check_widening,
    "trunc": _check_narrowing,
    "load": _check_load,
    "store": _check_store,
    "param": _check_param,
    "addrof": _check_addrof,
    "slot": _check_slot,
    "get": _check_access,
    "set": _check_access,
    "ptradd": _check_ptradd,
    "icmp": _check_icmp,
    "barrier": _check_barrier,
    "barrier_reduce": _check_barrier,
    "ptrcast": _check_ptrcast,
    "atomicrmw": _check_atomic,
    "cmpxchg": _check_atomic,
    "printf": _check_printf,
}
assert RULES.keys() <= OPCODES.keys()


def verify(unit: Module | Function) -> None:
    """Checks all rules of the IR; VerifyError names the block and the instruction that break one."""
    for function in unit.functions if isinstance(unit, Module) else [unit]:
        Verifier(function).run()
