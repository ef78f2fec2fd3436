"""The verifier: each rule refuses a function that breaks it, and names the place."""

import pytest

from qgpu.ir import (
    I32,
    Builder,
    Function,
    Literal,
    VerifyError,
    constant,
    parse_function,
    ptr,
    verify,
)

HEAD = "kernel @f(%p: ptr<global>, %n: i32, %c: i1) {\n"
LINEARISED = "kernel @f(%p: ptr<global>, %n: i32, %c: i1) attributes {linearised: true} {\n"

BROKEN = {
    "operand types differ": ("entry:\n  %x = add %n, i8 1 : i32\n  ret\n", "should be the same"),
    "result type differs": ("entry:\n  %x = add %n, %n : i16\n  ret\n", "should be the same"),
    "operand of the wrong kind": ("entry:\n  %x = add %p, %p : ptr<global>\n  ret\n", "does not match 'T'"),
    "condition is no i1": ("entry:\n  condbr %n, a, a\na:\n  ret\n", "does not match 'i1'"),
    "comparison of pointers is signed": ("entry:\n  %x = icmp slt %p, %p : i1\n  ret\n", "unsigned"),
    "sext does not widen": ("entry:\n  %x = sext %n : i16\n  ret\n", "does not widen"),
    "trunc does not narrow": ("entry:\n  %x = trunc %n : i64\n  ret\n", "does not narrow"),
    "load does not say how": ("entry:\n  %x = load i8 %p : i32\n  ret\n", "does not say how to extend"),
    "load narrows": ("entry:\n  %x = load i32 %p {ext: zero} : i8\n  ret\n", "cannot extend"),
    "store widens": ("entry:\n  store i64 %p, %n\n  ret\n", "cannot store"),
    "unknown parameter": ("entry:\n  %x = param 3 : i32\n  ret\n", "no parameter 3"),
    "parameter of another type": ("entry:\n  %x = param 0 : i32\n  ret\n", "parameter 0 has the type"),
    "unknown array": ("entry:\n  %x = addrof @a : ptr<shared>\n  ret\n", "no array '@a'"),
    "array elsewhere": (
        "array @a: local, 4 bytes, align 4\nentry:\n  %x = addrof @a : ptr<shared>\n  ret\n",
        "local",
    ),
    "ptradd changes space": (
        "entry:\n  %x = ptradd %p, %n {scale: 1, disp: 0, signed: true} : ptr<shared>\n  ret\n",
        "another address space",
    ),
    "missing attribute": ("entry:\n  %x = lop3 %n, %n, %n : i32\n  ret\n", "'lut' is missing"),
    "unknown attribute": ("entry:\n  %x = not %n {fast: true} : i32\n  ret\n", "no attribute 'fast'"),
    "attribute of the wrong kind": (
        "entry:\n  %x = lop3 %n, %n, %n {lut: true} : i32\n  ret\n",
        "kind 'int'",
    ),
    "attribute out of choice": ("entry:\n  %x = load i8 %p {ext: one} : i32\n  ret\n", "kind 'enum'"),
    "no terminator": ("entry:\n  %x = not %n : i32\n", "does not end in a terminator"),
    "entry has a predecessor": ("entry:\n  br entry\n", "entry block has a predecessor"),
    "use before definition": (
        "entry:\n  %x = not %y : i32\n  %y = not %n : i32\n  ret\n",
        "does not dominate",
    ),
    "use on another path": (
        "entry:\n  condbr %c, a, b\na:\n  %x = not %n : i32\n  br b\nb:\n  %y = not %x : i32\n  ret\n",
        "does not dominate",
    ),
    "phi after another instruction": (
        "entry:\n  br a\na:\n  %x = not %n : i32\n  %y = phi [%n, entry] : i32\n  ret\n",
        "after another instruction",
    ),
    "phi misses a predecessor": (
        "entry:\n  condbr %c, a, b\na:\n  br b\nb:\n  %y = phi [%n, entry] : i32\n  ret\n",
        "not the predecessors (entry, a)",
    ),
    "phi of other types": ("entry:\n  br a\na:\n  %y = phi [i8 1, entry] : i32\n  ret\n", "another type"),
    "phi value not at the edge": (
        "entry:\n  condbr %c, a, b\na:\n  %x = not %n : i32\n  br b\n"
        "b:\n  %y = phi [%x, entry], [%x, a] : i32\n  ret\n",
        "does not dominate",
    ),
    "guard before linearisation": ("entry:\n  br a\na [%c]:\n  ret\n", "guard belongs to linearised"),
    "slot before linearisation": ("entry:\n  %s = slot : slot<i32>\n  ret\n", "belongs to linearised"),
}

