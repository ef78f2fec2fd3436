"""Operations computed by kernels of one instruction, for tests of the passes that replace it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qgpu.ir import I32, OPCODES, Builder, Constant, Function, IntType, Shape, Value, ptr
from qgpu.ir.interpreter import interpret
from qgpu.ir.passes import Pass, PassManager

BLOCK = 512


def corners(width: int) -> list[int]:
    """Numbers at which operations on so many bits change their behaviour, as unsigned ones."""
    near = {0, 1, 2, 3, 5, 7, 10, 100, 1000, 0x5A, 0xA5A5, 0x12345678, 0x9ABCDEF012345678}
    for power in range(0, width + 1, 1 if width <= 16 else 3 if width == 32 else 7):
        near |= {(1 << power) + offset for offset in (-1, 0, 1)}
    for edge in (width - 1, width - 2, width // 2, width // 2 - 1):
        near |= {(1 << edge) + offset for offset in (-1, 0, 1)}
    mask = (1 << width) - 1
    return sorted({number & mask for number in near} | {-number & mask for number in near})


def operation(
    op: str,
    types: Sequence[IntType],
    result: IntType,
    constants: dict[int, int] | None = None,
    **attrs: Any,
) -> Function:
    """The kernel out[i] = op(in0[i], in1[i], ...); `constants` gives operands that are always the same."""
    fixed = constants or {}
    read = [n for n in range(len(types)) if n not in fixed]
    function = Function("operation", [*((f"in{n}", ptr("global")) for n in read), ("out", ptr("global"))])
    builder = Builder(function.add_block("entry"))
    thread = builder.emit(
        "add",
        builder.emit("mul", builder.sreg("ctaid.x"), Constant(I32, BLOCK)),
        builder.sreg("tid.x"),
    )
    operands: list[Value] = []
    for number, type_ in enumerate(types):
        if number in fixed:
            operands.append(Constant(type_, fixed[number]))
            continue
        source = function.args[read.index(number)]
        operands.append(builder.load(builder.ptradd(source, thread, type_.bytes), type_))
    value = builder.emit(op, *operands, type=result, attrs=attrs)
    memory = I32 if result.width == 1 else result
    stored = builder.cast("zext", value, memory)
    builder.store(builder.ptradd(function.args[-1], thread, memory.bytes), stored)
    builder.ret()
    return function


def results(
    function: Function, columns: Sequence[Sequence[int]], types: Sequence[IntType], result: IntType
) -> list[int]:
    """What the kernel computes for each row of operands."""
    count = len(columns[0])
    padded = -(-count // BLOCK) * BLOCK
    size = 4 if result.width == 1 else result.bytes
    buffers = [
        bytearray(b"".join(x.to_bytes(t.bytes, "little") for x in [*column, *[1] * (padded - count)]))
        for column, t in zip(columns, types, strict=True)
    ]
    out = bytearray(padded * size)
    interpret(function, [*buffers, out], grid=(padded // BLOCK, 1, 1), block=(BLOCK, 1, 1), max_steps=10**9)
    return [int.from_bytes(out[i * size : (i + 1) * size], "little") for i in range(count)]


def check(
    steps: Sequence[Pass],
    op: str,
    types: Sequence[IntType],
    result: IntType,
    columns: Sequence[Sequence[int]],
    constants: dict[int, int] | None = None,
    **attrs: Any,
) -> Function:
    """Holds a kernel of one operation after passes against the opcode table, and gives the kernel.

    `columns` are the operands that are read, one list each.
    """
    fixed = constants or {}
    function = operation(op, types, result, fixed, **attrs)
    PassManager(steps).run(function)
    read = [t for n, t in enumerate(types) if n not in fixed]
    found = results(function, columns, read, result)
    evaluate = OPCODES[op].evaluate
    assert evaluate is not None
    shape = Shape(types[0].width, result.width, attrs)
    for row, got in zip(zip(*columns, strict=True), found, strict=True):
        values = list(row)
        for position in sorted(fixed):
            values.insert(position, fixed[position])
        expected = evaluate(shape, values) & result.mask
        assert got == expected, f"{op} {types} {[hex(v) for v in values]}: {got:#x}, not {expected:#x}"
    return function


def pairs(width: int) -> list[list[int]]:
    """Two columns: every pair of corners."""
    numbers = corners(width)
    return [[a for a in numbers for _ in numbers], [b for _ in numbers for b in numbers]]
