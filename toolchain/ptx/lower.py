"""Syntax tree to SIMT IR."""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from qgpu.ir import (
    Array,
    BasicBlock,
    Constant,
    Function,
    Instruction,
    Module,
    PtrType,
    Type,
    Value,
    integer,
    ptr,
)
from qgpu.ir.core.builder import constant
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source, failure
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.calls import Routines
from qgpu.toolchain.ptx.cfg import BRANCH, ENDS, Block, Site, predecessors, reverse_postorder
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.explain import explain
from qgpu.toolchain.ptx.graph_builder import build_graph
from qgpu.toolchain.ptx.names import Passed, Register, Scope, is_structure
from qgpu.toolchain.ptx.passing import ARGUMENT, Component, pass_in_registers
from qgpu.toolchain.ptx.places import Places
from qgpu.toolchain.ptx.pointer_rules import pointer_lowering
from qgpu.toolchain.ptx.pointer_targets import Pointers
from qgpu.toolchain.ptx.pointers import infer_pointers
from qgpu.toolchain.ptx.rule import Rule
from qgpu.toolchain.ptx.rules import find_rule, is_plain_transfer, what_it_needs
from qgpu.toolchain.ptx.special_registers import RESERVED
from qgpu.toolchain.ptx.ssa import Accesses, Node, Phi, Undefined, Values, build_values
from qgpu.toolchain.ptx.variables import Arrays, array_name

_ADDRESS_BITS = 64
_THREAD_LIMITS = ("maxntid", "reqntid")
_MOST_ERRORS = 20
_TEXTURES = ("texref", "samplerref", "surfref")


def lower_module(
    module: ast.Module, source: Source, *, cuda: Source | None = None, kernels: Collection[str] | None = None
) -> Module:
    """The IR of a module's kernels, or of those named by `kernels`.

    `source` is the PTX text the tree was parsed from, `cuda` the CUDA source it was compiled from, if that is
    at hand. Raises DiagnosticError, at the PTX line and with a note about the CUDA line, where a kernel uses
    what has no counterpart in the IR.
    """
    if module.address_size != _ADDRESS_BITS:
        raise failure(f"addresses of {module.address_size} bits are not supported", file=source.name)
    places = Places(source, cuda, module.files)
    outer = module_scope(module)
    routines = Routines(module, outer, places)
    entries = [entry for entry in module.entries if kernels is None or entry.name in kernels]
    return Module([_lower_entry(entry, outer, routines, places) for entry in entries])


def module_scope(module: ast.Module) -> Scope:
    """What names mean outside of functions."""
    outer = Scope(meanings={RESERVED.name: RESERVED})
    outer.meanings.update({variable.name: variable for variable in module.variables})
    for item in module.items:
        if isinstance(item, ast.Registers):
            outer.declare(item)
    return outer


@dataclass(frozen=True)
class _Kernel:
    """What is known of a kernel when its function is emitted."""

    entry: ast.Entry
    blocks: list[Block]
    components: tuple[Component, ...]
    rules: dict[Site, Rule]
    forms: dict[Site, dict[str, str | None]]
    values: Values
    pointers: Pointers

    @property
    def loaded(self) -> set[Register]:
        """The registers of the arguments that are read."""
        sites = (site for site in self.rules if site.instruction.opcode == ARGUMENT)
        return {register for site in sites for register in self.values.writes[site]}

    def before(self, site: Site) -> Iterator[Site]:
        """The instructions that run before one, the last first, as long as blocks have one predecessor."""
        sources = predecessors(self.blocks)
        block = next(block for block in self.blocks if site in block.sites)
        yield from reversed(block.sites[: block.sites.index(site)])
        seen = {block}
        while len(sources[block]) == 1 and sources[block][0] not in seen:
            (block,) = sources[block]
            seen.add(block)
            yield from reversed(block.sites)


def _lower_entry(entry: ast.Entry, outer: Scope, routines: Routines, places: Places) -> Function:
    _refuse_textures(entry, places)
    parameters = [Passed.declared(parameter) for parameter in entry.parameters]
    for passed, parameter in zip(parameters, entry.parameters, strict=True):
        passed.kernel = parameter
    scope = Scope(outer, {passed.name: passed for passed in parameters})
    blocks = build_graph(entry, scope, routines, places)
    components = pass_in_registers(blocks, parameters, places)
    rules, forms = _find_rules(blocks, places)
    values = build_values(blocks, _accesses(blocks, rules, places))
    pointers = infer_pointers(values, rules, components, places)
    kernel = _Kernel(entry, blocks, components, rules, forms, values, pointers)
    return _EntryLowering(kernel, outer, routines, places).run()


def _refuse_textures(entry: ast.Entry, places: Places) -> None:
    found = [
        parameter
        for parameter in entry.parameters
        if parameter.type in _TEXTURES or (parameter.pointee and parameter.pointee.space in _TEXTURES)
    ]
    if found:
        message = "parameter '{}' needs texture or surface memory"
        raise DiagnosticError(*(places.diagnostic(message.format(p.name), p.position) for p in found))


