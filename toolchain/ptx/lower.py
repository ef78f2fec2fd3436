"""Syntax tree to SIMT IR."""

import math
from collections.abc import Collection

from qgpu.ir import BasicBlock, Function, Instruction, Module, Type, Value, integer, ptr
from qgpu.ir.core.builder import constant
from qgpu.toolchain.diagnostics import Diagnostic, DiagnosticError, Source, failure
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Block, Site, build_graph
from qgpu.toolchain.ptx.emitter import Emitter
from qgpu.toolchain.ptx.names import Register, Scope, type_width
from qgpu.toolchain.ptx.places import Places
from qgpu.toolchain.ptx.pointers import Pointers, infer_pointers
from qgpu.toolchain.ptx.rule import Rule
from qgpu.toolchain.ptx.rules import find_rule, is_plain_transfer, what_it_needs
from qgpu.toolchain.ptx.ssa import Accesses, Node, Phi, Undefined, Values, build_values

_ADDRESS_BITS = 64
_THREAD_LIMITS = ("maxntid", "reqntid")


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
    outer = Scope()
    outer.meanings.update({variable.name: variable for variable in module.variables})
    entries = [entry for entry in module.entries if kernels is None or entry.name in kernels]
    return Module([_lower_entry(entry, outer, places) for entry in entries])


def _lower_entry(entry: ast.Entry, outer: Scope, places: Places) -> Function:
    _refuse_structures(entry, places)
    scope = Scope(outer)
    scope.meanings.update({parameter.name: parameter for parameter in entry.parameters})
    blocks = build_graph(entry, scope, places)
    rules, forms = _find_rules(blocks, places)
    accesses = _accesses(blocks, rules, places)
    values = build_values(blocks, accesses)
    pointers = infer_pointers(values, rules, places)
    return _EntryLowering(entry, blocks, rules, forms, values, pointers, places).run()


def _refuse_structures(entry: ast.Entry, places: Places) -> None:
    message = "parameter '{}' is a structure or array passed by value; pass a pointer to it instead"
    found = [
        places.diagnostic(message.format(parameter.name), parameter.position)
        for parameter in entry.parameters
        if parameter.extents
    ]
    if found:
        raise DiagnosticError(*found)


def _find_rules(
    blocks: list[Block], places: Places
) -> tuple[dict[Site, Rule], dict[Site, dict[str, str | None]]]:
    """The row of every instruction, and its form's groups; all that have none are reported at once."""
    rules: dict[Site, Rule] = {}
    forms: dict[Site, dict[str, str | None]] = {}
    unsupported = [
        block.closing for block in blocks if block.closing and not _is_known_closing(block.closing)
    ]
    for site in (site for block in blocks for site in block.sites):
        found = find_rule(site.instruction)
        if found is None:
            unsupported.append(site)
        else:
            rules[site], forms[site] = found
    _refuse(unsupported, places)
    return rules, forms


def _refuse(sites: list[Site], places: Places) -> None:
    """Report unsupported instructions in the order of the text; a call stands for its arguments too."""
    if any(site.instruction.opcode == "call" for site in sites):
        sites = [site for site in sites if not site.instruction.name.startswith("st.param")]
    ordered = sorted(dict.fromkeys(sites), key=lambda site: site.instruction.position.line)
    if ordered:
        raise DiagnosticError(*(_unsupported(site, places) for site in ordered))


