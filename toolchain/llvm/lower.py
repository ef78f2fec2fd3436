"""Kernels of a module in LLVM IR to functions of the SIMT IR."""

from collections.abc import Collection, Iterator

from qgpu.ir import Function, Module, PtrType, Type, Value, integer, ptr
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.passes.dead_code import remove_dead_instructions, remove_unreachable_blocks
from qgpu.ir.passes.promote_local import PromoteLocal
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source
from qgpu.toolchain.llvm import aggregate_rules, ast, integer_rules, memory_rules
from qgpu.toolchain.llvm.arrays import legal_name
from qgpu.toolchain.llvm.body import Bodies, unknown_instruction
from qgpu.toolchain.llvm.call_rules import Calls
from qgpu.toolchain.llvm.emitter import Emitter, Item
from qgpu.toolchain.llvm.layout import Unsized
from qgpu.toolchain.llvm.memory_rules import store
from qgpu.toolchain.llvm.module import Module as LlvmModule
from qgpu.toolchain.llvm.module import UnknownInstruction, read_module
from qgpu.toolchain.llvm.places import Places
from qgpu.toolchain.llvm.reader import normal_form
from qgpu.toolchain.llvm.spaces import settle_spaces

_THREAD_LIMITS = ("nvvm.maxntid", "nvvm.reqntid")
_RULES = {**integer_rules.RULES, **aggregate_rules.RULES, **memory_rules.RULES}


def read(source: Source) -> LlvmModule:
    """The module of a text; raises DiagnosticError where LLVM does not take it."""
    return read_module(normal_form(source))


def lower_module(module: LlvmModule, source: Source, kernels: Collection[str] | None = None) -> Module:
    """The IR of a module's kernels, or of those named by `kernels`.

    Raises DiagnosticError, at the line of the .ll file and with a note about the source line it was compiled
    from, where a kernel uses what has no counterpart in the IR.
    """
    places = Places(source, module)
    heads = [head for head in module.kernels if kernels is None or head.name in kernels]
    functions: list[Function] = []
    errors: list[Diagnostic] = []
    for head in heads:
        try:
            functions.append(_Kernel(head, module, places).lower())
        except DiagnosticError as error:
            errors += error.diagnostics
    if errors:
        raise DiagnosticError(*dict.fromkeys(errors))
    return Module(functions)


