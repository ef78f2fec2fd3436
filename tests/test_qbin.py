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
from qgpu.backends.machine.program import HiddenBuffer, Parameter, Preload, Printf, SharedArray, SourceLine
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": (HiddenBuffer("t", 2, b"abc"),)}, "'t' has 2 bytes and starts as 3"),
        ({"hidden": (HiddenBuffer("t", 2, uniform=1),)}, "uniform register 1 is both"),
        ({"printf": Printf(0, ("%d",))}, "hidden buffer 0 of 0"),
        ({"shared_arrays": (SharedArray("s", 4, 8),), "shared_bytes": 8}, "'s' ends beyond the 8 bytes"),
        ({"thread_block_end": 99}, "block 99 of"),
        ({"local_bytes": 6}, "6 bytes of local memory"),
        ({"messages": ((0, "n > 0"),)}, "block 0, which is to say 'n > 0', is no trap"),
    ],
)
def test_memory_that_no_launch_can_add_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        program_bytes(machine_kernels.program(replace(machine_kernels.vecadd(), **change)))  # pyright: ignore


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


TRIANGLE = machine_kernels.triangle()
WRONG_KERNELS = {
    "it has no block": replace(TRIANGLE, blocks=(), lines=()),
    "it needs 65 blocks; machine 'small' has 64": replace(
        TRIANGLE, blocks=(Block(),) * 65, lines=machine_kernels.lines(65)
    ),
    "7 blocks have 2 source lines": replace(TRIANGLE, lines=machine_kernels.lines(2)),
    "a register stride of 4 warps": replace(TRIANGLE, warp_stride=4),
    "17 registers in 2 warps": replace(TRIANGLE, registers=17),
    "9 predicates": replace(TRIANGLE, predicates=9),
    "uniform register 0 is both the host's address and 'out'": replace(
        TRIANGLE, parameters=(Parameter("out", "u32", True, (0,)),)
    ),
    "unknown type 'f32'": replace(TRIANGLE, parameters=(Parameter("x", "f32", False, (1,)),)),
    "parameter 'x' has 1 uniform registers, not 2": replace(
        TRIANGLE, parameters=(Parameter("x", "i64", False, (1,)),)
    ),
    "preload 'tid.x' has block 9 of 7": replace(TRIANGLE, preloads=(Preload("tid.x", block=9),)),
    "block 5 does not write a register of every thread": replace(
        TRIANGLE, preloads=(Preload("tid.x", block=5),)
    ),
    "preload 'ntid.x' has one value a launch": replace(TRIANGLE, preloads=(Preload("ntid.x", block=6),)),
}


@pytest.mark.parametrize("message", WRONG_KERNELS)
def test_kernels_that_no_machine_defines(message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        program_bytes(machine_kernels.program(WRONG_KERNELS[message]))


WRONG_BLOCKS = {
    "imm = -1 does not fit 32 bits": Block(imm=-1),
    "operand X has 2 sources: a_to_x, imm_to_x": Block(a_to_x=1, imm_to_x=1),
    "next is block 9 of 7": Block(next=9),
    "taken is block 8 of 7": Block(branch_any=1, taken=8),
    "m_sub_to_x without a width": Block(m_sub_to_x=1),
    "merge without a width": Block(op="merge"),
    "merge without a check": Block(op="merge", width16=1),
    "a trap of kind 5": Block(trap=1, imm=5),
    "the displacement 2097152 is not one of 22 bits": Block(imm_to_j=1, imm=1 << 21),
    "scalar and all_warps": Block(visit=1, scalar=1, all_warps=1),
    "dest_lane is the firmware's": Block(dest_lane=1),
    "it writes uniform register 0, the host's": Block(wr_uni=1),
    "dest = 31 in 2 warps; machine 'small' has 32 rows": Block(wr_reg=1, dest=31),
    "a = 3 is not a row of warp 0": Block(a_thread=1, a=3),
    "op = 'nop' is not one of": Block(op="nop"),
}


@pytest.mark.parametrize("message", WRONG_BLOCKS)
def test_blocks_that_no_machine_defines(message: str) -> None:
    blocks = (WRONG_BLOCKS[message], *TRIANGLE.blocks[1:])
    with pytest.raises(ProgramError, match="block 0: " + message):
        program_bytes(machine_kernels.program(replace(TRIANGLE, blocks=blocks)))


def test_kernels_of_one_name_are_refused() -> None:
    with pytest.raises(ProgramError, match="two kernels are called 'triangle'"):
        program_bytes(machine_kernels.program(TRIANGLE, TRIANGLE))
