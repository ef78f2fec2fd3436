"""Operations on numbers of many widths, compared with what LLVM's own code for this computer computes."""

from __future__ import annotations

import ctypes
import random
from functools import cache

import llvmlite.binding as llvm
import pytest

from qgpu.ir import Module
from qgpu.ir.interpreter import interpret
from qgpu.ir.verifier import verify
from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.llvm.lower import lower_module, read

WIDTHS = (1, 3, 8, 13, 16, 24, 32, 33, 48, 64)
_ROUNDS = 12

_BINARY = ["add", "sub", "mul", "and", "or", "xor"]
_DIVISIONS = ["udiv", "sdiv", "urem", "srem"]
_SHIFTS = ["shl", "lshr", "ashr"]
_PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
_PAIRS = ["umin", "umax", "smin", "smax", "uadd.sat", "sadd.sat", "usub.sat", "ssub.sat"]
_OVERFLOWS = ["uadd", "sadd", "usub", "ssub", "umul", "smul"]


def _intrinsic(name: str, width: int, operands: str, result: str = "") -> str:
    return f"%r = call {result or f'i{width}'} @llvm.{name}.i{width}({operands})"


def operations(width: int) -> dict[str, str]:
    """Instructions that give %r of %a, %b and %c, all of one width, by their names."""
    t = f"i{width}"
    found = _plain(width) | {name: _intrinsic(name, width, f"{t} %a, {t} %b") for name in _PAIRS}
    found["ctpop"] = _intrinsic("ctpop", width, f"{t} %a")
    found["ctlz"] = _intrinsic("ctlz", width, f"{t} %a, i1 false")
    found["cttz"] = _intrinsic("cttz", width, f"{t} %a, i1 false")
    found["bitreverse"] = _intrinsic("bitreverse", width, f"{t} %a")
    found["abs"] = _intrinsic("abs", width, f"{t} %a, i1 false")
    if width % 16 == 0 and width != 48:
        found["bswap"] = _intrinsic("bswap", width, f"{t} %a")
    if width > 1:
        for name in ("fshl", "fshr"):
            found[name] = _intrinsic(name, width, f"{t} %a, {t} %b, {t} %c")
    return found | _overflows(width) | _casts(width)


def _plain(width: int) -> dict[str, str]:
    """Instructions."""
    t = f"i{width}"
    found = {op: f"%r = {op} {t} %a, %b" for op in _BINARY}
    if width > 1:
        found |= {op: f"%r = {op} {t} %a, %divisor" for op in _DIVISIONS}
        found |= {op: f"%r = {op} {t} %a, %amount" for op in _SHIFTS}
    for predicate in _PREDICATES:
        found[predicate] = f"%t = icmp {predicate} {t} %a, %b\n  %r = zext i1 %t to {t}"
        if width == 1:
            found[predicate] = f"%r = icmp {predicate} {t} %a, %b"
    found["select"] = f"%t = icmp ult {t} %a, %b\n  %r = select i1 %t, {t} %c, {t} %a"
    return found


def _overflows(width: int) -> dict[str, str]:
    t, found = f"i{width}", dict[str, str]()
    for name in _OVERFLOWS:
        pair = f"{{{t}, i1}}"
        call = _intrinsic(f"{name}.with.overflow", width, f"{t} %a, {t} %b", pair).replace("%r", "%p")
        found[f"{name} result"] = f"{call}\n  %r = extractvalue {pair} %p, 0"
        if width > 1:
            bit = f"%o = extractvalue {pair} %p, 1\n  %r = zext i1 %o to {t}"
            found[f"{name} overflow"] = f"{call}\n  {bit}"
    return found


def _casts(width: int) -> dict[str, str]:
    """Extensions of the low bits of %a."""
    return {
        f"{cast} {other}": f"%t = trunc i{width} %a to i{other}\n  %r = {cast} i{other} %t to i{width}"
        for other in WIDTHS
        if other < width
        for cast in ("sext", "zext")
    }


