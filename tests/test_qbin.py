"""The .qbin file: what is saved is loaded, and whatever is not a saved file is refused with a place."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import machine_kernels
from qgpu.backends.machine.block import FAULTS, Block
from qgpu.backends.machine.description import DEFAULT, SMALL, MachineDescription
from qgpu.backends.machine.program import HiddenBuffer, Printf, SharedArray, SourceLine
from qgpu.backends.machine.qbin import (
    QbinError,
    load_program,
    program_bytes,
    program_from_bytes,
    save_program,
)
from qgpu.backends.machine.verify import ProgramError

PROGRAM = machine_kernels.program(machine_kernels.vecadd(), machine_kernels.triangle())
DATA = program_bytes(PROGRAM)
HEADER = 48


def resealed(payload: bytes) -> bytes:
    """A file of that payload with the length and checksum that it should have."""
    head = DATA[:8] + len(payload).to_bytes(8, "little") + hashlib.sha256(payload).digest()
    return head + payload


def test_a_saved_program_is_loaded(tmp_path: Path) -> None:
    save_program(PROGRAM, tmp_path / "k.qbin")
    assert load_program(tmp_path / "k.qbin") == PROGRAM
    assert os.listdir(tmp_path) == ["k.qbin"]


def test_variants_survive() -> None:
    """Blocks that take the place of others in launches of flat thread blocks, or of one thread block."""
    kernel = machine_kernels.vecadd_flat()
    assert kernel.flat and kernel.single
    loaded = program_from_bytes(program_bytes(machine_kernels.program(kernel))).kernels[0]
    assert (loaded.flat, loaded.single) == (kernel.flat, kernel.single)


@pytest.mark.parametrize(
    "machine", [SMALL, DEFAULT, replace(SMALL, name="odd", payload_bits=13, predicates=5)]
)
def test_programs_of_every_machine(machine: MachineDescription) -> None:
    kernel = replace(machine_kernels.vecadd(machine), predicates=2, shared_bytes=64, max_threads=7)
    program = machine_kernels.program(kernel, machine=machine)
    assert program_from_bytes(program_bytes(program)) == program


def test_memory_that_the_launch_adds_survives() -> None:
    hidden = (HiddenBuffer("table", 12, b"\1\2", uniform=9), HiddenBuffer("ring", 64))
    stop = Block(visit=1, trap=1, imm=FAULTS.index("assert"), next_exit=1)
    kernel = replace(
        machine_kernels.vecadd(),
        local_bytes=40,
        hidden=hidden,
        printf=Printf(1, ("%d\n", "größe %llu")),
        blocks=(stop,),
        lines=machine_kernels.lines(1),
        preloads=(),
        messages=((0, "n > 0"),),
        shared_bytes=12,
        shared_arrays=(SharedArray("größe", 0, 8), SharedArray("rest", 8, 0)),
        thread_block_end=0,
    )
    program = machine_kernels.program(kernel)
    assert program_from_bytes(program_bytes(program)) == program


def test_names_and_lines_survive() -> None:
    kernel = machine_kernels.triangle()
    lines = (SourceLine(), SourceLine("ä b.cu", 70000, 300), *kernel.lines[2:])
    program = machine_kernels.program(replace(kernel, name="größe", lines=lines))
    assert program_from_bytes(program_bytes(program)) == program


def test_saving_keeps_the_old_file_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "k.qbin"
    path.write_bytes(b"old")
    broken = replace(machine_kernels.triangle(), blocks=(Block(next=5),), lines=machine_kernels.lines(1))
    with pytest.raises(ProgramError):
        save_program(machine_kernels.program(broken), path)
    assert path.read_bytes() == b"old"


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_any_changed_byte_is_refused(position: int, change: int) -> None:
    data = bytearray(DATA)
    data[position] ^= change
    with pytest.raises(QbinError) as caught:
        program_from_bytes(bytes(data))
    assert 0 <= caught.value.offset <= len(DATA)


@pytest.mark.parametrize("length", [0, 3, 4, 20, HEADER - 1, HEADER, HEADER + 1, len(DATA) - 1])
def test_any_shorter_file_is_refused(length: int) -> None:
    with pytest.raises(QbinError, match=r"at byte \d+: "):
        program_from_bytes(DATA[:length])


@given(st.integers(HEADER, len(DATA) - 1), st.integers(1, 255))
def test_a_resealed_change_is_refused_or_a_program(position: int, change: int) -> None:
    payload = bytearray(DATA[HEADER:])
    payload[position - HEADER] ^= change
    try:
        program = program_from_bytes(resealed(bytes(payload)))
    except QbinError as error:
        assert HEADER <= error.offset <= len(DATA)
        return
    assert program_from_bytes(program_bytes(program)) == program


@given(st.integers(0, len(DATA) - HEADER - 1))
def test_a_resealed_cut_is_refused(length: int) -> None:
    with pytest.raises(QbinError):
        program_from_bytes(resealed(DATA[HEADER : HEADER + length]))


@given(st.binary(max_size=200))
def test_foreign_content_is_refused(data: bytes) -> None:
    with pytest.raises(QbinError):
        program_from_bytes(data)


def test_what_follows_the_last_kernel_is_refused() -> None:
    with pytest.raises(QbinError, match="2 bytes after the last kernel"):
        program_from_bytes(resealed(DATA[HEADER:] + b"\0\0"))


def test_another_version_is_named() -> None:
    with pytest.raises(QbinError, match="format version 9; this program reads version 3: compile"):
        program_from_bytes(DATA[:4] + b"\t" + DATA[5:])


def test_another_block_format_is_named() -> None:
    start = DATA.index(b'"warps"')
    start = DATA.index(b"}", start) + 1
    data = DATA[HEADER:start] + bytes(8) + DATA[start + 8 :]
    with pytest.raises(QbinError, match="another block format"):
        program_from_bytes(resealed(data))
