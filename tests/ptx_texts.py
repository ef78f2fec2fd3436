"""Small PTX texts and CUDA snippets: lowered, verified, interpreted, refused."""

import re
from functools import cache

import numpy as np
import pytest

from qgpu.ir import Function
from qgpu.ir.interpreter import interpret
from qgpu.ir.verifier import verify
from qgpu.toolchain.cuda import COMPILERS, CudaOptions
from qgpu.toolchain.diagnostics import DiagnosticError, Source, render
from qgpu.toolchain.ptx.lower import lower_module
from qgpu.toolchain.ptx.parser import parse

HEAD = ".version 9.0\n.target sm_75\n.address_size 64\n"
REGISTERS = ".reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<9>;\n.reg .f32 %f<9>;\n.reg .b64 %l<20>;\n"
LOADS = """
ld.param.u64 %l1, [a];
cvta.to.global.u64 %l1, %l1;
ld.param.u64 %l2, [b];
cvta.to.global.u64 %l2, %l2;
ld.param.u32 %r1, [n];
"""
PARAMETERS = ".param .u64 a, .param .u64 b, .param .u32 n"


def kernel(body: str, parameters: str = PARAMETERS, declarations: str = "") -> str:
    """A module of one kernel k with registers of each width."""
    return f"{HEAD}{declarations}.visible .entry k({parameters})\n{{\n{REGISTERS}{body}\nret;\n}}\n"


def lower(text: str) -> Function:
    """The function of a module's one kernel."""
    source = Source("k.ptx", text)
    (function,) = lower_module(parse(source), source).functions
    verify(function)
    return function


def printed(body: str, parameters: str = PARAMETERS, declarations: str = "") -> list[str]:
    """The lines of a kernel's IR without places, its head and its foot."""
    text = re.sub(r"  !loc .*", "", str(lower(kernel(body, parameters, declarations))))
    return [line.strip() for line in text.splitlines()[1:-1]]


def launch(body: str, threads: int = 1, words: int = 8, n: int = 0, declarations: str = "") -> list[int]:
    """Run a kernel whose arrays a and b hold 1, 2, 3 ...; the words of b afterwards."""
    a, b = (np.arange(1, words + 1, dtype=np.uint32) for _ in "ab")
    function = lower(kernel(LOADS + body, declarations=declarations))
    interpret(function, [a.data, b.data, n], (1, 1, 1), (threads, 1, 1))
    return b.tolist()


def refusal(text: str) -> str:
    """What is printed where a module is refused."""
    with pytest.raises(DiagnosticError) as caught:
        lower(text)
    return render(caught.value.diagnostics)


def messages(body: str, parameters: str = PARAMETERS, declarations: str = "") -> list[str]:
    """The messages with which a kernel is refused."""
    with pytest.raises(DiagnosticError) as caught:
        lower(kernel(body, parameters, declarations))
    return [found.message for found in caught.value.diagnostics]


@cache
def cuda_ptx(text: str, architecture: str = "compute_75") -> str:
    """The PTX that NVRTC makes of a CUDA text."""
    options = CudaOptions(architecture=architecture)
    return COMPILERS["nvrtc"].compile(Source("k.cu", text), options).text


def cuda(text: str, architecture: str = "compute_75") -> Function:
    """The function of a CUDA text's one kernel."""
    return lower(cuda_ptx(text, architecture))
