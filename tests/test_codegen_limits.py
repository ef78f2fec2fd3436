"""Refusals: what a machine has too little of, or lacks, is said with numbers and the place in the source."""

import dataclasses

import pytest

from qgpu.backends.machine.description import DEFAULT, SMALL
from qgpu.ir.parser import parse_function
from qgpu.toolchain.codegen import generate_kernel
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


def test_too_many_registers() -> None:
    assert "needs 41 registers a thread; machine 'default' has 32" in refusal(loads(40))


def test_too_many_blocks() -> None:
    machine = dataclasses.replace(SMALL, name="tiny", rom_blocks=16)
    assert "needs 22 blocks of program memory; machine 'tiny' has 16" in refusal(loads(10), machine)


def test_too_many_predicates() -> None:
    lines = ["  %t = sreg tid.x : i32"]
    lines += [f"  %p{i} = icmp sgt %t, i32 {i} : i1" for i in range(9)]
    lines += ["  br b0"]
    for i in range(9):
        lines += [f"b{i} [%p{i}]:", "  store i32 %a, %t", f"  br {f'b{i + 1}' if i < 8 else 'done'}"]
    lines += ["done:", "  ret"]
    assert "needs 10 predicate registers; machine 'default' has 8" in refusal("\n".join(lines))


def test_too_many_uniform_registers() -> None:
    parameters = ", ".join(["%a: ptr<global>", *(f"%n{i}: i32" for i in range(40))])
    body = ["  %t = sreg tid.x : i32"]
    for i in range(40):
        body.append(f"  %p{i} = ptradd %a, %t {{scale: 4, disp: {4 * i}, signed: true}} : ptr<global>")
        body.append(f"  store i32 %p{i}, %n{i}")
    text = refusal("\n".join([*body, "  ret"]), SMALL, parameters)
    assert "needs 43 uniform registers; machine 'small' has 32" in text


@pytest.mark.parametrize(
    "instruction",
    [
        "%x = sdiv %n, i32 3 : i32",
        "%x = urem %n, i32 3 : i32",
        "%x = mulhi_u %n, i32 3 : i32",
        "%x = sext %n : i64",
    ],
)
def test_operations_the_machine_lacks(instruction: str) -> None:
    text = refusal(f'  {instruction}  !loc "k.cu":12:9\n  ret')
    assert text.startswith(
        f"k.cu:12:9: error: cannot generate code for '{instruction.split()[2]}' on i32: the machine"
    )


def test_old_values_that_are_lost() -> None:
    text = refusal("  %x = atomicrmw max_s %a, %n : i32\n  store i32 %a, %x\n  ret")
    assert "'atomicrmw max_s'" in text and "the old value does not follow from the new one" in text
