"""Passes keep what kernels compute, on random kernels, and what each promises of its output."""

import random
import struct
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_random_kernels import random_kernel
from ir_random_values import INPUT_BYTES, OUTPUT_BYTES, random_values
from qgpu.ir import (
    I8,
    I16,
    I32,
    I64,
    Function,
    IntType,
    VerifyError,
    parse_function,
    print_function,
    verify,
)
from qgpu.ir.interpreter import Fault, interpret
from qgpu.ir.passes import (
    CommonSubexpressions,
    DeadCode,
    IfConvert,
    NarrowAddresses,
    Pass,
    PassManager,
    PrintAfter,
    PromoteNarrow,
    RecoverIndices,
    Simplify,
    default_pipeline,
)

SEEDS = st.integers(0, 10**9)
FEW = settings(max_examples=20)
SSA_PASSES = [
    Simplify(),
    NarrowAddresses(),
    PromoteNarrow(),
    CommonSubexpressions(),
    IfConvert(),
    IfConvert(limit=8, selects=8),
    RecoverIndices(),
    DeadCode(),
]


def outputs(function: Function, seed: int) -> list[bytes]:
    """What a kernel of `random_values` leaves in `out`, for two inputs."""
    results = []
    for trial in range(2):
        chance = random.Random(seed + trial)
        data = bytearray(
            chance.choice([0, 1, 127, 128, 255, chance.getrandbits(8)]) for _ in range(INPUT_BYTES)
        )
        out = bytearray(OUTPUT_BYTES)
        interpret(function, [data, out, chance.choice([0, 1, 2**31 - 1, 2**31, chance.getrandbits(32)])])
        results.append(bytes(out))
    return results


def transform(function: Function, *steps: Pass) -> Function:
    """A copy of a function that has gone through passes, verified after each."""
    copy = parse_function(print_function(function))
    PassManager(steps).run(copy)
    return copy


@pytest.mark.parametrize("step", SSA_PASSES, ids=lambda step: step.name)
@FEW
@given(seed=SEEDS)
def test_a_pass_keeps_what_straight_code_computes(step: Pass, seed: int) -> None:
    function = random_values(seed)
    assert outputs(transform(function, step), seed) == outputs(function, seed)


@pytest.mark.parametrize("types", [(I8, I16, I32), (I8,), (I16, I64), (I32,), (I32, I64)], ids=str)
@FEW
@given(seed=SEEDS)
def test_the_pipeline_before_linearisation_keeps_it_too(types: tuple[IntType, ...], seed: int) -> None:
    function = random_values(seed, 40, types)
    steps = list(takewhile(lambda step: step.name != "linearize", default_pipeline()))
    assert outputs(transform(function, *steps), seed) == outputs(function, seed)


@FEW
@given(seed=SEEDS)
def test_promotion_leaves_no_narrow_value(seed: int) -> None:
    function = transform(random_values(seed, 25, (I8, I16, I32)), PromoteNarrow())
    assert not [i for i in function.instructions if i.type in (I8, I16)]


@FEW
@given(seed=SEEDS)
def test_simplification_comes_to_an_end_and_to_its_normal_form(seed: int) -> None:
    function = transform(random_values(seed), Simplify())
    assert Simplify().run(function) is False
    constants_left = [
        i for i in function.instructions if i.info.commutative and not i.operands[0].tracks_uses
    ]
    assert not constants_left
    assert not [i for i in function.instructions if i.op == "sub" and not i.operands[1].tracks_uses]


@pytest.mark.parametrize("step", SSA_PASSES, ids=lambda step: step.name)
@pytest.mark.parametrize("seed", range(12))
def test_a_pass_keeps_what_branching_code_computes(step: Pass, seed: int) -> None:
    function = random_kernel(seed, size=3)
    results = []
    for candidate in (function, transform(function, step)):
        rows = bytearray(3 * 64 * 4)
        interpret(candidate, [bytearray(struct.pack("<3i", 1, -2, 3)), rows, 2], block=(3, 1, 1))
        results.append(bytes(rows))
    assert results[0] == results[1]


