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
    return [f'.file {node.number} "{node.path}"']


@_lines.register
def _(node: ast.Section) -> Iterable[str]:
    return [node.text]


@_lines.register
def _(node: ast.SourceLine) -> Iterable[str]:
    inlined = ""
    if node.inlined_at is not None:
        inlined = f", function_name {node.inlined_name}, inlined_at {' '.join(map(str, node.inlined_at))}"
    return [f".loc {node.file} {node.line} {node.column}{inlined}"]


@_lines.register
def _(node: ast.Pragma) -> Iterable[str]:
    return [".pragma " + ", ".join(f'"{text}"' for text in node.texts) + ";"]


@_lines.register
def _(node: ast.Entry) -> Iterator[str]:
    yield from _signature(f"{_directive(node.linkage)}.entry {node.name}", node.parameters, node.performance)
    yield from _lines(node.body)


@_lines.register
def _(node: ast.Function) -> Iterator[str]:
    results = f"({', '.join(map(_parameter, node.results))}) " if node.results else ""
    head = f"{_directive(node.linkage)}.func {results}{node.name}"
    yield from _signature(head, node.parameters, node.performance)
    yield from _lines(node.body) if node.body else [";"]


@_lines.register
def _(node: ast.Body) -> Iterator[str]:
    yield "{"
    for statement in node.statements:
        indent = "" if isinstance(statement, ast.Label) else "\t"
        yield from (indent + line for line in _lines(statement))
    yield "}"


@_lines.register
def _(node: ast.Registers) -> Iterable[str]:
    return [f".reg {_directive(node.vector)}.{node.type} {', '.join(map(str, node.ranges))};"]


@_lines.register
def _(node: ast.Variable) -> Iterable[str]:
    head = (
        f"{_directive(node.linkage)}.{node.space} {_align(node.align)}{_directive(node.vector)}.{node.type}"
    )
    value = "" if node.initializer is None else f" = {node.initializer}"
    return [f"{head} {node.name}{_extents(node.extents)}{value};"]


@_lines.register
def _(node: ast.CallParameter) -> Iterable[str]:
    return [f".param {_align(node.align)}.{node.type} {node.name}{_extents(node.extents)};"]


@_lines.register
def _(node: ast.Targets) -> Iterable[str]:
    return [f"{node.text};"]


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


def _signature(
    head: str, parameters: tuple[ast.Parameter, ...], performance: tuple[ast.Performance, ...]
) -> Iterator[str]:
    yield f"{head}({', '.join(map(_parameter, parameters))})"
    for directive, numbers in performance:
        yield f".{directive} {', '.join(map(str, numbers))}".rstrip()


def _parameter(node: ast.Parameter) -> str:
    pointee = ""
    if node.pointee is not None:
        pointee = f".ptr {_directive(node.pointee.space)}{_align(node.pointee.align)}"
    return f".param {_align(node.align)}.{node.type} {pointee}{node.name}{_extents(node.extents)}"


def _directive(word: str | None) -> str:
    return f".{word} " if word else ""


def _align(number: int | None) -> str:
    return f".align {number} " if number is not None else ""


def _extents(extents: tuple[int | None, ...]) -> str:
    return "".join("[]" if extent is None else f"[{extent}]" for extent in extents)
