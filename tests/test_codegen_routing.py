"""Routing: a block gives the value that its expression means, from the address that its access means."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from codegen_expressions import CONSTANTS, WORDS, expressions, meaning
from qgpu.backends.machine.block import Block, check_block
from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.reference.datapath import Ports, Result, evaluate
from qgpu.toolchain.codegen.nodes import (
    EQUAL,
    LESS,
    MEMORY,
    MEMORY_2,
    Access,
    Expression,
    Operand,
    Term,
    move,
    signed,
)
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.routing import (
    NO_ACCESS,
    Accesses,
    Accumulator,
    Routing,
    route,
    route_accesses,
    route_with_constants,
)

THREAD = [Register("thread", f"t{i}") for i in range(3)]
UNIFORM = [Register("uniform", f"u{i}") for i in range(3)]
BUFFER, OTHER = Register("uniform", "buffer"), Register("uniform", "other")
REGISTERS = [*THREAD, *UNIFORM]
OPERANDS = st.one_of(st.sampled_from(REGISTERS), CONSTANTS)
BUFFER_WORDS = 16
DESCRIPTOR = (4 * BUFFER_WORDS) << 14


def block_of(routing: Routing, accesses: Accesses = NO_ACCESS) -> Block:
    """The block of a routing, with the registers' numbers all 0."""
    expression = routing.expression
    fields: dict = dict.fromkeys(routing.flags, 1)
    fields["imm"] = routing.ports.get("imm", 0)
    for port in "ab":
        register = routing.ports.get(port)
        if isinstance(register, Register):
            fields[f"{port}_{register.kind}"] = 1
    first, second = accesses.first, accesses.second
    if routing.exchanged:
        first, second = second, first
    for bit, name in enumerate(("lt", "eq", "gt")):
        fields[f"cond_{name}"] = expression.relation >> bit & 1
    block = Block(**fields, op=expression.op, lut=expression.lut, signed=int(expression.signed))
    block = replace(block, check=int(first is not None), check2=int(second is not None))
    check_block(block, DEFAULT)
    return block


def run(
    routing: Routing, values: dict, accesses: Accesses = NO_ACCESS, memory: list[int] | None = None
) -> Result:
    a, b, c, e, accumulator = (values.get(routing.ports.get(port), 0) for port in (*"abce", "dest"))
    return evaluate(block_of(routing, accesses), Ports(a, b, c, e, accumulator, 0), memory or [0])


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

    routing = route_with_constants(expression, NO_ACCESS, constant)
    if routing is None:
        # Three registers of a thread need the accumulator port, which is not given here.
        assert all(isinstance(operand, Register) for operand in expression.operands)
        return
    values |= {register: number for number, register in made.items()}
    assert run(routing, values).value == meaning(expression, values)


def accesses() -> st.SearchStrategy[Access]:
    terms = st.one_of(
        st.just(()),
        st.builds(
            lambda r, s, u: (Term(r, s, u),), st.sampled_from(THREAD), st.sampled_from([1, 4]), st.booleans()
        ),
        st.builds(lambda r: (Term(r, 2),), st.sampled_from(REGISTERS)),
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
    result = run(routing, values, Accesses(access), memory)
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


def near(index: Register, buffer: Register = BUFFER, unit: int = 4) -> Access:
    """The access to the element of a buffer that a register counts."""
    return Access(buffer, (Term(index, unit),), 0, unit)


@given(
    st.sampled_from(
        [
            Expression("mad", MEMORY, 1, MEMORY_2),
            Expression("mad", MEMORY_2, 0xFFFFFFFF, MEMORY),
            Expression("mad", MEMORY, THREAD[1], MEMORY_2),
            Expression("mad", THREAD[1], UNIFORM[1], MEMORY),
            Expression("mad", MEMORY_2, UNIFORM[1], MEMORY),
        ]
    ),
    st.sampled_from([near(THREAD[0], OTHER), Access(OTHER, (), 8, 4), Access(OTHER, (), 0, 4)]),
    st.integers(-2, BUFFER_WORDS + 2),
)
def test_two_accesses_of_a_block_read_where_they_say(
    expression: Expression, second: Access, index: int
) -> None:
    values: dict = dict(zip(REGISTERS, (index & 0xFFFFFFFF, 7, 9, 11, 13, 15), strict=True))
    values |= {BUFFER: DESCRIPTOR, OTHER: DESCRIPTOR | BUFFER_WORDS // 4}
    accesses = Accesses(near(THREAD[0]), second)
    routing = route_accesses(expression, accesses)
    assume(routing is not None)
    assert routing is not None
    memory = [1000 + 3 * i for i in range(2 * BUFFER_WORDS)]
    result = run(routing, values, accesses, memory)
    at = index if second.terms else second.displacement // 4
    if not 0 <= index < BUFFER_WORDS:
        assert result.fault == 0
        return
    words = {MEMORY: memory[index], MEMORY_2: memory[BUFFER_WORDS + at]}
    assert (result.fault, result.value) == (None, meaning(expression, values | words))


def test_one_access_may_be_the_machines_second() -> None:
    accesses = Accesses(near(THREAD[0]))
    routing = route_accesses(Expression("mad", 3, THREAD[1], MEMORY), accesses)
    assert routing is not None and routing.exchanged and "m2_to_z" in routing.flags


def test_bytes_are_not_read_by_the_second_access() -> None:
    expression, narrow = Expression("mad", MEMORY, 1, MEMORY_2), near(THREAD[0], OTHER, 1)
    routing = route_accesses(expression, Accesses(Access(BUFFER, (), 4, 4), narrow))
    assert routing is not None and routing.exchanged
    assert route_accesses(expression, Accesses(near(THREAD[0], BUFFER, 1), narrow)) is None


def test_the_second_access_has_no_index_of_its_own() -> None:
    expression: Expression = Expression("mad", MEMORY, 1, MEMORY_2)
    for other in (THREAD[1], UNIFORM[1]):
        assert route_accesses(expression, Accesses(near(THREAD[0]), near(other, OTHER))) is None
    moved = Access(BUFFER, (Term(THREAD[0], 4), Term(UNIFORM[1], 4)), 0, 4)
    assert route_accesses(expression, Accesses(moved, near(THREAD[0], OTHER))) is None  # port E reads one


def test_only_what_a_block_writes_is_read_through_the_accumulator_port() -> None:
    x, y, z = THREAD
    expression: Expression = Expression("mad", x, y, z)
    routing = route(expression, None, accumulator=Accumulator(frozenset({z})))
    assert routing is not None and routing.accumulator is z
    values: dict[Operand, int] = {x: 3, y: 5, z: 7}
    assert run(routing, values).value == 22
    assert route(expression, None, accumulator=Accumulator(frozenset(UNIFORM[:1]))) is None
    assert route(expression, None, accumulator=Accumulator(frozenset({x}))) is None
    stored = route(Expression("lop3", 0, x, y, lut=0xFC), near(z), accumulator=Accumulator())
    assert stored is not None and stored.accumulator is not None
