"""NVIDIA's intrinsics give what the CUDA functions that clang makes them of give by way of PTX."""

from __future__ import annotations

import random
from functools import cache

import pytest

from qgpu.ir import Function
from qgpu.ir.interpreter import Fault, interpret
from qgpu.toolchain.compile import CompileOptions, compile_to_ir
from qgpu.toolchain.cuda import CudaOptions
from qgpu.toolchain.llvm import call_rules, nvvm_rules

_NVVM = "llvm.nvvm."
_FULL = "0xffffffff"


def call(name: str, *operands: str, result: str = "i32") -> str:
    return f"%r = call {result} @{_NVVM}{name}({', '.join(operands)})"


def first(name: str, *operands: str, member: int = 0) -> str:
    """A member of the pair that an intrinsic gives, as a word."""
    pair = "{ i32, i1 }"
    code = f"%pair = call {pair} @{_NVVM}{name}({', '.join(operands)})\n  "
    if member == 0:
        return f"{code}%r = extractvalue {pair} %pair, 0"
    return f"{code}%bit = extractvalue {pair} %pair, 1\n  %r = zext i1 %bit to i32"


def truth(name: str, *operands: str) -> str:
    return f"%bit = call i1 @{_NVVM}{name}({', '.join(operands)})\n  %r = zext i1 %bit to i32"


A, B, C, ALL = "i32 %a", "i32 %b", "i32 %c", "i32 -1"
_ODD = "%low = and i32 %a, 1\n  %odd = icmp ne i32 %low, 0\n  "
_WIDE = "%wa = zext i32 %a to i64\n  %wb = sext i32 %b to i64\n  %w.1 = mul i64 %wa, %wb\n  "
_CUDA_WIDE = "((unsigned long long)a * (long long)(int)b)"


def wide(name: str, second: str) -> str:
    """The high word of a product of 64 bits each."""
    return f"{_WIDE}%w.2 = call i64 @{_NVVM}{name}(i64 %w.1, i64 {second})\n  %r = trunc i64 %w.2 to i32"


