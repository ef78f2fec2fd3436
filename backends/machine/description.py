"""Machine descriptions: the sizes that a machine is built to, and the shape of the layers that host it."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

BUFFER_ALIGN_WORDS = 4
"""Buffers start at a multiple of this many words, so that a descriptor holds the base in units of it."""

DESCRIPTOR_BASE_BITS = 14
"""Low bits of a buffer descriptor: the base in units of BUFFER_ALIGN_WORDS words; the rest is the bytes."""

MAX_MEMORY_WORDS = BUFFER_ALIGN_WORDS << DESCRIPTOR_BASE_BITS

MAX_REGISTER_WORDS = 1 << 16

POWERS_OF_TWO = (
    "lanes",
    "warps",
    "register_words",
    "accumulator_rows",
    "uniform_registers",
    "rom_blocks",
    "memory_words",
)
"""The fields of a description that are powers of two."""


class DescriptionError(ValueError):
    """A machine description that contradicts itself, or that no layer of its model shape can hold."""


@dataclasses.dataclass(frozen=True)
class ModelShape:
    """The shape of the host's layers, in the terms of `Qwen3_5TextConfig`.

    They are those of Qwen3.5-0.8B (16 + 16 heads of 128).
    `key_dim` is the size of a head's keys, and so the number of rows of its memory; `head_dim` that of its
    values, the columns. `intermediate` is an upper bound: the emitted checkpoint takes what its widest layer
    needs.
    """

    hidden: int = 1024
    heads: int = 16
    key_dim: int = 128
    head_dim: int = 128
    intermediate: int = 3584

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if getattr(self, field.name) < 1:
                raise DescriptionError(f"model: {field.name} = {getattr(self, field.name)} is not positive")


@dataclasses.dataclass(frozen=True)
class MachineDescription:
    """The sizes of one SIMT machine. All counts of lanes, warps, rows and blocks are powers of two.

    Attributes:
        name: what the machine is called in reports and checkpoints.
        lanes: lanes of a warp.
        warps: warps of the largest thread block.
        register_words: 32-bit words of the thread register file; a kernel with R registers (R rounded up to a
            power of two) runs thread blocks of at most register_words / lanes / R warps.
        uniform_registers: 32-bit registers that the whole thread block shares, including the host's.
        accumulator_rows: rows of the register file, from row 0 on, that the accumulator port reads.
        predicates: predicate registers of a lane; predicate 0 says that the thread exists.
        rom_blocks: blocks of program memory.
        memory_words: 32-bit words of data memory.
        payload_bits: bits of a value that one token carries.
        model: shape of the layers that host the machine.
    """

    name: str
    lanes: int = 32
    warps: int = 32
    register_words: int = 4096
    accumulator_rows: int = 32
    uniform_registers: int = 64
    predicates: int = 8
    rom_blocks: int = 1024
    memory_words: int = 4096
    payload_bits: int = 12
    model: ModelShape = ModelShape()

    def __post_init__(self) -> None:
        for field in POWERS_OF_TWO:
            value = getattr(self, field)
            if value < 1 or value & (value - 1):
                raise DescriptionError(f"machine '{self.name}': {field} = {value} is not a power of two")
        limits = (
            ("lanes", 2, 32),
            ("warps", 1, 32),
            ("register_words", 2, MAX_REGISTER_WORDS),
            ("predicates", 2, self.payload_bits - 1),
            ("accumulator_rows", 1, MAX_REGISTER_WORDS),
            ("uniform_registers", 4, self.model.key_dim),
            ("memory_words", 16, MAX_MEMORY_WORDS),
            ("rom_blocks", 4, 4096),
            ("payload_bits", 11, 16),
        )
        for field, low, high in limits:
            value = getattr(self, field)
            if not low <= value <= high:
                raise DescriptionError(f"machine '{self.name}': {field} = {value} is outside {low}..{high}")
        if self.register_words < self.lanes * self.warps:
            raise DescriptionError(
                f"machine '{self.name}': {self.register_words} register words give {self.lanes * self.warps} "
                "threads less than one register each"
            )
        if self.uniform_registers < self.lanes:
            raise DescriptionError(
                f"machine '{self.name}': {self.uniform_registers} uniform registers are fewer than "
                f"{self.lanes} lanes; the host loads one uniform register a lane"
            )

    @property
    def register_rows(self) -> int:
        """Rows of the register file; a row is one register of one warp."""
        return self.register_words // self.lanes

    @property
    def threads(self) -> int:
        """Threads of the largest thread block."""
        return self.lanes * self.warps

    @property
    def parts(self) -> int:
        """Tokens of the longest encoding of a 32-bit value."""
        return -(-32 // self.payload_bits)

    def warp_stride(self, registers: int) -> int:
        """Warps that share the register file when each thread has `registers` registers (a power of two).

        Register r of warp w lies in row r * stride + w.

        Raises:
            DescriptionError: a single warp already needs more rows than there are.
        """
        rounded = 1 << max(0, registers - 1).bit_length()
        if rounded > self.register_rows:
            raise DescriptionError(
                f"machine '{self.name}' has {self.register_rows} registers a thread; {registers} are needed"
            )
        return min(self.warps, self.register_rows // rounded)


DEFAULT = MachineDescription("default")

SMALL = MachineDescription(
    "small",
    lanes=4,
    warps=2,
    register_words=128,
    uniform_registers=32,
    predicates=8,
    rom_blocks=64,
    memory_words=128,
    payload_bits=12,
    model=ModelShape(hidden=512, heads=4, head_dim=128, intermediate=3584),
)
"""A description for tests: the same machine in every unit, with files small enough for four heads a layer."""

LARGE = MachineDescription(
    "large",
    lanes=32,
    warps=32,
    register_words=MAX_REGISTER_WORDS,
    uniform_registers=128,
    accumulator_rows=512,
    predicates=13,
    rom_blocks=4096,
    memory_words=MAX_MEMORY_WORDS,
    payload_bits=14,
    model=ModelShape(key_dim=1024),
)
"""As much of everything as the formats of blocks, descriptors and tokens have room for.

