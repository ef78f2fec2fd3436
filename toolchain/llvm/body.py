"""Bodies of functions as blocks of a kernel: control flow, and device functions inlined at their calls."""

from dataclasses import dataclass, field

from qgpu.ir import BasicBlock, Constant, IntType, Location, Value
from qgpu.ir.core.instruction import Instruction
from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.arrays import legal_name
from qgpu.toolchain.llvm.emitter import MAX_INSTRUCTIONS, Emitter, Item, leaves, mapped
from qgpu.toolchain.llvm.module import UnknownInstruction
from qgpu.toolchain.llvm.unknown import what_it_needs

MAX_DEPTH = 64
"""Calls within calls."""

_FEW = 3
"""Cases of a switch that are compared one after the other."""

_CARRIES = ("add", "sub", "and", "phi", "select", "freeze", "ptrtoint", "ptrtoaddr")


@dataclass(eq=False)
class Frame:
    """A function that is being emitted; `caller` is None for the kernel itself."""

    function: ast.Function
    caller: "Frame | None" = None
    location: Location | None = None
    values: dict[str, Item] = field(default_factory=dict)
    targets: dict[str, BasicBlock] = field(default_factory=dict)
    edges: dict[tuple[str, str], list[BasicBlock]] = field(default_factory=dict)
    phis: list[tuple[ast.Instruction, Item, str]] = field(default_factory=list)
    returns: list[tuple[BasicBlock, Item, Location | None]] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return 1 + (self.caller.depth if self.caller else 0)

    def runs(self, name: str) -> bool:
        """Whether a function is being emitted here or further out."""
        return self.function.head.name == name or (self.caller is not None and self.caller.runs(name))


