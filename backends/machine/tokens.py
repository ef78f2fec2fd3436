"""The vocabulary: what each token of a launch says. docs/tokens.md is the prose of this file."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from qgpu.backends.machine.block import FAULTS, row_bits
from qgpu.backends.machine.description import MachineDescription
from qgpu.backends.machine.firmware import firmware_blocks

STAGE_PARTS = 3
"""Value parts that a STAGE token gathers: as many tokens as a layer's convolution sees before its own."""

KINDS: dict[str, str] = {
    "pad": "nothing; never part of a launch",
    "reset": "the first token of every sequence: writes the constants of the predicate file",
    "exit": "the launch, or the answer to READ, has ended",
    "fault": "the launch has stopped with the fault of that kind",
    "launch": "begin a launch of that many warps (1 ...), at the program's entry block",
    "firmware": "start that firmware block",
    "exec": "start that program block, at lane 0 of warp 0",
    "lane": "go on at that lane: the lanes before it are inactive",
    "warp": "go on at lane 0 of that warp",
    "stage": "the three MORE before it are bits of that slice of a program row",
    "rom": "the staged slices are the row of that program block",
    "last": "the last part of a value, sign-extended; the lane's result is committed",
    "final": "the same, and the block is done: the next one begins, at lane 0 of warp 0",
    "more": "a part of a value that is not its last, low part first",
}
"""Token kinds in the order of their ids."""


@dataclass(frozen=True)
class Token:
    """A token: its kind and its number within the kind."""

    kind: str
    index: int

    def __str__(self) -> str:
        return f"<{self.kind}:{self.index}>"


class Vocabulary:
    """The tokens of a machine, and their ids.

    The kinds have consecutive id ranges in the order of KINDS. `firmware` holds one token for each firmware
    block, `launch` one for each number of warps.
    """

    def __init__(self, machine: MachineDescription) -> None:
        self.machine = machine
        self.firmware_names = tuple(firmware.name for firmware in firmware_blocks(machine))
        counts = {
            "pad": 1,
            "reset": 1,
            "exit": 1,
            "fault": len(FAULTS),
            "launch": machine.warps,
            "firmware": len(self.firmware_names),
            "exec": machine.rom_blocks,
            "lane": machine.lanes,
            "warp": machine.warps,
            "stage": stage_slices(machine),
            "rom": machine.rom_blocks,
            "last": 1 << machine.payload_bits,
            "final": 1 << machine.payload_bits,
            "more": 1 << machine.payload_bits,
        }
        self.first: dict[str, int] = {}
        self.counts = counts
        position = 0
        for kind in KINDS:
            self.first[kind] = position
            position += counts[kind]
        self.size = position

    def id(self, kind: str, index: int = 0) -> int:
        """Return the id of a token.

        Raises:
            KeyError: no such kind.
            ValueError: no such token of that kind.
        """
        if not 0 <= index < self.counts[kind]:
            raise ValueError(f"token <{kind}:{index}>: this machine has {self.counts[kind]} of its kind")
        return self.first[kind] + index

    def firmware(self, name: str) -> int:
        """Return the id of the token that starts the firmware block `name`."""
        return self.id("firmware", self.firmware_names.index(name))

    def launch(self, warps: int) -> int:
        """Return the id of the token that begins a launch of `warps` warps."""
        return self.id("launch", warps - 1)

    def token(self, token_id: int) -> Token:
        """Return the token of an id.

        Raises:
            ValueError: the id is outside the vocabulary.
        """
        for kind in reversed(KINDS):
            if self.first[kind] <= token_id < self.size:
                return Token(kind, token_id - self.first[kind])
        raise ValueError(f"token id {token_id} is outside 0..{self.size - 1}")

    def name(self, token_id: int) -> str:
        """Return the text of a token, as the tokenizer has it: `<exec:3>`, `<last:42>`, `<read>`, ..."""
        token = self.token(token_id)
        if token.kind == "firmware":
            return f"<{self.firmware_names[token.index]}>"
        if token.kind == "fault":
            return f"<fault:{FAULTS[token.index]}>"
        if self.counts[token.kind] == 1:
            return f"<{token.kind}>"
        return str(Token(token.kind, token.index + 1)) if token.kind == "launch" else str(token)

    def value(self, value: int, ending: str = "last") -> list[int]:
        """Return the shortest encoding of a 32-bit value (given modulo 2^32): MORE ... LAST (or `ending`).

        A value ends with the first part whose sign extension is the rest of the value; parts are low first.
        """
        bits = self.machine.payload_bits
        value &= 0xFFFFFFFF
        signed = value - (1 << 32) if value >> 31 else value
        ids: list[int] = []
        while not -(1 << (bits - 1)) <= signed < 1 << (bits - 1):
            ids.append(self.id("more", signed & ((1 << bits) - 1)))
            signed >>= bits
        ids.append(self.id(ending, signed & ((1 << bits) - 1)))
        return ids

    def parse_value(self, ids: list[int]) -> int:
        """Return the value, 0 <= v < 2^32, of one MORE ... LAST or FINAL sequence.

        Raises:
            ValueError: the ids are not such a sequence.
        """
        bits = self.machine.payload_bits
        tokens = [self.token(i) for i in ids]
        kinds = [token.kind for token in tokens]
        ordered = kinds[:-1] == ["more"] * (len(kinds) - 1) and kinds[-1:] in (["last"], ["final"])
        if not ordered or len(tokens) > self.machine.parts:
            raise ValueError(f"not one value: {' '.join(self.name(i) for i in ids)}")
        number = sum(token.index << bits * i for i, token in enumerate(tokens))
        if tokens[-1].index >> (bits - 1):
            number -= 1 << bits * len(tokens)
        return number & 0xFFFFFFFF


def stage_slices(machine: MachineDescription) -> int:
    """Slices of a program row; a slice has STAGE_PARTS * payload_bits bits."""
    return -(-row_bits(machine) // (STAGE_PARTS * machine.payload_bits))


@functools.cache
def vocabulary(machine: MachineDescription) -> Vocabulary:
    """Return the vocabulary of a machine; one object a machine."""
    return Vocabulary(machine)
