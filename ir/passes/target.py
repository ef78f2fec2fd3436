"""What passes have to know about the machine that a kernel is compiled for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """The sizes of a machine that passes depend on.

    Attributes:
        warp_size: lanes of a warp.
        threads: threads of the largest thread block.
        memory_words: 32-bit words of the memory that buffers, shared and local memory lie in.
    """

    warp_size: int = 32
    threads: int = 1024
    memory_words: int = 65536