def _is_known_closing(site: Site) -> bool:
    """Whether the last instruction of a block is a branch of a known form or has a row of its own."""
    return is_plain_transfer(site.instruction) or find_rule(site.instruction) is not None


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

    def __init__(
        self,
        entry: ast.Entry,
        blocks: list[Block],
        rules: dict[Site, Rule],
        forms: dict[Site, dict[str, str | None]],
        values: Values,
        pointers: Pointers,
        places: Places,
    ) -> None:
        self._blocks = blocks
        self._rules = rules
        self._forms = forms
        self._values = values
        self._pointers = pointers
        self._places = places
        self._function = _declare(entry, pointers)
        arguments = dict(zip(entry.parameters, self._function.args, strict=True))
        self._emitter = Emitter(self._function, arguments, places)
        self._phis: list[tuple[Phi, Instruction]] = []
        self._targets: dict[Block, BasicBlock] = {}

    def run(self) -> Function:
        for block in self._blocks:
            self._targets[block] = self._function.add_block(block.name)
        for block in self._blocks:
            self._emit_phis(block)
        for block in _reverse_postorder(self._blocks[0]):
            self._emit_block(block)
        for phi, instruction in self._phis:
            self._complete(phi, instruction)
        self._function.shared.sort(key=lambda array: array.size == 0)
        return self._function

    def _emit_phis(self, block: Block) -> None:
        builder = self._emitter.builder.at_end(self._targets[block])
        for phi in self._values.phis[block]:
            builder.loc = block.sites[0].location if block.sites else None
            instruction = builder.phi(self._type(phi))
            self._emitter.values[phi] = instruction
            self._phis.append((phi, instruction))

    def _type(self, node: Node) -> Type:
        space = self._pointers.spaces.get(node)
        return integer(node.register.width) if space is None else ptr(space)

    def _emit_block(self, block: Block) -> None:
        self._emitter.builder.at_end(self._targets[block])
        for site in block.sites:
            reads, writes = self._values.reads[site], self._values.writes[site]
            self._define_undefined(reads)
            self._emitter.begin(site, self._rules[site], self._forms[site], reads, dict(writes))
            self._rules[site].lower(self._emitter)
        self._emit_end(block)

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
            builder.ret() if block.end == "ret" else builder.trap()
        elif len(targets) == 1:
            builder.br(targets[0])
        else:
            self._emit_branch(block, targets)

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
            if isinstance(node, Undefined):
                self._emitter.builder.before(target.terminator)
                value = self._initial(node.register, instruction.type)
            else:
                value = self._emitter.values[node]
            if value.type is not instruction.type:
                self._refuse_mixture(phi, block)
            instruction.add_incoming(value, target)

    def _refuse_mixture(self, phi: Phi, block: Block) -> None:
        site = block.closing or (block.sites[-1] if block.sites else None)
        position = site.instruction.position if site else ast.Position(0, 0)
        message = f"{phi.register.name} holds a pointer on one path and an integer on another"
        raise self._places.error(message, position, site.location if site else None)


def _declare(entry: ast.Entry, pointers: Pointers) -> Function:
    """The function without blocks: its parameters, and the launch limits of its directives."""
    arguments = [(parameter.name, _parameter_type(parameter, pointers)) for parameter in entry.parameters]
    limits = [math.prod(numbers) for name, numbers in entry.performance if name in _THREAD_LIMITS]
    return Function(entry.name, arguments, attrs={"max_threads": min(limits)} if limits else None)


def _parameter_type(parameter: ast.Parameter, pointers: Pointers) -> Type:
    """The type of a parameter.

    What is as wide as a pointer and never loaded counts as one: compilers drop the load of an unused
    parameter, and callers should be able to pass what the source declares.
    """
    width = type_width(parameter.type)
    unused = parameter not in pointers.loaded and width == _ADDRESS_BITS
    if parameter in pointers.parameters or unused:
        space = parameter.pointee.space if parameter.pointee else None
        return ptr(space or "global")
    return integer(width)


def _reverse_postorder(first: Block) -> list[Block]:
    """All blocks, each after those that dominate it."""
    order: list[Block] = []
    visited = {first}
    stack = [(first, iter(first.successors))]
    while stack:
        block, successors = stack[-1]
        successor = next((block for block in successors if block not in visited), None)
        if successor is None:
            order.append(block)
            stack.pop()
        else:
            visited.add(successor)
            stack.append((successor, iter(successor.successors)))
    return order[::-1]
