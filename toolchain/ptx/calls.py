"""Device functions: which one a call means, and what its parameters stand for at one call.

Calls are inlined. A parameter or result in parameter memory is the very memory that the caller passes; one
that the caller passes as a register, or that the function declares as one, is copied before or after the
body.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from qgpu.toolchain.diagnostics import DiagnosticError, note
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Site
from qgpu.toolchain.ptx.names import Passed, Register, Scope, byte_size, type_width
from qgpu.toolchain.ptx.places import Places
from qgpu.toolchain.ptx.system_calls import ABSENT, system_body

MAX_INSTRUCTIONS = 100_000
"""Instructions of the largest kernel, with the functions inlined in it."""

MAX_DEPTH = 64
"""Calls within calls."""

_Signature = tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]


@dataclass(frozen=True, eq=False)
class Frame:
    """A routine that is being inlined; `caller` is None for the kernel itself."""

    name: str
    caller: "Frame | None" = None

    def names(self) -> list[str]:
        """The routines from the kernel to this one."""
        return [*(self.caller.names() if self.caller else ()), self.name]


@dataclass
class Binding:
    """A function at one call: the scope of its body, and copies before and after it."""

    scope: Scope
    before: list[Site]
    after: list[Site]


class Routines:
    """The device functions of a module.

    A function's address is a number of its own, which an indirect call compares with those that it may mean.
    """

    def __init__(self, module: ast.Module, outer: Scope, places: Places) -> None:
        self._module = module
        self._outer = outer
        self._places = places
        self._functions: dict[str, ast.Function] = {}
        for function in module.functions:
            if function.body is not None or function.name not in self._functions:
                self._functions[function.name] = function
        for alias in module.aliases:
            target = self._functions.get(alias.target.text)
            if target is not None:
                self._functions[alias.name] = target
        outer.meanings.update(self._functions)
        self._addresses = {name: number for number, name in enumerate(self._functions, 1)}

    def address(self, function: ast.Function) -> int:
        """The number that stands for a function's address; 0 is that of none."""
        return self._addresses[function.name]

    def callees(self, site: Site) -> list[ast.Function]:
        """The functions that a call may reach; one where it names it.

        Raises DiagnosticError where there is none.
        """
        call = site.instruction.call
        meaning = site.scope.lookup(call.callee.text)
        if isinstance(meaning, ast.Function):
            return [meaning]
        if not isinstance(meaning, Register):
            message = f"'{call.callee}' is not a function that is declared here"
            raise self._places.error(message, call.callee.position, site.location)
        found = self._candidates(site, call)
        if not found:
            message = f"no function has its address taken that {call.callee} could call"
            raise self._places.error(message, call.callee.position, site.location)
        return found

    def _candidates(self, site: Site, call: ast.Call) -> list[ast.Function]:
        targets = site.scope.lookup(call.targets.text) if call.targets else None
        if isinstance(targets, ast.CallTargets):
            return self._named(targets.functions)
        if isinstance(targets, ast.Variable):
            return self._named(_names(targets.initializer))
        if not isinstance(targets, ast.CallPrototype):
            message = f"'{call.targets or ''}' says not which functions {call.callee} may call"
            raise self._places.error(message, call.callee.position, site.location)
        wanted = _signature(targets.results, targets.parameters)
        return [f for f in self._addressed if _signature(f.results, f.parameters) == wanted]

    def _named(self, names: Iterable[ast.Name]) -> list[ast.Function]:
        found = (self._outer.lookup(name.text) for name in names)
        return [function for function in found if isinstance(function, ast.Function)]

    @cached_property
    def _addressed(self) -> list[ast.Function]:
        """The functions whose address the module takes, each once."""
        names: list[ast.Name] = []
        for variable in self._module.variables:
            names += _names(variable.initializer)
        for routine in (*self._module.entries, *self._module.functions):
            if routine.body is not None:
                names += _operand_names(routine.body)
        return list(dict.fromkeys(self._named(names)))

    def body(self, function: ast.Function, site: Site, frame: Frame) -> ast.Body:
        """The body to inline; DiagnosticError where there is none, or where it is in the midst of its own."""
        names = frame.names()
        if function.name in names:
            raise self._recursion(function, site, names[names.index(function.name) :])
        if len(names) > MAX_DEPTH:
            message = f"device functions call each other more than {MAX_DEPTH} deep"
            raise self._places.error(message, site.instruction.position, site.location)
        body = function.body or system_body(function)
        if body is None:
            reason = ABSENT.get(
                function.name, "it is declared here and defined elsewhere; link its source in"
            )
            message = f"function '{function.name}' cannot be called: {reason}"
            raise self._places.error(message, site.instruction.position, site.location)
        return body

    def _recursion(self, function: ast.Function, site: Site, names: list[str]) -> DiagnosticError:
        cycle = " -> ".join((*names, function.name))
        message = f"function '{function.name}' calls itself, which needs a call stack: {cycle}"
        hint = note("write the recursion as a loop, with an array as its stack")
        return self._places.error(message, site.instruction.position, site.location, hint)

    def bind(self, function: ast.Function, site: Site) -> Binding:
        """What the function's parameters and results are at this call."""
        call = site.instruction.call
        self._check_count("arguments", call.arguments, function.parameters, site)
        self._check_count("results", call.results, function.results, site)
        binding = Binding(Scope(self._outer), [], [])
        for formal, actual in zip(function.parameters, call.arguments, strict=True):
            if not self._same_memory(formal, actual, site, binding):
                binding.before.append(_copied_in(formal, actual, site, binding.scope))
        for formal, actual in zip(function.results, call.results, strict=True):
            if not self._same_memory(formal, actual, site, binding):
                binding.after.append(_copied_out(formal, actual, site, binding.scope))
        return binding

    def _check_count(self, what: str, given: tuple, wanted: tuple, site: Site) -> None:
        if len(given) != len(wanted):
            callee = site.instruction.call.callee
            message = f"the call has {len(given)} {what} where '{callee}' has {len(wanted)}"
            raise self._places.error(message, site.instruction.position, site.location)

    def _same_memory(self, formal: ast.Parameter, actual: ast.Operand, site: Site, binding: Binding) -> bool:
        """Let a parameter be the memory that is passed; if that is none, declare it in the scope."""
        size = byte_size(formal.type, formal.extents, formal.vector)
        passed = site.scope.passed(actual.text) if isinstance(actual, ast.Name) else None
        if passed is not None and passed.size != size:
            message = f"'{actual}' has {passed.size} bytes where parameter '{formal.name}' has {size}"
            raise self._places.error(message, getattr(actual, "position", formal.position), site.location)
        if formal.space == "reg":
            binding.scope.meanings[formal.name] = Register(formal.name, formal.type)
            return False
        binding.scope.meanings[formal.name] = passed or Passed.declared(formal)
        return passed is not None


