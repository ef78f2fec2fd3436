"""What device code printed: the text of the records that a launch left in its buffer (`Printf`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qgpu.backends.machine.program import Printf
from qgpu.ir.core.formats import conversion_words


def printed(printf: Printf, count: int, words: Sequence[int]) -> str:
    """The text of the records in a buffer.

    Args:
        count: words that the kernel has reserved, as the buffer's first word says.
        words: those that follow it: all that are reserved and lie in the buffer.
    """
    text = "".join(_records(printf, words))
    lost = 4 * (count - len(words))
    return text if lost <= 0 else f"{text}[printf: {lost} bytes more than its buffer has room for]\n"


def _records(printf: Printf, words: Sequence[int]) -> Iterator[str]:
    from qgpu.ir.interpreter.printing import format_text

    position = 0
    while position < len(words) and 0 < words[position] <= len(printf.formats):
        text = printf.formats[words[position] - 1]
        sizes = conversion_words(text)
        end = position + 1 + sum(sizes)
        if end > len(words):
            return
        yield format_text(text, list(_values(words[position + 1 : end], sizes)))
        position = end


def _values(words: Sequence[int], sizes: Sequence[int]) -> Iterator[int]:
    position = 0
    for size in sizes:
        yield sum(word << 32 * i for i, word in enumerate(words[position : position + size]))
        position += size
