"""The table of PTX instructions that are lowered, and the words for those that are not."""

import re
from itertools import groupby

from qgpu.toolchain.ptx import ast, data_rules, integer_rules
from qgpu.toolchain.ptx.cfg import BRANCH, ENDS
from qgpu.toolchain.ptx.rule import Rule

_ROWS = sorted([*integer_rules.RULES, *data_rules.RULES], key=lambda rule: rule.opcode)
RULES: dict[str, tuple[Rule, ...]] = {
    opcode: tuple(rows) for opcode, rows in groupby(_ROWS, key=lambda rule: rule.opcode)
}

_CONTROL_FORM = re.compile("(uni)?")
_FLOATING = re.compile(r"\.(e\dm\d\w*|t?f16(x2)?|bf16(x2)?|tf32|f32(x2)?|f64)\b")
_PACKED = re.compile(r"\.[su](8x4|16x2)\b")

_LANES = "it reads registers of other lanes"
_TEXTURE = "it needs texture or surface memory"
_MATRIX = "it needs a matrix unit"
_CARRY = "it needs a carry flag"
_ASYNC = "it needs asynchronous copies"
_BITS = "it needs a unit for bit fields"

_CALL = "it needs a call stack; make the function __forceinline__, and use neither printf nor assert"

NEEDS = {
    "call": _CALL,
    "st.param": _CALL,
    "brx": "it needs an indirect branch; write the switch as a chain of ifs",
    "alloca": "it needs a stack",
    "shfl": _LANES,
    "vote": _LANES,
    "match": _LANES,
    "redux": _LANES,
    "activemask": _LANES,
    "elect": _LANES,
    "tex": _TEXTURE,
    "tld4": _TEXTURE,
    "txq": _TEXTURE,
    "suld": _TEXTURE,
    "sust": _TEXTURE,
    "sured": _TEXTURE,
    "wmma": _MATRIX,
    "mma": _MATRIX,
    "ldmatrix": _MATRIX,
    "addc": _CARRY,
    "subc": _CARRY,
    "madc": _CARRY,
    "cp": _ASYNC,
    "mbarrier": _ASYNC,
    "bfe": _BITS,
    "bfi": _BITS,
    "brev": _BITS,
    "bfind": _BITS,
    "fns": _BITS,
    "prmt": _BITS,
    "membar": "it needs an order between thread blocks, which run one after another here",
    "fence": "it needs an order between thread blocks, which run one after another here",
    "nanosleep": "there is no clock",
    "atom": "only add, min, max, and, or, xor and exch on 32-bit integers are supported",
    "red": "only add, min, max, and, or and xor on 32-bit integers are supported",
    "bar": "only a barrier of the whole thread block is supported",
    "barrier": "only a barrier of the whole thread block is supported",
    "cvta": "only global, shared and local addresses are supported",
    "ld.const": "it needs constant memory; pass a pointer to the table instead",
    "ld": "only global, shared, local and parameter memory with up to 64 bits an element is supported",
    "st": "only global, shared and local memory with up to 64 bits an element is supported",
}


def find_rule(instruction: ast.Instruction) -> tuple[Rule, dict[str, str | None]] | None:
    """The row for an instruction and the groups of its form; None where it is not supported."""
    for rule in RULES.get(instruction.opcode, ()):
        match = rule.match(instruction)
        if match is not None:
            return rule, match.groupdict()
    return None


def is_plain_transfer(instruction: ast.Instruction) -> bool:
    """Whether a branch, return or trap has a form that the control flow graph stands for."""
    operands = 1 if instruction.opcode == BRANCH else 0
    known = instruction.opcode == BRANCH or instruction.opcode in ENDS
    modifiers = ".".join(instruction.modifiers)
    return known and len(instruction.operands) == operands and bool(_CONTROL_FORM.fullmatch(modifiers))


def what_it_needs(instruction: ast.Instruction) -> str:
    """Why an instruction is not supported, as a clause."""
    dotted = f".{'.'.join(instruction.modifiers)}"
    if _FLOATING.search(dotted):
        return "it needs floating-point arithmetic"
    if _PACKED.search(dotted):
        return "it needs packed arithmetic"
    if "cc" in instruction.modifiers:
        return _CARRY
    for key in (".".join((instruction.opcode, *instruction.modifiers[:1])), instruction.opcode):
        if key in NEEDS:
            return NEEDS[key]
    if instruction.opcode in RULES:
        return "this form of the instruction is not known"
    return "the instruction is not known"
