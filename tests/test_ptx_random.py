"""Random syntax trees: parsing what the printer prints gives the same tree."""

import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.parser import parse
from qgpu.toolchain.ptx.printer import print_module

PLACE = ast.Position(0, 0)
TYPE_NAMES = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 f32 f64 pred"
TYPES = st.sampled_from(TYPE_NAMES.split())
SPACES = st.sampled_from(["global", "shared", "local", "const"])
LINKAGES = st.none() | st.sampled_from(["visible", "extern", "weak", "common"])
VECTORS = st.none() | st.sampled_from(["v2", "v4", "v8"])

# Names may well be those of instructions and directives.
WORDS = st.text(string.ascii_letters + string.digits + "_$", min_size=1, max_size=6)
SYMBOLS = st.one_of(
    st.tuples(st.sampled_from(string.ascii_letters + "_$%"), WORDS).map("".join),
    st.sampled_from(["add", "call", "ret", "generic", "function_name", "mov", "f", "x", "inlined_at"]),
).filter(lambda name: name != "WARP_SZ")
SUFFIXES = st.sampled_from(["", "", "", ".x", ".w", ".a", ".b0", ".b3210", ".h1", ".h32"])
INTEGERS = st.integers(-(1 << 63), (1 << 64) - 1)
COUNTS = st.integers(0, 1 << 20)
STRINGS = st.text(string.ascii_letters + string.digits + " ./{}:;\\\\", max_size=8)


def node(kind: type, *fields: st.SearchStrategy, **named: st.SearchStrategy) -> st.SearchStrategy:
    """Nodes of a class, at no place."""
    return st.builds(kind, *fields, **named, position=st.just(PLACE))


def tuples_of(items: st.SearchStrategy, least: int = 0, most: int = 3) -> st.SearchStrategy:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


