"""Printer: the textual form of modules and functions (docs/ir.md), which `parse` reads back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.function import Array, Function, Module
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I1, VOID, Type
from qgpu.ir.core.values import Constant, Location, Value


def number_values(function: Function) -> dict[int, str]:
    """The printed name of each value, by id: its own if no other has it, else a number in program order."""
    values: list[Value] = [*function.args]
    values += [i for block in function.blocks for i in block.instructions if i.type is not VOID]
    taken = {value.name for value in values if value.name}
    names: dict[int, str] = {}
    used: set[str] = set()
    number = 0
    for value in values:
        name = value.name
        while not name or name in used:
            name, number = str(number), number + 1
            name = "" if name in taken else name
        used.add(name)
        names[id(value)] = name
    return names


def quoted(text: str) -> str:
    """A string literal."""
    return '"' + "".join(_ESCAPES.get(char) or _character(char) for char in text) + '"'


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def _character(char: str) -> str:
    return char if char.isprintable() else f"\\u{ord(char):06x}"


def attribute_text(value: Any) -> str:
    """An attribute's value: a number, true or false, a type, a list of numbers, or a string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Type):
        return str(value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(str, value)) + "]"
    return value if value.isidentifier() and value not in ("true", "false") else quoted(value)


def attributes_text(pairs: Iterable[tuple[str, Any]]) -> str:
    """` {name: value, ...}`, or nothing where there are no attributes."""
    inner = ", ".join(f"{name}: {attribute_text(value)}" for name, value in pairs)
    return f" {{{inner}}}" if inner else ""


class Printer:
    """Prints one function's parts under one numbering of its values."""

    def __init__(self, function: Function) -> None:
        self.names = number_values(function)
        self.function = function

    def operand(self, value: Value) -> str:
        """`%name`, `true`, `false`, or a constant with its type."""
        if isinstance(value, Constant):
            if value.type is I1:
                return "true" if value.value else "false"
            return f"{value.type} {value.signed}"
        return "%" + self.names.get(id(value), f"<{value.name or value!r}>")

    def _words(self, instruction: Instruction) -> list[str]:
        """What follows the opcode: bare attributes, operands, successors."""
        if instruction.op == "phi":
            return [", ".join(f"[{self.operand(v)}, {block.name}]" for v, block in instruction.incoming)]
        info = instruction.info
        inline = [
            ("@" if info.attrs[name].kind == "name" else "") + str(instruction.attrs[name])
            for name in info.inline_attrs
        ]
        listed = [self.operand(value) for value in instruction.operands]
        listed += [block.name for block in instruction.successors]
        return [*inline, ", ".join(listed)] if listed else inline

    def instruction(self, instruction: Instruction) -> str:
        """One line without indentation."""
        text = " ".join([instruction.op, *filter(None, self._words(instruction))])
        hidden = {*instruction.info.inline_attrs, *instruction.info.targets, "blocks"}
        text += attributes_text(
            (name, value) for name, value in instruction.attrs.items() if name not in hidden
        )
        if instruction.type is not VOID:
            text = f"%{self.names[id(instruction)]} = {text} : {instruction.type}"
        return text + location_text(instruction.loc)

    def block(self, block: BasicBlock) -> str:
        """The block's label with its guard, and its instructions."""
        literals = ", ".join(("" if lit.polarity else "!") + self.operand(lit.value) for lit in block.guard)
        header = f"{block.name} [{literals}]:" if block.guard else f"{block.name}:"
        return "\n".join([header, *("  " + self.instruction(i) for i in block.instructions)])

    def print(self) -> str:
        function = self.function
        args = ", ".join(f"%{self.names[id(arg)]}: {arg.type}" for arg in function.args)
        attrs = attributes_text(function.attrs.items())
        lines = [f"kernel @{function.name}({args}){' attributes' + attrs if attrs else ''} {{"]
        lines += [f"  {array_text(array)}" for array in function.shared]
        lines += [self.block(block) for block in function.blocks]
        return "\n".join([*lines, "}"]) + "\n"


def array_text(array: Array) -> str:
    """The declaration of an array; its data in hexadecimal, without the zeros at the end."""
    data = f', data "{array.data.hex()}"' if array.data else ""
    return f"array @{array.name}: {array.space}, {array.size} bytes, align {array.align}{data}"


def location_text(loc: Location | None) -> str:
    """The trailing `!loc`, or nothing."""
    return f"  !loc {quoted(loc.file)}:{loc.line}:{loc.column}" if loc else ""


def print_function(function: Function) -> str:
    """The textual form of a function, with a final newline."""
    return Printer(function).print()


def print_instruction(instruction: Instruction) -> str:
    """One instruction's line, with the names its function's printout would give."""
    function = instruction.parent.parent if instruction.parent else None
    return Printer(function).instruction(instruction) if function else repr(instruction)


def print_module(module: Module) -> str:
    """The textual form of all functions, separated by empty lines."""
    return "\n".join(print_function(function) for function in module.functions)
