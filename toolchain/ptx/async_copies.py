"""Asynchronous copies to shared memory (PTX ISA 9.0, section 9.7.9.25.3) as loads and stores.

A copy may take effect at any time between the instruction and the wait for it; here it does at once. The form
that fills up with zeros reads no more of the source than it is told to.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Site
from qgpu.toolchain.ptx.names import Register
from qgpu.toolchain.ptx.rule import canonical

COPY = "cp"
_FORM = re.compile(
    r"shared(?:::cta)?\.global\.async\.(?:ca|cg)(?P<hint>\.L2::cache_hint)?(?:\.L2::(?:64|128|256)B)?"
)
_SIZES = {"ca": (4, 8, 16), "cg": (16,)}
_WORD = 4


def copy_body(site: Site) -> ast.Body | None:
    """The statements that an asynchronous copy stands for; None of anything else, unknown forms among it."""
    instruction = site.instruction
    if instruction.opcode != COPY:
        return None
    match = _FORM.fullmatch(".".join(canonical(instruction.modifiers)))
    operands = instruction.operands[:-1] if match and match["hint"] else instruction.operands
    if match is None or len(operands) not in (3, 4):
        return None
    target, source, size, *rest = operands
    sizes = _SIZES["cg" if "cg" in instruction.modifiers else "ca"]
    if not isinstance(size, ast.Integer) or size.value not in sizes:
        return None
    if not isinstance(target, ast.Memory) or not isinstance(source, ast.Memory):
        return None
    copy = _Copy(site, target, source, size.value)
    return ast.Body(tuple(copy.statements(rest[0] if rest else None)))


@dataclass(frozen=True)
class _Copy:
    """A copy of `size` bytes."""

    site: Site
    target: ast.Memory
    source: ast.Memory
    size: int

    def statements(self, rest: ast.Operand | None) -> Iterator[ast.Statement]:
        """`rest` is the number of bytes to read, or a predicate that says to read none."""
        if rest is None or (isinstance(rest, ast.Integer) and rest.value == self.size):
            yield from self._whole()
            return
        yield self._register("b32", "(count)")
        yield self._register("pred", "(some)")
        yield from self._count(rest)
        yield self._jump("(part)", "(some)")
        yield from self._whole()
        yield self._jump("(end)")
        yield from self._part()
        yield self._label("(end)")

    def _count(self, rest: ast.Operand) -> Iterator[ast.Statement]:
        """Sets "(count)" to the number of bytes to read, and "(some)" where that is not all of them."""
        some, count = self._name("(some)"), self._name("(count)")
        if isinstance(rest, ast.Negated) or self._width(rest) == 1:
            yield self._instruction("mov.pred", some, rest)
            yield self._instruction("mov.b32", count, self._number(0))
        else:
            yield self._instruction("mov.b32", count, rest)
            yield self._instruction("setp.lo.u32", some, count, self._number(self.size))

    def _whole(self) -> Iterator[ast.Statement]:
        """A load and a store of all words."""
        words = [self._name(f"(word {index})") for index in range(self.size // _WORD)]
        yield from (self._register("b32", word.text) for word in words)
        yield self._access("ld.global", words, self.source)
        yield self._access("st.shared", words, self.target)

    def _part(self) -> Iterator[ast.Statement]:
        """Zeros, and over them as many bytes as are to be read."""
        byte, index, some = map(self._name, ("(byte)", "(index)", "(some)"))
        yield self._label("(part)")
        yield self._access("st.shared", [self._number(0)] * (self.size // _WORD), self.target)
        yield from (self._register("b32", name.text) for name in (byte, index))
        yield self._instruction("mov.b32", index, self._number(0))
        yield self._label("(next)")
        yield self._instruction("setp.hs.u32", some, index, self._name("(count)"))
        yield self._jump("(end)", some.text)
        yield from self._byte_access("ld.global.u8", self.source, byte)
        yield from self._byte_access("st.shared.u8", self.target, byte)
        yield self._instruction("add.u32", index, index, self._number(1))
        yield self._jump("(next)")

    def _byte_access(self, name: str, memory: ast.Memory, byte: ast.Name) -> Iterator[ast.Statement]:
        """A load or store of the byte that "(index)" counts from an address."""
        width = 32 if self._width(memory.base) == 32 else 64
        address, offset = self._name(f"({name} address)"), self._name(f"({name} offset)")
        at = ast.Memory(address, memory.offset, position=memory.position)
        yield self._register(f"b{width}", address.text)
        yield self._register(f"b{width}", offset.text)
        yield self._instruction(f"cvt.u{width}.u32", offset, self._name("(index)"))
        yield self._instruction(f"mov.b{width}", address, memory.base)
        yield self._instruction(f"add.u{width}", address, address, offset)
        yield self._instruction(name, *((byte, at) if name.startswith("ld") else (at, byte)))

    def _access(
        self, name: str, words: Sequence[ast.Name | ast.Integer], memory: ast.Memory
    ) -> ast.Statement:
        value = words[0] if len(words) == 1 else ast.Vector(tuple(words), position=self._place)
        vector = f".v{len(words)}" if len(words) > 1 else ""
        operands = (value, memory) if name.startswith("ld") else (memory, value)
        return self._instruction(f"{name}{vector}.b32", *operands)

    def _width(self, operand: ast.Operand) -> int | None:
        """The width of a register; None where an operand is none."""
        found = self.site.scope.lookup(operand.text) if isinstance(operand, ast.Name) else None
        return found.width if isinstance(found, Register) else None

    @property
    def _place(self) -> ast.Position:
        return self.site.instruction.position

    def _name(self, text: str) -> ast.Name:
        return ast.Name(text, position=self._place)

    def _number(self, value: int) -> ast.Integer:
        return ast.Integer(value, position=self._place)

    def _register(self, type_: str, name: str) -> ast.Registers:
        return ast.Registers(type_, (ast.RegisterRange(name),), position=self._place)

    def _label(self, name: str) -> ast.Label:
        return ast.Label(name, position=self._place)

    def _instruction(self, name: str, *operands: ast.Operand) -> ast.Instruction:
        opcode, *modifiers = name.split(".")
        return ast.Instruction(opcode, tuple(modifiers), operands, None, position=self._place)

    def _jump(self, label: str, predicate: str | None = None) -> ast.Instruction:
        guard = ast.Guard(self._name(predicate), False) if predicate else None
        return ast.Instruction("bra", (), (self._name(label),), guard, position=self._place)