ROWS: dict[str, tuple[str, str]] = {
    "tid.x": (call("read.ptx.sreg.tid.x"), "threadIdx.x"),
    "ntid.x": (call("read.ptx.sreg.ntid.x"), "blockDim.x"),
    "ctaid.y": (call("read.ptx.sreg.ctaid.y"), "blockIdx.y"),
    "nctaid.z": (call("read.ptx.sreg.nctaid.z"), "gridDim.z"),
    "warpsize": (call("read.ptx.sreg.warpsize"), "warpSize"),
    "laneid": (call("read.ptx.sreg.laneid"), 'asm_u32("mov.u32 %0, %laneid;")'),
    "warpid": (call("read.ptx.sreg.warpid"), 'asm_u32("mov.u32 %0, %warpid;")'),
    "nwarpid": (call("read.ptx.sreg.nwarpid"), 'asm_u32("mov.u32 %0, %nwarpid;")'),
    "smid": (call("read.ptx.sreg.smid"), 'asm_u32("mov.u32 %0, %smid;")'),
    "nsmid": (call("read.ptx.sreg.nsmid"), 'asm_u32("mov.u32 %0, %nsmid;")'),
    **{
        f"lanemask {kind}": (
            call(f"read.ptx.sreg.lanemask.{kind}"),
            f'asm_u32("mov.u32 %0, %lanemask_{kind};")',
        )
        for kind in ("eq", "lt", "le", "ge", "gt")
    },
    "gridid": (call("read.ptx.sreg.gridid"), "0"),
    "cluster": (
        "\n  ".join(
            (
                call("read.ptx.sreg.cluster.ctarank").replace("%r", "%rank"),
                call("read.ptx.sreg.cluster.nctaid.y").replace("%r", "%size"),
                call("read.ptx.sreg.clusterid.x").replace("%r", "%id"),
                f"%explicit = call i1 @{_NVVM}is_explicit_cluster()",
                "%wide = zext i1 %explicit to i32",
                "%some = add i32 %rank, %id",
                "%more = add i32 %some, %wide",
                "%r = add i32 %more, %size",
            )
        ),
        "blockIdx.x + 1",
    ),
    "globaltimer": (
        "\n  ".join(
            (
                f"%first = call i64 @{_NVVM}read.ptx.sreg.globaltimer()",
                call("read.ptx.sreg.globaltimer.lo").replace("%r", "%second"),
                "%low = trunc i64 %first to i32",
                "%r = sub i32 %second, %low",
            )
        ),
        "1",
    ),
    "register by assembly": (
        '%long = call i64 asm "mov.u64 $0, %laneid;", "=l"()\n  '
        '%mask = call i32 asm "mov.u32 $0, %lanemask_lt;", "=r"()\n  '
        "%short = trunc i64 %long to i32\n  %r = xor i32 %short, %mask",
        "threadIdx.x ^ ((1u << threadIdx.x) - 1)",
    ),
    "prmt": (call("prmt", A, B, C), 'permute("b32", a, b, c)'),
    **{
        f"prmt {mode}": (call(f"prmt.{mode}", A, B, C), f'permute("b32.{mode}", a, b, c)')
        for mode in ("f4e", "b4e")
    },
    **{
        f"prmt {mode}": (call(f"prmt.{mode}", A, C), f'permute("b32.{mode}", a, 0, c)')
        for mode in ("rc8", "ecl", "ecr", "rc16")
    },
    "mulhi": (call("mulhi.i", A, B), "__mulhi((int)a, (int)b)"),
    "umulhi": (call("mulhi.ui", A, B), "__umulhi(a, b)"),
    "mulhi 64": (wide("mulhi.ll", "%wb"), f"(unsigned)__mul64hi({_CUDA_WIDE}, (long long)(int)b)"),
    "umulhi 64": (
        wide("mulhi.ull", "%wb"),
        f"(unsigned)__umul64hi({_CUDA_WIDE}, (unsigned long long)(long long)(int)b)",
    ),
    "mul24": (call("mul24.i", A, B), "__mul24((int)a, (int)b)"),
    "umul24": (call("mul24.ui", A, B), "__umul24(a, b)"),
    "sad": (call("sad.i", A, B, C), "__sad((int)a, (int)b, c)"),
    "usad": (call("sad.ui", A, B, C), "__usad(a, b, c)"),
    "dp4a s": (call("idp4a.s.s", A, B, C), "__dp4a((int)a, (int)b, (int)c)"),
    "dp4a u": (call("idp4a.u.u", A, B, C), "__dp4a(a, b, c)"),
    "dp2a lo": (call("idp2a.s.s", A, B, "i1 false", C), "__dp2a_lo((int)a, (int)b, (int)c)"),
    "dp2a hi": (call("idp2a.u.u", A, B, "i1 true", C), "__dp2a_hi(a, b, c)"),
    "swap": (
        f"{_WIDE}%w.2 = call i64 @{_NVVM}swap.lo.hi.b64(i64 %w.1)\n  %r = trunc i64 %w.2 to i32",
        f"(unsigned)({_CUDA_WIDE} >> 32)",
    ),
    **{
        f"shuffle {mode}": (
            call(f"shfl.sync.{mode}.i32", ALL, A, "i32 3", f"i32 {clamp}"),
            f"__shfl_{name}sync({_FULL}, a, 3, 8)",
        )
        for mode, name, clamp in (
            ("idx", "", 0x181F),
            ("up", "up_", 0x1800),
            ("down", "down_", 0x181F),
            ("bfly", "xor_", 0x181F),
        )
    },
    "shuffle and whether inside": (
        first("shfl.sync.up.i32p", ALL, A, "i32 2", "i32 0", member=1),
        "threadIdx.x % 32 >= 2",
    ),
    "shuffle of numba": (
        first("shfl.sync.i32", ALL, "i32 2", A, "i32 5", "i32 31"),
        f"__shfl_down_sync({_FULL}, a, 5)",
    ),
    "all": (_ODD + truth("vote.all.sync", ALL, "i1 %odd"), f"__all_sync({_FULL}, a & 1)"),
    "any": (_ODD + truth("vote.any.sync", ALL, "i1 %odd"), f"__any_sync({_FULL}, a & 1)"),
    "uni": (_ODD + truth("vote.uni.sync", ALL, "i1 %odd"), f"__uni_sync({_FULL}, a & 1)"),
    "ballot": (_ODD + call("vote.ballot.sync", ALL, "i1 %odd"), f"__ballot_sync({_FULL}, a & 1)"),
    "ballot of numba": (
        _ODD + first("vote.sync", ALL, "i32 3", "i1 %odd"),
        f"__ballot_sync({_FULL}, a & 1)",
    ),
    "any of numba": (
        _ODD + first("vote.sync", ALL, "i32 1", "i1 %odd", member=1),
        f"__any_sync({_FULL}, a & 1)",
    ),
    "match any": (call("match.any.sync.i32", ALL, C), f"__match_any_sync({_FULL}, c)"),
    "match all": (first("match.all.sync.i32p", ALL, C), "match_all(c)"),
    "match all holds": (first("match.all.sync.i32p", ALL, "i32 7", member=1), "1"),
    **{
        f"redux {name}": (call(f"redux.sync.{name}", A, ALL), f"__reduce_{function}_sync({_FULL}, {cast}a)")
        for name, function, cast in (
            ("add", "add", ""),
            ("min", "min", "(int)"),
            ("max", "max", "(int)"),
            ("umin", "min", ""),
            ("umax", "max", ""),
            ("and", "and", ""),
            ("or", "or", ""),
            ("xor", "xor", ""),
        )
    },
    "activemask": (call("activemask"), "__activemask()"),
    "activemask of clang": ('%r = call i32 asm sideeffect "activemask.b32 $0;", "=r"()', "__activemask()"),
    "barrier popc": (
        _ODD + call("barrier.cta.red.popc.aligned.all", "i32 0", "i1 %odd"),
        "__syncthreads_count(a & 1)",
    ),
    "barrier and": (
        _ODD + truth("barrier.cta.red.and.aligned.all", "i32 0", "i1 %odd"),
        "__syncthreads_and(a & 1)",
    ),
    "barrier or": (
        _ODD + truth("barrier.cta.red.or.aligned.all", "i32 0", "i1 %odd"),
        "__syncthreads_or(a & 1)",
    ),
    "barrier of older clang": (
        call("barrier0.popc", A),
        "__syncthreads_count(a)",
    ),
    **{
        f"atomic {name}": (
            "store i32 %b, ptr %p\n  "
            + call(f"atomic.{name}.gen.i.{scope}.i32.p0", "ptr %p", C).replace("%r", "%old")
            + "\n  %new = load i32, ptr %p\n  %r = add i32 %old, %new",
            f"atomic_{name}(b, c)",
        )
        for name, scope in (
            *((name, "cta") for name in ("add", "min", "max", "exch")),
            *((name, "sys") for name in ("inc", "dec", "and", "or", "xor")),
        )
    },
    "atomic cas": (
        "store i32 %b, ptr %p\n  "
        + call("atomic.cas.gen.i.cta.i32.p0", "ptr %p", B, C).replace("%r", "%old")
        + "\n  %new = load i32, ptr %p\n  %r = add i32 %old, %new",
        "b + c",
    ),
    "memory fences": (f"call void @{_NVVM}membar.gl()\n  %r = add i32 %a, 1", "a + 1"),
    "warp barrier": (f"call void @{_NVVM}bar.warp.sync(i32 -1)\n  %r = add i32 %a, 2", "a + 2"),
    "clock": (
        f"%first = call i32 @{_NVVM}read.ptx.sreg.clock()\n  "
        f"%second = call i32 @{_NVVM}read.ptx.sreg.clock()\n  %less = icmp ult i32 %first, %second\n  "
        "%r = zext i1 %less to i32",
        "1",
    ),
    "scmp": ("%r = call i32 @llvm.scmp.i32.i32(i32 %a, i32 %b)", "((int)a > (int)b) - ((int)a < (int)b)"),
    "ucmp": ("%r = call i32 @llvm.ucmp.i32.i32(i32 %a, i32 %b)", "(a > b) - (a < b)"),
    "reduced vector": (
        "%v = insertelement <2 x i32> poison, i32 %a, i64 0\n  "
        "%v.2 = insertelement <2 x i32> %v, i32 %b, i64 1\n  "
        "%r = call i32 @llvm.vector.reduce.smax.v2i32(<2 x i32> %v.2)",
        "max((int)a, (int)b)",
    ),
    "expectation": ("%r = call i32 @llvm.expect.i32(i32 %a, i32 3)", "a"),
    "constness": ("%bit = call i1 @llvm.is.constant.i32(i32 %a)\n  %r = zext i1 %bit to i32", "0"),
    "an exit": (
        f"%some = icmp eq i32 %t, 31\n  br i1 %some, label %leave, label %stay\nleave:\n  "
        f"call void @{_NVVM}exit()\n  br label %stay\nstay:\n  %r = add i32 %a, 0",
        "threadIdx.x == 31 ? 0xdeadbeef : a",
    ),
}