def _function(width: int, number: int, code: str) -> str:
    """Three numbers of 64 bits cut to a width, an operation, and its result as 64 bits."""
    t = f"i{width}"
    cut = "\n  ".join(
        f"%{name} = trunc i64 %{name}.wide to {t}" if width < 64 else f"%{name} = freeze i64 %{name}.wide"
        for name in "abc"
    )
    last = "%w = freeze i64 %r" if width == 64 else f"%w = zext {t} %r to i64"
    return f"""define i64 @f{number}(i64 %a.wide, i64 %b.wide, i64 %c.wide) {{
  {cut}
  %divisor = or {t} %b, 1
  %amount = urem {t} %b, {max(1, width - 1)}
  {code}
  {last}
  ret i64 %w
}}
"""


def _kernel(number: int) -> str:
    """A kernel whose threads call a function for a row of numbers each."""
    loads = "\n  ".join(
        f"%{n}.p = getelementptr [3 x i64], ptr %in, i32 %t, i32 {i}\n  %{n} = load i64, ptr %{n}.p"
        for i, n in enumerate("abc")
    )
    return f"""define ptx_kernel void @k{number}(ptr %in, ptr %out) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  {loads}
  %r = call i64 @f{number}(i64 %a, i64 %b, i64 %c)
  %p = getelementptr i64, ptr %out, i32 %t
  store i64 %r, ptr %p
  ret void
}}
"""


def _declarations(text: str) -> str:
    """Declarations of the intrinsics that a text calls, with their types as it has them."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        if "call" in line:
            result, _, rest = line.partition("call ")[2].partition(" @")
            name, _, operands = rest.partition("(")
            types = ", ".join(operand.split()[0] for operand in operands.rstrip(")").split(", "))
            found[name] = f"declare {result} @{name}({types})"
    return "\n".join(found.values())


def functions_text(width: int) -> str:
    functions = [_function(width, n, code) for n, code in enumerate(operations(width).values())]
    text = "\n".join(functions)
    return f"{_declarations(text)}\n{text}"


def kernels_text(width: int) -> str:
    kernels = map(_kernel, range(len(operations(width))))
    return "\n".join([functions_text(width), "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()", *kernels])


@cache
def host(width: int):
    """LLVM's code for this computer; the engine has to live as long as its functions."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(functions_text(width))
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def on_host(width: int, number: int, numbers: tuple[int, ...]) -> int:
    signature = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * 3)
    return signature(host(width).get_function_address(f"f{number}"))(*numbers)


@cache
def lowered(width: int) -> Module:
    source = Source("k.ll", kernels_text(width))
    module = lower_module(read(source), source)
    verify(module)
    return module


def samples(width: int) -> list[tuple[int, ...]]:
    top = (1 << width) - 1
    edges = [0, 1, 2 & top, top, top >> 1, (top >> 1) + 1, top - 1]
    draw = random.Random(width)
    pairs = [(a, b, draw.getrandbits(64)) for a in edges for b in edges]
    return pairs + [tuple(draw.getrandbits(64) for _ in range(3)) for _ in range(_ROUNDS)]


@pytest.mark.parametrize("width", WIDTHS)
def test_results_are_those_of_llvm(width: int) -> None:
    functions, rows = lowered(width).functions, samples(width)
    for number, name in enumerate(operations(width)):
        defined = [row for row in rows if is_defined(name, width, row[1])]
        values = b"".join(value.to_bytes(8, "little") for row in defined for value in row)
        out = bytearray(8 * len(defined))
        interpret(functions[number], [bytearray(values), out], block=(len(defined), 1, 1))
        got = [int.from_bytes(out[at : at + 8], "little") for at in range(0, len(out), 8)]
        wanted = [on_host(width, number, row) for row in defined]
        assert dict(zip(defined, got, strict=True)) == dict(zip(defined, wanted, strict=True)), name


def is_defined(name: str, width: int, divisor: int) -> bool:
    """Division by -1 may overflow."""
    top = (1 << width) - 1
    return name not in ("sdiv", "srem") or (divisor | 1) & top != top
