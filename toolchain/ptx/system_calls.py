"""The functions that CUDA's device runtime provides, as bodies to inline, and why others are absent.

A body loads its parameters and hands them to an instruction of our own, `vprintf` or `assertfail`.
"""

from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.names import type_width

PRINT, ASSERT = "vprintf", "assertfail"

_HEAP = "it needs a heap; pass a buffer to the kernel, or use an array of fixed size"
_DEVICE_LAUNCH = "it needs launches from the device; launch the kernel from the host"
_GRID = "it needs a barrier of the whole grid; split the kernel where it synchronises"

ABSENT = {
    **dict.fromkeys(("malloc", "free", "__nv_aligned_device_malloc", "_Znwm", "_ZdlPv"), _HEAP),
    "cudaGetParameterBufferV2": _DEVICE_LAUNCH,
    "cudaLaunchDeviceV2": _DEVICE_LAUNCH,
    "cudaDeviceSynchronize": _DEVICE_LAUNCH,
    "cudaCGGetIntrinsicHandle": _GRID,
    "cudaCGSynchronize": _GRID,
}
"""What is needed for functions that are declared by CUDA's headers and have no body in PTX."""

_OPCODES = {"vprintf": (PRINT, 2), "__assertfail": (ASSERT, 5)}


def system_body(function: ast.Function) -> ast.Body | None:
    """The body of a function of CUDA's runtime; None where it is none, or not declared as that one is."""
    opcode, count = _OPCODES.get(function.name, ("", -1))
    if len(function.parameters) != count or len(function.results) > 1:
        return None
    place = function.position
    names = [ast.Name(f"%{number}", position=place) for number in range(count + 1)]
    statements: list[ast.Statement] = []
    for name, formal in zip(names[1:], function.parameters, strict=True):
        statements.append(_register(name, formal))
        statements.append(_instruction(place, "ld", _type(formal), name, _memory(formal)))
    if not function.results:
        statements.append(_instruction(place, opcode, (), *names[1:]))
        return ast.Body(tuple(statements))
    (result,) = function.results
    statements.append(_register(names[0], result))
    statements.append(_instruction(place, opcode, (), *names))
    statements.append(_instruction(place, "st", _type(result), _memory(result), names[0]))
    return ast.Body(tuple(statements))


def _register(name: ast.Name, formal: ast.Parameter) -> ast.Registers:
    range_ = ast.RegisterRange(name.text)
    return ast.Registers(f"b{type_width(formal.type)}", (range_,), position=name.position)


def _type(formal: ast.Parameter) -> tuple[str, ...]:
    return "param", f"b{type_width(formal.type)}"


def _memory(formal: ast.Parameter) -> ast.Memory:
    name = ast.Name(formal.name, position=formal.position)
    return ast.Memory(name, 0, position=formal.position)


def _instruction(
    place: ast.Position, opcode: str, modifiers: tuple[str, ...], *operands: ast.Operand
) -> ast.Instruction:
    return ast.Instruction(opcode, modifiers, operands, None, position=place)
