"""The form of a row in the table of PTX instructions, and how a row is found."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Site
from qgpu.toolchain.ptx.names import Register
from qgpu.toolchain.ptx.ssa import Accesses

if TYPE_CHECKING:
    from qgpu.toolchain.ptx.emitter import Emitter

RESULT = "d"
MEMORY = "m"


@dataclass(frozen=True)
class Rule:
    """One instruction form.

    `form` is a regular expression for the dotted modifiers as a whole; its named groups are what `lower`
    asks for (`type`, `space` ...). `roles` names the operands in order: `d` is the result, `m` an address,
    `a`, `b` and `c` are sources. A pointer can flow into the result through the roles in `carries`.
    """

    opcode: str
    form: str
    roles: str
    lower: "Callable[[Emitter], None]"
    carries: str = ""

    def match(self, instruction: ast.Instruction) -> re.Match[str] | None:
        """The groups of the form, where the instruction has it and as many operands as there are roles."""
        if len(instruction.operands) != len(self.role_names):
            return None
        return re.fullmatch(self.form, ".".join(instruction.modifiers))

    @property
    def role_names(self) -> list[str]:
        return self.roles.split()

    def operand(self, instruction: ast.Instruction, role: str) -> ast.Operand:
        return instruction.operands[self.role_names.index(role)]

    def operands(self, instruction: ast.Instruction) -> Iterator[tuple[str, ast.Operand]]:
        return zip(self.role_names, instruction.operands, strict=True)

    def accesses(self, site: Site) -> Accesses:
        """The registers an instruction of this form reads and writes."""
        reads: list[Register] = []
        writes: list[Register] = []
        for role, operand in self.operands(site.instruction):
            (writes if role == RESULT else reads).extend(registers_of(operand, site))
        return Accesses(tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)))


def names_of(operand: ast.Operand) -> Iterator[ast.Name]:
    """All names in an operand."""
    if isinstance(operand, ast.Name):
        yield operand
    elif isinstance(operand, ast.Vector | ast.Group):
        for element in operand.elements:
            yield from names_of(element)
    elif isinstance(operand, ast.Pair):
        yield from (operand.first, operand.second)
    elif isinstance(operand, ast.Negated):
        yield operand.operand
    elif isinstance(operand, ast.Memory | ast.Offset) and isinstance(operand.base, ast.Name):
        yield operand.base


def registers_of(operand: ast.Operand, site: Site) -> Iterator[Register]:
    """The registers among the names of an operand."""
    for name in names_of(operand):
        register = site.scope.register(name.text)
        if register is not None:
            yield register
