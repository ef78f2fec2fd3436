"""How many blocks an operation of CUDA takes, with its operands in registers."""

import pytest

from qgpu.backends.machine.description import LARGE
from qgpu.toolchain.compile import compile_source

UNSIGNED, WIDE = "unsigned", "unsigned long long"


def blocks(type_: str, expression: str) -> int:
    text = f"""__global__ void k({type_}* x, {type_}* y, {type_}* z) {{
        int i = threadIdx.x;
        {type_} a = x[i], b = y[i];
        z[i] = ({expression}) ^ b;
    }}"""
    (kernel,) = compile_source(text, "k.cu", "cu", LARGE).kernels
    return len(kernel.blocks)


@pytest.mark.parametrize(
    ("type_", "expression", "most"),
    [
        (UNSIGNED, "a / b", 15),
        (UNSIGNED, "a % 10u", 3),
        (UNSIGNED, "a + (a < b)", 2),
        (UNSIGNED, "__funnelshift_l(a, a, 7)", 1),
        (UNSIGNED, "__clz(a) + __brev(b)", 3),
        (WIDE, "a + b", 3),
        (WIDE, "a * b", 5),
        (WIDE, "a << 13", 3),
        (WIDE, "a < b", 3),
    ],
)
def test_an_operation_takes_few_blocks(type_: str, expression: str, most: int) -> None:
    assert blocks(type_, expression) - blocks(type_, "a") <= most