def llvm_text() -> str:
    kernels: list[str] = []
    declared: dict[str, str] = {}
    for number, (code, _) in enumerate(ROWS.values()):
        for line in code.split("\n"):
            declare(line, declared)
        kernels.append(_KERNEL.format(number=number, code=code))
    return "\n".join([*kernels, *declared.values()])


_KERNEL = """define ptx_kernel void @k{number}(ptr %x, ptr %out) {{
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr [3 x i32], ptr %x, i32 %t
  %a = load i32, ptr %p
  %p.1 = getelementptr i32, ptr %p, i64 1
  %b = load i32, ptr %p.1
  %p.2 = getelementptr i32, ptr %p, i64 2
  %c = load i32, ptr %p.2
  {code}
  %q = getelementptr i32, ptr %out, i32 %t
  store i32 %r, ptr %q
  ret void
}}
"""


def declare(line: str, declared: dict[str, str]) -> None:
    if "call" not in line or "@llvm" not in line:
        return
    result, _, rest = line.partition("call ")[2].partition(" @")
    name, _, operands = rest.partition("(")
    types = [operand.rpartition(" ")[0] for operand in operands.removesuffix(")").split(", ") if operand]
    declared[name] = f"declare {result} @{name}({', '.join(types)})"


def cuda_text() -> str:
    kernels = [
        f'extern "C" __global__ void k{number}(const unsigned *x, unsigned *out) {{\n'
        f"  unsigned t = threadIdx.x, a = x[3 * t], b = x[3 * t + 1], c = x[3 * t + 2];\n"
        f"  {statement(expression)}\n}}\n"
        for number, (_, expression) in enumerate(ROWS.values())
    ]
    return _PRELUDE + "\n".join(kernels)


