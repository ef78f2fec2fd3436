"""Kernels that need more registers than there are: what they compute stays the same."""

import dataclasses
import hashlib
import struct

import pytest

from codegen_runs import LINEARISED, after, made, reversal, words
from codegen_sha import sha256_kernel
from qgpu.backends.machine.description import DEFAULT, LARGE, SMALL, MachineDescription
from qgpu.ir import verify
from qgpu.ir.parser import parse_function
from qgpu.ir.passes import default_pipeline
from qgpu.toolchain.codegen import generate_kernel
from qgpu.toolchain.diagnostics import DiagnosticError


@pytest.mark.parametrize(("machine", "count", "threads"), [(DEFAULT, 40, 2), (SMALL, 36, 1), (LARGE, 20, 40)])
def test_values_beyond_the_registers_go_to_local_memory(
    machine: MachineDescription, count: int, threads: int
) -> None:
    limit = 16 if machine is LARGE else None
    roomy = dataclasses.replace(machine, rom_blocks=256)
    kernel = made(reversal(count), roomy, max_registers=limit)
    assert kernel.registers <= (limit or roomy.register_rows)
    assert kernel.local_bytes >= 4 * (count - kernel.registers)
    data = words(*range(count * threads))
    (got,) = after(kernel, [data], (threads, 1, 1), machine=roomy)
    assert got == [count * (i // count + 1) - 1 - i % count for i in range(count * threads)]


def test_a_stated_bound_of_threads_leaves_fewer_registers() -> None:
    text = reversal(24).replace("{linearised: true}", "{linearised: true, max_threads: 512}")
    kernel = made(text, DEFAULT)
    assert kernel.registers <= 8 and kernel.warp_stride == 16
    free = made(reversal(24), DEFAULT)
    assert free.registers > 16 and free.local_bytes == 0 and free.warp_stride == 4


def test_what_cannot_be_spilled_is_refused() -> None:
    with pytest.raises(DiagnosticError) as raised:
        made(reversal(24), max_registers=2)
    assert "registers a thread; there are 2 by -maxrregcount" in str(raised.value)
    assert "note: a larger -maxrregcount" in str(raised.value)


def switch(cases: int) -> str:
    """A loop over a switch: x = x * (2 case + 3) + 7 case + 1 for x % 32 = case, else x / 2."""
    last = "other"
    lines = ["  %t = sreg tid.x : i32\n  %g = ptradd %a, %t {scale: 4, disp: 0, signed: true} : ptr<global>"]
    lines += ["  %x0 = load i32 %g : i32\n  br head\nhead:"]
    lines += ["  %i = phi [i32 0, entry], [%i2, latch] : i32\n  %x = phi [%x0, entry], [%x2, latch] : i32"]
    lines += ["  %k = and %x, i32 31 : i32\n  br s0"]
    for case in range(cases):
        following = f"s{case + 1}" if case < cases - 1 else last
        lines += [
            f"s{case}:\n  %c{case} = icmp eq %k, i32 {case} : i1\n  condbr %c{case}, d{case}, {following}"
        ]
        lines += [f"d{case}:\n  %m{case} = mul %x, i32 {2 * case + 3} : i32"]
        lines += [f"  %r{case} = add %m{case}, i32 {7 * case + 1} : i32\n  br latch"]
    lines += ["other:\n  %ro = lshr %x, i32 1 : i32\n  br latch\nlatch:"]
    incoming = ", ".join(f"[%r{case}, d{case}]" for case in range(cases))
    lines += [f"  %x2 = phi {incoming}, [%ro, other] : i32\n  %i2 = add %i, i32 1 : i32"]
    lines += ["  %more = icmp slt %i2, %n : i1\n  condbr %more, head, out\nout:\n  store i32 %g, %x2"]
    body = "\n".join(lines)
    return f"kernel @k(%a: ptr<global>, %n: i32) {{\nentry:\n{body}\n  ret\n}}\n"


def switched(x: int, cases: int, times: int) -> int:
    for _ in range(times):
        case = x % 32
        x = (x * (2 * case + 3) + 7 * case + 1) % (1 << 32) if case < cases else x // 2
    return x - (x >> 31 << 32)


def after_passes(text: str, machine: MachineDescription, **options: int):
    function = parse_function(text)
    for step in default_pipeline():
        step.run(function)
    verify(function)
    return generate_kernel(function, machine, **options)


@pytest.mark.parametrize(("machine", "cases"), [(DEFAULT, 12), (LARGE, 20), (LARGE, 32)])
def test_conditions_beyond_the_predicates_are_words(machine: MachineDescription, cases: int) -> None:
    kernel = after_passes(switch(cases), machine)
    assert kernel.predicates <= machine.predicates
    start = list(range(5, 5 + 40))[: machine.lanes]
    (got,) = after(kernel, [words(*start), 9], (len(start), 1, 1), machine=machine)
    assert got == [switched(x, cases, 9) for x in start]


def test_conditions_and_values_beyond_both() -> None:
    kernel = after_passes(switch(20), LARGE, max_registers=8)
    assert kernel.registers <= 8 and kernel.local_bytes > 0
    start = list(range(3, 30))
    (got,) = after(kernel, [words(*start), 7], (len(start), 1, 1))
    assert got == [switched(x, 20, 7) for x in start]


def test_uniform_values_beyond_the_uniform_registers() -> None:
    count = 60
    lines = ["  %t = sreg tid.x : i32\n  %m0 = add %n, i32 1 : i32"]
    lines += [f"  %m{i} = mul %m{i - 1}, %n : i32" for i in range(1, count)]
    lines += ["  %s0 = add %t, i32 0 : i32"]
    lines += [f"  %s{i + 1} = add %s{i}, %m{count - 1 - i} : i32" for i in range(count)]
    lines += ["  %p = ptradd %a, %t {scale: 4, disp: 0, signed: true} : ptr<global>"]
    lines += [f"  store i32 %p, %s{count}\n  ret"]
    body = "\n".join(lines)
    text = f"kernel @k(%a: ptr<global>, %n: i32) {LINEARISED} {{\nentry:\n{body}\n}}\n"
    machine = dataclasses.replace(SMALL, rom_blocks=512)
    kernel = made(text, machine)
    assert any(hidden.name == "uniform registers" for hidden in kernel.hidden)
    (got,) = after(kernel, [bytes(12), 3], (3, 1, 1), machine=machine)
    total = sum(4 * 3**i for i in range(count)) % (1 << 32)
    assert [x % (1 << 32) for x in got] == [(total + t) % (1 << 32) for t in range(3)]


@pytest.mark.parametrize("registers", [None, 16])
def test_an_unrolled_hash_function(registers: int | None) -> None:
    function = parse_function(sha256_kernel())
    kernel = generate_kernel(function, LARGE, registers)
    assert kernel.registers <= (registers or 128)
    message = b"as many registers as there are"
    padded = message + b"\x80" + bytes(55 - len(message)) + struct.pack(">Q", 8 * len(message))
    block = words(*struct.unpack(">16I", padded))
    _, got = after(kernel, [block, bytes(32)])
    assert struct.pack(">8i", *got) == hashlib.sha256(message).digest()
