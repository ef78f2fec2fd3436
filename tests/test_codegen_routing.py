"""Routing: a block gives the value that its expression means, from the address that its access means."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from codegen_expressions import CONSTANTS, WORDS, expressions, meaning
from qgpu.backends.machine.block import Block, check_block
from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.reference.datapath import Ports, evaluate
from qgpu.toolchain.codegen.nodes import EQUAL, LESS, MEMORY, Access, Expression, Term, move, signed
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.routing import Routing, route, route_with_constants

THREAD = [Register("thread", f"t{i}") for i in range(3)]
UNIFORM = [Register("uniform", f"u{i}") for i in range(3)]
BUFFER = Register("uniform", "buffer")
REGISTERS = [*THREAD, *UNIFORM]
OPERANDS = st.one_of(st.sampled_from(REGISTERS), CONSTANTS)
BUFFER_WORDS = 16
DESCRIPTOR = (4 * BUFFER_WORDS) << 14


def block_of(routing: Routing, access: Access | None = None) -> Block:
    """The block of a routing, with the registers' numbers all 0."""
    expression = routing.expression
    fields: dict = dict.fromkeys(routing.flags, 1)
    fields["imm"] = routing.ports.get("imm", 0)
    for port in "ab":
        register = routing.ports.get(port)
        if isinstance(register, Register):
            fields[f"{port}_{register.kind}"] = 1
    for bit, name in enumerate(("lt", "eq", "gt")):
        fields[f"cond_{name}"] = expression.relation >> bit & 1
    block = Block(**fields, op=expression.op, lut=expression.lut, signed=int(expression.signed))
    block = replace(block, check=int(access is not None))
    check_block(block, DEFAULT)
    return block


def run(routing: Routing, values: dict, access: Access | None = None, memory: list[int] | None = None):
    a, b, c = (values.get(routing.ports.get(port), 0) for port in "abc")
    return evaluate(block_of(routing, access), Ports(a, b, c, 0), memory or [0])


@given(expressions(OPERANDS), st.lists(WORDS, min_size=6, max_size=6))
def test_a_routed_block_means_its_expression(expression: Expression, words: list[int]) -> None:
    values = dict(zip(REGISTERS, words, strict=True))
    routing = route(expression, None)
    assume(routing is not None)
    assert routing is not None
    assert run(routing, values).value == meaning(expression, values)


@given(expressions(OPERANDS), st.lists(WORDS, min_size=6, max_size=6))
def test_constants_from_registers_mean_the_same(expression: Expression, words: list[int]) -> None:
    values: dict = dict(zip(REGISTERS, words, strict=True))
    made: dict[int, Register] = {}

    def constant(number: int) -> Register:
        made.setdefault(number, Register("uniform", str(number)))
        return made[number]

    routing = route_with_constants(expression, None, constant)
    assert routing is not None
    values |= {register: number for number, register in made.items()}
    assert run(routing, values).value == meaning(expression, values)


def accesses() -> st.SearchStrategy[Access]:
    terms = st.one_of(
        st.just(()),
        st.builds(
            lambda r, s, u: (Term(r, s, u),), st.sampled_from(THREAD), st.sampled_from([1, 4]), st.booleans()
        ),
        st.builds(lambda r: (Term(r, 2),), st.sampled_from(THREAD)),
        st.builds(lambda s, t: (Term(THREAD[0], s), Term(UNIFORM[0], t)), *[st.sampled_from([1, 4])] * 2),
    )
    displacements = st.sampled_from([0, 0, 4, -4, 8, 60])
    return st.builds(lambda t, d: Access(BUFFER, t, d, 4), terms, displacements)


@given(accesses(), st.lists(st.one_of(st.integers(-20, 20), WORDS), min_size=6, max_size=6))
def test_a_block_reads_where_its_access_says(access: Access, numbers: list[int]) -> None:
    values: dict = {register: n & 0xFFFFFFFF for register, n in zip(REGISTERS, numbers, strict=True)}
    values[BUFFER] = DESCRIPTOR
    routing = route(Expression("mad", MEMORY, 1), access)
    assume(routing is not None)
    assert routing is not None
    memory = [1000 + i for i in range(BUFFER_WORDS)]
    result = run(routing, values, access, memory)
    offset = access.displacement
    for term in access.terms:
        index = values[term.value] if term.unsigned else signed(values[term.value])
        offset += index * term.scale
    if not 0 <= offset < 4 * BUFFER_WORDS:
        assert result.fault == 0
    elif offset % 4:
        assert result.fault == 1
    else:
        assert (result.fault, result.value) == (None, memory[offset // 4])


def test_three_thread_registers_have_no_routes() -> None:
    assert route(Expression("mad", THREAD[0], THREAD[1], THREAD[2]), None) is None
    assert route(Expression("select", THREAD[0], THREAD[1], THREAD[2]), None) is None


def test_three_uniform_registers_have() -> None:
    assert route(Expression("mad", UNIFORM[0], UNIFORM[1], UNIFORM[2]), None) is not None


def test_one_immediate_serves_several_operands() -> None:
    assert route(Expression("mad", 5, THREAD[0], 5), None) is not None
    assert route(Expression("mad", 5, THREAD[0], 6), None) is None


def test_a_store_has_room_for_index_and_value() -> None:
    access = Access(BUFFER, (Term(THREAD[0], 4),), 8, 4)
    routing = route(move(THREAD[1]), access)
    assert routing is not None
    assert routing.ports == {"a": THREAD[0], "b": THREAD[1], "c": BUFFER, "imm": 8}


def test_bytes_are_read_through_x_alone() -> None:
    narrow = Access(BUFFER, (Term(THREAD[0], 1),), 0, 1)
    routing = route(Expression("cmp", 5, MEMORY, relation=LESS | EQUAL), narrow)
    assert routing is not None
    assert "m_sub_to_x" in routing.flags
