"""Syntax tree to PTX text. Parsing the text gives the same tree."""

from collections.abc import Iterable, Iterator
from functools import singledispatch

from qgpu.toolchain.ptx import ast


def print_module(module: ast.Module) -> str:
    """The PTX of a module; comments and layout are the printer's own."""
    lines = [
        f".version {module.version}",
        f".target {', '.join(module.targets)}",
        f".address_size {module.address_size}",
        "",
    ]
    for item in module.items:
        lines += _lines(item)
    return "\n".join(lines) + "\n"


@singledispatch
def _lines(node) -> Iterable[str]:
    raise TypeError(f"no printed form of {type(node).__name__}")


@_lines.register
def _(node: ast.File) -> Iterable[str]:
    stamp = "" if node.stamp is None else f", {node.stamp[0]}, {node.stamp[1]}"
    return [f'.file {node.number} "{node.path}"{stamp}']


@_lines.register
def _(node: ast.Section) -> Iterator[str]:
    yield f".section {node.name}"
    yield "{"
    for line in node.lines:
        yield f"{line}:" if isinstance(line, str) else f"\t.{line.type} {', '.join(map(str, line.values))}"
    yield "}"


@_lines.register
def _(node: ast.Dwarf) -> Iterable[str]:
    return [node.text]


@_lines.register
def _(node: ast.Alias) -> Iterable[str]:
    return [f".alias {node.name}, {node.target};"]


@_lines.register
def _(node: ast.SourceLine) -> Iterable[str]:
    inlined = ""
    if node.inlined_at is not None:
        inlined = f", function_name {node.inlined_name}, inlined_at {' '.join(map(str, node.inlined_at))}"
    return [f".loc {node.file} {node.line} {node.column}{inlined}"]


@_lines.register
def _(node: ast.Pragma) -> Iterable[str]:
    return [".pragma " + ", ".join(f'"{text}"' for text in node.texts) + ";"]


@_lines.register(ast.Entry | ast.EntryDeclaration)
def _(node: ast.Entry | ast.EntryDeclaration) -> Iterator[str]:
    return _routine(f"{_directive(node.linkage)}.entry {node.name}", node)


@_lines.register
def _(node: ast.Function) -> Iterator[str]:
    results = f"{_parameters(node.results)} " if node.results else ""
    head = f"{_directive(node.linkage)}.func {_attributes(node.attributes)}{results}{node.name}"
    return _routine(head, node)


@_lines.register
def _(node: ast.Body) -> Iterator[str]:
    yield "{"
    for statement in node.statements:
        indent = "" if isinstance(statement, ast.Label) else "\t"
        yield from (indent + line for line in _lines(statement))
    yield "}"


@_lines.register
def _(node: ast.Registers) -> Iterable[str]:
    head = f".reg {_align(node.align)}{_directive(node.vector)}.{node.type}"
    return [f"{head} {', '.join(map(str, node.ranges))};"]


@_lines.register
def _(node: ast.Variable) -> Iterable[str]:
    qualifiers = f"{_attributes(node.attributes)}{_align(node.align)}{_directive(node.vector)}"
    head = f"{_directive(node.linkage)}.{node.space} {qualifiers}.{node.type}"
    value = "" if node.initializer is None else f" = {node.initializer}"
    return [f"{head} {node.name}{_extents(node.extents)}{value};"]


@_lines.register
def _(node: ast.CallParameter) -> Iterable[str]:
    return [f".param {_align(node.align)}.{node.type} {node.name}{_extents(node.extents)};"]


@_lines.register
def _(node: ast.BranchTargets) -> Iterable[str]:
    return [f"{node.name}: .branchtargets {', '.join(map(str, node.labels))};"]


@_lines.register
def _(node: ast.CallTargets) -> Iterable[str]:
    return [f"{node.name}: .calltargets {', '.join(map(str, node.functions))};"]


@_lines.register
def _(node: ast.CallPrototype) -> Iterable[str]:
    results = f"{_parameters(node.results)} " if node.results else ""
    performance = "".join(f" {_numbered(directive)}" for directive in node.performance)
    return [f"{node.name}: .callprototype {results}_ {_parameters(node.parameters)}{performance};"]


@_lines.register
def _(node: ast.Label) -> Iterable[str]:
    return [f"{node.name}:"]


@_lines.register
def _(node: ast.Instruction) -> Iterable[str]:
    return [f"{instruction_text(node)};"]


def instruction_text(node: ast.Instruction) -> str:
    """An instruction without its semicolon."""
    guard = f"@{'!' * node.guard.negated}{node.guard.predicate} " if node.guard else ""
    return f"{guard}{node.name} {', '.join(map(str, node.operands))}".rstrip()


def _routine(head: str, node: ast.Routine) -> Iterator[str]:
    yield f"{head}{_parameters(node.parameters)}"
    yield from map(_numbered, node.performance)
    if node.pragmas:
        yield from _lines(ast.Pragma(node.pragmas))
    yield from _lines(node.body) if node.body else [";"]


def _numbered(directive: ast.Directive) -> str:
    name, numbers = directive
    return f".{name} {', '.join(map(str, numbers))}".rstrip()


def _attributes(attributes: tuple[ast.Directive, ...]) -> str:
    parts = [
        f".{name}({', '.join(map(str, numbers))})" if numbers else f".{name}" for name, numbers in attributes
    ]
    return f".attribute({', '.join(parts)}) " if parts else ""


def _parameters(parameters: tuple[ast.Parameter, ...]) -> str:
    return f"({', '.join(map(_parameter, parameters))})"


def _parameter(node: ast.Parameter) -> str:
    pointee = ""
    if node.pointee is not None:
        pointee = f".ptr {_directive(node.pointee.space)}{_align(node.pointee.align)}"
    head = f".{node.space} {_align(node.align)}{_directive(node.vector)}.{node.type}"
    return f"{head} {pointee}{node.name}{_extents(node.extents)}"


def _directive(word: str | None) -> str:
    return f".{word} " if word else ""


def _align(number: int | None) -> str:
    return f".align {number} " if number is not None else ""


def _extents(extents: tuple[int | None, ...]) -> str:
    return "".join("[]" if extent is None else f"[{extent}]" for extent in extents)