def statement(expression: str) -> str:
    """The statement that stores an expression; what CUDA has no function for is PTX."""
    kind, _, rest = expression.partition("(")
    if kind == "asm_u32":
        register = rest.rpartition("%")[2].rpartition(";")[0]
        return f'asm volatile("mov.u32 %0, %%{register};" : "=r"(out[t]));'
    if kind == "permute":
        mode, *operands = [part.strip(' "') for part in rest[:-1].split(",")]
        inputs = ", ".join(f'"r"({operand})' for operand in operands)
        return f'asm("prmt.{mode} %0, %1, %2, %3;" : "=r"(out[t]) : {inputs});'
    return f"out[t] = {expression};"


_PRELUDE = """
#define MODIFIER(name, function, type) \\
  __device__ unsigned atomic_##name(unsigned b, unsigned c) { \\
    __shared__ unsigned v[32]; \\
    v[threadIdx.x] = b; \\
    unsigned old = (unsigned)function((type *)&v[threadIdx.x], (type)c); \\
    return old + v[threadIdx.x]; \\
  }
MODIFIER(add, atomicAdd, unsigned)
MODIFIER(min, atomicMin, int)
MODIFIER(max, atomicMax, int)
MODIFIER(exch, atomicExch, unsigned)
MODIFIER(inc, atomicInc, unsigned)
MODIFIER(dec, atomicDec, unsigned)
MODIFIER(and, atomicAnd, unsigned)
MODIFIER(or, atomicOr, unsigned)
MODIFIER(xor, atomicXor, unsigned)
__device__ unsigned match_all(unsigned v) { int p; return __match_all_sync(0xffffffff, v, &p); }
"""


