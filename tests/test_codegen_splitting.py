"""Splitting: the steps of an operation mean what it means."""

from hypothesis import given
from hypothesis import strategies as st

from codegen_expressions import WORDS, meaning, node
from qgpu.toolchain.codegen.nodes import GREATER, LESS, Expression, Node
from qgpu.toolchain.codegen.regions import Region
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.routing import route
from qgpu.toolchain.codegen.splitting import split

X, Y, Z = (Register("thread", name) for name in "xyz")

OPERATIONS = st.one_of(
    st.builds(lambda lut: Expression("lop3", X, Y, Z, lut=lut), st.integers(0, 255)),
    st.sampled_from([Expression("prmt", X, Y, Z), Expression("shf", X, Y, Z)]),
    st.builds(
        lambda relation, signed: Expression("lex", X, Y, Z, relation=relation, signed=signed),
        st.sampled_from([LESS, GREATER, LESS | GREATER]),
        st.booleans(),
    ),
)


def blocks(whole: Node, region: Region) -> list[Node]:
    """The nodes that it takes, each of which fits the ports; the last is the node itself."""
    steps, pending = [], [whole]
    while pending:
        found = pending.pop(0)
        as_registers = (
            Register("thread", "step") if isinstance(o, Node) else o for o in found.expression.operands
        )
        if route(found.expression.with_operands(*as_registers), None) is None:
            pending = [*split(found, region), *pending]
        else:
            steps.append(found)
    return steps


@given(OPERATIONS, WORDS, WORDS | st.integers(0, 40), WORDS)
def test_steps_mean_the_same(expression: Expression, x: int, y: int, z: int) -> None:
    whole = node(expression)
    region = Region(whole.block, (), [whole])
    values: dict[Register | Node, int] = {X: x, Y: y, Z: z}
    wanted = meaning(expression, values)
    for step in blocks(whole, region):
        values[step] = meaning(step.expression, values)
    assert values[whole] == wanted
