"""Inlining: an expression with another one in it means what the two mean one after the other."""

from hypothesis import given
from hypothesis import strategies as st

from codegen_expressions import CONSTANTS, WORDS, expressions, meaning, node
from qgpu.toolchain.codegen.inline import as_test, inlined, inlined_index, is_boolean
from qgpu.toolchain.codegen.nodes import EQUAL, GREATER, LESS, Access, Expression, Node, Term, signed
from qgpu.toolchain.codegen.regions import folded
from qgpu.toolchain.codegen.registers import Register

REGISTERS = [Register("thread", f"t{i}") for i in range(3)]
INNER = st.builds(node, expressions(st.one_of(st.sampled_from(REGISTERS), CONSTANTS)))
BUFFER = Register("uniform", "buffer")


@given(INNER, st.data(), st.lists(WORDS, min_size=3, max_size=3))
def test_inlined_means_the_same(inner: Node, data: st.DataObject, words: list[int]) -> None:
    operands = st.one_of(st.just(inner), st.sampled_from(REGISTERS), CONSTANTS)
    outer = data.draw(expressions(operands))
    values = dict(zip(REGISTERS, words, strict=True))
    apart = meaning(outer, {**values, inner: meaning(inner.expression, values)})
    if inner in outer.operands:
        for joint in inlined(outer, inner):
            assert inner not in joint.operands
            assert meaning(joint, values) == apart


@given(INNER, st.booleans(), st.lists(WORDS, min_size=3, max_size=3))
def test_selection_by_an_inverted_condition(inner: Node, swap: bool, words: list[int]) -> None:
    values = dict(zip(REGISTERS, words, strict=True))
    condition = node(Expression("cmp", inner, 0, relation=EQUAL))
    outer = Expression("select", REGISTERS[swap], REGISTERS[1 - swap], condition)
    number = meaning(inner.expression, values)
    apart = meaning(outer, {**values, condition: int(number == 0)})
    for joint in inlined(outer, condition):
        assert is_boolean(inner)
        assert meaning(joint, {**values, inner: number}) == apart


@given(
    expressions(st.sampled_from(REGISTERS)), CONSTANTS, st.sampled_from([EQUAL, LESS | GREATER]), st.data()
)
def test_tests_are_true_where_the_comparison_is(
    inner: Expression, number: int, relation: int, data: st.DataObject
) -> None:
    masked = Expression("lop3", REGISTERS[0], data.draw(CONSTANTS), 0, lut=0xC0)
    operand = node(data.draw(st.sampled_from([inner, masked])))
    comparison = Expression("cmp", operand, number, relation=relation)
    test = as_test(comparison)
    values = dict(zip(REGISTERS, data.draw(st.lists(WORDS, min_size=3, max_size=3)), strict=True))
    values_ = {**values, operand: meaning(operand.expression, values)}
    if test is not None:
        assert bool(meaning(test, values_)) == bool(meaning(comparison, values_))


@given(expressions(st.one_of(st.sampled_from(REGISTERS), CONSTANTS)), st.lists(WORDS, min_size=3, max_size=3))
def test_folding_constants_changes_nothing(expression: Expression, words: list[int]) -> None:
    values = dict(zip(REGISTERS, words, strict=True))
    assert meaning(folded(expression), values) == meaning(expression, values)


@given(st.integers(-(2**20), 2**20), st.one_of(st.integers(-64, 64), WORDS), st.sampled_from([1, 4]))
def test_an_index_with_a_constant_reads_the_same_place(shift: int, index: int, scale: int) -> None:
    """Where the sum is in bounds of any buffer; elsewhere neither is."""
    sum_ = node(Expression("mad", REGISTERS[0], 1, shift & 0xFFFFFFFF))
    access = Access(BUFFER, (Term(sum_, scale),), 0, 4)
    for split in inlined_index(access, sum_):
        (term,) = split.terms
        inside = signed(index & 0xFFFFFFFF)
        offset = inside * term.scale + split.displacement
        expected = signed(index + shift & 0xFFFFFFFF) * scale
        in_bounds = 0 <= expected < 2**18
        reachable = -(2**19) <= inside < 2**19
        assert (offset == expected and reachable) if in_bounds else not (reachable and 0 <= offset < 2**18)