NAMES = node(ast.Name, SYMBOLS)
PARTS = node(ast.Name, st.tuples(SYMBOLS, SUFFIXES).map("".join))
NUMBERS = node(ast.Integer, INTEGERS)
FLOATS = node(
    ast.Float,
    st.integers(0, (1 << 32) - 1).map("0f{:08X}".format)
    | st.integers(0, (1 << 64) - 1).map("0d{:016X}".format),
)
OFFSETS = node(ast.Offset, NAMES, INTEGERS)
SCALARS = PARTS | NUMBERS | FLOATS
VECTOR_OPERANDS = node(ast.Vector, tuples_of(SCALARS, least=1))
MEMORY = node(ast.Memory, NAMES, INTEGERS, tuples_of(SCALARS | VECTOR_OPERANDS)) | node(
    ast.Memory, NUMBERS, st.just(0), tuples_of(VECTOR_OPERANDS)
)
OPERANDS = st.one_of(
    SCALARS,
    OFFSETS,
    VECTOR_OPERANDS,
    MEMORY,
    node(ast.Element, NAMES, NAMES | NUMBERS | OFFSETS),
    node(ast.Pair, PARTS | VECTOR_OPERANDS, PARTS),
    node(ast.Negated, PARTS),
    node(ast.Minus, PARTS),
)
GUARDS = st.none() | st.builds(ast.Guard, PARTS, st.booleans())
OPCODES = st.sampled_from(["add", "mov", "ld", "tcgen05", "wgmma", "vadd4", "bar"])
MODIFIERS = st.sampled_from(
    ["s32", "L1::evict_last", "2d", "m16n8k16", "f16x2", "a::b::c", "sync", "scale_vec::1X"]
)
INSTRUCTIONS = node(ast.Instruction, OPCODES, tuples_of(MODIFIERS), tuples_of(OPERANDS), GUARDS)
GROUPS = st.builds(ast.Group, tuples_of(OPERANDS))
CALLS = node(
    ast.Instruction,
    st.just("call"),
    st.sampled_from([(), ("uni",)]),
    st.tuples(tuples_of(GROUPS, most=1), NAMES, tuples_of(GROUPS, most=1), tuples_of(NAMES, most=1)).map(
        lambda parts: (*parts[0], parts[1], *parts[2], *parts[3])
    ),
    GUARDS,
)
EXTENTS = tuples_of(st.none() | COUNTS, most=2)
ALIGNS = st.none() | COUNTS
ADDRESSES = NAMES | OFFSETS | node(ast.Generic, NAMES, INTEGERS)
LEAVES = NUMBERS | FLOATS | ADDRESSES | node(ast.Masked, st.integers(0, (1 << 64) - 1), ADDRESSES)
SETTINGS = node(ast.Setting, NAMES.map(str), NAMES | NUMBERS)
INITIALIZERS = st.recursive(
    LEAVES, lambda inner: st.builds(ast.Aggregate, tuples_of(inner | SETTINGS)), max_leaves=6
)
NUMBERED = st.tuples(st.sampled_from(["maxntid", "reqntid", "maxnreg"]), tuples_of(COUNTS, least=1))
DIRECTIVES = NUMBERED | st.tuples(st.sampled_from(["noreturn", "explicitcluster"]), st.just(()))
ATTRIBUTES = tuples_of(st.tuples(st.sampled_from(["managed", "unified"]), tuples_of(COUNTS, most=2)), most=2)
VARIABLES = node(
    ast.Variable,
    SPACES,
    TYPES,
    SYMBOLS,
    EXTENTS,
    ALIGNS,
    VECTORS,
    LINKAGES,
    st.none() | INITIALIZERS,
    ATTRIBUTES,
)
POINTEES = st.none() | st.builds(ast.Pointee, st.none() | SPACES, ALIGNS)
PARAMETERS = tuples_of(
    node(ast.Parameter, TYPES, SYMBOLS, EXTENTS, ALIGNS, POINTEES, st.sampled_from(["param", "reg"]), VECTORS)
)
REGISTERS = node(
    ast.Registers,
    TYPES,
    tuples_of(st.builds(ast.RegisterRange, SYMBOLS, st.none() | COUNTS), least=1),
    VECTORS,
    ALIGNS,
)
SITES = st.tuples(COUNTS, COUNTS, COUNTS)
INLINED = st.builds(ast.SourceLine, COUNTS, COUNTS, COUNTS, SITES, SYMBOLS | SYMBOLS.map("{}+4".format))
LINES = st.builds(ast.SourceLine, COUNTS, COUNTS, COUNTS) | INLINED
PRAGMAS = st.builds(ast.Pragma, tuples_of(STRINGS, least=1))
STATEMENTS = st.one_of(
    INSTRUCTIONS,
    CALLS,
    REGISTERS,
    VARIABLES,
    node(ast.CallParameter, TYPES, SYMBOLS, EXTENTS, ALIGNS),
    LINES,
    PRAGMAS,
    node(ast.Label, SYMBOLS),
    node(ast.BranchTargets, SYMBOLS, tuples_of(NAMES, least=1)),
    node(ast.CallTargets, SYMBOLS, tuples_of(NAMES, least=1)),
    node(ast.CallPrototype, SYMBOLS, PARAMETERS, PARAMETERS, tuples_of(DIRECTIVES)),
)
BODIES = st.recursive(
    st.builds(ast.Body, tuples_of(STATEMENTS)),
    lambda inner: st.builds(ast.Body, tuples_of(STATEMENTS | inner)),
    max_leaves=3,
)
HEADERS = {"performance": tuples_of(DIRECTIVES), "linkage": LINKAGES}
DEBUG_LINES = st.builds(
    ast.DebugData,
    st.sampled_from(["b8", "b16", "b32", "b64"]),
    tuples_of(INTEGERS | SYMBOLS | SYMBOLS.map(".{}+4".format) | SYMBOLS.map("{0}-{0}".format), least=1),
)
ITEMS = st.one_of(
    node(ast.Entry, SYMBOLS, PARAMETERS, BODIES, **HEADERS, pragmas=tuples_of(STRINGS)),
    node(ast.EntryDeclaration, SYMBOLS, PARAMETERS, st.none(), **HEADERS),
    node(
        ast.Function,
        SYMBOLS,
        PARAMETERS,
        st.none() | BODIES,
        **HEADERS,
        attributes=ATTRIBUTES,
        results=PARAMETERS,
    ),
    node(ast.Alias, SYMBOLS, NAMES),
    VARIABLES,
    REGISTERS,
    st.builds(ast.File, COUNTS, STRINGS, st.none() | st.tuples(COUNTS, COUNTS)),
    st.builds(ast.Section, SYMBOLS.map(".{}".format), tuples_of(DEBUG_LINES | SYMBOLS)),
    LINES,
    PRAGMAS,
)


def kernel_of(statements: st.SearchStrategy, least: int) -> st.SearchStrategy:
    """Kernels of nothing but the statements."""
    body = st.builds(ast.Body, tuples_of(statements, least=least, most=least + 4))
    return tuples_of(node(ast.Entry, SYMBOLS, st.just(()), body), least=1, most=1)


KINDS = {
    "instructions": kernel_of(INSTRUCTIONS, least=3),
    "calls": kernel_of(CALLS, least=3),
    "statements": kernel_of(STATEMENTS, least=3),
    "scopes": kernel_of(BODIES, least=1),
    "variables": tuples_of(VARIABLES, least=2),
    "items": tuples_of(ITEMS, least=2),
}


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_parsing_what_is_printed_gives_the_same_tree(kind: str, data: st.DataObject) -> None:
    module = ast.Module(
        "9.0", ("sm_90a", "debug"), data.draw(st.sampled_from([32, 64])), data.draw(KINDS[kind])
    )
    assert parse(Source("random.ptx", print_module(module))) == module
