"""The `.qbin` file: a program on disk.

    offset  bytes
    0       4      magic "QBIN"
    4       2      version of the format, 3
    6       2      0
    8       8      length of the payload
    16      32     SHA-256 of the payload
    48      ...    payload: machine description, block format, source name, kernels

Numbers are unsigned and little-endian; a text is its length in bytes (4) and UTF-8. The machine description
is JSON text, so that a reader can tell which machine a file is for without knowing its fields. Rows of
program memory are packed eight bits a byte, first bit lowest, each row from a byte of its own.

A kernel is its name, six sizes (registers, predicates, warp stride, shared bytes, bound of threads, local
bytes), its parameters, preloads, hidden buffers with what they start as, printf formats (before them the
number of their buffer and one, or 0), assertions, arrays of shared memory, the block after each thread block
and one (or 0), source files, number of blocks, rows, source lines, and the rows with their numbers that
replace others in launches of flat thread blocks, and of one thread block.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from qgpu.backends.machine.block import Block, BlockError, block_fields, decode_block, encode_block, row_bits
from qgpu.backends.machine.description import MachineDescription, description_from_table
from qgpu.backends.machine.program import (
    HiddenBuffer,
    Kernel,
    Parameter,
    Preload,
    Printf,
    Program,
    SharedArray,
    SourceLine,
)
from qgpu.backends.machine.verify import ProgramError, verify_kernel, verify_program

MAGIC = b"QBIN"
VERSION = 3
_HEADER_BYTES = 48
_FORMAT_BYTES = 8
_T = TypeVar("_T")


class QbinError(ValueError):
    """A file that is no `.qbin`, or a damaged one.

    Attributes:
        offset: byte of the file where that shows.
        reason: what is wrong there.
    """

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"not a valid .qbin file: at byte {offset}: {reason}")
        self.offset = offset
        self.reason = reason


def save_program(program: Program, path: str | os.PathLike[str]) -> None:
    """Write a program to a file; one that is there is replaced only when the new one is complete.

    Raises:
        ProgramError: the program is not one that its machine defines.
        OSError: the file cannot be written.
    """
    write_atomically(path, program_bytes(program))


def load_program(path: str | os.PathLike[str]) -> Program:
    """Read a program from a file.

    Raises:
        QbinError: the content is not that of a `.qbin`, or is damaged.
        OSError: the file cannot be read.
    """
    return program_from_bytes(Path(path).read_bytes())


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file through a temporary one beside it, so that no reader sees half of it.

    Raises:
        OSError: the file cannot be written; what was there is as it was.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def program_bytes(program: Program) -> bytes:
    """Return the content of a program's `.qbin`.

    Raises:
        ProgramError: the program is not one that its machine defines.
    """
    verify_program(program)
    payload = b"".join(
        (
            _text(json.dumps(dataclasses.asdict(program.machine), sort_keys=True)),
            _format_id(program.machine),
            _text(program.source),
            _list(program.kernels, functools.partial(_kernel_bytes, machine=program.machine)),
        )
    )
    header = MAGIC + _number(VERSION, 2) + _number(0, 2) + _number(len(payload), 8)
    return header + hashlib.sha256(payload).digest() + payload


def program_from_bytes(data: bytes) -> Program:
    """Return the program of a `.qbin`'s content.

    Raises:
        QbinError: the content is not that of a `.qbin`, or is damaged.
    """
    reader = _Reader(data)
    if reader.take(len(MAGIC), "the magic") != MAGIC:
        raise QbinError(0, "the magic 'QBIN' is missing")
    version = reader.number(2, "the version")
    if version != VERSION:
        raise QbinError(
            4, f"format version {version}; this program reads version {VERSION}: compile the source again"
        )
    if reader.number(2, "the header"):
        raise QbinError(6, "bits that no version defines are set")
    length = reader.number(8, "the length")
    digest = reader.take(32, "the checksum")
    if length != len(data) - _HEADER_BYTES:
        raise QbinError(8, f"{length} bytes are announced and {len(data) - _HEADER_BYTES} there")
    if hashlib.sha256(data[_HEADER_BYTES:]).digest() != digest:
        raise QbinError(16, "the checksum does not match the content")
    machine = _read_machine(reader)
    source = reader.text("the source name")
    kernels = tuple(reader.list("kernels", lambda: _read_kernel(reader, machine)))
    reader.end()
    program = Program(machine, kernels, source)
    try:
        verify_program(program)
    except ProgramError as error:
        raise QbinError(_HEADER_BYTES, str(error)) from error
    return program


@functools.cache
def _format_id(machine: MachineDescription) -> bytes:
    """Identity of the block format: a file of another format would decode to other blocks."""
    fields = [(field.name, field.width, field.choices) for field in block_fields(machine)]
    return hashlib.sha256(repr(fields).encode()).digest()[:_FORMAT_BYTES]


_SIZES = ("registers", "predicates", "warp_stride", "shared_bytes", "max_threads", "local_bytes")


def _kernel_bytes(kernel: Kernel, machine: MachineDescription) -> bytes:
    files = sorted({line.file for line in kernel.lines})
    sizes = (getattr(kernel, name) for name in _SIZES)
    rows = (_row_bytes(encode_block(block, machine)) for block in kernel.blocks)

    def variant_bytes(variant: tuple[int, Block]) -> bytes:
        return _number(variant[0], 4) + _row_bytes(encode_block(variant[1], machine))

    lines = (
        _number(files.index(line.file), 4) + _number(line.line, 4) + _number(line.column, 4)
        for line in kernel.lines
    )
    return b"".join(
        (
            _text(kernel.name),
            *(_number(size, 4) for size in sizes),
            _list(kernel.parameters, _parameter_bytes),
            _list(kernel.preloads, _preload_bytes),
            _list(kernel.hidden, _hidden_bytes),
            _optional(kernel.printf.buffer if kernel.printf else None),
            _list(kernel.printf.formats if kernel.printf else (), _text),
            _list(kernel.messages, lambda message: _number(message[0], 4) + _text(message[1])),
            _list(kernel.shared_arrays, _shared_bytes),
            _optional(kernel.thread_block_end),
            _list(files, _text),
            _number(len(kernel.blocks), 4),
            *rows,
            *lines,
            *(_list(variants, variant_bytes) for variants in (kernel.flat, kernel.single)),
        )
    )


def _parameter_bytes(parameter: Parameter) -> bytes:
    registers = _list(parameter.uniform, lambda register: _number(register, 4))
    return _text(parameter.name) + _text(parameter.type) + _number(parameter.pointer, 1) + registers


def _preload_bytes(preload: Preload) -> bytes:
    return _text(preload.name) + _optional(preload.block) + _optional(preload.uniform)


def _hidden_bytes(hidden: HiddenBuffer) -> bytes:
    start = _number(len(hidden.data), 4) + hidden.data
    return _text(hidden.name) + _number(hidden.size, 4) + _optional(hidden.uniform) + start


def _shared_bytes(array: SharedArray) -> bytes:
    return _text(array.name) + _number(array.offset, 4) + _number(array.size, 4)


def _optional(value: int | None) -> bytes:
    return _number(0, 4) if value is None else _number(value + 1, 4)


def _number(value: int, size: int) -> bytes:
    return int(value).to_bytes(size, "little")


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return _number(len(data), 4) + data


def _list(items: tuple[_T, ...] | list[_T], encode: Callable[[_T], bytes]) -> bytes:
    return _number(len(items), 4) + b"".join(map(encode, items))


def _row_bytes(bits: tuple[int, ...]) -> bytes:
    return sum(bit << i for i, bit in enumerate(bits)).to_bytes(-(-len(bits) // 8), "little")


class _Reader:
    """A position in the file; every read checks that the bytes are there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0

    def take(self, size: int, what: str) -> bytes:
        left = len(self.data) - self.offset
        if size > left:
            raise QbinError(self.offset, f"{what}: {size} bytes are needed and {left} left")
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def number(self, size: int, what: str) -> int:
        return int.from_bytes(self.take(size, what), "little")

    def text(self, what: str) -> str:
        size = self.number(4, what)
        start = self.offset
        try:
            return self.take(size, what).decode("utf-8", "surrogateescape")
        except UnicodeDecodeError as error:
            raise QbinError(start + error.start, f"{what} is not UTF-8") from error

    def optional(self, what: str) -> int | None:
        value = self.number(4, what)
        return value - 1 if value else None

    def list(self, what: str, read: Callable[[], _T]) -> list[_T]:
        count = self.number(4, f"the number of {what}")
        if count > len(self.data) - self.offset:
            raise QbinError(self.offset - 4, f"{count} {what} in {len(self.data) - self.offset} bytes")
        return [read() for _ in range(count)]

    def end(self) -> None:
        if self.offset != len(self.data):
            raise QbinError(self.offset, f"{len(self.data) - self.offset} bytes after the last kernel")