class Bodies:
    """Emits functions of a module into a kernel."""

    def __init__(self, x: Emitter) -> None:
        self._x = x
        self._frame: Frame
        self._count = 0

    def emit_kernel(self, function: ast.Function, arguments: list[Item]) -> None:
        """Emit a kernel's body from the builder's position on."""
        self._emit(Frame(function), arguments)

    def call(self, name: str, arguments: list[Item]) -> Item:
        """Inline a function that the module defines, and go on behind it; the value that it returns."""
        x, caller = self._x, self._frame
        if caller.runs(name):
            raise x.refusal(f"'@{name}' calls itself", "functions are inlined: write the recursion as a loop")
        if caller.depth >= MAX_DEPTH:
            raise x.refusal(f"calls are nested more than {MAX_DEPTH} deep")
        outer = (x.values, x.function_name, x.instruction, x.builder.loc)
        frame = Frame(self._function(name), caller, x.builder.loc)
        self._emit(frame, arguments)
        after = x.function.add_block("returned")
        for block, _, location in frame.returns:
            x.builder.at_end(block).loc = location
            x.builder.br(after)
        x.values, x.function_name, x.instruction, x.builder.loc = outer
        self._frame = caller
        x.builder.at_end(after)
        return self._returned(frame, after)

    def _function(self, name: str) -> ast.Function:
        try:
            return self._x.module.function(name)
        except UnknownInstruction as error:
            raise unknown_instruction(self._x, error) from None

    def _returned(self, frame: Frame, after: BasicBlock) -> Item:
        """The value of a call: that of the only return, or one by the way that led there."""
        x = self._x
        values = [value for _, value, _ in frame.returns]
        if not values:
            x.builder.trap("unreachable")
            x.builder.at_end(x.function.add_block("after"))
            return zero_of(x, frame.function.head.type)
        if len(values) == 1:
            return values[0]
        columns = [[x.as_generic(leaf) for leaf in leaves(value)] for value in values]
        merged: list[Value] = []
        for row in zip(*columns, strict=True):
            phi = x.builder.phi(row[0].type)
            for (block, _, _), value in zip(frame.returns, row, strict=True):
                phi.add_incoming(value, block)
            merged.append(phi)
        waiting = iter(merged)
        return mapped(lambda _: next(waiting), values[0])

    # ------------------------------------------------------------------ bodies

    def _emit(self, frame: Frame, arguments: list[Item]) -> None:
        x, function = self._x, frame.function
        frame.values = dict(zip((p.name for p in function.head.parameters), arguments, strict=True))
        self._frame, x.values, x.function_name = frame, frame.values, function.head.name
        order = reverse_postorder(function)
        for block in order:
            frame.targets[block.name] = x.function.add_block(_block_name(block.name))
        addresses = _addresses(function)
        x.builder.br(frame.targets[order[0].name])
        for block in order:
            self._declare_phis(frame, block, addresses)
        for block in order:
            self._emit_block(frame, block)
        for instruction, item, block_name in frame.phis:
            self._complete(frame, instruction, item, block_name)

    def _declare_phis(self, frame: Frame, block: ast.Block, addresses: set[str]) -> None:
        x = self._x
        x.builder.at_end(frame.targets[block.name])
        for instruction in block.instructions:
            if instruction.opcode != "phi":
                return
            self._turn_to(frame, instruction)
            assert instruction.type is not None and instruction.result is not None
            pointers = instruction.result in addresses
            item = self._phi(instruction.type, pointers)
            frame.values[instruction.result] = item
            frame.phis.append((instruction, item, block.name))

    def _phi(self, type_: ast.Type, is_address: bool) -> Item:
        x = self._x
        if x.layout.is_aggregate(type_):
            return tuple(self._phi(member, is_address) for _, member in x.layout.members(type_))
        return x.builder.phi(x.leaf_type(ast.Pointer() if is_address else type_))

    def _turn_to(self, frame: Frame, instruction: ast.Instruction) -> None:
        x = self._x
        x.instruction = instruction
        location = x.places.location(frame.function.head.name, instruction)
        outer = frame.location
        x.builder.loc = outer if outer is not None and outer.file != location.file else location

    def _emit_block(self, frame: Frame, block: ast.Block) -> None:
        x = self._x
        x.builder.at_end(frame.targets[block.name])
        for instruction in block.instructions:
            self._turn_to(frame, instruction)
            if instruction.opcode == "phi":
                continue
            if instruction.opcode in _TERMINATORS:
                _TERMINATORS[instruction.opcode](self, frame, block, instruction)
                return
            item = x.lower(instruction)
            if instruction.result is not None:
                frame.values[instruction.result] = item
            self._check_size()
            if x.builder.block.terminated:
                return

    def _check_size(self) -> None:
        self._count += 1
        if self._count > MAX_INSTRUCTIONS:
            message = f"with its functions inlined, the kernel has more than {MAX_INSTRUCTIONS} instructions"
            raise self._x.refusal(message)

    def _complete(self, frame: Frame, instruction: ast.Instruction, item: Item, block: str) -> None:
        """Give a phi its values, one for each block that goes there."""
        x = self._x
        assert instruction.type is not None
        done: set[str] = set()
        for value, source in instruction.incoming:
            if source in done:
                continue
            done.add(source)
            for edge in frame.edges.get((source, block), ()):
                x.builder.before(edge.terminator)
                self._turn_to(frame, instruction)
                incoming = leaves(x.item(ast.Typed(instruction.type, value)))
                for phi, leaf in zip(leaves(item), incoming, strict=True):
                    assert isinstance(phi, Instruction)
                    phi.add_incoming(self._as(leaf, phi), edge)

    def _as(self, value: Value, phi: Instruction) -> Value:
        """A value as a phi takes it."""
        x = self._x
        value = x.as_generic(value)
        if value.type is phi.type:
            return value
        if isinstance(value, Constant) and value.value == 0 and not isinstance(phi.type, IntType):
            return x.null()
        raise x.refusal("an address on one path and a number on another")

    # ------------------------------------------------------------- terminators

    def _go(self, frame: Frame, source: str, target: str) -> BasicBlock:
        """The block that an edge goes to, which is noted for its phis."""
        frame.edges.setdefault((source, target), []).append(self._x.builder.block)
        return frame.targets[target]

    def _branch(self, frame: Frame, block: ast.Block, i: ast.Instruction) -> None:
        x = self._x
        if len(set(i.labels)) == 1:
            x.builder.br(self._go(frame, block.name, i.labels[0]))
            return
        condition = x.number(0)
        then, otherwise = (self._go(frame, block.name, label) for label in i.labels)
        x.builder.condbr(condition, then, otherwise)

    def _switch(self, frame: Frame, block: ast.Block, i: ast.Instruction) -> None:
        """switch: a tree of comparisons by the cases' order as unsigned numbers."""
        x = self._x
        value, width = x.number(0), x.width(i.operands[0].type)
        default, *labels = i.labels
        numbers = [number & ((1 << width) - 1) for number in i.cases]
        cases = sorted((n, label) for n, label in zip(numbers, labels, strict=True) if label != default)
        self._dispatch(frame, block.name, value, cases, default)

    def _dispatch(
        self, frame: Frame, source: str, value: Value, cases: list[tuple[int, str]], default: str
    ) -> None:
        x = self._x
        if not cases:
            x.builder.br(self._go(frame, source, default))
            return
        assert isinstance(value.type, IntType)
        other = x.function.add_block("case")
        if len(cases) <= _FEW:
            number, label = cases[0]
            condition = x.compare("eq", value, Constant(value.type, number))
            x.builder.condbr(condition, self._go(frame, source, label), other)
            x.builder.at_end(other)
            self._dispatch(frame, source, value, cases[1:], default)
            return
        half = len(cases) // 2
        lower = x.function.add_block("case")
        x.builder.condbr(x.compare("ult", value, Constant(value.type, cases[half][0])), lower, other)
        for part, target in ((cases[:half], lower), (cases[half:], other)):
            x.builder.at_end(target)
            self._dispatch(frame, source, value, part, default)

    def _return(self, frame: Frame, block: ast.Block, i: ast.Instruction) -> None:
        x = self._x
        if frame.caller is None:
            x.builder.ret()
            return
        value: Item = x.operand(0) if i.operands else ()
        frame.returns.append((x.builder.block, value, x.builder.loc))

    def _unreachable(self, frame: Frame, block: ast.Block, i: ast.Instruction) -> None:
        self._x.builder.trap("unreachable")


