"""The textual form: every opcode comes back as it was printed, and errors point at their place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_random_kernels import random_kernel
from qgpu.ir import (
    OPCODES,
    Location,
    ParseError,
    parse_function,
    parse_module,
    print_function,
    print_instruction,
    print_module,
    verify,
)

BEFORE_LINEARISATION = """\
kernel @everything(%p: ptr<global>, %n: i32, %h: i16) attributes {max_threads: 128, note: "a \\"b\\" \\\\"} {
  array @tile: shared, 128 bytes, align 4
  array @stack: local, 16 bytes, align 8
  array @table: const, 8 bytes, align 4, data "0102ff"
entry:
  %t = sreg tid.x : i32  !loc "dir/k.cu":3:8
  %0 = add %t, i32 -1 : i32
  %1 = sub %0, %n : i32
  %2 = mul %1, i32 3 : i32
  %3 = and %2, %0 : i32
  %4 = or %3, %0 : i32
  %5 = xor %4, %0 : i32
  %6 = shl %5, i32 2 : i32
  %7 = lshr %6, i32 2 : i32
  %8 = ashr %7, i32 2 : i32
  %9 = smin %8, %0 : i32
  %10 = smax %9, %0 : i32
  %11 = umin %10, %0 : i32
  %12 = umax %11, %0 : i32
  %13 = mulhi_s %12, %0 : i32
  %14 = mulhi_u %13, %0 : i32
  %15 = sdiv %14, i32 3 : i32
  %16 = udiv %15, i32 3 : i32
  %17 = srem %16, i32 3 : i32
  %18 = urem %17, i32 3 : i32
  %19 = not %18 : i32
  %20 = popc %19 : i32
  %21 = lop3 %20, %0, %n {lut: 150} : i32
  %22 = param 2 : i16
  %23 = sext %22 : i64
  %24 = zext %22 : i32
  %25 = trunc %23 : i8
  %26 = icmp ult %24, %21 : i1
  %27 = select %26, %21, %24 : i32
  %28 = undef : i32
  %29 = addrof @tile : ptr<shared>
  %30 = ptradd %29, %t {scale: 4, disp: -8, signed: true} : ptr<shared>
  %31 = load i8 %30 {ext: sign} : i32
  %32 = load i32 %30 {volatile: true} : i32
  store i32 %30, %31
  store i8 %30, %31 {volatile: true}
  %33 = atomicrmw max_u %p, %32 : i32
  %34 = clz %20 : i32
  %35 = brev %34 : i32
  %36 = bfe_u %35, i32 3, %0 : i32
  %37 = bfe_s %36, i32 3, %0 : i32
  %38 = bfi %37, %36, i32 3, %0 : i32
  %39 = prmt bytes %38, %37, %36 : i32
  %40 = ptrcast %30 : ptr<generic>
  %41 = ptrdiff %29, %30 : i64
  %42 = ptrtoint %40 : i64
  %43 = addrof @table : ptr<const>
  %44 = cmpxchg %p, i32 0, %32 : i32
  %45 = atomicrmw inc %p, %44 : i32
  %46 = shuffle %42, %45, i32 -1 : i64
  %47 = ballot %26, i32 -1 : i32
  %48 = match %46, i32 -1 : i32
  %49 = redux xor %48, i32 -1 : i32
  %pair = pack %48, %49 : i64
  %top = high %pair : i32
  printf %top, %46 {format: "\\u000007%d: %lld\\n"}
  %low = shf %48, %49, %n : i32
  %inverse = rcp %low : i32
  barrier
  arrive {id: 1, count: 64}
  barrier {id: 1, count: 64}
  %50 = barrier_reduce popc %26 : i32
  condbr %26, next, last
next:
  %51 = phi [%33, entry], [%51, next] : i32
  condbr true, next, last
last:
  %52 = phi [i32 7, entry], [%51, next] : i32
  trap assert {message: "n > 0"}
unreached:
  br last.1
last.1:
  ret
}
"""

LINEARISED = """\
kernel @lockstep(%p: ptr<global>) attributes {linearised: true} {
entry:
  %s = slot {uniform: true} : slot<i32>
  %in = slot : slot<i1>
  %t = sreg tid.x : i32
  %c = icmp eq %t, i32 0 : i1
  set %s, i32 5
  set %in, %c
  brany %c, then, done
then [%c, !%in]:
  %0 = get %s : i32
  store i32 %p, %0
  barrier {returned: [0, 1]}
  br done
done:
  ret
}
"""


@pytest.mark.parametrize("text", [BEFORE_LINEARISATION, LINEARISED], ids=["before", "linearised"])
def test_text_comes_back_as_it_was(text: str) -> None:
    assert print_module(parse_module(text)) == text


def test_the_texts_above_show_every_opcode() -> None:
    functions = [parse_function(text) for text in (BEFORE_LINEARISATION, LINEARISED)]
    shown = {instruction.op for function in functions for instruction in function.instructions}
    assert shown == set(OPCODES)


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_random_kernels_come_back_as_they_were(seed: int) -> None:
    function = random_kernel(seed, size=2)
    text = print_function(function)
    again = parse_function(text)
    verify(again)
    assert print_function(again) == text


def test_a_module_holds_several_kernels() -> None:
    module = parse_module("kernel @a() {\ne:\n ret\n}\nkernel @b() {\ne:\n  ret }")
    assert [function.name for function in module.functions] == ["a", "b"]
    assert module.function("b") is module.functions[1]
    assert print_module(module) == "kernel @a() {\ne:\n  ret\n}\n\nkernel @b() {\ne:\n  ret\n}\n"


def test_names_that_occur_twice_are_printed_apart() -> None:
    function = parse_function(
        "kernel @f(%n: i32) {\nentry:\n  %x = not %n : i32\n  %y = not %x : i32\n  ret\n}"
    )
    for instruction in function.instructions:
        instruction.name = "n"
    text = print_function(function)
    assert "%0 = not %n : i32\n  %1 = not %0 : i32" in text
    assert print_function(parse_function(text)) == text


def test_one_instruction_prints_as_in_its_function() -> None:
    function = parse_function(LINEARISED)
    assert print_instruction(function.block("then").instructions[1]) == "store i32 %p, %0"


def test_locations_are_read() -> None:
    function = parse_function(BEFORE_LINEARISATION)
    assert function.entry.instructions[0].loc == Location("dir/k.cu", 3, 8)
    assert function.entry.instructions[1].loc is None


ERRORS = [
    ("kernel f() {}", 1, 8, "expected the kernel's name"),
    ("kernel @f(%a i32) {}", 1, 14, "expected ':'"),
    ("kernel @f(%a: i7) {}", 1, 15, "no integer type of 7 bits"),
    ("kernel @f(%a: i32, %a: i32) {}", 1, 20, "defined twice"),
    ("kernel @f() {\nentry:\n  %x = frob : i32\n}", 3, 8, "unknown opcode 'frob'"),
    ("kernel @f() {\nentry:\n  ret\nentry:\n  ret\n}", 4, 1, "defined twice"),
    ("kernel @f() {\nentry:\n  br nowhere\n}", 3, 6, "no block 'nowhere'"),
    ("kernel @f() {\nentry:\n  %x = not %y : i32\n}", 3, 12, "'%y' is not defined"),
    ("kernel @f() {\nentry:\n  %x = sreg tid.w : i32\n}", 3, 13, "none of tid.x"),
    ("kernel @f() {\nentry:\n  %x = not i8 300 : i8\n}", 3, 15, "300 does not fit i8"),
    ("kernel @f() {\nentry:\n  not i8 3\n}", 3, 3, "needs a name"),
    ("kernel @f() {\nentry:\n  %x = ret\n}", 3, 3, "'ret' has no result"),
    ("kernel @f() {\nentry:\n  ret ^\n}", 3, 7, "unexpected character '^'"),
    ("kernel @f() {\nentry:\n  ret\n", 4, 1, "expected a block's label"),
    ("kernel @f() {\nentry:\n  ret\n}\nkernel @f() {\nentry:\n  ret\n}", 5, 1, "defined twice"),
    ('kernel @f() {\nentry:\n  ret !loc "x":a:1\n}', 3, 16, "expected a number"),
    ("kernel @f() {\nentry:\n  %x = not ptr<global> 0 : i32\n}", 3, 12, "a constant cannot have the type"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), ERRORS, ids=[error[3] for error in ERRORS])
def test_errors_point_at_their_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(text, "k.ir")
    error = caught.value
    assert (error.filename, error.line, error.column) == ("k.ir", line, column)
    assert message in error.message
    assert str(error).startswith(f"k.ir:{line}:{column}: error: ")


def test_a_function_is_wanted_where_there_are_two() -> None:
    with pytest.raises(ParseError, match="expected one kernel, found 0"):
        parse_function("")
