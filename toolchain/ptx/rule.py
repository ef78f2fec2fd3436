"""The form of a row in the table of PTX instructions, and how a row is found."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qgpu.toolchain import special_registers
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Site
from qgpu.toolchain.ptx.names import Register
from qgpu.toolchain.ptx.ssa import Accesses

if TYPE_CHECKING:
    from qgpu.toolchain.ptx.emitter import Emitter

RESULT = "d"
MEMORY = "m"

SCOPE = "(?:cta|cluster|gpu|sys)"

CARRY = Register("CC.CF", "pred")
"""The carry flag (PTX ISA, CC register), which extended-precision instructions read and write."""

CLOCK = Register("%clock64", "b64", initial=0)
"""A clock of the thread's own: it advances by one with each read."""

CLOCKS = tuple(f"%{name}" for name in special_registers.CLOCKS)
"""The special registers that read CLOCK."""

_TYPE = re.compile(r"(?:[bsuf]\d+(?:x\d)?|pred)")
_RANKS = {
    **dict.fromkeys(("to", "volatile", "weak", "mmio"), 0),
    **dict.fromkeys(("relaxed", "acquire", "release", "acq_rel", "sc"), 1),
    **dict.fromkeys(("cta", "cluster", "gpu", "sys"), 2),
    **dict.fromkeys(("global", "shared", "local", "const", "param"), 3),
    "sync": 3,
    "L1": 6,
    "L2": 7,
    **dict.fromkeys(("v2", "v4", "v8"), 8),
}
_OTHER_RANK = 5
_TYPE_RANK = 9


@dataclass(frozen=True)
class Rule:
    """One instruction form.

    `form` is a regular expression for the dotted modifiers as a whole, in canonical order; its named groups
    are what `lower` asks for (`type`, `space` ...). `roles` names the operands in order: `d` is the result,
    `m` an address, `a`, `b` and `c` are sources. A pointer can flow into the result through the roles in
    `carries`. `reads` and `writes` are registers that no operand names.
    """

    opcode: str
    form: str
    roles: str
    lower: "Callable[[Emitter], None]"
    carries: str = ""
    reads: tuple[Register, ...] = ()
    writes: tuple[Register, ...] = ()

    def match(self, instruction: ast.Instruction) -> re.Match[str] | None:
        """The groups of the form, where the instruction has it and as many operands as there are roles."""
        if len(instruction.operands) != len(self.role_names):
            return None
        return re.fullmatch(self.form, ".".join(canonical(instruction.modifiers)))

    @property
    def role_names(self) -> list[str]:
        return self.roles.split()

    def operand(self, instruction: ast.Instruction, role: str) -> ast.Operand:
        return instruction.operands[self.role_names.index(role)]

    def operands(self, instruction: ast.Instruction) -> Iterator[tuple[str, ast.Operand]]:
        return zip(self.role_names, instruction.operands, strict=True)

    def accesses(self, site: Site) -> Accesses:
        """The registers an instruction of this form reads and writes."""
        reads: list[Register] = list(self.reads)
        writes: list[Register] = list(self.writes)
        for role, operand in self.operands(site.instruction):
            (writes if role == RESULT else reads).extend(registers_of(operand, site))
        if CLOCK in reads:
            writes.append(CLOCK)
        return Accesses(tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)))


def canonical(modifiers: tuple[str, ...]) -> list[str]:
    """Modifiers in the order in which forms have them, which is mostly the manual's; types stand last.

    PTX takes them in any order (`atom.global.acquire`, `min.s16x2.relu`).
    """
    return sorted(modifiers, key=_rank)


def _rank(modifier: str) -> int:
    if _TYPE.fullmatch(modifier):
        return _TYPE_RANK
    return _RANKS.get(modifier.partition("::")[0], _OTHER_RANK)


def names_of(operand: ast.Operand) -> Iterator[ast.Name]:
    """All names in an operand."""
    if isinstance(operand, ast.Name):
        yield operand
    elif isinstance(operand, ast.Vector | ast.Group):
        for element in operand.elements:
            yield from names_of(element)
    elif isinstance(operand, ast.Pair):
        yield from names_of(operand.first)
        yield operand.second
    elif isinstance(operand, ast.Negated):
        yield operand.operand
    elif isinstance(operand, ast.Memory | ast.Offset) and isinstance(operand.base, ast.Name):
        yield operand.base
    elif isinstance(operand, ast.Element):
        yield operand.base
        yield from names_of(operand.index)


def registers_of(operand: ast.Operand, site: Site) -> Iterator[Register]:
    """The registers among the names of an operand."""
    for name in names_of(operand):
        register = CLOCK if name.text in CLOCKS else site.scope.register(name.text)
        if register is not None:
            yield register
