"""printf becomes stores into an array that the host reads after the launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.formats import conversion_words
from qgpu.ir.core.function import Array, Function
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.types import I32, I64, IntType
from qgpu.ir.core.values import Value
from qgpu.ir.passes.blocks import split_before
from qgpu.ir.passes.errors import PassError
from qgpu.ir.passes.manager import Pass


@dataclass(frozen=True)
class LowerPrintf(Pass):
    """Turns each printf into a record of words in a global array.

    The array's first word counts the words of all records; they follow it. A record is the number of its
    format, from 1, and the operands: two words, the low one first, where a conversion takes 64 bits. A record
    that does not fit is counted and left out, and so are those after it. Records are in the order in which
    threads reserve their words. The attribute `printf` names the array, `printf.1` and so
    on are the formats.

    Contract: what is printed is what it was, as far as it fits. Raises PassError for a format that takes more
    or fewer values than the printf has. Options: `words` is the size of the array, in words.
    """

    name: ClassVar[str] = "lower-printf"
    words: int = 256

    def run(self, function: Function) -> bool:
        found = [i for i in function.instructions if i.op == "printf"]
        if not found:
            return False
        array = _array_name(function)
        function.shared.append(Array(array, "global", 4 * self.words))
        function.attrs["printf"] = array
        formats: dict[str, int] = {}
        for instruction in found:
            text = instruction.attrs["format"]
            number = formats.setdefault(text, len(formats) + 1)
            function.attrs[f"printf.{number}"] = text
            _lower(instruction, array, number, self.words - 1)
        return True


def _array_name(function: Function) -> str:
    name = "printf"
    while any(array.name == name for array in function.shared):
        name += "_"
    return name


def _lower(printf: Instruction, array: str, number: int, room: int) -> None:
    """Reserves the words of a record and, where they lie in the array, stores them."""
    builder = Builder().before(printf)
    words = [constant(I32, number), *_operand_words(builder, printf)]
    start = builder.addrof(array, "global")
    place = builder.atomicrmw("add", start, constant(I32, len(words)))
    if len(words) <= room:
        fits = builder.icmp("ule", place, constant(I32, room - len(words)))
        _store_where(builder, fits, printf, builder.ptradd(start, place, 4, disp=4), words)
    printf.erase()


def _store_where(
    builder: Builder, condition: Value, printf: Instruction, pointer: Value, words: list[Value]
) -> None:
    """Stores words in threads where a condition holds, in a block of their own in front of the printf."""
    block = printf.block
    rest = split_before(printf)
    assert block.parent is not None
    record = block.parent.add_block("printf", before=rest)
    block.terminator.erase()
    builder.at_end(block).condbr(condition, record, rest)
    builder.at_end(record)
    for index, word in enumerate(words):
        builder.store(builder.ptradd(pointer, constant(I32, index), 4), word)
    builder.br(rest)


def _operand_words(builder: Builder, printf: Instruction) -> list[Value]:
    """The operands' words, as many as their conversions take."""
    sizes = conversion_words(printf.attrs["format"])
    if len(sizes) != len(printf.operands):
        values = f"{len(sizes)} values and has {len(printf.operands)}"
        raise PassError(f"printf's format takes {values}", printf, "a width has to be a number")
    words: list[Value] = []
    for size, operand in zip(sizes, printf.operands, strict=True):
        type_ = operand.type
        assert isinstance(type_, IntType)
        wide = type_ is I64
        words.append(builder.cast("trunc" if wide else "zext", operand, I32))
        if size == 2:
            words.append(builder.emit("high", operand) if wide else constant(I32, 0))
    return words
