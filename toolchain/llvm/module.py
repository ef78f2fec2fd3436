"""A module in LLVM's own form, taken apart; bodies of functions are parsed when they are needed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from qgpu.toolchain.llvm import ast
from qgpu.toolchain.llvm.layout import Layout
from qgpu.toolchain.llvm.parser import NotInGrammar, parse

KERNEL = "ptx_kernel"
"""The calling convention of kernels; LLVM turns the older `nvvm.annotations` into it."""


class UnknownInstruction(Exception):
    """An instruction that the grammar does not take: number `ordinal` of a function."""

    def __init__(self, function: str, ordinal: int, text: str) -> None:
        super().__init__(text)
        self.function = function
        self.ordinal = ordinal
        self.text = text


@dataclass
class Module:
    """The entities of a module by name. `bodies` are the lines of each function's text."""

    types: dict[str, ast.Type | None] = field(default_factory=dict)
    variables: dict[str, ast.Variable] = field(default_factory=dict)
    heads: dict[str, ast.Head] = field(default_factory=dict)
    bodies: dict[str, list[str]] = field(default_factory=dict)
    groups: dict[str, tuple[ast.Attribute, ...]] = field(default_factory=dict)
    _metadata: dict[str, str] = field(default_factory=dict)
    _nodes: dict[str, ast.Node | None] = field(default_factory=dict)
    _functions: dict[str, ast.Function] = field(default_factory=dict)

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.types)

    @property
    def kernels(self) -> list[ast.Head]:
        """The kernels, in the order of the text."""
        return [head for head in self.heads.values() if any(a.name == KERNEL for a in head.attributes)]

    def attributes(self, head: ast.Head) -> Iterator[ast.Attribute]:
        """A function's attributes, those of its groups among them."""
        for attribute in head.attributes:
            if attribute.name == "group":
                yield from self.groups.get(str(attribute.value), ())
            else:
                yield attribute

    def function(self, name: str) -> ast.Function:
        """A function that the module defines; raises UnknownInstruction."""
        if name not in self._functions:
            head = self.heads[name]
            self._functions[name] = ast.Function(head, tuple(_blocks(head, self.bodies[name])))
        return self._functions[name]

    def node(self, name: object) -> ast.Node | None:
        """The metadata node `!name`; None where there is none."""
        key = str(name).removeprefix("!")
        if key not in self._nodes:
            self._nodes[key] = _node(self._metadata[key]) if key in self._metadata else None
        return self._nodes[key]

    def add(self, line: str) -> None:
        """Add the entity of one line; what has no effect here is passed over."""
        if line.startswith("@"):
            _try(self._add_variable, line)
        elif line.startswith("%"):
            name, type_ = parse(line, "type_definition")
            self.types[name] = type_
        elif line.startswith("!"):
            name, _, _ = line.partition(" = ")
            self._metadata[name[1:]] = line
        elif line.startswith("attributes"):
            name, attributes = parse(line, "attribute_group")
            self.groups[name] = attributes

    def _add_variable(self, line: str) -> None:
        variable = parse(line, "variable")
        self.variables[variable.name] = variable


def read_module(text: str) -> Module:
    """The module of a text that LLVM printed."""
    module = Module()
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith("define"):
            head = parse(line, "function_head")
            module.heads[head.name] = head
            module.bodies[head.name] = list(iter(lambda: next(lines), "}"))
        else:
            module.add(line)
    return module


def _try(action, line: str) -> None:
    """Variables that the grammar does not take (aliases, initial values of other kinds) stay unknown."""
    try:
        action(line)
    except NotInGrammar:
        return


def _node(line: str) -> ast.Node | None:
    try:
        _, node = parse(line, "metadata")
    except NotInGrammar:
        return None
    return node if isinstance(node, ast.Node) else None


def statements(lines: list[str]) -> Iterator[str]:
    """The labels and instructions of a body; a switch, which goes over several lines, as one text."""
    waiting = ""
    for line in lines:
        text = line.strip()
        if waiting:
            waiting += f"\n{line}"
            if not text.startswith("]"):
                continue
            yield waiting
            waiting = ""
        elif text.endswith("[") and text.startswith("switch"):
            waiting = line
        elif text and not text.startswith((";", "#dbg")):
            yield line


def _blocks(head: ast.Head, lines: list[str]) -> Iterator[ast.Block]:
    """The blocks; an entry without a label is called by the first number that no parameter has."""
    block: ast.Block | None = None
    count = 0
    for text in statements(lines):
        if not text.startswith(" "):
            block = ast.Block(parse(text, "label"))
            yield block
            continue
        if block is None:
            block = ast.Block(str(sum(parameter.name.isdecimal() for parameter in head.parameters)))
            yield block
        block.instructions.append(_instruction(head.name, count, text))
        count += 1


def _instruction(function: str, ordinal: int, text: str) -> ast.Instruction:
    try:
        return parse(text, "instruction").at(ordinal)
    except NotInGrammar:
        raise UnknownInstruction(function, ordinal, text.strip()) from None
