"""What instructions need that have no counterpart here, and what to do instead."""

from qgpu.toolchain.llvm.places import opcode_of

_FLOATS = ("fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "fcmp")
_EXCEPTIONS = (
    "invoke",
    "landingpad",
    "resume",
    "catchswitch",
    "catchpad",
    "catchret",
    "cleanuppad",
    "cleanupret",
)


def what_it_needs(text: str) -> tuple[str, ...]:
    """Of an instruction's text its opcode, why it is not supported, and notes."""
    opcode = opcode_of(text)
    if opcode in _FLOATS:
        hint = "the machine computes with integers: use fixed point"
        return opcode, "it needs floating-point arithmetic", hint
    if opcode in _EXCEPTIONS:
        return opcode, "it needs exceptions", "compile with -fno-exceptions"
    if opcode in ("indirectbr", "callbr"):
        return opcode, "it goes to an address", "use a switch"
    if opcode == "va_arg":
        return opcode, "it needs a variable number of arguments", "pass an array and its length"
    return opcode, "this form is not known", "see docs/llvm.md for what runs"