OFFSETS = """
kernel @offsets(%p: ptr<global>, %n: i32) {{
entry:
  %t = sreg tid.x : i32
  %a = {first} %t : i64
  %b = {second} %n : i64
  br loop
loop:
  %k = phi [i32 0, entry], [%k1, loop] : i32
  %o = phi [{start}, entry], [%o1, loop] : i64
  %s = sub %o, %b : i64
  %m = shl %s, i64 2 : i64
  %d = add %m, i64 {displacement} : i64
  %q = ptradd %p, %d {{scale: 1, disp: 4, signed: true}} : ptr<global>
  store i32 %q, %k
  %o1 = add %o, {step} : i64
  %k1 = add %k, i32 1 : i32
  %more = icmp slt %k1, i32 3 : i1
  condbr %more, loop, done
done:
  ret
}}
"""


@pytest.mark.parametrize("first", ["sext", "zext"])
@pytest.mark.parametrize("second", ["sext", "zext"])
@pytest.mark.parametrize(("start", "step"), [("%a", "i64 2"), ("i64 5", "%a"), ("%a", "%b")])
def test_loop_carried_offsets_become_pointers(first: str, second: str, start: str, step: str) -> None:
    text = OFFSETS.format(first=first, second=second, start=start, step=step, displacement=16)
    function = parse_function(text)
    narrowed = transform(function, NarrowAddresses())
    assert not [i for i in narrowed.instructions if i.type is I64]
    results = []
    for candidate in (function, narrowed):
        data = bytearray(256)
        interpret(candidate, [data, 2], block=(2, 1, 1))
        results.append(bytes(data))
    assert results[0] == results[1] and any(results[0])


WALK = """
kernel @walk(%p: ptr<global>, %n: i32, %step: i32) {{
entry:
  %t = sreg tid.x : i32
  %start = ptradd %p, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>
  br loop
loop:
  %a = phi [{base}, entry], [%a1, loop] : ptr<global>
  %i = phi [i32 {first}, entry], [%i1, loop] : i32
  %a1 = ptradd %a, {amount} : ptr<global>
  %v = load i32 {read} : i32
  %w = add %v, %i : i32
  store i32 %a, %w
  %i1 = add %i, i32 {rise} : i32
  %more = icmp ne %i1, %n : i1
  condbr %more, loop, done
done:
  %last = load i32 %a : i32
  store i32 %start, %last
  ret
}}
"""
STEPS = {
    "constant": "i32 0 {scale: 1, disp: 4, signed: true}",
    "backwards": "i32 0 {scale: 1, disp: -4, signed: true}",
    "uniform": "%step {scale: 4, disp: 0, signed: true}",
    "divergent": "%t {scale: 4, disp: 0, signed: true}",
}