def _find_rules(
    blocks: list[Block], places: Places
) -> tuple[dict[Site, Rule], dict[Site, dict[str, str | None]]]:
    """The row of every instruction, and its form's groups; all that have none are reported at once."""
    rules: dict[Site, Rule] = {}
    forms: dict[Site, dict[str, str | None]] = {}
    closings = [block.closing for block in blocks if block.closing is not None]
    unsupported = [
        site for site in closings if _is_transfer(site) and not is_plain_transfer(site.instruction)
    ]
    for site in (site for block in blocks for site in block.sites):
        found = find_rule(site.instruction)
        if found is None:
            unsupported.append(site)
        else:
            rules[site], forms[site] = found
    _refuse(unsupported, places)
    return rules, forms


def _is_transfer(site: Site) -> bool:
    return site.instruction.opcode == BRANCH or site.instruction.opcode in ENDS


def _refuse(sites: list[Site], places: Places) -> None:
    """Report unsupported instructions in the order of the text, each once."""
    ordered = sorted(dict.fromkeys(sites), key=lambda site: site.instruction.position.line)
    if ordered:
        raise DiagnosticError(*dict.fromkeys(_unsupported(site, places) for site in ordered))


def _unsupported(site: Site, places: Places) -> Diagnostic:
    instruction = site.instruction
    message = f"unsupported instruction '{instruction.name}': {what_it_needs(instruction)}"
    return places.diagnostic(message, instruction.position, site.location)


def _accesses(blocks: list[Block], rules: dict[Site, Rule], places: Places) -> dict[Site | Block, Accesses]:
    accesses: dict[Site | Block, Accesses] = {site: rule.accesses(site) for site, rule in rules.items()}
    for block in blocks:
        if block.guard is not None:
            accesses[block] = Accesses((_guard_register(block, places),))
    return accesses


def _guard_register(block: Block, places: Places) -> Register:
    assert block.guard is not None and block.closing is not None
    name = block.guard.predicate
    register = block.closing.scope.register(name.text)
    if register is None or register.type != "pred":
        raise places.error(f"'{name}' is not a predicate register", name.position, block.closing.location)
    return register


class _EntryLowering:
    """Emits the function of one kernel."""

    def __init__(self, kernel: _Kernel, outer: Scope, routines: Routines, places: Places) -> None:
        self._kernel = kernel
        self._values = kernel.values
        self._places = places
        self._function = _declare(kernel)
        registers = [component.register for component in kernel.components]
        arguments = dict(zip(registers, self._function.args, strict=True))
        arrays = Arrays(self._function, outer, routines.address, places)
        self._emitter = Emitter(
            self._function, arguments, arrays, kernel.pointers, routines.address, kernel.before, places
        )
        self._phis: list[tuple[Phi, Instruction]] = []
        self._targets: dict[Block, BasicBlock] = {}
        self._errors: list[Diagnostic] = []
        self._tainted: set[Node] = set()

    def run(self) -> Function:
        for block in self._kernel.blocks:
            self._targets[block] = self._function.add_block(block.name)
        for block in self._kernel.blocks:
            self._emit_phis(block)
        for block in reverse_postorder(self._kernel.blocks[0]):
            self._emit_block(block)
        for phi, instruction in self._phis:
            tainted = not self._tainted.isdisjoint(phi.operands.values())
            self._trying(lambda phi=phi, instruction=instruction: self._complete(phi, instruction), tainted)
        if self._errors:
            raise DiagnosticError(*list(dict.fromkeys(self._errors))[:_MOST_ERRORS])
        _remove_dead(self._function)
        self._function.shared.sort(key=lambda array: array.size == 0)
        return self._function

    def _trying(self, action: Callable[[], None], tainted: bool = False) -> bool:
        """Do something, and keep what is refused, so that other instructions are looked at as well.

        What is refused because of a `tainted` value, one that was refused before, says nothing new.
        """
        try:
            action()
        except DiagnosticError as error:
            self._errors += () if tainted else error.diagnostics
            return False
        return True

    def _emit_phis(self, block: Block) -> None:
        builder = self._emitter.builder.at_end(self._targets[block])
        for phi in self._values.phis[block]:
            builder.loc = block.sites[0].location if block.sites else None
            instruction = builder.phi(self._type(phi))
            self._emitter.values[phi] = instruction
            self._phis.append((phi, instruction))

    def _type(self, node: Node) -> Type:
        return self._kernel.pointers.type(node) or integer(node.register.width)

    def _emit_block(self, block: Block) -> None:
        self._emitter.builder.at_end(self._targets[block])
        for site in block.sites:
            self._emit_site(site)
        self._emit_end(block)

    def _emit_site(self, site: Site) -> None:
        rule, writes = self._kernel.rules[site], self._values.writes[site]
        reads = self._values.reads[site]
        self._define_undefined(reads)
        self._emitter.begin(site, rule, self._kernel.forms[site], reads, dict(writes))
        tainted = not self._tainted.isdisjoint(reads.values())
        if not self._trying(lambda: (pointer_lowering(self._emitter) or rule.lower)(self._emitter), tainted):
            tainted = True
            for node in writes.values():
                self._emitter.values[node] = self._emitter.builder.emit("undef", type=self._type(node))
        if tainted:
            self._tainted.update(writes.values())

    def _define_undefined(self, reads: dict[Register, Node]) -> None:
        for register, node in reads.items():
            if isinstance(node, Undefined):
                self._emitter.values[node] = self._initial(register, integer(register.width))

    def _initial(self, register: Register, type_: Type) -> Value:
        """What a register holds that nothing has written yet."""
        if register.initial is not None:
            return constant(type_, register.initial)
        return self._emitter.builder.emit("undef", type=type_)

    def _emit_end(self, block: Block) -> None:
        builder = self._emitter.builder
        builder.loc = block.closing.location if block.closing else builder.loc
        targets = [self._targets[successor] for successor in block.successors]
        if not targets:
            self._emit_last(block)
        elif len(targets) == 1:
            builder.br(targets[0])
        else:
            self._emit_branch(block, targets)

    def _emit_last(self, block: Block) -> None:
        builder = self._emitter.builder
        if block.end == "ret":
            builder.ret()
        elif block.end == "assert":
            builder.emit("trap", attrs={"kind": "assert", "message": self._emitter.assertion})
        else:
            builder.trap()

    def _emit_branch(self, block: Block, targets: list[BasicBlock]) -> None:
        reads = self._values.reads[block]
        self._define_undefined(reads)
        (condition,) = (self._emitter.values[node] for node in reads.values())
        if block.guard and block.guard.negated:
            targets.reverse()
        self._emitter.builder.condbr(condition, *targets)

    def _complete(self, phi: Phi, instruction: Instruction) -> None:
        for block, node in phi.operands.items():
            target = self._targets[block]
            self._emitter.builder.before(target.terminator)
            if isinstance(node, Undefined):
                value = self._initial(node.register, instruction.type)
            else:
                value = self._merged(phi, self._emitter.values[node], instruction.type)
            if value.type is not instruction.type:
                self._refuse_mixture(phi, node, block)
            instruction.add_incoming(value, target)

    def _merged(self, phi: Phi, value: Value, type_: Type) -> Value:
        """A value as a phi takes it: as a pointer of its type, 0 as the null pointer."""
        shared = self._kernel.pointers.nulls.get(phi)
        is_zero = isinstance(value, Constant) and value.value == 0
        if is_zero and shared is not None and isinstance(type_, PtrType):
            return self._emitter.null(shared, type_)
        return self._emitter.as_type(value, type_)

    def _refuse_mixture(self, phi: Phi, node: Node, block: Block) -> None:
        site = block.closing or (block.sites[-1] if block.sites else None)
        position = site.instruction.position if site else ast.Position(0, 0)
        reason, notes = explain(node, self._kernel.pointers, self._places)
        message = f"{phi.register.name} holds a pointer on one path and a number on another: {reason}"
        raise self._places.error(message, position, site.location if site else None, *notes)