_TERMINATORS = {
    "br": Bodies._branch,
    "switch": Bodies._switch,
    "ret": Bodies._return,
    "unreachable": Bodies._unreachable,
}


def zero_of(x: Emitter, type_: ast.Type) -> Item:
    return () if isinstance(type_, ast.Void) else x.constant(type_, ast.Zero())


def unknown_instruction(x: Emitter, error: UnknownInstruction):
    """The refusal of an instruction that the grammar does not take."""
    opcode, why, *notes = what_it_needs(error.text)
    message = f"unsupported instruction '{opcode}': {why}"
    debug = error.text.partition("!dbg !")[2].partition(",")[0]
    instruction = ast.Instruction(opcode, debug=debug or None, ordinal=error.ordinal)
    location = x.places.location(error.function, instruction)
    return x.places.error(message, error.function, error.ordinal, location, *notes)


def _block_name(name: str) -> str:
    return f"bb{name}" if name.isdecimal() else legal_name(name)


def reverse_postorder(function: ast.Function) -> list[ast.Block]:
    """The blocks that control can reach, each before those it goes to but for loops."""
    blocks = {block.name: block for block in function.blocks}
    entry = function.blocks[0]
    order: list[ast.Block] = []
    seen = {entry.name}
    stack = [(entry, iter(entry.terminator.labels))]
    while stack:
        labels = stack[-1][1]
        label = next((label for label in labels if label not in seen), None)
        if label is None:
            order.append(stack.pop()[0])
            continue
        seen.add(label)
        stack.append((blocks[label], iter(blocks[label].terminator.labels)))
    return order[::-1]


def _addresses(function: ast.Function) -> set[str]:
    """The names of numbers that are pointers: what ptrtoint gives, and what is made of it."""
    found: set[str] = set()
    instructions = [i for block in function.blocks for i in block.instructions if i.opcode in _CARRIES]
    size = -1
    while size != len(found):
        size = len(found)
        found.update(i.result for i in instructions if i.result is not None and _is_address(i, found))
    return found


def _is_address(i: ast.Instruction, known: set[str]) -> bool:
    if i.opcode in ("ptrtoint", "ptrtoaddr"):
        return isinstance(i.type, ast.Integer) and i.type.width >= 32
    values = [operand.value for operand in i.operands] + [value for value, _ in i.incoming]
    of = [isinstance(value, ast.Local) and value.name in known for value in values]
    if i.opcode == "sub":
        return of[0] and not of[1]
    if i.opcode == "and":
        mask = values[1]
        return of[0] and isinstance(mask, ast.Number) and mask.number < 0
    return any(of)