Whole kernels of CUDA code are compiled for it.
"""

SEED = MachineDescription(
    "seed",
    lanes=4,
    warps=8,
    register_words=512,
    uniform_registers=32,
    rom_blocks=32,
    memory_words=128,
)
"""The smallest machine that is of use: qwenGPU's sizes (blocks of 32 threads, 16 registers, 128 words)."""

BUILTIN = {machine.name: machine for machine in (DEFAULT, SEED, SMALL, LARGE)}


def load_description(name_or_path: str) -> MachineDescription:
    """Return the built-in machine of that name, or read one from a TOML file.

    A file has the fields of MachineDescription at its top level and those of ModelShape in a table `model`;
    what it leaves out is as in the default machine.

    Raises:
        DescriptionError: unknown name, unreadable file, unknown field, or a value of the wrong type.
    """
    if name_or_path in BUILTIN:
        return BUILTIN[name_or_path]
    path = Path(name_or_path)
    if not path.exists():
        raise DescriptionError(
            f"no machine '{name_or_path}': not a file, and not one of {', '.join(BUILTIN)}"
        )
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DescriptionError(f"{path}: {error}") from error
    return description_from_table({"name": path.stem, **table}, str(path))


def description_from_table(table: dict[str, Any], where: str) -> MachineDescription:
    """Build a description from plain data (TOML or JSON); `where` names the source in errors.

    Raises:
        DescriptionError: unknown field, or a value of the wrong type.
    """
    table = dict(table)
    model = table.pop("model", {})
    if not isinstance(model, dict):
        raise DescriptionError(f"{where}: model is not a table")
    shape = _checked(ModelShape, model, f"{where}: model")
    if "name" not in table:
        raise DescriptionError(f"{where}: name is missing")
    return MachineDescription(**_checked(MachineDescription, table, where), model=ModelShape(**shape))


def _checked(kind: type, table: dict[str, Any], where: str) -> dict[str, Any]:
    known = {field.name: field.type for field in dataclasses.fields(kind) if field.name != "model"}
    for key, value in table.items():
        if key not in known:
            raise DescriptionError(f"{where}: unknown field '{key}'; known: {', '.join(known)}")
        wanted = str if known[key] == "str" else int
        if type(value) is not wanted:
            raise DescriptionError(f"{where}: {key} must be {wanted.__name__}, not {value!r}")
    return table
