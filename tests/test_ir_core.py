"""The IR's data structures: uses, guards, constants, blocks, the builder."""

import pytest

from qgpu.ir import (
    FALSE,
    I1,
    I8,
    I32,
    I64,
    TRUE,
    BasicBlock,
    Builder,
    Constant,
    Function,
    Literal,
    Location,
    constant,
    integer,
    parse_type,
    ptr,
    slot,
)


def make_function() -> tuple[Function, Builder]:
    function = Function("f", [("p", ptr("global")), ("n", I32)])
    return function, Builder(function.add_block("entry"))


@pytest.mark.parametrize("text", ["i1", "i8", "i16", "i32", "i64", "ptr<shared>", "slot<i1>", "void"])
def test_types_are_interned_and_print_as_they_parse(text: str) -> None:
    assert str(parse_type(text)) == text
    assert parse_type(text) is parse_type(text)


@pytest.mark.parametrize("text", ["i7", "ptr<near>", "slot<void>", "slot<slot<i1>>", "float", "i"])
def test_other_types_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_type(text)


def test_constants_are_equal_by_type_and_number_modulo_their_width() -> None:
    assert Constant(I8, -1) == Constant(I8, 255)
    assert Constant(I8, 255).signed == -1
    assert Constant(I8, 1) != Constant(I32, 1)
    assert len({Constant(I32, 3), Constant(I32, 3)}) == 1
    assert Constant(integer(1), 1) == TRUE and FALSE.value == 0
    with pytest.raises(ValueError):
        constant(ptr("global"), 0)


def test_uses_follow_operands() -> None:
    function, builder = make_function()
    n = function.args[1]
    double = builder.emit("add", n, n)
    assert [(use.user, use.index) for use in n.uses] == [(double, 0), (double, 1)]
    assert n.users == (double,)
    double.replace_operand(0, constant(I32, 1))
    assert [use.index for use in n.uses] == [1]
    double.operands = (n, constant(I32, 2))
    assert [use.index for use in n.uses] == [0]


def test_replacing_a_value_reaches_guards() -> None:
    function, builder = make_function()
    n = function.args[1]
    first = builder.icmp("slt", n, constant(I32, 4))
    second = builder.icmp("sgt", n, constant(I32, 9))
    guarded = BasicBlock("then", [Literal(first, False)])
    assert first.users == (guarded,)
    first.replace_all_uses_with(second)
    assert guarded.guard == (Literal(second, False),)
    assert not first.uses and second.users == (guarded,)
    guarded.guard = ()
    assert not second.uses


def test_an_instruction_with_uses_cannot_be_erased() -> None:
    _, builder = make_function()
    a = builder.sreg("tid.x")
    b = builder.emit("not", a)
    with pytest.raises(ValueError, match="still has uses"):
        a.erase()
    b.erase()
    a.erase()
    assert builder.block.instructions == []


def test_phi_pairs_can_be_added_and_taken_off() -> None:
    function, builder = make_function()
    entry, other, join = builder.block, function.add_block("other"), function.add_block("join")
    phi = builder.at_end(join).phi(I32)
    phi.add_incoming(constant(I32, 1), entry)
    phi.add_incoming(function.args[1], other)
    assert phi.incoming == ((constant(I32, 1), entry), (function.args[1], other))
    phi.remove_incoming(entry)
    assert phi.incoming == ((function.args[1], other),)


def test_erasing_a_block_takes_its_pairs_off_phis() -> None:
    function, builder = make_function()
    side, join = function.add_block("side"), function.add_block("join")
    builder.condbr(TRUE, side, join)
    builder.at_end(side).br(join)
    phi = builder.at_end(join).phi(I32)
    phi.add_incoming(constant(I32, 1), function.entry)
    phi.add_incoming(constant(I32, 2), side)
    builder.ret()
    function.entry.terminator.replace_successor(side, join)
    function.erase_block(side)
    assert function.blocks == [function.entry, join]
    assert [source for _, source in phi.incoming] == [function.entry]


def test_block_names_are_made_unique() -> None:
    function = Function("f")
    assert [function.add_block("a").name for _ in range(3)] == ["a", "a.1", "a.2"]
    assert function.block("a.1") is function.blocks[1]
    with pytest.raises(KeyError):
        function.block("b")


def test_the_builder_gives_locations_and_positions() -> None:
    function, builder = make_function()
    builder.loc = Location("k.cu", 3, 5)
    first = builder.sreg("tid.x")
    last = builder.ret()
    assert first.loc == last.loc == Location("k.cu", 3, 5)
    between = Builder().before(last).emit("not", first)
    assert function.entry.instructions == [first, between, last]
    assert between.loc == last.loc
    assert function.entry.terminator is last and function.entry.successors == ()
    start = Builder().at_start(function.entry).sreg("tid.y")
    assert function.entry.instructions[0] is start


def test_the_builder_asks_for_types_that_operands_do_not_fix() -> None:
    function, builder = make_function()
    with pytest.raises(ValueError, match="needs a result type"):
        builder.emit("sext", function.args[1])
    assert builder.emit("sext", function.args[1], type=I64).type is I64
    assert builder.cast("sext", function.args[1], I32) is function.args[1]
    assert builder.load(function.args[0], I8, I32).attrs == {"type": I8, "ext": "zero"}
    assert builder.load(function.args[0], I32).attrs == {"type": I32}
    assert builder.icmp("eq", function.args[1], function.args[1]).type is I1
    assert builder.get(builder.slot(I32)).type is I32
    assert slot(I32) is builder.slot(I32).type


def test_a_block_without_terminator_says_so() -> None:
    function, builder = make_function()
    builder.sreg("tid.x")
    assert not function.entry.terminated
    with pytest.raises(ValueError, match="no terminator"):
        _ = function.entry.terminator