def _declare(kernel: _Kernel) -> Function:
    """The function without blocks: its parameters, and the launch limits of its directives.

    Where a parameter is passed in parts, `parameters` lists the declared ones: `a, s[24], n`; the parts of
    `s` are the arguments `s.0`, `s.8` and so on, by their first byte.
    """
    entry = kernel.entry
    arguments = [(part.name, _argument_type(part, kernel)) for part in kernel.components]
    limits = [math.prod(numbers) for name, numbers in entry.performance if name in _THREAD_LIMITS]
    attributes: dict[str, Any] = {"max_threads": min(limits)} if limits else {}
    if any(map(is_structure, entry.parameters)):
        attributes["parameters"] = ", ".join(map(_parameter_text, entry.parameters))
    return Function(entry.name, arguments, attrs=attributes)


def _parameter_text(parameter: ast.Parameter) -> str:
    return (
        f"{parameter.name}[{Passed.declared(parameter).size}]" if is_structure(parameter) else parameter.name
    )


def _argument_type(component: Component, kernel: _Kernel) -> Type:
    """The type of an argument.

    A parameter that is as wide as a pointer and never loaded counts as one: compilers drop the load of an
    unused parameter, and callers should be able to pass what the source declares.
    """
    space = kernel.pointers.arguments.get(component)
    if space is not None:
        return ptr(space)
    parameter, width = component.parameter, component.register.width
    if width == _ADDRESS_BITS and not is_structure(parameter) and component.register not in kernel.loaded:
        return ptr((parameter.pointee.space if parameter.pointee else None) or "global")
    return integer(width)


def _remove_dead(function: Function) -> None:
    """Remove addresses that nothing uses, and arrays without them that no kernel declares as its own."""
    for block in function.blocks:
        for instruction in list(block.instructions):
            if instruction.op == "addrof" and not instruction.uses:
                instruction.erase()
    used = {i.attrs["name"] for i in function.instructions if i.op == "addrof"}
    function.shared[:] = [array for array in function.shared if array.name in used or _is_declared(array)]


def _is_declared(array: Array) -> bool:
    """Whether an array counts among the kernel's own memory even where it is not used."""
    return array.space in ("shared", "local") and array.name != array_name(RESERVED)
