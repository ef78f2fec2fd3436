"""The SIMT IR: typed SSA over basic blocks, one function per kernel, one lane's view of the program."""

from qgpu.ir.core.block import BasicBlock
from qgpu.ir.core.builder import Builder, constant
from qgpu.ir.core.function import Array, Function, Module
from qgpu.ir.core.instruction import Instruction
from qgpu.ir.core.opcodes import OPCODES, Effect, OpInfo, Shape, compare, to_signed
from qgpu.ir.core.printer import print_function, print_instruction, print_module
from qgpu.ir.core.types import (
    I1,
    I8,
    I16,
    I32,
    I64,
    VOID,
    IntType,
    PtrType,
    SlotType,
    Type,
    integer,
    parse_type,
    ptr,
    slot,
)
from qgpu.ir.core.values import FALSE, TRUE, Argument, Constant, Literal, Location, Value
from qgpu.ir.parser import ParseError, parse_function, parse_module
from qgpu.ir.verifier import VerifyError, verify

__all__ = [
    "FALSE",
    "I1",
    "I8",
    "I16",
    "I32",
    "I64",
    "OPCODES",
    "TRUE",
    "VOID",
    "Argument",
    "Array",
    "BasicBlock",
    "Builder",
    "Constant",
    "Effect",
    "Function",
    "Instruction",
    "IntType",
    "Literal",
    "Location",
    "Module",
    "OpInfo",
    "ParseError",
    "PtrType",
    "Shape",
    "SlotType",
    "Type",
    "Value",
    "VerifyError",
    "compare",
    "constant",
    "integer",
    "parse_function",
    "parse_module",
    "parse_type",
    "print_function",
    "print_instruction",
    "print_module",
    "ptr",
    "slot",
    "to_signed",
    "verify",
]