class _Kernel:
    """Lowers one kernel."""

    def __init__(self, head: ast.Head, module: LlvmModule, places: Places) -> None:
        self._head = head
        self._module = module
        self._places = places
        self._function = Function(legal_name(head.name), self._arguments(), attrs=self._attributes())
        self._x = Emitter(self._function, module, places)
        bodies = Bodies(self._x)
        rules = {**_RULES, "call": Calls(self._x, bodies).lower}
        self._bodies = bodies
        self._x.lower = lambda i: rules[i.opcode](self._x, i)

    def lower(self) -> Function:
        x, function = self._x, self._function
        try:
            body = self._module.function(self._head.name)
        except UnknownInstruction as error:
            raise unknown_instruction(x, error) from None
        x.function_name = self._head.name
        x.instruction = body.blocks[0].instructions[0]
        x.builder.loc = x.places.location(self._head.name, x.instruction)
        x.builder.at_end(function.add_block("entry"))
        self._bodies.emit_kernel(body, list(self._values()))
        self._clean()
        self._check_pointers()
        return function

    # -------------------------------------------------------------- parameters

    def _arguments(self) -> list[tuple[str, Type]]:
        return [
            (name, self._argument_type(leaf))
            for parameter in self._head.parameters
            for name, _, leaf in self._parts(parameter)
        ]

    def _parts(self, parameter: ast.Parameter) -> Iterator[tuple[str, int, ast.Type]]:
        """The arguments for a parameter: name, offset in it, type; of a structure one per member."""
        name = self._name(parameter)
        type_, is_structure = self._passed(parameter)
        for offset, leaf in self._module.layout.leaves(type_):
            yield (f"{name}.{offset}" if is_structure else name), offset, leaf

    def _passed(self, parameter: ast.Parameter) -> tuple[ast.Type, bool]:
        """The type that is passed, and whether in parts."""
        byval = parameter.attribute("byval")
        type_ = byval.value if byval is not None else parameter.type
        assert isinstance(type_, ast.Type)
        try:
            return type_, byval is not None or self._module.layout.is_aggregate(type_)
        except Unsized:
            raise self._refusal(f"parameter '{self._name(parameter)}' is of a type without a size") from None

    def _name(self, parameter: ast.Parameter) -> str:
        name = legal_name(parameter.name)
        return f"{legal_name(self._head.name)}_param_{name}" if name.isdecimal() else name

    def _argument_type(self, type_: ast.Type) -> Type:
        if isinstance(type_, ast.Pointer):
            if type_.space == 3:
                raise self._refusal("a parameter points to shared memory", "pass an index into it")
            return ptr("global")
        bits = 8 * self._module.layout.store_size(type_)
        if bits not in (8, 16, 32, 64):
            raise self._refusal(f"a parameter is of type '{type_}'", "use numbers of 8, 16, 32 or 64 bits")
        return integer(bits)

    def _refusal(self, message: str, *notes: str) -> DiagnosticError:
        return self._places.entity_error(message, self._head.name, *notes)

    def _attributes(self) -> dict[str, object]:
        """What the source says of launches, and the declared parameters where one is passed in parts."""
        attributes: dict[str, object] = {}
        limits = [
            _product(str(found.value))
            for found in self._module.attributes(self._head)
            if found.name in _THREAD_LIMITS
        ]
        if limits:
            attributes["max_threads"] = min(limits)
        passed = [(parameter, *self._passed(parameter)) for parameter in self._head.parameters]
        if any(is_structure for _, _, is_structure in passed):
            size = self._module.layout.size
            texts = [
                f"{self._name(parameter)}[{size(type_)}]" if is_structure else self._name(parameter)
                for parameter, type_, is_structure in passed
            ]
            attributes["parameters"] = ", ".join(texts)
        return attributes

    def _values(self) -> Iterator[Item]:
        """The parameters' values; one that is passed in memory lies in an array of the thread's."""
        waiting = iter(self._function.args)
        for parameter in self._head.parameters:
            parts: list[tuple[int, ast.Type, Value]] = [
                (offset, leaf, next(waiting)) for _, offset, leaf in self._parts(parameter)
            ]
            if parameter.attribute("byval") is not None:
                yield self._in_memory(parameter, parts)
            else:
                yield self._as_item(parameter.type, iter(parts))

    def _as_item(self, type_: ast.Type, parts: Iterator[tuple[int, ast.Type, Value]]) -> Item:
        if self._module.layout.is_aggregate(type_):
            return tuple(self._as_item(member, parts) for _, member in self._module.layout.members(type_))
        _, leaf, value = next(parts)
        return value if isinstance(value.type, PtrType) else self._x.resized(value, self._x.held(leaf))

    def _in_memory(self, parameter: ast.Parameter, parts: list[tuple[int, ast.Type, Value]]) -> Value:
        x, (type_, _) = self._x, self._passed(parameter)
        array = x.arrays.local(parameter.name, x.size(type_), x.layout.align(type_))
        x.local_types[array.name] = type_
        pointer = x.builder.addrof(array.name, "local")
        for offset, leaf, value in parts:
            store(x, x.displaced(pointer, offset), value, leaf)
        return pointer

    # ----------------------------------------------------------------- the end

    def _clean(self) -> None:
        """Keep local arrays in values where every access is at a known place, and drop what nothing uses."""
        function = self._function
        remove_unreachable_blocks(function)
        settle_spaces(function)
        PromoteLocal().run(function)
        settle_spaces(function)
        remove_dead_instructions(function)
        used = {i.attrs["name"] for i in function.instructions if i.op == "addrof"}
        function.shared[:] = [array for array in function.shared if array.name in used]
        function.shared.sort(key=lambda array: array.size == 0)

    def _check_pointers(self) -> None:
        """Refuse pointers that go through memory which the kernel's own code does not fill."""
        for access, refusal in self._x.pointer_accesses:
            if access.parent is not None and not _in_own_memory(access.operands[0], set()):
                raise refusal()


def _product(text: str) -> int:
    result = 1
    for number in text.split(","):
        result *= int(number)
    return result


def _in_own_memory(pointer: Value, seen: set[Value]) -> bool:
    """Whether a pointer can only point into arrays of the kernel."""
    if pointer in seen:
        return True
    seen.add(pointer)
    if not isinstance(pointer, Instruction):
        return False
    if pointer.op == "addrof":
        return True
    if pointer.op in ("ptradd", "ptrcast"):
        return _in_own_memory(pointer.operands[0], seen)
    if pointer.op in ("phi", "select"):
        operands = [value for value in pointer.operands if isinstance(value.type, PtrType)]
        return all(_in_own_memory(value, seen) for value in operands)
    return False