def _copied_in(formal: ast.Parameter, actual: ast.Operand, site: Site, scope: Scope) -> Site:
    """The copy of an argument into a parameter; one of the two is a register or a number."""
    inner, outer = _inner_name(formal, site), actual
    names = Scope(site.scope, {inner.text: scope.meanings[formal.name]})
    if formal.space == "param":
        return _synthetic(site, names, "st", ("param", _bits(formal)), _memory(inner), outer)
    if isinstance(outer, ast.Name) and site.scope.passed(outer.text):
        return _synthetic(site, names, "ld", ("param", _bits(formal)), inner, _memory(outer))
    return _synthetic(site, names, "mov", (_bits(formal),), inner, outer)


def _copied_out(formal: ast.Parameter, actual: ast.Operand, site: Site, scope: Scope) -> Site:
    """The copy of a result to where the caller wants it."""
    inner, outer = _inner_name(formal, site), actual
    names = Scope(site.scope, {inner.text: scope.meanings[formal.name]})
    if formal.space == "param":
        return _synthetic(site, names, "ld", ("param", _bits(formal)), outer, _memory(inner))
    if isinstance(outer, ast.Name) and site.scope.passed(outer.text):
        return _synthetic(site, names, "st", ("param", _bits(formal)), _memory(outer), inner)
    return _synthetic(site, names, "mov", (_bits(formal),), outer, inner)


def _synthetic(
    site: Site, scope: Scope, opcode: str, modifiers: tuple[str, ...], *operands: ast.Operand
) -> Site:
    position = site.instruction.position
    return Site(ast.Instruction(opcode, modifiers, operands, None, position=position), scope, site.location)


def _inner_name(formal: ast.Parameter, site: Site) -> ast.Name:
    """A name for a parameter that no name of the caller's scope equals."""
    return ast.Name(f"({formal.name})", position=site.instruction.position)


def _memory(name: ast.Name) -> ast.Memory:
    return ast.Memory(name, 0, position=name.position)


def _bits(formal: ast.Parameter) -> str:
    return "pred" if formal.type == "pred" else f"b{type_width(formal.type)}"


def _signature(results: tuple[ast.Parameter, ...], parameters: tuple[ast.Parameter, ...]) -> _Signature:
    def shapes(formals: tuple[ast.Parameter, ...]) -> tuple[tuple[str, int], ...]:
        return tuple((formal.space, byte_size(formal.type, formal.extents)) for formal in formals)

    return shapes(results), shapes(parameters)


def _names(value: ast.Initializer | None) -> Iterator[ast.Name]:
    """All names in an initial value."""
    if isinstance(value, ast.Aggregate):
        for part in value.values:
            yield from _names(part)
    elif isinstance(value, ast.Name):
        yield value
    elif isinstance(value, ast.Offset | ast.Generic):
        yield value.base
    elif isinstance(value, ast.Masked):
        yield from _names(value.address)


def _operand_names(body: ast.Body) -> Iterator[ast.Name]:
    """The names that are operands of moves and selections in a body, and in initial values there."""
    for statement in body.statements:
        if isinstance(statement, ast.Body):
            yield from _operand_names(statement)
        elif isinstance(statement, ast.Variable):
            yield from _names(statement.initializer)
        elif isinstance(statement, ast.Instruction) and statement.opcode != "call":
            yield from (operand for operand in statement.operands if isinstance(operand, ast.Name))