def _read_machine(reader: _Reader) -> MachineDescription:
    start = reader.offset
    try:
        table = json.loads(reader.text("the machine description"))
        if not isinstance(table, dict):
            raise QbinError(start, "the machine description is not a table")
        machine = description_from_table(table, "machine description")
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, QbinError) else QbinError(start, str(error)) from error
    if reader.take(_FORMAT_BYTES, "the block format") != _format_id(machine):
        raise QbinError(reader.offset - _FORMAT_BYTES, "compiled for another block format; compile it again")
    return machine


def _read_kernel(reader: _Reader, machine: MachineDescription) -> Kernel:
    start = reader.offset
    name = reader.text("a kernel's name")
    sizes = {size: reader.number(4, f"the resources of kernel '{name}'") for size in _SIZES}
    parameters = reader.list("parameters", lambda: _read_parameter(reader))
    preloads = reader.list("preloads", lambda: _read_preload(reader))
    hidden = reader.list("hidden buffers", lambda: _read_hidden(reader))
    buffer = reader.optional("the buffer of printf")
    formats = tuple(reader.list("printf formats", lambda: reader.text("a printf format")))
    messages = reader.list("assertions", lambda: _read_message(reader))
    arrays = reader.list("arrays of shared memory", lambda: _read_shared(reader))
    end = reader.optional("the block after each thread block")
    files = reader.list("source files", lambda: reader.text("a source file's name"))
    count = reader.number(4, f"the number of blocks of kernel '{name}'")
    if count > machine.rom_blocks:
        raise QbinError(reader.offset - 4, f"{count} blocks; the machine has {machine.rom_blocks}")
    blocks = tuple(_read_block(reader, machine, number) for number in range(count))
    lines = tuple(_read_line(reader, files) for _ in range(count))
    flat, single = (reader.list("variants", lambda: _read_variant(reader, machine)) for _ in range(2))
    kernel = Kernel(
        name,
        tuple(parameters),
        tuple(preloads),
        blocks,
        lines,
        **sizes,
        hidden=tuple(hidden),
        printf=None if buffer is None else Printf(buffer, formats),
        messages=tuple(messages),
        flat=tuple(flat),
        single=tuple(single),
        shared_arrays=tuple(arrays),
        thread_block_end=end,
    )
    try:
        verify_kernel(kernel, machine)
    except ProgramError as error:
        raise QbinError(start, str(error)) from error
    return kernel


