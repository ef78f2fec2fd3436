"""Refusals: what a machine has too little of, or lacks, is said with numbers and the place in the source."""

import dataclasses

import pytest

from qgpu.backends.machine.description import DEFAULT, SMALL
from qgpu.ir import OPCODES
from qgpu.ir.parser import parse_function
from qgpu.toolchain.codegen import generate_kernel
from qgpu.toolchain.codegen.refuse import NAMES
from qgpu.toolchain.diagnostics import DiagnosticError


def refusal(
    body: str, machine=DEFAULT, parameters: str = "%a: ptr<global>, %n: i32", arrays: str = ""
) -> str:
    text = f"kernel @k({parameters}) attributes {{linearised: true}} {{\n{arrays}entry:\n{body}\n}}\n"
    with pytest.raises(DiagnosticError) as raised:
        generate_kernel(parse_function(text), machine)
    return str(raised.value)


def loads(count: int) -> str:
    """A kernel that needs `count` values of each thread at once."""
    lines = ["  %t = sreg tid.x : i32"]
    for i in range(count):
        lines.append(f"  %p{i} = ptradd %a, %t {{scale: 4, disp: {4 * i}, signed: true}} : ptr<global>")
        lines.append(f"  %x{i} = load i32 %p{i} : i32")
    lines += [f"  store i32 %p{i}, %x{count - 1 - i}" for i in range(count)]
    return "\n".join([*lines, "  ret"])


def test_too_many_blocks() -> None:
    machine = dataclasses.replace(SMALL, name="tiny", rom_blocks=16)
    text = refusal(loads(10).replace(": i32\n", ': i32  !loc "k.cu":7:3\n'), machine)
    assert text.startswith(
        "k.cu:7:3: error: kernel 'k' needs 22 blocks of program memory; machine 'tiny' has 16"
    )
    assert "10 of them come from k.cu:7" in text and "another --machine" in text


def test_too_many_uniform_registers() -> None:
    parameters = ", ".join(["%a: ptr<global>", *(f"%n{i}: i32" for i in range(40))])
    body = ["  %t = sreg tid.x : i32"]
    for i in range(40):
        body.append(f"  %p{i} = ptradd %a, %t {{scale: 4, disp: {4 * i}, signed: true}} : ptr<global>")
        body.append(f"  store i32 %p{i}, %n{i}")
    text = refusal("\n".join([*body, "  ret"]), SMALL, parameters)
    assert "needs 43 uniform registers; there are 32 on machine 'small'" in text


@pytest.mark.parametrize(
    ("instruction", "name"),
    [
        ("%x = sdiv %n, i32 3 : i32", "a division of 32-bit integers"),
        ("%x = urem %n, i32 3 : i32", "a remainder of 32-bit integers"),
        ("%x = sext %n : i64", "a conversion of 32-bit integers"),
        ("%x = load i64 %a : i64", "a load of 64-bit integers"),
    ],
)
def test_operations_the_machine_lacks(instruction: str, name: str) -> None:
    text = refusal(f'  {instruction}  !loc "k.cu":12:9\n  ret')
    assert text.startswith(f"k.cu:12:9: error: cannot generate code for {name}: the machine")


def test_every_opcode_has_a_name_for_users() -> None:
    assert set(NAMES) >= set(OPCODES)


def test_old_values_that_are_lost() -> None:
    text = refusal("  %x = atomicrmw max_s %a, %n : i32\n  store i32 %a, %x\n  ret")
    assert (
        "an atomic operation of 32-bit integers" in text
        and "the old value does not follow from the new one" in text
    )