@cache
def by_llvm() -> list[Function]:
    return compile_to_ir(llvm_text(), "k.ll", "ll").functions


@cache
def by_cuda() -> list[Function]:
    options = CompileOptions(cuda=CudaOptions(architecture="compute_80"))
    functions = compile_to_ir(cuda_text(), "k.cu", "cu", options).functions
    return sorted(functions, key=lambda function: int(function.name[1:]))


def outcome(function: Function, numbers: bytes) -> bytes:
    out = bytearray(b"\xef\xbe\xad\xde" * 32)
    interpret(function, [bytearray(numbers), out], (1, 1, 1), (32, 1, 1))
    return bytes(out)


@pytest.mark.parametrize("number", range(len(ROWS)), ids=list(ROWS))
def test_results_are_those_of_cuda(number: int) -> None:
    draw = random.Random(number)
    for mask in (0xFFFFFFFF, 3):
        words = [draw.getrandbits(32) & (mask if n % 3 == 2 else 0xFFFFFFFF) for n in range(96)]
        numbers = b"".join(word.to_bytes(4, "little") for word in words)
        assert outcome(by_llvm()[number], numbers) == outcome(by_cuda()[number], numbers)


# ------------------------------------------------------------- printf, assert, trap

_PRINT = """@format = private unnamed_addr constant [18 x i8] c"%d %s%5llx<%c>\\0A\\00\\00\\00"
@word = private unnamed_addr constant [4 x i8] c"abc\\00"
define ptx_kernel void @k(i32 %n, i64 %m) {
  %buffer = alloca { i32, ptr, i64, i32 }, align 8
  store i32 %n, ptr %buffer
  %p.1 = getelementptr i8, ptr %buffer, i64 8
  store ptr @word, ptr %p.1
  %p.2 = getelementptr i8, ptr %buffer, i64 16
  store i64 %m, ptr %p.2
  %p.3 = getelementptr i8, ptr %buffer, i64 24
  store i32 65, ptr %p.3
  %r = call i32 @vprintf(ptr @format, ptr %buffer)
  ret void
}
declare i32 @vprintf(ptr, ptr)
"""


def test_printf() -> None:
    (function,) = compile_to_ir(_PRINT, "k.ll", "ll").functions
    printed: list[str] = []
    interpret(function, [-3, 0xABC], output=printed.append)
    assert "".join(printed) == "-3 abc  abc<A>\n"


_ASSERT = """@message = private constant [6 x i8] c"x > 0\\00"
@file = private constant [5 x i8] c"k.cu\\00"
@name = private constant [2 x i8] c"k\\00"
define ptx_kernel void @k(i32 %n) {
  call void @__assertfail(ptr @message, ptr @file, i32 7, ptr @name, i64 1)
  unreachable
}
declare void @__assertfail(ptr, ptr, i32, ptr, i64)
"""
_TRAP = """define ptx_kernel void @k(i32 %n) {
  call void @llvm.trap()
  unreachable
}
declare void @llvm.trap()
"""


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [(_ASSERT, "assert", "k.cu:7: k: Assertion `x > 0' failed"), (_TRAP, "trap", "")],
)
def test_faults(text: str, kind: str, message: str) -> None:
    (function,) = compile_to_ir(text, "k.ll", "ll").functions
    with pytest.raises(Fault) as raised:
        interpret(function, [0])
    assert raised.value.kind == kind
    assert message in raised.value.reason


def test_every_intrinsic_is_found_by_its_name() -> None:
    for name, rule in nvvm_rules.RULES.items():
        assert call_rules.intrinsic_rule(f"llvm.nvvm.{name}") is rule
    assert call_rules.intrinsic_rule("llvm.umul.with.overflow.i13") is not None
    assert call_rules.intrinsic_rule("llvm.nowhere.i32") is None
