"""Instructions that are not lowered: each is refused with the reason and what to do instead."""

import pytest

from ptx_cases import BLACKWELL, head, lower
from qgpu.toolchain.diagnostics import DiagnosticError

REGISTERS = """
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .f32 %f<9>; .reg .f64 %d<9>;
.reg .b128 %q<9>; .shared .align 16 .b8 s[64];
"""
FLOAT = "it computes with floating-point numbers, and the machine computes with integers"
WIDE = "the machine has no registers of 128 bits; use two of 64"
COPY = "it needs asynchronous copies; copy with loads and stores"
SIZES = "an asynchronous copy to shared memory has 4, 8 or 16 bytes, with .cg 16"
BARRIER = "it needs barrier objects in shared memory; synchronise with __syncthreads() or bar.sync"
NARROW = "the machine compares and swaps words; use atom.cas.b32 on the word around it"
VIDEO = "it needs a unit for video; write it with shifts, masks, min and max"
CLUSTERS = "it needs clusters of thread blocks"


def messages(line: str) -> list[str]:
    text = f"{head(BLACKWELL)}.visible .entry k()\n{{\n{REGISTERS}\n{line}\nret;\n}}\n"
    with pytest.raises(DiagnosticError) as caught:
        lower(text)
    return [found.message for found in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("add.f32 %f1, %f2, %f3;", FLOAT),
        ("add.rn.f16x2 %r1, %r2, %r3;", FLOAT),
        ("fma.rn.f64 %d1, %d2, %d3, %d1;", FLOAT),
        ("cvt.rn.f32.s32 %f1, %r1;", FLOAT),
        ("setp.lt.f32 %p1, %f1, %f2;", FLOAT),
        ("slct.u32.f32 %r1, %r2, %r3, %f4;", FLOAT),
        ("atom.add.f32 %f1, [%l2], %f3;", FLOAT),
        ("mov.b128 %q1, {%l1, %l2};", WIDE),
        ("ld.shared.b128 %q1, [s];", WIDE),
        ("atom.exch.b128 %q1, [%l2], %q3;", WIDE),
        ("atom.cas.b16 %h1, [%l2], %h3, %h4;", NARROW),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%l2], 16, [%r3];", COPY),
        ("cp.async.ca.shared.global [%r1], [%l2], 12;", SIZES),
        ("cp.async.cg.shared.global [%r1], [%l2], 8;", SIZES),
        ("cp.async.ca.shared.global [%r1], [%l2], %r2;", SIZES),
        ("cp.async.mbarrier.arrive.shared.b64 [%r1];", BARRIER),
        ("mbarrier.init.shared.b64 [%r1], 32;", BARRIER),
        ("mbarrier.test_wait.shared.b64 %p1, [%r1], %l2;", BARRIER),
        ("vadd.s32.s32.s32 %r1, %r2, %r3;", VIDEO),
        ("barrier.cluster.arrive;", CLUSTERS),
        ("mapa.u64 %l1, %l2, %r1;", CLUSTERS),
        ("alloca.u64 %l1, %l2, 16;", "it needs a stack"),
        ("multimem.red.global.add.u32 [%l1], %r1;", "it needs memory that several devices share"),
        ("tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [%l1, {%r1}];", "it needs texture or surface memory"),
        ("mul.wide.u64 %l1, %l2, %l3;", "this form of the instruction is not known"),
        ("nothing.u32 %r1;", "the instruction is not known"),
    ],
)  # fmt: skip
def test_unsupported_instructions(line: str, reason: str) -> None:
    name = line.split()[0].rstrip(";")
    assert messages(line) == [f"unsupported instruction '{name}': {reason}"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "mov.b32 %r1, %envreg2;",
            "special register '%envreg2' is not supported: grid groups (cooperative launch) read it, "
            "but thread blocks run one after another",
        ),
        (
            "mov.u32 %r1, %reserved_smem_offset_0;",
            "special register '%reserved_smem_offset_0' is not supported: of what is "
            "reserved in shared memory only %reserved_smem_offset_1 is known",
        ),
        (
            "mov.u32 %r1, %pm0;",
            "special register '%pm0' is not supported: the machine has no performance counters",
        ),
        ("mov.u32 %r1, %nothing;", "special register '%nothing' is not supported"),
        ("lop3.b32 %r1, %r2, %r3, %r4, 256;", "the table of a lop3 has 8 bits"),
        ("add.u32 %r1, %l2, 1;", "operand has 64 bits where 32 are needed"),
        ("add.u32 %l1, %r2, 1;", "the result has 32 bits, its register 64"),
        ("setp.lo.s32 %p1, %r1, %r2;", "'lo' does not compare operands of type s32"),
        ("mov.b32 %r1, {%h1, %r2};", "the parts have to have 16 bits each"),
        ("mov.v2.u32 {%r1, %r2}, {%l1, %l2};", "the elements have to have 32 bits each"),
        (
            "vadd2.s32.s32.u32 %r1, %r2.h01, %r3, %r4;",
            "selectors and masks of fields are not supported: permute with prmt first",
        ),
        ("ld.shared.v2.u32 %r1, [s];", "the vector has 1 elements"),
        ("ld.shared.u32 %h1, [s];", "the register has 16 bits where 32 are loaded"),
    ],
)
def test_operands_that_do_not_fit(line: str, message: str) -> None:
    assert messages(line) == [message]