@pytest.mark.parametrize("amount", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("base", ["%p", "%start"])
@pytest.mark.parametrize("read", ["%a", "%a1"])
@pytest.mark.parametrize(("first", "rise", "n"), [(0, 1, 4), (3, 2, 11), (5, -1, 2)])
@pytest.mark.parametrize("step", [2, -3, 2**30, -(2**31)])
def test_walking_pointers_read_write_and_fault_as_before(
    amount: str, base: str, read: str, first: int, rise: int, n: int, step: int
) -> None:
    function = parse_function(WALK.format(base=base, first=first, amount=amount, read=read, rise=rise))
    results: list[bytes | str] = []
    for candidate in (function, transform(function, RecoverIndices(), Simplify())):
        data = bytearray(range(64))
        try:
            interpret(candidate, [data, n, step], block=(2, 1, 1))
        except Fault as fault:
            results.append(f"{fault.kind} {fault.thread}")
        results.append(bytes(data))
    assert results[: len(results) // 2] == results[len(results) // 2 :]


def test_a_load_widened_to_64_bits_is_an_index_too() -> None:
    function = parse_function("""
    kernel @gather(%p: ptr<global>, %q: ptr<global>) {
    entry:
      %i = load i32 %p {ext: sign} : i64
      %b = load i8 %p {ext: zero} : i64
      %s = add %i, %b : i64
      %r = ptradd %q, %s {scale: 4, disp: 0, signed: true} : ptr<global>
      store i32 %r, i32 9
      ret
    }""")
    narrowed = transform(function, NarrowAddresses())
    assert not [i for i in narrowed.instructions if i.type is I64]
    for candidate in (function, narrowed):
        out = bytearray(12)
        interpret(candidate, [bytearray(struct.pack("<i", 1)), out])
        assert out == bytearray(struct.pack("<3i", 0, 0, 9))


MASKED = """
kernel @masked(%p: ptr<global>, %x: i32) {{
entry:
  %scaled = mul %x, i32 {inner} : i32
  %wide = {extension} %scaled : i64
  %product = mul %wide, i64 {factor} : i64
  %sum = add %product, i64 {addend} : i64
  %offset = and %sum, i64 {mask} : i64
  %q = ptradd %p, %offset {{scale: {scale}, disp: {disp}, signed: true}} : ptr<global>
  store i32 %q, i32 9
  ret
}}
"""
WORDS = st.one_of(st.sampled_from([1 << k for k in range(32)]), st.integers(0, (1 << 32) - 1))


@settings(max_examples=80, deadline=None)
@given(
    x=WORDS, inner=WORDS, factor=WORDS, addend=st.one_of(st.just(0), WORDS), mask=WORDS,
    extension=st.sampled_from(["sext", "zext"]), scale=st.sampled_from([1, 4, -2]),
)  # fmt: skip
def test_a_masked_offset_is_exact_in_32_bits(
    x: int, inner: int, factor: int, addend: int, mask: int, extension: str, scale: int
) -> None:
    """The displacement brings the pointer back to the buffer's second word, wherever the mask leads."""
    low = x * inner & 0xFFFFFFFF
    wide = low - (1 << 32) if extension == "sext" and low >> 31 else low
    disp = 4 - ((wide * factor + addend) & mask) * scale
    text = MASKED.format(
        inner=inner, factor=factor, addend=addend, mask=mask, extension=extension, scale=scale, disp=disp
    )
    function = parse_function(text)
    narrowed = transform(function, NarrowAddresses())
    assert not [i for i in narrowed.instructions if i.type is I64]
    for candidate in (function, narrowed):
        data = bytearray(12)
        interpret(candidate, [data, x])
        assert data == bytearray(struct.pack("<3i", 0, 9, 0))


def test_dumps_name_the_pass() -> None:
    printed: list[str] = []
    function = random_values(1)
    PassManager([Simplify(), DeadCode()], observers=[PrintAfter(["dead-code"], printed.append)]).run(function)
    assert printed == [f"*** IR Dump After dead-code ***\n{print_function(function)}"]
    printed.clear()
    PassManager([Simplify(), DeadCode()], observers=[PrintAfter(None, printed.append)]).run(function)
    assert [dump.splitlines()[0] for dump in printed] == [
        "*** IR Dump After simplify ***",
        "*** IR Dump After dead-code ***",
    ]


def test_dumps_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    PassManager([DeadCode()], observers=[PrintAfter()]).run(random_values(1))
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("*** IR Dump After dead-code ***\nkernel @values(")


def test_a_broken_function_is_found_before_and_after_a_pass() -> None:
    class Breaks(Pass):
        name = "breaks"

        def run(self, function: Function) -> bool:
            function.entry.terminator.erase()
            return True

    function = random_values(1)
    with pytest.raises(VerifyError, match="does not end in a terminator"):
        PassManager([Breaks()]).run(function)
    with pytest.raises(VerifyError):
        PassManager([DeadCode()]).run(function)


def test_the_default_pipeline_ends_in_lockstep_over_32_bits() -> None:
    function = transform(random_kernel(341, 4), *default_pipeline())
    verify(function)
    assert function.linearised
    assert {str(i.type) for i in function.instructions} <= {
        "i1",
        "i32",
        "void",
        "ptr<global>",
        "slot<i1>",
        "slot<i32>",
        "slot<ptr<global>>",
    }
    assert any(block.guard for block in function.blocks)
