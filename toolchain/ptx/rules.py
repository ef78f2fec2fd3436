"""The table of PTX instructions that are lowered, and the words for those that are not."""

import re
from itertools import groupby

from qgpu.toolchain.ptx import (
    ast,
    atomic_rules,
    bit_rules,
    carry_rules,
    compare_rules,
    data_rules,
    integer_rules,
    logic_rules,
    memory_rules,
    packed_rules,
    parameter_rules,
    printf,
    sync_rules,
    video_rules,
    warp_rules,
)
from qgpu.toolchain.ptx.cfg import BRANCH, ENDS
from qgpu.toolchain.ptx.rule import Rule

_TABLES = (
    integer_rules,
    packed_rules,
    video_rules,
    bit_rules,
    logic_rules,
    compare_rules,
    carry_rules,
    data_rules,
    memory_rules,
    atomic_rules,
    warp_rules,
    sync_rules,
    parameter_rules,
    printf,
)
_ROWS = sorted((rule for table in _TABLES for rule in table.RULES), key=lambda rule: rule.opcode)
RULES: dict[str, tuple[Rule, ...]] = {
    opcode: tuple(rows) for opcode, rows in groupby(_ROWS, key=lambda rule: rule.opcode)
}

_CONTROL_FORM = re.compile("(uni)?")
_FLOATING = re.compile(r"(e\dm\d\w*|ue8m0\w*|t?f16(x2)?|bf16(x2)?|tf32|f32(x2)?|f64)")

_TEXTURE = "it needs texture or surface memory"
_MATRIX = "it needs a matrix unit"
_ASYNC = "it needs asynchronous copies; copy with loads and stores"
_COPY = "an asynchronous copy to shared memory has 4, 8 or 16 bytes, with .cg 16"
_BARRIER = "it needs barrier objects in shared memory; synchronise with __syncthreads() or bar.sync"
_CLUSTERS = "it needs clusters of thread blocks"
_MULTICAST = "it needs memory that several devices share"
_VIDEO = "it needs a unit for video; write it with shifts, masks, min and max"
_STACK = "it needs a stack"

NEEDS = {
    "alloca": _STACK,
    "stacksave": _STACK,
    "stackrestore": _STACK,
    "tex": _TEXTURE,
    "tld4": _TEXTURE,
    "txq": _TEXTURE,
    "suld": _TEXTURE,
    "sust": _TEXTURE,
    "sured": _TEXTURE,
    "suq": _TEXTURE,
    "istypep": _TEXTURE,
    "wmma": _MATRIX,
    "mma": _MATRIX,
    "wgmma": _MATRIX,
    "tcgen05": _MATRIX,
    "ldmatrix": _MATRIX,
    "stmatrix": _MATRIX,
    "movmatrix": _MATRIX,
    "cp": _ASYNC,
    "cp.mbarrier": _BARRIER,
    "cp.bulk": _ASYNC,
    "cp.ca": _COPY,
    "cp.cg": _COPY,
    "mbarrier": _BARRIER,
    "tensormap": _ASYNC,
    "prefetch.tensormap": _ASYNC,
    "fence.proxy": _ASYNC,
    "st.async": _ASYNC,
    "st.bulk": _ASYNC,
    "red.async": _ASYNC,
    "mapa": _CLUSTERS,
    "getctarank": _CLUSTERS,
    "clusterlaunchcontrol": _CLUSTERS,
    "barrier.cluster": _CLUSTERS,
    "multimem": _MULTICAST,
    **dict.fromkeys(("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vshl", "vshr", "vmad"), _VIDEO),
    "bar": "a barrier that counts threads cannot combine their values; use the whole thread block",
    "barrier": "a barrier that counts threads cannot combine their values; use the whole thread block",
}
"""Why instructions are not lowered, by their opcodes, or these with one of their modifiers."""

_FLOATING_OPCODES = ("copysign", "testp", "fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh")
_FLOAT = "it computes with floating-point numbers, and the machine computes with integers"
_WIDE = "the machine has no registers of 128 bits; use two of 64"
_NARROW = "the machine compares and swaps words; use atom.cas.b32 on the word around it"


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
    opcode, modifiers = instruction.opcode, instruction.modifiers
    for key in (*(f"{opcode}.{modifier}" for modifier in modifiers), opcode):
        if key in NEEDS:
            return NEEDS[key]
    if opcode in _FLOATING_OPCODES or any(_FLOATING.fullmatch(modifier) for modifier in modifiers):
        return _FLOAT
    if "b128" in modifiers:
        return _WIDE
    if opcode == "atom" and "b16" in modifiers:
        return _NARROW
    if opcode in RULES:
        return "this form of the instruction is not known"
    return "the instruction is not known"