def _read_parameter(reader: _Reader) -> Parameter:
    name, kind = reader.text("a parameter's name"), reader.text("a parameter's type")
    pointer = reader.number(1, "a parameter's kind")
    if pointer > 1:
        raise QbinError(reader.offset - 1, f"parameter '{name}' is of kind {pointer}, not 0 or 1")
    registers = reader.list("uniform registers", lambda: reader.number(4, "a uniform register"))
    return Parameter(name, kind, bool(pointer), tuple(registers))


def _read_preload(reader: _Reader) -> Preload:
    name = reader.text("a preload's name")
    return Preload(name, reader.optional("a preload's block"), reader.optional("a preload's register"))


def _read_hidden(reader: _Reader) -> HiddenBuffer:
    name = reader.text("a hidden buffer's name")
    size = reader.number(4, "a hidden buffer's size")
    uniform = reader.optional("a hidden buffer's register")
    data = reader.take(reader.number(4, "the length of a hidden buffer's data"), "a hidden buffer's data")
    return HiddenBuffer(name, size, data, uniform)


def _read_shared(reader: _Reader) -> SharedArray:
    name = reader.text("a shared array's name")
    return SharedArray(name, *(reader.number(4, "a shared array's place") for _ in range(2)))


def _read_message(reader: _Reader) -> tuple[int, str]:
    return reader.number(4, "an assertion's block"), reader.text("an assertion")


def _read_block(reader: _Reader, machine: MachineDescription, number: int) -> Block:
    start, width = reader.offset, row_bits(machine)
    row = int.from_bytes(reader.take(-(-width // 8), f"block {number}"), "little")
    if row >> width:
        raise QbinError(start, f"block {number} has bits beyond its {width}")
    try:
        return decode_block(tuple(row >> i & 1 for i in range(width)), machine)
    except BlockError as error:
        raise QbinError(start, f"block {number}: {error}") from error


def _read_variant(reader: _Reader, machine: MachineDescription) -> tuple[int, Block]:
    number = reader.number(4, "a variant's block")
    return number, _read_block(reader, machine, number)


def _read_line(reader: _Reader, files: list[str]) -> SourceLine:
    start = reader.offset
    file, line, column = (reader.number(4, "a source line") for _ in range(3))
    if file >= len(files):
        raise QbinError(start, f"source file {file} of {len(files)}")
    return SourceLine(files[file], line, column)