BROKEN_LINEARISED = {
    "phi": ("entry:\n  br a\na:\n  %x = phi [%n, entry] : i32\n  ret\n", "no phis"),
    "slot outside the entry": ("entry:\n  br a\na:\n  %s = slot : slot<i32>\n  ret\n", "outside the entry"),
    "set of another type": ("entry:\n  %s = slot : slot<i32>\n  set %s, %c\n  ret\n", "holds i32, not i1"),
    "get of another type": (
        "entry:\n  %s = slot : slot<i32>\n  %g = get %s : i1\n  ret\n",
        "holds i32, not i1",
    ),
    "guard of an i32": ("entry:\n  br a\na [%n]:\n  ret\n", "not i32"),
    "guard of a slot<i32>": ("entry:\n  %s = slot : slot<i32>\n  br a\na [%s]:\n  ret\n", "not slot<i32>"),
    "guard not dominated": (
        "entry:\n  condbr %c, a, b\na:\n  %x = icmp eq %n, %n : i1\n  br b\nb [%x]:\n  ret\n",
        "does not dominate",
    ),
    "guard of the block's own value": (
        "entry:\n  br a\na [%x]:\n  %x = icmp eq %n, %n : i1\n  ret\n",
        "does not dominate",
    ),
    "guard changes before the end": (
        "entry:\n  %s = slot : slot<i1>\n  set %s, %c\n  br a\n"
        "a [%s]:\n  set %s, false\n  store i32 %p, %n\n  ret\n",
        "follows a change of the block's guard",
    ),
    "two returns": ("entry:\n  condbr %c, a, b\na:\n  ret\nb:\n  ret\n", "has one 'ret'"),
    "returned names no literal": (
        "entry:\n  br a\na [%c]:\n  barrier {returned: [1]}\n  ret\n",
        "does not have",
    ),
}


@pytest.mark.parametrize(("body", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_functions_are_refused(body: str, message: str) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(parse_function(f"{HEAD}{body}}}"))
    assert message in caught.value.message
    assert str(caught.value).startswith("kernel '@f'")


@pytest.mark.parametrize(("body", "message"), BROKEN_LINEARISED.values(), ids=BROKEN_LINEARISED)
def test_broken_linearised_functions_are_refused(body: str, message: str) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(parse_function(f"{LINEARISED}{body}}}"))
    assert message in caught.value.message


def test_the_error_names_block_and_instruction() -> None:
    function = parse_function(f"{HEAD}entry:\n  br a\na:\n  %x = add %n, i8 1 : i32\n  ret\n}}")
    with pytest.raises(VerifyError) as caught:
        verify(function)
    error = caught.value
    block = function.block("a")
    assert error.block is block and error.instruction is block.instructions[0]
    assert "block 'a', in '%x = add %n, i8 1 : i32'" in str(error)


def good() -> tuple[Function, Builder]:
    function = Function("f", [("p", ptr("global")), ("n", I32)])
    builder = Builder(function.add_block("entry"))
    builder.emit("not", function.args[1])
    builder.ret()
    verify(function)
    return function, builder


def test_no_blocks() -> None:
    with pytest.raises(VerifyError, match="no blocks"):
        verify(Function("f"))


def test_two_blocks_of_one_name() -> None:
    function, _ = good()
    Builder(function.add_block("x")).ret()
    function.blocks[1].name = "entry"
    with pytest.raises(VerifyError, match="two blocks have this name"):
        verify(function)


def test_a_terminator_in_the_middle() -> None:
    function, builder = good()
    builder.ret()
    with pytest.raises(VerifyError, match="stands before the block's end"):
        verify(function)


def test_an_argument_of_another_function() -> None:
    function, _ = good()
    other, _ = good()
    function.entry.instructions[0].operands = (other.args[1],)
    with pytest.raises(VerifyError, match="argument of another function"):
        verify(function)


def test_a_value_that_was_erased() -> None:
    function, _ = good()
    [value, end] = function.entry.instructions
    Builder().before(end).emit("not", value)
    function.entry.instructions.remove(value)
    with pytest.raises(VerifyError, match="not in the function"):
        verify(function)


def test_a_use_that_is_not_listed() -> None:
    function, _ = good()
    function.args[1].remove_use(function.entry.instructions[0], 0)
    with pytest.raises(VerifyError, match="does not list this use"):
        verify(function)


def test_a_branch_into_another_function() -> None:
    function, _ = good()
    other, _ = good()
    function.entry.terminator.erase()
    Builder(function.entry).br(other.entry)
    with pytest.raises(VerifyError, match="another function"):
        verify(function)


def test_a_constant_guard() -> None:
    function = parse_function(f"{LINEARISED}entry:\n  br a\na:\n  ret\n}}")
    function.block("a").guard = (Literal(constant(parse_function(f"{HEAD}e:\n  ret\n}}").args[2].type, 1)),)
    with pytest.raises(VerifyError, match="literal is a constant"):
        verify(function)


def test_unreachable_blocks_may_use_what_they_like() -> None:
    verify(
        parse_function(f"{HEAD}entry:\n  ret\nisland:\n  %x = not %y : i32\n  %y = not %x : i32\n  ret\n}}")
    )
